/* core/txn_dirs: the directories of one transaction: opened once, made when missing, taken away
 * again. Must not: be used by others than core/txn.
 */
#ifndef CODESPACE_CORE_TXN_DIRS_H
#define CODESPACE_CORE_TXN_DIRS_H

#include "base/map.h"
#include "base/str.h"

#include <stddef.h>
#include <sys/types.h>

struct txn_dir {
    char *path;
    int fd; /* O_PATH, or -1 above TXN_DIRS_HELD */
    dev_t dev;
    ino_t ino;
};

struct txn_dirs {
    int root_fd;
    struct txn_dir *items;
    size_t n;
    size_t cap;
    struct map by_path; /* index + 1 */
    struct strv made;   /* paths of directories that we made, outer ones first */
};

void txn_dirs_fini(struct txn_dirs *d);

/* The index of the directory that holds `path`, made with its parents when `make` is set; *ret_leaf
 * points into `path`. Or -errno. */
ssize_t txn_dirs_of(struct txn_dirs *d, const char *path, bool make, const char **ret_leaf);

/* A descriptor of directory i; *ret_close is it too when the caller has to close it, else -1. Or
 * -errno; -ESTALE when the path leads to another directory by now. */
int txn_dirs_get(const struct txn_dirs *d, size_t i, int *ret_close);

/* fsync all. 0 or -errno; file systems that cannot are left out. */
int txn_dirs_sync(const struct txn_dirs *d);

/* Remove those that we made and that are empty. */
void txn_dirs_unmake(struct txn_dirs *d);

#endif
