/* mcp/request: see request.h. */
#include "mcp/request.h"

#include "base/escape.h"
#include "mcp/approval_gate.h"
#include "mcp/ask.h"
#include "mcp/command_record.h"
#include "mcp/listen.h"
#include "mcp/meta.h"
#include "mcp/session.h"
#include "mcp/tool.h"
#include "mcp/work_hint.h"
#include "wire/json.h"

#include <string.h>

struct request *request_new(const struct inbound *in, const struct tool *tool)
{
    size_t state = tool != NULL ? tool->state_size : 0;
    struct request *rq = mem_zalloc(1, sizeof(*rq) + state);
    struct server *server = in->session->server;
    list_init(&rq->node);
    list_init(&rq->wait);
    rq->server = server;
    rq->session = in->session;
    rq->peer = in->peer;
    rq->modern = in->modern;
    rq->tool = tool;
    rq->id = in->m.id;
    rq->hinted = in->session->approved == NULL;
    rq->message = json_object_get(in->message);
    rq->state = rq + 1;
    rq->out = server->spare;
    server->spare = (struct buf)BUF_INIT;
    session_link(in->session, rq);
    return rq;
}

struct json_object *request_params(const struct request *rq)
{
    return json_get(rq->message, "params");
}

/* Storage goes back for the next call; what does not fit there is freed. */
static void give_back(struct buf *spare, struct buf *b)
{
    buf_reset(b, SERVER_SPARE_MAX);
    if (spare->data == NULL)
        *spare = *b;
    else
        buf_fini(b);
}

static void request_free(struct request *rq)
{
    struct server *server = rq->server;
    struct session *s = rq->session;
    if (rq->tool != NULL && rq->tool->fini != NULL)
        rq->tool->fini(rq);
    notice_stop(rq);
    listen_end(rq);
    approval_gate_end(rq);
    command_claim_end(rq);
    work_hint_end(rq);
    if (s != NULL)
        ask_drop(s, rq);
    json_object_put(rq->message);
    give_back(&server->spare, &rq->out);
    if (s != NULL)
        session_unlink(s, rq);
    free(rq);
}

bool request_given(const struct request *rq, const char *argument)
{
    return json_get(rq->args, argument) != NULL;
}

/* A tool of ours answers with one object, shown twice; others write their result themselves. */
static bool has_structure(const struct request *rq)
{
    return rq->tool != NULL && !rq->bare && !(rq->tool->hints & TOOL_CONTENT);
}

static void put_head(struct request *rq)
{
    static const char head[] = "{\"structuredContent\":";
    struct buf *m = &rq->out;
    rpc_write_result_head(m, &rq->id);
    if (has_structure(rq))
        buf_put(m, head, sizeof(head) - 1);
    rq->body = m->len;
}

struct jsonw *request_answer(struct request *rq)
{
    struct buf *m = &rq->out;
    put_head(rq);
    jsonw_init(&rq->w, m);
    jsonw_object(&rq->w);
    return &rq->w;
}

/* Append the bytes [from, from + n) of `m`, JSON text of ours, as the inside of a JSON string. Room
 * for the worst case is taken first, so the bytes that are read do not move. */
static void quote_own(struct buf *m, size_t from, size_t n)
{
    char *start = buf_reserve(m, ESCAPE_JSON_ROOM(n));
    buf_commit(m, (size_t)(escape_json(start, buf_bytes(m) + from, n) - start));
}

/* The same JSON once as structure and once as text: some clients show only the one, some only the
 * other. */
static void put_text(struct request *rq)
{
    size_t n = rq->out.len - rq->body;
    buf_puts(&rq->out, ",\"content\":[{\"type\":\"text\",\"text\":\"");
    quote_own(&rq->out, rq->body, n);
    buf_puts(&rq->out, "\"}]}");
}

/* Before the last brace of `m`, an object that ends there. */
static void put_tail(const struct request *rq, struct buf *m, const char *result_type)
{
    if (!rq->modern)
        return;
    buf_truncate(m, m->len - 1);
    bool comma = buf_bytes(m)[m->len - 1] != '{';
    meta_write_tail(m, comma, result_type, !rq->cached ? -1 : rq->changes ? 0 : META_TTL_MS);
    buf_putc(m, '}');
}

static void put_rest(struct request *rq, const char *result_type)
{
    if (has_structure(rq))
        put_text(rq);
    put_tail(rq, &rq->out, result_type);
    buf_putc(&rq->out, '}');
    rq->rendered = true;
}

static void render_as(struct request *rq, const char *result_type)
{
    jsonw_object_end(&rq->w);
    put_rest(rq, result_type);
}

static void render_now(struct request *rq)
{
    work_hint_write(rq, rq->in_pool);
    render_as(rq, "complete");
}

