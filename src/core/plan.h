/* core/plan: what a patch would make of the files, worked out in memory.
 *
 * Theory. A plan is a table of paths. Each is looked at on disk once and then lives in memory: the
 * sections of a patch are carried out in order on this table, so several sections for one file, an
 * addition that is updated further down, or a deletion followed by an addition mean what they say.
 * Only the difference between the first look and the end is written by core/txn, which checks that
 * the disk is still as it was looked at.
 *
 * Rules. An addition and the target of a move must not exist; a deletion, an update and the source
 * of a move must. A file that is deleted and added again in one patch is replaced and keeps its
 * mode. A file and a directory of one name cannot both come out of a patch. Every path passes the
 * lexical rule, the workspace's policy, and is opened beneath the root.
 *
 * The sections of a git diff speak of the files before the patch instead (patch_doc.from_preimage):
 * results of renames and copies are made first, then what is deleted or moved away goes, then the
 * rest comes in order.
 *
 * Must not: write anything.
 */
#ifndef CODESPACE_CORE_PLAN_H
#define CODESPACE_CORE_PLAN_H

#include "base/map.h"
#include "core/hunk.h"
#include "core/registry.h"

#include <sys/stat.h>

struct plan_file {
    char *path;
    /* On disk. */
    bool existed;
    struct stat st;
    char before[FILES_VERSION_LEN]; /* "" when it did not exist */
    /* In memory. */
    bool touched; /* by a section; expectations only look */
    bool exists;
    bool loaded;     /* `content` holds it */
    bool moved;      /* came here by a move */
    bool moved_away; /* left by one */
    bool fuzzy;
    bool changed; /* `content` is, or was, not what the disk holds */
    struct buf content;
    const struct plan_file *origin; /* whose mode and owner a moved file takes; NULL = its own */
    enum patch_mode mode;           /* what becomes of its executable bits */
    bool plain;                     /* on disk: no extended attributes */
    /* What was on disk, kept when `content` becomes something else and keep_before is set. */
    bool has_before;
    struct buf content_before;
};

struct plan {
    const struct workspace *ws;
    struct plan_file **files; /* in the order of the first look */
    size_t n;
    size_t cap;
    struct map by_path;
    struct plan_file **ahead; /* looked at already, not yet asked for; NULL where that was taken */
    size_t n_ahead;
    struct map ahead_by_path; /* index + 1 */
    uint64_t held;            /* bytes of all contents */
    uint64_t work;            /* see hunks_apply() */
    bool keep_before;
};

void plan_fini(struct plan *p);

/* Compare the disk with what the caller expects ("sha256:..." or "absent"). Errors:
 * VERSION_CONFLICT with both versions, INVALID_ARGUMENT, and those of looking at a file. */
int plan_expect(struct plan *p, const struct patch_expect *expect, size_t n, struct err *e);

/* Carry out the sections. Errors: as patch_apply(). */
int plan_sections(struct plan *p, const struct patch_doc *doc, struct err *e);

/* Does the file come out other than it was? */
bool plan_changes(const struct plan_file *f);

/* Do its executable bits? */
bool plan_changes_mode(const struct plan_file *f);

/* The mode of the file that comes out, for one that takes it from `st`. */
mode_t plan_mode(const struct plan_file *f, const struct stat *st);

/* Have the content that is on disk in content_before. Errors: as patch_apply(). */
int plan_load_before(struct plan *p, struct plan_file *f, struct err *e);

/* Steps that core/plan_sections is made of. */

/* Look at many small files at once, by several threads; plan_look() finds the result. What is wrong
 * with one is found when it is asked for. Paths as they were written; once at most. */
void plan_look_ahead(struct plan *p, const char *const *paths, size_t n);

/* The entry of a path as it was written, or NULL. `write`: the patch wants to change it. */
struct plan_file *plan_look(struct plan *p, const char *path, bool write, struct err *e);

/* Have the content in memory: large files are looked at without. */
int plan_load(struct plan *p, struct plan_file *f, struct err *e);

/* May a file of `size` more bytes be held? */
int plan_check_sizes(const struct plan *p, const struct plan_file *f, uint64_t size, struct err *e);

/* Forget the content; or take another, leaving *content empty; or move it to *ret. */
void plan_drop(struct plan *p, struct plan_file *f);
void plan_take(struct plan *p, struct plan_file *f, struct buf *content);
void plan_give(struct plan *p, struct plan_file *f, struct buf *ret);

#endif
