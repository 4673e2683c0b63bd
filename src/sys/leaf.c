/* sys/leaf: see leaf.h. */
#include "sys/leaf.h"

#include "base/mem.h"
#include "base/str.h"
#include "sys/rmtree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define PREFIX "codespace-runner-"
/* To empty a directory that only our own programs write. */
#define SWEEP_PASSES 16

static bool is_same(const char *canonical, const char *other)
{
    char resolved[PATH_MAX];
    return other != NULL && realpath(other, resolved) != NULL && str_eq(canonical, resolved);
}

bool leaf_is_forbidden(const char *parent)
{
    static const char *const refused[] = {"/", "/tmp", "/var/tmp"};
    char canonical[PATH_MAX];
    if (realpath(parent, canonical) == NULL)
        return false;
    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        if (is_same(canonical, refused[i]))
            return true;
    }
    return is_same(canonical, getenv("HOME"));
}

int leaf_hold(const char *path)
{
    autofd int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || flock(fd, LOCK_SH | LOCK_NB) < 0)
        return -errno;
    return steal_fd(&fd);
}

/* The lock is kept until it is gone, so that two sweepers do not meet. */
static void sweep_one(int parent, const char *name, time_t newest)
{
    struct stat st;
    autofd int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0)
        return;
    bool ours = st.st_uid == geteuid() && (st.st_mode & 07777) == 0700;
    if (ours && st.st_mtime <= newest && flock(fd, LOCK_EX | LOCK_NB) == 0)
        (void)rmtree(parent, name, SWEEP_PASSES);
}

/* Not time(2): its clock is up to a tick behind the one that files are stamped by. */
void leaf_sweep(const char *parent, unsigned min_age_s)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    time_t newest = now.tv_sec - (time_t)min_age_s;
    DIR *dir = opendir(parent);
    if (dir == NULL)
        return;
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        if (strncmp(entry->d_name, PREFIX, sizeof(PREFIX) - 1) == 0)
            sweep_one(dirfd(dir), entry->d_name, newest);
    }
    closedir(dir);
}

int leaf_make(const char *parent, char **ret_path)
{
    const char *tmp = getenv("TMPDIR");
    const char *base = parent != NULL ? parent : tmp != NULL && tmp[0] == '/' ? tmp : "/tmp";
    if (base[0] != '/')
        return -EINVAL;
    if (parent != NULL && mkdir(parent, 0700) < 0 && errno != EEXIST)
        return -errno;
    if (parent != NULL && leaf_is_forbidden(parent))
        return -EPERM;
    leaf_sweep(base, LEAF_SWEEP_AGE_S);
    autofree char *path = mem_printf("%s/" PREFIX "XXXXXX", base);
    if (mkdtemp(path) == NULL)
        return -errno;
    *ret_path = steal(path);
    return 0;
}
