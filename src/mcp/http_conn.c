/* mcp/http_conn: one connection: bytes in, whole requests out, answers and streams back.
 *
 * One request is served at a time; what the client sends meanwhile waits (up to AHEAD_MAX bytes,
 * then in the kernel). A request that is refused before its body was read ends the connection,
 * since what follows cannot be told from a new request: the answer is sent, then input is thrown
 * away for LINGER_MS at most, so that the answer is not lost to a reset.
 */
#include "mcp/http.h"
#include "mcp/operator_call.h"

#include "base/log.h"
#include "sys/fd.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define READ_MIN 8192u
#define READ_MAX (256u << 10)
#define AHEAD_MAX 65536u
#define LINGER_MS 1000u
/* A chunked body with all its framing. */
#define RAW_MAX (2 * HTTP_BODY_MAX)
#define NEVER UINT64_MAX

struct http_message {
    struct http1_head head;
    bool has_head;
    struct http1_chunked chunked;
    size_t decoded; /* bytes behind the head that went through `chunked` */
    struct buf body;
};

static void process(struct http_conn *c);
static void on_poll(uv_poll_t *poll, int status, int events);

/* ---- waiting ---- */

static void message_free(struct http_conn *c)
{
    struct http_message *m = steal(c->message);
    if (m == NULL)
        return;
    buf_fini(&m->body);
    free(m);
    c->http->bodies -= c->counted;
    c->counted = 0;
}

static uint64_t wait_of(const struct http_conn *c)
{
    if (c->out.len > 0)
        return HTTP_WRITE_MS;
    if (c->state == HTTP_CLOSING)
        return LINGER_MS;
    if (c->state == HTTP_STREAMING)
        return HTTP_COMMENT_MS;
    if (c->state == HTTP_ANSWERING)
        return NEVER;
    if (c->message == NULL)
        return HTTP_IDLE_MS;
    return c->message->has_head ? HTTP_BODY_MS : HTTP_HEAD_MS;
}

static void restart_clock(struct http_conn *c)
{
    uint64_t wait = wait_of(c);
    c->deadline_ms = wait == NEVER ? NEVER : uv_now(c->http->server->loop) + wait;
}

/* A client that does not read its answers is asked for nothing more. */
static bool takes_more(const struct http_conn *c)
{
    return c->state == HTTP_READING && c->call == NULL && c->out.len < HTTP_OUT_MAX && !c->broken &&
           !c->dead;
}

static void arm(struct http_conn *c)
{
    if (c->broken)
        return;
    bool waits = takes_more(c) || c->state == HTTP_CLOSING;
    bool reads = c->dead || (!c->eof && (waits || c->in.len < AHEAD_MAX));
    int events = (reads ? UV_READABLE : 0) | (c->out.len > 0 ? UV_WRITABLE : 0);
    if (events == c->events)
        return;
    c->events = events;
    if (events == 0)
        uv_poll_stop(&c->poll);
    else
        uv_poll_start(&c->poll, events, on_poll);
}

void http_conn_touch(struct http_conn *c)
{
    restart_clock(c);
    arm(c);
}

/* ---- output ---- */

/* Whoever writes may be in the middle of a call, so the connection goes later: a socket that is
 * shut down or broken is readable. */
static void give_up(struct http_conn *c)
{
    c->dead = true;
    c->deadline_ms = 0;
    buf_reset(&c->out, 0);
    shutdown(c->fd, SHUT_RDWR);
    arm(c);
}

static void after_output(struct http_conn *c)
{
    if (c->out.len > 0)
        return;
    buf_reset(&c->out, 0);
    if (c->state != HTTP_CLOSING || c->dead)
        return;
    if (c->eof)
        give_up(c);
    else
        shutdown(c->fd, SHUT_WR);
}

static void flush(struct http_conn *c)
{
    while (c->out.len > 0 && !c->broken) {
        ssize_t n = fd_send(c->fd, buf_bytes(&c->out), c->out.len);
        if (n == -EAGAIN)
            break;
        if (n < 0) {
            give_up(c);
            return;
        }
        buf_consume(&c->out, (size_t)n);
        restart_clock(c);
    }
    after_output(c);
}

void http_conn_send(struct http_conn *c, const struct buf *head, const void *body, size_t n)
{
    size_t sent = 0;
    if (c->broken || c->dead)
        return;
    if (c->out.len == 0) {
        struct iovec parts[] = {{.iov_base = (char *)buf_bytes(head), .iov_len = head->len},
                                {.iov_base = (char *)body, .iov_len = n}};
        struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
        ssize_t r = sendmsg(c->fd, &message, MSG_NOSIGNAL);
        sent = r > 0 ? (size_t)r : 0; /* what is wrong shows at the next write */
    }
    if (sent < head->len)
        buf_put(&c->out, buf_bytes(head) + sent, head->len - sent);
    size_t skip = sent > head->len ? sent - head->len : 0;
    if (skip < n)
        buf_put(&c->out, (const char *)body + skip, n - skip);
}

