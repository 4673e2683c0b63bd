/* proxy/conn: see conn.h. */
#include "proxy/conn.h"

#include "base/mem.h"
#include "proxy/http.h"
#include "proxy/intercept.h"
#include "proxy/tunnel.h"
#include "wire/socks.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

/* Blocks of a refused client that are read and dropped before others get their turn. */
#define LINGER_READS_MAX 8

const char *conn_via_name(enum conn_via via)
{
    static const char *const names[] = {
#define CONN_VIA_TEXT(name, text) [CONN_VIA_##name] = text,
        CONN_VIA_TABLE(CONN_VIA_TEXT)
#undef CONN_VIA_TEXT
    };
    return names[via];
}

static void client_ready(struct source *s, uint32_t events)
{
    struct conn *c = container_of(s, struct conn, client.source);
    end_note(&c->client, events);
    conn_run(c);
}

static void server_ready(struct source *s, uint32_t events)
{
    struct conn *c = container_of(s, struct conn, server.source);
    end_note(&c->server, events);
    conn_run(c);
}

static void run_again(struct deferred *d)
{
    conn_run(container_of(d, struct conn, again));
}

static void free_conn(struct deferred *d)
{
    free(container_of(d, struct conn, gone));
}

static void close_server(struct conn *c)
{
    if (c->server_inside)
        inside_put(&c->proxy->inside, &c->proxy->loop, &c->server.source);
    end_close(&c->proxy->loop, &c->server);
    c->server_inside = false;
}

static void close_conn(struct conn *c)
{
    dial_stop(&c->dial);
    flow_fini(&c->proxy->pipes, &c->up);
    flow_fini(&c->proxy->pipes, &c->down);
    end_close(&c->proxy->loop, &c->client);
    close_server(c);
    http_free(steal(c->http));
    intercept_stop(c);
    timer_stop(&c->timer);
    timer_stop(&c->hold);
    list_remove(&c->again.node);
    list_remove(&c->node);
    c->proxy->n_conns--;
    c->proxy->at_limit = false;
    loop_defer(&c->proxy->loop, &c->gone);
}

static void limit_reached(struct timer *t)
{
    struct conn *c = container_of(t, struct conn, timer);
    if (c->state == CONN_HTTP && c->limit == LOOP_HEAD)
        http_too_slow(c);
    else if (c->state == CONN_TLS_SERVER)
        intercept_too_slow(c);
    else
        conn_abort(c, c->state == CONN_TUNNEL);
    conn_run(c);
}

static void hold_over(struct timer *t)
{
    conn_run(container_of(t, struct conn, hold));
}

static bool is_held(const struct conn *c)
{
    return !list_empty(&c->hold.node);
}

/* The port is that of the client's end, which is inside. */
void conn_tell_refused(struct conn *c, const struct egress_verdict *verdict)
{
    struct proxy *p = c->proxy;
    struct sockaddr_in at = {0};
    socklen_t len = sizeof(at);
    if (getpeername(c->client.source.fd, (struct sockaddr *)&at, &len) == 0)
        p->status.client = ntohs(at.sin_port);
    status_refused(&p->status, conn_via_name(c->via), &c->target, verdict);
    p->status.client = 0;
    if (p->holds)
        timer_start(&p->loop, &c->hold, LOOP_HOLD);
}

static void dialed(struct dial *d, enum dial_result result)
{
    struct conn *c = container_of(d, struct conn, dial);
    if (result == DIAL_CONNECTED) {
        if (loop_move(&c->proxy->loop, &d->source, &c->server.source) < 0)
            conn_abort(c, true);
        c->server_inside = c->server.near = d->inside;
        c->server_is_target = true;
        c->by_upstream = c->proxy->policy.upstream_port != 0 && !d->inside &&
                         !host_is_localhost(&c->target.host);
    } else if (result == DIAL_NOT_PERMITTED) {
        conn_tell_refused(c, &d->verdict);
    }
    if (c->state == CONN_DIALING && c->intercepted)
        intercept_dialed(c, result);
    else if (c->state == CONN_DIALING && c->via == CONN_VIA_HTTP)
        http_dialed(c, result);
    else if (c->state == CONN_DIALING)
        tunnel_dialed(c, result);
    conn_run(c);
}

