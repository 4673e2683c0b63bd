/* sandbox/census: see census.h. */
#include "sandbox/census.h"

#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool proc_is_ours(void)
{
    char target[32] = "";
    char self[32];
    snprintf(self, sizeof(self), "%d", (int)getpid());
    return readlink("/proc/self", target, sizeof(target) - 1) > 0 && str_eq(target, self);
}

/* The name of a process may hold anything; its state follows the last parenthesis. */
static bool is_alive(int proc, const char *pid)
{
    char path[64], text[512];
    snprintf(path, sizeof(path), "%.20s/stat", pid);
    autofd int fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    if (n <= 0)
        return false;
    text[n] = '\0';
    const char *end = strrchr(text, ')');
    return end != NULL && end[1] == ' ' && end[2] != 'Z' && end[2] != 'X';
}

uint32_t census_take(void)
{
    uint32_t count = 0;
    DIR *d = proc_is_ours() ? opendir("/proc") : NULL;
    for (struct dirent *it = d == NULL ? NULL : readdir(d); it != NULL; it = readdir(d)) {
        uint64_t pid;
        if (num_parse_u64(it->d_name, 1, INT_MAX, &pid) == 0 && pid != (uint64_t)getpid())
            count += is_alive(dirfd(d), it->d_name);
    }
    if (d != NULL)
        closedir(d);
    return count > 0 ? count : 1;
}
