/* mcp/operator_call: see operator_call.h. */
#include "mcp/operator_call.h"

#include <inttypes.h>
#include <string.h>

#define JSON_TYPE "Content-Type: application/json\r\nCache-Control: no-store\r\n"

static void call_free(struct http_operator_call *x)
{
    list_remove(&x->node);
    x->http->n_operator_calls--;
    if (x->conn != NULL)
        x->conn->operator_call = NULL;
    operator_body_fini(&x->body);
    buf_fini(&x->out);
    free(x->workspace_id);
    free(x->link);
    free(x);
}

/* ---- what is written ---- */

void operator_say(struct http_conn *c, int status, const char *more, enum err_code code,
                  const char *text)
{
    autobuf body = BUF_INIT;
    autofree char *all = mem_printf(JSON_TYPE "%s", more);
    struct jsonw w;
    jsonw_init(&w, &body);
    jsonw_object(&w);
    jsonw_kstr(&w, "code", err_info(code)->name);
    jsonw_kstr(&w, "message", text);
    jsonw_object_end(&w);
    http_conn_answer(c, status, all, &body);
}

void operator_call_link(struct http_operator_call *x, const char *path, const char *name,
                        uint64_t value, uint64_t limit)
{
    const struct operator_query *q = &x->query;
    x->link = mem_printf("Link: <%s?%s=%" PRIu64 "&limit=%" PRIu64 "%s%s%s>; rel=\"next\"\r\n",
                         path, name, value, limit, q->all ? "&all=1" : "",
                         q->workspace_id[0] != '\0' ? "&workspace_id=" : "", q->workspace_id);
}

const char *operator_call_workspace(const struct http_operator_call *x)
{
    return x->query.workspace_id[0] != '\0' ? x->query.workspace_id : NULL;
}

/* ---- from request to answer ---- */

/* What the inbox's clients expect of this one, other than elsewhere. */
static int status_of(const struct err *e)
{
    return e->code == ERR_INTENT_NOT_EDITABLE ? 400 : err_info(e->code)->http_status;
}

void operator_call_answer(struct http_operator_call *x)
{
    struct http_conn *c = x->conn;
    if (c == NULL) {
        call_free(x);
        return;
    }
    c->operator_call = NULL;
    x->conn = NULL;
    if (x->status < 0) {
        operator_say(c, status_of(&x->e), "", x->e.code, x->e.message);
    } else {
        autofree char *head = mem_printf(JSON_TYPE "%s", x->link != NULL ? x->link : "");
        http_conn_answer(c, x->route->status, head, &x->out);
    }
    call_free(x);
    http_conn_next(c);
}

static void step_work(uv_work_t *job)
{
    struct http_operator_call *x = container_of(job, struct http_operator_call, job);
    x->status = x->step(x);
}

static void step_after(uv_work_t *job, int status)
{
    struct http_operator_call *x = container_of(job, struct http_operator_call, job);
    struct http_server *h = x->http;
    bool more = x->status == 0 && x->route->then != NULL && x->step == x->route->work;
    ensure(status == 0);
    h->handles--;
    if (more && !h->over)
        x->route->then(x);
    else
        operator_call_answer(x);
    http_server_less(h);
}

void operator_call_step(struct http_operator_call *x, operator_fn step)
{
    x->step = step;
    x->http->handles++;
    ensure(uv_queue_work(x->http->server->loop, &x->job, step_work, step_after) == 0);
}

static struct http_operator_call *call_new(struct http_conn *c)
{
    struct http_operator_call *x = mem_new(struct http_operator_call);
    x->conn = c;
    x->http = c->http;
    x->ledger = c->http->server->ledger;
    c->operator_call = x;
    list_append(&c->http->operator_calls, &x->node);
    c->http->n_operator_calls++;
    jsonw_init(&x->w, &x->out);
    return x;
}

static void begin(struct http_operator_call *x)
{
    const struct operator_route *route = x->route;
    if (x->status == 0 && route->here)
        x->status = route->work(x);
    if (x->status < 0)
        operator_call_answer(x);
    else if (!route->here)
        operator_call_step(x, route->work);
    else if (route->then != NULL)
        route->then(x);
    else
        operator_call_answer(x);
}

void operator_call_start(struct http_conn *c, const struct operator_route *route, const char *id,
                         const char *query, size_t query_len, const char *body, size_t n)
{
    if (c->http->n_operator_calls >= HTTP_OPERATOR_CALLS_MAX) {
        operator_say(c, 429, "", ERR_RESOURCE_QUEUE_FULL,
                     "HTTP_OPERATOR_CALLS_MAX (64) of these calls are being worked on; try again");
        return;
    }
    struct http_operator_call *x = call_new(c);
    x->route = route;
    memcpy(x->id, id, strlen(id) + 1);
    x->status = operator_query_read(&x->query, query, query_len, &x->e);
    if (x->status == 0)
        x->status = operator_body_read(&x->body, route->in, route->n_in, body, n, &x->e);
    begin(x);
}

void operator_call_lost(struct http_operator_call *x)
{
    x->conn = NULL;
}

void operator_call_drop_all(struct http_server *h)
{
    list_each (it, &h->operator_calls) {
        struct http_operator_call *x = container_of(it, struct http_operator_call, node);
        if (x->ticket == 0)
            continue; /* the pool has it */
        runner_cancel(h->server->runner, x->ticket);
        call_free(x);
    }
}
