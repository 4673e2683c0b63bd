/* core/txn_dirs: see txn_dirs.h. */
#include "core/txn_dirs.h"

#include "base/mem.h"
#include "core/txn.h"
#include "sys/path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void txn_dirs_fini(struct txn_dirs *d)
{
    for (size_t i = 0; i < d->n; i++) {
        if (d->items[i].fd >= 0)
            close(d->items[i].fd);
        free(d->items[i].path);
    }
    free(d->items);
    map_fini(&d->by_path);
    strv_fini(&d->made);
    *d = (struct txn_dirs){0};
}

/* Take the descriptor of `path` into the table. */
static ssize_t add(struct txn_dirs *d, const char *path, int fd)
{
    struct stat st;
    if (fstat(fd, &st) < 0) {
        close(fd);
        return -errno;
    }
    void *items = d->items;
    mem_grow(&items, &d->cap, d->n + 1, sizeof(struct txn_dir));
    d->items = items;
    d->items[d->n] = (struct txn_dir){mem_strdup(path), fd, st.st_dev, st.st_ino};
    if (d->n >= TXN_DIRS_HELD) {
        close(fd);
        d->items[d->n].fd = -1;
    }
    d->n++;
    map_set(&d->by_path, path, (void *)(uintptr_t)d->n);
    return (ssize_t)d->n - 1;
}

/* Note what was made below the first `existing` bytes of `path`, and the directory that got the
 * first of it: its new entry needs an fsync too. */
static int note_made(struct txn_dirs *d, const char *path, size_t existing)
{
    char part[PATH_LEN_MAX];
    size_t len = strlen(path);
    if (existing == len)
        return 0;
    memcpy(part, path, existing);
    part[existing] = '\0';
    if (map_get(&d->by_path, part) == NULL) {
        int fd = path_open_beneath(d->root_fd, part, O_PATH | O_DIRECTORY, 0);
        ssize_t i = fd < 0 ? fd : add(d, part, fd);
        if (i < 0)
            return (int)i;
    }
    for (size_t i = existing + 1; i <= len; i++) {
        if (path[i] == '/' || path[i] == '\0')
            strv_add_take(&d->made, mem_dup(path, i));
    }
    return 0;
}

static ssize_t open_new(struct txn_dirs *d, const char *path, bool make)
{
    size_t existing = strlen(path);
    int fd = make ? path_make_directory(d->root_fd, path, 0777, &existing)
                  : path_open_beneath(d->root_fd, path, O_PATH | O_DIRECTORY, 0);
    int rc = note_made(d, path, existing);
    if (fd < 0)
        return fd;
    if (rc < 0) {
        close(fd);
        return rc;
    }
    return add(d, path, fd);
}

ssize_t txn_dirs_of(struct txn_dirs *d, const char *path, bool make, const char **ret_leaf)
{
    char dir[PATH_LEN_MAX];
    const char *slash = strrchr(path, '/');
    size_t len = slash != NULL ? (size_t)(slash - path) : 0;
    memcpy(dir, path, len);
    dir[len] = '\0';
    *ret_leaf = slash != NULL ? slash + 1 : path;
    uintptr_t known = (uintptr_t)map_get(&d->by_path, dir);
    return known > 0 ? (ssize_t)known - 1 : open_new(d, dir, make);
}

int txn_dirs_get(const struct txn_dirs *d, size_t i, int *ret_close)
{
    const struct txn_dir *dir = &d->items[i];
    *ret_close = -1;
    if (dir->fd >= 0)
        return dir->fd;
    autofd int fd = path_open_beneath(d->root_fd, dir->path, O_PATH | O_DIRECTORY, 0);
    struct stat st;
    if (fd < 0)
        return fd;
    if (fstat(fd, &st) < 0 || st.st_dev != dir->dev || st.st_ino != dir->ino)
        return -ESTALE;
    *ret_close = steal_fd(&fd);
    return *ret_close;
}

static int sync_one(const struct txn_dirs *d, size_t i)
{
    autofd int owned = -1;
    int at = txn_dirs_get(d, i, &owned);
    if (at < 0)
        return at;
    autofd int fd = openat(at, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    /* A directory that may be written but not read cannot be synced by anybody but its owner. */
    if (fd < 0)
        return errno == EACCES ? 0 : -errno;
    if (fsync(fd) < 0 && errno != EINVAL && errno != ENOTSUP && errno != EROFS)
        return -errno;
    return 0;
}

int txn_dirs_sync(const struct txn_dirs *d)
{
    for (size_t i = 0; i < d->n; i++) {
        int rc = sync_one(d, i);
        if (rc < 0)
            return rc;
    }
    return 0;
}

void txn_dirs_unmake(struct txn_dirs *d)
{
    for (size_t i = d->made.len; i-- > 0;) {
        const char *leaf = NULL;
        autofd int fd = path_open_parent(d->root_fd, d->made.items[i], &leaf);
        if (fd >= 0)
            (void)unlinkat(fd, leaf, AT_REMOVEDIR);
    }
}
