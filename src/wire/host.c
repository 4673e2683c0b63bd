/* wire/host: see host.h. */
#include "wire/host.h"

#include "base/mem.h"
#include "base/num.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_hex(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* The character of a name as it is written canonically, or 0. */
static char name_char(char c)
{
    if (c >= 'A' && c <= 'Z')
        return (char)(c - 'A' + 'a');
    return (c >= 'a' && c <= 'z') || is_digit(c) || c == '-' || c == '_' ? c : '\0';
}

/* A number to some reader of addresses: decimal, or hexadecimal after 0x (also "0x" alone). */
static bool is_number(const char *label, size_t n)
{
    bool hex = n >= 2 && label[0] == '0' && (label[1] == 'x' || label[1] == 'X');
    for (size_t i = hex ? 2 : 0; i < n; i++) {
        if (hex ? !is_hex(label[i]) : !is_digit(label[i]))
            return false;
    }
    return true;
}

static int check_label(const char *label, size_t n, struct err *e)
{
    if (n == 0)
        return err_set(e, ERR_INVALID_ARGUMENT, "the host name has an empty label");
    if (n > HOST_LABEL_MAX)
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "a label of the host name is %zu bytes long; at most %d are possible", n,
                       HOST_LABEL_MAX);
    if (label[0] == '-' || label[n - 1] == '-')
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "a label of the host name begins or ends with a hyphen");
    return 0;
}

/* Copy the name in lower case and check it. `n` does not count a trailing dot. */
static int parse_name(const char *text, size_t n, struct host *ret, struct err *e)
{
    size_t label = 0;
    for (size_t i = 0; i <= n; i++) {
        if (i == n || text[i] == '.') {
            if (check_label(ret->text + label, i - label, e) < 0)
                return -1;
            ret->text[i] = i == n ? '\0' : '.';
            label = i == n ? label : i + 1;
            continue;
        }
        ret->text[i] = name_char(text[i]);
        if (ret->text[i] == '\0')
            return err_set(e, ERR_INVALID_ARGUMENT,
                           "byte 0x%02x is not possible in a host name (letters, digits, '-', '_' "
                           "and '.'; other alphabets in their xn-- form)",
                           (unsigned char)text[i]);
    }
    if (is_number(ret->text + label, n - label))
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "a host that ends in a number must be four decimal numbers without leading "
                       "zeros, such as 192.0.2.1");
    ret->kind = HOST_NAME;
    ret->len = (uint16_t)n;
    return 0;
}

/* inet_pton is strict in both families: no zone, no leading zeros, no other base. */
static bool parse_address(const char *text, size_t n, struct net_addr *ret)
{
    char copy[INET6_ADDRSTRLEN];
    if (n == 0 || n >= sizeof(copy))
        return false;
    for (size_t i = 0; i < n; i++) {
        if (!is_hex(text[i]) && text[i] != '.' && text[i] != ':')
            return false;
    }
    memcpy(copy, text, n);
    copy[n] = '\0';
    struct net_addr addr = {.family = memchr(copy, ':', n) != NULL ? 6 : 4};
    if (inet_pton(addr.family == 6 ? AF_INET6 : AF_INET, copy, addr.bytes) != 1)
        return false;
    *ret = addr;
    return true;
}

void host_of_addr(const struct net_addr *addr, struct host *ret)
{
    *ret = (struct host){.kind = addr->family == 6 ? HOST_IPV6 : HOST_IPV4, .addr = *addr};
    ensure(inet_ntop(addr->family == 6 ? AF_INET6 : AF_INET, addr->bytes, ret->text,
                     sizeof(ret->text)) != NULL);
    ret->len = (uint16_t)strlen(ret->text);
}

int host_parse(const char *text, size_t n, struct host *ret, struct err *e)
{
    struct host out = {0};
    if (parse_address(text, n, &out.addr)) {
        host_of_addr(&out.addr, ret);
        return 0;
    }
    if (n > 1 && text[n - 1] == '.')
        n--;
    if (n == 0)
        return err_set(e, ERR_INVALID_ARGUMENT, "the host is empty");
    if (n > HOST_TEXT_MAX)
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "the host is %zu bytes long; at most %d are possible", n, HOST_TEXT_MAX);
    if (parse_name(text, n, &out, e) < 0)
        return -1;
    *ret = out;
    return 0;
}