struct conn *conn_new(struct proxy *p, int *fd)
{
    const int on = 1;
    struct conn *c = mem_new(struct conn);
    *c = (struct conn){.proxy = p, .state = CONN_DETECT};
    end_init(&c->client);
    end_init(&c->server);
    c->client.source.ready = client_ready;
    c->server.source.ready = server_ready;
    flow_init(&c->up);
    flow_init(&c->down);
    timer_init(&c->timer, limit_reached);
    timer_init(&c->hold, hold_over);
    dial_init(&c->dial, p, dialed);
    deferred_init(&c->again, run_again);
    deferred_init(&c->gone, free_conn);
    setsockopt(*fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    if (loop_add(&p->loop, &c->client.source, *fd) < 0) {
        free(c);
        return NULL;
    }
    (void)steal_fd(fd);
    c->client.near = true;
    list_init(&c->node);
    list_append(&p->conns, &c->node);
    p->n_conns++;
    conn_limit(c, LOOP_HEAD, true);
    return c;
}

void conn_limit(struct conn *c, enum loop_limit limit, bool restart)
{
    if (!restart && c->limit == limit && !list_empty(&c->timer.node))
        return;
    c->limit = limit;
    timer_start(&c->proxy->loop, &c->timer, limit);
}

void conn_yield(struct conn *c)
{
    loop_defer(&c->proxy->loop, &c->again);
}

void conn_set_method(struct conn *c, const char *method, size_t n)
{
    ensure(n <= sizeof(c->method));
    memcpy(c->method, method, n);
    c->target.method = c->method;
    c->target.method_len = n;
}

bool conn_judge(struct conn *c, struct egress_verdict *ret)
{
    egress_judge(&c->proxy->policy, &c->target, ret);
    /* Methods are judged of each request inside. */
    if (ret->reason == EGRESS_METHOD && c->via != CONN_VIA_HTTP && intercept_is_for(c))
        ret->reason = EGRESS_ALLOWED;
    /* What is not granted of the host's loopback is the sandbox's own, which a command reaches
     * without us, too. */
    c->inside = ret->reason != EGRESS_DENIED && egress_is_inside(&c->proxy->policy, &c->target) &&
                inside_has_any(&c->proxy->inside);
    if (c->inside)
        *ret = (struct egress_verdict){.reason = EGRESS_ALLOWED};
    if (ret->reason == EGRESS_ALLOWED)
        return true;
    conn_tell_refused(c, ret);
    return false;
}

enum conn_step conn_dial(struct conn *c, const struct egress_verdict *verdict)
{
    conn_drop_server(c);
    c->state = CONN_DIALING;
    timer_stop(&c->timer); /* the dial has its own */
    c->dial.inside = c->inside;
    dial_start(&c->dial, &c->target, verdict);
    return CONN_WAIT;
}

void conn_drop_server(struct conn *c)
{
    close_server(c);
    c->server_is_target = false;
}

enum conn_step conn_finish(struct conn *c)
{
    dial_stop(&c->dial);
    conn_drop_server(c);
    c->state = CONN_LINGER;
    conn_limit(c, LOOP_IDLE, true);
    return CONN_AGAIN;
}

enum conn_step conn_abort(struct conn *c, bool reset)
{
    if (reset) {
        end_reset_on_close(&c->client);
        end_reset_on_close(&c->server);
    }
    c->state = CONN_CLOSED;
    return CONN_WAIT;
}

/* The first byte tells: SOCKS begins with its version, HTTP with a letter. */
static enum conn_step step_detect(struct conn *c)
{
    if (c->client.len == 0 && !end_fill(&c->client, c->proxy->client_block, NULL))
        return c->client.eof || c->client.failed ? conn_abort(c, false) : CONN_WAIT;
    if (c->client.at[0] == SOCKS_VERSION) {
        c->state = CONN_SOCKS_GREETING;
        c->via = CONN_VIA_SOCKS;
    } else {
        c->state = CONN_HTTP;
        http_start(c);
    }
    return CONN_AGAIN;
}

/* A client that hangs up while we dial is not dialled for; one that only has nothing more to say
 * still wants the answer. */
static enum conn_step step_dialing(struct conn *c)
{
    return c->client.gone ? conn_abort(c, false) : CONN_WAIT;
}

/* Closing with unread bytes would reset the connection and could take our answer with it. */
static enum conn_step step_linger(struct conn *c)
{
    if (!end_flush(&c->client))
        return c->client.failed ? conn_abort(c, false) : CONN_WAIT;
    if (!c->client.shut) {
        end_shutdown(&c->client);
        conn_limit(c, LOOP_LINGER, true);
    }
    for (int n = 0; n < LINGER_READS_MAX; n++) {
        end_consume(&c->client, c->client.len);
        if (!end_fill(&c->client, c->proxy->client_block, NULL))
            break;
        if (n == LINGER_READS_MAX - 1)
            conn_yield(c);
    }
    return c->client.eof || c->client.failed ? conn_abort(c, false) : CONN_WAIT;
}

static enum conn_step step_closed(struct conn *c)
{
    (void)c;
    return CONN_WAIT;
}

static enum conn_step (*const steps[CONN_STATE_MAX])(struct conn *) = {
    [CONN_DETECT] = step_detect,
    [CONN_HTTP] = http_step,
    [CONN_SOCKS_GREETING] = tunnel_step_greeting,
    [CONN_SOCKS_REQUEST] = tunnel_step_request,
    [CONN_DIALING] = step_dialing,
    [CONN_UPSTREAM] = tunnel_step_upstream,
    [CONN_TLS_CLIENT] = intercept_step_client,
    [CONN_TLS_SERVER] = intercept_step_server,
    [CONN_TUNNEL] = tunnel_step,
    [CONN_LINGER] = step_linger,
    [CONN_CLOSED] = step_closed,
};

void conn_run(struct conn *c)
{
    if (is_held(c))
        return;
    for (int n = 0; steps[c->state](c) == CONN_AGAIN && !is_held(c); n++) {
        if (n == CONN_STEPS_MAX) {
            conn_yield(c);
            break;
        }
    }
    if (c->state == CONN_CLOSED) {
        if (end_is_open(&c->client))
            close_conn(c);
        return;
    }
    end_settle(&c->client);
    end_settle(&c->server);
}

/* Where single methods are allowed and tunnels are not, a carried connection has to be HTTP, and
 * each of its requests is judged. */
static bool start_carried_http(struct conn *c, const struct egress_verdict *verdict)
{
    if (verdict->reason != EGRESS_METHOD)
        return false;
    c->via = CONN_VIA_HTTP;
    c->carried = true;
    c->state = CONN_HTTP;
    http_start(c);
    return true;
}

void conn_start_transparent(struct conn *c, const struct net_addr *addr, uint16_t port)
{
    struct egress_verdict verdict = {.reason = EGRESS_NOT_ALLOWED};
    const struct host *name = standin_find(&c->proxy->standins, addr);
    c->via = CONN_VIA_TRANSPARENT;
    c->target.port = port;
    conn_set_method(c, "CONNECT", 7);
    if (name != NULL)
        c->target.host = *name;
    else
        host_of_addr(addr, &c->target.host);
    if (name != NULL || !standin_is(addr)) /* else of no name, or of one that was forgotten */
        egress_judge(&c->proxy->policy, &c->target, &verdict);
    bool place = verdict.reason == EGRESS_ALLOWED || verdict.reason == EGRESS_METHOD;
    if (place && intercept_is_for(c)) {
        intercept_start(c);
    } else if (verdict.reason == EGRESS_ALLOWED) {
        conn_dial(c, &verdict);
    } else if (!start_carried_http(c, &verdict)) {
        conn_tell_refused(c, &verdict);
        conn_abort(c, true);
    }
    conn_run(c);
}

void conn_start_publish(struct conn *c, uint16_t port)
{
    static const struct net_addr loopback = {4, {127, 0, 0, 1}};
    const struct egress_verdict verdict = {.reason = EGRESS_ALLOWED};
    c->via = CONN_VIA_PUBLISH;
    c->inside = true;
    c->client.near = false;
    c->target.port = port;
    host_of_addr(&loopback, &c->target.host);
    conn_set_method(c, "CONNECT", 7);
    conn_dial(c, &verdict);
    conn_run(c);
}

void conn_judge_again(struct proxy *p)
{
    struct egress_verdict verdict;
    list_each (node, &p->conns) {
        struct conn *c = container_of(node, struct conn, node);
        if (c->inside)
            continue;
        if (c->state != CONN_TUNNEL && c->state != CONN_UPSTREAM && c->state != CONN_DIALING &&
            c->state != CONN_TLS_SERVER && !(c->state == CONN_HTTP && http_is_busy(c)))
            continue;
        /* What leads to the host's loopback must not go on as if it were the sandbox's own. */
        if (!conn_judge(c, &verdict) || c->inside) {
            conn_abort(c, true);
            conn_run(c);
        }
    }
}
