/* sys/spawn: see spawn.h. */
#include "sys/spawn.h"

#include "base/mem.h"
#include "sys/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* glibc 2.36 declares neither in a header that goes with <sys/wait.h>. */
static int pidfd_open_raw(pid_t pid)
{
    return (int)syscall(SYS_pidfd_open, pid, 0);
}

int spawn_signal(int pidfd, int signal)
{
    return syscall(SYS_pidfd_send_signal, pidfd, signal, NULL, 0) == 0 ? 0 : -errno;
}

static int fill_attributes(posix_spawnattr_t *attr, const struct spawn_options *o)
{
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    short flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
    if (o->new_session)
        flags |= POSIX_SPAWN_SETSID;
    int rc = posix_spawnattr_setsigmask(attr, &none);
    if (rc == 0)
        rc = posix_spawnattr_setsigdefault(attr, &all);
    return rc != 0 ? -rc : -posix_spawnattr_setflags(attr, flags);
}

/* Descriptor `target` of the child. Opening the terminal again after setsid (attributes come before
 * file actions) is what makes it the controlling one; by descriptor, because a path to it need not
 * exist in our view of /dev. */
static int place(posix_spawn_file_actions_t *actions, const struct spawn_options *o, int source,
                 int target)
{
    if (source < 0)
        return -posix_spawn_file_actions_addopen(actions, target, "/dev/null", O_RDWR, 0);
    if (target == 0 && o->terminal) {
        char path[64];
        snprintf(path, sizeof(path), "/proc/self/fd/%d", source);
        return -posix_spawn_file_actions_addopen(actions, target, path, O_RDWR, 0);
    }
    return -posix_spawn_file_actions_adddup2(actions, source, target);
}

static int fill_actions(posix_spawn_file_actions_t *actions, const struct spawn_options *o,
                        const int *sources)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < o->n_fds; i++)
        rc = place(actions, o, sources[i], (int)i);
    if (rc == 0)
        rc = o->cwd_fd < 0 ? 0 : -posix_spawn_file_actions_addfchdir_np(actions, o->cwd_fd);
    if (rc == 0)
        rc = -posix_spawn_file_actions_addclosefrom_np(actions, (int)o->n_fds);
    return rc;
}

/* A source below n_fds could be overwritten before its turn: move it out of the way. `moved` holds
 * what the caller has to close. */
static int clear_sources(const struct spawn_options *o, int *sources, int *moved)
{
    for (size_t i = 0; i < o->n_fds; i++) {
        sources[i] = o->fds[i];
        if (sources[i] < 0 || sources[i] >= (int)o->n_fds)
            continue;
        moved[i] = fcntl(sources[i], F_DUPFD_CLOEXEC, (int)o->n_fds);
        if (moved[i] < 0)
            return -errno;
        sources[i] = moved[i];
    }
    return 0;
}

static int spawn_prepared(const struct spawn_options *o, const int *sources, pid_t *ret_pid)
{
    posix_spawnattr_t attr;
    posix_spawn_file_actions_t actions;
    int rc = -posix_spawnattr_init(&attr);
    if (rc != 0)
        return rc;
    rc = -posix_spawn_file_actions_init(&actions);
    if (rc != 0) {
        posix_spawnattr_destroy(&attr);
        return rc;
    }
    rc = fill_attributes(&attr, o);
    if (rc == 0)
        rc = fill_actions(&actions, o, sources);
    if (rc == 0)
        rc = -posix_spawn(ret_pid, o->path, &actions, &attr, o->argv, o->env);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attr);
    return rc;
}

int spawn_start(const struct spawn_options *o, struct spawned *ret)
{
    ensure(o->n_fds >= 3 && o->n_fds <= SPAWN_FDS_MAX);
    int sources[SPAWN_FDS_MAX];
    int moved[SPAWN_FDS_MAX] = {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1};
    pid_t pid = -1;
    int rc = clear_sources(o, sources, moved);
    if (rc == 0)
        rc = spawn_prepared(o, sources, &pid);
    for (size_t i = 0; i < o->n_fds; i++)
        fd_close(&moved[i]);
    if (rc < 0)
        return rc;
    int pidfd = pidfd_open_raw(pid);
    if (pidfd < 0) { /* a child that cannot be watched is not kept */
        rc = -errno;
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        return rc;
    }
    *ret = (struct spawned){pid, pidfd};
    return 0;
}

/* 0 when `path` can be executed, -EACCES when it is there and cannot, -ENOENT else. */
static int check_executable(int cwd_fd, const char *path)
{
    struct stat st;
    int at = cwd_fd < 0 ? AT_FDCWD : cwd_fd;
    if (fstatat(at, path, &st, 0) < 0)
        return errno == EACCES ? -EACCES : -ENOENT;
    if (!S_ISREG(st.st_mode))
        return -EACCES;
    return faccessat(at, path, X_OK, AT_EACCESS) == 0 ? 0 : -EACCES;
}

int spawn_find(const char *name, const char *path_list, int cwd_fd, char **ret)
{
    if (strchr(name, '/') != NULL) {
        int rc = check_executable(cwd_fd, name);
        if (rc == 0)
            *ret = mem_strdup(name);
        return rc;
    }
    int worst = -ENOENT;
    for (const char *at = path_list; at != NULL && *name != '\0';) {
        const char *end = strchrnul(at, ':');
        /* An empty element would mean the current directory; a command must say ./ for that. */
        if (end > at) {
            autofree char *candidate = mem_printf("%.*s/%s", (int)(end - at), at, name);
            int rc = check_executable(cwd_fd, candidate);
            if (rc == 0) {
                *ret = steal(candidate);
                return 0;
            }
            worst = rc == -EACCES ? rc : worst;
        }
        at = *end == ':' ? end + 1 : NULL;
    }
    return worst;
}

static uint64_t microseconds(const struct timeval *t)
{
    return (uint64_t)t->tv_sec * 1000000u + (uint64_t)t->tv_usec;
}

int spawn_reap(int pidfd, struct spawn_end *ret)
{
    siginfo_t info = {0};
    struct rusage use = {0};
    /* The system call itself, because the library's waitid drops the resource usage. */
    if (syscall(SYS_waitid, P_PIDFD, pidfd, &info, WEXITED | WNOHANG, &use) < 0)
        return -errno;
    if (info.si_pid == 0)
        return -EAGAIN;
    *ret = (struct spawn_end){
        .signaled = info.si_code != CLD_EXITED,
        .value = info.si_status,
        .cpu_us = microseconds(&use.ru_utime) + microseconds(&use.ru_stime),
        .max_rss_kib = (uint64_t)use.ru_maxrss,
    };
    return 0;
}

int spawn_has_ended(int pidfd)
{
    siginfo_t info = {0};
    if (waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED | WNOHANG | WNOWAIT) < 0)
        return -errno;
    return info.si_pid != 0;
}
