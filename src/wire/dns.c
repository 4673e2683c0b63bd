/* wire/dns: see dns.h. */
#include "wire/dns.h"

#include "base/mem.h"

#include <errno.h>
#include <string.h>

enum { HEADER = 12, CLASS_IN = 1, FLAG_QR = 0x8000, FLAG_TC = 0x0200, FLAG_RD = 0x0100 };

static uint16_t get16(const unsigned char *p)
{
    return (uint16_t)(p[0] << 8 | p[1]);
}

static uint32_t get32(const unsigned char *p)
{
    return (uint32_t)get16(p) << 16 | get16(p + 2);
}

static void put16(struct buf *out, uint16_t v)
{
    const char two[2] = {(char)(v >> 8), (char)v};
    buf_put(out, two, 2);
}

static void put32(struct buf *out, uint32_t v)
{
    put16(out, (uint16_t)(v >> 16));
    put16(out, (uint16_t)v);
}

/* A name as text with dots, "" for the root. A label with a byte that no host name has makes the
 * text unusable ("odd"), but its end is found all the same. */
struct name {
    char text[HOST_TEXT_MAX + 3];
    size_t len;
    bool odd;
};

static int add_label(struct name *name, const unsigned char *label, size_t n)
{
    if (name->len + n + 1 > HOST_TEXT_MAX + 1)
        return -EBADMSG;
    for (size_t i = 0; i < n; i++) {
        unsigned char c = label[i];
        if (c <= 0x20 || c >= 0x7f || c == '.')
            name->odd = true;
        name->text[name->len++] = (char)(c >= 'A' && c <= 'Z' ? c + 0x20 : c);
    }
    name->text[name->len++] = '.';
    return 0;
}

/* Read the name at `at`; the offset after it, or -EBADMSG. Pointers go backwards only, so the walk
 * ends; the length limit ends it earlier. */
static ssize_t read_name(const unsigned char *d, size_t n, size_t at, struct name *ret)
{
    size_t end = 0; /* after the first pointer */
    size_t bound = at;
    *ret = (struct name){.len = 0};
    while (at < n && d[at] != 0) {
        size_t len = d[at];
        if (len >= 0xc0) {
            if (at + 1 >= n)
                return -EBADMSG;
            size_t to = (size_t)(len & 0x3f) << 8 | d[at + 1];
            if (to >= bound)
                return -EBADMSG;
            end = end == 0 ? at + 2 : end;
            bound = to;
            at = to;
            continue;
        }
        if (len > HOST_LABEL_MAX || at + 1 + len > n || add_label(ret, d + at + 1, len) < 0)
            return -EBADMSG;
        at += 1 + len;
    }
    if (at >= n)
        return -EBADMSG;
    if (ret->len > 0)
        ret->len--; /* the last dot */
    return (ssize_t)(end == 0 ? at + 1 : end);
}

static bool name_is(const struct name *name, const struct host *host)
{
    return !name->odd && name->len == host->len && memcmp(name->text, host->text, host->len) == 0;
}

static int query_fault(struct dns_query *q, enum dns_rcode rcode)
{
    q->rcode = rcode;
    return -EINVAL;
}

int dns_query_parse(const void *data, size_t n, struct dns_query *ret)
{
    const unsigned char *d = data;
    struct name name;
    if (n < HEADER || n > DNS_MESSAGE_MAX || (get16(d + 2) & FLAG_QR))
        return -EBADMSG;
    struct dns_query q = {.id = get16(d), .recursion_desired = get16(d + 2) & FLAG_RD};
    *ret = q;
    if ((get16(d + 2) >> 11 & 0xf) != 0)
        return query_fault(ret, DNS_NOTIMP);
    if (get16(d + 4) != 1)
        return query_fault(ret, DNS_FORMERR);
    ssize_t end = read_name(d, n, HEADER, &name);
    if (end < 0 || (size_t)end + 4 > n)
        return query_fault(ret, DNS_FORMERR);
    q.type = get16(d + end);
    q.question = d + HEADER;
    q.question_len = (size_t)end + 4 - HEADER;
    q.has_host = !name.odd && host_parse(name.text, name.len, &q.host, NULL) == 0 &&
                 q.host.kind == HOST_NAME;
    *ret = q;
    return get16(d + end + 2) == CLASS_IN ? 0 : query_fault(ret, DNS_REFUSED);
}

void dns_answer_write(const struct dns_query *q, enum dns_rcode rcode, const struct net_addr *addr,
                      uint32_t ttl_s, struct buf *out)
{
    put16(out, q->id);
    /* Response, recursion available; authoritative: nobody else could tell better. */
    put16(out, (uint16_t)(0x8480 | (q->recursion_desired ? FLAG_RD : 0) | rcode));
    put16(out, q->question_len > 0);
    put16(out, addr != NULL);
    put32(out, 0);
    buf_put(out, q->question, q->question_len);
    if (addr == NULL)
        return;
    put16(out, 0xc000 | HEADER);
    put16(out, DNS_A);
    put16(out, CLASS_IN);
    put32(out, ttl_s);
    put16(out, 4);
    buf_put(out, addr->bytes, 4);
}

