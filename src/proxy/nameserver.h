/* proxy/nameserver: the name server inside the sandbox, over UDP and TCP.
 *
 * An allowed name has one address, its stand-in (proxy/standin), and no other record: no AAAA, so
 * that nobody tries IPv6, and no HTTPS record, which would offer to encrypt the name in a TLS
 * hello. Every other name does not exist. Nothing is asked of anybody to answer, so a query carries
 * nothing out (C5).
 */
#ifndef CODESPACE_PROXY_NAMESERVER_H
#define CODESPACE_PROXY_NAMESERVER_H

#include "proxy/proxy.h"

/* Short: an answer must not outlive its row in the table of stand-ins. */
#define NAMESERVER_TTL_S 30
/* TCP clients at one time; one more replaces the oldest. */
#define NAMESERVER_CLIENTS_MAX 32
/* Datagrams answered before others get their turn. */
#define NAMESERVER_TURN_MAX 64

/* Refusals over UDP that wait (LOOP_HOLD); one more is told at once. */
#define NAMESERVER_HELD_MAX 64

struct nameserver {
    struct proxy *proxy;
    struct source source;
    struct list clients;
    unsigned n_clients;
    unsigned n_held;
};

/* Serve a bound datagram socket or a listening stream socket, by what it is. Takes fd. 0 or -errno.
 */
int nameserver_start(struct nameserver *n, struct proxy *p, int *fd);
void nameserver_stop(struct nameserver *n);

#endif
