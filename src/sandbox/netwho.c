/* sandbox/netwho: see netwho.h. */
#include "sandbox/netwho.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "sys/fd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define READ_BYTES 16384u

/* "  1: 0100007F:9C40 0100007F:0370 01 00000000:00000000 00:00000000 00000000  1000  0 12345 ..."
 */
static uint64_t inode_of_row(const char *row, uint16_t port)
{
    unsigned local = 0;
    uint64_t inode = 0;
    if (sscanf(row, " %*u: %*[0-9A-F]:%4x %*[0-9A-F]:%*x %*x %*x:%*x %*x:%*x %*x %*u %*u %" SCNu64,
               &local, &inode) != 2)
        return 0;
    return local == port ? inode : 0;
}

/* The socket that has the port in one table; 0 = none. */
static uint64_t find_inode(const char *table, uint16_t port)
{
    autobuf text = BUF_INIT;
    autofd int fd = open(table, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : 1;
    while (n > 0 && text.len < NETWHO_TABLE_MAX) {
        n = fd_read(fd, buf_reserve(&text, READ_BYTES), READ_BYTES);
        if (n > 0)
            buf_commit(&text, (size_t)n);
    }
    uint64_t inode = 0;
    char *rest = NULL;
    char *all = text.len == 0 ? NULL : (char *)(uintptr_t)buf_cstr(&text);
    for (char *row = strtok_r(all, "\n", &rest); row != NULL && inode == 0;
         row = strtok_r(NULL, "\n", &rest))
        inode = inode_of_row(row, port);
    return inode;
}

static uint64_t find_socket(bool udp, uint16_t port)
{
    static const char *const tables[2][2] = {{"/proc/self/net/tcp", "/proc/self/net/tcp6"},
                                             {"/proc/self/net/udp", "/proc/self/net/udp6"}};
    uint64_t inode = find_inode(tables[udp][0], port);
    return inode != 0 ? inode : find_inode(tables[udp][1], port);
}

/* Does a process hold it? `left` counts descriptors down. */
static bool holds(int proc, const char *pid, const char *socket, unsigned *left)
{
    char path[64], target[64];
    snprintf(path, sizeof(path), "%.20s/fd", pid);
    int fd = openat(proc, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    bool found = false;
    for (struct dirent *it; d != NULL && !found && *left > 0 && (it = readdir(d)) != NULL;) {
        ssize_t n = readlinkat(dirfd(d), it->d_name, target, sizeof(target) - 1);
        (*left)--;
        if (n > 0)
            target[n] = '\0';
        found = n > 0 && str_eq(target, socket);
    }
    if (d != NULL)
        closedir(d);
    else
        fd_close(&fd);
    return found;
}

/* The program's file says more than the name that a process gives itself. */
static void read_name(int proc, const char *pid, char *ret, size_t cap)
{
    char path[64], target[PATH_MAX];
    snprintf(path, sizeof(path), "%.20s/exe", pid);
    ssize_t n = readlinkat(proc, path, target, sizeof(target) - 1);
    target[n > 0 ? n : 0] = '\0';
    const char *slash = strrchr(target, '/');
    snprintf(ret, cap, "%s", slash != NULL ? slash + 1 : "unknown");
    char *gone = strstr(ret, " (deleted)");
    if (gone != NULL)
        *gone = '\0';
}

/* What /proc shows has to be this namespace's, not the host's. */
static bool proc_is_ours(void)
{
    char target[32] = "";
    uint64_t pid = 0;
    return readlink("/proc/self", target, sizeof(target) - 1) > 0 &&
           num_parse_u64(target, 1, INT_MAX, &pid) == 0 && pid == (uint64_t)getpid();
}

static void find_holder(uint64_t inode, struct denial *d)
{
    char socket[64], name[DENIAL_PROCESS_MAX];
    unsigned processes = NETWHO_PROCESSES_MAX, descriptors = NETWHO_DESCRIPTORS_MAX;
    snprintf(socket, sizeof(socket), "socket:[%" PRIu64 "]", inode);
    DIR *proc = opendir("/proc");
    for (struct dirent *it; proc != NULL && processes > 0 && (it = readdir(proc)) != NULL;) {
        uint64_t pid;
        if (num_parse_u64(it->d_name, 1, INT_MAX, &pid) < 0 || pid == (uint64_t)getpid())
            continue;
        processes--;
        if (!holds(dirfd(proc), it->d_name, socket, &descriptors))
            continue;
        read_name(dirfd(proc), it->d_name, name, sizeof(name));
        denial_by(d, (uint32_t)pid, name);
        break;
    }
    if (proc != NULL)
        closedir(proc);
}

void netwho_tell(bool udp, uint16_t port, struct denial *d)
{
    if (port == 0 || d->count > NETWHO_LOOKS_MAX || !str_starts(d->rule, "network.") ||
        !proc_is_ours())
        return;
    uint64_t inode = find_socket(udp, port);
    if (inode != 0)
        find_holder(inode, d);
}
