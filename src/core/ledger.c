/* core/ledger: see ledger.h. Opening, migrating, retention and the hash; statements are in
 * core/ledger_sql, the file's checks in core/ledger_file. */
#include "core/ledger.h"

#include "base/log.h"
#include "base/mem.h"
#include "core/ledger_file.h"
#include "core/ledger_schema.h"
#include "core/ledger_sql.h"
#include "core/version.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

/* A whole check reads every page. After a clean end only a small file is worth it; after a crash
 * one of up to 64 MiB. Damage in a larger one is told when it is met, in the same words. */
#define LEDGER_CHECK_PAGES 256
#define LEDGER_CHECK_PAGES_AFTER_CRASH 16384
/* Free pages that one run of retention gives back to the file system. */
#define LEDGER_VACUUM_PAGES "1024"

static const struct ledger_keep keep_default = {
    .age_ms = 90ull * 24 * 3600 * 1000,
    .operations = 100000,
    .inverse_bytes = 512ull << 20,
    .approvals = 10000,
    .works = 10000,
};

static struct ledger_keep keep_of(const struct ledger_keep *asked)
{
    struct ledger_keep k = keep_default;
    k.age_ms = asked->age_ms != 0 ? asked->age_ms : k.age_ms;
    k.operations = asked->operations != 0 ? asked->operations : k.operations;
    k.inverse_bytes = asked->inverse_bytes != 0 ? asked->inverse_bytes : k.inverse_bytes;
    k.approvals = asked->approvals != 0 ? asked->approvals : k.approvals;
    k.works = asked->works != 0 ? asked->works : k.works;
    return k;
}

static int run_script(struct ledger *l, const char *sql, const char *doing, struct err *e)
{
    if (sqlite3_exec(l->db, sql, NULL, NULL, NULL) != SQLITE_OK)
        return ledger_sql_error(l, doing, e);
    return 0;
}

/* The first column of a one-row pragma. Text: the caller frees. */
static int ask(struct ledger *l, const char *sql, char **ret, struct err *e)
{
    sqlite3_stmt *stmt = NULL;
    int r = sqlite3_prepare_v2(l->db, sql, -1, &stmt, NULL);
    if (r == SQLITE_OK)
        r = sqlite3_step(stmt);
    if (r == SQLITE_ROW)
        *ret = ledger_column_dup(stmt, 0);
    else
        ledger_sql_error(l, "read", e);
    sqlite3_finalize(stmt);
    return r == SQLITE_ROW ? 0 : -1;
}

static int ask_number(struct ledger *l, const char *sql, long long *ret, struct err *e)
{
    autofree char *text = NULL;
    if (ask(l, sql, &text, e) < 0)
        return -1;
    *ret = text == NULL ? 0 : strtoll(text, NULL, 10);
    return 0;
}

/* Whose database is it? Only an empty file or one with our mark is touched. */
static int identify(struct ledger *l, long long *ret_version, struct err *e)
{
    long long mark = 0;
    long long tables = 0;
    if (ask_number(l, "PRAGMA application_id", &mark, e) < 0 ||
        ask_number(l, "PRAGMA user_version", ret_version, e) < 0 ||
        ask_number(l, "SELECT count(*) FROM sqlite_schema", &tables, e) < 0)
        return -1;
    if (mark == 0 && *ret_version == 0 && tables == 0)
        return 0;
    if (mark != LEDGER_APPLICATION_ID)
        return err_set(e, ERR_LEDGER_FAILED,
                       "%s is an SQLite database of another program; choose another path for the "
                       "ledger",
                       l->path);
    if (*ret_version > ledger_schema_version())
        return err_set(e, ERR_LEDGER_FAILED,
                       "the ledger %s was written by a newer version (schema %lld, this program "
                       "knows %d); use the newer program or another path",
                       l->path, *ret_version, ledger_schema_version());
    return 0;
}

static int run_step(struct ledger *l, int version, struct err *e)
{
    char mark[96];
    snprintf(mark, sizeof(mark), "PRAGMA application_id=%d;PRAGMA user_version=%d",
             LEDGER_APPLICATION_ID, version);
    if (run_script(l, "BEGIN IMMEDIATE", "migrate", e) < 0)
        return -1;
    if (run_script(l, ledger_schema_step(version), "migrate", e) == 0 &&
        run_script(l, mark, "migrate", e) == 0 && run_script(l, "COMMIT", "migrate", e) == 0)
        return 0;
    if (sqlite3_get_autocommit(l->db) == 0)
        sqlite3_exec(l->db, "ROLLBACK", NULL, NULL, NULL);
    return err_wrap(e, "bringing the ledger to schema %d", version);
}