void http_conn_answered(struct http_conn *c)
{
    c->state = c->keep_alive && !c->eof ? HTTP_READING : HTTP_CLOSING;
    restart_clock(c);
    flush(c);
    arm(c);
}

/* ---- input ---- */

static int refuse(struct http_conn *c, int status, const char *text)
{
    c->keep_alive = false;
    http_conn_say(c, status, "", "text/plain", text);
    return -1;
}

static int read_head(struct http_conn *c, struct http_message *m)
{
    struct err e;
    int r = http1_head_parse(&m->head, buf_bytes(&c->in), c->in.len, &e);
    if (r < 0)
        return refuse(c, e.code == ERR_LIMIT_EXCEEDED ? 431 : 400, e.message);
    if (r == 0)
        return 0;
    m->has_head = true;
    http1_chunked_init(&m->chunked);
    c->chunked = m->head.minor == 1;
    /* The answer to HEAD has no body, and ours always has one: so no more on that connection. */
    c->keep_alive = m->head.keep_alive && c->chunked && !http1_is(&m->head, m->head.method, "HEAD");
    if (http_route_head(c, &m->head) < 0)
        return -1;
    if (m->head.body == HTTP1_BODY_LENGTH && m->head.length > HTTP_BODY_MAX)
        return refuse(c, 413, "HTTP_BODY_MAX: a body may have at most 16 MiB; send less at a time");
    if (m->head.expect_continue && c->in.len == m->head.size) {
        buf_puts(&c->out, "HTTP/1.1 100 Continue\r\n\r\n");
        flush(c);
    }
    return 1;
}

static int read_chunks(struct http_conn *c, struct http_message *m)
{
    struct err e;
    for (;;) {
        const char *payload = NULL;
        size_t used = 0;
        size_t n = 0;
        size_t at = m->head.size + m->decoded;
        int r = http1_chunked_step(&m->chunked, buf_bytes(&c->in) + at, c->in.len - at, &used,
                                   &payload, &n, &e);
        if (r < 0)
            return refuse(c, 400, e.message);
        m->decoded += used;
        buf_put(&m->body, payload, n);
        if (m->body.len > HTTP_BODY_MAX || m->decoded > RAW_MAX)
            return refuse(c, 413,
                          "HTTP_BODY_MAX: a body may have at most 16 MiB; send less at a time");
        if (r == 1)
            return 1;
        if (used == 0)
            return 0;
    }
}

/* 1: the whole request is there. */
static int read_body(struct http_conn *c, struct http_message *m)
{
    m->head.data = buf_bytes(&c->in);
    if (m->head.body == HTTP1_BODY_CHUNKED)
        return read_chunks(c, m);
    return c->in.len - m->head.size >= m->head.length || m->head.body == HTTP1_BODY_NONE;
}

static void serve(struct http_conn *c, struct http_message *m)
{
    bool chunked = m->head.body == HTTP1_BODY_CHUNKED;
    size_t n = m->head.body == HTTP1_BODY_LENGTH ? (size_t)m->head.length : 0;
    const char *body = chunked ? buf_bytes(&m->body) : buf_bytes(&c->in) + m->head.size;
    m->head.data = buf_bytes(&c->in);
    c->state = HTTP_ANSWERING;
    restart_clock(c);
    http_route(c, &m->head, body, chunked ? m->body.len : n);
    if (c->call != NULL)
        http_call_hold(c->call, chunked ? m->body.len : n);
    buf_consume(&c->in, m->head.size + (chunked ? m->decoded : n));
    message_free(c);
}

/* False when there is no room for it. What is small always goes, so that whoever fills the room
 * keeps nobody from small requests. */
static bool count(struct http_conn *c)
{
    struct http_server *h = c->http;
    if (c->message == NULL || !c->message->has_head)
        return true;
    size_t now = c->in.len + c->message->body.len;
    h->bodies += now - c->counted;
    c->counted = now;
    if (h->bodies <= HTTP_BODIES_MAX || now <= HTTP_SMALL)
        return true;
    refuse(c, 503,
           "HTTP_BODIES_MAX: messages that are coming in or being worked on have 256 MiB already; "
           "send less at a time, or try again later");
    message_free(c);
    return false;
}

static bool take_request(struct http_conn *c)
{
    if (c->message == NULL) {
        c->message = mem_new(struct http_message);
        c->origin = NULL;
        http1_head_init(&c->message->head, HTTP1_REQUEST);
        restart_clock(c);
    }
    struct http_message *m = c->message;
    int r = m->has_head ? 1 : read_head(c, m);
    if (r > 0)
        r = read_body(c, m);
    if (r < 0)
        message_free(c);
    if (r > 0 && !count(c))
        r = 0;
    if (r > 0)
        serve(c, m);
    return r > 0;
}

