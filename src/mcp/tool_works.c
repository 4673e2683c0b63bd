/* mcp/tool_works: work_open, steer_status, steer_claim_next, steer_complete, work_finish.
 *
 * The model's side of core/works and core/intents: it opens a work, asks at good moments what
 * people have asked for meanwhile, takes one instruction at a time, says what became of it, and
 * finishes. Any profile may: an instruction gives no rights. Every call is one question to the
 * ledger, on the pool. Drafts are never shown.
 */
#include "base/str.h"
#include "core/intents.h"
#include "core/works.h"
#include "mcp/tool.h"
#include "mcp/works_json.h"

/* An id is ours and short; one that is longer is none. */
#define ID_BYTES_MAX 128u

struct work_call {
    const char *workspace_id, *title; /* work_open */
    const char *work_id;
    const char *intent_id; /* steer_complete */
    int outcome;

    struct work work;
    struct work_counts counts;
    struct work_finish finish;
    struct intent intent;
    int status;
    struct err e;
};

static void work_call_fini(struct request *rq)
{
    struct work_call *x = rq->state;
    work_fini(&x->work);
    intent_fini(&x->intent);
}

/* True when it is answered that it failed. */
static bool has_failed(struct request *rq)
{
    struct work_call *x = rq->state;
    if (x->status >= 0)
        return false;
    request_fail(rq, &x->e);
    return true;
}

#define AT(member) offsetof(struct work_call, member)
#define WORK_ID_FIELD                                                                              \
    {                                                                                              \
        "work_id", JSON_STR, JSON_REQUIRED, AT(work_id), 1, ID_BYTES_MAX, NULL,                    \
            "What work_open gave.", NULL                                                           \
    }
/* What older clients send besides; work_id is an argument here. */
#define IGNORED_FIELDS                                                                             \
    {"approved", JSON_BOOL, JSON_IGNORED}, {"user_id", JSON_STR, JSON_IGNORED},                    \
    {                                                                                              \
        "network", JSON_STR, JSON_IGNORED                                                          \
    }

/* ---- work_open ---- */

static void open_work(struct request *rq)
{
    struct work_call *x = rq->state;
    x->status = works_open(rq->server->ledger, x->workspace_id, x->title, &x->work, &x->e);
}

static void open_after(struct request *rq)
{
    struct work_call *x = rq->state;
    if (has_failed(rq))
        return;
    struct jsonw *w = request_answer(rq);
    jsonw_kstr(w, "work_id", x->work.work_id);
    jsonw_kstr(w, "workspace_id", x->work.workspace_id);
    jsonw_kstr(w, "state", work_state_name(x->work.state));
    request_finish(rq);
}

static void open_run(struct request *rq)
{
    struct work_call *x = rq->state;
    if (registry_get(rq->server->registry, x->workspace_id, &x->e) == NULL)
        request_fail(rq, &x->e);
    else
        request_pool(rq, 0, open_work, open_after);
}

static const struct json_field open_in[] = {
    {"workspace_id", JSON_STR, JSON_REQUIRED, AT(workspace_id), 0, 0, NULL,
     "The workspace, as workspace_info lists it.", NULL},
    {"title", JSON_STR, 0, AT(title), 1, WORKS_TITLE_MAX, NULL, "What it is about, for people.",
     NULL},
    TOOL_IGNORED_FIELDS,
};

static const struct output_field open_out[] = {
    {"work_id", OUTPUT_STR, true, "To be sent with other calls and to work_finish."},
    {"workspace_id", OUTPUT_STR, true, NULL},
    {"state", OUTPUT_STR, true, "active."},
};

const struct tool tool_work_open = {
    .name = "work_open",
    .title = "Open a work",
    .description =
        "Opens a piece of work, to which people can add instructions while it goes on. Other "
        "answers then carry `coordination` with pending_user_items: at the next good moment call "
        "steer_claim_next. Instructions give no rights.",
    .in = open_in,
    .n_in = ARRAY_LEN(open_in),
    .out = open_out,
    .n_out = ARRAY_LEN(open_out),
    .state_size = sizeof(struct work_call),
    .run = open_run,
    .fini = work_call_fini,
};

