/* core/txn: see txn.h. */
#include "core/txn.h"

#include "base/mem.h"
#include "core/files.h"
#include "core/spread.h"
#include "core/txn_dirs.h"
#include "core/txn_rename.h"
#include "sys/fd.h"
#include "sys/filemeta.h"
#include "sys/path.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

/* From so many new files on one syncfs() is cheaper than an fsync() of each. */
#define SYNC_ALL_FROM 16
/* From so many directories on the same holds for them, when the files were synced so. */
#define SYNC_DIRS_FROM 4

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
    char temp[JOURNAL_NAME_LEN];  /* name beside the target */
    char aside[JOURNAL_NAME_LEN]; /* a second one, where names cannot be exchanged */
    dev_t dev;                    /* of the new file */
    ino_t ino;
};

struct txn {
    struct txn_dirs dirs;
    struct item *items;
    size_t n;
    const struct txn_env *env;
    struct journal_item *journaled; /* NULL without a journal */
    int sync_fd;    /* the root, when its file system is synced as a whole; else -1 */
    dev_t sync_dev; /* ... and which one that is */
    struct err *why;
    bool stopped; /* by the caller */
    bool lingers; /* what lies aside is kept open */
};

/* ---- helpers ---- */

static void name_temp(uint64_t number, char out[JOURNAL_NAME_LEN])
{
    snprintf(out, JOURNAL_NAME_LEN, ".codespace-%016" PRIx64 ".tmp", number);
}

/* The names of a transaction follow each other from a random one on. */
static void name_items(struct txn *t)
{
    uint64_t first = 0;
    ensure(getrandom(&first, sizeof(first), 0) == (ssize_t)sizeof(first));
    for (size_t i = 0; i < t->n; i++) {
        name_temp(first + 2 * i, t->items[i].temp);
        name_temp(first + 2 * i + 1, t->items[i].aside);
    }
}

