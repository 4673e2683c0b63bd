/* proxy/inside: sockets of the sandbox's own network, for its own loopback.
 *
 * Theory. The proxy lives in the host's network and cannot make a socket in another. So the helper
 * made some, not connected, and handed them over (wire/handover). Each serves one connection at a
 * time and is used again: a TCP socket can be disconnected. One that comes back is shut down and
 * goes to the end of its queue; it is disconnected when its turn comes, so that a server has had
 * the time to see a proper end.
 *
 * Must not: be closed while the proxy lives; there are no others.
 */
#ifndef CODESPACE_PROXY_INSIDE_H
#define CODESPACE_PROXY_INSIDE_H

#include "proxy/loop.h"
#include "wire/handover.h"

#include <stddef.h>

#define INSIDE_MAX (HANDOVER_GROUP * HANDOVER_GROUPS)

struct inside_queue {
    int fds[INSIDE_MAX];
    size_t first, n;
};

struct inside {
    struct inside_queue ipv4, ipv6;
};

/* Takes the socket. */
void inside_add(struct inside *in, int family, int fd);
bool inside_has_any(const struct inside *in);

/* A socket for this family (4 or 6), or -1 with errno when all are in use. */
int inside_take(struct inside *in, int family);
/* Back, from a source on the loop; harmless when that is closed. */
void inside_put(struct inside *in, struct loop *l, struct source *s);

#endif
