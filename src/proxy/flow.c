/* proxy/flow: see flow.h. */
#include "proxy/flow.h"

#include "sys/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

void flow_init(struct flow *f)
{
    *f = (struct flow){.pipe.fd = {-1, -1}};
}

/* A large transfer begins. */
static void limit_buffer(struct end *to)
{
    const int bytes = FLOW_NEAR_BUFFER;
    if (to->near)
        setsockopt(to->source.fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
    to->near = false;
}

static bool take_pipe(struct flow_pool *pool, struct flow *f)
{
    if (pool->n_idle > 0) {
        f->pipe = pool->idle[--pool->n_idle];
        return true;
    }
    if (pool->n_all == FLOW_PIPES_MAX || fd_pipe(f->pipe.fd) < 0) {
        f->pipe.fd[0] = -1;
        return false;
    }
    fd_set_nonblocking(f->pipe.fd[0], true);
    fd_set_nonblocking(f->pipe.fd[1], true);
    fd_set_pipe_size(f->pipe.fd[1], FLOW_PIPE_SIZE);
    pool->n_all++;
    return true;
}

void flow_fini(struct flow_pool *pool, struct flow *f)
{
    if (f->pipe.fd[0] >= 0 && f->in_pipe == 0) {
        pool->idle[pool->n_idle++] = f->pipe;
    } else if (f->pipe.fd[0] >= 0) {
        fd_close(&f->pipe.fd[0]);
        fd_close(&f->pipe.fd[1]);
        pool->n_all--;
    }
    flow_init(f);
}

static size_t smaller(uint64_t a, size_t b)
{
    return a < b ? (size_t)a : b;
}

/* Empty the pipe into `to`. True when it is empty. */
static bool drain_pipe(struct flow *f, struct end *to)
{
    while (f->in_pipe > 0 && to->writable && !to->failed) {
        ssize_t n = splice(f->pipe.fd[0], NULL, to->source.fd, NULL, f->in_pipe,
                           SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
        if (n > 0) {
            f->in_pipe -= (size_t)n;
        } else if (n < 0 && errno == EAGAIN) {
            to->writable = false;
        } else if (n == 0 || errno != EINTR) {
            to->failed = true;
        }
    }
    return f->in_pipe == 0;
}

/* Fill the pipe from `from` once; the bytes taken. */
static size_t fill_pipe(struct flow *f, struct end *from, uint64_t left)
{
    ssize_t n = splice(from->source.fd, NULL, f->pipe.fd[1], NULL, smaller(left, FLOW_PIPE_SIZE),
                       SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
    if (n > 0) {
        f->in_pipe += (size_t)n;
        return (size_t)n;
    }
    if (n == 0) {
        from->eof = true;
    } else if (errno == EAGAIN) {
        from->readable = false;
    } else if (errno != EINTR) {
        from->failed = true;
    }
    return 0;
}

/* Send what the window holds; the bytes taken. What the socket refuses stays in the window. */
static size_t send_window(struct end *from, struct end *to, uint64_t left)
{
    size_t put = end_send(to, from->at, smaller(left, from->len));
    end_consume(from, put);
    return put;
}

/* One step of copying or splicing. The bytes taken from `from`, 0 when nothing is possible now. */
static size_t move_some(struct flow_pool *pool, struct flow *f, struct end *from, struct end *to,
                        char *scratch, uint64_t left)
{
    bool full = false;
    if (from->len > 0)
        return send_window(from, to, left);
    if (!from->readable || from->eof || from->failed || !to->writable)
        return 0;
    bool plain = from->channel == NULL && to->channel == NULL;
    if (plain && f->full_reads >= FLOW_BUSY && left >= END_BLOCK &&
        (f->pipe.fd[0] >= 0 || take_pipe(pool, f))) {
        limit_buffer(to);
        return fill_pipe(f, from, left);
    }
    if (!end_fill(from, scratch, &full))
        return 0;
    f->full_reads = full ? f->full_reads + 1 : 0;
    return send_window(from, to, left);
}

static enum flow_result at_rest(struct flow_pool *pool, struct flow *f, const struct end *from,
                                const struct end *to, uint64_t left)
{
    if (to->failed)
        return FLOW_FAIL;
    if (f->in_pipe > 0 || end_has_output(to))
        return FLOW_WAIT;
    if (left == 0) {
        flow_fini(pool, f);
        return FLOW_DONE;
    }
    if (from->len > 0)
        return FLOW_WAIT;
    if (from->eof)
        return FLOW_EOF;
    if (from->failed)
        return FLOW_FAIL;
    if (!from->readable) {
        /* Quiet: whoever is busy may have the pipe. */
        flow_fini(pool, f);
    }
    return FLOW_WAIT;
}

enum flow_result flow_pump(struct flow_pool *pool, struct flow *f, struct end *from, struct end *to,
                           char *scratch, uint64_t *left, bool *ret_moved)
{
    size_t turn = 0;
    while (end_flush(to) && drain_pipe(f, to)) {
        if (turn >= FLOW_TURN_MAX)
            return FLOW_MORE;
        size_t n = *left == 0 ? 0 : move_some(pool, f, from, to, scratch, *left);
        if (n == 0 && f->in_pipe == 0)
            break;
        turn += n;
        *ret_moved = true;
        if (*left != UINT64_MAX)
            *left -= n;
    }
    return at_rest(pool, f, from, to, *left);
}
