/* mcp/stdio_peer: see stdio_peer.h. */
#include "mcp/stdio_peer.h"

#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Room for answers in a pipe. The usual 64 KiB make a large answer a conversation of many turns. */
#define PIPE_BYTES (1 << 20)
/* Storage that an empty buffer keeps. */
#define KEEP_BYTES (4u * STDIO_READ_BYTES)
/* Above it an answer's storage is taken over instead of copied. */
#define TAKE_BYTES 65536u

/* One direction. */
struct end {
    int fd;            /* ours to poll and use */
    int flags;         /* to be put back on fd, or -1 */
    bool always_ready; /* a regular file or /dev/null: never blocks, cannot be polled */
    uv_poll_t poll;
};

struct stdio_peer {
    struct peer peer;
    struct session session;
    struct end in, out;
    uv_idle_t turn;   /* goes on without new input: regular files, lines that had to wait */
    uv_timer_t drain; /* bounds the time after the end of input */
    unsigned handles; /* until the memory can go */
    struct buf input, output;
    size_t scanned;  /* bytes of `input` that hold no newline */
    bool discarding; /* inside a line that is too long */
    bool eof;        /* no more input will come */
    bool over;       /* `ended` was called */
    bool held;       /* no input is taken until there is room for answers */
    bool handling;   /* inside the loop over lines: answers are collected */
    stdio_peer_ended_fn ended;
    void *user;
};

/* ---- the ends ---- */

/* What the descriptor is, before anything is changed: both may be one open file. */
static int end_init(struct end *end, int fd)
{
    struct stat st;
    end->fd = fd;
    end->flags = fcntl(fd, F_GETFL);
    if (end->flags < 0 || fstat(fd, &st) < 0)
        return -errno;
    end->always_ready = S_ISREG(st.st_mode);
    return 0;
}

/* A file of our own where that is possible; else the flag is set, and put back by end_close(). */
static int end_open(struct end *end, int mode)
{
    char path[40];
    if (end->always_ready)
        return 0;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", end->fd);
    int own = open(path, mode | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (own >= 0) {
        close(end->fd);
        end->fd = own;
        end->flags = -1;
        return 0;
    }
    return fcntl(end->fd, F_SETFL, end->flags | O_NONBLOCK) < 0 ? -errno : 0;
}

static void end_close(struct end *end)
{
    if (end->flags >= 0)
        fcntl(end->fd, F_SETFL, end->flags);
    close(end->fd);
}

/* ---- output ---- */

static void finish(struct stdio_peer *t)
{
    if (t->over)
        return;
    t->over = true;
    uv_idle_stop(&t->turn);
    uv_timer_stop(&t->drain);
    if (!t->in.always_ready)
        uv_poll_stop(&t->in.poll);
    if (!t->out.always_ready)
        uv_poll_stop(&t->out.poll);
    t->ended(t->user);
}

static void finish_when_done(struct stdio_peer *t)
{
    if (t->eof && !t->handling && t->input.len == 0 && t->session.n_calls == 0 &&
        t->output.len == 0)
        finish(t);
}

static void on_writable(uv_poll_t *poll, int status, int events);
static void on_turn(uv_idle_t *idle);

/* Write what the client takes. */
static void flush(struct stdio_peer *t)
{
    while (t->output.len > 0 && !t->over) {
        ssize_t n = write(t->out.fd, buf_bytes(&t->output), t->output.len);
        if (n >= 0) {
            buf_consume(&t->output, (size_t)n);
        } else if (errno == EAGAIN && !t->out.always_ready) {
            if (!uv_is_active((uv_handle_t *)&t->out.poll))
                uv_poll_start(&t->out.poll, UV_WRITABLE, on_writable);
            return;
        } else if (errno != EINTR) {
            log_info("the client is gone: write: %s", strerror(errno));
            finish(t);
            return;
        }
    }
    buf_reset(&t->output, KEEP_BYTES);
}

static void on_writable(uv_poll_t *poll, int status, int events)
{
    struct stdio_peer *t = container_of(poll, struct stdio_peer, out.poll);
    flush(t);
    if (t->over || t->output.len > 0)
        return;
    uv_poll_stop(&t->out.poll);
    uv_idle_start(&t->turn, on_turn);
}

static void peer_send(struct peer *p, struct buf *message)
{
    struct stdio_peer *t = container_of(p, struct stdio_peer, peer);
    buf_putc(message, '\n');
    if (t->output.len == 0 && message->len > TAKE_BYTES) {
        struct buf empty = t->output;
        t->output = *message;
        *message = empty;
    } else {
        buf_put(&t->output, buf_bytes(message), message->len);
        buf_reset(message, message->cap);
    }
    if (!t->handling)
        flush(t);
}

static void peer_ended(struct peer *p)
{
    struct stdio_peer *t = container_of(p, struct stdio_peer, peer);
    if ((t->eof || t->held) && !t->handling && !t->over)
        uv_idle_start(&t->turn, on_turn);
}

/* A client that does not read is told less, not remembered more. */
static bool peer_tell(struct peer *p, struct buf *message)
{
    struct stdio_peer *t = container_of(p, struct stdio_peer, peer);
    if (t->over || t->output.len >= STDIO_OUT_MAX)
        return false;
    peer_send(p, message);
    return true;
}

static const struct peer_ops stdio_peer_ops = {
    .send = peer_send, .ended = peer_ended, .notify = peer_tell};

/* ---- input ---- */

/* Enough is waiting to be read by the client, or will be in a moment. */
static bool full(const struct stdio_peer *t)
{
    return t->output.len >= STDIO_OUT_MAX || t->session.coming >= STDIO_COMING_MAX;
}

static void too_long(struct stdio_peer *t)
{
    static const struct rpc_id no_id;
    struct err e;
    err_set(&e, ERR_INVALID_REQUEST,
            "the line is longer than STDIO_LENGTH_MAX (%u bytes) and was not read; send less at a "
            "time",
            STDIO_LENGTH_MAX);
    session_error(&t->session, &no_id, &e);
}

static bool blank(const char *line, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (line[i] != ' ' && line[i] != '\t' && line[i] != '\r')
            return false;
    }
    return true;
}

