/* mcp/http_call: a POST that is being answered.
 *
 * The answer is one JSON object, unless there is something to say before it (progress, a log line,
 * a question, an acknowledgement): then an event stream begins at that moment, if the client takes
 * one. A client that sends a progress token with every call gets a stream only for those that last.
 *
 * A call is over when no request of it is in flight any more. That may be without an answer, when
 * it was cancelled; HTTP wants one all the same, which is then a stream without events.
 */
#include "mcp/http.h"
#include "mcp/meta.h"
#include "wire/json.h"

#include <inttypes.h>
#include <string.h>

/* The revision that begins a stream with an id, so that a client can come back at once. */
#define PRIMING_VERSION "2025-11-25"

struct session *http_call_session(struct http_call *x)
{
    return x->session != NULL ? &x->session->session : &x->own;
}

static void new_session_header(const struct http_call *x, struct buf *more)
{
    /* Refused, it opened none. */
    if (x->announces && x->session->session.version != NULL)
        buf_printf(more, "Mcp-Session-Id: %s\r\n", x->session->id);
}

static bool primes(const struct http_session *s)
{
    const char *version = s->session.version;
    return version != NULL && strcmp(version, PRIMING_VERSION) >= 0;
}

static void prime(struct http_call *x)
{
    autobuf event = BUF_INIT;
    buf_printf(&event, "id: %" PRIu32 "-0\ndata: \n\n", x->stream);
    http_conn_put(x->conn, buf_bytes(&event), event.len);
}

static bool begin_stream(struct http_call *x)
{
    autobuf more = BUF_INIT;
    struct http_session *s = x->session;
    if (x->streaming)
        return true;
    if (!x->may_stream || x->answered || x->conn == NULL ||
        (s != NULL && s->n_streams >= HTTP_STREAMS_MAX))
        return false;
    x->streaming = true;
    new_session_header(x, &more);
    http_conn_stream(x->conn, buf_cstr(&more));
    if (s != NULL) {
        s->n_streams++;
        x->stream = ++s->streams;
        if (primes(s))
            prime(x);
    }
    return true;
}

static void put_event(struct http_call *x, const struct buf *message)
{
    if (x->session != NULL) {
        http_session_event(x->session, x->conn, x->stream, ++x->seq, message);
        return;
    }
    if (x->conn == NULL)
        return;
    autobuf event = BUF_INIT;
    buf_puts(&event, "event: message\ndata: ");
    buf_put(&event, buf_bytes(message), message->len);
    buf_puts(&event, "\n\n");
    http_conn_put(x->conn, buf_bytes(&event), event.len);
}

static void answer(struct http_call *x, struct buf *message)
{
    autobuf more = BUF_INIT;
    if (x->conn == NULL)
        return;
    new_session_header(x, &more);
    buf_puts(&more, "Content-Type: application/json\r\n");
    http_conn_answer(x->conn, x->status != 0 ? x->status : 200, buf_cstr(&more), message);
}

static void call_send(struct peer *p, struct buf *message)
{
    struct http_call *x = container_of(p, struct http_call, peer);
    if (x->streaming)
        put_event(x, message);
    else if (!x->answered)
        answer(x, message);
    x->answered = true;
    buf_reset(message, message->cap);
}

static bool call_notify(struct peer *p, struct buf *message)
{
    struct http_call *x = container_of(p, struct http_call, peer);
    bool full = x->conn != NULL && x->conn->out.len > HTTP_OUT_MAX;
    if (full || !begin_stream(x))
        return false;
    put_event(x, message);
    return true;
}

static void call_status(struct peer *p, int http_status)
{
    struct http_call *x = container_of(p, struct http_call, peer);
    x->status = http_status;
}

/* Over, when nothing of it is in flight. */
static void finish(struct http_call *x)
{
    struct http_server *h = x->http;
    struct http_conn *c = x->conn;
    autobuf none = BUF_INIT;
    if (x->handling || session_has(http_call_session(x), &x->peer))
        return;
    if (c != NULL) {
        c->call = NULL;
        if (x->streaming)
            http_conn_stream_end(c);
        else if (!x->answered)
            http_conn_answer(c, 200, "Content-Type: text/event-stream\r\n", &none);
    }
    if (x->stream != 0)
        x->session->n_streams--;
    if (x->session == NULL)
        session_fini(&x->own);
    list_remove(&x->node);
    h->bodies -= x->held;
    free(x);
    if (c != NULL)
        http_conn_next(c);
    http_server_less(h);
}

static void call_ended(struct peer *p)
{
    finish(container_of(p, struct http_call, peer));
}

/* Only a stream that can be taken up again is let go. */
static void call_part(struct peer *p, unsigned retry_ms)
{
    struct http_call *x = container_of(p, struct http_call, peer);
    struct http_conn *c = x->conn;
    autobuf text = BUF_INIT;
    if (x->session == NULL || !primes(x->session) || c == NULL || !begin_stream(x))
        return;
    buf_printf(&text, "retry: %u\n\n", retry_ms);
    http_conn_put(c, buf_bytes(&text), text.len);
    x->conn = NULL;
    c->call = NULL;
    http_conn_stream_end(c);
    http_conn_next(c);
}

static const struct peer_ops call_ops = {.send = call_send,
                                         .ended = call_ended,
                                         .notify = call_notify,
                                         .status = call_status,
                                         .part = call_part};

static void hand_in(struct http_call *x, struct json_object *message)
{
    struct session *s = http_call_session(x);
    if (!json_object_is_type(message, json_type_array)) {
        session_take(s, &x->peer, message, x->session == NULL);
        return;
    }
    /* Several answers go into one stream. */
    begin_stream(x);
    for (size_t i = 0; i < json_object_array_length(message); i++)
        session_take(s, &x->peer, json_object_array_get_idx(message, i), false);
}

void http_call_start(struct http_conn *c, struct http_session *s, struct json_object *message,
                     bool may_stream, bool announces)
{
    struct http_call *x = mem_new(struct http_call);
    x->peer.ops = &call_ops;
    x->conn = c;
    x->session = s;
    x->http = c->http;
    x->may_stream = may_stream;
    x->announces = announces;
    c->call = x;
    list_append(&c->http->calls, &x->node);
    if (s == NULL) {
        session_init(&x->own, c->http->server, &x->peer);
        x->own.principal = c->principal;
        x->own.remote = true;
    }
    x->handling = true;
    hand_in(x, message);
    x->handling = false;
    finish(x);
}

void http_call_hold(struct http_call *x, size_t bytes)
{
    x->held += bytes; /* once more when another connection takes it up */
    x->http->bodies += bytes;
}

/* A modern client takes its call back by closing; a legacy one may come back for the answer. */
void http_call_lost(struct http_call *x)
{
    x->conn->call = NULL;
    x->conn = NULL;
    if (x->session != NULL)
        return;
    http_call_drop(x);
}

void http_call_drop(struct http_call *x)
{
    if (x->handling)
        return; /* it is being handed in, and looked at afterwards */
    x->handling = true;
    session_drop(http_call_session(x), &x->peer);
    x->handling = false;
    finish(x);
}

void http_call_hang_up(struct http_call *x)
{
    x->handling = true;
    session_hang_up(http_call_session(x));
    x->handling = false;
    finish(x);
}

void http_call_attach(struct http_call *x, struct http_conn *c)
{
    struct http_conn *old = x->conn;
    x->conn = c;
    c->call = x;
    if (old == NULL)
        return;
    old->call = NULL;
    http_conn_close(old);
}
