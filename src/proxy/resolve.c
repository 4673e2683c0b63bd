/* proxy/resolve: files, cache and look-ups, see resolve.h. One question is proxy/ask. */
#include "proxy/resolve.h"

#include "base/mem.h"
#include "base/str.h"
#include "proxy/ask.h"
#include "sys/fd.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

socklen_t resolve_sockaddr(const struct net_addr *addr, uint16_t port, struct sockaddr_storage *ret)
{
    *ret = (struct sockaddr_storage){0};
    if (addr->family == 6) {
        struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
        memcpy(&six.sin6_addr, addr->bytes, 16);
        memcpy(ret, &six, sizeof(six));
        return sizeof(six);
    }
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(port)};
    memcpy(&four.sin_addr, addr->bytes, 4);
    memcpy(ret, &four, sizeof(four));
    return sizeof(four);
}

/* Connecting a datagram socket sends nothing, but it fails when there is no route. */
static bool route_exists(const struct net_addr *addr)
{
    struct sockaddr_storage to;
    socklen_t len = resolve_sockaddr(addr, 53, &to);
    autofd int fd = socket(to.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    return fd >= 0 && connect(fd, (struct sockaddr *)&to, len) == 0;
}

void resolver_init(struct resolver *r, struct loop *loop)
{
    static const struct net_addr somewhere = {6, {0x20, 0x01, 0x05, 0x03, [15] = 0x01}};
    *r = (struct resolver){.loop = loop, .has_ipv6 = route_exists(&somewhere)};
    list_init(&r->questions);
    ensure(getrandom(&r->seed, sizeof(r->seed), 0) == (ssize_t)sizeof(r->seed));
}

void resolver_fini(struct resolver *r)
{
    for (size_t i = 0; i < RESOLVE_CACHE_SLOTS; i++)
        free(r->cache[i]);
    free(r->hosts);
}

int resolver_add_server(struct resolver *r, const char *text)
{
    struct host host;
    uint16_t port = 53;
    if (r->n_servers == RESOLVE_SERVERS_MAX)
        return -ENOSPC;
    if (host_parse(text, strlen(text), &host, NULL) < 0 &&
        host_parse_authority(text, strlen(text), 53, &host, &port, NULL) < 0)
        return -EINVAL;
    if (host.kind == HOST_NAME)
        return -EINVAL;
    r->servers[r->n_servers++] = (struct server){host.addr, port};
    return 0;
}

static void read_resolv_line(struct resolver *r, char *line)
{
    char *rest = NULL;
    const char *word = strtok_r(line, " \t\r\n", &rest);
    const char *value = strtok_r(NULL, " \t\r\n", &rest);
    /* A server with a zone ("fe80::1%eth0") or of another odd form is passed over. */
    if (word != NULL && value != NULL && strcmp(word, "nameserver") == 0)
        resolver_add_server(r, value);
}

static void add_host(struct resolver *r, const char *name, const struct net_addr *addr)
{
    struct resolve_entry entry = {.addrs = {*addr}, .n_addrs = 1};
    if (r->n_hosts == RESOLVE_HOSTS_MAX || host_parse(name, strlen(name), &entry.host, NULL) < 0 ||
        entry.host.kind != HOST_NAME)
        return;
    void *items = r->hosts;
    mem_grow(&items, &r->hosts_cap, r->n_hosts + 1, sizeof(*r->hosts));
    r->hosts = items;
    r->hosts[r->n_hosts++] = entry;
}

static void read_hosts_line(struct resolver *r, char *line)
{
    char *rest = NULL;
    struct host addr;
    line[strcspn(line, "#")] = '\0';
    const char *word = strtok_r(line, " \t\r\n", &rest);
    if (word == NULL || host_parse(word, strlen(word), &addr, NULL) < 0 || addr.kind == HOST_NAME)
        return;
    while ((word = strtok_r(NULL, " \t\r\n", &rest)) != NULL)
        add_host(r, word, &addr.addr);
}

static void each_line(struct resolver *r, const char *path,
                      void (*line_read)(struct resolver *r, char *line))
{
    char *line = NULL;
    size_t cap = 0;
    FILE *f = fopen(path, "re");
    if (f == NULL)
        return;
    while (getline(&line, &cap, f) >= 0)
        line_read(r, line);
    free(line);
    fclose(f);
}

void resolver_read_files(struct resolver *r)
{
    if (r->n_servers == 0)
        each_line(r, "/etc/resolv.conf", read_resolv_line);
    if (r->n_servers == 0)
        resolver_add_server(r, "127.0.0.1"); /* resolv.conf(5) */
    each_line(r, "/etc/hosts", read_hosts_line);
}

/* What is being asked about one name, for everybody who wants to know it: a client that opens a
 * hundred connections to one host asks once. */
struct question {
    struct list node; /* in resolver->questions */
    struct resolver *resolver;
    struct resolve_entry found;
    struct ask asks[2];
    unsigned waiting;
    bool no_name; /* a server said so */
    struct list lookups;
    struct deferred gone;
};

struct lookup {
    struct list node;
    struct question *of; /* NULL: answered, and about to be told */
    struct loop *loop;
    lookup_done done;
    void *user;
    struct deferred gone;
};

static struct resolve_entry **slot_of(struct resolver *r, const struct host *host)
{
    uint64_t h = r->seed ^ UINT64_C(0xcbf29ce484222325);
    for (uint16_t i = 0; i < host->len; i++)
        h = (h ^ (unsigned char)host->text[i]) * UINT64_C(0x100000001b3);
    return &r->cache[(h ^ h >> 32) % RESOLVE_CACHE_SLOTS];
}

static void remember(struct resolver *r, const struct resolve_entry *found)
{
    struct resolve_entry **slot = slot_of(r, &found->host);
    if (*slot == NULL)
        *slot = mem_new(struct resolve_entry);
    **slot = *found;
}

static void add_addr(struct resolve_entry *e, const struct net_addr *addr)
{
    if (e->n_addrs < RESOLVE_ADDRS_MAX)
        e->addrs[e->n_addrs++] = *addr;
}

/* From /etc/hosts or from the cache. */
static bool known(struct resolver *r, const struct host *host, struct resolve_entry *ret)
{
    ret->n_addrs = 0;
    for (size_t i = 0; i < r->n_hosts; i++) {
        if (host_eq(&r->hosts[i].host, host))
            add_addr(ret, &r->hosts[i].addrs[0]);
    }
    const struct resolve_entry *cached = *slot_of(r, host);
    if (ret->n_addrs == 0 && cached != NULL && cached->until_ms > r->loop->now_ms &&
        host_eq(&cached->host, host))
        *ret = *cached;
    return ret->n_addrs > 0;
}

static void free_question(struct deferred *d)
{
    free(container_of(d, struct question, gone));
}

static void free_lookup(struct deferred *d)
{
    free(container_of(d, struct lookup, gone));
}

static void end_question(struct question *q)
{
    for (size_t i = 0; i < ARRAY_LEN(q->asks); i++)
        ask_stop(&q->asks[i]);
    list_remove(&q->node);
    q->resolver->n_questions--;
    deferred_init(&q->gone, free_question);
    loop_defer(q->resolver->loop, &q->gone);
}

static void end_lookup(struct lookup *l, struct loop *loop)
{
    list_remove(&l->node);
    deferred_init(&l->gone, free_lookup);
    loop_defer(loop, &l->gone);
}

void lookup_cancel(struct lookup *l)
{
    struct question *q = l->of;
    end_lookup(l, l->loop);
    if (q != NULL && list_empty(&q->lookups))
        end_question(q);
}

/* Whoever is told may cancel others that wait to be told. */
static void tell_all(struct question *q)
{
    struct list telling;
    enum resolve_result result = q->found.n_addrs > 0 ? RESOLVE_FOUND
                                 : q->no_name         ? RESOLVE_NO_NAME
                                                      : RESOLVE_FAILED;
    list_init(&telling);
    while (!list_empty(&q->lookups)) {
        struct lookup *l = container_of(q->lookups.next, struct lookup, node);
        list_remove(&l->node);
        list_append(&telling, &l->node);
        l->of = NULL;
    }
    while (!list_empty(&telling)) {
        struct lookup *l = container_of(telling.next, struct lookup, node);
        end_lookup(l, l->loop);
        l->done(l->user, result, q->found.addrs, q->found.n_addrs);
    }
}

static void answered(struct ask *a, enum resolve_result result, const struct dns_answer *answer)
{
    struct question *q = a->user;
    for (size_t i = 0; result == RESOLVE_FOUND && i < answer->n_addrs; i++)
        add_addr(&q->found, &answer->addrs[i]);
    if (result == RESOLVE_FOUND) {
        uint64_t ttl_s = answer->ttl_s < RESOLVE_TTL_MAX_S ? answer->ttl_s : RESOLVE_TTL_MAX_S;
        uint64_t until = q->resolver->loop->now_ms + ttl_s * 1000;
        q->found.until_ms = until < q->found.until_ms ? until : q->found.until_ms;
    }
    q->no_name |= result == RESOLVE_NO_NAME;
    if (--q->waiting > 0)
        return;
    end_question(q);
    if (q->found.n_addrs > 0)
        remember(q->resolver, &q->found);
    tell_all(q);
}

static struct question *question_of(struct resolver *r, const struct host *host)
{
    list_each (it, &r->questions) {
        struct question *q = container_of(it, struct question, node);
        if (host_eq(&q->found.host, host))
            return q;
    }
    return NULL;
}

static struct question *question_start(struct resolver *r, const struct host *host)
{
    struct question *q = mem_new(struct question);
    *q = (struct question){.resolver = r, .waiting = r->has_ipv6 ? 2 : 1};
    q->found.host = *host;
    q->found.until_ms = UINT64_MAX;
    list_init(&q->lookups);
    list_append(&r->questions, &q->node);
    r->n_questions++;
    ask_init(&q->asks[0], r, DNS_A, answered, q);
    ask_init(&q->asks[1], r, DNS_AAAA, answered, q);
    for (unsigned i = 0, n = q->waiting; i < n; i++)
        ask_start(&q->asks[i], &q->found.host);
    return q;
}

struct lookup *lookup_start(struct resolver *r, const struct host *host, lookup_done done,
                            void *user)
{
    struct resolve_entry entry = {0};
    if (known(r, host, &entry)) {
        done(user, RESOLVE_FOUND, entry.addrs, entry.n_addrs);
        return NULL;
    }
    struct question *q = question_of(r, host);
    if (q == NULL && r->n_questions == RESOLVE_LOOKUPS_MAX) {
        done(user, RESOLVE_BUSY, NULL, 0);
        return NULL;
    }
    if (q == NULL)
        q = question_start(r, host);
    struct lookup *l = mem_new(struct lookup);
    *l = (struct lookup){.of = q, .loop = r->loop, .done = done, .user = user};
    list_append(&q->lookups, &l->node);
    return l;
}
