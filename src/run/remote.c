/* run/remote: see remote.h: the life of the connection to a worker. */
#include "run/remote.h"

#include "base/log.h"
#include "run/grave.h"
#include "run/remote_core.h"
#include "sys/fd.h"
#include "sys/unixsock.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A durable worker writes down why it ends, before it does. */
static void read_last_words(struct remote *r)
{
    char words[512];
    if (r->durable_dir == NULL && (!r->durable || r->socket == NULL))
        return;
    const char *place = r->durable_dir != NULL ? r->durable_dir : r->socket;
    size_t n = r->durable_dir != NULL ? strlen(place) : (size_t)(strrchr(place, '/') - place);
    autofree char *path = mem_printf("%.*s/ended", (int)n, place);
    autofd int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    ssize_t len = fd < 0 ? -1 : fd_read(fd, words, sizeof(words));
    if (len <= 0)
        return;
    char *old = steal(r->why);
    r->why = mem_printf("%s; its last words: %.*s", old, (int)len, words);
    free(old);
}

/* The stream has ended, or cannot be used any more. */
static void lose(struct remote *r, const char *why)
{
    if (r->state == REMOTE_DOWN || r->freed)
        return;
    r->state = REMOTE_DOWN;
    free(r->why);
    r->why = mem_strdup(why);
    read_last_words(r);
    log_error("the worker is lost: %s", r->why);
    link_close(&r->link);
    alarm_stop(&r->alarm);
    if (r->durable_dir == NULL)
        workerproc_free(steal(r->proc), WORKERPROC_PATIENCE_MS);
    known_lose_all(&r->known, r->why);
    calls_give_up(r);
}

static void ask_what_runs(struct remote *r, uint64_t after);

static void on_what_runs(void *user, const struct run_listing *list, const struct err *failure)
{
    struct remote *r = user;
    if (failure != NULL)
        return; /* it is lost again */
    for (size_t i = 0; i < list->n; i++)
        known_adopt(&r->known, &list->items[i]);
    if (list->more && list->n > 0)
        ask_what_runs(r, list->items[list->n - 1].serial);
}

static void ask_what_runs(struct remote *r, uint64_t after)
{
    struct call_out *c = call_new(r, RUNMSG_LIST, r);
    struct runmsg m = {0};
    c->fn.list = on_what_runs;
    struct runmsg_list *data = runmsg_new_data(&m, RUNMSG_REQUEST, RUNMSG_LIST);
    *data = (struct runmsg_list){.after = after, .live_only = true};
    call_dispatch(r, c, &m);
}

static void meet(struct remote *r, const struct runmsg_welcome *w)
{
    bool same = r->worker_id != NULL && str_eq(r->worker_id, w->worker_id);
    if (w->durable)
        log_info("connected to the durable worker %s (codespace %s), epoch %" PRIu64, w->worker_id,
                 w->version == NULL ? "?" : w->version, w->epoch);
    if (same && w->epoch != r->epoch + 1)
        log_warn("another gateway used the worker %s meanwhile", w->worker_id);
    if (same)
        known_forget_lost(&r->known);
    free(r->worker_id);
    r->worker_id = mem_strdup(w->worker_id);
    r->epoch = w->epoch;
    r->durable = w->durable;
    r->again = false;
    r->level = w->level < RUNMSG_LEVEL ? w->level : RUNMSG_LEVEL;
    free(steal(r->refused));
}

static void say_hello(struct remote *r, uint64_t level)
{
    struct runmsg m = {.request_id = mem_strdup("hello")};
    struct runmsg_hello *data = runmsg_new_data(&m, RUNMSG_REQUEST, RUNMSG_HELLO);
    *data = (struct runmsg_hello){.program = mem_strdup("codespace " CODESPACE_VERSION),
                                  .level = level};
    (void)link_send(&r->link, &m);
    runmsg_fini(&m);
}

/* One that knows no level refuses a hello that has one, and goes on. One that refuses us for
 * another reason does so again, or hangs up. */
static bool greet_again(struct remote *r, const struct err *failure)
{
    if (r->refused != NULL || failure->code != ERR_INVALID_REQUEST)
        return false;
    r->refused = mem_strdup(failure->message);
    say_hello(r, 0);
    return true;
}

static void on_welcome(struct remote *r, const struct runmsg *m)
{
    const struct runmsg_welcome *data = m->data;
    if (m->failed) {
        if (!greet_again(r, &m->failure))
            lose(r, m->failure.message);
        return;
    }
    if (m->op != RUNMSG_HELLO || data->protocol != RUNMSG_PROTOCOL) {
        lose(r, "it speaks another version of the protocol");
        return;
    }
    meet(r, data);
    r->state = REMOTE_UP;
    alarm_set(&r->alarm, RUNMSG_PING_MS);
    if (r->durable)
        ask_what_runs(r, 0);
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
        known_learn(&r->known, m.data);
    else if (m.kind == RUNMSG_REQUEST)
        lose(r, "it asked, and may only answer");
    else if (r->state == REMOTE_GREETING)
        on_welcome(r, &m);
    else if (calls_answer(r, &m, &e) < 0)
        lose(r, e.message);
    runmsg_fini(&m);
}

