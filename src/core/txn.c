/* core/txn: see txn.h. */
#include "core/txn.h"

#include "base/mem.h"
#include "core/files.h"
#include "core/txn_dirs.h"
#include "sys/filemeta.h"
#include "sys/path.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

/* ".codespace-", 16 digits, ".tmp" */
#define TEMP_LEN 32

enum item_state {
    ITEM_NEW,
    ITEM_STAGED,    /* `temp` holds the new file */
    ITEM_COMMITTED, /* the target is ours (or gone); `temp` holds the old file, if there was one */
};

struct item {
    const struct txn_op *op;
    enum item_state state;
    size_t dir;
    const char *leaf;
    char temp[TEMP_LEN]; /* name beside the target */
    dev_t dev;           /* of the new file */
    ino_t ino;
};

struct txn {
    struct txn_dirs dirs;
    struct item *items;
    size_t n;
    const struct txn_probe *probe;
    struct err *why;
};

/* ---- helpers ---- */

static void name_temp(char out[TEMP_LEN])
{
    uint64_t r = 0;
    ensure(getrandom(&r, sizeof(r), 0) == (ssize_t)sizeof(r));
    snprintf(out, TEMP_LEN, ".codespace-%016" PRIx64 ".tmp", r);
}

static int probe_step(const struct txn *t, enum txn_step step, const struct item *it)
{
    if (t->probe == NULL)
        return 0;
    return t->probe->before(t->probe->data, step, (size_t)(it - t->items));
}

/* A step's positive outcome: the disk is not as it was planned against. */
#define STEP_CONFLICT 1

/* Say why a step of `it` ended the transaction. */
static void say_failure(struct txn *t, const struct item *it, int rc)
{
    if (rc < 0)
        files_error(t->why, rc, it->op->path, "write");
    else if (it->op->kind == TXN_CREATE)
        err_set(t->why, ERR_ADD_FILE_EXISTS,
                "%s was made by somebody else while the patch was applied", it->op->path);
    else
        err_set(t->why, ERR_VERSION_CONFLICT,
                "%s was changed by somebody else while the patch was applied", it->op->path);
}

/* Look, then rename: for what cannot be linked. Somebody quicker could be replaced in between. */
static int rename_if_free(int dir, const char *from, const char *to)
{
    struct stat st;
    if (fstatat(dir, to, &st, AT_SYMLINK_NOFOLLOW) == 0)
        return -EEXIST;
    return renameat(dir, from, dir, to) < 0 ? -errno : 0;
}

/* A rename that never replaces. Where the file system has no such call, a link and an unlink do
 * the same; where it has no links either, or for a directory, there is only the last way. */
