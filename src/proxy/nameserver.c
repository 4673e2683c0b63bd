/* proxy/nameserver: see nameserver.h. */
#include "proxy/nameserver.h"

#include "base/mem.h"
#include "sys/fd.h"
#include "wire/dns.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* A client over TCP. */
struct asker {
    struct list node;
    struct nameserver *server;
    struct end end;
    struct timer timer;
    struct deferred again;
    struct deferred gone;
};

/* A refusal over UDP that was not told yet. */
struct held {
    struct timer timer;
    struct nameserver *server;
    struct sockaddr_storage to;
    socklen_t len;
    struct buf out;
};

/* What a well-formed query is answered with. `addr` is storage for the answer's address. */
static enum dns_rcode judge(struct proxy *p, const struct dns_query *q, struct net_addr *addr,
                            const struct net_addr **ret_addr, bool *ret_refused)
{
    struct egress_verdict verdict;
    *ret_addr = NULL;
    if (q->type == DNS_PTR || !q->has_host)
        return DNS_NXDOMAIN;
    if (host_is_localhost(&q->host)) {
        *addr = (struct net_addr){4, {127, 0, 0, 1}};
        *ret_addr = q->type == DNS_A ? addr : NULL;
        return DNS_NOERROR;
    }
    egress_judge_name(&p->policy, &q->host, &verdict);
    if (verdict.reason != EGRESS_ALLOWED) {
        const struct egress_target target = {.host = q->host};
        status_refused(&p->status, "dns", &target, &verdict);
        *ret_refused = true;
        return DNS_NXDOMAIN;
    }
    if (q->type == DNS_A || q->type == DNS_ANY) {
        standin_of(&p->standins, &q->host, addr);
        *ret_addr = addr;
    }
    return DNS_NOERROR;
}

/* Append the answer; false: none is due. */
static bool answer(struct proxy *p, const void *data, size_t n, struct buf *out, bool *ret_refused)
{
    struct dns_query q;
    struct net_addr storage;
    const struct net_addr *addr = NULL;
    int r = dns_query_parse(data, n, &q);
    if (r == -EBADMSG)
        return false;
    enum dns_rcode rcode = r < 0 ? q.rcode : judge(p, &q, &storage, &addr, ret_refused);
    dns_answer_write(&q, rcode, addr, NAMESERVER_TTL_S, out);
    return true;
}

/* An answer that does not fit into the socket is lost, as datagrams are; clients repeat. */
static void send_answer(struct nameserver *n, const struct buf *out,
                        const struct sockaddr_storage *to, socklen_t len)
{
    if (n->source.fd >= 0)
        (void)!sendto(n->source.fd, buf_bytes(out), out->len, 0, (const struct sockaddr *)to, len);
}

static void hold_over(struct timer *t)
{
    struct held *h = container_of(t, struct held, timer);
    send_answer(h->server, &h->out, &h->to, h->len);
    h->server->n_held--;
    buf_fini(&h->out);
    free(h);
}

/* A refusal waits while its asker is being looked for, unless too many do. */
static bool hold(struct nameserver *n, struct buf *out, const struct sockaddr_storage *to,
                 socklen_t len)
{
    if (!n->proxy->holds || n->n_held >= NAMESERVER_HELD_MAX)
        return false;
    struct held *h = mem_new(struct held);
    *h = (struct held){.server = n, .to = *to, .len = len, .out = *out};
    *out = (struct buf)BUF_INIT;
    n->n_held++;
    timer_init(&h->timer, hold_over);
    timer_start(&n->proxy->loop, &h->timer, LOOP_HOLD);
    return true;
}

static uint16_t port_of(const struct sockaddr_storage *from)
{
    struct sockaddr_in in;
    memcpy(&in, from, sizeof(in));
    return in.sin_family == AF_INET ? ntohs(in.sin_port) : 0;
}

static void datagram_ready(struct source *s, uint32_t events)
{
    struct nameserver *server = container_of(s, struct nameserver, source);
    char data[DNS_MESSAGE_MAX];
    (void)events;
    for (int i = 0; i < NAMESERVER_TURN_MAX; i++) {
        autobuf out = BUF_INIT;
        struct sockaddr_storage from;
        socklen_t len = sizeof(from);
        ssize_t n = recvfrom(s->fd, data, sizeof(data), 0, (struct sockaddr *)&from, &len);
        if (n < 0)
            return;
        bool refused = false;
        server->proxy->status.client = port_of(&from);
        if (answer(server->proxy, data, (size_t)n, &out, &refused) &&
            !(refused && hold(server, &out, &from, len)))
            send_answer(server, &out, &from, len);
        server->proxy->status.client = 0;
    }
}