static int migrate(struct ledger *l, struct err *e)
{
    long long version = 0;
    if (identify(l, &version, e) < 0)
        return -1;
    if (l->role == LEDGER_OPERATOR && version < ledger_schema_version())
        return err_set(e, ERR_LEDGER_FAILED,
                       "the ledger %s has schema %lld and this program needs %d; start the gateway "
                       "once, it migrates",
                       l->path, version, ledger_schema_version());
    if (version == ledger_schema_version())
        return 0;
    /* A step may make a table anew, and its children must stay; in a transaction it is too late. */
    sqlite3_db_config(l->db, SQLITE_DBCONFIG_ENABLE_FKEY, 0, NULL);
    int r = 0;
    for (int v = (int)version + 1; r == 0 && v <= ledger_schema_version(); v++)
        r = run_step(l, v, e);
    sqlite3_db_config(l->db, SQLITE_DBCONFIG_ENABLE_FKEY, 1, NULL);
    return r;
}

static int check_damage(struct ledger *l, struct err *e)
{
    long long pages = 0;
    autofree char *verdict = NULL;
    if (ask_number(l, "PRAGMA page_count", &pages, e) < 0)
        return -1;
    if (pages > (l->was_open ? LEDGER_CHECK_PAGES_AFTER_CRASH : LEDGER_CHECK_PAGES))
        return 0;
    if (ask(l, "PRAGMA quick_check(1)", &verdict, e) < 0)
        return -1;
    if (verdict != NULL && strcmp(verdict, "ok") == 0)
        return 0;
    return err_set(e, ERR_LEDGER_FAILED,
                   "the ledger %s is damaged (%s): move it and its -wal file away (a new one is "
                   "made) or put back a copy; `sqlite3 FILE .recover` saves what can be read",
                   l->path, verdict == NULL ? "no verdict" : verdict);
}