static void process(struct http_conn *c)
{
    if (c->processing)
        return;
    c->processing = true;
    while (takes_more(c) && c->in.len > 0 && take_request(c))
        continue;
    c->processing = false;
    if (c->broken)
        return;
    if (c->in.len == 0 || c->state == HTTP_CLOSING)
        buf_reset(&c->in, 0);
    if (c->state == HTTP_READING && c->message == NULL)
        restart_clock(c);
    if (c->state == HTTP_READING && c->eof)
        http_conn_close(c);
    else
        arm(c);
}

/* Whoever lets a connection go may be in the middle of the end of a session or of a task, and the
 * next request may be about that very one. So it waits for a turn of its own. */
void http_conn_next(struct http_conn *c)
{
    if (c->processing || c->broken)
        return;
    if (c->in.len == 0 && !c->eof)
        process(c);
    else
        http_server_later(c->http, c);
}

void http_conn_resume(struct http_conn *c)
{
    process(c);
}

/* The client sends no more. Whoever has cut the line in both directions shows at the next write; a
 * modern client that ends its side gives its call up. */
static void end_of_input(struct http_conn *c)
{
    c->eof = true;
    if (!list_empty(&c->ready)) /* what it sent before has its turn first */
        return;
    if (c->state == HTTP_READING && c->out.len > 0) /* it may still read what it was sent */
        c->state = HTTP_CLOSING;
    bool waits = c->state == HTTP_ANSWERING && c->call != NULL && c->call->session != NULL;
    if (!waits && (c->state != HTTP_CLOSING || c->out.len == 0))
        http_conn_close(c);
}

static void read_some(struct http_conn *c)
{
    size_t want = c->in.len < READ_MIN ? READ_MIN : c->in.len;
    want = want < READ_MAX ? want : READ_MAX;
    ssize_t n = fd_read(c->fd, buf_reserve(&c->in, want), want);
    if (n == -EAGAIN)
        return;
    if (n < 0) {
        http_conn_close(c);
        return;
    }
    if (n == 0) {
        end_of_input(c);
        return;
    }
    if (c->state == HTTP_CLOSING) {
        buf_reset(&c->in, READ_MIN);
        return;
    }
    buf_commit(&c->in, (size_t)n);
    if (c->message != NULL && c->message->has_head)
        restart_clock(c);
    process(c);
    count(c);
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    struct http_conn *c = container_of(poll, struct http_conn, poll);
    if (c->dead) {
        http_conn_close(c);
        return;
    }
    list_remove(&c->node);
    list_append(&c->http->conns, &c->node);
    if (events & UV_WRITABLE) {
        flush(c);
        process(c);
    }
    if (!c->broken && (status < 0 || (events & UV_READABLE)))
        read_some(c);
    if (!c->broken)
        arm(c);
}

/* ---- life ---- */

void http_conn_overdue(struct http_conn *c)
{
    static const char comment[] = ": still here\n\n";
    if (c->dead || c->out.len > 0 || c->state == HTTP_CLOSING ||
        (!c->message && c->state == HTTP_READING))
        http_conn_close(c);
    else if (c->state == HTTP_STREAMING)
        http_conn_put(c, comment, sizeof(comment) - 1);
    else if (c->state == HTTP_READING) {
        refuse(c, 408, "HTTP_HEAD_MS, HTTP_BODY_MS: the request did not come in time");
        message_free(c);
    }
}

void http_conn_new(struct http_server *h, int fd, bool local)
{
    int on = 1;
    struct http_conn *c = mem_new(struct http_conn);
    c->http = h;
    c->fd = fd;
    c->local = local;
    list_init(&c->ready);
    fd_set_nonblocking(fd, true);
    if (!local)
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    if (uv_poll_init(h->server->loop, &c->poll, fd) < 0) {
        close(fd);
        free(c);
        return;
    }
    list_append(&h->conns, &c->node);
    h->n_conns++;
    h->handles++;
    restart_clock(c);
    /* A head must begin soon on a connection that is new. */
    c->deadline_ms = uv_now(h->server->loop) + HTTP_HEAD_MS;
    arm(c);
    http_server_wake(h);
}

static void on_closed(uv_handle_t *handle)
{
    struct http_conn *c = container_of((uv_poll_t *)handle, struct http_conn, poll);
    struct http_server *h = c->http;
    close(c->fd);
    message_free(c);
    buf_fini(&c->in);
    buf_fini(&c->out);
    free(c);
    h->handles--;
    http_server_less(h);
}

void http_conn_close(struct http_conn *c)
{
    if (c->broken)
        return;
    c->broken = true;
    c->state = HTTP_CLOSING;
    list_remove(&c->node);
    list_remove(&c->ready);
    c->http->n_conns--;
    buf_reset(&c->out, 0);
    uv_poll_stop(&c->poll);
    uv_close((uv_handle_t *)&c->poll, on_closed);
    if (c->call != NULL)
        http_call_lost(c->call);
    if (c->operator_call != NULL)
        operator_call_lost(c->operator_call);
    if (c->listens != NULL)
        http_session_lost(c->listens);
}
