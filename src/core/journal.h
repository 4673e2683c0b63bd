/* core/journal: what a transaction is about to do, written down outside the workspace, so that
 * after a crash all of it holds or none (R20).
 *
 * Theory. One file for each root, in a private directory of the caller's. It holds one record, that
 * of the last transaction: every target, the temporary names beside it, the identity of the old and
 * of the new file, the directories that will be made. Whoever starts after a crash compares the
 * record with the disk and goes back or forward; nobody has to ask. The order is:
 *
 *   1. record "staging"; nothing was touched before. Temporary files are written and synced.
 *   2. record "ready", with the new files' identities; synced. Then the names are exchanged and the
 *      directories synced.
 *   3. mark "committed"; synced. Only then the old files, which lie aside, go and the caller is
 * told.
 *   4. mark "idle"; not synced, since going forward twice does no harm.
 *
 * Recovery: "staging" removes temporary files; "ready" puts back what was exchanged, unless all
 * was; "committed" removes what lies aside. A file is only touched if it is the very file that the
 * record names (device, inode, size and time); what somebody else put there stays, and is told.
 *
 * A transaction of one file is atomic by its rename, so its records are not synced: they survive a
 * kill, and after a loss of power at most a temporary file stays. With `lax` nothing is synced.
 *
 * The record is checked by a digest; one that was half written belongs to a transaction that had
 * not renamed anything yet. The mark lies in a block of its own. The file is locked while it is
 * open.
 *
 * Must not: lie where a command can write; be trusted for paths: they are opened beneath the root.
 */
#ifndef CODESPACE_CORE_JOURNAL_H
#define CODESPACE_CORE_JOURNAL_H

#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

/* ".codespace-", 16 digits, ".tmp" */
#define JOURNAL_NAME_LEN 32
/* Largest record: PATCH_FILES_MAX paths of PATH_LEN_MAX, and what stands beside them. */
#define JOURNAL_RECORD_MAX (64u << 20)

/* A file, known by what cannot be the same by chance. */
struct journal_id {
    uint64_t dev;
    uint64_t ino;
    uint64_t size;
    int64_t seconds;
    int64_t nanoseconds;
};

struct journal_item {
    int kind;                     /* enum txn_kind */
    const char *path;             /* of the target */
    char temp[JOURNAL_NAME_LEN];  /* beside it: the new file; after an exchange the old one */
    char aside[JOURNAL_NAME_LEN]; /* the old one, where names cannot be exchanged */
    struct journal_id was;
    struct journal_id made; /* zeroes before "ready"; size and time are not compared */
};

struct journal;

/* Open, make and lock the file `name` in the directory. Errors: WORKSPACE_BUSY (another process has
 * it), FILE_OPERATION_FAILED. */
int journal_open(int dir_fd, const char *name, struct journal **ret, struct err *e);
void journal_close(struct journal *j);

/* Steps of a transaction, for core/txn. 0 or -errno. */
int journal_staging(struct journal *j, int root_fd, const struct journal_item *items, size_t n,
                    const struct strv *made_dirs);
int journal_ready(struct journal *j, const struct journal_item *items, size_t n, bool sync);
int journal_committed(struct journal *j, bool sync);
int journal_idle(struct journal *j);

enum journal_outcome {
    JOURNAL_CLEAN,       /* nothing was unfinished */
    JOURNAL_ROLLED_BACK, /* none of the last transaction holds */
    JOURNAL_FINISHED,    /* all of it holds */
    JOURNAL_STUCK,       /* some file could not be put back; `text` names it */
};

struct journal_report {
    enum journal_outcome outcome;
    size_t files;   /* of the transaction */
    char text[512]; /* a sentence for the log */
};

/* Bring the disk below the root to one side or the other. Comes before the first transaction.
 * Errors: FILE_OPERATION_FAILED; CONFIG_INVALID when the record belongs to another root. Stuck
 * files are left as they are and the record is forgotten. */
int journal_recover(struct journal *j, int root_fd, struct journal_report *ret, struct err *e);

struct journal_id journal_id_of(const struct stat *st);

#endif