/* auto_vacuum can only be chosen while the file is empty, so it comes first. */
static int set_up(struct ledger *l, struct err *e)
{
    sqlite3_busy_timeout(l->db, LEDGER_BUSY_MS);
    sqlite3_limit(l->db, SQLITE_LIMIT_LENGTH, (int)LEDGER_VALUE_MAX);
    sqlite3_db_config(l->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(l->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_db_config(l->db, SQLITE_DBCONFIG_ENABLE_FKEY, 1, NULL);
    char sql[256];
    snprintf(sql, sizeof(sql),
             "PRAGMA auto_vacuum=INCREMENTAL;PRAGMA secure_delete=ON;PRAGMA temp_store=MEMORY;"
             "PRAGMA cell_size_check=ON;PRAGMA journal_size_limit=%u;PRAGMA synchronous=FULL",
             LEDGER_WAL_KEEP_BYTES);
    l->sync = LEDGER_DURABLE;
    return run_script(l, sql, "set up the connection", e);
}

static int set_wal(struct ledger *l, struct err *e)
{
    autofree char *mode = NULL;
    if (l->path == NULL)
        return 0;
    if (ask(l, "PRAGMA journal_mode=WAL", &mode, e) < 0)
        return -1;
    if (mode != NULL && strcmp(mode, "wal") == 0)
        return 0;
    return err_set(e, ERR_LEDGER_FAILED,
                   "the file system of %s cannot keep a write-ahead log (SQLite chose \"%s\"); use "
                   "a local file system",
                   l->path, mode == NULL ? "" : mode);
}

static int open_file(struct ledger *l, const char *path, struct err *e)
{
    bool gateway = l->role == LEDGER_GATEWAY;
    if (ledger_file_resolve(path, gateway, &l->path, e) < 0)
        return -1;
    if (gateway && (l->lock_fd = ledger_file_lock(l->path, e)) < 0)
        return -1;
    if (ledger_file_check(l->path, gateway, e) < 0)
        return -1;
    l->was_open = ledger_file_was_open(l->path);
    return 0;
}

static int connect_and_migrate(struct ledger *l, struct err *e)
{
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
    flags |= l->path == NULL ? SQLITE_OPEN_MEMORY | SQLITE_OPEN_CREATE : SQLITE_OPEN_NOFOLLOW;
    const char *name = l->path == NULL ? ":memory:" : l->path;
    if (sqlite3_open_v2(name, &l->db, flags, NULL) != SQLITE_OK)
        return ledger_sql_error(l, "open the database", e);
    long long version = 0;
    if (set_up(l, e) < 0 || identify(l, &version, e) < 0 || set_wal(l, e) < 0)
        return -1;
    if (version > 0 && l->role == LEDGER_GATEWAY && check_damage(l, e) < 0)
        return -1;
    return migrate(l, e);
}

int ledger_connect(struct ledger *l, struct err *e)
{
    if (connect_and_migrate(l, e) == 0)
        return 0;
    sqlite3_close(steal(l->db));
    return -1;
}

/* What a file that others wrote holds, and whether it is too much. */
static int take_stock(struct ledger *l, struct err *e)
{
    int pruned = 1;
    if (works_count_open(l, e) < 0)
        return -1;
    while (l->role == LEDGER_GATEWAY && pruned > 0) {
        pruned = ledger_prune(l, e);
        if (pruned < 0)
            return -1;
    }
    return 0;
}

int ledger_open(const struct ledger_options *options, struct ledger **ret, struct err *e)
{
    autoledger *l = mem_new(struct ledger);
    ensure(pthread_mutex_init(&l->mutex, NULL) == 0);
    l->lock_fd = -1;
    l->role = options->role;
    l->keep = keep_of(&options->keep);
    l->clock_ms = options->clock_ms;
    bool in_memory = options->path == NULL || options->path[0] == '\0';
    if (in_memory && l->role == LEDGER_OPERATOR)
        return err_set(e, ERR_LEDGER_FAILED,
                       "no ledger was named; one in memory belongs to its gateway alone");
    if (!in_memory && open_file(l, options->path, e) < 0)
        return -1;
    if (!in_memory && (ledger_connect(l, e) < 0 || take_stock(l, e) < 0))
        return -1;
    *ret = steal(l);
    return 0;
}

void ledger_free(struct ledger *l)
{
    if (l == NULL)
        return;
    for (size_t i = 0; i < l->n_statements; i++)
        sqlite3_finalize(l->statements[i].stmt);
    if (sqlite3_close(l->db) != SQLITE_OK)
        log_warn("ledger: close: %s", sqlite3_errmsg(l->db));
    mem_cleanup_fd(&l->lock_fd);
    pthread_mutex_destroy(&l->mutex);
    free(l->path);
    free(l);
}

void ledger_cleanup(struct ledger **l)
{
    ledger_free(*l);
}

bool ledger_in_memory(const struct ledger *l)
{
    return l->path == NULL;
}

const char *ledger_path(const struct ledger *l)
{
    return l->path;
}

uint64_t ledger_now_ms(const struct ledger *l)
{
    if (l->clock_ms != NULL)
        return *l->clock_ms;
    struct timespec now = {0};
    ensure(clock_gettime(CLOCK_REALTIME, &now) == 0);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Pages that retention freed go back to the file system a few at a time. Not being able to is no
 * failure of anything: the pages are reused. */
static void give_back_pages(struct ledger *l)
{
    ensure(pthread_mutex_lock(&l->mutex) == 0);
    if (sqlite3_exec(l->db, "PRAGMA incremental_vacuum(" LEDGER_VACUUM_PAGES ")", NULL, NULL,
                     NULL) != SQLITE_OK)
        log_warn("ledger: vacuum: %s", sqlite3_errmsg(l->db));
    ensure(pthread_mutex_unlock(&l->mutex) == 0);
}

void ledger_fold_log(struct ledger *l)
{
    if (l->path == NULL)
        return;
    ensure(pthread_mutex_lock(&l->mutex) == 0);
    /* A reader elsewhere must not hold up the gateway; the next checkpoint does it then. */
    sqlite3_busy_timeout(l->db, 0);
    if (sqlite3_wal_checkpoint_v2(l->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL) != SQLITE_OK)
        log_info("ledger: the log is folded later: %s", sqlite3_errmsg(l->db));
    sqlite3_busy_timeout(l->db, LEDGER_BUSY_MS);
    ensure(pthread_mutex_unlock(&l->mutex) == 0);
}

int ledger_prune(struct ledger *l, struct err *e)
{
    static int (*const parts[])(struct ledger *, struct err *) = {
        opstore_prune,
        approvals_prune,
        works_prune,
    };
    autotxn txn = {0};
    if (ledger_begin(l, LEDGER_LAZY, &txn, e) < 0)
        return -1;
    int total = 0;
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        int n = parts[i](l, e);
        if (n < 0)
            return -1;
        total += n;
    }
    l->since_prune = 0;
    if (ledger_commit(&txn, e) < 0)
        return -1;
    if (total > 0)
        give_back_pages(l);
    return total;
}

void ledger_hash(const struct ledger_part *parts, size_t n, char ret[LEDGER_HASH_LEN])
{
    char version[FILES_VERSION_LEN];
    struct version_hash h;
    version_begin(&h);
    for (size_t i = 0; i < n; i++) {
        uint64_t head = parts[i].data == NULL ? UINT64_MAX : parts[i].len;
        unsigned char bytes[8];
        for (int b = 0; b < 8; b++)
            bytes[b] = (unsigned char)(head >> (8 * b));
        version_add(&h, bytes, sizeof(bytes));
        if (parts[i].data != NULL)
            version_add(&h, parts[i].data, parts[i].len);
    }
    version_end(&h, version);
    memcpy(ret, strchr(version, ':') + 1, LEDGER_HASH_LEN);
}
