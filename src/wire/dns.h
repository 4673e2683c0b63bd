/* wire/dns: DNS messages (RFC 1035), the few that the proxy needs, both ways and bounded.
 *
 * Theory. Inside the sandbox the proxy is a name server: it reads a query and writes an answer with
 * one address, or none, or "no such name". Towards the host's name servers it is a stub: it writes
 * a query and reads an answer's addresses along the chain of aliases. Names go through wire/host; a
 * label with a dot, a NUL or any other odd byte in it is never turned into text that another reader
 * would split differently.
 *
 * Must not: follow a compression pointer that does not point backwards, or trust any count.
 */
#ifndef CODESPACE_WIRE_DNS_H
#define CODESPACE_WIRE_DNS_H

#include "base/buf.h"
#include "wire/host.h"

/* A UDP answer without EDNS; over TCP a message may be longer, and we read at most this much. */
#define DNS_UDP_MAX 512
#define DNS_MESSAGE_MAX 4096
#define DNS_ADDRS_MAX 16
#define DNS_ALIASES_MAX 8

enum dns_type { DNS_A = 1, DNS_CNAME = 5, DNS_PTR = 12, DNS_AAAA = 28, DNS_ANY = 255 };
enum dns_rcode {
    DNS_NOERROR = 0,
    DNS_FORMERR = 1,
    DNS_SERVFAIL = 2,
    DNS_NXDOMAIN = 3,
    DNS_NOTIMP = 4,
    DNS_REFUSED = 5,
};

struct dns_query {
    uint16_t id;
    uint16_t type;
    bool recursion_desired;
    bool has_host; /* the name is a host by wire/host; others exist for nobody */
    struct host host;
    const unsigned char *question; /* as it came, to be repeated; within the message */
    size_t question_len;
    enum dns_rcode rcode; /* what to answer when parsing fails */
};

/* Read a query of class IN with one question. -EINVAL: answer ret->rcode; -EBADMSG: not a query at
 * all, stay silent. */
int dns_query_parse(const void *data, size_t n, struct dns_query *ret);

/* Append the answer: `addr` (IPv4) as an A record with `ttl_s`, or no record when it is NULL. */
void dns_answer_write(const struct dns_query *q, enum dns_rcode rcode, const struct net_addr *addr,
                      uint32_t ttl_s, struct buf *out);

/* Append a query for a name. */
void dns_query_write(uint16_t id, const struct host *host, enum dns_type type, struct buf *out);

struct dns_answer {
    enum dns_rcode rcode;
    bool truncated; /* ask again over TCP */
    struct net_addr addrs[DNS_ADDRS_MAX];
    size_t n_addrs;
    uint32_t ttl_s; /* the smallest of the records used */
};

/* Read the answer to exactly that query. -EBADMSG: malformed, or the answer to something else. */
int dns_answer_parse(const void *data, size_t n, uint16_t id, const struct host *host,
                     enum dns_type type, struct dns_answer *ret);

#endif
