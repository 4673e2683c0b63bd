/* sys/privdir: see privdir.h. */
#include "sys/privdir.h"

#include "base/mem.h"
#include "base/str.h"
#include "sys/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int write_file(const char *path, const void *data, size_t n)
{
    autofd int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    int rc = fd_write_all(fd, data, n);
    if (rc < 0)
        unlink(path);
    return rc;
}

int privdir_write(const char *parent, const char *prefix, const char *name, const void *data,
                  size_t n, char **ret_path)
{
    autofree char *dir = mem_printf("%s/%sXXXXXX", parent, prefix);
    if (mkdtemp(dir) == NULL)
        return -errno;
    autofree char *path = mem_printf("%s/%s", dir, name);
    int rc = write_file(path, data, n);
    if (rc < 0) {
        rmdir(dir);
        return rc;
    }
    *ret_path = steal(path);
    return 0;
}

static int check_private(int fd, mode_t type, mode_t allowed)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return -errno;
    if ((st.st_mode & S_IFMT) != type || st.st_uid != geteuid() ||
        (st.st_mode & 07777 & ~allowed) != 0 || (type == S_IFREG && st.st_nlink != 1))
        return -EPERM;
    return 0;
}

static int open_private_dir(const char *dir)
{
    autofd int fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int rc = check_private(fd, S_IFDIR, 0700);
    return rc < 0 ? rc : steal_fd(&fd);
}

/* NONBLOCK: a FIFO in its place must not hang us. */
static int open_private_file(int dir_fd, const char *leaf)
{
    autofd int fd = openat(dir_fd, leaf, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int rc = check_private(fd, S_IFREG, 0600);
    return rc < 0 ? rc : steal_fd(&fd);
}

int privdir_take(const char *path, const char *prefix, size_t max, size_t *ret_size)
{
    const char *slash = strrchr(path, '/');
    if (path[0] != '/' || slash == path || slash[1] == '\0')
        return -EINVAL;
    autofree char *dir = mem_dup(path, (size_t)(slash - path));
    autofd int dir_fd = open_private_dir(dir);
    if (dir_fd < 0)
        return dir_fd;
    autofd int fd = open_private_file(dir_fd, slash + 1);
    if (fd < 0)
        return fd;
    if (unlinkat(dir_fd, slash + 1, 0) < 0)
        return -errno;
    if (str_starts(strrchr(dir, '/') + 1, prefix))
        rmdir(dir);
    struct stat st;
    if (fstat(fd, &st) < 0)
        return -errno;
    if ((size_t)st.st_size > max)
        return -EFBIG;
    *ret_size = (size_t)st.st_size;
    return steal_fd(&fd);
}

void privdir_discard(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (slash == NULL || slash == path)
        return;
    autofree char *dir = mem_dup(path, (size_t)(slash - path));
    unlink(path);
    rmdir(dir);
}
