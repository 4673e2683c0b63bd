/* sandbox/outer: from a plan file, or a request, to bubblewrap.
 *
 * Theory. The file is opened, removed and read; the places of the view that could be swapped are
 * opened now, without following links, and mounted by descriptor; every other descriptor is made
 * to close; then this process becomes bubblewrap (R12, same process id) with an empty environment
 * and an argument list that carries neither policy nor command (A28, E34). bubblewrap's stderr is
 * the control socket, so its words are never mixed with the command's output; the command's own
 * 0, 1 and 2 travel beside it and are put back inside. bubblewrap then executes this same program,
 * by descriptor, as process 1 (D8: the view need not show it).
 *
 * `start` is `prepare` and `run` in one process: a plan that nobody else has to be given needs no
 * file, and a cold command costs one execution less (docs/decisions/0014-start.md).
 *
 * Must not: set no_new_privs or load the filter here (H1): a set-user-ID bubblewrap would stop.
 */
#ifndef CODESPACE_SANDBOX_OUTER_H
#define CODESPACE_SANDBOX_OUTER_H

#include <stdbool.h>

/* Become bubblewrap for the plan behind plan_fd, which is taken, telling `control`. Returns only on
 * failure, with an exit status that was already told. `die_with_parent`: bubblewrap shall not
 * outlive its parent, which does not wait for the command's start either. */
int outer_become_plan(int plan_fd, int control, bool die_with_parent);

/* The subcommand with a control socket: the caller reads the events. `rules`: for the egress proxy,
 * by which the caller changes its rules while the command runs (proxy/control); -1 = it will not.
 */
int outer_main(const char *path, int control, int rules);

/* The subcommand that prepares as well: the request is read from `request` to its end, the answer
 * (wire/helper) is the first line on the control socket, and then all is as with a plan. Exit
 * status 1 for a request that was refused. */
int outer_start_main(int request, int control, int rules);

#endif
