/* proxy/exchange: see exchange.h. */
#include "proxy/exchange.h"

#include "base/jsonw.h"
#include "base/mem.h"
#include "base/str.h"
#include "proxy/credential.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* As much of a body as is sent in one piece with its head. */
#define EXCHANGE_WITH_HEAD_MAX 16384u

void exchange_reset(struct exchange *x)
{
    struct buf replay = x->replay;
    buf_reset(&replay, 4096);
    x->active = false;
    http1_head_init(&x->request, HTTP1_REQUEST);
    http1_head_init(&x->response, HTTP1_RESPONSE);
    x->path = (struct http1_slice){0, 0};
    x->request_done = x->head_forwarded = x->response_begun = false;
    x->asked_head = x->asked_upgrade = x->close_client = x->reused = false;
    x->replay = replay;
}

static int bad(struct err *e, const char *why)
{
    return err_set(e, ERR_PARSE_ERROR, "HTTP: %s", why);
}

/* "http://authority/path?query": where the authority ends. */
static int split_target(struct exchange *x, struct http1_slice *ret_authority, struct err *e)
{
    static const char scheme[] = "http://";
    const size_t skip = sizeof(scheme) - 1;
    const struct http1_slice t = x->request.target;
    const char *at = http1_at(&x->request, t);
    if (t.len >= 8 && strncasecmp(at, "https://", 8) == 0)
        return bad(e, "https goes through a proxy by CONNECT");
    if (t.len <= skip || strncasecmp(at, scheme, skip) != 0)
        return bad(e, "this is a proxy: the target must be http://host/... or CONNECT host:port");
    if (memchr(at, '#', t.len) != NULL)
        return bad(e, "a target has no fragment");
    size_t end = skip;
    while (end < t.len && at[end] != '/' && at[end] != '?')
        end++;
    *ret_authority = (struct http1_slice){t.at + (uint32_t)skip, (uint32_t)(end - skip)};
    x->path = (struct http1_slice){t.at + (uint32_t)end, t.len - (uint32_t)end};
    return 0;
}

/* What Host says must be what the target says: one of the two would be judged, the other obeyed. */
static int check_host(struct conn *c, uint16_t default_port, bool *ret_host, struct err *e)
{
    const struct http1_head *h = &c->http->request;
    struct host host;
    uint16_t port = 0;
    if (h->host < 0)
        return 0;
    struct http1_slice value = h->headers[h->host].value;
    *ret_host = true;
    if (host_parse_authority(http1_at(h, value), value.len, default_port, &host, &port, e) < 0)
        return err_wrap(e, "Host");
    *ret_host = false;
    if (!host_eq(&host, &c->target.host) || port != c->target.port)
        return bad(e, "the Host header and the request's target name different places");
    return 0;
}

/* A server's own form of request, on a connection that was carried to a name: Host must say it. */
static int read_carried_target(struct conn *c, bool *ret_host, struct err *e)
{
    struct exchange *x = c->http;
    struct http1_head *h = &x->request;
    bool star = http1_is(h, h->target, "*");
    if (!star && *http1_at(h, h->target) != '/')
        return bad(e, "on this connection the target must be a path");
    x->path = star ? (struct http1_slice){h->target.at, 0} : h->target;
    conn_set_method(c, http1_at(h, h->method), h->method.len);
    return check_host(c, c->intercepted ? 443 : 80, ret_host, e);
}

int exchange_read_target(struct conn *c, bool *ret_host, struct err *e)
{
    struct exchange *x = c->http;
    struct http1_head *h = &x->request;
    struct http1_slice authority = h->target;
    bool connect = http1_is(h, h->method, "CONNECT");
    *ret_host = false;
    if (c->carried)
        return read_carried_target(c, ret_host, e);
    if (!connect && split_target(x, &authority, e) < 0)
        return -1;
    if (connect && (h->body == HTTP1_BODY_CHUNKED || h->length > 0))
        return bad(e, "a CONNECT has no body");
    *ret_host = true;
    c->via = connect ? CONN_VIA_CONNECT : CONN_VIA_HTTP;
    if (host_parse_authority(http1_at(h, authority), authority.len, connect ? 0 : 80,
                             &c->target.host, &c->target.port, e) < 0)
        return -1;
    *ret_host = false;
    conn_set_method(c, http1_at(h, h->method), h->method.len);
    if (check_host(c, connect ? c->target.port : 80, ret_host, e) < 0)
        return -1;
    return connect;
}

void body_init(struct body *b, const struct http1_head *h)
{
    *b = (struct body){.kind = h->body, .left = h->body == HTTP1_BODY_LENGTH ? h->length : 0};
    if (h->body == HTTP1_BODY_CLOSE)
        b->left = UINT64_MAX;
    http1_chunked_init(&b->chunks);
}

