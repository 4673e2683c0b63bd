/* mcp/approval_run: see approval_run.h. */
#include "mcp/approval_run.h"

#include "base/str.h"
#include "mcp/session.h"
#include "wire/json.h"

#include <string.h>

/* The revision that the inner session speaks. */
#define INNER_VERSION "2025-11-25"

enum stage { CLAIMING, RUNNING, SETTLING };

struct approval_run {
    struct peer peer; /* keeps the answer of the call */
    struct session session;
    struct server *server;
    struct request *rq; /* NULL: nobody waits */
    approval_run_fn done;
    char *id;
    enum stage stage;
    bool handling; /* the call is being handed in */
    bool starting; /* it is being marked, on the pool */
    bool started;
    bool abort;
    bool release; /* it did not run, and may be resumed again */
    struct approval hold;
    struct buf answer; /* the message as it was sent */
    struct buf json;
    bool is_error;
    uv_work_t job;
    int status;
    struct err e;
};

static void run_free(struct approval_run *run)
{
    approval_fini(&run->hold);
    buf_fini(&run->answer);
    buf_fini(&run->json);
    free(run->id);
    free(run);
}

/* Tell whoever waits, if anybody does. */
static void deliver(struct approval_run *run, const struct err *failure)
{
    const struct approval_outcome outcome = {run->id, run->hold.tool, &run->json, run->is_error};
    struct request *rq = steal(run->rq);
    if (rq != NULL)
        run->done(rq, failure == NULL ? &outcome : NULL, failure);
    run_free(run);
}

static void set_error(struct approval_run *run, const struct err *e)
{
    struct jsonw w;
    buf_truncate(&run->json, 0);
    jsonw_init(&w, &run->json);
    jsonw_object(&w);
    jsonw_kstr(&w, "code", err_info(e->code)->name);
    jsonw_kstr(&w, "message", e->message);
    jsonw_kstr(&w, "approval_id", run->id);
    jsonw_object_end(&w);
    run->is_error = true;
}

/* ---- what came of it ---- */

/* Errors after which nothing has run and the same call may succeed later. */
static bool is_not_now(const char *code)
{
    static const enum err_code all[] = {ERR_WORKSPACE_BUSY, ERR_RESOURCE_QUEUE_FULL,
                                        ERR_PROCESS_LIMIT, ERR_WORKSPACE_PROCESS_LIMIT};
    for (size_t i = 0; code != NULL && i < ARRAY_LEN(all); i++) {
        if (str_eq(err_info(all[i])->name, code))
            return true;
    }
    return false;
}

static void take_error(struct approval_run *run, struct json_object *result)
{
    autojson *body = NULL;
    struct json_object *content = json_object_array_get_idx(json_get(result, "content"), 0);
    const char *text = json_str(json_get(content, "text"));
    ensure(text != NULL && json_parse(text, strlen(text), &body, NULL) == 0);
    buf_puts(&run->json, text);
    run->is_error = true;
    const char *code = json_str(json_get(body, "code"));
    bool unmarked = !run->started && str_eq(code, err_info(ERR_LEDGER_FAILED)->name);
    run->release = is_not_now(code) || unmarked;
}

/* The object that the tool answered with, or its error's body. */
static void take_answer(struct approval_run *run)
{
    struct err e;
    autojson *message = NULL;
    if (run->answer.len == 0)
        return;
    ensure(json_parse(buf_bytes(&run->answer), run->answer.len, &message, NULL) == 0);
    struct json_object *result = json_get(message, "result");
    struct json_object *structure = json_get(result, "structuredContent");
    if (structure != NULL) {
        buf_puts(&run->json,
                 json_object_to_json_string_ext(structure, JSON_C_TO_STRING_PLAIN |
                                                               JSON_C_TO_STRING_NOSLASHESCAPE));
    } else if (json_get(result, "content") != NULL) {
        take_error(run, result);
    } else {
        err_set(&e, ERR_INTERNAL, "the held call was not answered as a tool's: %.512s",
                buf_cstr(&run->answer));
        set_error(run, &e);
    }
}

static void settle_work(uv_work_t *job)
{
    struct approval_run *run = container_of(job, struct approval_run, job);
    struct ledger *l = run->server->ledger;
    take_answer(run);
    if (run->release)
        run->status = approvals_release(l, run->id, &run->e);
    else
        run->status = approvals_finish(l, run->id, buf_cstr(&run->json), run->is_error, &run->e);
}

