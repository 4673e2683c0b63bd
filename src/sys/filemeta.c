/* sys/filemeta: see filemeta.h. */
#include "sys/filemeta.h"

#include "base/mem.h"

#include <errno.h>
#include <string.h>
#include <sys/types.h>
#include <sys/xattr.h>
#include <unistd.h>

#define ACL_NAME "system.posix_acl_access"

bool filemeta_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* True when user and group are now those of *from. */
static bool copy_owner(const struct stat *from, const struct stat *to, int to_fd)
{
    if (to->st_uid == from->st_uid && to->st_gid == from->st_gid)
        return true;
    if (fchown(to_fd, from->st_uid, from->st_gid) == 0)
        return true;
    (void)!fchown(to_fd, (uid_t)-1, from->st_gid);
    return false;
}

static void copy_attribute(int from_fd, int to_fd, const char *name)
{
    char stack[256];
    ssize_t n = fgetxattr(from_fd, name, stack, sizeof(stack));
    if (n >= 0) {
        (void)fsetxattr(to_fd, name, stack, (size_t)n, 0);
        return;
    }
    if (errno != ERANGE)
        return;
    autofree char *value = mem_zalloc(FILEMETA_VALUE_MAX, 1);
    n = fgetxattr(from_fd, name, value, FILEMETA_VALUE_MAX);
    if (n >= 0)
        (void)fsetxattr(to_fd, name, value, (size_t)n, 0);
}

static void copy_attributes(int from_fd, int to_fd)
{
    char probe[1];
    bool has_acl = false;
    ssize_t n = from_fd >= 0 ? flistxattr(from_fd, NULL, 0) : 0;
    if (n > 0 && n <= FILEMETA_LIST_MAX) {
        autofree char *names = mem_zalloc((size_t)n, 1);
        n = flistxattr(from_fd, names, (size_t)n);
        for (ssize_t i = 0; i < n; i += (ssize_t)strlen(names + i) + 1) {
            copy_attribute(from_fd, to_fd, names + i);
            has_acl |= strcmp(names + i, ACL_NAME) == 0;
        }
    }
    /* A default list of the directory may have given the new file one that the old has not. */
    if (!has_acl && (fgetxattr(to_fd, ACL_NAME, probe, sizeof(probe)) >= 0 || errno == ERANGE))
        (void)fremovexattr(to_fd, ACL_NAME);
}

bool filemeta_is_plain(int fd)
{
    return flistxattr(fd, NULL, 0) == 0;
}

int filemeta_copy(int from_fd, const struct stat *from, int to_fd, const struct stat *to)
{
    mode_t mode = from->st_mode & 07777;
    if (!copy_owner(from, to, to_fd))
        mode &= ~(mode_t)(S_ISUID | S_ISGID);
    copy_attributes(from_fd, to_fd);
    /* Last: a change of owner clears bits, and a list and the mode are two views of one thing. */
    return fchmod(to_fd, mode) < 0 ? -errno : 0;
}
