/* wire/handover: how the sandbox helper hands the network of a sandbox to the egress proxy.
 *
 * Theory. The proxy lives in the host's network and serves sockets that were made in the sandbox's.
 * They come over one local socket (sys/scm), each message with a fixed number of descriptors, in
 * this order: the head with the doors, and what else belongs to the network inside; `inside`
 * messages with HANDOVER_GROUP sockets each, not connected, through which the proxy reaches servers
 * of the sandbox's own loopback (first the IPv4 ones); `publish` messages with one listener of the
 * host's loopback each. Afterwards the same socket carries the proxy's events (proxy/status), one a
 * message, and its end is the proxy's end.
 *
 * Both ends are on one machine and of one version, so the messages are plain structs.
 */
#ifndef CODESPACE_WIRE_HANDOVER_H
#define CODESPACE_WIRE_HANDOVER_H

#include <stdint.h>

#define HANDOVER_MAGIC 0x43534848u /* "HHSC" */

/* Sockets in one message, and messages. A socket serves one connection at a time. */
#define HANDOVER_GROUP 8
#define HANDOVER_GROUPS_IPV4 4
#define HANDOVER_GROUPS_IPV6 2
#define HANDOVER_GROUPS (HANDOVER_GROUPS_IPV4 + HANDOVER_GROUPS_IPV6)

/* Ports of one sandbox that the host can reach. */
#define HANDOVER_PUBLISH_MAX 16

enum handover_door {
    HANDOVER_PROXY,
    HANDOVER_TRANSPARENT,
    HANDOVER_NAMES_UDP,
    HANDOVER_NAMES_TCP,
    HANDOVER_RULES,     /* speaks with the packet filter inside (sys/netrules) */
    HANDOVER_UNREACHED, /* hears what no socket inside takes (wire/icmp) */
    HANDOVER_DOORS
};

struct handover_head {
    uint32_t magic;
    uint32_t publish; /* messages of this kind */
};

struct handover_group {
    uint32_t family; /* AF_INET or AF_INET6 */
};

struct handover_publish {
    uint32_t port; /* inside; the listener has the host's */
};

#endif
