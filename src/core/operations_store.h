/* core/operations_store: what was done, by id and by key: patches, commands and reverts.
 *
 * Theory. An operation is a row that exists before its effect. For a patch or a revert:
 *   opstore_begin   row, status unknown; here a repeated key is answered instead of run again
 *   opstore_plan    every change with its versions before and after, and the inverse; DURABLE:
 *                   when it returns, nothing was written yet and everything needed to undo or to
 *                   judge the outcome is on the disk
 *   (write files)
 *   opstore_finish  the outcome; LAZY is enough, because opstore_recover() finds it out again by
 *                   comparing the planned versions with the disk
 * One fsync an operation. Who plans in memory before anything is written takes the first two steps
 * at once (opstore_begin_planned), and what comes to nothing is recorded with its outcome
 * (opstore_record). Whoever has no plan (a runner elsewhere) begins DURABLE instead.
 * For a command: begin LAZY, opstore_start_command, opstore_end_command. A command's row protects
 * nothing that we write, so it costs no fsync; it survives the death of the gateway all the same.
 *
 * The row keeps hashes, never the text of a patch or of argv. The inverse holds old content and
 * goes by its own retention. A key belongs to its workspace. When retention deletes a row its key
 * is forgotten.
 *
 * All functions block on the ledger's mutex and disk, and may run on any thread. Errors of all:
 * LEDGER_FAILED. Must not: run anything, touch a workspace, or guess an outcome.
 */
#ifndef CODESPACE_CORE_OPERATIONS_STORE_H
#define CODESPACE_CORE_OPERATIONS_STORE_H

#include "base/buf.h"
#include "base/err.h"
#include "core/ledger.h"
#include "core/patch.h"

#include <stdbool.h>
#include <stdint.h>

/* Longest operation_key: an id of the client's own, not a place to keep data. */
#define OPSTORE_KEY_MAX 256u
/* Largest inverse that is kept; a larger patch is recorded, and cannot be reverted. */
#define OPSTORE_INVERSE_MAX (64u << 20)
/* Largest denials document of a command. */
#define OPSTORE_DENIALS_MAX 65536u
/* Rows of one page: default and largest. */
#define OPSTORE_PAGE_DEFAULT 50u
#define OPSTORE_PAGE_MAX 500u
/* Operations that opstore_touched_since names. */
#define OPSTORE_TOUCHED_MAX 100u

/* OP_EGRESS: the operator replaced a workspace's egress rules. Nobody else's request can be one. */
enum op_kind { OP_PATCH, OP_COMMAND, OP_REVERT, OP_EGRESS };

/* Up to FAILED_PARTIAL the words of the public contract for patches; a command is running, ended,
 * rejected (proved not started), lost (its end was not seen) or unknown (its start was not). */
enum op_status {
    OP_UNKNOWN,
    OP_RUNNING,
    OP_APPLIED,
    OP_CHECKED,
    OP_REJECTED,
    OP_FAILED_ROLLED_BACK,
    OP_FAILED_PARTIAL,
    OP_ENDED,
    OP_LOST,
};

const char *op_kind_name(enum op_kind k);
const char *op_status_name(enum op_status s);
/* The status of that name; -1 for another word. For patch_status_name(). */
int op_status_of(const char *name);

/* Strings are static, or the record's own (freed with it). */
struct op_event {
    uint64_t at_ms;
    const char *name;   /* minted, planned, started, finished, recovered */
    const char *status; /* "" where none belongs to it */
    const char *reason;
};
#define OP_EVENTS_MAX 4

/* The part of a command; empty words and 0 mean not known. */
struct op_command {
    char argv_sha256[LEDGER_HASH_LEN];
    char plan_sha256[LEDGER_HASH_LEN];
    char process_id[64];
    char termination[24]; /* the runner's word: exited, signaled, timeout, ... */
    bool has_exit_code;
    int exit_code;
    int signal;    /* 0 = none */
    char *denials; /* JSON array, NULL = none */
    uint64_t started_ms, ended_ms;
};

