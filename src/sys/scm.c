/* sys/scm: see scm.h. */
#include "sys/scm.h"

#include "base/mem.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

union room {
    struct cmsghdr head;
    char bytes[CMSG_SPACE(SCM_FDS_MAX * sizeof(int))];
};

int scm_pair(int ret[2])
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return -errno;
    ret[0] = pair[0];
    ret[1] = pair[1];
    return 0;
}

int scm_send(int fd, const void *data, size_t n, const int *fds, size_t n_fds)
{
    union room room = {0};
    struct iovec part = {(void *)(size_t)data, n};
    struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1};
    ensure(n_fds <= SCM_FDS_MAX);
    if (n_fds > 0) {
        m.msg_control = room.bytes;
        m.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
        room.head.cmsg_level = SOL_SOCKET;
        room.head.cmsg_type = SCM_RIGHTS;
        room.head.cmsg_len = CMSG_LEN(n_fds * sizeof(int));
        memcpy(CMSG_DATA(&room.head), fds, n_fds * sizeof(int));
    }
    ssize_t sent;
    do
        sent = sendmsg(fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (sent < 0 && errno == EINTR);
    return sent < 0 ? -errno : 0;
}

/* All descriptors that came, up to SCM_FDS_MAX; the kernel has closed what did not fit. */
static size_t take_fds(struct msghdr *m, int *fds)
{
    size_t n = 0;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c != NULL; c = CMSG_NXTHDR(m, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        size_t here = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        memcpy(fds + n, CMSG_DATA(c), here * sizeof(int)); /* never more than there was room for */
        n += here;
    }
    return n;
}

/* One message with its descriptors, which are the caller's. *ret_flags: what of it was cut. */
static ssize_t take_message(int fd, void *data, size_t cap, int fds[SCM_FDS_MAX], size_t *ret_came,
                            int *ret_flags)
{
    union room room;
    struct iovec part = {data, cap};
    struct msghdr m = {.msg_iov = &part,
                       .msg_iovlen = 1,
                       .msg_control = room.bytes,
                       .msg_controllen = sizeof(room.bytes)};
    ssize_t got;
    do
        got = recvmsg(fd, &m, MSG_CMSG_CLOEXEC);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return -errno;
    *ret_came = take_fds(&m, fds);
    *ret_flags = m.msg_flags;
    return got;
}

ssize_t scm_receive(int fd, void *data, size_t cap, int *ret_fds, size_t n_fds)
{
    int fds[SCM_FDS_MAX];
    size_t came = 0;
    int flags = 0;
    ssize_t got = take_message(fd, data, cap, fds, &came, &flags);
    if (got < 0)
        return got;
    bool whole = (flags & (MSG_TRUNC | MSG_CTRUNC)) == 0;
    if (whole && came == n_fds) {
        for (size_t i = 0; i < n_fds; i++)
            ret_fds[i] = fds[i];
        return got;
    }
    for (size_t i = 0; i < came; i++)
        close(fds[i]);
    return got == 0 && came == 0 && whole ? 0 : -EBADMSG;
}

ssize_t scm_read(int fd, void *data, size_t cap, int *ret_fd)
{
    int fds[SCM_FDS_MAX];
    size_t came = 0;
    int flags = 0;
    *ret_fd = -1;
    ssize_t got = take_message(fd, data, cap, fds, &came, &flags);
    if (got < 0)
        return got;
    for (size_t i = 1; i < came; i++)
        close(fds[i]);
    if (came > 0)
        *ret_fd = fds[0];
    return got;
}
