/* sys/session: see session.h. */
#include "sys/session.h"

#include "base/mem.h"
#include "base/num.h"
#include "sys/fd.h"
#include "sys/spawn.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* A member that forks while we walk can be missed once; its child is found by the next walk. */
#define WALKS_MAX 4

/* The session of `pid` when it lives, its group and its name; else -1. The name in the second field
 * may hold anything, so the fields are counted from the last closing bracket. */
static pid_t session_of(pid_t pid, pid_t *ret_group, char ret_name[16])
{
    char path[64];
    char text[512];
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    autofd int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : fd_read(fd, text, sizeof(text) - 1);
    if (n <= 0)
        return -1;
    text[n] = '\0';
    const char *name = strchr(text, '(');
    const char *after = strrchr(text, ')');
    char state = 0;
    int parent = 0, group = 0, session = 0;
    if (name == NULL || after == NULL ||
        sscanf(after + 1, " %c %d %d %d", &state, &parent, &group, &session) != 4)
        return -1;
    *ret_group = group;
    snprintf(ret_name, 16, "%.*s", (int)(after - name - 1), name + 1);
    return state != 'Z' && state != 'X' ? session : -1;
}

/* The group of `pid` when it is a live member of session `sid`, else -1. */
static pid_t member_group(pid_t pid, pid_t sid, char ret_name[16])
{
    pid_t group = -1;
    return session_of(pid, &group, ret_name) == sid ? group : -1;
}

static void signal_member(pid_t pid, pid_t sid, int signal)
{
    char name[16];
    autofd int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (pidfd >= 0 && member_group(pid, sid, name) >= 0)
        (void)spawn_signal(pidfd, signal);
}

/* Signal the members outside the leader's group; count all but the leader. The first are noted in
 * `named` (NULL = not wanted). */
static unsigned walk(pid_t sid, int signal, struct session_member *named)
{
    unsigned found = 0;
    DIR *dir = opendir("/proc");
    if (dir == NULL)
        return 0;
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        uint64_t pid = 0;
        if (num_parse_u64(entry->d_name, 1, INT32_MAX, &pid) < 0 || (pid_t)pid == sid)
            continue;
        struct session_member member = {.pid = (pid_t)pid};
        pid_t group = member_group((pid_t)pid, sid, member.name);
        if (group >= 0 && named != NULL && found < SESSION_NAMED_MAX)
            named[found] = member;
        if (group >= 0)
            found++;
        if (group >= 0 && group != sid)
            signal_member((pid_t)pid, sid, signal);
    }
    closedir(dir);
    return found;
}

static unsigned signal_all(pid_t sid, int signal, struct session_member *named)
{
    unsigned members = walk(sid, signal, named);
    (void)kill(-sid, signal);
    unsigned left = signal == SIGKILL ? members : 0;
    for (int i = 1; left > 0 && i < WALKS_MAX; i++) {
        left = walk(sid, signal, NULL);
        (void)kill(-sid, signal);
    }
    return members;
}

unsigned session_signal(pid_t sid, int signal)
{
    return signal_all(sid, signal, NULL);
}

unsigned session_end(pid_t sid, struct session_member ret[SESSION_NAMED_MAX])
{
    memset(ret, 0, SESSION_NAMED_MAX * sizeof(*ret));
    return signal_all(sid, SIGKILL, ret);
}

int session_reap(int pidfd, bool walk, struct spawn_end *ret)
{
    siginfo_t info = {0};
    if (waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED | WNOHANG | WNOWAIT) < 0)
        return -errno;
    if (info.si_pid == 0)
        return -EAGAIN;
    if (walk && info.si_code != CLD_EXITED)
        (void)session_signal(info.si_pid, SIGKILL);
    else
        (void)kill(-info.si_pid, SIGKILL);
    return spawn_reap(pidfd, ret);
}

static int by_number(const void *a, const void *b)
{
    pid_t x = *(const pid_t *)a;
    pid_t y = *(const pid_t *)b;
    return x < y ? -1 : x > y;
}

/* Kill the members of all of them; how many there were besides the leaders. */
static unsigned walk_all(const pid_t *sids, size_t n)
{
    unsigned found = 0;
    DIR *dir = opendir("/proc");
    if (dir == NULL)
        return 0;
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        uint64_t pid = 0;
        pid_t group = -1;
        char name[16];
        if (num_parse_u64(entry->d_name, 1, INT32_MAX, &pid) < 0)
            continue;
        pid_t sid = session_of((pid_t)pid, &group, name);
        if (sid < 0 || sid == (pid_t)pid ||
            bsearch(&sid, sids, n, sizeof(*sids), by_number) == NULL)
            continue;
        found++;
        signal_member((pid_t)pid, sid, SIGKILL);
    }
    closedir(dir);
    return found;
}

void session_kill_all(pid_t *sids, size_t n)
{
    if (n == 0)
        return;
    qsort(sids, n, sizeof(*sids), by_number);
    for (int i = 0; i < WALKS_MAX; i++) {
        for (size_t k = 0; k < n; k++)
            (void)kill(-sids[k], SIGKILL);
        if (walk_all(sids, n) == 0)
            return;
    }
}
