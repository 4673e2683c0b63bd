/* proxy/tls: TLS at both ends of an intercepted connection, and the authority that makes it
 * possible.
 *
 * Theory. For the hosts that the operator named (egress.inject with "tls": "intercept") the proxy
 * is the server of the client and the client of the server. Towards the client it shows a
 * certificate of its own authority; the authority's key is made here, at the start of each proxy,
 * and never leaves this process. Its certificate is limited to these hosts (name constraints), so
 * not even this key could speak for another one, and the sandbox is the only place where it is
 * trusted. Leaves are made when a host is first asked for, one for each host of the list: that is
 * the bound of the cache. Towards the server the system's trust store and the host's name decide;
 * its text comes by descriptor. Parsing it takes longer than everything else (40 ms for the 140
 * certificates of today's systems), so it is not done at the start, which would cost each command
 * that long, but when the first client comes, a few certificates in each turn of the loop: no other
 * connection waits for more than those. A thread would have to be let through the filter.
 *
 * HTTP/1.1 only (ALPN), TLS 1.2 or 1.3, no renegotiation, no compression, no tickets or sessions.
 *
 * Two programs are made of the proxy: one with this on a TLS library (tls.c), one without
 * (tls_none.c), because merely linking the library costs every proxy 1.5 MiB and its relocations
 * at each start. The helper starts the one that the policy needs.
 *
 * Must not: open a file, or let a host pass that is not in the list.
 */
#ifndef CODESPACE_PROXY_TLS_H
#define CODESPACE_PROXY_TLS_H

#include "base/err.h"
#include "proxy/channel.h"
#include "wire/host.h"
#include "wire/inject.h"

/* The text of a trust store; those of today's systems have 230 KiB. */
#define TLS_TRUST_MAX (4u << 20)
/* How long a leaf is valid; it is made anew after half of that. The authority: longer than any
 * proxy lives. */
#define TLS_LEAF_DAYS 7
#define TLS_AUTHORITY_DAYS 730
/* Certificates of the trust store in one turn: 1 ms. */
#define TLS_TRUST_TURN 4
/* A clause about a failure. */
#define TLS_WHY_MAX 256

struct tls;

/* Before the process is hardened. `trust` is a PEM text, which is taken. Errors: CONFIG_INVALID
 * (no certificate in it, or a program without TLS). */
int tls_new(const struct inject_rules *rules, struct buf *trust, struct tls **ret, struct err *e);
void tls_free(struct tls *t);

/* For the sandbox: the trust store's text and the authority's certificate behind it. */
void tls_write_bundle(const struct tls *t, struct buf *out);

/* Parse some more of the trust store. True: all of it is there; before, tls_connect() must not be
 * called. */
bool tls_trust_some(struct tls *t);
bool tls_trust_is_there(const struct tls *t);

/* The channel for the client's end, as the server `host`; and for the server's end, as its client.
 * `early` are bytes that were read already. NULL: no memory, or `host` is not in the list. */
struct channel *tls_accept(struct tls *t, int fd, const struct host *host, const char *early,
                           size_t n_early);
struct channel *tls_connect(struct tls *t, int fd, const struct host *host, const char *early,
                            size_t n_early);

/* X(name, text) */
#define TLS_END_TABLE(X)                                                                           \
    X(MORE, "more bytes are needed")                                                               \
    X(DONE, "the handshake is done")                                                               \
    X(FAILED, "the other side speaks no TLS that is possible")                                     \
    X(NAME, "the client asked for another host")                                                   \
    X(CERTIFICATE, "the server's certificate is not accepted")

enum tls_end {
#define TLS_END_ENUM(name, text) TLS_##name,
    TLS_END_TABLE(TLS_END_ENUM)
#undef TLS_END_ENUM
};

/* Go on with the handshake; what it writes is in the channel's wire. `why` (TLS_WHY_MAX): after
 * TLS_NAME the name that was asked for, after TLS_CERTIFICATE and TLS_FAILED what is wrong. */
enum tls_end tls_handshake(struct channel *ch, char *why);

#endif
