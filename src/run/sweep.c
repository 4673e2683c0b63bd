/* run/sweep: see sweep.h. */
#include "run/sweep.h"

#include "base/log.h"
#include "base/mem.h"
#include "sys/fd.h"
#include "sys/guarded.h"
#include "sys/path.h"
#include "sys/spawn.h"
#include "wire/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

/* Nobody fills the trees any more; only their depth counts. */
#define PASSES 100000u

struct sweep {
    uv_work_t work;
    int init_fd;
    int patience_ms; /* before process 1 is killed */
    int root_fd;     /* of the workspace */
    char *root;
    struct strv mounts; /* writable ones, which may hold guarded paths as well */
    struct strv guards;
    struct strv removed;
    char *failed;
    sweep_fn done; /* NULL = forgotten */
    void *user;
};

static void sweep_free(struct sweep *s)
{
    fd_close(&s->init_fd);
    fd_close(&s->root_fd);
    free(s->root);
    free(s->failed);
    strv_fini(&s->mounts);
    strv_fini(&s->guards);
    strv_fini(&s->removed);
    free(s);
}

/* The part of `path` below `dir`, or NULL. */
static const char *below(const char *path, const char *dir)
{
    size_t n = strlen(dir);
    return strncmp(path, dir, n) == 0 && path[n] == '/' && path[n + 1] != '\0' ? path + n + 1
                                                                               : NULL;
}

/* The descriptor that `path` is looked up from (caller closes); *ret_rest is the path from there.
 */
static int open_root(const struct sweep *s, const char *path, const char **ret_rest)
{
    *ret_rest = below(path, s->root);
    if (*ret_rest != NULL)
        return fcntl(s->root_fd, F_DUPFD_CLOEXEC, 3);
    for (size_t i = 0; i < s->mounts.len; i++) {
        *ret_rest = below(path, s->mounts.items[i]);
        if (*ret_rest == NULL)
            continue;
        autofd int top = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
        return path_open_beneath(top, s->mounts.items[i] + 1, O_PATH | O_DIRECTORY, 0);
    }
    return -ENOENT;
}

static void note(struct sweep *s, const char *path)
{
    const char *name = below(path, s->root);
    if (s->removed.len < HELPER_REMOVED_MAX)
        strv_addf(&s->removed, "%.*s", HELPER_NAME_MAX - 1, name != NULL ? name : path);
}

static void put_right(struct sweep *s, const char *path, const char *link)
{
    const char *rest;
    bool touched = false;
    autofd int root = open_root(s, path, &rest);
    int rc = root == -ENOENT ? 0 : root;
    if (root >= 0)
        rc = guarded_put_right(root, rest, link, PASSES, true, &touched);
    if (rc == 0 && touched)
        note(s, path);
    if (rc == 0)
        return;
    log_error("%s was created by a command whose sandbox was killed, and cannot be taken away: %s",
              path, strerror(-rc));
    if (s->failed == NULL)
        s->failed = mem_strdup(path);
}

static bool await_death(const struct sweep *s, int limit_ms)
{
    struct pollfd p = {.fd = s->init_fd, .events = POLLIN};
    int rc;
    do
        rc = poll(&p, 1, limit_ms);
    while (rc < 0 && errno == EINTR);
    return rc > 0;
}

static void on_pool(uv_work_t *work)
{
    struct sweep *s = container_of(work, struct sweep, work);
    if (s->patience_ms == 0 || !await_death(s, s->patience_ms)) {
        (void)spawn_signal(s->init_fd, SIGKILL);
        (void)await_death(s, SWEEP_WAIT_MS);
    }
    for (size_t i = 0; i + 1 < s->guards.len; i += 2)
        put_right(s, s->guards.items[i], s->guards.items[i + 1]);
}

static void on_swept(uv_work_t *work, int status)
{
    struct sweep *s = container_of(work, struct sweep, work);
    if (s->done != NULL)
        s->done(s->user, &s->removed, s->failed);
    sweep_free(s);
}

static struct sweep *sweep_new(int *init_fd, const struct workspace *ws, struct strv *guards)
{
    struct sweep *s = mem_new(struct sweep);
    s->init_fd = steal_fd(init_fd);
    s->guards = *guards;
    *guards = (struct strv){0};
    s->root = mem_strdup(ws->root);
    s->root_fd = fcntl(ws->root_fd, F_DUPFD_CLOEXEC, 3);
    for (size_t i = 0; i < ws->n_mounts; i++) {
        if (ws->mounts[i].writable)
            strv_add(&s->mounts, ws->mounts[i].path);
    }
    return s;
}

static struct sweep *begin(struct sweep *s, uv_loop_t *loop, const struct workspace *ws)
{
    if (s->root_fd < 0 || uv_queue_work(loop, &s->work, on_pool, on_swept) < 0) {
        log_error("what %s's command made under protected names cannot be looked for", ws->id);
        sweep_free(s);
        return NULL;
    }
    return s;
}

struct sweep *sweep_start(uv_loop_t *loop, int *init_fd, const struct workspace *ws,
                          struct strv *guards, sweep_fn done, void *user)
{
    struct sweep *s = sweep_new(init_fd, ws, guards);
    s->done = done;
    s->user = user;
    return begin(s, loop, ws);
}

void sweep_leave(uv_loop_t *loop, int *init_fd, const struct workspace *ws, struct strv *guards)
{
    struct sweep *s = sweep_new(init_fd, ws, guards);
    s->patience_ms = SWEEP_PATIENCE_MS;
    (void)begin(s, loop, ws);
}

void sweep_forget(struct sweep *s)
{
    if (s != NULL)
        s->done = NULL;
}
