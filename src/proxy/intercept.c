/* proxy/intercept: see intercept.h. */
#include "proxy/intercept.h"

#include "base/mem.h"
#include "proxy/http.h"
#include "proxy/tls.h"
#include "proxy/tunnel.h"
#include "wire/socks.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>

bool intercept_is_for(const struct conn *c)
{
    return c->proxy->tls != NULL &&
           inject_intercepts(&c->proxy->credentials, &c->target.host, c->target.port);
}

static enum conn_step refuse_one_more(struct conn *c)
{
    status_limit(&c->proxy->status, "INTERCEPT_CONNECTIONS_MAX", INTERCEPT_CONNECTIONS_MAX);
    if (c->via == CONN_VIA_CONNECT)
        return http_refuse(c, 503, "limit",
                           "INTERCEPT_CONNECTIONS_MAX: too many intercepted connections at one "
                           "time; close some",
                           NULL);
    return conn_abort(c, true);
}

static void go_on_trusting(struct deferred *d)
{
    struct proxy *p = container_of(d, struct proxy, trusting);
    if (!tls_trust_some(p->tls))
        loop_defer(&p->loop, d);
}

/* While the client says hello and the server is dialled. */
static void start_trusting(struct proxy *p)
{
    if (p->trusting.run != NULL)
        return;
    deferred_init(&p->trusting, go_on_trusting);
    loop_defer(&p->loop, &p->trusting);
}

enum conn_step intercept_start(struct conn *c)
{
    if (c->proxy->n_intercepted == INTERCEPT_CONNECTIONS_MAX)
        return refuse_one_more(c);
    c->proxy->n_intercepted++;
    start_trusting(c->proxy);
    c->intercepted = c->carried = true;
    conn_drop_server(c);
    tunnel_answer(c);
    if (c->http != NULL)
        exchange_reset(c->http);
    c->via = CONN_VIA_HTTP;
    c->state = CONN_TLS_CLIENT;
    conn_limit(c, LOOP_HEAD, true);
    return CONN_AGAIN;
}

void intercept_stop(struct conn *c)
{
    if (c->intercepted)
        c->proxy->n_intercepted--;
    c->intercepted = false;
}

/* What was read of it already belongs to the channel. */
static bool secure_end(struct conn *c, struct end *e, bool accept)
{
    struct channel *ch = (accept ? tls_accept : tls_connect)(c->proxy->tls, e->source.fd,
                                                             &c->target.host, e->at, e->len);
    if (ch == NULL)
        return false;
    end_consume(e, e->len);
    end_set_channel(e, ch);
    return true;
}

/* We have nothing to say after the last message of a handshake, which would carry its
 * acknowledgement; who collects small writes would wait 40 ms for it. */
static void acknowledge_now(const struct end *e)
{
    const int on = 1;
    setsockopt(e->source.fd, IPPROTO_TCP, TCP_QUICKACK, &on, sizeof(on));
}

/* The alert, as far as the socket takes it, and the end. */
static enum conn_step refuse_client(struct conn *c, enum tls_end end, const char *why)
{
    if (end == TLS_NAME)
        status_fronting(&c->proxy->status, conn_via_name(c->via), &c->target, "tls", why, true);
    return conn_finish(c);
}

enum conn_step intercept_step_client(struct conn *c)
{
    char why[TLS_WHY_MAX];
    if (!end_flush(&c->client))
        return c->client.failed ? conn_abort(c, false) : CONN_WAIT;
    if (c->client.channel == NULL && !secure_end(c, &c->client, true))
        return conn_abort(c, true);
    enum tls_end end = tls_handshake(c->client.channel, why);
    end_flush(&c->client);
    if (end == TLS_MORE)
        return c->client.gone ? conn_abort(c, false) : CONN_WAIT;
    if (end != TLS_DONE)
        return refuse_client(c, end, why);
    if (c->http == NULL)
        http_start(c);
    acknowledge_now(&c->client);
    c->client.readable = true;
    c->state = CONN_HTTP;
    conn_limit(c, LOOP_HEAD, true);
    return CONN_AGAIN;
}

void intercept_dialed(struct conn *c, enum dial_result result)
{
    if (result != DIAL_CONNECTED)
        http_dialed(c, result);
    else if (c->by_upstream)
        tunnel_dialed(c, result);
    else
        intercept_secure(c);
}

static enum conn_step fail(struct conn *c, unsigned status, const char *reason, const char *message,
                           const struct egress_verdict *verdict)
{
    conn_drop_server(c);
    c->state = CONN_HTTP;
    return http_refuse(c, status, reason, message, verdict);
}

enum conn_step intercept_secure(struct conn *c)
{
    http1_head_init(&c->http->response, HTTP1_RESPONSE);
    c->state = CONN_TLS_SERVER;
    conn_limit(c, LOOP_DIAL, true);
    return CONN_AGAIN;
}

void intercept_too_slow(struct conn *c)
{
    fail(c, 504, "tls_timeout", "LOOP_DIAL: the server did not finish its TLS handshake in time",
         NULL);
}

static enum conn_step refuse_server(struct conn *c, enum tls_end end, const char *why)
{
    const struct egress_verdict verdict = {.reason = EGRESS_CERTIFICATE};
    char message[TLS_WHY_MAX + 128];
    if (end != TLS_CERTIFICATE) {
        snprintf(message, sizeof(message), "the server's TLS handshake failed: %s", why);
        return fail(c, 502, "tls_failed", message, NULL);
    }
    snprintf(message, sizeof(message), "%s: %s", egress_reason_sentence(EGRESS_CERTIFICATE), why);
    conn_tell_refused(c, &verdict);
    return fail(c, 502, egress_reason_name(EGRESS_CERTIFICATE), message, &verdict);
}

enum conn_step intercept_step_server(struct conn *c)
{
    char why[TLS_WHY_MAX];
    if (c->client.gone)
        return conn_abort(c, false);
    if (!tls_trust_is_there(c->proxy->tls)) {
        conn_yield(c);
        return CONN_WAIT;
    }
    if (c->server.channel == NULL && !secure_end(c, &c->server, false))
        return fail(c, 502, "tls_failed", "TLS cannot be set up", NULL);
    enum tls_end end = tls_handshake(c->server.channel, why);
    end_flush(&c->server);
    if (end == TLS_MORE)
        return c->server.failed ? refuse_server(c, TLS_FAILED, "the connection was lost")
                                : CONN_WAIT;
    if (end != TLS_DONE)
        return refuse_server(c, end, why);
    acknowledge_now(&c->server);
    c->server.readable = true;
    http_dialed(c, DIAL_CONNECTED);
    return CONN_AGAIN;
}
