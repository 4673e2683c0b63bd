/* proxy/http: see http.h. */
#include "proxy/http.h"

#include "base/mem.h"
#include "proxy/intercept.h"
#include "proxy/tunnel.h"

#include <string.h>

void http_start(struct conn *c)
{
    c->http = mem_new(struct exchange);
    exchange_reset(c->http);
}

void http_free(struct exchange *x)
{
    if (x == NULL)
        return;
    buf_fini(&x->replay);
    free(x);
}

bool http_is_busy(const struct conn *c)
{
    return c->http->active;
}

/* Answer and end the connection. */
static enum conn_step answer_and_close(struct conn *c, unsigned status, const char *reason,
                                       const char *message, const struct egress_verdict *verdict)
{
    c->http->close_client = true;
    exchange_answer(c, status, reason, message, verdict);
    return conn_finish(c);
}

/* Answer; the connection goes on when the request was whole and nothing of it is still to come. */
static enum conn_step answer(struct conn *c, unsigned status, const char *reason,
                             const char *message, const struct egress_verdict *verdict)
{
    struct exchange *x = c->http;
    const struct http1_head *h = &x->request;
    bool body = h->body == HTTP1_BODY_CHUNKED || h->length > 0;
    if (body || !h->keep_alive || x->close_client || c->via == CONN_VIA_CONNECT)
        return answer_and_close(c, status, reason, message, verdict);
    exchange_answer(c, status, reason, message, verdict);
    end_consume(&c->client, h->size);
    exchange_reset(x);
    return CONN_AGAIN;
}

static enum conn_step refuse(struct conn *c, const struct egress_verdict *v)
{
    return answer(c, 403, egress_reason_name(v->reason), egress_reason_sentence(v->reason), v);
}

static enum conn_step refuse_parse(struct conn *c, const struct err *e)
{
    if (e->code == ERR_LIMIT_EXCEEDED)
        return answer_and_close(c, 431, "limit", e->message, NULL);
    return answer_and_close(c, 400, "bad_request", e->message, NULL);
}

static enum conn_step refuse_target(struct conn *c, bool host, const struct err *e)
{
    const struct egress_verdict verdict = {.reason = EGRESS_BAD_HOST};
    const struct http1_head *h = &c->http->request;
    if (!host)
        return refuse_parse(c, e);
    struct http1_slice shown = h->target;
    const char *at = http1_at(h, shown);
    size_t n = 0;
    size_t skip = shown.len > 7 && memcmp(at, "http://", 7) == 0 ? 7 : 0;
    while (skip + n < shown.len && at[skip + n] != '/' && at[skip + n] != '?')
        n++;
    status_bad_host(&c->proxy->status, conn_via_name(c->via), at + skip, n);
    c->target.port = 0;
    return answer_and_close(c, 400, egress_reason_name(EGRESS_BAD_HOST), e->message, &verdict);
}

/* An upgrade ends the judging of single requests, so it needs what a tunnel needs. HTTP/2 is not
 * passed on: its requests would be several, judged once. */
static bool may_upgrade(struct conn *c)
{
    const struct http1_head *h = &c->http->request;
    struct egress_target tunnel = c->target;
    struct egress_verdict verdict;
    if (!h->wants_upgrade || http1_list_has(h, h->headers[h->upgrade].value, "h2c"))
        return false;
    if (c->inside) /* a server of the sandbox's own, which no rule names */
        return true;
    tunnel.method = "CONNECT";
    tunnel.method_len = 7;
    egress_judge(&c->proxy->policy, &tunnel, &verdict);
    return verdict.reason == EGRESS_ALLOWED;
}

static void send_request(struct conn *c, bool reused)
{
    struct exchange *x = c->http;
    x->active = true;
    x->reused = reused;
    exchange_write_request(c);
    c->state = CONN_HTTP;
    conn_limit(c, LOOP_QUIET, true);
}

/* A request's head is complete and at the start of the client's window. */
static enum conn_step begin(struct conn *c)
{
    struct exchange *x = c->http;
    struct host before = c->target.host;
    uint16_t before_port = c->target.port;
    struct egress_verdict verdict;
    struct err e = {0};
    bool host = false;
    int connect = exchange_read_target(c, &host, &e);
    if (connect < 0)
        return refuse_target(c, host, &e);
    x->asked_head = http1_is(&x->request, x->request.method, "HEAD");
    x->close_client = !x->request.keep_alive;
    if (!conn_judge(c, &verdict))
        return refuse(c, &verdict);
    if (connect) {
        end_consume(&c->client, x->request.size);
        return intercept_is_for(c) ? intercept_start(c) : conn_dial(c, &verdict);
    }
    x->asked_upgrade = may_upgrade(c);
    bool same = host_eq(&before, &c->target.host) && before_port == c->target.port;
    /* A new policy may have made the sandbox's own of what was the host's, and the other way. */
    if (!c->server_is_target || !same || c->inside != c->server_inside)
        return conn_dial(c, &verdict);
    send_request(c, true);
    return CONN_AGAIN;
}

