/* proxy/harden: see harden.h. */
#include "proxy/harden.h"

#include "base/mem.h"
#include "sys/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

static int compare(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

static int close_between(int first, int last)
{
    if (first > last)
        return 0;
    if (close_range((unsigned)first, (unsigned)last, 0) == 0)
        return 0;
    if (errno != ENOSYS && errno != EPERM)
        return -errno;
    for (int fd = first; fd <= last && fd < 65536; fd++)
        close(fd);
    return 0;
}

int harden_descriptors(int *keep, size_t n)
{
    int from = 3;
    qsort(keep, n, sizeof(*keep), compare);
    for (size_t i = 0; i < n; i++) {
        if (keep[i] < from)
            continue;
        int r = close_between(from, keep[i] - 1);
        if (r < 0)
            return r;
        fd_set_cloexec(keep[i], true);
        from = keep[i] + 1;
    }
    return fd_close_from(from);
}

static int limit(int resource, rlim_t value)
{
    const struct rlimit r = {value, value};
    return setrlimit((__rlimit_resource_t)resource, &r) < 0 ? -errno : 0;
}

static int set_limits(unsigned *ret_descriptors)
{
    struct rlimit r;
    if (getrlimit(RLIMIT_NOFILE, &r) < 0)
        return -errno;
    /* As many as there may be; more than this is never used. */
    r.rlim_cur = r.rlim_max < 65536 ? r.rlim_max : 65536;
    r.rlim_max = r.rlim_cur;
    if (setrlimit(RLIMIT_NOFILE, &r) < 0)
        return -errno;
    *ret_descriptors = (unsigned)r.rlim_cur;
    int error = limit(RLIMIT_CORE, 0);
    return error < 0 ? error : limit(RLIMIT_NPROC, 0);
}

static int drop_capabilities(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[2] = {{0}, {0}};
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    return syscall(SYS_capset, &header, none) < 0 ? -errno : 0;
}

/* Descriptors 0 and 1 lead nowhere; 2 stays for messages. The directory must not pin a mount. */
static int leave_the_files(void)
{
    autofd int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 || chdir("/") < 0)
        return -errno;
    return 0;
}

int harden_process(unsigned *ret_descriptors, const char **ret_step)
{
    int r = 0;
    *ret_step = "standard streams";
    if ((r = leave_the_files()) < 0)
        return r;
    *ret_step = "resource limits";
    if ((r = set_limits(ret_descriptors)) < 0)
        return r;
    *ret_step = "capabilities";
    if ((r = drop_capabilities()) < 0)
        return r;
    *ret_step = "no_new_privs";
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return -errno;
    *ret_step = "dumpable";
    return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ? -errno : 0;
}