static int start_worker(struct remote *r, struct err *e);

/* A worker of our own that ends before it has greeted has been given nothing, so another may take
 * its place. One that refused us would do so again. */
static bool start_once_more(struct remote *r, const char *why)
{
    struct err ignored;
    if (r->state != REMOTE_GREETING || r->refused != NULL || r->again || r->proc == NULL ||
        r->durable_dir != NULL)
        return false;
    r->again = true;
    log_warn("the worker ended before it greeted (%s); another is started", why);
    return start_worker(r, &ignored) == 0;
}

static void on_ended(void *owner, const char *why)
{
    struct remote *r = owner;
    if (start_once_more(r, why))
        return;
    lose(r, r->refused != NULL ? r->refused : why);
}

/* Take both descriptors and say hello. */
static int greet(struct remote *r, int *in, int *out)
{
    static const struct link_ops ops = {on_message, on_ended};
    int rc = link_open(&r->link, r->loop, &r->anchor, in, out, &ops, r);
    if (rc < 0)
        return rc;
    r->state = REMOTE_GREETING;
    free(steal(r->refused));
    say_hello(r, RUNMSG_LEVEL);
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

static int start_worker(struct remote *r, struct err *e)
{
    workerproc_free(steal(r->proc), WORKERPROC_PATIENCE_MS);
    const struct workerproc_options o = {
        .loop = r->loop,
        .yard = &r->yard,
        .bin = r->worker_bin,
        .dir = r->dir,
        .durable_dir = r->durable_dir,
        .extra = strv_array(&r->extra),
    };
    r->proc = workerproc_start(&o, on_connected, r, e);
    if (r->proc == NULL)
        return -1;
    r->state = REMOTE_STARTING;
    return 0;
}

/* Whose it is, when the system does not let us in. */
static int not_reached(const char *socket, int rc, struct err *e)
{
    struct stat st;
    autofree char *dir = mem_dup(socket, (size_t)(strrchr(socket, '/') - socket));
    if ((rc == -EACCES || rc == -EPERM) && stat(dir, &st) == 0 && st.st_uid != geteuid())
        return err_set(e, ERR_RUNNER_UNAVAILABLE,
                       "the worker on %.300s belongs to another user (uid %u); a worker serves its "
                       "own user only",
                       socket, (unsigned)st.st_uid);
    return err_sys(e, ERR_RUNNER_UNAVAILABLE, rc, "no worker answers on %.300s", socket);
}

/* To the worker that is there, or to one that is started when it is for us to start it. */
static int connect_or_start(struct remote *r, bool may_start, struct err *e)
{
    int none = -1;
    autofd int fd = r->socket == NULL ? -ENOENT : unixsock_connect(r->socket);
    bool nobody = fd == -ENOENT || fd == -ECONNREFUSED;
    if (nobody && may_start && r->worker_bin != NULL)
        return start_worker(r, e);
    if (fd < 0)
        return not_reached(r->socket, fd, e);
    int rc = greet(r, &fd, &none);
    return rc < 0 ? err_sys(e, ERR_RUNNER_UNAVAILABLE, rc, "the stream to the worker") : 0;
}

/* The handles of the last stream are still closing on the turn that lost it. What is not reached is
 * told by the call itself, with the reason of the loss. */
int remote_reach(struct remote *r, bool for_exec, struct err *e)
{
    struct err ignored;
    if (r->state != REMOTE_DOWN || r->freed)
        return 0;
    if (r->socket == NULL)
        return for_exec && r->worker_bin != NULL ? start_worker(r, e) : 0;
    if (r->anchor.open > 1)
        return 0;
    if (for_exec && r->worker_bin != NULL)
        return connect_or_start(r, true, e);
    (void)connect_or_start(r, false, &ignored);
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
    free(r->socket);
    free(r->durable_dir);
    free(r->worker_id);
    free(r->refused);
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
    r->durable_dir = o->worker_bin == NULL ? NULL : mem_strdup(o->durable_dir);
    if (r->durable_dir != NULL)
        r->socket = mem_printf("%s/runner.sock", r->durable_dir);
    else if (o->worker_bin == NULL)
        r->socket = mem_strdup(o->socket);
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
    if (o->worker_bin == NULL && o->socket == NULL) {
        err_set(e, ERR_RUNNER_UNAVAILABLE,
                "runner uds needs a worker: name its program (--runtime-bin) or the socket of one "
                "that runs (--runner-socket)");
        return NULL;
    }
    struct remote *r = new_remote(loop, o);
    if (connect_or_start(r, true, e) == 0)
        return &r->base;
    remote_free(&r->base);
    return NULL;
}
