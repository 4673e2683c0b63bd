/* mcp/http_session: a legacy session over HTTP: its id, its own stream, and the events that a
 * client may come back for.
 *
 * An event's id is "STREAM-NUMBER". Stream 0 is the one of GET, the others are POSTs that are being
 * answered. What was sent on a stream is kept until HTTP_REPLAY_MAX bytes of newer events push it
 * out, so that a client whose connection broke misses nothing in the usual case.
 */
#include "mcp/http.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct http_event {
    struct list node;
    uint32_t stream;
    uint64_t seq;
    struct buf text;
};

static void event_free(struct http_session *s, struct http_event *ev)
{
    list_remove(&ev->node);
    s->event_bytes -= ev->text.cap;
    s->http->replay -= ev->text.cap;
    buf_fini(&ev->text);
    free(ev);
}

/* Longer ones than all may have are not kept at all. */
static void keep(struct http_session *s, uint32_t stream, uint64_t seq, struct buf *text)
{
    struct http_event *ev = mem_new(struct http_event);
    ev->stream = stream;
    ev->seq = seq;
    ev->text = *text;
    *text = (struct buf)BUF_INIT;
    list_append(&s->events, &ev->node);
    s->event_bytes += ev->text.cap;
    s->http->replay += ev->text.cap;
    while (!list_empty(&s->events) &&
           (s->event_bytes > HTTP_REPLAY_MAX || s->http->replay > HTTP_REPLAY_ALL_MAX))
        event_free(s, container_of(s->events.next, struct http_event, node));
}

void http_session_event(struct http_session *s, struct http_conn *c, uint32_t stream, uint64_t seq,
                        const struct buf *message)
{
    autobuf text = BUF_INIT;
    buf_printf(&text, "id: %" PRIu32 "-%" PRIu64 "\nevent: message\ndata: ", stream, seq);
    buf_put(&text, buf_bytes(message), message->len);
    buf_puts(&text, "\n\n");
    if (c != NULL)
        http_conn_put(c, buf_bytes(&text), text.len);
    keep(s, stream, seq, &text);
}

/* ---- what belongs to no call ---- */

static void session_send(struct peer *p, struct buf *message)
{
    /* An answer without a question: to a notification that was malformed. */
    buf_reset(message, message->cap);
}

static void session_ended(struct peer *p)
{
}

static bool session_notify(struct peer *p, struct buf *message)
{
    struct http_session *s = container_of(p, struct http_session, peer);
    if (s->get != NULL && s->get->out.len > HTTP_OUT_MAX)
        return false;
    http_session_event(s, s->get, 0, ++s->get_seq, message);
    return true;
}

static const struct peer_ops session_ops = {
    .send = session_send, .ended = session_ended, .notify = session_notify};

/* ---- streams ---- */

static void replay(struct http_session *s, struct http_conn *c, uint32_t stream, uint64_t after)
{
    list_each (it, &s->events) {
        const struct http_event *ev = container_of(it, struct http_event, node);
        if (ev->stream == stream && ev->seq > after)
            http_conn_put(c, buf_bytes(&ev->text), ev->text.len);
    }
}

static struct http_call *find_call(struct http_session *s, uint32_t stream)
{
    list_each (it, &s->http->calls) {
        struct http_call *x = container_of(it, struct http_call, node);
        if (x->session == s && x->stream == stream)
            return x;
    }
    return NULL;
}

static void listen_unasked(struct http_session *s, struct http_conn *c, uint64_t after)
{
    struct http_conn *old = s->get;
    autobuf prime = BUF_INIT;
    if (old != NULL) { /* its client has come again; one message must not go out on two streams */
        old->listens = NULL;
        http_conn_stream_end(old);
        http_conn_next(old);
    }
    s->get = c;
    c->listens = s;
    http_conn_stream(c, "");
    if (strcmp(s->session.version, "2025-11-25") >= 0) {
        buf_printf(&prime, "id: 0-%" PRIu64 "\ndata: \n\n", after);
        http_conn_put(c, buf_bytes(&prime), prime.len);
    }
    replay(s, c, 0, after);
}

