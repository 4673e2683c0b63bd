/* core/txn_rename: see txn_rename.h. */
#include "core/txn_rename.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* Look, then rename: for what cannot be linked. Somebody quicker could be replaced in between. */
static int rename_if_free(int dir, const char *from, const char *to)
{
    struct stat st;
    if (fstatat(dir, to, &st, AT_SYMLINK_NOFOLLOW) == 0)
        return -EEXIST;
    return renameat(dir, from, dir, to) < 0 ? -errno : 0;
}

int txn_rename_new(int dir, const char *from, const char *to)
{
    if (renameat2(dir, from, dir, to, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return -errno;
    if (linkat(dir, from, dir, to, 0) == 0)
        return unlinkat(dir, from, 0) < 0 ? -errno : 0;
    return errno == EPERM || errno == ENOTSUP ? rename_if_free(dir, from, to) : -errno;
}
