/* proxy/end: see end.h. */
#include "proxy/end.h"

#include "base/mem.h"
#include "sys/fd.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

/* Output storage that stays with a connection that is in use. */
#define END_KEEP_MAX 8192u

void end_init(struct end *e)
{
    *e = (struct end){.source.fd = -1, .writable = true, .kept = BUF_INIT, .out = BUF_INIT};
}

void end_close(struct loop *l, struct end *e)
{
    void (*ready)(struct source *, uint32_t) = e->source.ready;
    loop_close(l, &e->source);
    if (e->channel != NULL) {
        buf_fini(&e->channel->wire);
        e->channel->ops->free(e->channel);
    }
    buf_fini(&e->kept);
    buf_fini(&e->out);
    end_init(e);
    e->source.ready = ready;
}

void end_set_channel(struct end *e, struct channel *ch)
{
    ensure(e->channel == NULL && e->out.len == 0 && e->len == 0);
    e->channel = ch;
    e->readable = true;
}

bool end_is_open(const struct end *e)
{
    return e->source.fd >= 0;
}

void end_note(struct end *e, uint32_t events)
{
    if (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR))
        e->readable = true;
    if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))
        e->hup = true;
    if (events & (EPOLLOUT | EPOLLHUP | EPOLLERR))
        e->writable = true;
    /* Bytes that came before a reset can still be read, so it is reading that finds the error. */
    if (events & (EPOLLHUP | EPOLLERR))
        e->gone = true;
}

void end_settle(struct end *e)
{
    if (e->len == 0) {
        buf_fini(&e->kept);
    } else if (e->at != buf_bytes(&e->kept)) {
        /* The window lies in the scratch block; kept is empty then. */
        buf_reset(&e->kept, END_BLOCK);
        buf_put(&e->kept, e->at, e->len);
    }
    e->at = buf_bytes(&e->kept);
}

static void note_read(struct end *e, ssize_t got, size_t asked)
{
    if (got > 0) {
        /* A short read has emptied the socket; an end of file would still have to be read. A
         * channel gives what it has decoded, which says nothing of the socket. */
        if ((size_t)got < asked && !e->hup && e->channel == NULL)
            e->readable = false;
        return;
    }
    e->readable = false;
    if (got == 0)
        e->eof = true;
    else if (got != -EAGAIN)
        e->failed = true;
}

bool end_fill(struct end *e, char *scratch, bool *ret_full)
{
    if (ret_full != NULL)
        *ret_full = false;
    if (!e->readable || e->eof || e->failed)
        return false;
    char *to = scratch;
    if (e->len > 0) {
        end_settle(e);
        to = buf_reserve(&e->kept, END_BLOCK / 4);
    }
    size_t room = e->len > 0 ? END_BLOCK / 4 : END_BLOCK;
    ssize_t got = e->channel != NULL ? e->channel->ops->read(e->channel, to, room)
                                     : fd_read(e->source.fd, to, room);
    note_read(e, got, room);
    if (e->len > 0)
        e->at = buf_bytes(&e->kept);
    if (got <= 0)
        return false;
    if (e->len > 0)
        buf_commit(&e->kept, (size_t)got);
    else
        e->at = scratch;
    e->len += (size_t)got;
    if (ret_full != NULL)
        *ret_full = (size_t)got == room;
    return true;
}

void end_consume(struct end *e, size_t n)
{
    ensure(n <= e->len);
    if (e->kept.len > 0) {
        buf_consume(&e->kept, n);
        e->at = buf_bytes(&e->kept);
    } else {
        e->at += n;
    }
    e->len -= n;
}

/* Write the beginning of `b` to the socket, as much as it takes. True when all is written. */
static bool write_out(struct end *e, struct buf *b)
{
    if (b->len == 0)
        return true;
    if (!e->writable || e->failed)
        return false;
    ssize_t put = fd_send(e->source.fd, buf_bytes(b), b->len);
    if (put < 0) {
        e->writable = false;
        e->failed = put != -EAGAIN;
        return false;
    }
    buf_consume(b, (size_t)put);
    if (b->len > 0) {
        e->writable = false;
        return false;
    }
    buf_reset(b, END_KEEP_MAX);
    return true;
}

/* The bytes taken; they may wait in the channel. */
static size_t send_encoded(struct end *e, const char *data, size_t n)
{
    struct channel *ch = e->channel;
    size_t some = n < END_BLOCK ? n : END_BLOCK;
    if (!write_out(e, &ch->wire))
        return 0;
    if (ch->ops->send(ch, data, some) < 0) {
        e->failed = true;
        return 0;
    }
    write_out(e, &ch->wire);
    return some;
}

static bool flush_encoded(struct end *e)
{
    while (write_out(e, &e->channel->wire)) {
        if (e->out.len == 0) {
            buf_reset(&e->out, END_KEEP_MAX);
            return true;
        }
        size_t n = send_encoded(e, buf_bytes(&e->out), e->out.len);
        if (n == 0)
            return false;
        buf_consume(&e->out, n);
    }
    return false;
}

bool end_has_output(const struct end *e)
{
    return e->out.len > 0 || (e->channel != NULL && e->channel->wire.len > 0);
}

size_t end_send(struct end *e, const char *data, size_t n)
{
    if (!e->writable || e->failed || e->out.len > 0 || n == 0)
        return 0;
    if (e->channel != NULL)
        return send_encoded(e, data, n);
    ssize_t put = fd_send(e->source.fd, data, n);
    if (put < 0) {
        e->writable = false;
        e->failed = put != -EAGAIN;
        return 0;
    }
    if ((size_t)put < n)
        e->writable = false;
    return (size_t)put;
}

bool end_flush(struct end *e)
{
    return e->channel != NULL ? flush_encoded(e) : write_out(e, &e->out);
}

void end_shutdown(struct end *e)
{
    if (!e->shut && end_is_open(e) && !e->failed) {
        if (e->channel != NULL) {
            e->channel->ops->shutdown(e->channel);
            write_out(e, &e->channel->wire);
        }
        shutdown(e->source.fd, SHUT_WR);
    }
    e->shut = true;
}

void end_reset_on_close(struct end *e)
{
    const struct linger now = {.l_onoff = 1, .l_linger = 0};
    if (end_is_open(e))
        setsockopt(e->source.fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
}
