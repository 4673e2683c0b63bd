/* mcp/approval_run: a held call that was granted, run once.
 *
 * Theory. The hold is claimed in the ledger, which only one of two resumes gets. Then its arguments
 * go the way of any call: a session of our own, whose peer keeps the answer, is handed a tools/call
 * with them. So validation, policy, lanes and limits are asked again, by the same code; when the
 * call comes to the gate it is known by its session, which no client can be. The answer is kept
 * with the hold and given to whoever waits; a later resume gets the kept one.
 *
 * An error that says "not now" (WORKSPACE_BUSY, RESOURCE_QUEUE_FULL, PROCESS_LIMIT,
 * WORKSPACE_PROCESS_LIMIT) gives the hold back: it may be resumed again. Every other answer uses it
 * up.
 *
 * Whoever waits may go. A patch goes on to its end, as any patch does, and its result is kept. A
 * command is ended, as the command of any cancelled call is, and the hold says CANCELLED.
 *
 * Must not: run a hold that it did not claim, or twice.
 */
#ifndef CODESPACE_MCP_APPROVAL_RUN_H
#define CODESPACE_MCP_APPROVAL_RUN_H

#include "core/approvals.h"
#include "mcp/request.h"

struct approval_run;

struct approval_outcome {
    const char *approval_id;
    enum approval_tool tool;
    const struct buf *json; /* the tool's answer, or its error body: one object */
    bool is_error;
};

/* Exactly one of the two is not NULL. Must end the request. */
typedef void (*approval_run_fn)(struct request *rq, const struct approval_outcome *outcome,
                                const struct err *failure);

/* Claim and run; `done` unless approval_run_leave() comes first. */
struct approval_run *approval_run_new(struct request *rq, const char *approval_id,
                                      approval_run_fn done);

/* Nobody waits any more. */
void approval_run_leave(struct approval_run *run);

/* For the gate, about the call of a run. */
const char *approval_run_id(const struct approval_run *run);
/* It is being marked as started, on the pool. */
void approval_run_starting(struct approval_run *run);
/* It is marked (or not: `started` false). False: the call must not go on; it is gone when this
 * returns. */
bool approval_run_started(struct approval_run *run, bool started);

#endif