static int parse_port(const char *text, size_t n, uint16_t *ret, struct err *e)
{
    char copy[6];
    uint64_t port = 0;
    if (n > 0 && n < sizeof(copy) && text[0] != '0') {
        memcpy(copy, text, n);
        copy[n] = '\0';
        if (num_parse_u64(copy, 1, UINT16_MAX, &port) == 0) {
            *ret = (uint16_t)port;
            return 0;
        }
    }
    return err_set(e, ERR_INVALID_ARGUMENT, "the port is not a number from 1 to 65535");
}

static int parse_port_part(const char *text, size_t n, uint16_t fallback, uint16_t *ret,
                           struct err *e)
{
    if (n == 0 && fallback == 0)
        return err_set(e, ERR_INVALID_ARGUMENT, "a port is required");
    if (n == 0) {
        *ret = fallback;
        return 0;
    }
    if (text[0] != ':')
        return err_set(e, ERR_INVALID_ARGUMENT, "after the host only ':' and a port may follow");
    return parse_port(text + 1, n - 1, ret, e);
}

int host_parse_authority(const char *text, size_t n, uint16_t default_port, struct host *ret_host,
                         uint16_t *ret_port, struct err *e)
{
    struct host host = {0};
    bool bracket = n > 0 && text[0] == '[';
    const char *end = memchr(text, bracket ? ']' : ':', n);
    if (bracket && end == NULL)
        return err_set(e, ERR_INVALID_ARGUMENT, "the host begins with '[' and has no ']'");
    size_t len = end == NULL ? n : (size_t)(end - text);
    size_t port_at = bracket ? len + 1 : len;
    if (bracket) {
        if (!parse_address(text + 1, len - 1, &host.addr) || host.addr.family != 6)
            return err_set(e, ERR_INVALID_ARGUMENT, "inside [ ] only an IPv6 address is possible");
        host_of_addr(&host.addr, &host);
    } else if (host_parse(text, len, &host, e) < 0) {
        return -1;
    }
    if (parse_port_part(text + port_at, n - port_at, default_port, ret_port, e) < 0)
        return -1;
    *ret_host = host;
    return 0;
}

bool host_is_localhost(const struct host *h)
{
    static const char name[] = "localhost";
    size_t n = sizeof(name) - 1;
    if (h->kind != HOST_NAME || h->len < n || memcmp(h->text + h->len - n, name, n) != 0)
        return false;
    return h->len == n || h->text[h->len - n - 1] == '.';
}

bool host_eq(const struct host *a, const struct host *b)
{
    return a->len == b->len && memcmp(a->text, b->text, a->len) == 0;
}

size_t host_format_authority(const struct host *h, uint16_t port, char *out)
{
    bool six = h->kind == HOST_IPV6;
    int n = snprintf(out, HOST_AUTHORITY_MAX, "%s%s%s:%u", six ? "[" : "", h->text, six ? "]" : "",
                     port);
    ensure(n > 0 && n < HOST_AUTHORITY_MAX);
    return (size_t)n;
}

struct class_row {
    struct net_prefix prefix;
    enum addr_class class;
};

#define V4(a, b, c, d, n, cls)                                                                     \
    {                                                                                              \
        {{4, {a, b, c, d}}, n}, ADDR_##cls                                                         \
    }
#define V6(n, cls, ...)                                                                            \
    {                                                                                              \
        {{6, {__VA_ARGS__}}, n}, ADDR_##cls                                                        \
    }

