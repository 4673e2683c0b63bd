/* sys/fd: see fd.h. */
#include "sys/fd.h"

#include "base/num.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/socket.h>
#include <unistd.h>

int fd_pipe(int ret[2])
{
    int pair[2];
    if (pipe2(pair, O_CLOEXEC) < 0)
        return -errno;
    ret[0] = pair[0];
    ret[1] = pair[1];
    return 0;
}

int fd_socketpair(int ret[2])
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return -errno;
    ret[0] = pair[0];
    ret[1] = pair[1];
    return 0;
}

static int set_flag(int fd, int get, int set, int flag, bool on)
{
    int flags = fcntl(fd, get);
    if (flags < 0)
        return -errno;
    int wanted = on ? flags | flag : flags & ~flag;
    return wanted == flags || fcntl(fd, set, wanted) == 0 ? 0 : -errno;
}

int fd_set_nonblocking(int fd, bool on)
{
    return set_flag(fd, F_GETFL, F_SETFL, O_NONBLOCK, on);
}

int fd_set_cloexec(int fd, bool on)
{
    return set_flag(fd, F_GETFD, F_SETFD, FD_CLOEXEC, on);
}

int fd_set_pipe_size(int fd, int bytes)
{
    int size = fcntl(fd, F_SETPIPE_SZ, bytes);
    return size < 0 ? -errno : size;
}

ssize_t fd_read(int fd, void *data, size_t n)
{
    for (;;) {
        ssize_t got = read(fd, data, n);
        if (got >= 0 || errno != EINTR)
            return got >= 0 ? got : -errno;
    }
}

ssize_t fd_write(int fd, const void *data, size_t n)
{
    for (;;) {
        ssize_t put = write(fd, data, n);
        if (put >= 0 || errno != EINTR)
            return put >= 0 ? put : -errno;
    }
}

ssize_t fd_send(int fd, const void *data, size_t n)
{
    for (;;) {
        ssize_t put = send(fd, data, n, MSG_NOSIGNAL);
        if (put >= 0 || errno != EINTR)
            return put >= 0 ? put : -errno;
    }
}

int fd_write_all(int fd, const void *data, size_t n)
{
    const char *at = data;
    while (n > 0) {
        ssize_t put = fd_write(fd, at, n);
        if (put < 0)
            return (int)put;
        at += put;
        n -= (size_t)put;
    }
    return 0;
}

/* Kernels before 5.9, or a filter that denies close_range: by the list of what is open. */
static int each_listed(int lowest, void (*act)(int fd))
{
    DIR *dir = opendir("/proc/self/fd");
    if (dir == NULL)
        return -errno;
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        uint64_t fd = 0;
        if (num_parse_u64(entry->d_name, (uint64_t)lowest, INT32_MAX, &fd) < 0)
            continue;
        if ((int)fd != dirfd(dir))
            act((int)fd);
    }
    closedir(dir);
    return 0;
}

static void close_one(int fd)
{
    close(fd);
}

static void cloexec_one(int fd)
{
    fcntl(fd, F_SETFD, FD_CLOEXEC);
}

int fd_close_from(int lowest)
{
    if (close_range((unsigned)lowest, ~0u, 0) == 0)
        return 0;
    return each_listed(lowest, close_one);
}

int fd_cloexec_from(int lowest)
{
    if (close_range((unsigned)lowest, ~0u, CLOSE_RANGE_CLOEXEC) == 0)
        return 0;
    return each_listed(lowest, cloexec_one);
}

void fd_close(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}