struct op_record {
    int64_t seq; /* grows; the cursor of pages */
    char *operation_id;
    char *workspace_id;
    char *key; /* NULL = none; as work_id, approval_id, reverts */
    char *fingerprint;
    char *work_id;
    char *approval_id;
    char *reverts; /* operation that this one undoes */
    enum op_kind kind;
    enum op_status status;
    char error_code[40]; /* of a refusal; "" else */
    char *reason;        /* "" = none */
    bool recovered;      /* the outcome was found out after a crash */
    char *plan_note;     /* what the plan has to say; "" = nothing */
    uint64_t created_ms;
    uint64_t planned_ms;   /* 0 = not planned */
    uint64_t finished_ms;  /* 0 = unfinished */
    uint64_t inverse_size; /* 0 = no inverse is kept */
    struct patch_change *changes;
    size_t n_changes;
    struct op_event events[OP_EVENTS_MAX]; /* filled by whole look-ups, not by pages */
    size_t n_events;
    struct op_command command; /* of OP_COMMAND */
    char *rules;               /* of OP_EGRESS: a JSON object, what changed; NULL else */
};

#define autorecord __attribute__((cleanup(op_record_fini))) struct op_record
void op_record_fini(struct op_record *r);

struct op_request {
    enum op_kind kind;
    const char *workspace_id;
    const char *key; /* NULL = none */
    const char *fingerprint;
    const char *work_id, *approval_id; /* NULL = none */
    const char *reverts;               /* OP_REVERT: the operation to undo */
    const char *argv_sha256;           /* OP_COMMAND */
    const char *rules;                 /* OP_EGRESS */
    const char *operation_id;          /* an id of str_new_id("op-"); NULL = minted here */
    const char *process_id;            /* OP_COMMAND: what it will have; NULL = not known yet */
};

/* Mint an operation. 0: new. 1: the key was used for the same fingerprint; *ret is that operation
 * as it stands, run nothing. ret may be NULL only without a key. Errors: OPERATION_KEY_CONFLICT,
 * LIMIT_EXCEEDED and INVALID_ARGUMENT (key); of a revert OPERATION_NOT_FOUND and
 * OPERATION_NOT_REVERTIBLE. */
int opstore_begin(struct ledger *l, const struct op_request *request, enum ledger_sync sync,
                  struct op_record *ret, struct err *e);

/* Is the request answered by its key already? As opstore_begin, but 0 mints nothing: for asking
 * before the workspace is taken or a hold is made, so that a repeated call waits for neither. */
int opstore_peek(struct ledger *l, const struct op_request *request, struct op_record *ret,
                 struct err *e);

/* Record what will be written, before it is. inverse NULL = none; one above OPSTORE_INVERSE_MAX is
 * not kept (the event says so). Errors: OPERATION_NOT_FOUND. */
int opstore_plan(struct ledger *l, const char *operation_id, const struct patch_change *changes,
                 size_t n_changes, const void *inverse, size_t inverse_len, enum ledger_sync sync,
                 struct err *e);

/* What will be written: see opstore_plan. */
struct op_plan {
    const struct patch_change *changes;
    size_t n_changes;
    const void *inverse;
    size_t inverse_len;
};

/* opstore_begin and, when that is new, opstore_plan in one transaction. */
int opstore_begin_planned(struct ledger *l, const struct op_request *request,
                          const struct op_plan *plan, enum ledger_sync sync, struct op_record *ret,
                          struct err *e);

struct op_outcome {
    enum op_status status;
    const struct err *refusal;          /* NULL = none: its code and message are kept */
    const char *reason;                 /* used without refusal; NULL = "" */
    const struct patch_change *changes; /* replace the planned ones; NULL = keep those */
    size_t n_changes;
};

/* Record the outcome, once. Errors: OPERATION_NOT_FOUND; INTERNAL when it was recorded before. */
int opstore_finish(struct ledger *l, const char *operation_id, const struct op_outcome *outcome,
                   enum ledger_sync sync, struct err *e);

/* opstore_begin and, when that is new, opstore_finish in one transaction: for what had no effect
 * (refused, checked). The record is as opstore_begin gives it, without the outcome. */
int opstore_record(struct ledger *l, const struct op_request *request,
                   const struct op_outcome *outcome, enum ledger_sync sync, struct op_record *ret,
                   struct err *e);

/* opstore_begin_planned and, when that is new, opstore_finish in one transaction: for what was
 * carried out already. */
int opstore_record_planned(struct ledger *l, const struct op_request *request,
                           const struct op_plan *plan, const struct op_outcome *outcome,
                           enum ledger_sync sync, struct op_record *ret, struct err *e);

