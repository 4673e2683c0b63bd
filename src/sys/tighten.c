/* sys/tighten: see seccomp.h. */
#include "sys/tighten.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int tighten_no_new_privs(void)
{
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 ? 0 : -errno;
}

int tighten_load_filter(const void *bytes, size_t n)
{
    size_t count = n / sizeof(struct sock_filter);
    if (count == 0 || count > UINT16_MAX || n % sizeof(struct sock_filter) != 0)
        return -EINVAL;
    struct sock_fprog program = {
        .len = (unsigned short)count,
        .filter = (struct sock_filter *)(void *)(uintptr_t)bytes,
    };
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0 ? 0 : -errno;
}