static void settle_after(uv_work_t *job, int status)
{
    struct approval_run *run = container_of(job, struct approval_run, job);
    ensure(status == 0);
    deliver(run, run->status < 0 ? &run->e : NULL);
}

static void settle(struct approval_run *run)
{
    run->stage = SETTLING;
    session_fini(&run->session); /* a call that still runs is cancelled by it */
    ensure(uv_queue_work(run->server->loop, &run->job, settle_work, settle_after) == 0);
}

/* Nobody waits for the command: it is ended, and may have done anything before. */
static void give_up(struct approval_run *run)
{
    struct err e;
    buf_truncate(&run->answer, 0);
    run->release = !run->started;
    err_set(&e, ERR_CANCELLED,
            "the call that ran approval %s was cancelled, and the command was ended; how far it "
            "came is not known",
            run->id);
    set_error(run, &e);
    settle(run);
}

/* ---- the call ---- */

static void on_send(struct peer *p, struct buf *message)
{
    struct approval_run *run = container_of(p, struct approval_run, peer);
    buf_truncate(&run->answer, 0);
    buf_put(&run->answer, buf_bytes(message), message->len);
    buf_truncate(message, 0);
}

static void on_ended(struct peer *p)
{
    struct approval_run *run = container_of(p, struct approval_run, peer);
    if (run->stage == RUNNING && !run->handling)
        settle(run);
}

static const struct peer_ops inner_ops = {.send = on_send, .ended = on_ended};

static void start_call(struct approval_run *run)
{
    autobuf text = BUF_INIT;
    autojson *message = NULL;
    buf_printf(&text,
               "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":"
               "\"%s\",\"arguments\":",
               approval_tool_name(run->hold.tool));
    buf_puts(&text, run->hold.arguments);
    buf_puts(&text, "}}");
    ensure(json_parse(buf_bytes(&text), text.len, &message, NULL) == 0);
    run->stage = RUNNING;
    session_init(&run->session, run->server, &run->peer);
    run->session.version = INNER_VERSION;
    run->session.approved = run;
    run->session.patient = run->rq->session != NULL && run->rq->session->patient;
    run->handling = true;
    session_take(&run->session, &run->peer, message, false);
    run->handling = false;
    if (run->session.n_calls == 0)
        settle(run);
}

const char *approval_run_id(const struct approval_run *run)
{
    return run->id;
}

void approval_run_starting(struct approval_run *run)
{
    run->starting = true;
}

bool approval_run_started(struct approval_run *run, bool started)
{
    run->starting = false;
    run->started = started;
    if (!run->abort)
        return true;
    run->started = false; /* nothing ran, and nothing will */
    give_up(run);
    return false;
}

/* ---- from claim to end ---- */

static void claim_work(uv_work_t *job)
{
    struct approval_run *run = container_of(job, struct approval_run, job);
    run->status = approvals_claim(run->server->ledger, run->id, &run->hold, &run->e);
}

static void unclaim_work(uv_work_t *job)
{
    struct approval_run *run = container_of(job, struct approval_run, job);
    run->status = approvals_release(run->server->ledger, run->id, &run->e);
}

static void claim_after(uv_work_t *job, int status)
{
    struct approval_run *run = container_of(job, struct approval_run, job);
    ensure(status == 0);
    if (run->status == 0 && run->rq != NULL) {
        start_call(run);
    } else if (run->status == 0) {
        run->release = true;
        ensure(uv_queue_work(run->server->loop, &run->job, unclaim_work, settle_after) == 0);
    } else if (run->status < 0) {
        deliver(run, &run->e);
    } else {
        buf_puts(&run->json, run->hold.result);
        run->is_error = run->hold.result_is_error;
        deliver(run, NULL);
    }
}

struct approval_run *approval_run_new(struct request *rq, const char *approval_id,
                                      approval_run_fn done)
{
    struct approval_run *run = mem_new(struct approval_run);
    run->peer.ops = &inner_ops;
    run->server = rq->server;
    run->rq = rq;
    run->done = done;
    run->id = mem_strdup(approval_id);
    ensure(uv_queue_work(run->server->loop, &run->job, claim_work, claim_after) == 0);
    return run;
}

void approval_run_leave(struct approval_run *run)
{
    if (run == NULL || run->rq == NULL)
        return;
    run->rq = NULL;
    if (run->stage != RUNNING || run->hold.tool != APPROVAL_EXEC_COMMAND)
        return;
    run->abort = true;
    if (!run->starting && !run->handling)
        give_up(run);
}
