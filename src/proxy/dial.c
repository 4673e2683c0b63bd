/* proxy/dial: see dial.h. */
#include "proxy/dial.h"

#include "base/mem.h"
#include "proxy/proxy.h"
#include "sys/fd.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

static void connect_ready(struct source *s, uint32_t events);
static void connect_expired(struct timer *t);
static void dial_later(struct deferred *d);

void dial_init(struct dial *d, struct proxy *p, void (*done)(struct dial *, enum dial_result))
{
    *d = (struct dial){.proxy = p, .done = done, .source = {-1, connect_ready}};
    timer_init(&d->timer, connect_expired);
    deferred_init(&d->later, dial_later);
}

static void close_source(struct dial *d)
{
    if (d->inside)
        inside_put(&d->proxy->inside, &d->proxy->loop, &d->source);
    else
        loop_close(&d->proxy->loop, &d->source);
}

void dial_stop(struct dial *d)
{
    close_source(d);
    timer_stop(&d->timer);
    list_remove(&d->later.node);
    if (d->lookup != NULL)
        lookup_cancel(steal(d->lookup));
}

static void finish(struct dial *d, enum dial_result result)
{
    timer_stop(&d->timer);
    if (result != DIAL_CONNECTED)
        dial_stop(d);
    d->done(d, result);
}

static enum dial_result result_of(int errnum)
{
    switch (errnum) {
    case ECONNREFUSED:
        return DIAL_REFUSED;
    case ETIMEDOUT:
        return DIAL_TIMEOUT;
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM:
        return DIAL_NO_SOCKET;
    default:
        return DIAL_UNREACHABLE;
    }
}

