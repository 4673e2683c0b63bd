/* proxy/conn: one connection from inside and what it is connected to.
 *
 * Theory. A connection is an enum of states, each with one step function that does what can be done
 * now and says whether to call again (`CONN_AGAIN`) or to wait for an event (`CONN_WAIT`). Events
 * only set flags on the two ends; conn_run() then steps. So there is one place where work happens,
 * and a step can be read without knowing which event came.
 *
 *   DETECT -> HTTP  <-> DIALING -> TUNNEL -> CLOSED
 *          -> SOCKS  -> DIALING ^  (UPSTREAM between the two with an upstream proxy)
 *   accepted on the transparent listener: straight to DIALING
 *   TLS to a host of the operator's list: TLS_CLIENT and TLS_SERVER between (proxy/intercept)
 *   any refusal that ends the connection -> LINGER -> CLOSED
 *
 * Must not: free inside a turn (see loop.h), or hold a pointer into a window across a fill.
 */
#ifndef CODESPACE_PROXY_CONN_H
#define CODESPACE_PROXY_CONN_H

#include "proxy/dial.h"
#include "proxy/proxy.h"
#include "wire/http1.h"

enum conn_state {
    CONN_DETECT,
    CONN_HTTP,
    CONN_SOCKS_GREETING,
    CONN_SOCKS_REQUEST,
    CONN_DIALING,
    CONN_UPSTREAM,
    CONN_TLS_CLIENT,
    CONN_TLS_SERVER,
    CONN_TUNNEL,
    CONN_LINGER,
    CONN_CLOSED,
    CONN_STATE_MAX
};

enum conn_step { CONN_WAIT, CONN_AGAIN };

/* X(name, text): how the target was named. */
#define CONN_VIA_TABLE(X)                                                                          \
    X(HTTP, "http")                                                                                \
    X(CONNECT, "connect")                                                                          \
    X(SOCKS, "socks")                                                                              \
    X(TRANSPARENT, "transparent")                                                                  \
    X(PUBLISH, "publish")

enum conn_via {
#define CONN_VIA_ENUM(name, text) CONN_VIA_##name,
    CONN_VIA_TABLE(CONN_VIA_ENUM)
#undef CONN_VIA_ENUM
};

/* Steps in one turn: a client with many small requests must not keep the others waiting. */
#define CONN_STEPS_MAX 256

struct exchange; /* proxy/http */

struct conn {
    struct list node;
    struct proxy *proxy;
    enum conn_state state;
    enum conn_via via;
    struct end client;
    struct end server;
    struct flow up;   /* client to server */
    struct flow down; /* server to client */
    struct timer timer;
    struct timer hold;     /* while it runs nothing is done: the client is being looked for */
    enum loop_limit limit; /* that the timer runs for */
    struct dial dial;
    struct egress_target target;
    char method[HTTP1_METHOD_MAX]; /* storage of target.method */
    bool inside;                   /* the target is a server of the sandbox's own loopback */
    bool server_inside;            /* the server end is a socket of proxy/inside */
    bool server_is_target;         /* the server end is connected to the target */
    bool by_upstream;              /* through the operator's proxy */
    bool intercepted;              /* both ends speak TLS to us (proxy/intercept) */
    bool carried;                  /* HTTP on a carried connection: the target is settled */
    bool sniffing;                 /* the first bytes of the tunnel are looked at */
    bool up_done;
    bool down_done;
    struct exchange *http;
    struct deferred again;
    struct deferred gone;
};

/* Take over an accepted, non-blocking socket; closes it when it cannot. */
struct conn *conn_new(struct proxy *p, int *fd);

/* Step until nothing can be done, or until others are due. */
void conn_run(struct conn *c);
/* Run again in the next turn, after others had theirs. */
void conn_yield(struct conn *c);

/* The time limit that counts from now. `restart` false: go on counting when it is the same. */
void conn_limit(struct conn *c, enum loop_limit limit, bool restart);

/* Start towards c->target, which was judged. */
enum conn_step conn_dial(struct conn *c, const struct egress_verdict *verdict);
/* Judge c->target; tells the status descriptor of a refusal. */
bool conn_judge(struct conn *c, struct egress_verdict *ret);
void conn_set_method(struct conn *c, const char *method, size_t n);

/* Send what is waiting, let the client read it, close. */
enum conn_step conn_finish(struct conn *c);
/* Close now. `reset`: so that neither side can take it for a proper end. */
enum conn_step conn_abort(struct conn *c, bool reset);
/* The server end, closed. */
void conn_drop_server(struct conn *c);

/* A connection to the transparent listener that was meant for `addr`. */
void conn_start_transparent(struct conn *c, const struct net_addr *addr, uint16_t port);

/* A connection from the host to a port that is published. */
void conn_start_publish(struct conn *c, uint16_t port);

/* A refusal of c->target, told on the status descriptor; then the connection holds still. */
void conn_tell_refused(struct conn *c, const struct egress_verdict *verdict);

/* A new policy is in force: what is on its way and refused by it ends. */
void conn_judge_again(struct proxy *p);

const char *conn_via_name(enum conn_via via);

#endif
