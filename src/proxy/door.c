/* proxy/door: see door.h. */
#include "proxy/door.h"

#include "base/mem.h"
#include "proxy/conn.h"
#include "sys/fd.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

/* After netinet/in.h, whose names it would define again. */
#include <linux/netfilter_ipv4.h>

static void refuse(struct door *d, int fd)
{
    struct proxy *p = d->proxy;
    char text[256];
    if (!p->at_limit)
        status_limit(&p->status, "PROXY_CONNECTIONS_MAX", p->conns_max);
    p->at_limit = true;
    int n =
        snprintf(text, sizeof(text),
                 "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n"
                 "x-codespace-error: PROXY_CONNECTIONS_MAX=%u\r\n\r\n",
                 p->conns_max);
    if (d->kind == DOOR_PROXY)
        (void)fd_send(fd, text, (size_t)n);
}

/* Where the client meant to connect: what the packet filter rewrote, or, when the connection was
 * taken without rewriting (TPROXY, or a local route for the range), the socket's own address. */
static int original_destination(int fd, struct net_addr *ret_addr, uint16_t *ret_port)
{
    struct sockaddr_storage storage = {0};
    socklen_t len = sizeof(storage);
    if (getsockopt(fd, IPPROTO_IP, SO_ORIGINAL_DST, &storage, &len) < 0) {
        len = sizeof(storage);
        if (getsockname(fd, (struct sockaddr *)&storage, &len) < 0)
            return -errno;
    }
    if (storage.ss_family != AF_INET)
        return -EAFNOSUPPORT;
    struct sockaddr_in in;
    memcpy(&in, &storage, sizeof(in));
    *ret_addr = (struct net_addr){.family = 4};
    memcpy(ret_addr->bytes, &in.sin_addr, 4);
    *ret_port = ntohs(in.sin_port);
    return 0;
}

static void take(struct door *d, int accepted)
{
    autofd int fd = accepted;
    struct net_addr addr;
    uint16_t port = 0;
    if (d->proxy->n_conns >= d->proxy->conns_max) {
        refuse(d, fd);
        return;
    }
    if (d->kind == DOOR_TRANSPARENT && original_destination(fd, &addr, &port) < 0)
        return;
    struct conn *c = conn_new(d->proxy, &fd);
    if (c != NULL && d->kind == DOOR_TRANSPARENT)
        conn_start_transparent(c, &addr, port);
    else if (c != NULL && d->kind == DOOR_PUBLISH)
        conn_start_publish(c, d->port);
}

static void pause_door(struct door *d)
{
    epoll_ctl(d->proxy->loop.epoll_fd, EPOLL_CTL_DEL, d->source.fd, NULL);
    d->paused_fd = steal_fd(&d->source.fd);
    timer_start(&d->proxy->loop, &d->pause, LOOP_LINGER);
}

static void pause_over(struct timer *t)
{
    struct door *d = container_of(t, struct door, pause);
    if (loop_add_level(&d->proxy->loop, &d->source, d->paused_fd) < 0)
        timer_start(&d->proxy->loop, &d->pause, LOOP_LINGER);
    else
        d->paused_fd = -1;
}

static void ready(struct source *s, uint32_t events)
{
    struct door *d = container_of(s, struct door, source);
    (void)events;
    for (int i = 0; i < DOOR_TURN_MAX; i++) {
        int fd = accept4(s->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            take(d, fd);
        } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            pause_door(d);
            return;
        } else if (errno == EAGAIN) {
            return;
        }
    }
}

int door_open(struct door *d, struct proxy *p, enum door_kind kind, int *fd)
{
    *d = (struct door){.proxy = p, .kind = kind, .source = {-1, ready}, .paused_fd = -1};
    timer_init(&d->pause, pause_over);
    int r = fd_set_nonblocking(*fd, true);
    r = r < 0 ? r : loop_add_level(&p->loop, &d->source, *fd);
    if (r == 0)
        (void)steal_fd(fd);
    return r;
}

void door_close(struct door *d)
{
    timer_stop(&d->pause);
    loop_close(&d->proxy->loop, &d->source);
    fd_close(&d->paused_fd);
}