/* Put what is there of the body behind its head, so that both leave in one piece. */
static void add_body(struct body *b, struct end *from, struct end *to)
{
    size_t n = from->len < b->left ? from->len : (size_t)b->left;
    if (b->kind == HTTP1_BODY_CHUNKED || n > EXCHANGE_WITH_HEAD_MAX)
        return;
    buf_put(&to->out, from->at, n);
    end_consume(from, n);
    if (b->left != UINT64_MAX)
        b->left -= n;
}

static void put_framing(struct buf *out, enum http1_body kind, uint64_t length)
{
    if (kind == HTTP1_BODY_LENGTH)
        buf_printf(out, "Content-Length: %llu\r\n", (unsigned long long)length);
    else if (kind == HTTP1_BODY_CHUNKED)
        buf_puts(out, "Transfer-Encoding: chunked\r\n");
}

static void put_slice(struct buf *out, const struct http1_head *h, struct http1_slice s)
{
    buf_put(out, http1_at(h, s), s.len);
}

/* origin-form for a server, absolute-form for the operator's proxy. */
static void put_request_line(struct conn *c, struct buf *out)
{
    const struct exchange *x = c->http;
    const struct http1_head *h = &x->request;
    char authority[HOST_AUTHORITY_MAX];
    size_t n = host_format_authority(&c->target.host, c->target.port, authority);
    /* Inside TLS the operator's proxy has opened a tunnel, and the server is asked itself. */
    bool absolute = c->by_upstream && !c->intercepted;
    if (c->target.port == (c->intercepted ? 443 : 80))
        n -= c->intercepted ? 4 : 3;
    put_slice(out, h, h->method);
    buf_putc(out, ' ');
    if (absolute) {
        buf_puts(out, "http://");
        buf_put(out, authority, n);
    }
    if (x->path.len == 0 && http1_is(h, h->method, "OPTIONS") && !absolute)
        buf_putc(out, '*');
    else if (x->path.len == 0 || *http1_at(h, x->path) != '/')
        buf_putc(out, '/');
    put_slice(out, h, x->path);
    buf_puts(out, h->minor == 0 ? " HTTP/1.0\r\nHost: " : " HTTP/1.1\r\nHost: ");
    buf_put(out, authority, n);
    buf_puts(out, "\r\n");
}

static bool may_repeat(const struct exchange *x)
{
    const struct http1_head *h = &x->request;
    return x->reused && x->up.kind == HTTP1_BODY_NONE &&
           (http1_is(h, h->method, "GET") || http1_is(h, h->method, "HEAD") ||
            http1_is(h, h->method, "OPTIONS"));
}

void exchange_write_request(struct conn *c)
{
    struct exchange *x = c->http;
    struct http1_head *h = &x->request;
    struct buf *out = &c->server.out;
    h->data = c->client.at;
    put_request_line(c, out);
    credential_put_headers(c, h, out);
    put_framing(out, h->body, h->length);
    if (x->asked_upgrade) {
        buf_puts(out, "Connection: upgrade\r\nUpgrade: ");
        put_slice(out, h, h->headers[h->upgrade].value);
        buf_puts(out, "\r\n");
    } else if (h->minor == 0) {
        buf_puts(out, "Connection: keep-alive\r\n");
    }
    buf_puts(out, "\r\n");
    body_init(&x->up, h);
    if (may_repeat(x))
        buf_put(&x->replay, buf_bytes(out), out->len);
    end_consume(&c->client, h->size);
    add_body(&x->up, &c->client, &c->server);
}

void exchange_write_response(struct conn *c)
{
    struct exchange *x = c->http;
    struct http1_head *h = &x->response;
    struct buf *out = &c->client.out;
    buf_printf(out, "HTTP/1.%u %u ", x->request.minor, h->status);
    put_slice(out, h, h->reason);
    buf_puts(out, "\r\n");
    http1_copy_headers(h, out);
    put_framing(out, h->body, h->length);
    if (h->status == 101) {
        buf_puts(out, "Connection: upgrade\r\n");
        if (h->upgrade >= 0) {
            buf_puts(out, "Upgrade: ");
            put_slice(out, h, h->headers[h->upgrade].value);
            buf_puts(out, "\r\n");
        }
    } else if (h->status >= 200 && x->close_client) {
        buf_puts(out, "Connection: close\r\n");
    } else if (h->status >= 200 && x->request.minor == 0) {
        buf_puts(out, "Connection: keep-alive\r\n");
    }
    buf_puts(out, "\r\n");
    end_consume(&c->server, h->size);
    if (h->status >= 200)
        add_body(&x->down, &c->server, &c->client);
}

