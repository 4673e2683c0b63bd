/* proxy/inside: see inside.h. */
#include "proxy/inside.h"

#include "base/mem.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

static struct inside_queue *queue_of(struct inside *in, int family)
{
    return family == AF_INET6 ? &in->ipv6 : &in->ipv4;
}

void inside_add(struct inside *in, int family, int fd)
{
    struct inside_queue *q = queue_of(in, family);
    ensure(q->n < INSIDE_MAX);
    q->fds[(q->first + q->n++) % INSIDE_MAX] = fd;
}

bool inside_has_any(const struct inside *in)
{
    return in->ipv4.n > 0 || in->ipv6.n > 0;
}

int inside_take(struct inside *in, int family)
{
    const struct sockaddr nowhere = {.sa_family = AF_UNSPEC};
    const struct linger none = {0, 0};
    struct inside_queue *q = queue_of(in, family == 6 ? AF_INET6 : AF_INET);
    if (q->n == 0) {
        errno = EMFILE;
        return -1;
    }
    int fd = q->fds[q->first];
    q->first = (q->first + 1) % INSIDE_MAX;
    q->n--;
    connect(fd, &nowhere, sizeof(nowhere));
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
    return fd;
}

void inside_put(struct inside *in, struct loop *l, struct source *s)
{
    int family = AF_INET;
    socklen_t len = sizeof(family);
    if (s->fd < 0)
        return;
    int fd = loop_release(l, s);
    getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &len);
    shutdown(fd, SHUT_WR);
    inside_add(in, family, fd);
}