void dns_query_write(uint16_t id, const struct host *host, enum dns_type type, struct buf *out)
{
    put16(out, id);
    put16(out, FLAG_RD);
    put16(out, 1);
    put16(out, 0);
    put32(out, 0);
    for (size_t at = 0; at < host->len;) {
        const char *dot = memchr(host->text + at, '.', host->len - at);
        size_t len = dot == NULL ? host->len - at : (size_t)(dot - host->text) - at;
        buf_putc(out, (char)len);
        buf_put(out, host->text + at, len);
        at += len + 1;
    }
    buf_putc(out, 0);
    put16(out, (uint16_t)type);
    put16(out, CLASS_IN);
}

struct record {
    struct name owner;
    uint16_t type;
    uint16_t class;
    uint32_t ttl_s;
    size_t data_at;
    size_t data_len;
};

/* The record at *at; moves *at behind it. */
static int read_record(const unsigned char *d, size_t n, size_t *at, struct record *ret)
{
    ssize_t end = read_name(d, n, *at, &ret->owner);
    if (end < 0 || (size_t)end + 10 > n)
        return -EBADMSG;
    ret->type = get16(d + end);
    ret->class = get16(d + end + 2);
    ret->ttl_s = get32(d + end + 4);
    ret->data_len = get16(d + end + 8);
    ret->data_at = (size_t)end + 10;
    if (ret->data_at + ret->data_len > n)
        return -EBADMSG;
    *at = ret->data_at + ret->data_len;
    return 0;
}

struct chain {
    struct name name; /* the alias that is looked for now */
    bool moved;
};

static int use_record(const unsigned char *d, size_t n, const struct record *r, enum dns_type type,
                      struct chain *chain, struct dns_answer *ret)
{
    if (r->class != CLASS_IN || r->owner.odd || r->owner.len != chain->name.len ||
        memcmp(r->owner.text, chain->name.text, r->owner.len) != 0)
        return 0;
    size_t len = type == DNS_AAAA ? 16 : 4;
    if (r->type == DNS_CNAME) {
        if (read_name(d, n, r->data_at, &chain->name) < 0)
            return -EBADMSG;
        chain->moved = true;
    } else if (r->type == type && r->data_len == len && ret->n_addrs < DNS_ADDRS_MAX) {
        struct net_addr *addr = &ret->addrs[ret->n_addrs++];
        *addr = (struct net_addr){.family = type == DNS_AAAA ? 6 : 4};
        memcpy(addr->bytes, d + r->data_at, len);
    } else {
        return 0;
    }
    ret->ttl_s = r->ttl_s < ret->ttl_s ? r->ttl_s : ret->ttl_s;
    return 0;
}

/* One walk over the answer section. */
static int walk(const unsigned char *d, size_t n, size_t at, enum dns_type type,
                struct chain *chain, struct dns_answer *ret)
{
    struct record record;
    chain->moved = false;
    for (unsigned left = get16(d + 6); left > 0; left--) {
        if (read_record(d, n, &at, &record) < 0 || use_record(d, n, &record, type, chain, ret) < 0)
            return -EBADMSG;
    }
    return 0;
}

int dns_answer_parse(const void *data, size_t n, uint16_t id, const struct host *host,
                     enum dns_type type, struct dns_answer *ret)
{
    const unsigned char *d = data;
    struct chain chain = {0};
    struct dns_answer out = {.ttl_s = UINT32_MAX};
    if (n < HEADER || get16(d) != id || !(get16(d + 2) & FLAG_QR) || get16(d + 4) != 1)
        return -EBADMSG;
    ssize_t at = read_name(d, n, HEADER, &chain.name);
    if (at < 0 || (size_t)at + 4 > n || !name_is(&chain.name, host) || get16(d + at) != type ||
        get16(d + at + 2) != CLASS_IN)
        return -EBADMSG;
    out.rcode = (enum dns_rcode)(get16(d + 2) & 0xf);
    out.truncated = get16(d + 2) & FLAG_TC;
    /* Records are usually in the order of the chain; when they are not, walk again. */
    for (int i = 0; i < DNS_ALIASES_MAX && !out.truncated && out.n_addrs == 0; i++) {
        if (walk(d, n, (size_t)at + 4, type, &chain, &out) < 0)
            return -EBADMSG;
        if (!chain.moved)
            break;
    }
    *ret = out;
    return 0;
}
