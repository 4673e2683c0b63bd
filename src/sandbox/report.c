/* sandbox/report: see report.h. */
#include "sandbox/report.h"

#include "base/mem.h"
#include "sys/caps.h"
#include "sys/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const namespace_files[REPORT_NAMESPACES] = {
    [REPORT_USER] = "/proc/self/ns/user",     [REPORT_MNT] = "/proc/self/ns/mnt",
    [REPORT_PID] = "/proc/self/ns/pid",       [REPORT_NET] = "/proc/self/ns/net",
    [REPORT_IPC] = "/proc/self/ns/ipc",       [REPORT_UTS] = "/proc/self/ns/uts",
    [REPORT_CGROUP] = "/proc/self/ns/cgroup",
};

/* The numbers in the order of the struct, which is how a line is written and read. */
#define NUMBERS (sizeof(struct report) / sizeof(uint64_t))
_Static_assert(sizeof(struct report) == (REPORT_NAMESPACES + 5) * sizeof(uint64_t),
               "struct report holds numbers only");

/* PR_GET_SECCOMP would itself be refused by a strict filter; the status file is always there. */
static uint64_t seccomp_mode(void)
{
    char text[4096];
    autofd int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    if (n <= 0)
        return 0;
    text[n] = '\0';
    const char *line = strstr(text, "\nSeccomp:");
    return line == NULL ? 0 : strtoull(line + strlen("\nSeccomp:"), NULL, 10);
}

static bool proc_is_ours(void)
{
    char target[32] = "";
    char self[32];
    snprintf(self, sizeof(self), "%d", (int)getpid());
    return readlink("/proc/self", target, sizeof(target) - 1) > 0 && strcmp(target, self) == 0;
}

void report_take(struct report *ret)
{
    struct report r = {0};
    struct stat st;
    for (int i = 0; i < REPORT_NAMESPACES; i++) {
        if (stat(namespace_files[i], &st) == 0)
            r.namespaces[i] = st.st_ino;
    }
    r.no_new_privs = prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1;
    r.seccomp = seccomp_mode();
    if (caps_get(&r.capabilities) < 0)
        r.capabilities = UINT64_MAX;
    r.parent = (uint64_t)getppid();
    r.fresh_proc = proc_is_ours();
    *ret = r;
}

int report_write(int fd)
{
    struct report r;
    char line[512];
    size_t used = 0;
    report_take(&r);
    const uint64_t *numbers = (const uint64_t *)&r;
    for (size_t i = 0; i < NUMBERS; i++)
        used += (size_t)snprintf(line + used, sizeof(line) - used, "%" PRIu64 "%c", numbers[i],
                                 i + 1 == NUMBERS ? '\n' : ' ');
    return fd_write_all(fd, line, used) < 0;
}

int report_parse(const char *line, struct report *ret)
{
    struct report r = {0};
    uint64_t *numbers = (uint64_t *)&r;
    for (size_t i = 0; i < NUMBERS; i++) {
        char *end;
        numbers[i] = strtoull(line, &end, 10);
        if (end == line)
            return -EINVAL;
        line = end;
    }
    *ret = r;
    return 0;
}
