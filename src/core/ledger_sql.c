/* core/ledger_sql: see ledger_sql.h. */
#include "core/ledger_sql.h"

#include "base/log.h"

#include <string.h>

/* What a person can do about an SQLite result; the primary code is looked up. */
static const struct {
    int code;
    const char *advice;
} advices[] = {
    {SQLITE_CORRUPT, "the file is damaged: move it and its -wal file away (a new one is made) or "
                     "put back a copy; `sqlite3 FILE .recover` saves what can be read"},
    {SQLITE_NOTADB, "it is not an SQLite database: move it away or choose another path"},
    {SQLITE_FULL, "the disk or quota is full: make room, nothing was recorded"},
    {SQLITE_READONLY, "the file, its directory or the file system is read-only"},
    {SQLITE_BUSY, "another program holds a write transaction on it: let it end, then try again"},
    {SQLITE_IOERR, "the file system failed: see the kernel log, nothing was recorded"},
    {SQLITE_CANTOPEN, "the file or its -wal file cannot be opened: check owner and mode"},
    {SQLITE_TOOBIG, "a value is larger than the ledger stores"},
};

int ledger_sql_error(struct ledger *l, const char *doing, struct err *e)
{
    int code = sqlite3_errcode(l->db) & 0xff;
    const char *advice = "nothing was recorded";
    for (size_t i = 0; i < ARRAY_LEN(advices); i++) {
        if (advices[i].code == code)
            advice = advices[i].advice;
    }
    return err_set(e, ERR_LEDGER_FAILED, "ledger %s: cannot %s: %s (SQLite %d); %s",
                   l->path == NULL ? "in memory" : l->path, doing, sqlite3_errmsg(l->db),
                   sqlite3_extended_errcode(l->db), advice);
}

static int set_sync(struct ledger *l, enum ledger_sync sync, struct err *e)
{
    if (sync == LEDGER_READ || sync == l->sync || l->path == NULL)
        return 0;
    const char *sql =
        sync == LEDGER_DURABLE ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=NORMAL";
    if (sqlite3_exec(l->db, sql, NULL, NULL, NULL) != SQLITE_OK)
        return ledger_sql_error(l, "choose the durability", e);
    l->sync = sync;
    return 0;
}

int ledger_begin(struct ledger *l, enum ledger_sync sync, struct ledger_txn *ret, struct err *e)
{
    ensure(pthread_mutex_lock(&l->mutex) == 0);
    const char *sql = sync == LEDGER_READ ? "BEGIN" : "BEGIN IMMEDIATE";
    if ((l->db == NULL && ledger_connect(l, e) < 0) || set_sync(l, sync, e) < 0 ||
        ledger_run(l, sql, L_NONE, e) < 0) {
        ensure(pthread_mutex_unlock(&l->mutex) == 0);
        return -1;
    }
    ret->l = l;
    return 0;
}

/* A row still being read would be shared with the thread that takes the mutex next. */
static void ensure_idle(const struct ledger *l)
{
    for (size_t i = 0; i < l->n_statements; i++)
        ensure(!sqlite3_stmt_busy(l->statements[i].stmt));
}

void ledger_txn_end(struct ledger_txn *txn)
{
    struct ledger *l = steal(txn->l);
    if (l == NULL)
        return;
    ensure_idle(l);
    /* SQLite has rolled back by itself after some failures (a full disk). */
    if (sqlite3_get_autocommit(l->db) == 0 && ledger_run(l, "ROLLBACK", L_NONE, NULL) < 0)
        log_warn("ledger: rollback: %s", sqlite3_errmsg(l->db));
    ensure(pthread_mutex_unlock(&l->mutex) == 0);
}

int ledger_commit(struct ledger_txn *txn, struct err *e)
{
    ensure(txn->l != NULL);
    ensure_idle(txn->l);
    int r = ledger_run(txn->l, "COMMIT", L_NONE, e);
    ledger_txn_end(txn);
    return r < 0 ? -1 : 0;
}

static sqlite3_stmt *statement(struct ledger *l, const char *sql, struct err *e)
{
    for (size_t i = 0; i < l->n_statements; i++) {
        if (l->statements[i].text == sql)
            return l->statements[i].stmt;
    }
    ensure(l->n_statements < LEDGER_STATEMENTS_MAX);
    sqlite3_stmt *stmt = NULL;
    if (sqlite3_prepare_v3(l->db, sql, -1, SQLITE_PREPARE_PERSISTENT, &stmt, NULL) != SQLITE_OK) {
        ledger_sql_error(l, "prepare a statement", e);
        return NULL;
    }
    l->statements[l->n_statements++] = (struct ledger_statement){sql, stmt};
    return stmt;
}