static void put_reason(struct conn *c, struct buf *body, const char *reason, const char *message,
                       const struct egress_verdict *v)
{
    struct jsonw w;
    char rule[EGRESS_RULE_NAME_MAX];
    jsonw_init(&w, body);
    jsonw_object(&w);
    jsonw_kstr(&w, "error", v != NULL ? "egress_refused" : "egress_failed");
    jsonw_kstr(&w, "reason", reason);
    jsonw_kstr(&w, "message", message);
    if (c->target.port != 0) {
        jsonw_kstr(&w, "host", c->target.host.text);
        jsonw_kuint(&w, "port", c->target.port);
        jsonw_key(&w, "method");
        jsonw_strn(&w, c->target.method, c->target.method_len);
    }
    if (v != NULL && v->list != NULL)
        jsonw_kstr(&w, "rule", egress_rule_name(v, rule));
    if (v != NULL && v->reason == EGRESS_ADDRESS)
        jsonw_kstr(&w, "class", host_class_name(v->class));
    jsonw_object_end(&w);
    buf_putc(body, '\n');
}

void exchange_answer(struct conn *c, unsigned status, const char *reason, const char *message,
                     const struct egress_verdict *verdict)
{
    static const struct {
        unsigned status;
        const char *text;
    } texts[] = {{400, "Bad Request"},     {403, "Forbidden"},
                 {408, "Request Timeout"}, {431, "Request Header Fields Too Large"},
                 {502, "Bad Gateway"},     {503, "Service Unavailable"},
                 {504, "Gateway Timeout"}};
    const struct exchange *x = c->http;
    const char *text = "";
    autobuf body = BUF_INIT;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        text = texts[i].status == status ? texts[i].text : text;
    put_reason(c, &body, reason, message, verdict);
    struct buf *out = &c->client.out;
    buf_printf(out,
               "HTTP/1.1 %u %s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n"
               "Cache-Control: no-store\r\n%s: %s\r\n",
               status, text, body.len,
               verdict != NULL ? "x-codespace-verdict" : "x-codespace-error", reason);
    buf_puts(out, x->close_client ? "Connection: close\r\n\r\n" : "Connection: keep-alive\r\n\r\n");
    if (!x->asked_head)
        buf_put(out, buf_bytes(&body), body.len);
}

/* Decode what the window holds and pass it on as it is. 1: the body has ended. */
static int forward_chunks(struct body *b, struct end *from, struct end *to)
{
    size_t all = 0;
    int r = 0;
    while (r == 0 && all < from->len) {
        size_t used = 0;
        size_t payload_len = 0;
        const char *payload = NULL;
        r = http1_chunked_step(&b->chunks, from->at + all, from->len - all, &used, &payload,
                               &payload_len, NULL);
        if (r < 0)
            return -1;
        all += used;
    }
    size_t put = end_send(to, from->at, all);
    buf_put(&to->out, from->at + put, all - put);
    end_consume(from, all);
    return r;
}

static enum flow_result pump_chunks(struct conn *c, struct body *b, struct flow *f,
                                    struct end *from, struct end *to, char *block, bool *moved)
{
    for (size_t turn = 0; end_flush(to); turn++) {
        if (b->chunks.state == HTTP1_CHUNK_DONE)
            return FLOW_DONE;
        if (turn * END_BLOCK >= FLOW_TURN_MAX)
            return FLOW_MORE;
        /* A run of payload far larger than a block flows as any other bytes. What the pipe still
         * holds comes before anything that is read from now on, however short the rest is. */
        if (f->in_pipe > 0 || (b->chunks.state == HTTP1_CHUNK_DATA && from->len == 0 &&
                               b->chunks.left >= 4 * END_BLOCK)) {
            enum flow_result r =
                flow_pump(&c->proxy->pipes, f, from, to, block, &b->chunks.left, moved);
            if (r != FLOW_DONE)
                return r;
            b->chunks.state = HTTP1_CHUNK_DATA_CR;
        }
        if (from->len == 0 && !end_fill(from, block, NULL))
            return from->eof ? FLOW_EOF : from->failed ? FLOW_FAIL : FLOW_WAIT;
        *moved = true;
        if (forward_chunks(b, from, to) < 0)
            return FLOW_FAIL;
    }
    return to->failed ? FLOW_FAIL : FLOW_WAIT;
}

enum flow_result body_pump(struct conn *c, struct body *b, struct flow *f, struct end *from,
                           struct end *to, char *block, bool *moved)
{
    if (b->kind == HTTP1_BODY_CHUNKED)
        return pump_chunks(c, b, f, from, to, block, moved);
    return flow_pump(&c->proxy->pipes, f, from, to, block, &b->left, moved);
}
