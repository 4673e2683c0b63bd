/* run/plandir: see plandir.h. */
#include "run/plandir.h"

#include "base/mem.h"
#include "sys/fd.h"
#include "sys/leaf.h"
#include "sys/rmtree.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <sys/vfs.h>

/* A helper that is being killed may add one more directory. */
#define PASSES 16u

static bool in_memory(const char *path)
{
    struct statfs fs;
    return statfs(path, &fs) == 0 && (fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC);
}

void plandir_open(struct plandir *d, const char *parent)
{
    *d = (struct plandir){.hold = -1};
    if (parent == NULL || !in_memory(parent) || leaf_make(parent, &d->path) < 0)
        return;
    d->hold = leaf_hold(d->path);
    if (d->hold < 0) /* the next server would take it away under us */
        plandir_close(d);
}

void plandir_close(struct plandir *d)
{
    if (d->path != NULL)
        (void)rmtree(AT_FDCWD, d->path, PASSES);
    fd_close(&d->hold);
    free(steal(d->path));
}
