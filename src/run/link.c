/* run/link: see link.h. */
#include "run/link.h"

#include "base/mem.h"
#include "sys/fd.h"
#include "wire/frame.h"

#include <errno.h>
#include <string.h>

/* Kept of the buffers when they are empty. */
#define KEEP_BYTES 262144u

static struct watch *out_watch(struct link *l)
{
    return l->out.fd >= 0 ? &l->out : &l->in;
}

static bool has_room(const struct link *l)
{
    return l->open && !l->closing && l->unsent.len < LINK_QUEUE_BYTES;
}

static void rearm(struct link *l)
{
    int in = has_room(l) ? UV_READABLE : 0;
    int out = l->unsent.len > 0 || l->closing ? UV_WRITABLE : 0; /* then to be told of the end */
    if (l->out.fd >= 0) {
        watch_want(&l->in, in);
        watch_want(&l->out, out);
    } else {
        watch_want(&l->in, in | out);
    }
}

void link_close(struct link *l)
{
    l->open = false;
    watch_close(&l->in);
    watch_close(&l->out);
    buf_fini(&l->received);
    buf_fini(&l->unsent);
}

static void end(struct link *l, const char *why)
{
    if (!l->open)
        return;
    link_close(l);
    l->ops->ended(l->owner, why);
}

/* False when the peer does not take it any more. */
static bool flush(struct link *l)
{
    while (l->unsent.len > 0) {
        ssize_t n = fd_write(out_watch(l)->fd, buf_bytes(&l->unsent), l->unsent.len);
        if (n == -EAGAIN)
            return true;
        if (n < 0)
            return false;
        buf_consume(&l->unsent, (size_t)n);
    }
    buf_reset(&l->unsent, KEEP_BYTES);
    return true;
}

/* Hand on what is whole, as long as there is room for what it will bring. A message may close the
 * link. False: what has come is no frame. */
static bool hand_on(struct link *l)
{
    size_t len = 0;
    int rc = 0;
    struct buf in = l->received; /* ours while somebody may close the link */
    l->received = (struct buf)BUF_INIT;
    while (has_room(l) && (rc = frame_look(&in, &len)) == 1) {
        l->ops->message(l->owner, buf_bytes(&in) + FRAME_HEAD, len);
        frame_consume(&in, len);
    }
    if (l->open)
        l->received = in;
    else
        buf_fini(&in);
    return rc >= 0;
}

static void read_some(struct link *l)
{
    for (int i = 0; i < LINK_READS_PER_TURN && has_room(l); i++) {
        char *to = buf_reserve(&l->received, LINK_READ_BYTES);
        ssize_t n = fd_read(l->in.fd, to, LINK_READ_BYTES);
        if (n == -EAGAIN)
            return;
        if (n <= 0) {
            end(l, n == 0 ? "the stream was closed" : strerror((int)-n));
            return;
        }
        buf_commit(&l->received, (size_t)n);
        l->heard_ms = uv_now(l->in.poll.loop);
        if (!hand_on(l)) {
            end(l, "a frame had no message's length");
            return;
        }
        if (l->open && l->received.len == 0)
            buf_reset(&l->received, KEEP_BYTES);
        if ((size_t)n < LINK_READ_BYTES)
            return;
    }
}

static void on_ready(struct watch *w, void *owner)
{
    struct link *l = owner;
    if (!flush(l)) {
        end(l, "the other side does not read any more");
        return;
    }
    if (l->closing && l->unsent.len == 0) {
        end(l, "finished");
        return;
    }
    if (!hand_on(l)) /* what was held back */
        end(l, "a frame had no message's length");
    if (w == &l->in && has_room(l))
        read_some(l);
    if (l->open)
        rearm(l);
}

int link_open(struct link *l, uv_loop_t *loop, struct anchor *anchor, int *in, int *out,
              const struct link_ops *ops, void *owner)
{
    *l = (struct link){.ops = ops, .owner = owner, .heard_ms = uv_now(loop)};
    watch_init(&l->in);
    watch_init(&l->out);
    int rc = watch_take(&l->in, loop, anchor, in, UV_READABLE, on_ready, l);
    if (rc == 0 && *out >= 0) {
        rc = watch_take(&l->out, loop, anchor, out, 0, on_ready, l);
        if (rc < 0)
            *in = watch_release(&l->in);
    }
    l->open = rc == 0;
    return rc;
}

void link_finish(struct link *l)
{
    if (!l->open)
        return;
    l->closing = true;
    watch_want(out_watch(l), UV_WRITABLE);
    if (l->out.fd >= 0)
        watch_want(&l->in, 0);
}

static bool put(struct link *l, size_t begun)
{
    bool was_empty = begun == 0;
    if (frame_end(&l->unsent, begun) < 0)
        return false;
    /* A broken pipe is told by the loop, so that nobody is called from inside a send. */
    if (was_empty && !flush(l))
        buf_reset(&l->unsent, 0);
    rearm(l);
    return true;
}

bool link_send(struct link *l, const struct runmsg *m)
{
    if (!l->open || l->closing)
        return false;
    size_t begun = frame_begin(&l->unsent);
    runmsg_write(m, &l->unsent);
    return put(l, begun);
}

bool link_send_text(struct link *l, const char *text, size_t n)
{
    if (!l->open || l->closing)
        return false;
    size_t begun = frame_begin(&l->unsent);
    buf_put(&l->unsent, text, n);
    return put(l, begun);
}
