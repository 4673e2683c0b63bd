/* wire/icmp: which packet an ICMP "destination unreachable" is about.
 *
 * Theory. Inside a sandbox's network every IPv4 address is local, so a datagram that no socket
 * takes is answered by the kernel itself, and the answer holds the beginning of the datagram. A raw
 * socket reads it. Commands have no way to make such a packet; what is in it was theirs all the
 * same.
 *
 * Must not: read beyond what is there, whatever the lengths in the packet say.
 */
#ifndef CODESPACE_WIRE_ICMP_H
#define CODESPACE_WIRE_ICMP_H

#include "wire/host.h"

#include <stddef.h>
#include <stdint.h>

/* The longest IPv4 header twice, the ICMP header and eight bytes: more is not looked at. */
#define ICMP_PACKET_MAX 256

struct icmp_unreached {
    struct net_addr to;
    uint16_t to_port;
    uint16_t from_port;
};

/* An IPv4 packet as a raw socket reads it. 0, or -EBADMSG: not a UDP datagram that had no taker. */
int icmp_unreached_read(const void *packet, size_t n, struct icmp_unreached *ret);

#endif
