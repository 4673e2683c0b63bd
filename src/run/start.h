/* run/start: from a request to a child that becomes its sandbox (`HELPER start`, wire/helper).
 *
 * Theory. The request goes in memory, by descriptor: it may have secrets, and arguments can be read
 * by everybody. The helper prepares it, answers on the control socket, and goes on as bubblewrap in
 * the same process. So a start costs one program, and whoever gives it up kills that one and leaves
 * nothing anywhere.
 *
 * Must not: hand our environment to the helper, or a descriptor that is not meant for it.
 */
#ifndef CODESPACE_RUN_START_H
#define CODESPACE_RUN_START_H

#include "run/managed.h"
#include "sys/spawn.h"

/* The helper has this long to prepare, which takes a millisecond; one that needs it is broken. */
#define START_PREPARE_MS 5000u

/* Start it for `request` (wire/helper). theirs: 0, 1, 2 (-1 = /dev/null) and the control socket, as
 * of struct ends; rules: to the egress proxy (-1 = none). All stay the caller's. 0 or -errno. */
int start_sandbox(const struct home *home, const struct buf *request, const int theirs[4],
                  int rules, struct spawned *ret);

/* Read the helper's answer, a line without its newline: 0 and the guards, which are replaced, or -1
 * with PROCESS_SPAWN_FAILED. */
int start_read_answer(const char *line, size_t n, struct strv *ret_guards, struct err *e);

#endif
