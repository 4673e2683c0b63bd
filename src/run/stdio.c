/* run/stdio: what the process writes and what it is given to read.
 *
 * Theory. Output is read by the loop into one shared buffer and from there into the log, at most
 * MANAGED_READS_PER_TURN times in a turn, so a process that floods does not starve the others. The
 * writer is slowed by nothing but this; memory stays flat because the log is a ring. Input waits in
 * a bounded buffer until the process reads it.
 *
 * Must not: block, or raise SIGPIPE (programs of ours ignore it).
 */
#include "run/managed.h"

#include "sys/fd.h"
#include "sys/pty.h"

#include <errno.h>

bool stdio_at_eof(const struct managed *m)
{
    return m->out.fd < 0 && m->err.fd < 0;
}

/* Nothing more comes. Our side of a terminal stays open until the process has ended: a program that
 * closes its standard descriptors before it exits would be killed by the hang-up. */
static void at_end(struct managed *m, struct watch *w)
{
    if (m->tty && m->terminal < 0)
        m->terminal = watch_release(w);
    else
        watch_close(w);
}

/* One read, into the log. As read(2). */
static ssize_t read_once(struct managed *m, struct watch *w, enum run_stream stream,
                         size_t *ret_max)
{
    size_t max = MANAGED_READ_BYTES;
    char *to = outlog_room(&m->log, &max);
    ssize_t n = fd_read(w->fd, to != NULL ? to : m->home->scratch, max);
    *ret_max = max;
    if (n <= 0)
        return n;
    outlog_mark(&m->log, managed_wall_ms());
    if (to != NULL)
        outlog_commit(&m->log, stream, (size_t)n);
    else
        outlog_append(&m->log, stream, m->home->scratch, (size_t)n);
    return n;
}

/* What a reader who follows has not read is kept for him. */
static void note_followers(struct managed *m)
{
    uint64_t from = 0;
    if (follow_from(&m->follow, uv_now(m->home->loop) + 1, &from))
        spill_follow(&m->log.spill, from);
    else
        spill_unfollow(&m->log.spill);
}

/* Up to `reads` reads. True when something came. Closes the watch at its end; a terminal's end is
 * EIO. */
static bool pump(struct managed *m, struct watch *w, int reads)
{
    enum run_stream stream = w == &m->err ? RUN_STDERR : RUN_STDOUT;
    bool got = false;
    note_followers(m);
    while (w->fd >= 0 && reads-- > 0) {
        size_t max = 0;
        ssize_t n = read_once(m, w, stream, &max);
        if (n == -EAGAIN)
            break;
        if (n <= 0) {
            at_end(m, w);
            break;
        }
        m->active_ms = uv_now(m->home->loop);
        got = true;
        /* A short read has emptied the pipe: asking again would only say so. */
        if ((size_t)n < max && !m->tty)
            break;
    }
    return got;
}

void stdio_on_output(struct watch *w, void *owner)
{
    struct managed *m = owner;
    if (m->tty && m->input.len > 0)
        (void)stdio_flush(m);
    bool got = pump(m, w, MANAGED_READS_PER_TURN);
    if (got)
        wait_check(m);
    if (stdio_at_eof(m))
        managed_feed(m, PROCESS_ON_DRAINED);
}

void stdio_listen(struct managed *m)
{
    struct watch *const both[] = {&m->out, &m->err};
    for (size_t i = 0; i < ARRAY_LEN(both); i++) {
        if (both[i]->fd >= 0)
            watch_want(both[i], both[i]->events | UV_READABLE);
    }
}

void stdio_drain(struct managed *m)
{
    /* Twice what a pipe holds: all that was written before the end, and no more of a writer that
     * goes on. */
    const int reads = 2 * MANAGED_PIPE_BYTES / (int)MANAGED_READ_BYTES;
    struct watch *const both[] = {&m->out, &m->err};
    for (size_t i = 0; i < ARRAY_LEN(both); i++) {
        for (int left = reads; left > 0 && both[i]->fd >= 0; left--) {
            if (!pump(m, both[i], 1))
                break;
        }
    }
}

/* ---- input ---- */

static struct watch *input_watch(struct managed *m)
{
    return m->tty ? &m->out : &m->in;
}

/* On a terminal the end is a character, and only at the start of a line. */
static void add_terminal_eof(struct managed *m)
{
    int c = pty_eof_char(m->out.fd);
    if (c > 0)
        buf_putc(&m->input, (char)c);
    m->input_eof = false;
}

/* What the watch waits for after a flush that ended with `rc`. */
static void rearm_input(struct managed *m, struct watch *w, int rc)
{
    bool waits = m->input.len > 0;
    if (m->tty)
        watch_want(w, UV_READABLE | (waits ? UV_WRITABLE : 0));
    else if (rc < 0 || (m->input_eof && !waits))
        watch_close(w);
    else
        watch_want(w, waits ? UV_WRITABLE : 0);
}

int stdio_flush(struct managed *m)
{
    struct watch *w = input_watch(m);
    int rc = 0;
    if (w->fd < 0)
        return 0;
    if (m->tty && m->input_eof)
        add_terminal_eof(m);
    while (m->input.len > 0 && rc == 0) {
        ssize_t n = fd_write(w->fd, buf_bytes(&m->input), m->input.len);
        if (n < 0)
            rc = (int)n;
        else
            buf_consume(&m->input, (size_t)n);
    }
    if (rc == -EAGAIN)
        rc = 0;
    else /* all is written, or nobody will ever read it */
        buf_fini(&m->input);
    rearm_input(m, w, rc);
    return rc;
}

void stdio_on_input(struct watch *w, void *owner)
{
    (void)stdio_flush(owner);
}

static int stdin_closed(const struct managed *m, const char *why, struct err *e)
{
    return err_set(e, ERR_STDIN_CLOSED, "the standard input of process '%s' is closed: %s", m->id,
                   why);
}

int stdio_write(struct managed *m, const void *data, size_t n, bool eof, struct err *e)
{
    if (m->input_eof)
        return stdin_closed(m, "its end was already written", e);
    /* Before its pipes exist what is written waits for them. */
    if (input_watch(m)->fd < 0 && m->state > PROCESS_PREPARING)
        return stdin_closed(m, "the process closed it", e);
    if (n > RUN_STDIN_MAX - m->input.len)
        return err_set(e, ERR_STDIN_FULL,
                       "%zu bytes wait for process '%s' to read them, and %zu more would exceed "
                       "RUN_STDIN_MAX (%u); nothing was taken: write again when it has read",
                       m->input.len, m->id, n, RUN_STDIN_MAX);
    buf_put(&m->input, data, n);
    m->input_eof = eof;
    m->active_ms = uv_now(m->home->loop);
    if (stdio_flush(m) < 0)
        return stdin_closed(m, "the process closed it", e);
    return 0;
}