/* A stream whose call has ended meanwhile has its last events in store, or nothing is known. */
static bool listen_again(struct http_session *s, struct http_conn *c, uint32_t stream,
                         uint64_t after)
{
    struct http_call *x = find_call(s, stream);
    if (x == NULL && stream > s->streams)
        return false;
    http_conn_stream(c, "");
    replay(s, c, stream, after);
    if (x != NULL)
        http_call_attach(x, c);
    else
        http_conn_stream_end(c);
    return true;
}

bool http_session_listen(struct http_session *s, struct http_conn *c, const char *last_id, size_t n)
{
    uint32_t stream = 0;
    uint64_t after = s->get_seq;
    int used = 0;
    if (last_id != NULL) {
        autofree char *text = mem_dup(last_id, n);
        if (n > 40 || strspn(text, "0123456789-") != n ||
            sscanf(text, "%" SCNu32 "-%" SCNu64 "%n", &stream, &after, &used) != 2 ||
            (size_t)used != n)
            return false;
    }
    if (stream != 0)
        return listen_again(s, c, stream, after);
    listen_unasked(s, c, after);
    return true;
}

void http_session_lost(struct http_session *s)
{
    s->get->listens = NULL;
    s->get = NULL;
    s->used_ms = uv_now(s->http->server->loop);
}

/* ---- life ---- */

/* Of those without an open stream or a call, the one that was silent longest: of that client's own
 * if it has one, so that whoever opens many loses theirs first. */
static struct http_session *find_silent(struct http_server *h, const struct oauth_principal *whose)
{
    struct http_session *found[2] = {NULL, NULL}; /* of others, of its own */
    size_t pos = 0;
    for (struct http_session *s; (s = map_next(&h->sessions, &pos, NULL)) != NULL;) {
        struct http_session **best = &found[oauth_principal_same(&s->session.principal, whose)];
        if (!http_session_busy(s) && (*best == NULL || s->used_ms < (*best)->used_ms))
            *best = s;
    }
    return found[1] != NULL ? found[1] : found[0];
}

static bool make_room(struct http_server *h, const struct oauth_principal *whose)
{
    if (h->sessions.used < HTTP_SESSIONS_MAX)
        return true;
    struct http_session *s = find_silent(h, whose);
    if (s != NULL)
        http_session_free(s);
    return s != NULL;
}

struct http_session *http_session_new(struct http_server *h, const struct oauth_principal *whose)
{
    if (!make_room(h, whose))
        return NULL;
    struct http_session *s = mem_new(struct http_session);
    s->peer.ops = &session_ops;
    s->http = h;
    s->id = str_new_id("");
    s->used_ms = uv_now(h->server->loop);
    list_init(&s->events);
    session_init(&s->session, h->server, &s->peer);
    s->session.principal = *whose;
    s->session.remote = true;
    map_set(&h->sessions, s->id, s);
    http_server_wake(h);
    return s;
}

struct http_session *http_session_get(struct http_server *h, const char *id, size_t n,
                                      const struct oauth_principal *who)
{
    autofree char *key = mem_dup(id, n);
    struct http_session *s = map_get(&h->sessions, key);
    if (s == NULL || !oauth_principal_same(&s->session.principal, who))
        return NULL;
    s->used_ms = uv_now(h->server->loop);
    return s;
}

bool http_session_busy(const struct http_session *s)
{
    return s->get != NULL || s->session.n_calls > 0;
}

void http_session_free(struct http_session *s)
{
    struct http_conn *c = s->get;
    map_remove(&s->http->sessions, s->id);
    session_fini(&s->session); /* ends the calls that are in flight, and they their connections' */
    if (c != NULL) {
        http_session_lost(s);
        http_conn_stream_end(c);
        http_conn_next(c);
    }
    while (!list_empty(&s->events))
        event_free(s, container_of(s->events.next, struct http_event, node));
    free(s->id);
    free(s);
}
