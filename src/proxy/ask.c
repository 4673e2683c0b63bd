/* proxy/ask: see ask.h. */
#include "proxy/ask.h"

#include "base/mem.h"
#include "sys/fd.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>

static void ask_ready(struct source *s, uint32_t events);
static void ask_expired(struct timer *t);
static void ask_again(struct deferred *d);

void ask_init(struct ask *a, struct resolver *r, enum dns_type type, ask_done done, void *user)
{
    *a = (struct ask){.resolver = r, .type = type, .done = done, .user = user};
    a->source = (struct source){-1, ask_ready};
    a->message = (struct buf)BUF_INIT;
    timer_init(&a->timer, ask_expired);
    deferred_init(&a->again, ask_again);
}

static void let_go(struct ask *a)
{
    loop_close(a->resolver->loop, &a->source);
    timer_stop(&a->timer);
    buf_fini(&a->message);
}

void ask_stop(struct ask *a)
{
    let_go(a);
    list_remove(&a->again.node);
}

static void finish(struct ask *a, enum resolve_result result, const struct dns_answer *answer)
{
    ask_stop(a);
    a->done(a, result, answer);
}

static const struct server *server_of(const struct ask *a)
{
    return &a->resolver->servers[a->tries % a->resolver->n_servers];
}

static int open_socket(struct ask *a)
{
    struct sockaddr_storage to;
    const struct server *server = server_of(a);
    socklen_t len = resolve_sockaddr(&server->addr, server->port, &to);
    int type = (a->tcp ? SOCK_STREAM : SOCK_DGRAM) | SOCK_NONBLOCK | SOCK_CLOEXEC;
    autofd int fd = socket(to.ss_family, type, 0);
    if (fd < 0)
        return -errno;
    if (connect(fd, (struct sockaddr *)&to, len) < 0 && errno != EINPROGRESS)
        return -errno;
    int r = loop_add(a->resolver->loop, &a->source, fd);
    if (r == 0)
        (void)steal_fd(&fd);
    return r;
}

static void write_question(struct ask *a)
{
    autobuf question = BUF_INIT;
    ensure(getrandom(&a->id, sizeof(a->id), 0) == (ssize_t)sizeof(a->id));
    dns_query_write(a->id, a->host, a->type, &question);
    if (a->tcp) {
        buf_putc(&a->message, (char)(question.len >> 8));
        buf_putc(&a->message, (char)question.len);
    }
    buf_put(&a->message, buf_bytes(&question), question.len);
    a->sent = false;
}

static void try_once(struct ask *a)
{
    let_go(a);
    write_question(a);
    if (open_socket(a) < 0) {
        loop_defer(a->resolver->loop, &a->again);
        return;
    }
    timer_start(a->resolver->loop, &a->timer, LOOP_LOOKUP);
}

static void next_server(struct ask *a)
{
    a->tcp = false;
    a->tries++;
    if (a->tries >= a->resolver->n_servers * RESOLVE_ROUNDS)
        finish(a, RESOLVE_FAILED, NULL);
    else
        try_once(a);
}

void ask_start(struct ask *a, const struct host *host)
{
    a->host = host;
    try_once(a);
}

static void ask_again(struct deferred *d)
{
    next_server(container_of(d, struct ask, again));
}

static void ask_expired(struct timer *t)
{
    next_server(container_of(t, struct ask, timer));
}

static void use_answer(struct ask *a, const char *data, size_t n)
{
    struct dns_answer answer;
    if (dns_answer_parse(data, n, a->id, a->host, a->type, &answer) < 0) {
        /* Over UDP it may be a forgery that a real answer follows; the time limit goes on. */
        if (a->tcp)
            next_server(a);
    } else if (answer.truncated && !a->tcp) {
        a->tcp = true;
        try_once(a);
    } else if (answer.rcode == DNS_NXDOMAIN ||
               (answer.rcode == DNS_NOERROR && answer.n_addrs == 0)) {
        finish(a, RESOLVE_NO_NAME, NULL);
    } else if (answer.rcode != DNS_NOERROR) {
        next_server(a);
    } else {
        finish(a, RESOLVE_FOUND, &answer);
    }
}

static void read_datagrams(struct ask *a)
{
    char data[DNS_MESSAGE_MAX];
    int fd = a->source.fd;
    unsigned try = a->tries;
    /* An answer ends this socket or leaves it; then the next datagram is read. */
    while (a->source.fd == fd && a->tries == try && !a->tcp) {
        ssize_t n = fd_read(fd, data, sizeof(data));
        if (n == -EAGAIN)
            return;
        if (n < 0) {
            next_server(a); /* nobody listens there */
            return;
        }
        use_answer(a, data, (size_t)n);
    }
}

/* The length stands in the two bytes before the answer. */
static bool whole_message(const struct buf *b)
{
    const unsigned char *d = (const unsigned char *)buf_bytes(b);
    return b->len >= 2 && b->len >= 2u + (unsigned)(d[0] << 8 | d[1]);
}

static void read_stream(struct ask *a)
{
    while (!whole_message(&a->message)) {
        size_t room = DNS_MESSAGE_MAX + 2 - a->message.len;
        ssize_t n = room == 0 ? 0 : fd_read(a->source.fd, buf_reserve(&a->message, room), room);
        if (n == -EAGAIN)
            return;
        if (n <= 0) {
            next_server(a);
            return;
        }
        buf_commit(&a->message, (size_t)n);
    }
    autobuf message = a->message;
    a->message = (struct buf)BUF_INIT;
    use_answer(a, buf_bytes(&message) + 2, message.len - 2);
}

static void ask_ready(struct source *s, uint32_t events)
{
    struct ask *a = container_of(s, struct ask, source);
    if (!a->sent && (events & EPOLLOUT)) {
        /* A fresh socket takes a question whole. */
        if (fd_send(s->fd, buf_bytes(&a->message), a->message.len) != (ssize_t)a->message.len) {
            next_server(a);
            return;
        }
        a->sent = true;
        buf_reset(&a->message, 0);
    }
    if (!(events & (EPOLLIN | EPOLLERR | EPOLLHUP)))
        return;
    if (a->tcp)
        read_stream(a);
    else
        read_datagrams(a);
}
