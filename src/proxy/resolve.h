/* proxy/resolve: names to addresses, by our own stub.
 *
 * Theory. The C library's resolver opens files and loads modules at the first look-up, which is
 * what a hardened process must not be able to do; a helper process for it would be one more program
 * to guard. So the name servers of /etc/resolv.conf and the lines of /etc/hosts are read once at
 * the start, and a look-up is one UDP question for each address family (over TCP when the answer is
 * cut), each from a socket of its own: the kernel picks its port, the id is random, and only the
 * server asked can answer it. Search domains are not applied: what is asked is the name that was
 * judged.
 *
 * Answers are kept for their time to live, at most RESOLVE_TTL_MAX_S: the caller checks every
 * address each time anyway. Must not: be asked for a name before it was judged.
 */
#ifndef CODESPACE_PROXY_RESOLVE_H
#define CODESPACE_PROXY_RESOLVE_H

#include "base/list.h"
#include "proxy/loop.h"
#include "wire/dns.h"

#include <sys/socket.h>

/* As the C library: three servers, two rounds. */
#define RESOLVE_SERVERS_MAX 3
#define RESOLVE_ROUNDS 2
#define RESOLVE_HOSTS_MAX 1024
#define RESOLVE_CACHE_SLOTS 256
#define RESOLVE_TTL_MAX_S 300
/* Names that are asked about at one time, two sockets each. */
#define RESOLVE_LOOKUPS_MAX 128
#define RESOLVE_ADDRS_MAX DNS_ADDRS_MAX

enum resolve_result {
    RESOLVE_FOUND,
    RESOLVE_NO_NAME, /* the name does not exist or has no address */
    RESOLVE_FAILED,  /* no server gave a usable answer in time */
    RESOLVE_BUSY,    /* RESOLVE_LOOKUPS_MAX */
};

struct resolve_entry {
    struct host host;
    struct net_addr addrs[RESOLVE_ADDRS_MAX];
    size_t n_addrs;
    uint64_t until_ms;
};

struct server {
    struct net_addr addr;
    uint16_t port;
};

struct resolver {
    struct loop *loop;
    struct server servers[RESOLVE_SERVERS_MAX];
    size_t n_servers;
    struct resolve_entry *hosts; /* one row a name and address */
    size_t n_hosts;
    size_t hosts_cap;
    struct resolve_entry *cache[RESOLVE_CACHE_SLOTS];
    uint64_t seed;
    bool has_ipv6;         /* there is a route */
    struct list questions; /* under way */
    unsigned n_questions;
};

struct lookup;
typedef void (*lookup_done)(void *user, enum resolve_result result, const struct net_addr *addrs,
                            size_t n);

/* Read the files. */
void resolver_init(struct resolver *r, struct loop *loop);
void resolver_fini(struct resolver *r);
/* Use this server instead of those of the file; -EINVAL when it is none, -ENOSPC after the third.
 */
int resolver_add_server(struct resolver *r, const char *text);
void resolver_read_files(struct resolver *r);

/* Look up a name. Either calls `done` before it returns and returns NULL, or returns what
 * lookup_cancel() takes until `done` was called. */
struct lookup *lookup_start(struct resolver *r, const struct host *host, lookup_done done,
                            void *user);
void lookup_cancel(struct lookup *l);

/* A socket address of an address and a port; its length. */
socklen_t resolve_sockaddr(const struct net_addr *addr, uint16_t port,
                           struct sockaddr_storage *ret);

#endif
