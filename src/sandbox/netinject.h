/* sandbox/netinject: the operator's credentials from their files and commands to the egress proxy
 * (egress.inject).
 *
 * Theory. This is the last program of the host's side, and the only one that opens the files: right
 * before it starts the proxy, still in the host's view and network. The values go into an anonymous
 * file of memory that only the proxy inherits; then this process becomes bubblewrap, and its memory
 * is gone. So no value is ever in an argument, a variable, a plan, a log or an error.
 *
 * A file that somebody else may read, or that a command could exchange, is refused and with it the
 * command. So is a command of the operator's that fails (sandbox/netcommand). Both are taken once
 * for each start of a network door: a cold command has its own, those of a warm sandbox share one.
 * Must not: name a file in an error: those reach the model. A rule is named by its place, host and
 * header.
 */
#ifndef CODESPACE_SANDBOX_NETINJECT_H
#define CODESPACE_SANDBOX_NETINJECT_H

#include "base/err.h"
#include "wire/helper.h"
#include "wire/plan.h"

/* At prepare: none of the files and programs lies where the command can write. Errors:
 * INVALID_COMMAND. */
int netinject_check(const struct helper_request *r, struct err *e);

/* At run: the values of the plan's policy. *ret_fd (close-on-exec) is ready to be read, -1 when
 * there are none. Errors: SANDBOX_UNAVAILABLE. */
int netinject_values(const struct plan *p, int *ret_fd, struct err *e);

#endif
