/* mcp/session: see session.h. */
#include "mcp/session.h"

#include "mcp/ask.h"
#include "mcp/meta.h"
#include "mcp/methods.h"
#include "mcp/resource_watch.h"
#include "mcp/tool.h"
#include "wire/json.h"

#include <string.h>

static const struct rpc_id no_id;

void session_init(struct session *s, struct server *server, struct peer *peer)
{
    *s = (struct session){.server = server, .peer = peer, .log_level = NOTICE_INFO};
    s->serial = ++server->session_serial;
    list_init(&s->calls);
    list_init(&s->asks);
    list_append(&server->sessions, &s->node);
}

void session_fini(struct session *s)
{
    while (!list_empty(&s->calls))
        request_cancel(container_of(s->calls.next, struct request, node));
    ensure(list_empty(&s->asks));
    list_remove(&s->node);
    json_object_put(s->capabilities);
    bool watched = s->subscribed.len > 0; /* looking at what all others want costs their number */
    strv_fini(&s->subscribed);
    if (watched)
        resource_watch_check(s->server);
}

static struct request *first_waiting(struct session *s)
{
    list_each (it, &s->calls) {
        struct request *rq = container_of(it, struct request, node);
        if (rq->listener != NULL || (rq->tool != NULL && rq->tool->hints & TOOL_WAITS) ||
            ask_waits(s, rq))
            return rq;
    }
    return NULL;
}

/* A client that still reads is not left waiting for it. */
static void give_up(struct request *rq)
{
    struct err e;
    autobuf message = BUF_INIT;
    if (rq->listener == NULL) {
        err_set(&e, ERR_CANCELLED,
                "the server ends, or the client's input has; this call waited for something and "
                "was given up, and a command that it had started is ended");
        rpc_write_error(&message, &rq->id, &e);
        rq->peer->ops->send(rq->peer, &message);
    }
    request_cancel(rq);
}

void session_hang_up(struct session *s)
{
    /* From the front each time: ending a process may answer other calls. */
    for (struct request *rq; (rq = first_waiting(s)) != NULL;)
        give_up(rq);
}

static struct request *first_of(struct session *s, const struct peer *peer)
{
    list_each (it, &s->calls) {
        struct request *rq = container_of(it, struct request, node);
        if (rq->peer == peer)
            return rq;
    }
    return NULL;
}

bool session_has(struct session *s, const struct peer *peer)
{
    return first_of(s, peer) != NULL;
}

void session_drop(struct session *s, struct peer *peer)
{
    for (struct request *rq; (rq = first_of(s, peer)) != NULL;)
        request_cancel(rq);
}

void session_error(struct session *s, const struct rpc_id *id, const struct err *e)
{
    autobuf message = BUF_INIT;
    rpc_write_error(&message, id, e);
    s->peer->ops->send(s->peer, &message);
}

void inbound_error(const struct inbound *in, const struct err *e, const struct buf *data)
{
    autobuf message = BUF_INIT;
    rpc_write_error_data(&message, &in->m.id, e, data != NULL ? buf_bytes(data) : NULL,
                         data != NULL ? data->len : 0);
    in->peer->ops->send(in->peer, &message);
}

void inbound_reply(const struct inbound *in, const struct buf *json)
{
    autobuf message = BUF_INIT;
    rpc_write_result_head(&message, &in->m.id);
    buf_put(&message, buf_bytes(json), json->len);
    buf_putc(&message, '}');
    in->peer->ops->send(in->peer, &message);
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

/* The peer comes last: it may take the session with it. */
void session_unlink(struct session *s, struct request *rq)
{
    list_remove(&rq->node);
    s->n_calls--;
    s->coming -= rq->coming;
    rq->peer->ops->ended(rq->peer);
}

/* What a request must satisfy before its method is asked. */
static int admit(const struct inbound *in, const struct method *method, struct err *e)
{
    struct session *s = in->session;
    const struct rpc_message *m = &in->m;
    if (session_find(s, &m->id) != NULL)
        return err_set(e, ERR_INVALID_REQUEST,
                       "id: %s is in flight already; every request needs an id of its own",
                       m->id.text);
    if (method == NULL) {
        peer_status(in->peer, in->modern ? 404 : 200);
        return err_set(e, ERR_METHOD_NOT_FOUND, "method not found: %.128s", m->method);
    }
    if (!in->modern && method->needs_session && s->version == NULL)
        return err_set(e, ERR_INVALID_REQUEST, "%s: send initialize first", m->method);
    if (method->one_page && json_get(m->params, "cursor") != NULL)
        return err_set(e, ERR_INVALID_PARAMS,
                       "params.cursor: the list has one page; send no cursor");
    if (s->n_calls >= SESSION_CALLS_MAX)
        return err_set(e, ERR_RESOURCE_QUEUE_FULL,
                       "SESSION_CALLS_MAX (%u) calls are in flight; wait for answers first",
                       SESSION_CALLS_MAX);
    return 0;
}

static void take_request(struct inbound *in, const struct method *method)
{
    struct err e;
    autobuf data = BUF_INIT;
    if (in->modern && meta_check(in->m.params, &data, &e) < 0) {
        peer_status(in->peer, 400);
        inbound_error(in, &e, &data);
    } else if (admit(in, method, &e) < 0) {
        inbound_error(in, &e, NULL);
    } else {
        method->run(in);
    }
}

void session_take(struct session *s, struct peer *peer, struct json_object *message, bool modern)
{
    struct inbound in = {.session = s, .peer = peer, .message = message};
    struct err e;
    if (rpc_read(message, &in.m, &e) < 0) {
        peer_status(peer, 400);
        inbound_error(&in, &e, NULL);
        return;
    }
    if (in.m.kind == RPC_RESPONSE) {
        ask_answered(s, &in.m, message);
        return;
    }
    in.modern = modern || meta_version(in.m.params) != NULL;
    const struct method *method = method_find(s->server->provider, &in);
    if (in.m.kind == RPC_REQUEST)
        take_request(&in, method);
    else if (method != NULL)
        method->run(&in);
}

/* Batches exist in one revision only, and only for receiving: each is answered by itself. */
static void take_batch(struct session *s, struct json_object *array)
{
    struct err e;
    size_t n = json_object_array_length(array);
    if (!session_takes_batches(s) || n == 0) {
        err_set(&e, ERR_INVALID_REQUEST,
                "an array is no message here; send each message by itself (batches belong to "
                "revision " METHODS_BATCH_VERSION " and are not empty)");
        session_error(s, &no_id, &e);
        return;
    }
    for (size_t i = 0; i < n; i++)
        session_take(s, s->peer, json_object_array_get_idx(array, i), false);
}

bool session_takes_batches(const struct session *s)
{
    return s->version != NULL && strcmp(s->version, METHODS_BATCH_VERSION) == 0;
}

void session_message(struct session *s, const char *text, size_t n)
{
    struct err e;
    autojson *obj = NULL;
    if (json_parse_with(&s->server->parser, text, n, &obj, &e) < 0)
        session_error(s, &no_id, &e);
    else if (json_object_is_type(obj, json_type_array))
        take_batch(s, obj);
    else
        session_take(s, s->peer, obj, false);
}
