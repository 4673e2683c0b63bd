/* proxy/standin: names as addresses, for programs that know nothing of proxies.
 *
 * Theory. The name server inside gives an allowed name an address out of 198.18.0.0/15 (RFC 2544:
 * no network has it), and a connection to that address is a connection to that name. Addresses are
 * handed out in order and come round again only after all others, so an address that was forgotten
 * stays nobody's for a long time instead of becoming somebody else's. The table is bounded; the
 * name that was not asked for the longest time goes first.
 *
 * Must not: answer for a name that was not judged, or be taken for the verdict: that is given when
 * the connection comes, with its port.
 */
#ifndef CODESPACE_PROXY_STANDIN_H
#define CODESPACE_PROXY_STANDIN_H

#include "base/list.h"
#include "base/map.h"
#include "wire/host.h"

/* Names with an address at one time. */
#define STANDIN_NAMES_MAX 4096
/* 198.18.0.1 to 198.19.255.254. */
#define STANDIN_FIRST 0xc6120001u
#define STANDIN_COUNT 131070u

struct standin {
    struct list node; /* least recently used first */
    uint32_t address; /* host byte order */
    struct host host;
};

struct standins {
    struct map by_name;
    struct list used;
    struct standin **by_address; /* STANDIN_COUNT pointers, made with the first name */
    uint32_t next;
    size_t n;
};

void standins_init(struct standins *s);
void standins_fini(struct standins *s);

/* The address of a name, perhaps a new one. */
void standin_of(struct standins *s, const struct host *host, struct net_addr *ret);
/* The name of an address, or NULL. Counts as use. */
const struct host *standin_find(struct standins *s, const struct net_addr *addr);
/* Is it one of the range? */
bool standin_is(const struct net_addr *addr);

#endif
