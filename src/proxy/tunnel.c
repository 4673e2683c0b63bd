/* proxy/tunnel: see tunnel.h. */
#include "proxy/tunnel.h"

#include "base/mem.h"
#include "proxy/http.h"
#include "proxy/intercept.h"
#include "proxy/sniff.h"
#include "wire/socks.h"

/* Needs more: wait, or give up when no more can come. */
static enum conn_step want_more(struct conn *c)
{
    if (end_fill(&c->client, c->proxy->client_block, NULL))
        return CONN_AGAIN;
    return c->client.eof || c->client.failed ? conn_abort(c, false) : CONN_WAIT;
}

enum conn_step tunnel_step_greeting(struct conn *c)
{
    size_t size = 0;
    bool no_auth = false;
    int r = socks_greeting_parse(c->client.at, c->client.len, &size, &no_auth);
    if (r == 0)
        return want_more(c);
    if (r < 0)
        return conn_abort(c, false);
    end_consume(&c->client, size);
    socks_greeting_answer(no_auth, &c->client.out);
    if (!no_auth)
        return conn_finish(c);
    end_flush(&c->client);
    c->state = CONN_SOCKS_REQUEST;
    return CONN_AGAIN;
}

static enum conn_step refuse_socks(struct conn *c, enum socks_reply reply)
{
    socks_reply_write(reply, &c->client.out);
    return conn_finish(c);
}

enum conn_step tunnel_step_request(struct conn *c)
{
    struct socks_request request = {0};
    struct egress_verdict verdict;
    end_flush(&c->client);
    int r = socks_request_parse(c->client.at, c->client.len, &request, NULL);
    if (r == 0)
        return want_more(c);
    if (r < 0 && request.reply == SOCKS_NOT_ALLOWED)
        status_bad_host(&c->proxy->status, "socks", c->client.at + 5,
                        (unsigned char)c->client.at[4]);
    if (r < 0)
        return refuse_socks(c, request.reply);
    end_consume(&c->client, request.size);
    c->target.host = request.host;
    c->target.port = request.port;
    conn_set_method(c, "CONNECT", 7);
    if (!conn_judge(c, &verdict))
        return refuse_socks(c, SOCKS_NOT_ALLOWED);
    return intercept_is_for(c) ? intercept_start(c) : conn_dial(c, &verdict);
}

static enum socks_reply socks_of(enum dial_result result)
{
    static const enum socks_reply replies[] = {
#define DIAL_SOCKS(name, status, text, sentence, socks) [DIAL_##name] = socks,
        DIAL_TABLE(DIAL_SOCKS)
#undef DIAL_SOCKS
    };
    return replies[result];
}

static void fail(struct conn *c, enum dial_result result)
{
    if (c->via == CONN_VIA_CONNECT || c->intercepted)
        http_refuse_tunnel(c, result);
    else if (c->via == CONN_VIA_SOCKS)
        refuse_socks(c, socks_of(result));
    else
        conn_abort(c, true);
}

void tunnel_answer(struct conn *c)
{
    if (c->via == CONN_VIA_CONNECT)
        buf_puts(&c->client.out, "HTTP/1.1 200 Connection established\r\n\r\n");
    else if (c->via == CONN_VIA_SOCKS)
        socks_reply_write(SOCKS_OK, &c->client.out);
}

static enum conn_step open_tunnel(struct conn *c)
{
    if (c->intercepted)
        return intercept_secure(c);
    tunnel_answer(c);
    return tunnel_start(c);
}

/* Ask the operator's proxy for the rest of the way. */
static void ask_upstream(struct conn *c)
{
    char authority[HOST_AUTHORITY_MAX];
    host_format_authority(&c->target.host, c->target.port, authority);
    buf_printf(&c->server.out, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", authority, authority);
    c->state = CONN_UPSTREAM;
    conn_limit(c, LOOP_HEAD, true);
}

void tunnel_dialed(struct conn *c, enum dial_result result)
{
    if (result != DIAL_CONNECTED)
        fail(c, result);
    else if (c->by_upstream)
        ask_upstream(c);
    else
        open_tunnel(c);
}

enum conn_step tunnel_step_upstream(struct conn *c)
{
    if (c->client.gone)
        return conn_abort(c, false);
    end_flush(&c->server);
    int r = http_upstream_answer(c);
    if (r == 0)
        return CONN_WAIT;
    if (r > 0)
        return open_tunnel(c);
    fail(c, DIAL_UNREACHABLE);
    return CONN_AGAIN;
}

enum conn_step tunnel_start(struct conn *c)
{
    http_free(steal(c->http));
    c->state = CONN_TUNNEL;
    c->sniffing = c->target.host.kind == HOST_NAME && !host_is_localhost(&c->target.host);
    conn_limit(c, LOOP_QUIET, true);
    return CONN_AGAIN;
}

/* False: the policy refuses tunnels that name another place inside, or none where there should be.
 */
static bool judge_name(struct conn *c, enum sniff_result result, const struct sniff *found)
{
    bool refuse = c->proxy->policy.fronting == EGRESS_FRONTING_REFUSE;
    if (result == SNIFF_OTHER)
        return true;
    if (result == SNIFF_NAMED && host_eq(&found->host, &c->target.host))
        return true;
    if (result == SNIFF_NAMED || refuse)
        status_fronting(&c->proxy->status, conn_via_name(c->via), &c->target, found->layer,
                        result == SNIFF_NAMED ? found->host.text : "", refuse);
    return !refuse;
}

/* Look at the client's first bytes; they stay in the window. False: the tunnel has to end. */
static bool sniff(struct conn *c)
{
    while (c->sniffing) {
        struct sniff found = {.layer = ""};
        enum sniff_result r = sniff_first_bytes(c->client.at, c->client.len, &found);
        if (r != SNIFF_MORE) {
            c->sniffing = false;
            return judge_name(c, r, &found);
        }
        if (!end_fill(&c->client, c->proxy->client_block, NULL)) {
            c->sniffing = !c->client.eof && !c->client.failed;
            return true;
        }
    }
    return true;
}

/* One direction. True when it failed and the tunnel has to end. */
static bool carry(struct conn *c, struct flow *f, struct end *from, struct end *to, char *block,
                  bool *done, bool *moved)
{
    uint64_t left = UINT64_MAX;
    if (*done)
        return false;
    switch (flow_pump(&c->proxy->pipes, f, from, to, block, &left, moved)) {
    case FLOW_FAIL:
        return true;
    case FLOW_MORE:
        conn_yield(c);
        return false;
    case FLOW_EOF:
        end_shutdown(to);
        *done = true;
        return false;
    default:
        return false;
    }
}

enum conn_step tunnel_step(struct conn *c)
{
    bool moved = false;
    if (!sniff(c))
        return conn_abort(c, true);
    bool failed = false;
    if (!c->sniffing)
        failed =
            carry(c, &c->up, &c->client, &c->server, c->proxy->client_block, &c->up_done, &moved);
    else
        failed = !end_flush(&c->server) && c->server.failed;
    failed |=
        carry(c, &c->down, &c->server, &c->client, c->proxy->server_block, &c->down_done, &moved);
    if (failed || (c->up_done && c->down_done))
        return conn_abort(c, failed);
    if (moved)
        conn_limit(c, c->up_done || c->down_done ? LOOP_HALF_QUIET : LOOP_QUIET, true);
    return CONN_WAIT;
}
