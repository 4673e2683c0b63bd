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
static bool is_alive(int proc, const char *pid, char ret_name[HELPER_COMM_MAX])
{
    char path[64], text[512];
    snprintf(path, sizeof(path), "%.20s/stat", pid);
    autofd int fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    if (n <= 0)
        return false;
    text[n] = '\0';
    const char *begin = strchr(text, '(');
    char *end = strrchr(text, ')');
    if (begin == NULL || end == NULL || end[1] != ' ' || end[2] == 'Z' || end[2] == 'X')
        return false;
    snprintf(ret_name, HELPER_COMM_MAX, "%.*s", (int)(end - begin - 1), begin + 1);
    return true;
}

static uint32_t count_up_to(uint32_t max, struct helper_left named[HELPER_LEFT_MAX])
{
    uint32_t count = 0;
    memset(named, 0, HELPER_LEFT_MAX * sizeof(*named));
    DIR *d = proc_is_ours() ? opendir("/proc") : NULL;
    for (struct dirent *it; d != NULL && count < max && (it = readdir(d)) != NULL;) {
        uint64_t pid;
        struct helper_left left = {0};
        if (num_parse_u64(it->d_name, 1, INT_MAX, &pid) < 0 || pid == (uint64_t)getpid() ||
            !is_alive(dirfd(d), it->d_name, left.name))
            continue;
        left.pid = (uint32_t)pid;
        if (count < HELPER_LEFT_MAX)
            named[count] = left;
        count++;
    }
    if (d != NULL)
        closedir(d);
    return count;
}

uint32_t census_take(struct helper_left named[HELPER_LEFT_MAX])
{
    uint32_t count = count_up_to(UINT32_MAX, named);
    return count > 0 ? count : 1;
}

uint32_t census_name(bool all, struct helper_left named[HELPER_LEFT_MAX])
{
    return count_up_to(all ? UINT32_MAX : HELPER_LEFT_MAX, named);
}
