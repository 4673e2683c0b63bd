/* sandbox/group: a control group for one command (D11, D12).
 *
 * Theory. Limits on all processes of a command together exist only as control groups, and only
 * where an operator lets us make them: a directory of version 2, or one of a controller of version
 * 1 (the directories of the same name under the other controllers are then used as well). At
 * `prepare` it is looked at whether every limit that was asked for can be held; at `run` the group
 * is made and entered before bubblewrap starts, so nothing of the command is ever outside of it. A
 * group cannot be removed from inside; a process of ours that holds nothing else waits for the
 * sandbox's end and removes it. What that process leaves when it is killed itself, the next command
 * removes.
 *
 * Must not: start a command whose limit could not be set.
 */
#ifndef CODESPACE_SANDBOX_GROUP_H
#define CODESPACE_SANDBOX_GROUP_H

#include "base/err.h"
#include "wire/helper.h"
#include "wire/plan.h"

/* The groups for `r` into p->groups. Errors: INVALID_COMMAND with the limit and the cause. */
int group_plan(const struct helper_request *r, struct plan *p, struct err *e);

/* Limits that tell when they were met. */
enum group_event { GROUP_MEMORY, GROUP_PIDS, GROUP_EVENTS };

/* Make them and enter. ret_events[EVENT]: a descriptor for the functions below when
 * group_has_events() of it, else -1. Errors: SANDBOX_UNAVAILABLE with the file and, where it is
 * known, what an operator does. */
int group_enter(const struct strv *groups, int ret_events[GROUP_EVENTS], struct err *e);

/* Whether such a limit is among them. */
bool group_has_events(const struct strv *groups, enum group_event event);

/* Processes that the kernel ended because this group's memory limit was reached; 0 without a
 * descriptor. */
uint32_t group_oom_kills(int events);

/* How often no process or thread could be made because there were as many as allowed. Linux before
 * 6.10 also counts here what a group above refused. */
uint32_t group_pids_refused(int events);

#endif
