/* worker/durable: see durable.h. */
#include "worker/durable.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "sys/fd.h"
#include "sys/leaf.h"
#include "sys/rmtree.h"
#include "sys/unixsock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* To empty a directory that only we write. */
#define TMP_PASSES 16

/* ---- the directory ---- */

static int refuse(struct err *e, const char *dir, const char *why)
{
    return err_set(e, ERR_CONFIG_INVALID, "the durable directory %.300s is refused: %s", dir, why);
}

/* A descriptor of the directory, or -1. */
static int take_dir(const char *dir, struct err *e)
{
    struct stat st;
    if (dir[0] != '/')
        return refuse(e, dir, "it must be an absolute path");
    if (leaf_is_forbidden(dir))
        return refuse(e, dir,
                      "'/', '/tmp', '/var/tmp' and the home directory are not taken as they are; "
                      "name a directory below");
    if (mkdir(dir, 0700) < 0 && errno != EEXIST)
        return err_sys(e, ERR_CONFIG_INVALID, errno, "the durable directory %.300s", dir);
    autofd int fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_sys(e, ERR_CONFIG_INVALID, errno, "the durable directory %.300s", dir);
    if (st.st_uid != geteuid())
        return refuse(e, dir, "it belongs to another user");
    if ((st.st_mode & 077) != 0)
        return refuse(e, dir, "others may enter it (its mode must be 0700)");
    return steal_fd(&fd);
}

/* Nothing of a previous worker's moment is of use, and its last words are not ours. */
static int take_lock(struct durable *d, int fd, struct err *e)
{
    d->lock = openat(fd, DURABLE_LOCK, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (d->lock < 0)
        return err_sys(e, ERR_CONFIG_INVALID, errno, "the lock of %.300s", d->dir);
    if (flock(d->lock, LOCK_EX | LOCK_NB) == 0)
        return ftruncate(d->lock, 0) == 0 && dprintf(d->lock, "%d\n", (int)getpid()) > 0
                   ? 0
                   : err_sys(e, ERR_CONFIG_INVALID, errno, "the lock of %.300s", d->dir);
    fd_close(&d->lock);
    return err_set(e, ERR_RUNNER_UNAVAILABLE, "another worker has %.300s; one is served by one",
                   d->dir);
}

static int make_tmp(const struct durable *d, int fd, struct err *e)
{
    autofree char *tmp = mem_printf("%s/" DURABLE_TMP, d->dir);
    (void)unlinkat(fd, DURABLE_ENDED, 0);
    (void)rmtree(fd, DURABLE_TMP, TMP_PASSES);
    if (mkdirat(fd, DURABLE_TMP, 0700) < 0)
        return err_sys(e, ERR_CONFIG_INVALID, errno, "cannot make %.300s", tmp);
    setenv("TMPDIR", tmp, 1);
    return 0;
}

int durable_open(struct durable *d, const char *dir, struct err *e)
{
    *d = (struct durable){.dir = mem_strdup(dir), .lock = -1, .listener = -1};
    watch_init(&d->watch);
    autofd int fd = take_dir(dir, e);
    if (fd < 0 || take_lock(d, fd, e) < 0 || make_tmp(d, fd, e) < 0)
        return -1;
    autofree char *path = mem_printf("%s/" DURABLE_SOCKET, dir);
    d->listener = unixsock_listen(path);
    if (d->listener < 0)
        return err_sys(e, ERR_RUNNER_UNAVAILABLE, d->listener, "cannot listen on %.300s", path);
    return 0;
}

/* ---- serving ---- */

static void on_connection(struct watch *w, void *owner)
{
    struct durable *d = owner;
    if (serve_is_settling(d->serve))
        return; /* the loop asks again */
    autofd int fd = unixsock_accept(w->fd);
    if (fd < 0) {
        if (fd == -EPERM)
            log_warn("somebody of another user was hung up on");
        return;
    }
    if (serve_attach(d->serve, &fd) == 0)
        alarm_stop(&d->alarm);
}

static void on_idle(struct alarm *a, void *owner)
{
    struct durable *d = owner;
    d->why = "no gateway was connected for the worker's idle limit";
    d->ended(d->user);
}

int durable_serve(struct durable *d, uv_loop_t *loop, struct serve *serve, uint64_t idle_ms,
                  void (*ended)(void *user), void *user)
{
    d->serve = serve;
    d->idle_ms = idle_ms;
    d->ended = ended;
    d->user = user;
    alarm_open(&d->alarm, loop, &d->anchor, on_idle, d);
    alarm_set(&d->alarm, idle_ms);
    return watch_take(&d->watch, loop, &d->anchor, &d->listener, UV_READABLE, on_connection, d);
}

void durable_detached(struct durable *d)
{
    alarm_set(&d->alarm, d->idle_ms);
}

/* ---- the end ---- */

/* Whole or not at all. */
static int write_words(int dir, const char *why)
{
    static const char fresh[] = DURABLE_ENDED ".new";
    autofd int fd = openat(dir, fresh, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    int rc = fd_write_all(fd, why, strlen(why));
    if (rc == 0 && renameat(dir, fresh, dir, DURABLE_ENDED) < 0)
        rc = -errno;
    return rc;
}

void durable_close(struct durable *d, const char *why)
{
    autofree char *idle = d->why == NULL
                              ? NULL
                              : mem_printf("%s (CODESPACE_DURABLE_IDLE_SECS, %llu s)", d->why,
                                           (unsigned long long)(d->idle_ms / 1000));
    const char *words = idle != NULL ? idle : why;
    autofd int fd = open(d->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    log_warn("the durable worker ends: %s", words);
    if (fd >= 0) {
        int rc = write_words(fd, words);
        if (rc < 0)
            log_warn("%s/" DURABLE_ENDED ": %s", d->dir, strerror(-rc));
        (void)unlinkat(fd, DURABLE_SOCKET, 0);
    }
    watch_close(&d->watch);
    alarm_close(&d->alarm);
}

static void on_gone(struct anchor *a)
{
}

void durable_free(struct durable *d)
{
    if (d->dir == NULL)
        return;
    autofree char *tmp = mem_printf("%s/" DURABLE_TMP, d->dir);
    if (d->lock >= 0)
        (void)rmtree(AT_FDCWD, tmp, TMP_PASSES);
    anchor_leave(&d->anchor, on_gone);
    fd_close(&d->listener);
    fd_close(&d->lock);
    free(d->dir);
}
