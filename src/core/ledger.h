/* core/ledger: the SQLite database behind operations, approvals and works.
 *
 * Theory. One connection, one mutex. A store function takes the mutex, runs one transaction and
 * gives it back, so any thread may call any function; every call may block on a disk, so the loop's
 * thread must not call (use the thread pool). WAL keeps a commit to one write and one fsync, and
 * leaves `sqlite3 FILE` free to read beside us. Tables are STRICT, foreign keys are on, deleted
 * bytes are overwritten (secure_delete: a scrubbed argument is gone from the file).
 *
 * Durability is chosen per transaction:
 *   LEDGER_DURABLE  synchronous=FULL: the write-ahead log is on the disk when commit returns. For
 *                   what must be remembered before a file of the user is touched, and for what a
 *                   person decided.
 *   LEDGER_LAZY     synchronous=NORMAL: survives the death of the process at any point, and is on
 *                   the disk with the next durable commit; a power cut may take it back. Never
 *                   corrupts. For what can be found out again from the disk or protects nothing.
 *
 * One gateway per database: LEDGER_GATEWAY holds an open-file-description lock on FILE-gateway
 * while the ledger is open; the kernel drops it however the process ends. LEDGER_OPERATOR (the
 * command line that answers approvals beside a running gateway) takes no lock, and neither
 * migrates, recovers nor prunes.
 *
 * Must not: answer an SQLite failure with a *_NOT_FOUND; be used after fork() in the child; open
 * what is not a regular file of ours.
 */
#ifndef CODESPACE_CORE_LEDGER_H
#define CODESPACE_CORE_LEDGER_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How long a statement waits for another connection's write transaction (the operator's command
 * line, or somebody's sqlite3 shell) before it fails. */
#define LEDGER_BUSY_MS 5000
/* Largest value we store; SQLite refuses longer ones (its own default is 1 GB). */
#define LEDGER_VALUE_MAX (80u << 20)
/* The log is cut back to this size at a checkpoint, so that one large patch does not keep it. */
#define LEDGER_WAL_KEEP_BYTES (16u << 20)
/* Retention runs at open and after so many new operations; each run deletes at most
 * LEDGER_PRUNE_BATCH rows of a kind, so no call waits long for it. */
#define LEDGER_PRUNE_EVERY 500u
#define LEDGER_PRUNE_BATCH 2000u

/* What is kept. Unfinished operations, active approvals and open works are always kept. A field of
 * 0 takes the default in the comment. */
struct ledger_keep {
    uint64_t age_ms;        /* finished rows younger than this: 90 days */
    uint64_t operations;    /* newest finished operations: 100,000 */
    uint64_t inverse_bytes; /* bytes of inverse patches, newest first: 512 MiB */
    uint64_t approvals;     /* newest ended approvals: 10,000 */
    uint64_t works;         /* newest closed works: 10,000 */
};

enum ledger_role { LEDGER_GATEWAY, LEDGER_OPERATOR };

struct ledger_options {
    const char *path; /* NULL or "" = in memory: gone with the process, no files at all */
    enum ledger_role role;
    struct ledger_keep keep;
    const uint64_t *clock_ms; /* for tests: the time, instead of CLOCK_REALTIME; NULL = the clock */
};

enum ledger_sync { LEDGER_READ, LEDGER_LAZY, LEDGER_DURABLE };

struct ledger;

/* Open or create. Missing parent directories are created 0700, the file 0600. Refused, each with
 * what to do: a symbolic link, a special file, another owner, a second hard link, a directory that
 * everybody may write to, a database of another program, a newer schema, a damaged file, a second
 * gateway (with its process id). One in memory has nothing to refuse and is made by the first
 * transaction: most servers of a stdio client start far more often than they record. Errors:
 * LEDGER_FAILED. The caller frees. */
int ledger_open(const struct ledger_options *options, struct ledger **ret, struct err *e);

/* Closes; accepts NULL. The log is folded into the file. */
void ledger_free(struct ledger *l);
#define autoledger __attribute__((cleanup(ledger_cleanup))) struct ledger
void ledger_cleanup(struct ledger **l);

/* True when nothing outlives the process; workspace_info says so. */
bool ledger_in_memory(const struct ledger *l);

/* The file, or NULL in memory. */
const char *ledger_path(const struct ledger *l);

/* Milliseconds since the epoch, as rows are stamped. */
uint64_t ledger_now_ms(const struct ledger *l);

/* Delete what retention lets go, one batch of each kind. The number of rows deleted, or -1. */
int ledger_prune(struct ledger *l, struct err *e);

/* SHA-256 over n parts, each preceded by its length (8 bytes, little endian), as 64 hex digits and
 * a NUL. A NULL part differs from an empty one. For fingerprints and argv hashes. */
#define LEDGER_HASH_LEN 65
struct ledger_part {
    const void *data;
    size_t len;
};
void ledger_hash(const struct ledger_part *parts, size_t n, char ret[LEDGER_HASH_LEN]);

#endif
