/* sys/caps: see caps.h. */
#include "sys/caps.h"

#include <errno.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int caps_get(uint64_t *ret)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};
    if (syscall(SYS_capget, &head, data) < 0)
        return -errno;
    *ret = (uint64_t)(data[1].effective | data[1].permitted) << 32 |
           (data[0].effective | data[0].permitted);
    return 0;
}

int caps_drop_bounding(void)
{
    for (int cap = 0, has = 0; (has = prctl(PR_CAPBSET_READ, cap, 0, 0, 0)) >= 0; cap++) {
        if (has == 1 && prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0)
            return -errno;
    }
    return 0;
}

int caps_drop_held(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};
    return syscall(SYS_capset, &head, data) < 0 ? -errno : 0;
}

int caps_drop_all(void)
{
    int rc = caps_drop_bounding();
    return rc < 0 ? rc : caps_drop_held();
}