static int bind_one(sqlite3_stmt *stmt, int at, const struct ledger_value *v)
{
    switch (v->type) {
    case LEDGER_INT:
        return sqlite3_bind_int64(stmt, at, v->number);
    case LEDGER_TEXT:
        return sqlite3_bind_text(stmt, at, v->data, -1, SQLITE_STATIC);
    case LEDGER_BLOB:
        return sqlite3_bind_blob64(stmt, at, v->data, v->len, SQLITE_STATIC);
    case LEDGER_NULL:
        break;
    }
    return sqlite3_bind_null(stmt, at);
}

static sqlite3_stmt *bound(struct ledger *l, const char *sql, const struct ledger_value *values,
                           size_t n, struct err *e)
{
    sqlite3_stmt *stmt = statement(l, sql, e);
    if (stmt == NULL)
        return NULL;
    ensure(sqlite3_bind_parameter_count(stmt) == (int)n);
    ensure(!sqlite3_stmt_busy(stmt));
    for (size_t i = 0; i < n; i++) {
        if (bind_one(stmt, (int)i + 1, &values[i]) != SQLITE_OK) {
            ledger_sql_error(l, "bind a value", e);
            return NULL;
        }
    }
    return stmt;
}

/* Borrowed values must not stay bound after the call that lent them. */
static void finish(sqlite3_stmt *stmt)
{
    sqlite3_reset(stmt);
    sqlite3_clear_bindings(stmt);
}

int ledger_run(struct ledger *l, const char *sql, const struct ledger_value *values, size_t n,
               struct err *e)
{
    sqlite3_stmt *stmt = bound(l, sql, values, n, e);
    if (stmt == NULL)
        return -1;
    int r = sqlite3_step(stmt);
    ensure(r != SQLITE_ROW);
    int changed = r == SQLITE_DONE ? sqlite3_changes(l->db) : ledger_sql_error(l, "write", e);
    finish(stmt);
    return changed;
}

int ledger_put(struct ledger *l, const char *sql, const struct ledger_value *values, size_t n,
               struct err *e)
{
    return ledger_run(l, sql, values, n, e) < 0 ? -1 : 0;
}

int ledger_next(struct ledger *l, sqlite3_stmt *stmt, struct err *e)
{
    int r = sqlite3_step(stmt);
    if (r == SQLITE_ROW)
        return 1;
    return r == SQLITE_DONE ? 0 : ledger_sql_error(l, "read", e);
}

int ledger_query(struct ledger *l, const char *sql, const struct ledger_value *values, size_t n,
                 sqlite3_stmt **ret, struct err *e)
{
    sqlite3_stmt *stmt = bound(l, sql, values, n, e);
    if (stmt == NULL)
        return -1;
    *ret = stmt;
    return ledger_next(l, stmt, e);
}

void ledger_query_end(sqlite3_stmt **stmt)
{
    if (*stmt != NULL)
        finish(*stmt);
}

int ledger_number(struct ledger *l, const char *sql, const struct ledger_value *values, size_t n,
                  int64_t none, int64_t *ret, struct err *e)
{
    autoquery *stmt = NULL;
    int r = ledger_query(l, sql, values, n, &stmt, e);
    if (r < 0)
        return -1;
    bool there = r == 1 && sqlite3_column_type(stmt, 0) != SQLITE_NULL;
    *ret = there ? sqlite3_column_int64(stmt, 0) : none;
    return 0;
}

char *ledger_column_dup(sqlite3_stmt *stmt, int column)
{
    const char *text = (const char *)sqlite3_column_text(stmt, column);
    return text == NULL ? NULL : mem_dup(text, (size_t)sqlite3_column_bytes(stmt, column));
}

uint64_t ledger_column_u64(sqlite3_stmt *stmt, int column)
{
    sqlite3_int64 v = sqlite3_column_int64(stmt, column);
    return v < 0 ? 0 : (uint64_t)v;
}

void ledger_column_copy(sqlite3_stmt *stmt, int column, char *out, size_t cap)
{
    const char *text = (const char *)sqlite3_column_text(stmt, column);
    size_t n = text == NULL ? 0 : strlen(text);
    if (n >= cap)
        n = cap - 1;
    if (n > 0)
        memcpy(out, text, n);
    out[n] = '\0';
}

int ledger_word(const char *const *words, size_t n, const char *word)
{
    for (size_t i = 0; i < n; i++) {
        if (word != NULL && strcmp(words[i], word) == 0)
            return (int)i;
    }
    return -1;
}
