/* proxy/unreached: see unreached.h. */
#include "proxy/unreached.h"

#include "base/mem.h"
#include "sys/fd.h"
#include "wire/icmp.h"

static void tell(struct proxy *p, const struct icmp_unreached *packet)
{
    struct host host;
    if (host_addr_class(&packet->to) == ADDR_LOOPBACK)
        return;
    const struct host *name = standin_find(&p->standins, &packet->to);
    host_of_addr(&packet->to, &host);
    p->status.client = packet->from_port;
    status_udp(&p->status, name != NULL ? name->text : host.text, packet->to_port);
    p->status.client = 0;
}

static void ready(struct source *s, uint32_t events)
{
    struct unreached *u = container_of(s, struct unreached, source);
    char packet[ICMP_PACKET_MAX];
    struct icmp_unreached found;
    (void)events;
    for (int i = 0; i < UNREACHED_TURN_MAX; i++) {
        ssize_t n = fd_read(s->fd, packet, sizeof(packet));
        if (n < 0)
            return;
        if (icmp_unreached_read(packet, (size_t)n, &found) == 0)
            tell(u->proxy, &found);
    }
}

int unreached_start(struct unreached *u, struct proxy *p, int *fd)
{
    *u = (struct unreached){.proxy = p, .source = {-1, ready}};
    if (*fd < 0)
        return 0;
    int r = fd_set_nonblocking(*fd, true);
    r = r < 0 ? r : loop_add_level(&p->loop, &u->source, *fd);
    if (r == 0)
        (void)steal_fd(fd);
    return r;
}