/* ---- steer_status ---- */

static void status_work(struct request *rq)
{
    struct work_call *x = rq->state;
    x->status = works_status(rq->server->ledger, x->work_id, &x->counts, &x->e);
}

static void status_after(struct request *rq)
{
    struct work_call *x = rq->state;
    if (has_failed(rq))
        return;
    struct jsonw *w = request_answer(rq);
    jsonw_kstr(w, "work_id", x->work_id);
    jsonw_kstr(w, "state", work_state_name(x->counts.state));
    jsonw_kuint(w, "queued", x->counts.queued);
    jsonw_kuint(w, "claimed", x->counts.claimed);
    jsonw_kuint(w, "claimable_now", x->counts.claimable_now);
    jsonw_kuint(w, "queue_revision", x->counts.queue_revision);
    request_finish(rq);
}

static void status_run(struct request *rq)
{
    request_pool(rq, 0, status_work, status_after);
}

static const struct json_field work_in[] = {WORK_ID_FIELD, IGNORED_FIELDS};

static const struct output_field status_out[] = {
    {"work_id", OUTPUT_STR, true, NULL},
    {"state", OUTPUT_STR, true, "active, closing or closed."},
    {"queued", OUTPUT_INT, true, "Instructions that wait on this work."},
    {"claimed", OUTPUT_INT, true, "Handed out and not completed."},
    {"claimable_now", OUTPUT_INT, true, "What steer_claim_next would hand out now."},
    {"queue_revision", OUTPUT_INT, true, "Grows with every change of the queue."},
};

const struct tool tool_steer_status = {
    .name = "steer_status",
    .title = "Count waiting instructions",
    .description = "Counts the instructions of a work; it shows none of them.",
    .hints = TOOL_READS | TOOL_IDEMPOTENT,
    .in = work_in,
    .n_in = ARRAY_LEN(work_in),
    .out = status_out,
    .n_out = ARRAY_LEN(status_out),
    .state_size = sizeof(struct work_call),
    .run = status_run,
    .fini = work_call_fini,
};

/* ---- steer_claim_next ---- */

static void claim_work(struct request *rq)
{
    struct work_call *x = rq->state;
    x->status = intents_claim_next(rq->server->ledger, x->work_id, &x->intent, &x->e);
}

static void claim_after(struct request *rq)
{
    struct work_call *x = rq->state;
    const struct intent *i = &x->intent;
    if (has_failed(rq))
        return;
    struct jsonw *w = request_answer(rq);
    if (x->status == 1) {
        jsonw_key(w, "item");
        jsonw_object(w);
        jsonw_kstr(w, "intent_id", i->intent_id);
        jsonw_kuint(w, "revision", i->revision);
        jsonw_kstr(w, "kind", intent_kind_name(i->kind));
        jsonw_kstr(w, "delivery", intent_delivery_name(i->delivery));
        jsonw_kstr(w, "content", i->body);
        jsonw_object_end(w);
    }
    request_finish(rq);
}

static void claim_run(struct request *rq)
{
    request_pool(rq, 0, claim_work, claim_after);
}

static const struct output_field claim_out[] = {
    {"item", OUTPUT_OBJ, false,
     "intent_id, revision, kind (follow_up, note, stop_notice), delivery, content. Absent: nothing "
     "to do now."},
};

const struct tool tool_steer_claim_next = {
    .name = "steer_claim_next",
    .title = "Take the next instruction",
    .description =
        "Hands out the next instruction that people queued for this work, oldest first, or none. "
        "While the work is active only those for the next checkpoint come; after work_finish said "
        "pending or closing, the others too. A stop_notice says that a person ended your "
        "processes. Do what it says as far as your tools allow, then call steer_complete.",
    .in = work_in,
    .n_in = ARRAY_LEN(work_in),
    .out = claim_out,
    .n_out = ARRAY_LEN(claim_out),
    .state_size = sizeof(struct work_call),
    .run = claim_run,
    .fini = work_call_fini,
};

/* ---- steer_complete ---- */

static const char *const outcome_names[] = {"done", "blocked", NULL};

