/* mcp/session: see session.h. */
#include "mcp/session.h"

#include "mcp/methods.h"
#include "mcp/tool.h"
#include "wire/json.h"

#include <string.h>

void session_init(struct session *s, struct server *server, struct peer *peer)
{
    *s = (struct session){.server = server, .peer = peer};
    list_init(&s->calls);
}

void session_fini(struct session *s)
{
    while (!list_empty(&s->calls))
        request_cancel(container_of(s->calls.next, struct request, node));
}

static struct request *first_waiting(struct session *s)
{
    list_each (it, &s->calls) {
        struct request *rq = container_of(it, struct request, node);
        if (rq->tool != NULL && rq->tool->hints & TOOL_WAITS)
            return rq;
    }
    return NULL;
}

void session_hang_up(struct session *s)
{
    /* From the front each time: ending a process may answer other calls. */
    for (struct request *rq; (rq = first_waiting(s)) != NULL;)
        request_cancel(rq);
}

static void send_buf(struct session *s, struct buf *message)
{
    s->peer->ops->send(s->peer, message);
    buf_fini(message);
}

void session_error(struct session *s, const struct rpc_id *id, const struct err *e)
{
    struct buf message = BUF_INIT;
    rpc_write_error(&message, id, e);
    send_buf(s, &message);
}

void session_reply(struct session *s, const struct rpc_id *id, const struct buf *json)
{
    struct buf message = BUF_INIT;
    rpc_write_result_head(&message, id);
    buf_put(&message, buf_bytes(json), json->len);
    buf_putc(&message, '}');
    send_buf(s, &message);
}

struct request *session_find(struct session *s, const struct rpc_id *id)
{
    list_each (it, &s->calls) {
        struct request *rq = container_of(it, struct request, node);
        if (rpc_id_equal(&rq->id, id))
            return rq;
    }
    return NULL;
}

void session_link(struct session *s, struct request *rq)
{
    list_append(&s->calls, &rq->node);
    s->n_calls++;
}

void session_unlink(struct session *s, struct request *rq)
{
    list_remove(&rq->node);
    s->n_calls--;
    s->coming -= rq->coming;
    s->peer->ops->ended(s->peer);
}

/* What a request must satisfy before its method is asked. */
static int admit(struct session *s, const struct rpc_message *m, const struct method *method,
                 struct err *e)
{
    if (session_find(s, &m->id) != NULL)
        return err_set(e, ERR_INVALID_REQUEST,
                       "id: %s is in flight already; every request needs an id of its own",
                       m->id.text);
    if (method == NULL)
        return err_set(e, ERR_METHOD_NOT_FOUND, "method not found: %.128s", m->method);
    if (method->needs_session && s->version == NULL)
        return err_set(e, ERR_INVALID_REQUEST, "%s: send initialize first", m->method);
    if (s->n_calls >= SESSION_CALLS_MAX)
        return err_set(e, ERR_RESOURCE_QUEUE_FULL,
                       "SESSION_CALLS_MAX (%u) calls are in flight; wait for answers first",
                       SESSION_CALLS_MAX);
    return 0;
}

static void handle(struct session *s, struct json_object *obj)
{
    struct rpc_message m;
    struct err e;
    if (rpc_read(obj, &m, &e) < 0) {
        session_error(s, &m.id, &e);
        return;
    }
    if (m.kind == RPC_RESPONSE) /* nothing is asked of clients yet, so nothing can be answered */
        return;
    const struct method *method = method_by_name(m.method, m.kind);
    if (m.kind == RPC_NOTIFICATION) {
        if (method != NULL)
            method->run(s, &m, obj);
        return;
    }
    if (admit(s, &m, method, &e) < 0)
        session_error(s, &m.id, &e);
    else
        method->run(s, &m, obj);
}

/* Batches exist in one revision only, and only for receiving: each is answered by itself. */
static void handle_batch(struct session *s, struct json_object *array)
{
    static const struct rpc_id no_id;
    struct err e;
    size_t n = json_object_array_length(array);
    if (s->version == NULL || strcmp(s->version, METHODS_BATCH_VERSION) != 0 || n == 0) {
        err_set(&e, ERR_INVALID_REQUEST,
                "an array is no message here; send each message by itself (batches belong to "
                "revision " METHODS_BATCH_VERSION " and are not empty)");
        session_error(s, &no_id, &e);
        return;
    }
    for (size_t i = 0; i < n; i++)
        handle(s, json_object_array_get_idx(array, i));
}

void session_message(struct session *s, const char *text, size_t n)
{
    static const struct rpc_id no_id;
    struct err e;
    autojson *obj = NULL;
    if (json_parse(text, n, &obj, &e) < 0)
        session_error(s, &no_id, &e);
    else if (json_object_is_type(obj, json_type_array))
        handle_batch(s, obj);
    else
        handle(s, obj);
}
