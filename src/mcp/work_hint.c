/* mcp/work_hint: see work_hint.h. */
#include "mcp/work_hint.h"

#include "core/works.h"
#include "mcp/tool.h"
#include "wire/json.h"

struct work_hint_state {
    char *workspace_id;
    struct work_hint hint;
    bool found;
    run_ticket ticket;
    request_fn done;
};

bool work_hint_is_due(const struct request *rq)
{
    return rq->hinted && rq->tool != NULL && !rq->bare && !(rq->tool->hints & TOOL_CONTENT) &&
           works_any_open(rq->server->ledger);
}

static bool look(const struct request *rq, const char *workspace_id, struct work_hint *ret)
{
    const char *work_id = json_str(json_get(rq->args, "work_id"));
    return works_hint(rq->server->ledger, workspace_id, work_id, ret, NULL) == 1;
}

static void look_work(struct request *rq)
{
    struct work_hint_state *x = rq->hint;
    x->found = look(rq, x->workspace_id, &x->hint);
}

static void look_after(struct request *rq)
{
    rq->hint->done(rq);
}

static void on_status(void *user, const struct run_status *status, const struct err *failure)
{
    struct request *rq = user;
    rq->hint->ticket = 0;
    if (failure != NULL) {
        rq->hint->done(rq);
        return;
    }
    rq->hint->workspace_id = mem_strdup(status->workspace_id);
    request_pool(rq, 0, look_work, look_after);
}

bool work_hint_begin(struct request *rq, request_fn done)
{
    const char *workspace_id = json_str(json_get(rq->args, "workspace_id"));
    const char *process_id = json_str(json_get(rq->args, "process_id"));
    if (rq->session == NULL || rq->hint != NULL || !work_hint_is_due(rq) ||
        (workspace_id == NULL && process_id == NULL))
        return false;
    rq->hint = mem_new(struct work_hint_state);
    rq->hint->done = done;
    if (workspace_id != NULL) {
        rq->hint->workspace_id = mem_strdup(workspace_id);
        request_pool(rq, 0, look_work, look_after);
        return true;
    }
    run_ticket ticket = runner_status(rq->server->runner, process_id, on_status, rq);
    if (ticket != 0) /* 0: answered already, and the call may be gone */
        rq->hint->ticket = ticket;
    return true;
}

static void write_hint(struct jsonw *w, const struct work_hint *h)
{
    jsonw_key(w, "coordination");
    jsonw_object(w);
    jsonw_kstr(w, "work_id", h->work_id);
    jsonw_kuint(w, "pending_user_items", h->pending_user_items);
    jsonw_kuint(w, "queue_revision", h->queue_revision);
    jsonw_object_end(w);
}

void work_hint_write(struct request *rq, bool on_pool)
{
    struct work_hint hint;
    const char *workspace_id = json_str(json_get(rq->args, "workspace_id"));
    if (rq->hint != NULL && rq->hint->found)
        write_hint(&rq->w, &rq->hint->hint);
    else if (on_pool && rq->hint == NULL && workspace_id != NULL && work_hint_is_due(rq) &&
             look(rq, workspace_id, &hint))
        write_hint(&rq->w, &hint);
}

void work_hint_cancel(struct request *rq)
{
    if (rq->hint != NULL)
        runner_cancel(rq->server->runner, rq->hint->ticket);
}

void work_hint_end(struct request *rq)
{
    struct work_hint_state *x = steal(rq->hint);
    if (x != NULL)
        free(x->workspace_id);
    free(x);
}
