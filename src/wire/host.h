/* wire/host: one strict grammar for hosts, one canonical form, and what kind of place an address
 * is.
 *
 * Theory. Every bypass of a host policy by a "strange" spelling comes from two parsers that read it
 * differently: one that matches and one that dials. Here is the only one. It accepts a host name
 * (letters, digits, hyphen, underscore; labels of 1 to 63; 253 in all; one trailing dot dropped;
 * lower case), a dotted quad of four decimal numbers without leading zeros, and an IPv6 address.
 * The canonical text it returns is what rules are matched with, what is asked of a name server and
 * what is shown. A name whose last label is a number in any base is refused unless it is a strict
 * quad, so "0x7f.1", "2130706433" and "127.1" are nobody. Letters outside ASCII are refused: their
 * canonical form is the "xn--" name, and converting is the client's business.
 *
 * Address classes follow the IANA special-purpose registries (RFC 6890 and its updates), plus the
 * addresses at which clouds hand out credentials. Must not: look anything up.
 */
#ifndef CODESPACE_WIRE_HOST_H
#define CODESPACE_WIRE_HOST_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* RFC 1035: 255 octets on the wire are at most 253 characters of text. */
#define HOST_TEXT_MAX 253
#define HOST_LABEL_MAX 63

/* "[" IPv6 "]" ":" port, or a name and a port. */
#define HOST_AUTHORITY_MAX (HOST_TEXT_MAX + 10)

struct net_addr {
    uint8_t family; /* 4 or 6 */
    uint8_t bytes[16];
};

enum host_kind { HOST_NAME, HOST_IPV4, HOST_IPV6 };

struct host {
    enum host_kind kind;
    uint16_t len;
    char text[HOST_TEXT_MAX + 1]; /* canonical; IPv6 without brackets */
    struct net_addr addr;         /* HOST_IPV4 and HOST_IPV6 */
};

/* X(name, text). PUBLIC is the only class that may be dialled without a grant. */
#define ADDR_CLASS_TABLE(X)                                                                        \
    X(PUBLIC, "public")                                                                            \
    X(UNSPECIFIED, "unspecified")                                                                  \
    X(LOOPBACK, "loopback")                                                                        \
    X(PRIVATE, "private")                                                                          \
    X(LINK_LOCAL, "link_local")                                                                    \
    X(CGNAT, "cgnat")                                                                              \
    X(METADATA, "metadata")                                                                        \
    X(UNIQUE_LOCAL, "unique_local")                                                                \
    X(MAPPED, "mapped")                                                                            \
    X(MULTICAST, "multicast")                                                                      \
    X(BENCHMARK, "benchmark")                                                                      \
    X(DOCUMENTATION, "documentation")                                                              \
    X(RESERVED, "reserved")

enum addr_class {
#define ADDR_CLASS_ENUM(name, text) ADDR_##name,
    ADDR_CLASS_TABLE(ADDR_CLASS_ENUM)
#undef ADDR_CLASS_ENUM
};

struct net_prefix {
    struct net_addr addr;
    uint8_t bits; /* of the family's 32 or 128 */
};

/* A host without port and without brackets, n bytes of it. INVALID_ARGUMENT with the reason; `e`
 * may be NULL. */
int host_parse(const char *text, size_t n, struct host *ret, struct err *e);

/* host, host:port, [IPv6] or [IPv6]:port. No user name. The port is 1 to 65535 without leading
 * zeros; `default_port` when there is none, and 0 there means that it is required. */
int host_parse_authority(const char *text, size_t n, uint16_t default_port, struct host *ret_host,
                         uint16_t *ret_port, struct err *e);

/* The host of an address that came as bytes. */
void host_of_addr(const struct net_addr *addr, struct host *ret);

/* "localhost" or a name below it (RFC 6761: never looked up, always the loopback). */
bool host_is_localhost(const struct host *h);

/* Both are canonical, so equal text is the same host. */
bool host_eq(const struct host *a, const struct host *b);

/* Write "host:port", IPv6 in brackets; at least HOST_AUTHORITY_MAX bytes at `out`. The length. */
size_t host_format_authority(const struct host *h, uint16_t port, char *out);

enum addr_class host_addr_class(const struct net_addr *addr);
const char *host_class_name(enum addr_class class);

/* "10.0.0.0/8", "fd00::/8" or one address. Bits beyond the prefix must be zero. */
int host_parse_prefix(const char *text, struct net_prefix *ret, struct err *e);
bool host_prefix_has(const struct net_prefix *p, const struct net_addr *addr);

#endif