static int probe_step(const struct txn *t, enum txn_step step, const struct item *it)
{
    const struct txn_probe *probe = t->env->probe;
    if (probe == NULL)
        return 0;
    return probe->before(probe->data, step, (size_t)(it - t->items));
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

/* Is this name still the new file that we put there? */
static bool is_ours(const struct item *it, int dir)
{
    struct stat st;
    return fstatat(dir, it->leaf, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_dev == it->dev &&
           st.st_ino == it->ino;
}

/* ---- stage ---- */

/* Owner, mode and attributes from the file that is replaced or moved, checked to still be it. */
static int copy_meta(struct txn *t, const struct item *it, int fd, const struct stat *made)
{
    struct stat st;
    autofd int from = path_open_regular(t->dirs.root_fd, it->op->meta_path, &st);
    if (from < 0)
        return from;
    if (!filemeta_same(&st, it->op->meta_was))
        return STEP_CONFLICT;
    return filemeta_copy(from, &st, fd, made);
}

/* A replaced file that had no attributes is not opened again. If it gets some, or another mode,
 * until its turn, the time of its last change tells. */
static bool is_plain(const struct item *it)
{
    return it->op->plain && it->op->kind == TXN_REPLACE && it->op->meta_was == it->op->was;
}

static int take_meta(struct txn *t, const struct item *it, int fd, const struct stat *made)
{
    return is_plain(it) ? filemeta_copy(-1, it->op->was, fd, made) : copy_meta(t, it, fd, made);
}

static int change_mode(const struct item *it, int fd)
{
    struct stat st;
    if (it->op->meta_path == NULL || (it->op->mode_set | it->op->mode_clear) == 0)
        return 0;
    if (fstat(fd, &st) < 0)
        return -errno;
    mode_t mode = ((st.st_mode & 07777) | it->op->mode_set) & ~it->op->mode_clear;
    return fchmod(fd, mode) < 0 ? -errno : 0;
}

/* Not together with the others: a workspace may hold mounts of other file systems. */
static bool syncs_alone(const struct txn *t, const struct stat *st)
{
    return !t->env->lax && (t->sync_fd < 0 || st->st_dev != t->sync_dev);
}

static int fill(struct txn *t, struct item *it, int fd)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return -errno;
    it->dev = st.st_dev;
    it->ino = st.st_ino;
    int rc = it->op->meta_path != NULL ? take_meta(t, it, fd, &st) : 0;
    if (rc == 0)
        rc = change_mode(it, fd);
    if (rc == 0)
        rc = fd_write_all(fd, it->op->bytes, it->op->len);
    return rc == 0 && syncs_alone(t, &st) && fsync(fd) < 0 ? -errno : rc;
}

static int stage_step(struct txn *t, struct item *it, int dir)
{
    if (it->op->kind == TXN_REMOVE)
        return 0;
    /* A new file gets what the umask and the directory say; a copy is private until it is like the
     * original. */
    mode_t mode = it->op->meta_path != NULL ? 0600 : 0666 | it->op->mode_set;
    autofd int fd =
        openat(dir, it->temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    if (fd < 0)
        return -errno;
    it->state = ITEM_STAGED;
    return fill(t, it, fd);
}

/* ---- commit ---- */

/* Once more, from the file as it is now. */
static int copy_meta_again(struct txn *t, const struct item *it, int dir)
{
    struct stat made;
    autofd int fd = openat(dir, it->temp, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &made) < 0)
        return -errno;
    int rc = copy_meta(t, it, fd, &made);
    if (rc == 0)
        rc = change_mode(it, fd);
    return rc == 0 && !t->env->lax && fsync(fd) < 0 ? -errno : rc;
}

static bool was_touched(const struct item *it, const struct stat *now)
{
    const struct timespec *was = &it->op->was->st_ctim;
    return now->st_ctim.tv_sec != was->tv_sec || now->st_ctim.tv_nsec != was->tv_nsec;
}

/* Before anything is renamed: is the target still what was planned against? */
static int check_step(struct txn *t, struct item *it, int dir)
{
    struct stat st;
    int rc = fstatat(dir, it->leaf, &st, AT_SYMLINK_NOFOLLOW);
    if (rc < 0 && errno != ENOENT)
        return -errno;
    bool fits = it->op->kind == TXN_CREATE ? rc < 0 : rc == 0 && filemeta_same(&st, it->op->was);
    if (!fits)
        return STEP_CONFLICT;
    return is_plain(it) && was_touched(it, &st) ? copy_meta_again(t, it, dir) : 0;
}

/* Swap the target with the file under the temporary name. Where the file system has no such call
 * the target's name is free for a moment, and what comes aside gets a new temporary name. */
static int exchange(struct item *it, int dir)
{
    if (renameat2(dir, it->temp, dir, it->leaf, RENAME_EXCHANGE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return -errno;
    if (renameat(dir, it->leaf, dir, it->aside) < 0)
        return -errno;
    int rc = txn_rename_new(dir, it->temp, it->leaf);
    if (rc < 0 && txn_rename_new(dir, it->aside, it->leaf) == 0)
        return rc;
    /* Neither the new nor the old file got the name: undo will tell where the old one is. */
    if (rc < 0)
        (void)unlinkat(dir, it->temp, 0);
    memcpy(it->temp, it->aside, sizeof(it->temp));
    it->state = ITEM_COMMITTED;
    return rc;
}

static int commit_step(struct txn *t, struct item *it, int dir)
{
    (void)t;
    struct stat st;
    int rc = 0;
    if (it->op->kind == TXN_CREATE)
        rc = txn_rename_new(dir, it->temp, it->leaf);
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
        return txn_rename_new(dir, it->temp, it->leaf);
    if (renameat(dir, it->temp, dir, it->leaf) == 0)
        return 0;
    /* Somebody had put a directory there, which cannot replace a file. */
    if (errno != ENOTDIR || unlinkat(dir, it->leaf, 0) < 0)
        return -errno;
    return txn_rename_new(dir, it->temp, it->leaf);
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
    return txn_rename_new(dir, it->temp, it->leaf);
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

static bool may_linger(const struct txn *t)
{
    struct rlimit files;
    if (t->env->linger == NULL || t->n == 0)
        return false;
    if (t->n == 1)
        return true;
    return t->n <= TXN_LINGER_FILES && getrlimit(RLIMIT_NOFILE, &files) == 0 &&
           t->n <= files.rlim_cur / TXN_LINGER_SHARE &&
           (t->env->may_linger == NULL || t->env->may_linger(t->env->user));
}

/* As a path only: nobody's permission is needed, and nothing can be done with it but close it. */
static void keep_lingering(const struct txn *t, const struct item *it, int dir)
{
    if (t->lingers && it->op->was->st_size <= (off_t)(TXN_LINGER_MAX / t->n))
        t->env->linger[it - t->items] = openat(dir, it->temp, O_PATH | O_NOFOLLOW | O_CLOEXEC);
}

static int finish_step(struct txn *t, struct item *it, int dir)
{
    if (it->op->kind == TXN_CREATE)
        return 0;
    keep_lingering(t, it, dir);
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

struct beside {
    struct txn *t;
    enum txn_step step;
    step_fn *run;
};

static int beside_one(void *user, size_t i)
{
    const struct beside *b = user;
    return in_directory(b->t, &b->t->items[i], b->step, b->run);
}

/* The same by several threads (core/spread), for steps that touch their own item and its files
 * only. A probe wants one after the other. */
static int for_all_beside(struct txn *t, enum txn_step step, step_fn *run)
{
    struct beside b = {t, step, run};
    size_t failed = 0;
    if (t->env->probe != NULL)
        return for_all(t, step, run);
    int rc = spread(t->n, beside_one, &b, &failed);
    if (rc != 0)
        say_failure(t, &t->items[failed], rc);
    return rc != 0 ? -1 : 0;
}

/* Replacements do not depend on each other, whatever their order; a name that is taken may be one
 * that another operation frees. */
static int commit_all(struct txn *t)
{
    for (size_t i = 0; i < t->n; i++) {
        if (t->items[i].op->kind != TXN_REPLACE)
            return for_all(t, TXN_COMMIT, commit_step);
    }
    return for_all_beside(t, TXN_COMMIT, commit_step);
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

/* A step of the whole transaction. */
static int probe_all(struct txn *t, enum txn_step step)
{
    return t->n > 0 ? probe_step(t, step, &t->items[0]) : 0;
}

/* The file system is one, and known by the root's descriptor. */
static bool dirs_sync_as_one(const struct txn *t)
{
    if (t->sync_fd < 0 || t->dirs.n < SYNC_DIRS_FROM)
        return false;
    for (size_t i = 0; i < t->dirs.n; i++) {
        if (t->dirs.items[i].dev != t->sync_dev)
            return false;
    }
    return true;
}

static int sync_dirs(const struct txn *t)
{
    if (dirs_sync_as_one(t))
        return syncfs(t->sync_fd) < 0 ? -errno : 0;
    return txn_dirs_sync(&t->dirs);
}

static int sync_all(struct txn *t)
{
    int rc = probe_all(t, TXN_SYNC);
    if (rc == 0 && !t->env->lax)
        rc = sync_dirs(t);
    return rc < 0 ? files_error(t->why, rc, "the directories", "sync") : 0;
}

static int ask_staged(struct txn *t)
{
    t->stopped = t->env->staged != NULL && t->env->staged(t->env->user, t->why) < 0;
    return t->stopped ? -1 : 0;
}

/* The new files, when they were not synced one by one. */
static int sync_files(struct txn *t)
{
    int rc = t->sync_fd >= 0 && syncfs(t->sync_fd) < 0 ? -errno : 0;
    return rc < 0 ? files_error(t->why, rc, "the new files", "sync") : 0;
}

/* Who cannot read the root syncs each file. */
static void choose_sync(struct txn *t)
{
    struct stat st;
    t->sync_fd = -1;
    if (t->env->lax || t->n < SYNC_ALL_FROM || fstat(t->env->root_fd, &st) < 0)
        return;
    t->sync_fd = openat(t->env->root_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    t->sync_dev = st.st_dev;
}

/* ---- the journal ---- */

static int say_journal(struct txn *t, int rc)
{
    return err_sys(t->why, ERR_FILE_OPERATION_FAILED, rc, "write the journal of the patch");
}

/* Directories that will be made for a new file: its missing parents, outer ones first. */
static void missing_parents(struct txn *t, const char *path, struct map *seen, struct strv *out)
{
    char dir[PATH_LEN_MAX];
    autostrv missing = {0};
    strcpy(dir, path);
    for (char *slash = strrchr(dir, '/'); slash != NULL; slash = strrchr(dir, '/')) {
        *slash = '\0';
        if (map_get(seen, dir) != NULL)
            break;
        map_set(seen, dir, t);
        autofd int fd = path_open_beneath(t->env->root_fd, dir, O_PATH | O_DIRECTORY, 0);
        if (fd >= 0)
            break;
        strv_add(&missing, dir);
    }
    for (size_t i = missing.len; i-- > 0;)
        strv_add(out, missing.items[i]);
}

static void fill_journaled(struct txn *t)
{
    for (size_t i = 0; i < t->n; i++) {
        const struct item *it = &t->items[i];
        struct journal_item *j = &t->journaled[i];
        *j = (struct journal_item){.kind = (int)it->op->kind, .path = it->op->path};
        memcpy(j->temp, it->temp, sizeof(j->temp));
        memcpy(j->aside, it->aside, sizeof(j->aside));
        if (it->op->was != NULL)
            j->was = journal_id_of(it->op->was);
        j->made = (struct journal_id){.dev = it->dev, .ino = it->ino};
    }
}

static int journal_begin(struct txn *t)
{
    autostrv made = {0};
    struct map seen = {0};
    if (t->journaled == NULL)
        return 0;
    for (size_t i = 0; i < t->n; i++) {
        if (t->items[i].op->kind == TXN_CREATE)
            missing_parents(t, t->items[i].op->path, &seen, &made);
    }
    map_fini(&seen);
    fill_journaled(t);
    int rc = probe_all(t, TXN_JOURNAL);
    if (rc == 0)
        rc = journal_staging(t->env->journal, t->env->root_fd, t->journaled, t->n, &made);
    return rc < 0 ? say_journal(t, rc) : 0;
}

/* A single rename is all or nothing by itself, so only several have to be known before. */
static bool journal_syncs(const struct txn *t)
{
    return t->n > 1 && !t->env->lax;
}

static int journal_before_commit(struct txn *t)
{
    if (t->journaled == NULL)
        return 0;
    fill_journaled(t);
    int rc = probe_all(t, TXN_JOURNAL);
    if (rc == 0)
        rc = journal_ready(t->env->journal, t->journaled, t->n, journal_syncs(t));
    return rc < 0 ? say_journal(t, rc) : 0;
}

/* A single file needs no mark: where it is says all. */
static int journal_after_commit(struct txn *t)
{
    if (t->journaled == NULL || t->n == 1)
        return 0;
    int rc = probe_all(t, TXN_JOURNAL);
    if (rc == 0)
        rc = journal_committed(t->env->journal, journal_syncs(t));
    return rc < 0 ? say_journal(t, rc) : 0;
}

/* ---- all phases ---- */

static enum txn_outcome run_phases(struct txn *t, bool *standing)
{
    if (journal_begin(t) < 0)
        return TXN_REFUSED;
    if (enter_all(t) < 0 || for_all_beside(t, TXN_STAGE, stage_step) < 0 || sync_files(t) < 0 ||
        ask_staged(t) < 0 || for_all_beside(t, TXN_CHECK, check_step) < 0 ||
        journal_before_commit(t) < 0 || commit_all(t) < 0 || sync_all(t) < 0 ||
        journal_after_commit(t) < 0) {
        enum txn_outcome out = undo_all(t, standing);
        return t->stopped ? TXN_STOPPED : out;
    }
    t->lingers = may_linger(t);
    (void)for_all_beside(t, TXN_FINISH, finish_step);
    for (size_t i = 0; i < t->n; i++)
        standing[i] = true;
    return TXN_APPLIED;
}

enum txn_outcome txn_run(const struct txn_env *env, const struct txn_op *ops, size_t n,
                         bool *standing, struct err *why)
{
    struct txn t = {.dirs = {.root_fd = env->root_fd}, .n = n, .env = env, .why = why};
    t.items = mem_zalloc(n, sizeof(struct item));
    t.journaled = env->journal != NULL ? mem_zalloc(n, sizeof(*t.journaled)) : NULL;
    choose_sync(&t);
    for (size_t i = 0; i < n; i++) {
        t.items[i].op = &ops[i];
        standing[i] = false;
    }
    name_items(&t);
    enum txn_outcome out = run_phases(&t, standing);
    if (env->journal != NULL)
        (void)journal_idle(env->journal);
    txn_dirs_fini(&t.dirs);
    fd_close(&t.sync_fd);
    free(t.items);
    free(t.journaled);
    return out;
}
