/* proxy/unreached: datagrams that the sandbox's network refused.
 *
 * Theory. UDP has no way out but the name server's. The kernel inside refuses the rest by itself,
 * with an answer that this socket hears too (wire/icmp), so a refusal is told by the layer that
 * refused and costs an allowed packet nothing. One to the loopback is between the command's own
 * processes and is not told.
 *
 * Must not: send, or be needed: without the socket nothing is told and all is refused as before.
 */
#ifndef CODESPACE_PROXY_UNREACHED_H
#define CODESPACE_PROXY_UNREACHED_H

#include "proxy/proxy.h"

/* Packets in one turn. */
#define UNREACHED_TURN_MAX 64

struct unreached {
    struct proxy *proxy;
    struct source source;
};

/* Takes fd, a raw ICMP socket; -1 = there is none. 0 or -errno. */
int unreached_start(struct unreached *u, struct proxy *p, int *fd);

#endif