/* The command is dispatched as process_id. plan_sha256 may be NULL. */
int opstore_start_command(struct ledger *l, const char *operation_id, const char *process_id,
                          const char *plan_sha256, enum ledger_sync sync, struct err *e);

struct op_end {
    enum op_status status; /* OP_ENDED, OP_LOST, OP_REJECTED or OP_UNKNOWN */
    const char *termination;
    const char *reason;
    bool has_exit_code;
    int exit_code;
    int signal;
    const char *denials; /* JSON array of at most OPSTORE_DENIALS_MAX bytes, or NULL */
    uint64_t started_ms, ended_ms;
};

/* opstore_begin of a command and, when that is new, its end in one transaction. */
int opstore_record_command(struct ledger *l, const struct op_request *request,
                           const struct op_end *end, enum ledger_sync sync, struct op_record *ret,
                           struct err *e);

/* Record the end of a command, once. Errors as opstore_finish, LIMIT_EXCEEDED (denials). */
int opstore_end_command(struct ledger *l, const char *operation_id, const struct op_end *end,
                        enum ledger_sync sync, struct err *e);

/* At start of a gateway whose processes died with the one before: running commands become lost.
 * Their number, or -1. */
int opstore_lose_commands(struct ledger *l, struct err *e);

/* Look-ups. Errors: OPERATION_NOT_FOUND. */
int opstore_get(struct ledger *l, const char *operation_id, struct op_record *ret, struct err *e);
/* workspace_id NULL = any; INVALID_ARGUMENT when two workspaces use the key. */
int opstore_get_by_key(struct ledger *l, const char *workspace_id, const char *key,
                       struct op_record *ret, struct err *e);
int opstore_get_by_process(struct ledger *l, const char *process_id, struct op_record *ret,
                           struct err *e);
/* The operation that a granted hold was used for: 1 found, 0 none, -1. */
int opstore_find_by_approval(struct ledger *l, const char *approval_id, struct op_record *ret,
                             struct err *e);

struct op_filter {
    const char *workspace_id; /* NULL = all */
    int kind;                 /* an op_kind, -1 = all */
    bool unfinished;          /* only these */
    int64_t before_seq;       /* 0 = from the newest; else only seq below */
    uint32_t limit;           /* 0 = OPSTORE_PAGE_DEFAULT; at most OPSTORE_PAGE_MAX */
};

struct op_page {
    struct op_record *items; /* newest first, without changes and events */
    size_t n;
    size_t cap;
    int64_t next_seq; /* before_seq of the next page; 0 = no more */
};

void op_page_fini(struct op_page *p);
int opstore_list(struct ledger *l, const struct op_filter *filter, struct op_page *ret,
                 struct err *e);

/* The inverse of an operation, for whoever plans a revert. Errors: OPERATION_NOT_FOUND,
 * OPERATION_NOT_REVERTIBLE (not a patch, not applied, no inverse kept, reverted already). */
int opstore_inverse(struct ledger *l, const char *operation_id, struct buf *ret, struct err *e);

struct op_touch {
    char *operation_id;
    char *path;
    enum op_kind kind;
    enum op_status status;
};

/* Which later operations of the workspace changed a path of this one, oldest first, at most
 * OPSTORE_TOUCHED_MAX. It explains a version that does not fit; the versions on disk decide. The
 * caller frees with op_touches_free. */
int opstore_touched_since(struct ledger *l, const char *operation_id, struct op_touch **ret,
                          size_t *ret_n, struct err *e);
void op_touches_free(struct op_touch *touches, size_t n);

/* Says what version a path of a workspace has now ("" = absent): 0, or -1 when that cannot be
 * told. */
typedef int (*op_observe_fn)(void *user, const char *workspace_id, const char *path,
                             char ret_version[FILES_VERSION_LEN]);

struct op_recovery {
    unsigned applied;     /* every planned version is on disk */
    unsigned rolled_back; /* every earlier version is on disk */
    unsigned left;        /* neither, or not planned: still unknown and unfinished */
};

/* At start, before the first request: settle unfinished patches and reverts whose plan says what
 * the disk shows. Those that are left are listed by opstore_list(unfinished) with their inverse for
 * the patch engine. The mutex is not held while observing. */
int opstore_recover(struct ledger *l, op_observe_fn observe, void *user, struct op_recovery *ret,
                    struct err *e);

#endif