static void free_asker(struct deferred *d)
{
    free(container_of(d, struct asker, gone));
}

static void drop_asker(struct asker *a)
{
    struct loop *loop = &a->server->proxy->loop;
    end_close(loop, &a->end);
    timer_stop(&a->timer);
    list_remove(&a->again.node);
    list_remove(&a->node);
    a->server->n_clients--;
    loop_defer(loop, &a->gone);
}

static void asker_late(struct timer *t)
{
    drop_asker(container_of(t, struct asker, timer));
}

/* The length of the message at the start of the window with its two bytes, or 0: not whole yet. */
static size_t whole_message(const struct end *e)
{
    const unsigned char *d = (const unsigned char *)e->at;
    size_t n = e->len < 2 ? 0 : 2u + (size_t)(d[0] << 8 | d[1]);
    return e->len >= n ? n : 0;
}

static void answer_stream(struct asker *a)
{
    struct end *e = &a->end;
    for (size_t n; e->out.len == 0 && (n = whole_message(e)) > 0; end_consume(e, n)) {
        autobuf out = BUF_INIT;
        bool refused = false;
        if (answer(a->server->proxy, e->at + 2, n - 2, &out, &refused)) {
            buf_putc(&e->out, (char)(out.len >> 8));
            buf_putc(&e->out, (char)out.len);
            buf_put(&e->out, buf_bytes(&out), out.len);
        }
        end_flush(e);
    }
}

static void serve_asker(struct asker *a)
{
    struct proxy *p = a->server->proxy;
    bool more = end_flush(&a->end);
    for (int n = 0; more; n++) {
        answer_stream(a);
        more = a->end.out.len == 0 && a->end.len <= DNS_MESSAGE_MAX &&
               end_fill(&a->end, p->client_block, NULL);
        if (more && n == NAMESERVER_TURN_MAX) {
            loop_defer(&p->loop, &a->again);
            break;
        }
    }
    if (a->end.eof || a->end.failed || a->end.len > DNS_MESSAGE_MAX + END_BLOCK)
        drop_asker(a);
    else
        end_settle(&a->end);
}

static void asker_ready(struct source *s, uint32_t events)
{
    struct asker *a = container_of(s, struct asker, end.source);
    end_note(&a->end, events);
    serve_asker(a);
}

static void asker_again(struct deferred *d)
{
    serve_asker(container_of(d, struct asker, again));
}

static void add_asker(struct nameserver *n, int fd)
{
    struct asker *a = mem_new(struct asker);
    a->server = n;
    end_init(&a->end);
    a->end.source.ready = asker_ready;
    timer_init(&a->timer, asker_late);
    deferred_init(&a->again, asker_again);
    deferred_init(&a->gone, free_asker);
    list_init(&a->node);
    if (loop_add(&n->proxy->loop, &a->end.source, fd) < 0) {
        close(fd);
        free(a);
        return;
    }
    if (n->n_clients == NAMESERVER_CLIENTS_MAX)
        drop_asker(container_of(n->clients.next, struct asker, node));
    list_append(&n->clients, &a->node);
    n->n_clients++;
    timer_start(&n->proxy->loop, &a->timer, LOOP_HEAD);
}

static void stream_ready(struct source *s, uint32_t events)
{
    struct nameserver *server = container_of(s, struct nameserver, source);
    (void)events;
    int fd = accept4(s->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0)
        add_asker(server, fd);
}

int nameserver_start(struct nameserver *n, struct proxy *p, int *fd)
{
    int type = 0;
    socklen_t len = sizeof(type);
    *n = (struct nameserver){.proxy = p, .source.fd = -1};
    list_init(&n->clients);
    if (getsockopt(*fd, SOL_SOCKET, SO_TYPE, &type, &len) < 0)
        return -errno;
    n->source.ready = type == SOCK_DGRAM ? datagram_ready : stream_ready;
    int r = fd_set_nonblocking(*fd, true);
    r = r < 0 ? r : loop_add_level(&p->loop, &n->source, *fd);
    if (r == 0)
        (void)steal_fd(fd);
    return r;
}

void nameserver_stop(struct nameserver *n)
{
    while (!list_empty(&n->clients))
        drop_asker(container_of(n->clients.next, struct asker, node));
    loop_close(&n->proxy->loop, &n->source);
}
