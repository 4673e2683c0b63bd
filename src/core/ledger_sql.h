/* core/ledger_sql: transactions and statements, for the stores in this directory only.
 *
 * Theory. A store function is: ledger_begin, some ledger_run and ledger_query, ledger_commit. The
 * transaction is an owner (autotxn): leaving the block without a commit rolls back and gives the
 * mutex back, so no early return can hold it. Statements are prepared once and cached by the
 * address of their text, so the text must be a literal; values are bound, never printed into it.
 *
 * Must not: be included outside core/; nest transactions; keep a row after the next step.
 */
#ifndef CODESPACE_CORE_LEDGER_SQL_H
#define CODESPACE_CORE_LEDGER_SQL_H

#include "base/mem.h"
#include "core/ledger.h"

#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>

/* Different SQL texts in the stores; one more is a bug that ensure() tells. */
#define LEDGER_STATEMENTS_MAX 160

struct ledger_statement {
    const char *text; /* compared by address */
    sqlite3_stmt *stmt;
};

struct ledger {
    pthread_mutex_t mutex;
    sqlite3 *db;   /* NULL in memory until the first transaction */
    char *path;    /* NULL in memory */
    int lock_fd;   /* FILE-gateway, -1 without */
    bool was_open; /* the last gateway did not close it */
    enum ledger_role role;
    enum ledger_sync sync; /* what the connection is set to now */
    struct ledger_keep keep;
    const uint64_t *clock_ms;
    uint64_t since_prune;   /* new operations since retention ran */
    atomic_long open_works; /* so that a call without works asks no database */
    struct ledger_statement statements[LEDGER_STATEMENTS_MAX];
    size_t n_statements;
};

struct ledger_txn {
    struct ledger *l; /* NULL: not begun, or over */
};
#define autotxn __attribute__((cleanup(ledger_txn_end))) struct ledger_txn

/* Take the mutex and begin. LEDGER_READ takes no write lock. Errors: LEDGER_FAILED. */
int ledger_begin(struct ledger *l, enum ledger_sync sync, struct ledger_txn *ret, struct err *e);
/* Commit and give the mutex back; on failure everything was rolled back. */
int ledger_commit(struct ledger_txn *txn, struct err *e);
/* Roll back when still open. */
void ledger_txn_end(struct ledger_txn *txn);

/* A value to bind; text and blobs are borrowed until the statement is done. */
struct ledger_value {
    enum { LEDGER_NULL, LEDGER_INT, LEDGER_TEXT, LEDGER_BLOB } type;
    int64_t number;
    const void *data;
    size_t len;
};
#define L_INT(v)                                                                                   \
    {                                                                                              \
        .type = LEDGER_INT, .number = (int64_t)(v)                                                 \
    }
#define L_TEXT(s)                                                                                  \
    {                                                                                              \
        .type = LEDGER_TEXT, .data = (s)                                                           \
    }
#define L_BLOB(p, n)                                                                               \
    {                                                                                              \
        .type = LEDGER_BLOB, .data = (p), .len = (n)                                               \
    }
/* The values of a statement, in order. L_TEXT(NULL) binds NULL. */
#define L_ARGS(...)                                                                                \
    (const struct ledger_value[]){__VA_ARGS__},                                                    \
        sizeof((const struct ledger_value[]){__VA_ARGS__}) / sizeof(struct ledger_value)
#define L_NONE NULL, 0

/* Run a statement that gives no rows. The number of rows changed, or -1. */
int ledger_run(struct ledger *l, const char *sql, const struct ledger_value *values, size_t n,
               struct err *e);

/* The same where the number does not matter: 0 or -1. */
int ledger_put(struct ledger *l, const char *sql, const struct ledger_value *values, size_t n,
               struct err *e);

/* Begin a query; 1: a row is there, 0: none, -1. The statement is an owner: it is reset at the end
 * of the block. */
#define autoquery __attribute__((cleanup(ledger_query_end))) sqlite3_stmt
int ledger_query(struct ledger *l, const char *sql, const struct ledger_value *values, size_t n,
                 sqlite3_stmt **ret, struct err *e);
int ledger_next(struct ledger *l, sqlite3_stmt *stmt, struct err *e);
void ledger_query_end(sqlite3_stmt **stmt);

/* The first column of the first row as a number; `none` when there is no row or it is NULL. 0 or
 * -1. */
int ledger_number(struct ledger *l, const char *sql, const struct ledger_value *values, size_t n,
                  int64_t none, int64_t *ret, struct err *e);

/* Columns. Text is a fresh copy, NULL for NULL. */
char *ledger_column_dup(sqlite3_stmt *stmt, int column);
uint64_t ledger_column_u64(sqlite3_stmt *stmt, int column);
/* Text into an array; longer text is cut (columns that hold our own words and hashes). */
void ledger_column_copy(sqlite3_stmt *stmt, int column, char *out, size_t cap);

/* Words of an enum by table: the name's index, or -1. */
int ledger_word(const char *const *words, size_t n, const char *word);

/* Fill `e` with LEDGER_FAILED from the connection's last error: what was being done, SQLite's text,
 * and what to do. Returns -1. */
int ledger_sql_error(struct ledger *l, const char *doing, struct err *e);

/* Fold the log into the file and empty it, so that what was overwritten is gone from both. Best
 * effort: a reader in another process may keep it from happening now. Not in a transaction. */
void ledger_fold_log(struct ledger *l);

/* Open the connection and bring the schema to the newest version. Errors: LEDGER_FAILED, and then
 * there is no connection. */
int ledger_connect(struct ledger *l, struct err *e);

/* Set open_works from the tables. */
int works_count_open(struct ledger *l, struct err *e);

/* Stores' own part of retention, in an open transaction; rows deleted, or -1. */
int opstore_prune(struct ledger *l, struct err *e);
int approvals_prune(struct ledger *l, struct err *e);
int works_prune(struct ledger *l, struct err *e);

#endif
