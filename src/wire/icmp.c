/* wire/icmp: see icmp.h. */
#include "wire/icmp.h"

#include <errno.h>
#include <string.h>

#define IP_HEADER_MIN 20
#define IP_PROTOCOL_AT 9
#define IP_TO_AT 16
#define ICMP_HEADER 8
#define ICMP_UNREACHABLE 3
#define PROTOCOL_ICMP 1
#define PROTOCOL_UDP 17

/* The length of the header at the beginning, for that protocol; 0 = it is none. */
static size_t header_len(const unsigned char *p, size_t n, unsigned protocol)
{
    size_t len = n < IP_HEADER_MIN ? 0 : (size_t)(p[0] & 0x0f) * 4;
    if (len < IP_HEADER_MIN || len > n || p[0] >> 4 != 4 || p[IP_PROTOCOL_AT] != protocol)
        return 0;
    return len;
}

int icmp_unreached_read(const void *packet, size_t n, struct icmp_unreached *ret)
{
    const unsigned char *p = packet;
    size_t outer = header_len(p, n, PROTOCOL_ICMP);
    if (outer == 0 || n - outer < ICMP_HEADER || p[outer] != ICMP_UNREACHABLE)
        return -EBADMSG;
    p += outer + ICMP_HEADER;
    n -= outer + ICMP_HEADER;
    size_t inner = header_len(p, n, PROTOCOL_UDP);
    if (inner == 0 || n - inner < 4)
        return -EBADMSG;
    *ret = (struct icmp_unreached){.to.family = 4};
    memcpy(ret->to.bytes, p + IP_TO_AT, 4);
    ret->from_port = (uint16_t)(p[inner] << 8 | p[inner + 1]);
    ret->to_port = (uint16_t)(p[inner + 2] << 8 | p[inner + 3]);
    return 0;
}
