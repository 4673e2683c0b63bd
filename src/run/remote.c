/* run/remote: see remote.h: the life of the connection to a worker. */
#include "run/remote.h"

#include "base/log.h"
#include "run/grave.h"
#include "run/remote_core.h"
#include "sys/fd.h"
#include "sys/unixsock.h"

#include <inttypes.h>
#include <string.h>

/* The stream has ended, or cannot be used any more. */
static void lose(struct remote *r, const char *why)
{
    if (r->state == REMOTE_DOWN || r->freed)
        return;
    r->state = REMOTE_DOWN;
    free(r->why);
    r->why = mem_strdup(why);
    log_error("the worker is lost: %s", why);
    link_close(&r->link);
    alarm_stop(&r->alarm);
    workerproc_free(steal(r->proc), WORKERPROC_PATIENCE_MS);
    known_lose_all(&r->known, why);
    calls_give_up(r);
}

static void on_welcome(struct remote *r, const struct runmsg *m)
{
    const struct runmsg_welcome *data = m->data;
    if (m->failed) {
        lose(r, m->failure.message);
        return;
    }
    if (m->op != RUNMSG_HELLO || data->protocol != RUNMSG_PROTOCOL) {
        lose(r, "it speaks another version of the protocol");
        return;
    }
    r->state = REMOTE_UP;
    alarm_set(&r->alarm, RUNMSG_PING_MS);
    calls_send_waiting(r);
}

static void on_message(void *owner, const char *text, size_t n)
{
    struct remote *r = owner;
    struct runmsg m;
    struct err e = {0};
    int rc = runmsg_read(text, n, &m, &e);
    if (rc == 1)
        lose(r, "it speaks another version of the protocol");
    else if (rc < 0)
        lose(r, e.message);
    else if (m.kind == RUNMSG_EVENT)
        known_end(&r->known, m.data);
    else if (m.kind == RUNMSG_REQUEST)
        lose(r, "it asked, and may only answer");
    else if (r->state == REMOTE_GREETING)
        on_welcome(r, &m);
    else if (calls_answer(r, &m, &e) < 0)
        lose(r, e.message);
    runmsg_fini(&m);
}

static void on_ended(void *owner, const char *why)
{
    lose(owner, why);
}

/* Take both descriptors and say hello. */
static int greet(struct remote *r, int *in, int *out)
{
    static const struct link_ops ops = {on_message, on_ended};
    int rc = link_open(&r->link, r->loop, &r->anchor, in, out, &ops, r);
    if (rc < 0)
        return rc;
    struct runmsg m = {.request_id = mem_strdup("hello")};
    struct runmsg_hello *data = runmsg_new_data(&m, RUNMSG_REQUEST, RUNMSG_HELLO);
    data->program = mem_strdup("codespace " CODESPACE_VERSION);
    r->state = REMOTE_GREETING;
    (void)link_send(&r->link, &m);
    runmsg_fini(&m);
    return 0;
}

static void on_connected(void *user, int fd, const char *why)
{
    struct remote *r = user;
    int none = -1;
    if (fd >= 0 && greet(r, &fd, &none) == 0)
        return;
    fd_close(&fd);
    autofree char *text = mem_printf("the worker could not be reached: %s", why);
    lose(r, text);
}

int remote_start_worker(struct remote *r, struct err *e)
{
    const struct workerproc_options o = {
        .loop = r->loop,
        .yard = &r->yard,
        .bin = r->worker_bin,
        .dir = r->dir,
        .extra = strv_array(&r->extra),
    };
    r->proc = workerproc_start(&o, on_connected, r, e);
    if (r->proc == NULL)
        return -1;
    r->state = REMOTE_STARTING;
    return 0;
}

static void on_alarm(struct alarm *a, void *owner)
{
    struct remote *r = owner;
    if (uv_now(r->loop) - r->link.heard_ms >= RUNMSG_SILENCE_MS) {
        lose(r, "it said nothing for RUNMSG_SILENCE_MS");
        return;
    }
    struct runmsg m = {0};
    runmsg_new_data(&m, RUNMSG_REQUEST, RUNMSG_PING);
    call_dispatch_silent(r, &m);
    alarm_set(&r->alarm, RUNMSG_PING_MS);
    calls_check_deadlines(r);
}

static void on_gone(struct anchor *a)
{
    struct remote *r = container_of(a, struct remote, anchor);
    known_fini(&r->known);
    strv_fini(&r->extra);
    free(r->why);
    free(r->worker_bin);
    free(r->dir);
    free(r);
}

/* The worker sees the end of its stream, ends its processes and itself; the loop waits for that. */
void remote_free(struct runner *base)
{
    struct remote *r = container_of(base, struct remote, base);
    r->freed = true;
    r->state = REMOTE_DOWN;
    list_each (it, &r->calls)
        call_free(r, container_of(it, struct call_out, link));
    link_close(&r->link);
    workerproc_free(steal(r->proc), WORKERPROC_PATIENCE_MS);
    alarm_close(&r->alarm);
    while (!list_empty(&r->yard)) /* they end by themselves; nobody of ours lists them any more */
        list_remove(r->yard.next);
    anchor_leave(&r->anchor, on_gone);
}

static struct remote *new_remote(uv_loop_t *loop, const struct remote_options *o)
{
    struct remote *r = mem_new(struct remote);
    r->base.ops = &remote_ops;
    r->loop = loop;
    r->worker_bin = mem_strdup(o->worker_bin);
    r->dir = mem_strdup(o->dir);
    r->timeout_ms = o->timeout_ms != 0 ? o->timeout_ms : RUN_TIMEOUT_DEFAULT_MS;
    if (o->max_processes > 0)
        strv_addf(&r->extra, "CODESPACE_MAX_PROCESSES=%" PRIu64, o->max_processes);
    if (o->max_workspace_processes > 0)
        strv_addf(&r->extra, "CODESPACE_MAX_WORKSPACE_PROCESSES=%" PRIu64,
                  o->max_workspace_processes);
    list_init(&r->yard);
    list_init(&r->calls);
    known_init(&r->known, REMOTE_ENDED_MAX);
    watch_init(&r->link.in);
    watch_init(&r->link.out);
    alarm_open(&r->alarm, loop, &r->anchor, on_alarm, r);
    return r;
}

struct runner *remote_runner_over(uv_loop_t *loop, int *in, int *out,
                                  const struct remote_options *o, struct err *e)
{
    struct remote *r = new_remote(loop, o);
    int rc = greet(r, in, out);
    if (rc == 0)
        return &r->base;
    err_sys(e, ERR_RUNNER_UNAVAILABLE, rc, "the stream to the worker cannot be used");
    remote_free(&r->base);
    return NULL;
}

struct runner *remote_runner_new(uv_loop_t *loop, const struct remote_options *o, struct err *e)
{
    if (o->worker_bin != NULL) {
        struct remote *r = new_remote(loop, o);
        if (remote_start_worker(r, e) == 0)
            return &r->base;
        remote_free(&r->base);
        return NULL;
    }
    if (o->socket == NULL) {
        err_set(e, ERR_RUNNER_UNAVAILABLE,
                "runner uds needs a worker: name its program (--runtime-bin) or the socket of one "
                "that runs (--runner-socket)");
        return NULL;
    }
    int none = -1;
    int fd = unixsock_connect(o->socket);
    if (fd < 0) {
        err_sys(e, ERR_RUNNER_UNAVAILABLE, fd, "no worker answers on %.300s", o->socket);
        return NULL;
    }
    struct runner *r = remote_runner_over(loop, &fd, &none, o, e);
    fd_close(&fd);
    return r;
}
