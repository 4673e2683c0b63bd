/* core/txn: change several files of a workspace, all of them or none.
 *
 * Theory. Three phases. Stage: make missing directories, write every new content into a temporary
 * file beside its target, with owner, mode and attributes of the file it replaces, and fsync it.
 * Commit: look once more whether every target still is what was planned against, then rename one
 * after the other: a replacement exchanges the two names, so what was there is never gone and lies
 * under the temporary name; a removal renames aside; a new file takes its name only if nobody has
 * it. What comes aside is checked again, which closes the gap between looking and renaming. Finish:
 * fsync the directories, then unlink what lies aside. Any failure before that goes back: the very
 * inodes that were there get their names again, new directories are taken away.
 *
 * Directories are held open from the first use on, so a directory that is renamed or swapped for a
 * link meanwhile cannot lead a write or a clean-up elsewhere.
 *
 * With a journal (core/journal) a crash at any point is undone or finished at the next start. Many
 * new files are synced after all were written, with one call for the whole file system; so are
 * their directories after the renames. Making, looking and removing are done by several threads
 * then (core/spread), and so is the exchange of names where all are replacements; other names
 * change one after the other, in the order of the operations.
 *
 * Must not: write into an existing inode (it may have names elsewhere, A18); go on after somebody
 * else changed a target; leave a temporary file, but for one case: when an old file cannot be put
 * back (the disk fails, or somebody took its name meanwhile), its only copy stays and is named.
 */
#ifndef CODESPACE_CORE_TXN_H
#define CODESPACE_CORE_TXN_H

#include "base/err.h"
#include "core/journal.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

/* What may linger of one transaction, see txn_env: files, a share of the descriptors that the
 * process may have, and bytes, of which each file has an equal part. */
#define TXN_LINGER_FILES 1024u
#define TXN_LINGER_SHARE 8u
#define TXN_LINGER_MAX (4u << 20)
/* Directories that are held open; more are opened again for each use and compared. */
#define TXN_DIRS_HELD 256u

enum txn_kind { TXN_CREATE, TXN_REPLACE, TXN_REMOVE };

struct txn_op {
    enum txn_kind kind;
    const char *path;  /* normalised; each path once */
    const char *bytes; /* the new content */
    size_t len;
    const struct stat *was;      /* REPLACE, REMOVE: the file that was planned against */
    const char *meta_path;       /* file whose owner, mode and attributes to take, or NULL */
    const struct stat *meta_was; /* its fstat */
    mode_t mode_set;             /* bits to set and to clear in the mode that comes of it */
    mode_t mode_clear;
    bool plain; /* meta_path had no extended attributes when it was planned against */
};

enum txn_step {
    TXN_JOURNAL,
    TXN_DIRECTORY,
    TXN_STAGE,
    TXN_CHECK,
    TXN_COMMIT,
    TXN_SYNC,
    TXN_FINISH,
    TXN_UNDO,
};

/* For tests: called before each step of operation `op`; a negative errno makes the step fail with
 * it. May change the disk, which is how races are staged. */
struct txn_probe {
    int (*before)(void *data, enum txn_step step, size_t op);
    void *data;
};

struct txn_env {
    int root_fd;
    struct journal *journal; /* NULL: a crash in between leaves what it leaves */
    bool lax;                /* nothing is synced: durable is what the system makes so, later */
    /* NULL, or -1 for each operation: gets a descriptor of the file that it replaced or removed.
     * That has no name any more, and closing it gives its blocks and inode back, which takes longer
     * than all the renaming: the caller does it when nobody waits. -1 stays for larger files, whose
     * space somebody may need at once. */
    int *linger;
    /* Asked once, before the first of several is kept so; NULL = they may. */
    bool (*may_linger)(void *user);
    const struct txn_probe *probe;
    /* Called once when all is staged and synced, before the first rename; negative stops. Called
     * also when there is nothing to write. NULL = not called. */
    int (*staged)(void *user, struct err *e);
    void *user;
};

enum txn_outcome {
    TXN_APPLIED,
    TXN_REFUSED,     /* nothing was renamed yet; the disk is as it was */
    TXN_STOPPED,     /* by `staged`, whose error *why is; the disk is as it was */
    TXN_ROLLED_BACK, /* what was renamed was put back; the disk is as it was */
    TXN_PARTIAL,     /* something could not be put back */
};

/* Run. Unless applied, *why says what failed. standing[i] becomes true when the effect of ops[i]
 * is on the disk. */
enum txn_outcome txn_run(const struct txn_env *env, const struct txn_op *ops, size_t n,
                         bool *standing, struct err *why);

#endif