static void handle_line(struct stdio_peer *t, size_t n)
{
    const char *line = buf_bytes(&t->input);
    if (t->discarding || n > STDIO_LENGTH_MAX)
        too_long(t);
    else if (!blank(line, n))
        session_message(&t->session, line, n);
    t->discarding = false;
}

/* The length of the next line without its newline, or -1 when it is not complete. */
static ssize_t next_line(struct stdio_peer *t)
{
    const char *bytes = buf_bytes(&t->input);
    const char *newline = memchr(bytes + t->scanned, '\n', t->input.len - t->scanned);
    if (newline != NULL)
        return newline - bytes;
    t->scanned = t->input.len;
    if (t->input.len > STDIO_LENGTH_MAX || t->discarding) {
        t->discarding = true;
        buf_reset(&t->input, KEEP_BYTES);
        t->scanned = 0;
    }
    return -1;
}

/* Input that ends without a newline ends its last line all the same. */
static void handle_rest(struct stdio_peer *t)
{
    if (t->input.len > 0 || t->discarding)
        handle_line(t, t->input.len);
    buf_reset(&t->input, 0);
    t->scanned = 0;
}

static void handle_lines(struct stdio_peer *t)
{
    t->handling = true;
    while (!full(t)) {
        ssize_t n = next_line(t);
        if (n < 0 && t->eof)
            handle_rest(t);
        if (n < 0)
            break;
        handle_line(t, (size_t)n);
        buf_consume(&t->input, (size_t)n + 1);
        t->scanned = 0;
    }
    t->handling = false;
    if (t->input.len == 0)
        buf_reset(&t->input, KEEP_BYTES);
    flush(t);
}

static void on_drained(uv_timer_t *timer)
{
    struct stdio_peer *t = container_of(timer, struct stdio_peer, drain);
    log_warn("%u calls were given up at the end of input", t->session.n_calls);
    finish(t);
}

static void end_of_input(struct stdio_peer *t)
{
    t->eof = true;
    if (!t->in.always_ready)
        uv_poll_stop(&t->in.poll);
    uv_timer_start(&t->drain, on_drained, STDIO_DRAIN_MS, 0);
}

/* One read, into the buffer. */
static void take_input(struct stdio_peer *t)
{
    ssize_t n = read(t->in.fd, buf_reserve(&t->input, STDIO_READ_BYTES), STDIO_READ_BYTES);
    if (n > 0)
        buf_commit(&t->input, (size_t)n);
    else if (n == 0 || (errno != EAGAIN && errno != EINTR))
        end_of_input(t);
}

