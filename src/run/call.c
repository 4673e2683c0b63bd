/* run/call: see call.h. */
#include "run/call.h"

#include "run/grave.h"
#include "run/watch.h"
#include "sys/fd.h"
#include "sys/session.h"
#include "sys/spawn.h"
#include "wire/helper.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>

struct call {
    struct anchor anchor;
    uv_loop_t *loop;
    struct list *yard;
    struct watch in, out, words, pidfd;
    pid_t pid; /* leads a session of its own */
    struct alarm alarm;
    struct buf input;
    struct buf answer;
    struct buf said;
    struct spawn_end end;
    bool reaped;
    uint64_t limit_ms;
    call_fn done;
    void *user;
};

static void on_gone(struct anchor *a)
{
    struct call *c = container_of(a, struct call, anchor);
    buf_fini(&c->input);
    buf_fini(&c->answer);
    buf_fini(&c->said);
    free(c);
}

/* Close all; a child that still lives goes to the grave. */
static void leave(struct call *c)
{
    watch_close(&c->in);
    watch_close(&c->out);
    watch_close(&c->words);
    int pidfd = watch_release(&c->pidfd);
    if (pidfd >=
        0) { /* not reaped: what it started in groups of their own is found by its number */
        (void)session_signal(c->pid, SIGKILL);
        grave_take(c->yard, c->loop, pidfd, 0);
    }
    alarm_close(&c->alarm);
    anchor_leave(&c->anchor, on_gone);
}

void call_cancel(struct call *c)
{
    if (c != NULL)
        leave(c);
}

static void answer(struct call *c, const struct err *failure)
{
    struct call_answer a = {buf_bytes(&c->answer), c->answer.len, c->end.value, failure};
    c->done(c->user, &a);
    leave(c);
}

static void fail(struct call *c, const char *what)
{
    struct err e;
    err_set(&e, ERR_PROCESS_SPAWN_FAILED, "the sandbox helper %s%s%s", what,
            c->said.len > 0 ? ": " : "", buf_cstr(&c->said));
    answer(c, &e);
}

/* Both its end and the end of its answer are needed, in whatever order they come. */
static void check_complete(struct call *c)
{
    if (!c->reaped || c->out.fd >= 0)
        return;
    if (c->end.signaled)
        fail(c, "was killed before it answered");
    else
        answer(c, NULL);
}

/* Read what is there into `to`, up to `max` in all. Closes the watch at the end of file. False when
 * there was more than max. */
static bool collect(struct watch *w, struct buf *to, size_t max)
{
    for (;;) {
        char chunk[4096];
        ssize_t n = fd_read(w->fd, chunk, sizeof(chunk));
        if (n == -EAGAIN)
            return true;
        if (n <= 0) {
            watch_close(w);
            return true;
        }
        size_t room = max - to->len;
        buf_put(to, chunk, (size_t)n < room ? (size_t)n : room);
        if ((size_t)n > room)
            return false;
    }
}

static void on_output(struct watch *w, void *owner)
{
    struct call *c = owner;
    if (!collect(w, &c->answer, HELPER_LINE_MAX))
        fail(c, "answered with more than HELPER_LINE_MAX bytes");
    else
        check_complete(c);
}

static void on_words(struct watch *w, void *owner)
{
    struct call *c = owner;
    if (!collect(w, &c->said, CALL_WORDS_MAX))
        watch_close(w);
}

/* 0 when all is written or will never be (a helper that does not read to the end says why in its
 * answer), -EAGAIN when the rest has to wait. */
static int feed(struct call *c, int fd)
{
    while (c->input.len > 0) {
        ssize_t n = fd_write(fd, buf_bytes(&c->input), c->input.len);
        if (n < 0)
            return n == -EAGAIN ? -EAGAIN : 0;
        buf_consume(&c->input, (size_t)n);
    }
    return 0;
}