static int open_socket(struct dial *d, int family)
{
    if (d->inside)
        return inside_take(&d->proxy->inside, family == AF_INET6 ? 6 : 4);
    return socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

/* Begin with one address. 0, or the errno. */
static int begin(struct dial *d, const struct net_addr *addr)
{
    const int on = 1;
    struct sockaddr_storage to;
    socklen_t len = resolve_sockaddr(addr, d->port, &to);
    int fd = open_socket(d, to.ss_family);
    if (fd < 0)
        return errno;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    int error = connect(fd, (struct sockaddr *)&to, len) < 0 && errno != EINPROGRESS ? errno : 0;
    if (error == 0)
        error = -loop_add(&d->proxy->loop, &d->source, fd);
    if (error == 0)
        return 0;
    if (d->inside)
        inside_add(&d->proxy->inside, to.ss_family, fd);
    else
        close(fd);
    return error;
}

static void try_next(struct dial *d)
{
    close_source(d);
    while (d->next < d->n_addrs) {
        int error = begin(d, &d->addrs[d->next++]);
        if (error == 0) {
            timer_start(&d->proxy->loop, &d->timer, LOOP_DIAL);
            return;
        }
        d->worst = result_of(error);
    }
    finish(d, d->worst);
}

static void connect_ready(struct source *s, uint32_t events)
{
    struct dial *d = container_of(s, struct dial, source);
    int error = 0;
    socklen_t len = sizeof(error);
    if (!(events & (EPOLLOUT | EPOLLERR | EPOLLHUP)))
        return;
    if (getsockopt(s->fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
        error = errno;
    if (error == 0 && (events & EPOLLHUP))
        error = ECONNREFUSED; /* a fresh socket before connect() took hold */
    if (error == 0) {
        finish(d, DIAL_CONNECTED);
        return;
    }
    d->worst = result_of(error);
    try_next(d);
}

static void connect_expired(struct timer *t)
{
    struct dial *d = container_of(t, struct dial, timer);
    d->worst = DIAL_TIMEOUT;
    try_next(d);
}

/* Judge every address; false when one is refused. */
static bool judge_all(struct dial *d, const struct net_addr *addrs, size_t n)
{
    struct egress_verdict verdict;
    for (size_t i = 0; i < n; i++) {
        egress_judge_addr(&d->proxy->policy, d->target, &d->verdict, &addrs[i], &verdict);
        if (verdict.reason != EGRESS_ALLOWED) {
            d->verdict = verdict;
            return false;
        }
    }
    return true;
}

static void dial_addrs(struct dial *d, const struct net_addr *addrs, size_t n)
{
    if (!judge_all(d, addrs, n)) {
        finish(d, DIAL_NOT_PERMITTED);
        return;
    }
    d->n_addrs = 0;
    for (uint8_t family = 4; family <= 6; family += 2) {
        for (size_t i = 0; i < n && d->n_addrs < DIAL_ADDRS_MAX; i++) {
            if (addrs[i].family == family)
                d->addrs[d->n_addrs++] = addrs[i];
        }
    }
    d->next = 0;
    d->worst = DIAL_UNREACHABLE;
    try_next(d);
}

static void looked_up(void *user, enum resolve_result result, const struct net_addr *addrs,
                      size_t n)
{
    static const enum dial_result results[] = {
        [RESOLVE_NO_NAME] = DIAL_NO_NAME,
        [RESOLVE_FAILED] = DIAL_NO_ANSWER,
        [RESOLVE_BUSY] = DIAL_BUSY,
    };
    struct dial *d = user;
    d->lookup = NULL;
    if (result == RESOLVE_FOUND)
        dial_addrs(d, addrs, n);
    else
        finish(d, results[result]);
}

/* A server of the sandbox's own: nothing is left that there would be to judge. */
static void dial_inside(struct dial *d)
{
    static const struct net_addr loopback[] = {{4, {127, 0, 0, 1}}, {6, {[15] = 1}}};
    bool literal = d->target->host.kind != HOST_NAME;
    d->n_addrs = literal ? 1 : ARRAY_LEN(loopback);
    memcpy(d->addrs, literal ? &d->target->host.addr : loopback, d->n_addrs * sizeof(*d->addrs));
    d->next = 0;
    d->worst = DIAL_UNREACHABLE;
    try_next(d);
}

static void dial_localhost(struct dial *d)
{
    static const struct net_addr loopback[] = {{4, {127, 0, 0, 1}}, {6, {[15] = 1}}};
    dial_addrs(d, loopback, ARRAY_LEN(loopback));
}

/* The operator's proxy is where he says it is; its address is not judged. */
static void upstream_found(void *user, enum resolve_result result, const struct net_addr *addrs,
                           size_t n)
{
    struct dial *d = user;
    d->lookup = NULL;
    d->n_addrs = n < DIAL_ADDRS_MAX ? n : DIAL_ADDRS_MAX;
    if (n > 0)
        memcpy(d->addrs, addrs, d->n_addrs * sizeof(*addrs));
    d->next = 0;
    d->worst = DIAL_UNREACHABLE;
    if (result == RESOLVE_FOUND)
        try_next(d);
    else
        finish(d, DIAL_NO_ANSWER);
}

static void dial_upstream(struct dial *d)
{
    const struct host *up = &d->proxy->policy.upstream;
    d->port = d->proxy->policy.upstream_port;
    if (d->target->host.kind != HOST_NAME && !judge_all(d, &d->target->host.addr, 1)) {
        finish(d, DIAL_NOT_PERMITTED);
        return;
    }
    if (up->kind != HOST_NAME) {
        upstream_found(d, RESOLVE_FOUND, &up->addr, 1);
    } else if (host_is_localhost(up)) {
        static const struct net_addr loopback = {4, {127, 0, 0, 1}};
        upstream_found(d, RESOLVE_FOUND, &loopback, 1);
    } else {
        d->lookup = lookup_start(&d->proxy->resolver, up, upstream_found, d);
    }
}

static void dial_later(struct deferred *deferred)
{
    struct dial *d = container_of(deferred, struct dial, later);
    if (d->inside)
        dial_inside(d);
    else if (host_is_localhost(&d->target->host))
        dial_localhost(d);
    else if (d->proxy->policy.upstream_port != 0)
        dial_upstream(d);
    else if (d->target->host.kind != HOST_NAME)
        dial_addrs(d, &d->target->host.addr, 1);
    else
        d->lookup = lookup_start(&d->proxy->resolver, &d->target->host, looked_up, d);
}

void dial_start(struct dial *d, const struct egress_target *target,
                const struct egress_verdict *verdict)
{
    d->target = target;
    d->verdict = *verdict;
    d->port = target->port;
    loop_defer(&d->proxy->loop, &d->later);
}