static void on_readable(uv_poll_t *poll, int status, int events);

/* Decide what to wait for: room in the output, more input, or nothing because lines are left. */
static void arm(struct stdio_peer *t)
{
    if (t->over)
        return;
    t->held = full(t);
    bool left = !t->held &&
                memchr(buf_bytes(&t->input) + t->scanned, '\n', t->input.len - t->scanned) != NULL;
    if (left || (t->in.always_ready && !t->eof && !t->held))
        uv_idle_start(&t->turn, on_turn);
    else
        uv_idle_stop(&t->turn);
    if (t->in.always_ready || t->eof)
        return;
    if (t->held)
        uv_poll_stop(&t->in.poll);
    else if (!uv_is_active((uv_handle_t *)&t->in.poll)) /* starting again costs two calls */
        uv_poll_start(&t->in.poll, UV_READABLE, on_readable);
}

static void after_turn(struct stdio_peer *t)
{
    if (t->eof && !t->over)
        session_hang_up(&t->session);
    arm(t);
    finish_when_done(t);
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    struct stdio_peer *t = container_of(poll, struct stdio_peer, in.poll);
    take_input(t);
    handle_lines(t);
    after_turn(t);
}

static void on_turn(uv_idle_t *idle)
{
    struct stdio_peer *t = container_of(idle, struct stdio_peer, turn);
    uv_idle_stop(idle);
    if (t->in.always_ready && !t->eof && !full(t))
        take_input(t);
    handle_lines(t);
    after_turn(t);
}

/* ---- life ---- */

static int poll_init(struct stdio_peer *t, struct end *end)
{
    if (end->always_ready)
        return 0;
    int status = uv_poll_init(t->session.server->loop, &end->poll, end->fd);
    if (status == UV_EPERM) {
        end->always_ready = true;
        return 0;
    }
    if (status == 0)
        t->handles++;
    return status;
}

static void on_closed(uv_handle_t *handle)
{
    struct stdio_peer *t = handle->data;
    if (--t->handles > 0)
        return;
    end_close(&t->in);
    end_close(&t->out);
    buf_fini(&t->input);
    buf_fini(&t->output);
    free(t);
}

static void close_handle(struct stdio_peer *t, uv_handle_t *handle)
{
    handle->data = t;
    uv_close(handle, on_closed);
}

void stdio_peer_free(struct stdio_peer *t)
{
    if (t == NULL)
        return;
    t->over = true;
    session_fini(&t->session);
    if (t->in.poll.loop != NULL)
        close_handle(t, (uv_handle_t *)&t->in.poll);
    if (t->out.poll.loop != NULL)
        close_handle(t, (uv_handle_t *)&t->out.poll);
    close_handle(t, (uv_handle_t *)&t->turn);
    close_handle(t, (uv_handle_t *)&t->drain);
}

static int ends_open(struct stdio_peer *t, int in_fd, int out_fd)
{
    int in = end_init(&t->in, in_fd);
    int out = end_init(&t->out, out_fd);
    int status = in < 0 ? in : out;
    if (status == 0)
        status = end_open(&t->in, O_RDONLY);
    if (status == 0)
        status = end_open(&t->out, O_WRONLY);
    /* Where it is no pipe, or more than this user may have, it stays as it is. */
    fcntl(t->out.fd, F_SETPIPE_SZ, PIPE_BYTES);
    if (status == 0)
        status = poll_init(t, &t->in);
    if (status == 0)
        status = poll_init(t, &t->out);
    return status;
}

struct stdio_peer *stdio_peer_new(struct server *server, int in_fd, int out_fd,
                                  stdio_peer_ended_fn ended, void *user, struct err *e)
{
    struct stdio_peer *t = mem_new(struct stdio_peer);
    t->peer.ops = &stdio_peer_ops;
    t->ended = ended;
    t->user = user;
    session_init(&t->session, server, &t->peer);
    uv_idle_init(server->loop, &t->turn);
    uv_timer_init(server->loop, &t->drain);
    t->handles = 2;
    int status = ends_open(t, in_fd, out_fd);
    if (status < 0) {
        err_sys(e, ERR_FILE_OPERATION_FAILED, status, "standard input and output cannot be served");
        stdio_peer_free(t);
        return NULL;
    }
    arm(t);
    return t;
}
