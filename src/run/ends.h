/* run/ends: both ends of what a child gets: three pipes, or a terminal, and its control socket.
 *
 * Theory. Making them takes about 20 us. A warm command's are therefore made one command ahead,
 * while nobody waits (run/warm keeps them); nothing about them depends on the command.
 *
 * Must not: be used twice.
 */
#ifndef CODESPACE_RUN_ENDS_H
#define CODESPACE_RUN_ENDS_H

#include <stdbool.h>

/* Where the control socket is in the helper, and among `theirs`. */
#define ENDS_CONTROL 3

struct ends {
    int theirs[4]; /* 0, 1, 2 and the control socket; -1 = none */
    int in, out, err, control;
};

#define ENDS_NONE ((struct ends){{-1, -1, -1, -1}, -1, -1, -1, -1})

#define autoends __attribute__((cleanup(ends_fini))) struct ends

/* Closes what is open; `e` is ENDS_NONE then. */
void ends_fini(struct ends *e);

/* Three pipes. 0 or -errno. */
int ends_open_pipes(struct ends *e);

int ends_open_control(struct ends *e);

#endif
