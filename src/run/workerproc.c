/* run/workerproc: see workerproc.h. */
#include "run/workerproc.h"

#include "base/mem.h"
#include "base/str.h"
#include "run/grave.h"
#include "run/watch.h"
#include "sys/beside.h"
#include "sys/fd.h"
#include "sys/leaf.h"
#include "sys/rmtree.h"
#include "sys/spawn.h"
#include "sys/unixsock.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* To empty a directory that only the worker writes. */
#define WORKERPROC_PASSES 16

/* The only variables of ours that a worker gets. */
static const char *const passed_on[] = {
    "PATH",
    "HOME",
    "LANG",
    "TMPDIR",
    "CODESPACE_LINUX_SANDBOX_BIN",
    "CODESPACE_BWRAP_BIN",
    "CODESPACE_EGRESS_PROXY_BIN",
    "CODESPACE_EGRESS_PROXY_TLS_BIN",
    "CODESPACE_LOG",
    "CODESPACE_SPILL_DIR",
    "CODESPACE_SPILL_MIB",
    "CODESPACE_WARM",
    "CODESPACE_WARM_CREDENTIALS_SECS",
    "CODESPACE_DURABLE_IDLE_SECS",
};

struct workerproc {
    struct anchor anchor;
    struct workerproc_options o;
    struct watch words; /* its standard output, until it listens */
    struct alarm alarm;
    struct watch end; /* of a durable one, which is reaped if it ends before us */
    int pidfd;
    int hold; /* of the directory */
    char *dir, *socket;
    workerproc_fn done;
    void *user;
};

static void on_gone(struct anchor *a)
{
    free(container_of(a, struct workerproc, anchor));
}

void workerproc_free(struct workerproc *w, uint64_t patience_ms)
{
    if (w == NULL)
        return;
    watch_close(&w->words);
    alarm_close(&w->alarm);
    watch_close(&w->end);
    if (w->pidfd >= 0)
        grave_take(w->o.yard, w->o.loop, w->pidfd, patience_ms);
    /* It removes this too, unless it was killed. */
    if (w->dir != NULL)
        (void)rmtree(AT_FDCWD, w->dir, WORKERPROC_PASSES);
    fd_close(&w->hold);
    free(w->socket);
    free(w->dir);
    anchor_leave(&w->anchor, on_gone);
}

static void answer(struct workerproc *w, int fd, const char *why)
{
    watch_close(&w->words);
    alarm_stop(&w->alarm);
    w->done(w->user, fd, why);
}

static void on_words(struct watch *watch, void *owner)
{
    struct workerproc *w = owner;
    char text[64];
    ssize_t n = fd_read(watch->fd, text, sizeof(text));
    if (n == -EAGAIN)
        return;
    if (n <= 0) {
        answer(w, -1,
               w->o.durable_dir != NULL
                   ? "it ended before it listened; its words are in the log of its directory"
                   : "it ended before it listened; its words are on standard error");
        return;
    }
    int fd = unixsock_connect(w->socket);
    answer(w, fd < 0 ? -1 : fd, fd < 0 ? strerror(-fd) : "");
}

static void on_alarm(struct alarm *a, void *owner)
{
    answer(owner, -1, "it did not listen within WORKERPROC_START_MS");
}

static void fill_environment(struct strv *env, char *const *extra)
{
    for (size_t i = 0; i < ARRAY_LEN(passed_on); i++) {
        const char *value = getenv(passed_on[i]);
        if (value != NULL)
            strv_addf(env, "%s=%s", passed_on[i], value);
    }
    for (; extra != NULL && *extra != NULL; extra++)
        strv_add(env, *extra);
}

/* Made by the worker too, when it is there; here for its log. */
static int open_log(const char *dir)
{
    autofree char *path = mem_printf("%s/log", dir);
    if (!leaf_is_forbidden(dir))
        (void)mkdir(dir, 0700);
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
    return fd < 0 ? -errno : fd;
}

static void on_worker_end(struct watch *watch, void *owner)
{
    siginfo_t info;
    (void)waitid(P_PIDFD, (id_t)watch->fd, &info, WEXITED | WNOHANG);
    watch_close(watch);
}

static int spawn(struct workerproc *w, int words)
{
    autostrv env = {0};
    bool durable = w->o.durable_dir != NULL;
    autofd int log = durable ? open_log(w->o.durable_dir) : -1;
    const int fds[] = {-1, words, log >= 0 ? log : STDERR_FILENO};
    char *const argv[] = {(char *)w->o.bin, (char *)(durable ? "--durable" : "--own-dir"),
                          durable ? (char *)w->o.durable_dir : w->socket, NULL};
    struct spawned child = {-1, -1};
    fill_environment(&env, w->o.extra);
    const struct spawn_options s = {
        .path = w->o.bin,
        .argv = argv,
        .env = strv_array(&env),
        .fds = fds,
        .n_fds = 3,
        .cwd_fd = -1,
        .new_session = true,
    };
    int rc = spawn_start(&s, &child);
    if (rc == 0)
        w->pidfd = child.pidfd;
    if (rc == 0 && durable)
        rc = watch_take(&w->end, w->o.loop, &w->anchor, &w->pidfd, UV_READABLE, on_worker_end, w);
    return rc;
}

static int start(struct workerproc *w)
{
    int pair[2] = {-1, -1};
    int rc = fd_pipe(pair);
    if (rc < 0)
        return rc;
    rc = spawn(w, pair[1]);
    fd_close(&pair[1]);
    if (rc == 0)
        rc = watch_take(&w->words, w->o.loop, &w->anchor, &pair[0], UV_READABLE, on_words, w);
    fd_close(&pair[0]);
    return rc;
}

struct workerproc *workerproc_start(const struct workerproc_options *o, workerproc_fn done,
                                    void *user, struct err *e)
{
    char *dir = NULL;
    int rc = o->durable_dir != NULL ? 0 : leaf_make(o->dir, &dir);
    if (rc == -EPERM) {
        err_set(e, ERR_RUNNER_UNAVAILABLE,
                "the runner directory %.300s is refused: '/', '/tmp', '/var/tmp' and the home "
                "directory are not taken as they are; name a directory below",
                o->dir);
        return NULL;
    }
    if (rc < 0) {
        err_sys(e, ERR_RUNNER_UNAVAILABLE, rc, "cannot make a private directory in %.300s",
                o->dir == NULL ? "the temporary directory" : o->dir);
        return NULL;
    }
    struct workerproc *w = mem_new(struct workerproc);
    w->o = *o;
    w->pidfd = -1;
    w->hold = dir == NULL ? -1 : leaf_hold(dir);
    w->dir = dir;
    w->socket = mem_printf("%s/runner.sock", dir == NULL ? o->durable_dir : dir);
    w->done = done;
    w->user = user;
    watch_init(&w->words);
    watch_init(&w->end);
    alarm_open(&w->alarm, o->loop, &w->anchor, on_alarm, w);
    alarm_set(&w->alarm, WORKERPROC_START_MS);
    rc = start(w);
    if (rc == 0)
        return w;
    err_sys(e, ERR_RUNNER_UNAVAILABLE, rc, "cannot start the worker %.300s", o->bin);
    workerproc_free(w, 0);
    return NULL;
}

char *workerproc_find(void)
{
    const char *named = getenv("CODESPACE_RUNTIME_BIN");
    if (named != NULL && named[0] != '\0')
        return mem_strdup(named);
    return beside_find("codespace-codex-runtime");
}