/* Between requests a server has nothing to say: the end of the connection, or a byte too many,
 * which would be taken for the answer to the next request. */
static void watch_idle_server(struct conn *c)
{
    if (!c->server_is_target || !c->server.readable)
        return;
    if (end_fill(&c->server, c->proxy->server_block, NULL) || c->server.eof || c->server.failed)
        conn_drop_server(c);
}

static enum conn_step step_head(struct conn *c)
{
    struct err e = {0};
    watch_idle_server(c);
    end_flush(&c->client);
    if (c->client.failed || c->client.gone)
        return conn_abort(c, false);
    if (c->client.out.len > END_BLOCK) /* a client that asks and does not read */
        return CONN_WAIT;
    int r = http1_head_parse(&c->http->request, c->client.at, c->client.len, &e);
    if (r < 0)
        return refuse_parse(c, &e);
    if (r > 0)
        return begin(c);
    if (end_fill(&c->client, c->proxy->client_block, NULL))
        return CONN_AGAIN;
    if (c->client.eof || c->client.failed)
        return c->client.out.len > 0 ? conn_finish(c) : conn_abort(c, false);
    conn_limit(c, c->client.len > 0 ? LOOP_HEAD : LOOP_IDLE, false);
    return CONN_WAIT;
}

/* The server's connection ended before a whole response. */
static enum conn_step server_lost(struct conn *c)
{
    struct exchange *x = c->http;
    /* Only a reset tells a client of HTTP1_BODY_CLOSE that bytes are missing. */
    if (x->head_forwarded)
        return x->down.kind == HTTP1_BODY_CLOSE ? conn_abort(c, true) : conn_finish(c);
    if (x->response_begun)
        return answer_and_close(c, 502, "no_response", "the server closed within its answer", NULL);
    if (x->replay.len > 0 && x->reused) {
        struct egress_verdict verdict;
        egress_judge(&c->proxy->policy, &c->target, &verdict);
        if (verdict.reason == EGRESS_ALLOWED)
            return conn_dial(c, &verdict);
    }
    return answer_and_close(c, 502, "no_response", "the server closed without an answer", NULL);
}

static enum conn_step bad_response(struct conn *c, const char *message)
{
    if (c->http->head_forwarded)
        return conn_abort(c, true);
    return answer_and_close(c, 502, "bad_response", message, NULL);
}

/* 1xx but 101: passed on to who can understand it. */
static enum conn_step interim(struct conn *c)
{
    struct exchange *x = c->http;
    if (x->request.minor == 1)
        exchange_write_response(c);
    else
        end_consume(&c->server, x->response.size);
    http1_head_init(&x->response, HTTP1_RESPONSE);
    return CONN_AGAIN;
}

static enum conn_step final_head(struct conn *c)
{
    struct exchange *x = c->http;
    struct http1_head *h = &x->response;
    if (h->status == 101 && !x->asked_upgrade)
        return bad_response(c, "the server switched protocols without being asked");
    if (h->body == HTTP1_BODY_CHUNKED && x->request.minor == 0)
        return bad_response(c, "a chunked answer to an HTTP/1.0 request");
    body_init(&x->down, h);
    if (x->asked_head)
        x->down = (struct body){.kind = HTTP1_BODY_NONE};
    else if (h->body == HTTP1_BODY_CLOSE)
        x->close_client = true;
    exchange_write_response(c);
    x->head_forwarded = true;
    if (h->status == 101)
        return tunnel_start(c);
    return CONN_AGAIN;
}

static enum conn_step step_response_head(struct conn *c)
{
    struct exchange *x = c->http;
    struct err e = {0};
    /* Interim answers wait there; there may be many, and the client may not read. */
    if (!end_flush(&c->client) && c->client.out.len > END_BLOCK)
        return c->client.failed ? conn_abort(c, false) : CONN_WAIT;
    int r = http1_head_parse(&x->response, c->server.at, c->server.len, &e);
    x->response_begun |= c->server.len > 0;
    if (r < 0)
        return bad_response(c, e.message);
    if (r > 0)
        return x->response.status < 200 && x->response.status != 101 ? interim(c) : final_head(c);
    if (end_fill(&c->server, c->proxy->server_block, NULL))
        return CONN_AGAIN;
    return c->server.eof || c->server.failed ? server_lost(c) : CONN_WAIT;
}

/* Both halves are done: what is kept of the two connections. */
static enum conn_step finish_exchange(struct conn *c)
{
    struct exchange *x = c->http;
    bool keep_server = x->response.keep_alive && c->server.len == 0 && !c->server.eof &&
                       !end_has_output(&c->server);
    if (!keep_server)
        conn_drop_server(c);
    if (x->close_client)
        return conn_finish(c);
    end_flush(&c->client);
    exchange_reset(x);
    return CONN_AGAIN;
}

