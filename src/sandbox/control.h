/* sandbox/control: our end of the control socket (wire/helper.h): events out, requests in.
 *
 * Theory. Lines both ways. A line from the runner that is too long or not understood is dropped;
 * the runner's end closing is the one signal that always works. Must not: block on a runner that
 * does not read for longer than its socket buffer lasts, so events are few and short.
 */
#ifndef CODESPACE_SANDBOX_CONTROL_H
#define CODESPACE_SANDBOX_CONTROL_H

#include "base/buf.h"
#include "wire/helper.h"

struct control {
    int fd;
    struct buf in;
};

void control_send(int fd, const struct helper_verdict *v);

/* Send {"event":"failed"} with a row of sandbox/exits and what happened; returns `code`. */
int control_failed(int fd, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Read what is there. 1, or 0 when the other end is closed. */
int control_fill(struct control *c);

/* The same, with a descriptor that came along in *ret_fd (caller closes; -1 = none). */
int control_receive(struct control *c, int *ret_fd);

/* The next whole line without its newline, valid until the next call; NULL when there is none. */
const char *control_next(struct control *c, size_t *ret_len);

/* Add what a line of bubblewrap's says to `words`, as far as there is room. */
void control_add_words(char *words, size_t cap, const char *line);

#endif