static void on_input(struct watch *w, void *owner)
{
    if (feed(owner, w->fd) == 0)
        watch_close(w);
}

static void on_ended(struct watch *w, void *owner)
{
    struct call *c = owner;
    if (session_reap(w->fd, true, &c->end) == -EAGAIN)
        return;
    c->reaped = true;
    watch_close(w);
    if (c->words.fd >= 0)
        on_words(&c->words, c);
    check_complete(c);
}

static void on_alarm(struct alarm *a, void *owner)
{
    struct call *c = owner;
    char what[64];
    snprintf(what, sizeof(what), "did not answer within %" PRIu64 " ms", c->limit_ms);
    fail(c, what);
}

/* Spawn on three streams; ours[i] is our end of its descriptor i. The caller closes ours. */
static int start_child(const struct call_options *o, int ours[3], struct spawned *ret)
{
    int theirs[3] = {-1, -1, -1};
    int rc = 0;
    for (int i = 0; rc == 0 && i < 3; i++) {
        int pair[2] = {-1, -1};
        rc = fd_pipe(pair);
        ours[i] = pair[i == 0 ? 1 : 0];
        theirs[i] = pair[i == 0 ? 0 : 1];
    }
    const struct spawn_options s = {
        .path = o->argv[0],
        .argv = o->argv,
        .env = o->env,
        .fds = theirs,
        .n_fds = 3,
        .cwd_fd = -1,
        .new_session = true,
    };
    if (rc == 0)
        rc = spawn_start(&s, ret);
    for (int i = 0; i < 3; i++)
        fd_close(&theirs[i]);
    return rc;
}

/* Put our ends on the loop. Taken ones become -1. The request usually fits into the pipe, and then
 * its end needs no watching. */
static int watch_child(struct call *c, int ours[3], int *pidfd)
{
    int rc = fd_set_nonblocking(ours[0], true);
    if (rc == 0 && feed(c, ours[0]) < 0)
        rc = watch_take(&c->in, c->loop, &c->anchor, &ours[0], UV_WRITABLE, on_input, c);
    if (rc == 0)
        rc = watch_take(&c->out, c->loop, &c->anchor, &ours[1], UV_READABLE, on_output, c);
    if (rc == 0)
        rc = watch_take(&c->words, c->loop, &c->anchor, &ours[2], UV_READABLE, on_words, c);
    if (rc == 0)
        rc = watch_take(&c->pidfd, c->loop, &c->anchor, pidfd, UV_READABLE, on_ended, c);
    return rc;
}

static struct call *new_call(const struct call_options *o, call_fn done, void *user)
{
    struct call *c = mem_new(struct call);
    c->loop = o->loop;
    c->yard = o->yard;
    c->limit_ms = o->limit_ms;
    c->done = done;
    c->user = user;
    watch_init(&c->in);
    watch_init(&c->out);
    watch_init(&c->words);
    watch_init(&c->pidfd);
    alarm_open(&c->alarm, o->loop, &c->anchor, on_alarm, c);
    alarm_set(&c->alarm, o->limit_ms);
    return c;
}

struct call *call_start(const struct call_options *o, struct buf *input, call_fn done, void *user,
                        struct err *e)
{
    int ours[3] = {-1, -1, -1};
    struct spawned child = {-1, -1};
    struct call *c = new_call(o, done, user);
    c->input = *input;
    *input = (struct buf)BUF_INIT;
    int rc = start_child(o, ours, &child);
    c->pid = child.pid;
    if (rc == 0)
        rc = watch_child(c, ours, &child.pidfd);
    for (int i = 0; i < 3; i++)
        fd_close(&ours[i]);
    if (rc == 0)
        return c;
    if (child.pidfd >= 0)
        grave_take(o->yard, o->loop, child.pidfd, 0);
    leave(c);
    err_sys(e, ERR_PROCESS_SPAWN_FAILED, rc, "cannot start the sandbox helper %s", o->argv[0]);
    return NULL;
}