static enum conn_step step_response_body(struct conn *c, bool *moved)
{
    struct exchange *x = c->http;
    enum flow_result r = FLOW_DONE;
    if (x->down.kind != HTTP1_BODY_NONE)
        r = body_pump(c, &x->down, &c->down, &c->server, &c->client, c->proxy->server_block, moved);
    else
        end_flush(&c->client);
    if (c->client.failed)
        return conn_abort(c, false);
    switch (r) {
    case FLOW_EOF:
        if (x->down.kind != HTTP1_BODY_CLOSE)
            return server_lost(c);
        break;
    case FLOW_FAIL:
        return server_lost(c);
    case FLOW_MORE:
        conn_yield(c);
        return CONN_WAIT;
    case FLOW_WAIT:
        return CONN_WAIT;
    default:
        break;
    }
    if (x->request_done)
        return finish_exchange(c);
    /* The server has answered before it had read all: what is left of the body has no reader. */
    return conn_finish(c);
}

enum request_body {
    REQUEST_GOES_ON,
    REQUEST_CUT, /* the client has gone in the middle of it */
    REQUEST_BAD, /* its chunks are malformed */
};

static enum request_body step_request_body(struct conn *c, bool *moved)
{
    struct exchange *x = c->http;
    if (x->request_done) {
        end_flush(&c->server);
        return REQUEST_GOES_ON;
    }
    switch (body_pump(c, &x->up, &c->up, &c->client, &c->server, c->proxy->client_block, moved)) {
    case FLOW_DONE:
        x->request_done = true;
        return REQUEST_GOES_ON;
    case FLOW_EOF:
        return REQUEST_CUT;
    case FLOW_FAIL:
        if (c->server.failed) /* a server that stops reading may have answered already */
            return REQUEST_GOES_ON;
        return c->client.failed ? REQUEST_CUT : REQUEST_BAD;
    case FLOW_MORE:
        conn_yield(c);
        return REQUEST_GOES_ON;
    default:
        return REQUEST_GOES_ON;
    }
}

/* The server has the beginning of a request that will never end; it must not take it for one. */
static enum conn_step bad_request_body(struct conn *c)
{
    end_reset_on_close(&c->server);
    if (c->http->head_forwarded)
        return conn_abort(c, true);
    return answer_and_close(c, 400, "bad_request", "HTTP: the request's chunks are malformed",
                            NULL);
}

enum conn_step http_step(struct conn *c)
{
    struct exchange *x = c->http;
    bool moved = false;
    if (!x->active)
        return step_head(c);
    enum request_body body = step_request_body(c, &moved);
    if (c->client.gone || body == REQUEST_CUT)
        return conn_abort(c, true);
    if (body == REQUEST_BAD)
        return bad_request_body(c);
    enum conn_step step = x->head_forwarded ? step_response_body(c, &moved) : step_response_head(c);
    if (moved && c->state == CONN_HTTP)
        conn_limit(c, LOOP_QUIET, true);
    return step;
}

void http_dialed(struct conn *c, enum dial_result result)
{
    static const struct {
        unsigned status;
        const char *name;
        const char *sentence;
    } rows[] = {
#define DIAL_HTTP(name, status, text, sentence, socks) [DIAL_##name] = {status, text, sentence},
        DIAL_TABLE(DIAL_HTTP)
#undef DIAL_HTTP
    };
    struct exchange *x = c->http;
    c->state = CONN_HTTP;
    x->close_client |= x->active && result != DIAL_CONNECTED; /* its head is gone already */
    if (result == DIAL_NOT_PERMITTED) {
        refuse(c, &c->dial.verdict);
    } else if (result != DIAL_CONNECTED) {
        answer(c, rows[result].status, rows[result].name, rows[result].sentence, NULL);
    } else if (x->active) { /* the request is sent again */
        buf_put(&c->server.out, buf_bytes(&x->replay), x->replay.len);
        buf_reset(&x->replay, 4096);
        x->reused = false;
        conn_limit(c, LOOP_QUIET, true);
    } else {
        send_request(c, false);
    }
}

enum conn_step http_refuse(struct conn *c, unsigned status, const char *reason, const char *message,
                           const struct egress_verdict *verdict)
{
    c->http->close_client |= c->http->active; /* its head is gone already */
    return answer(c, status, reason, message, verdict);
}

void http_refuse_tunnel(struct conn *c, enum dial_result result)
{
    http_dialed(c, result);
}

void http_too_slow(struct conn *c)
{
    answer_and_close(c, 408, "limit",
                     "LOOP_HEAD: a request's head must come within 30 seconds; send it in one go",
                     NULL);
}

int http_upstream_answer(struct conn *c)
{
    struct err e = {0};
    if (c->http == NULL)
        http_start(c);
    struct http1_head *h = &c->http->response;
    for (;;) {
        int r = http1_head_parse(h, c->server.at, c->server.len, &e);
        if (r < 0 || (r > 0 && (h->status < 200 || h->status > 299)))
            return -1;
        if (r > 0) {
            end_consume(&c->server, h->size);
            return 1;
        }
        if (!end_fill(&c->server, c->proxy->server_block, NULL))
            return c->server.eof || c->server.failed ? -1 : 0;
    }
}
