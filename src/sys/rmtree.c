/* sys/rmtree: see rmtree.h. */
#include "sys/rmtree.h"

#include "base/mem.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* A directory that can be listed and changed. The mode is changed by name before opening; between
 * the two a link may appear, but then the open refuses. */
static int open_dir(int dir_fd, const char *name)
{
    const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    struct stat st;
    if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    if (S_ISDIR(st.st_mode) && (st.st_mode & S_IRWXU) != S_IRWXU &&
        fchmodat(dir_fd, name, 0700, 0) < 0)
        return -errno;
    int fd = openat(dir_fd, name, flags);
    return fd < 0 ? -errno : fd;
}

/* Move every entry of `from` into `to` under a fresh name; 0 or -errno. */
static int lift_entries(int from, int to, uint64_t *serial)
{
    int rc = 0;
    DIR *d = fdopendir(fcntl(from, F_DUPFD_CLOEXEC, 3));
    if (d == NULL)
        return -errno;
    for (struct dirent *it = readdir(d); rc == 0 && it != NULL; it = readdir(d)) {
        char fresh[64];
        if (is_dots(it->d_name))
            continue;
        if (unlinkat(from, it->d_name, 0) == 0 || errno == ENOENT)
            continue;
        snprintf(fresh, sizeof(fresh), ".codespace-removed-%016" PRIx64, (*serial)++);
        /* Moving a directory changes its "..", which needs write permission on it. */
        bool moved =
            fchmodat(from, it->d_name, 0700, 0) == 0 && renameat(from, it->d_name, to, fresh) == 0;
        if (!moved && errno != ENOENT)
            rc = -errno;
    }
    closedir(d);
    return rc;
}

/* Make one entry of `top` smaller: gone, or its own entries moved up. */
static int reduce(int top, const char *name, uint64_t *serial)
{
    if (unlinkat(top, name, 0) == 0 || unlinkat(top, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
        return 0;
    autofd int sub = open_dir(top, name);
    if (sub < 0)
        return sub == -ENOENT ? 0 : sub;
    int rc = lift_entries(sub, top, serial);
    if (rc == 0 && unlinkat(top, name, AT_REMOVEDIR) < 0 && errno != ENOENT && errno != ENOTEMPTY)
        rc = -errno;
    return rc;
}

/* One pass over `top`. 1 when it had entries, 0 when it was empty, or -errno. */
static int empty_once(int top, uint64_t *serial)
{
    int rc = 0;
    DIR *d = fdopendir(fcntl(top, F_DUPFD_CLOEXEC, 3));
    if (d == NULL)
        return -errno;
    rewinddir(d);
    for (struct dirent *it = readdir(d); rc >= 0 && it != NULL; it = readdir(d)) {
        if (is_dots(it->d_name))
            continue;
        rc = reduce(top, it->d_name, serial);
        rc = rc < 0 ? rc : 1;
    }
    closedir(d);
    return rc;
}

/* Fresh names begin at a random number, so that nobody can take them beforehand. */
static int empty_directory(int top, unsigned passes)
{
    uint64_t serial = 0;
    if (getrandom(&serial, sizeof(serial), 0) != sizeof(serial))
        return -EIO;
    int rc = 1;
    for (unsigned pass = 0; rc == 1; pass++) {
        if (pass == passes)
            return -EBUSY;
        rc = empty_once(top, &serial);
    }
    return rc;
}

int rmtree(int dir_fd, const char *name, unsigned passes)
{
    if (unlinkat(dir_fd, name, 0) == 0 || errno == ENOENT)
        return 0;
    if (unlinkat(dir_fd, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
        return 0;
    autofd int top = open_dir(dir_fd, name);
    if (top < 0)
        return top == -ENOENT ? 0 : top;
    int rc = empty_directory(top, passes);
    if (rc < 0)
        return rc;
    return unlinkat(dir_fd, name, AT_REMOVEDIR) == 0 || errno == ENOENT ? 0 : -errno;
}