/* On the loop a hint cannot be looked up: then it is left to request_finish(). */
void request_render(struct request *rq)
{
    if (rq->in_pool || !work_hint_is_due(rq))
        render_now(rq);
}

static void deliver(struct request *rq)
{
    if (rq->session != NULL)
        rq->peer->ops->send(rq->peer, &rq->out);
    request_free(rq);
}

void request_finish_as(struct request *rq, const char *result_type)
{
    render_as(rq, result_type);
    deliver(rq);
}

void request_error(struct request *rq, const struct err *e, const struct buf *data)
{
    buf_truncate(&rq->out, 0);
    rpc_write_error_data(&rq->out, &rq->id, e, data != NULL ? buf_bytes(data) : NULL,
                         data != NULL ? data->len : 0);
    deliver(rq);
}

static void finish_now(struct request *rq)
{
    if (!rq->rendered)
        render_now(rq);
    deliver(rq);
}

void request_finish(struct request *rq)
{
    if (rq->rendered || !work_hint_begin(rq, finish_now))
        finish_now(rq);
}

void request_finish_json(struct request *rq, const struct buf *object)
{
    put_head(rq);
    buf_put(&rq->out, buf_bytes(object), object->len);
    put_rest(rq, "complete");
    deliver(rq);
}

void request_finish_text(struct request *rq, const struct buf *json)
{
    rpc_write_result_head(&rq->out, &rq->id);
    buf_put(&rq->out, buf_bytes(json), json->len);
    put_tail(rq, &rq->out, "complete");
    buf_putc(&rq->out, '}');
    deliver(rq);
}

void request_fail(struct request *rq, const struct err *e)
{
    request_fail_operation(rq, e, NULL);
}

/* For whoever watches a client at work: what it was told. */
static void log_refusal(struct request *rq, const struct err *e)
{
    autobuf line = BUF_INIT;
    if (rq->session == NULL)
        return;
    buf_printf(&line, "%s: %s: %s", rq->tool->name, err_info(e->code)->name, e->message);
    notice_log(rq, NOTICE_DEBUG, buf_cstr(&line));
}

/* An error has no structure, since it does not fit the tool's output schema. */
void request_fail_operation(struct request *rq, const struct err *e, const char *operation_id)
{
    autobuf text = BUF_INIT;
    struct jsonw w;
    jsonw_init(&w, &text);
    jsonw_object(&w);
    jsonw_kstr(&w, "code", err_info(e->code)->name);
    jsonw_kstr(&w, "message", e->message);
    if (operation_id != NULL)
        jsonw_kstr(&w, "operation_id", operation_id);
    jsonw_object_end(&w);
    log_refusal(rq, e);
    request_fail_body(rq, &text);
}

void request_fail_body(struct request *rq, const struct buf *body)
{
    ensure(rq->tool != NULL && rq->out.len == 0);
    rpc_write_result_head(&rq->out, &rq->id);
    buf_puts(&rq->out, "{\"content\":[{\"type\":\"text\",\"text\":\"");
    jsonw_escape(&rq->out, buf_bytes(body), body->len);
    buf_puts(&rq->out, "\"}],\"isError\":true}");
    put_tail(rq, &rq->out, "complete");
    buf_putc(&rq->out, '}');
    deliver(rq);
}

static void job_work(uv_work_t *job)
{
    struct request *rq = container_of(job, struct request, job);
    rq->work(rq);
}

static void job_after(uv_work_t *job, int status)
{
    struct request *rq = container_of(job, struct request, job);
    ensure(status == 0); /* nobody cancels a job: a patch that began must end */
    rq->in_pool = false;
    rq->after(rq);
}

void request_pool(struct request *rq, size_t coming, request_fn work, request_fn after)
{
    if (rq->session != NULL) {
        rq->coming = coming;
        rq->session->coming += coming;
    }
    rq->work = work;
    rq->after = after;
    rq->in_pool = true;
    ensure(uv_queue_work(rq->server->loop, &rq->job, job_work, job_after) == 0);
}

void request_when_probed(struct request *rq, request_fn resume)
{
    if (rq->server->facts.probed) {
        resume(rq);
        return;
    }
    rq->resume = resume;
    list_append(&rq->server->waiting, &rq->wait);
}

void request_resume(struct request *rq)
{
    list_remove(&rq->wait);
    rq->resume(rq);
}

void request_cancel(struct request *rq)
{
    ask_drop(rq->session, rq);
    notice_stop(rq);
    session_unlink(rq->session, rq);
    rq->session = NULL;
    rq->peer = NULL;
    atomic_store(&rq->stop, true);
    work_hint_cancel(rq);
    if (!list_empty(&rq->wait))
        list_remove(&rq->wait);
    else if (rq->tool != NULL && rq->tool->cancel != NULL)
        rq->tool->cancel(rq);
    if (!rq->in_pool)
        request_free(rq);
}