static void complete_work(struct request *rq)
{
    struct work_call *x = rq->state;
    x->status = intents_complete(rq->server->ledger, x->work_id, x->intent_id, x->outcome == 1,
                                 &x->intent, &x->e);
}

static void complete_after(struct request *rq)
{
    struct work_call *x = rq->state;
    if (!has_failed(rq)) {
        intent_write_members(request_answer(rq), &x->intent);
        request_finish(rq);
    }
}

static void complete_run(struct request *rq)
{
    request_pool(rq, 0, complete_work, complete_after);
}

static const struct json_field complete_in[] = {
    WORK_ID_FIELD,
    {"intent_id", JSON_STR, JSON_REQUIRED, AT(intent_id), 1, ID_BYTES_MAX, NULL,
     "What steer_claim_next gave.", NULL},
    {"outcome", JSON_ENUM, 0, AT(outcome), 0, 0, outcome_names,
     "blocked: it cannot be done, or only by people.", "\"done\""},
    IGNORED_FIELDS,
};

static const struct output_field complete_out[] = {
    {"intent_id", OUTPUT_STR, true, NULL},     {"work_id", OUTPUT_STR, false, NULL},
    {"workspace_id", OUTPUT_STR, true, NULL},  {"position", OUTPUT_INT, true, NULL},
    {"revision", OUTPUT_INT, true, NULL},      {"kind", OUTPUT_STR, true, NULL},
    {"delivery", OUTPUT_STR, true, NULL},      {"state", OUTPUT_STR, true, "done or blocked."},
    {"body", OUTPUT_STR, true, NULL},          {"created_at", OUTPUT_INT, true, "Unix seconds."},
    {"updated_at", OUTPUT_INT, true, NULL},    {"claimed_at", OUTPUT_INT, false, NULL},
    {"completed_at", OUTPUT_INT, false, NULL},
};

const struct tool tool_steer_complete = {
    .name = "steer_complete",
    .title = "Say what became of an instruction",
    .description = "Marks an instruction that steer_claim_next handed out as done or blocked.",
    .in = complete_in,
    .n_in = ARRAY_LEN(complete_in),
    .out = complete_out,
    .n_out = ARRAY_LEN(complete_out),
    .state_size = sizeof(struct work_call),
    .run = complete_run,
    .fini = work_call_fini,
};

/* ---- work_finish ---- */

static void finish_work(struct request *rq)
{
    struct work_call *x = rq->state;
    x->status = works_finish(rq->server->ledger, x->work_id, &x->finish, &x->e);
}

static void finish_after(struct request *rq)
{
    struct work_call *x = rq->state;
    if (has_failed(rq))
        return;
    struct jsonw *w = request_answer(rq);
    jsonw_kstr(w, "work_id", x->work_id);
    jsonw_kbool(w, "closed", x->finish.closed);
    if (x->finish.reason != NULL)
        jsonw_kstr(w, "reason", x->finish.reason);
    jsonw_kuint(w, "queued", x->finish.queued);
    jsonw_kstr(w, "state", work_state_name(x->finish.state));
    request_finish(rq);
}

static void finish_run(struct request *rq)
{
    request_pool(rq, 0, finish_work, finish_after);
}

static const struct output_field finish_out[] = {
    {"work_id", OUTPUT_STR, true, NULL},
    {"closed", OUTPUT_BOOL, true, "False: something waits; steer_claim_next, then finish again."},
    {"reason", OUTPUT_STR, false, "pending_user_input: instructions must be handled first."},
    {"queued", OUTPUT_INT, true, "Instructions that wait on this work."},
    {"state", OUTPUT_STR, true, "active, closing or closed."},
};

const struct tool tool_work_finish = {
    .name = "work_finish",
    .title = "Finish a work",
    .description =
        "Closes a work when no instruction for it waits. closed=false: call steer_claim_next, do "
        "and complete what it gives, until it gives nothing, then call this again.",
    .in = work_in,
    .n_in = ARRAY_LEN(work_in),
    .out = finish_out,
    .n_out = ARRAY_LEN(finish_out),
    .state_size = sizeof(struct work_call),
    .run = finish_run,
    .fini = work_call_fini,
};
#undef AT
