/* mcp/patch_lane: the way of a patch_job from the loop to its answer: key, admission, lane, pool.
 *
 * Theory. apply_patch and revert_operation both change files of one root, so both go this way:
 *
 *   look up     on the pool, and only with a key: what was done already is answered at once, and
 *               waits for nobody
 *   admit       on the loop: the request is new, its arguments are good, and it has taken nothing;
 *               here a caller may hold it or refuse it
 *   lane        one writer of a root at a time, in order of arrival
 *   run         on the pool (mcp/patch_job)
 *
 * A call that is cancelled before it runs leaves without a trace; one that runs goes on to its end,
 * since a half-applied patch helps nobody, and its key remembers what happened.
 *
 * Must not: be entered with arguments that were not checked against the workspace's policy.
 */
#ifndef CODESPACE_MCP_PATCH_LANE_H
#define CODESPACE_MCP_PATCH_LANE_H

#include "mcp/lane.h"
#include "mcp/patch_job.h"
#include "mcp/request.h"

struct patch_lane {
    struct patch_job job;
    struct request *owner;
    struct lane *lane;
    struct lane_wait turn;
    bool waiting;
    /* May this new request go on? Calls `go` when it may, now or later, and else answers the
     * request. NULL = it may. */
    void (*admit)(struct request *rq, request_fn go);
};

/* The job's ws, request and op are filled; what is filled here: ledger, journals, op.workspace_id.
 * `x` lies in the request's state. Ends in the request's answer. */
void patch_lane_run(struct request *rq, struct patch_lane *x);

/* The tool's cancel, and a part of its fini. */
void patch_lane_cancel(struct request *rq);
void patch_lane_fini(struct patch_lane *x);

#endif
