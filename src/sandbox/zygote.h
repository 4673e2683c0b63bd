/* sandbox/zygote: the inner stage of a sandbox that stays and takes commands (wire/warm).
 *
 * Theory. Building a view costs milliseconds, a PID namespace, a /proc and a /tmp in it some ten
 * microseconds. So the zygote is process 1 of a view that was built once; its children, each
 * process 1 of a namespace of its own, make themselves fresh (sandbox/fresh), give everything up,
 * and only then wait for a command: the command's process is there as well, and receives it from
 * the runner's socket by itself (sandbox/child), so the work above is done before a command comes.
 * A child that takes one writes that down in memory that it shares with the zygote, which no
 * command ever has, and is replaced. From there on it is an ordinary inner stage (sandbox/inner).
 *
 * The zygote keeps CAP_SYS_ADMIN in its own user namespace, and gives nothing to anybody: it runs
 * no other program, reads no file of the workspace, never looks into a message, and stands outside
 * of every PID namespace in which a command runs. When the runner closes the socket it takes no
 * more commands and ends after the last one; when bubblewrap dies it ends them.
 *
 * Must not: go on when something is odd. A zygote that ends costs a cold start.
 */
#ifndef CODESPACE_SANDBOX_ZYGOTE_H
#define CODESPACE_SANDBOX_ZYGOTE_H

#include "base/err.h"
#include "wire/helper.h"
#include "wire/plan.h"

/* Children that wait for a command. Below ZYGOTE_LOW a new one is made at once; else
 * ZYGOTE_LATER_US after the command of one that was taken is known to go on, because making it
 * takes a processor from the command that starts; and for a short command when its child has ended,
 * which wakes the zygote in any case. */
#define ZYGOTE_READY 4
#define ZYGOTE_LOW 2
#define ZYGOTE_LATER_US 500
/* A child whose command has ended waits that long before it ends itself: taking its namespaces down
 * would hold up whoever reads the verdict. */
#define ZYGOTE_LINGER_MS 1
/* From so many children on one that ends takes its turn like everybody, so that those who wait for
 * an idle processor cannot pile up. */
#define ZYGOTE_CROWD 24

/* Make of the plan for `r` that of a zygote. Errors: INVALID_COMMAND where a view that was built
 * earlier would be weaker than a new one. */
int zygote_plan(const struct helper_request *r, struct plan *p, struct err *e);

/* Exit status. `p` is changed; `files` as for inner_main(). */
int zygote_main(struct plan *p, unsigned long files);

#endif