/* First match decides, so the narrow rows stand before the wide ones. */
static const struct class_row class_rows[] = {
    V4(169, 254, 169, 254, 32, METADATA), /* AWS, Azure, GCP, OpenStack, DigitalOcean */
    V4(169, 254, 170, 0, 24, METADATA),   /* AWS ECS and EKS credentials */
    V4(100, 100, 100, 200, 32, METADATA), /* Alibaba */
    V4(192, 0, 0, 192, 32, METADATA),     /* Oracle, classic */
    V4(168, 63, 129, 16, 32, METADATA),   /* Azure's wire server, a public address */
    V4(0, 0, 0, 0, 8, UNSPECIFIED),
    V4(10, 0, 0, 0, 8, PRIVATE),
    V4(100, 64, 0, 0, 10, CGNAT),
    V4(127, 0, 0, 0, 8, LOOPBACK),
    V4(169, 254, 0, 0, 16, LINK_LOCAL),
    V4(172, 16, 0, 0, 12, PRIVATE),
    V4(192, 0, 0, 0, 24, RESERVED),
    V4(192, 0, 2, 0, 24, DOCUMENTATION),
    V4(192, 88, 99, 0, 24, RESERVED),
    V4(192, 168, 0, 0, 16, PRIVATE),
    V4(198, 18, 0, 0, 15, BENCHMARK),
    V4(198, 51, 100, 0, 24, DOCUMENTATION),
    V4(203, 0, 113, 0, 24, DOCUMENTATION),
    V4(224, 0, 0, 0, 4, MULTICAST),
    V4(240, 0, 0, 0, 4, RESERVED),
    V6(128, UNSPECIFIED, 0),
    V6(128, LOOPBACK, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1),
    V6(96, MAPPED, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff),
    V6(96, MAPPED, 0),
    V6(128, METADATA, 0xfd, 0x00, 0x0e, 0xc2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x02, 0x54),
    V6(7, UNIQUE_LOCAL, 0xfc),
    V6(10, LINK_LOCAL, 0xfe, 0x80),
    V6(8, MULTICAST, 0xff),
    V6(32, MAPPED, 0x20, 0x01), /* Teredo carries an IPv4 address */
    V6(16, MAPPED, 0x20, 0x02), /* 6to4 */
    V6(32, DOCUMENTATION, 0x20, 0x01, 0x0d, 0xb8),
    V6(20, DOCUMENTATION, 0x3f, 0xff),
    V6(23, RESERVED, 0x20, 0x01),
    V6(3, PUBLIC, 0x20),
    V6(0, RESERVED, 0), /* what IANA has not given out as global unicast */
};

/* NAT64 (RFC 6052): the network's translator dials the IPv4 address in the last four bytes. */
static const struct net_prefix nat64 = {{6, {0x00, 0x64, 0xff, 0x9b}}, 96};

enum addr_class host_addr_class(const struct net_addr *addr)
{
    if (host_prefix_has(&nat64, addr)) {
        struct net_addr inner = {.family = 4};
        memcpy(inner.bytes, addr->bytes + 12, 4);
        return host_addr_class(&inner);
    }
    for (size_t i = 0; i < ARRAY_LEN(class_rows); i++) {
        if (host_prefix_has(&class_rows[i].prefix, addr))
            return class_rows[i].class;
    }
    return ADDR_PUBLIC;
}

const char *host_class_name(enum addr_class class)
{
    static const char *const names[] = {
#define ADDR_CLASS_TEXT(name, text) [ADDR_##name] = text,
        ADDR_CLASS_TABLE(ADDR_CLASS_TEXT)
#undef ADDR_CLASS_TEXT
    };
    return names[class];
}

bool host_prefix_has(const struct net_prefix *p, const struct net_addr *addr)
{
    size_t whole = p->bits / 8;
    unsigned rest = p->bits % 8;
    if (p->addr.family != addr->family || memcmp(p->addr.bytes, addr->bytes, whole) != 0)
        return false;
    unsigned mask = 0xffu << (8 - rest) & 0xffu;
    return rest == 0 || ((p->addr.bytes[whole] ^ addr->bytes[whole]) & mask) == 0;
}

int host_parse_prefix(const char *text, struct net_prefix *ret, struct err *e)
{
    struct net_prefix out = {0};
    const char *slash = strchr(text, '/');
    size_t n = slash == NULL ? strlen(text) : (size_t)(slash - text);
    if (!parse_address(text, n, &out.addr))
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "\"%s\" is not an address or a prefix such as 10.0.0.0/8", text);
    unsigned max = out.addr.family == 6 ? 128 : 32;
    uint64_t bits = max;
    if (slash != NULL && num_parse_u64(slash + 1, 0, max, &bits) < 0)
        return err_set(e, ERR_INVALID_ARGUMENT, "\"%s\": the prefix length must be 0 to %u", text,
                       max);
    out.bits = (uint8_t)bits;
    for (unsigned i = out.bits; i < max; i++) {
        if (out.addr.bytes[i / 8] & (0x80u >> i % 8))
            return err_set(
                e, ERR_INVALID_ARGUMENT,
                "\"%s\" has bits set after the first %u; write the network's own address", text,
                out.bits);
    }
    *ret = out;
    return 0;
}
