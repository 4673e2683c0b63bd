/* mcp/patch_lane: see patch_lane.h. */
#include "mcp/patch_lane.h"

#include "mcp/approval_gate.h"
#include "mcp/recorder.h"
#include "mcp/tool.h"

#include <string.h>

/* What most answers need. */
#define PATCH_ANSWER_BYTES 4096u

/* The state of each tool that goes this way begins with it. */
static struct patch_lane *lane_of(struct request *rq)
{
    return rq->state;
}

void patch_lane_fini(struct patch_lane *x)
{
    patch_job_fini(&x->job);
}

void patch_lane_cancel(struct request *rq)
{
    struct patch_lane *x = lane_of(rq);
    if (x->waiting)
        lane_quit(x->lane, &x->turn);
    x->waiting = false;
}

/* ---- run ---- */

static void work(struct request *rq)
{
    struct patch_lane *x = lane_of(rq);
    patch_job_run(&x->job);
    if (x->job.status < 0)
        return;
    patch_job_write(&x->job, request_answer(rq));
    request_render(rq);
}

static void after(struct request *rq)
{
    struct lane *lane = lane_of(rq)->lane;
    struct recorder *recorder = rq->server->recorder;
    struct patch_job *job = &lane_of(rq)->job;
    if (job->status < 0)
        request_fail_operation(rq, &job->e, job->record.operation_id);
    else
        request_finish(rq);
    lane_leave(lane);
    recorder_kick(recorder);
}

static void start(struct request *rq)
{
    size_t coming = PATCH_ANSWER_BYTES;
    if (lane_of(rq)->job.request.check_only)
        coming += PATCH_DIFF_SHOWN_MAX;
    request_pool(rq, coming, work, after);
}

/* ---- lane ---- */

static void go(struct lane_wait *turn)
{
    struct patch_lane *x = container_of(turn, struct patch_lane, turn);
    x->waiting = false;
    start(x->owner);
}

static void enter(struct request *rq)
{
    struct patch_lane *x = lane_of(rq);
    x->turn.go = go;
    x->job.op.approval_id = approval_of(rq);
    x->lane = server_lane(rq->server, x->job.ws);
    switch (lane_enter(x->lane, &x->turn)) {
    case LANE_ENTERED:
        start(rq);
        break;
    case LANE_WAITS:
        x->waiting = true;
        break;
    case LANE_FULL:
        err_set(&x->job.e, ERR_RESOURCE_QUEUE_FULL,
                "LANE_WAITERS_MAX (%u) patches wait for workspace %s; send this one again when "
                "some have been answered",
                LANE_WAITERS_MAX, x->job.ws->id);
        request_fail(rq, &x->job.e);
        break;
    }
}

/* Nothing was taken, recorded or written yet: the one place where a call is held back. */
static void admit(struct request *rq)
{
    struct patch_lane *x = lane_of(rq);
    if (rq->session == NULL) { /* cancelled during a look-up; nobody reads this */
        err_set(&x->job.e, ERR_CANCELLED, "cancelled before it began");
        request_fail(rq, &x->job.e);
    } else if (x->admit != NULL) {
        x->admit(rq, enter);
    } else {
        enter(rq);
    }
}

/* ---- look up ---- */

static void look(struct request *rq)
{
    (void)patch_job_peek(&lane_of(rq)->job);
}

static void looked(struct request *rq)
{
    struct patch_lane *x = lane_of(rq);
    if (x->job.status < 0) {
        request_fail(rq, &x->job.e);
    } else if (x->job.status == 1) {
        patch_job_write(&x->job, request_answer(rq));
        request_finish(rq);
    } else {
        admit(rq);
    }
}

void patch_lane_run(struct request *rq, struct patch_lane *x)
{
    ensure(x == lane_of(rq));
    x->owner = rq;
    x->job.ledger = rq->server->ledger;
    x->job.journals = rq->server->journals;
    x->job.recorder = rq->server->recorder;
    x->job.aside = rq->server->aside;
    x->job.op.workspace_id = x->job.ws->id;
    if (x->job.op.key != NULL)
        request_pool(rq, 0, look, looked);
    else
        admit(rq);
}
