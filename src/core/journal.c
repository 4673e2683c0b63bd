/* core/journal: see journal.h. Opening, the steps of a transaction, and recovery; the file's layout
 * is core/journal_file's. */
#include "core/journal.h"

#include "base/mem.h"
#include "core/journal_file.h"
#include "core/txn.h"
#include "sys/path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <unistd.h>

/* Written once, so that the records of small transactions change no metadata of the file. */
#define PREPARED_LEN (64u << 10)

/* ---- opening ---- */

static int prepare(int dir_fd, int fd)
{
    static const char zeroes[PREPARED_LEN];
    struct stat st;
    if (fstat(fd, &st) < 0)
        return -errno;
    if (st.st_size >= (off_t)PREPARED_LEN)
        return 0;
    autofd int dir = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (pwrite(fd, zeroes + st.st_size, PREPARED_LEN - (size_t)st.st_size, st.st_size) < 0 ||
        fsync(fd) < 0 || dir < 0 || fsync(dir) < 0)
        return -errno;
    return 0;
}

int journal_open(int dir_fd, const char *name, struct journal **ret, struct err *e)
{
    autofd int fd =
        openat(dir_fd, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_sys(e, ERR_FILE_OPERATION_FAILED, errno, "open the journal %s", name);
    if (flock(fd, LOCK_EX | LOCK_NB) < 0)
        return err_set(e, ERR_WORKSPACE_BUSY,
                       "the journal %s is used by another process; one server serves a workspace",
                       name);
    int rc = prepare(dir_fd, fd);
    if (rc < 0)
        return err_sys(e, ERR_FILE_OPERATION_FAILED, rc, "prepare the journal %s", name);
    struct journal *j = mem_new(struct journal);
    /* A mark of an earlier life must never fit a record of this one. */
    ensure(getrandom(&j->number, sizeof(j->number), 0) == (ssize_t)sizeof(j->number));
    j->number >>= 1;
    j->fd = steal_fd(&fd);
    *ret = j;
    return 0;
}

void journal_close(struct journal *j)
{
    if (j == NULL)
        return;
    close(j->fd);
    buf_fini(&j->dirs);
    free(j);
}

struct journal_id journal_id_of(const struct stat *st)
{
    return (struct journal_id){st->st_dev, st->st_ino, (uint64_t)st->st_size, st->st_mtim.tv_sec,
                               st->st_mtim.tv_nsec};
}

/* ---- the steps of a transaction ---- */

int journal_staging(struct journal *j, int root_fd, const struct journal_item *items, size_t n,
                    const struct strv *made_dirs)
{
    /* Else the record of an unfinished transaction would be lost. */
    ensure(j->recovered);
    if (fstat(root_fd, &j->root) < 0)
        return -errno;
    j->number++;
    buf_reset(&j->dirs, PREPARED_LEN);
    for (size_t i = 0; i < made_dirs->len; i++)
        buf_put(&j->dirs, made_dirs->items[i], strlen(made_dirs->items[i]) + 1);
    return journal_file_write(j, false, items, n);
}

int journal_ready(struct journal *j, const struct journal_item *items, size_t n, bool sync)
{
    int rc = journal_file_write(j, true, items, n);
    return rc == 0 && sync && fdatasync(j->fd) < 0 ? -errno : rc;
}

int journal_committed(struct journal *j, bool sync)
{
    return journal_file_mark(j, "committed", sync);
}

int journal_idle(struct journal *j)
{
    return journal_file_mark(j, "idle", false);
}

/* ---- recovery ---- */

/* What lies at the three names of an item. */
struct place {
    int dir;
    const char *leaf;
    bool there; /* something has the target's name */
    bool was;   /* ... the old file */
    bool made;  /* ... the new file */
    bool temp_made;
    const char *old; /* name beside the target that the old file has, or NULL */
};

static bool is_was(const struct journal_item *it, const struct stat *st)
{
    struct journal_id id = journal_id_of(st);
    return memcmp(&id, &it->was, sizeof(id)) == 0;
}

static bool is_made(const struct journal_item *it, const struct stat *st)
{
    return it->made.ino != 0 && st->st_dev == it->made.dev && st->st_ino == it->made.ino;
}

static int look(int root_fd, const struct journal_item *it, struct place *p)
{
    struct stat st;
    *p = (struct place){0};
    p->dir = path_open_parent(root_fd, it->path, &p->leaf);
    if (p->dir < 0)
        return p->dir;
    if (fstatat(p->dir, p->leaf, &st, AT_SYMLINK_NOFOLLOW) == 0) {
        p->there = true;
        p->was = it->kind != TXN_CREATE && is_was(it, &st);
        p->made = is_made(it, &st);
    }
    const char *const beside[] = {it->temp, it->aside};
    for (size_t i = 0; i < ARRAY_LEN(beside); i++) {
        if (fstatat(p->dir, beside[i], &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        if (it->kind != TXN_CREATE && is_was(it, &st))
            p->old = beside[i];
        else if (i == 0)
            p->temp_made = S_ISREG(st.st_mode) && (is_made(it, &st) || it->made.ino == 0);
    }
    return 0;
}

static bool is_committed(const struct journal_item *it, const struct place *p)
{
    return it->kind == TXN_REMOVE ? !p->there : p->made;
}

/* Put one item back. 0, or 1 when somebody else has the target's name. */
static int put_back(const struct journal_item *it, const struct place *p)
{
    int rc = 0;
    if (p->temp_made)
        rc = unlinkat(p->dir, it->temp, 0);
    if (it->kind == TXN_CREATE && p->made)
        rc |= unlinkat(p->dir, p->leaf, 0);
    if (p->old != NULL && p->there && !p->made)
        return 1;
    if (p->old != NULL)
        rc |= renameat(p->dir, p->old, p->dir, p->leaf);
    return rc < 0 ? -errno : 0;
}

/* Remove what lies beside a target that is as it should be. */
static int finish(const struct journal_item *it, const struct place *p)
{
    int rc = p->old != NULL ? unlinkat(p->dir, p->old, 0) : 0;
    if (p->temp_made && (p->made || it->kind != TXN_CREATE))
        rc |= unlinkat(p->dir, it->temp, 0);
    return rc < 0 ? -errno : 0;
}

struct recovery {
    int root_fd;
    const struct journal_record *record;
    struct journal_report *report;
    bool forward;
};

static void say_stuck(struct recovery *v, const struct journal_item *it, const struct place *p)
{
    v->report->outcome = JOURNAL_STUCK;
    snprintf(
        v->report->text, sizeof(v->report->text),
        "%.200s was changed by somebody else after a crash; what it held before the unfinished "
        "patch is beside it as %s",
        it->path, p->old);
}

/* As good as it goes: a directory that cannot be read cannot be synced. */
static void sync_dir(int dir)
{
    autofd int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0)
        (void)fsync(fd);
}

static int each_item(struct recovery *v, size_t i)
{
    const struct journal_item *it = &v->record->items[i];
    struct place p;
    int rc = look(v->root_fd, it, &p);
    /* The directory is gone, or leads elsewhere: nothing of ours is there. */
    if (rc < 0)
        return rc == -ENOENT || rc == -ENOTDIR || rc == -ELOOP ? 0 : rc;
    rc = v->forward ? finish(it, &p) : put_back(it, &p);
    if (rc > 0)
        say_stuck(v, it, &p);
    if (rc >= 0)
        sync_dir(p.dir);
    close(p.dir);
    return rc < 0 ? rc : 0;
}

static bool all_committed(struct recovery *v)
{
    for (size_t i = 0; i < v->record->n; i++) {
        struct place p;
        if (look(v->root_fd, &v->record->items[i], &p) < 0)
            return false;
        close(p.dir);
        if (!is_committed(&v->record->items[i], &p))
            return false;
    }
    return true;
}

static void remove_dirs(struct recovery *v)
{
    for (size_t i = v->record->dirs.len; i-- > 0;) {
        const char *leaf = NULL;
        autofd int fd = path_open_parent(v->root_fd, v->record->dirs.items[i], &leaf);
        if (fd >= 0)
            (void)unlinkat(fd, leaf, AT_REMOVEDIR);
    }
}

static int run_recovery(struct recovery *v)
{
    v->forward = v->record->committed || (v->record->ready && all_committed(v));
    v->report->outcome = v->forward ? JOURNAL_FINISHED : JOURNAL_ROLLED_BACK;
    snprintf(v->report->text, sizeof(v->report->text),
             "a patch of %zu files that a crash cut off %s", v->record->n,
             v->forward ? "was finished" : "was rolled back");
    for (size_t i = v->record->n; i-- > 0;) {
        int rc = each_item(v, i);
        if (rc < 0)
            return rc;
    }
    if (!v->forward)
        remove_dirs(v);
    sync_dir(v->root_fd);
    return 0;
}

/* A file system may have another device number after the machine was started again. */
static void renumber(struct journal_record *r, uint64_t dev)
{
    for (size_t i = 0; i < r->n; i++) {
        struct journal_id *ids[] = {&r->items[i].was, &r->items[i].made};
        for (size_t k = 0; k < ARRAY_LEN(ids); k++)
            ids[k]->dev = ids[k]->dev == r->root_dev ? dev : ids[k]->dev;
    }
}

static int recover_record(struct journal *j, int root_fd, struct journal_record *r,
                          struct journal_report *ret, struct err *e)
{
    struct stat st;
    struct recovery v = {.root_fd = root_fd, .record = r, .report = ret};
    ret->files = r->n;
    if (fstat(root_fd, &st) < 0 || st.st_ino != r->root_ino)
        return err_set(e, ERR_CONFIG_INVALID,
                       "the journal holds an unfinished patch of another directory than this root; "
                       "name the root that it was written for, or remove the journal");
    renumber(r, st.st_dev);
    int rc = run_recovery(&v);
    j->number = r->number;
    if (rc == 0)
        rc = journal_file_mark(j, "idle", true);
    return rc < 0 ? err_sys(e, ERR_FILE_OPERATION_FAILED, rc, "recover an unfinished patch") : 0;
}

int journal_recover(struct journal *j, int root_fd, struct journal_report *ret, struct err *e)
{
    struct journal_record r;
    struct journal_report report = {.outcome = JOURNAL_CLEAN};
    int rc = journal_file_read(j, &r);
    if (rc < 0)
        err_sys(e, ERR_FILE_OPERATION_FAILED, rc, "read the journal");
    else if (rc > 0)
        rc = recover_record(j, root_fd, &r, &report, e);
    journal_record_fini(&r);
    if (rc < 0)
        return -1;
    j->recovered = true;
    *ret = report;
    return 0;
}
