/* sandbox/netcommand: a credential that a command of the operator's prints (egress.inject).
 *
 * Theory. Run where the files are read (sandbox/netinject): on the host's side, by the helper,
 * before there is a view and before the proxy runs; once for each start of a network door. It gets
 * nothing of the workspace: the root directory as its own, a fixed environment with the user's name
 * and home, no standard input, and the program must be one that only root and this user can change
 * (sys/trusted; looked at again here). What it prints goes into memory only; what it says on
 * standard error is dropped, because it may hold the secret, too.
 *
 * It has NETCOMMAND_MS together with the others of this start, and a session of its own that is
 * killed when it is over: nothing that it leaves runs on.
 * Must not: put a byte that it printed, or its words, into an error.
 */
#ifndef CODESPACE_SANDBOX_NETCOMMAND_H
#define CODESPACE_SANDBOX_NETCOMMAND_H

#include "base/err.h"
#include "base/str.h"
#include "wire/inject.h"

#include <stddef.h>
#include <stdint.h>

/* All commands of one start together: a command of the sandbox waits for them, and a start as a
 * whole has 10 seconds. */
#define NETCOMMAND_MS 5000u

/* What it may print: a value and the end of its line. */
#define NETCOMMAND_ROOM (INJECT_VALUE_MAX + 3)

/* When they have to be done, in ms of the monotonic clock. */
uint64_t netcommand_deadline(void);

/* Run it; *ret_len bytes at `out` (NETCOMMAND_ROOM), as they were printed. Errors:
 * SANDBOX_UNAVAILABLE with what went wrong. */
int netcommand_run(const struct strv *argv, uint64_t deadline_ms, char *out, size_t *ret_len,
                   struct err *e);

#endif
