/* proxy/dial: from a judged target to a connected socket.
 *
 * Theory. The order is the wall: the target was judged before anything is looked up; then the name
 * is looked up once, every address it has is judged, and exactly those addresses are dialled, in
 * turn. One address that is refused refuses the name: a name that points both outside and inside is
 * how a rebinding attack looks. "localhost" is never looked up. IPv4 comes first: it is what every
 * network of ours has, and there is no racing.
 *
 * Where the operator names an upstream proxy, a name is handed to it unresolved, and only literal
 * addresses are judged here.
 */
#ifndef CODESPACE_PROXY_DIAL_H
#define CODESPACE_PROXY_DIAL_H

#include "proxy/loop.h"
#include "proxy/resolve.h"
#include "wire/egress.h"

/* Addresses tried for one name. */
#define DIAL_ADDRS_MAX 6

struct proxy;

/* X(name, HTTP status, machine-readable name, sentence, SOCKS reply) */
#define DIAL_TABLE(X)                                                                              \
    X(CONNECTED, 200, "connected", "connected", SOCKS_OK)                                          \
    X(NOT_PERMITTED, 403, "refused", "the policy refuses it", SOCKS_NOT_ALLOWED)                   \
    X(NO_NAME, 502, "no_such_name", "no name server knows the host", SOCKS_HOST_UNREACHABLE)       \
    X(NO_ANSWER, 504, "lookup_failed", "no name server answered in time", SOCKS_FAILED)            \
    X(BUSY, 503, "busy", "RESOLVE_LOOKUPS_MAX: too many look-ups at one time; try again",          \
      SOCKS_FAILED)                                                                                \
    X(REFUSED, 502, "connection_refused", "the host does not accept connections on this port",     \
      SOCKS_REFUSED)                                                                               \
    X(UNREACHABLE, 502, "unreachable", "no route to the host", SOCKS_HOST_UNREACHABLE)             \
    X(TIMEOUT, 504, "connect_timeout", "the host did not answer in time", SOCKS_EXPIRED)           \
    X(NO_SOCKET, 503, "no_descriptors", "the proxy has no descriptors left", SOCKS_FAILED)

enum dial_result {
#define DIAL_ENUM(name, status, text, sentence, socks) DIAL_##name,
    DIAL_TABLE(DIAL_ENUM)
#undef DIAL_ENUM
};

struct dial {
    struct proxy *proxy;
    const struct egress_target *target;
    struct egress_verdict verdict; /* the one that counts: of the target, then of an address */
    struct net_addr addrs[DIAL_ADDRS_MAX];
    size_t n_addrs;
    size_t next;
    uint16_t port;
    bool inside; /* towards the sandbox's own loopback (proxy/inside); set before dial_start() */
    enum dial_result worst;
    struct source source; /* while connecting; DIAL_CONNECTED: the caller takes it by loop_move() */
    struct timer timer;
    struct deferred later;
    struct lookup *lookup;
    void (*done)(struct dial *d, enum dial_result result);
};

void dial_init(struct dial *d, struct proxy *p, void (*done)(struct dial *, enum dial_result));

/* `target` was judged: `verdict` allows it. `done` is called once, from the loop, never from here.
 */
void dial_start(struct dial *d, const struct egress_target *target,
                const struct egress_verdict *verdict);
/* Harmless at any time. */
void dial_stop(struct dial *d);

#endif
