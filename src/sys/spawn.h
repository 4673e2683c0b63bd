/* sys/spawn: starting a program without forking.
 *
 * Theory. posix_spawn of glibc shares memory with the child until exec (CLONE_VM and CLONE_VFORK),
 * so a server of a gigabyte starts a program as fast as a small one. The child begins clean: no
 * blocked signals, default dispositions, exactly the descriptors that were named, numbered from 0.
 * The parent gets a pidfd, so nothing later depends on a number that may be used again.
 *
 * Must not: search PATH by itself (the child's PATH is not ours; see spawn_find), pass on our
 * environment or any descriptor that was not named.
 */
#ifndef CODESPACE_SYS_SPAWN_H
#define CODESPACE_SYS_SPAWN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* More descriptors than any program of ours gets. */
#define SPAWN_FDS_MAX 12

struct spawn_options {
    const char *path;  /* of the program; used as it is */
    char *const *argv; /* NULL-terminated */
    char *const *env;  /* NULL-terminated; the whole environment of the child */
    const int *fds;    /* fds[i] becomes descriptor i; -1 = /dev/null */
    size_t n_fds;      /* at least 3 */
    int cwd_fd;        /* directory to start in; -1 = ours */
    bool new_session;  /* setsid: own session and process group, no controlling terminal */
    bool terminal;     /* fds[0] is a terminal and becomes the controlling one of the session */
};

struct spawned {
    pid_t pid;
    int pidfd; /* close-on-exec; caller closes */
};

/* Start it. 0, or -errno: what exec said (ENOENT, EACCES, ENOEXEC, E2BIG, ...) or what the kernel
 * refused (EAGAIN, ENOMEM, EMFILE). On failure nothing runs and ret is untouched. */
int spawn_start(const struct spawn_options *o, struct spawned *ret);

/* The file that exec would take for `name` with this PATH, as a fresh string in *ret (caller
 * frees). A name with a slash is taken as it is, seen from the directory cwd_fd (-1 = ours) by the
 * child. 0, -ENOENT, or -EACCES when something of that name is there but not executable. */
int spawn_find(const char *name, const char *path_list, int cwd_fd, char **ret);

/* How a child ended. */
struct spawn_end {
    bool signaled;
    int value; /* exit code or signal number */
    uint64_t cpu_us;
    uint64_t max_rss_kib;
};

/* Reap the child behind pidfd. 0, -EAGAIN while it runs, or -errno. */
int spawn_reap(int pidfd, struct spawn_end *ret);

/* 1 when the child behind pidfd has ended and waits to be reaped, 0 while it runs, or -errno. */
int spawn_has_ended(int pidfd);

/* Signal one process by its pidfd. 0 or -errno (-ESRCH when it is gone). */
int spawn_signal(int pidfd, int signal);

#endif