static int rename_new(int dir, const char *from, const char *to)
{
    if (renameat2(dir, from, dir, to, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return -errno;
    if (linkat(dir, from, dir, to, 0) == 0)
        return unlinkat(dir, from, 0) < 0 ? -errno : 0;
    return errno == EPERM || errno == ENOTSUP ? rename_if_free(dir, from, to) : -errno;
}

/* Is this name still the new file that we put there? */
static bool is_ours(const struct item *it, int dir)
{
    struct stat st;
    return fstatat(dir, it->leaf, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_dev == it->dev &&
           st.st_ino == it->ino;
}

/* ---- stage ---- */

static int write_all(int fd, const char *bytes, size_t n)
{
    while (n > 0) {
        ssize_t k = write(fd, bytes, n);
        if (k < 0 && errno != EINTR)
            return -errno;
        bytes += k > 0 ? k : 0;
        n -= k > 0 ? (size_t)k : 0;
    }
    return 0;
}

/* Owner, mode and attributes from the file that is replaced or moved, checked to still be it. */
static int copy_meta(struct txn *t, const struct item *it, int fd)
{
    struct stat st;
    autofd int from = path_open_regular(t->dirs.root_fd, it->op->meta_path, &st);
    if (from < 0)
        return from;
    if (!filemeta_same(&st, it->op->meta_was))
        return STEP_CONFLICT;
    return filemeta_copy(from, &st, fd);
}

static int fill(struct txn *t, struct item *it, int fd)
{
    struct stat st;
    int rc = it->op->meta_path != NULL ? copy_meta(t, it, fd) : 0;
    if (rc == 0)
        rc = write_all(fd, it->op->bytes, it->op->len);
    if (rc == 0 && (fsync(fd) < 0 || fstat(fd, &st) < 0))
        rc = -errno;
    if (rc == 0) {
        it->dev = st.st_dev;
        it->ino = st.st_ino;
    }
    return rc;
}

static int stage_step(struct txn *t, struct item *it, int dir)
{
    name_temp(it->temp);
    if (it->op->kind == TXN_REMOVE)
        return 0;
    /* A new file gets what the umask and the directory say; a copy is private until it is like the
     * original. */
    mode_t mode = it->op->meta_path != NULL ? 0600 : 0666;
    autofd int fd =
        openat(dir, it->temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    if (fd < 0)
        return -errno;
    it->state = ITEM_STAGED;
    return fill(t, it, fd);
}

/* ---- commit ---- */

/* Before anything is renamed: is the target still what was planned against? */
static int check_step(struct txn *t, struct item *it, int dir)
{
    (void)t;
    struct stat st;
    int rc = fstatat(dir, it->leaf, &st, AT_SYMLINK_NOFOLLOW);
    if (rc < 0 && errno != ENOENT)
        return -errno;
    bool fits = it->op->kind == TXN_CREATE ? rc < 0 : rc == 0 && filemeta_same(&st, it->op->was);
    return fits ? 0 : STEP_CONFLICT;
}

/* Swap the target with the file under the temporary name. Where the file system has no such call
 * the target's name is free for a moment, and what comes aside gets a new temporary name. */
static int exchange(struct item *it, int dir)
{
    if (renameat2(dir, it->temp, dir, it->leaf, RENAME_EXCHANGE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return -errno;
    char aside[TEMP_LEN];
    name_temp(aside);
    if (renameat(dir, it->leaf, dir, aside) < 0)
        return -errno;
    int rc = rename_new(dir, it->temp, it->leaf);
    if (rc < 0 && rename_new(dir, aside, it->leaf) == 0)
        return rc;
    /* Neither the new nor the old file got the name: undo will tell where the old one is. */
    if (rc < 0)
        (void)unlinkat(dir, it->temp, 0);
    memcpy(it->temp, aside, sizeof(aside));
    it->state = ITEM_COMMITTED;
    return rc;
}

static int commit_step(struct txn *t, struct item *it, int dir)
{
    (void)t;
    struct stat st;
    int rc = 0;
    if (it->op->kind == TXN_CREATE)
        rc = rename_new(dir, it->temp, it->leaf);
    else if (it->op->kind == TXN_REPLACE)
        rc = exchange(it, dir);
    else
        rc = renameat(dir, it->leaf, dir, it->temp) < 0 ? -errno : 0;
    if (rc == -ENOENT || rc == -EEXIST)
        return STEP_CONFLICT;
    if (rc < 0)
        return rc;
    it->state = ITEM_COMMITTED;
    if (it->op->kind == TXN_CREATE)
        return 0;
    /* Looking and renaming are two steps; what came aside tells what was there in between. */
    if (fstatat(dir, it->temp, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    return filemeta_same(&st, it->op->was) ? 0 : STEP_CONFLICT;
}

/* ---- undo ---- */

static int undo_create(const struct item *it, int dir)
{
    if (!is_ours(it, dir))
        return faccessat(dir, it->leaf, F_OK, AT_SYMLINK_NOFOLLOW) < 0 ? 0 : -EEXIST;
    return unlinkat(dir, it->leaf, 0) < 0 ? -errno : 0;
}

static int undo_replace(const struct item *it, int dir)
{
    if (!is_ours(it, dir))
        return rename_new(dir, it->temp, it->leaf);
    if (renameat(dir, it->temp, dir, it->leaf) == 0)
        return 0;
    /* Somebody had put a directory there, which cannot replace a file. */
    if (errno != ENOTDIR || unlinkat(dir, it->leaf, 0) < 0)
        return -errno;
    return rename_new(dir, it->temp, it->leaf);
}

static int undo_step(struct txn *t, struct item *it, int dir)
{
    (void)t;
    if (it->state == ITEM_STAGED)
        return unlinkat(dir, it->temp, 0) < 0 ? -errno : 0;
    if (it->op->kind == TXN_CREATE)
        return undo_create(it, dir);
    if (it->op->kind == TXN_REPLACE)
        return undo_replace(it, dir);
    return rename_new(dir, it->temp, it->leaf);
}

/* Run a step's function in the item's directory. */
typedef int step_fn(struct txn *t, struct item *it, int dir);

static int in_directory(struct txn *t, struct item *it, enum txn_step step, step_fn *run)
{
    autofd int owned = -1;
    int rc = probe_step(t, step, it);
    int dir = rc < 0 ? rc : txn_dirs_get(&t->dirs, it->dir, &owned);
    if (dir == -ESTALE)
        return STEP_CONFLICT;
    return dir < 0 ? dir : run(t, it, dir);
}

/* Append what could not be put back to the message. The old file, if it lies aside, is the only
 * copy: it stays, and its name is told. */
static void say_stuck(struct txn *t, const struct item *it, int rc)
{
    if (t->why == NULL)
        return;
    char old[ERR_MESSAGE_MAX];
    memcpy(old, t->why->message, sizeof(old));
    enum err_code code = t->why->code;
    bool aside = it->op->kind != TXN_CREATE;
    err_set(t->why, code, "%.700s; %s could not be put back (%s)%s%s", old, it->op->path,
            strerror(rc < 0 ? -rc : ESTALE), aside ? ", what it held is beside it as " : "",
            aside ? it->temp : "");
}

/* Put everything back, last first. */
static enum txn_outcome undo_all(struct txn *t, bool *standing)
{
    enum txn_outcome out = TXN_REFUSED;
    for (size_t i = t->n; i-- > 0;) {
        struct item *it = &t->items[i];
        bool committed = it->state == ITEM_COMMITTED;
        if (it->state == ITEM_NEW)
            continue;
        if (committed && out == TXN_REFUSED)
            out = TXN_ROLLED_BACK;
        int rc = in_directory(t, it, TXN_UNDO, undo_step);
        if (rc == 0 || !committed)
            continue;
        say_stuck(t, it, rc);
        standing[i] = true;
        out = TXN_PARTIAL;
    }
    txn_dirs_unmake(&t->dirs);
    return out;
}

/* ---- the phases ---- */

static int enter_directory(struct txn *t, struct item *it)
{
    int rc = probe_step(t, TXN_DIRECTORY, it);
    ssize_t i =
        rc < 0 ? rc : txn_dirs_of(&t->dirs, it->op->path, it->op->kind == TXN_CREATE, &it->leaf);
    if (i < 0)
        return (int)i;
    it->dir = (size_t)i;
    return 0;
}

static int finish_step(struct txn *t, struct item *it, int dir)
{
    (void)t;
    if (it->op->kind != TXN_CREATE)
        (void)unlinkat(dir, it->temp, 0);
    return 0;
}

static int for_all(struct txn *t, enum txn_step step, step_fn *run)
{
    for (size_t i = 0; i < t->n; i++) {
        int rc = in_directory(t, &t->items[i], step, run);
        if (rc != 0) {
            say_failure(t, &t->items[i], rc);
            return -1;
        }
    }
    return 0;
}

static int enter_all(struct txn *t)
{
    for (size_t i = 0; i < t->n; i++) {
        int rc = enter_directory(t, &t->items[i]);
        if (rc != 0) {
            say_failure(t, &t->items[i], rc);
            return -1;
        }
    }
    return 0;
}

static int sync_all(struct txn *t)
{
    int rc = t->n > 0 ? probe_step(t, TXN_SYNC, &t->items[0]) : 0;
    if (rc == 0)
        rc = txn_dirs_sync(&t->dirs);
    return rc < 0 ? files_error(t->why, rc, "the directories", "sync") : 0;
}

static enum txn_outcome run_phases(struct txn *t, bool *standing)
{
    if (enter_all(t) < 0 || for_all(t, TXN_STAGE, stage_step) < 0 ||
        for_all(t, TXN_CHECK, check_step) < 0 || for_all(t, TXN_COMMIT, commit_step) < 0 ||
        sync_all(t) < 0)
        return undo_all(t, standing);
    (void)for_all(t, TXN_FINISH, finish_step);
    for (size_t i = 0; i < t->n; i++)
        standing[i] = true;
    return TXN_APPLIED;
}

enum txn_outcome txn_run(int root_fd, const struct txn_op *ops, size_t n,
                         const struct txn_probe *probe, bool *standing, struct err *why)
{
    struct txn t = {.dirs = {.root_fd = root_fd}, .n = n, .probe = probe, .why = why};
    t.items = mem_zalloc(n, sizeof(struct item));
    for (size_t i = 0; i < n; i++) {
        t.items[i].op = &ops[i];
        standing[i] = false;
    }
    enum txn_outcome out = run_phases(&t, standing);
    txn_dirs_fini(&t.dirs);
    free(t.items);
    return out;
}
