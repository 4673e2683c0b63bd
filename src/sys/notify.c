/* sys/notify: see notify.h. */
#include "sys/notify.h"

#include <errno.h>
#include <linux/filter.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int notify_load_filter(const void *bytes, size_t n)
{
    size_t count = n / sizeof(struct sock_filter);
    if (count == 0 || count > UINT16_MAX || n % sizeof(struct sock_filter) != 0)
        return -EINVAL;
    struct sock_fprog program = {
        .len = (unsigned short)count,
        .filter = (struct sock_filter *)(void *)(uintptr_t)bytes,
    };
    long fd =
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
    return fd < 0 ? -errno : (int)fd;
}

/* The kernel may know longer structs than our headers. We ask for ours; a kernel writes no more
 * than the size its number of the request says. */
int notify_receive(int fd, uint64_t *ret_id, struct seccomp_data *ret)
{
    struct seccomp_notif call;
    memset(&call, 0, sizeof(call));
    if (ioctl(fd, SECCOMP_IOCTL_NOTIF_RECV, &call) < 0)
        return errno == ENOENT || errno == EINTR ? 0 : -errno;
    *ret_id = call.id;
    *ret = call.data;
    return 1;
}

int notify_refuse(int fd, uint64_t id, int error)
{
    struct seccomp_notif_resp answer = {.id = id, .error = -error};
    if (ioctl(fd, SECCOMP_IOCTL_NOTIF_SEND, &answer) < 0 && errno != ENOENT)
        return -errno;
    return 0;
}
