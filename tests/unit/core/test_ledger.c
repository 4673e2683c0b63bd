/* core/ledger: set-up, what is no ledger, migrations, durability, honest failures, threads. */
#include "ledger_fixture.h"

#include "core/ledger_schema.h"
#include "core/works.h"

#include <sys/wait.h>

static void test_in_memory_leaves_no_file(void **state)
{
    struct fixture *f = *state;
    static const char *const unset[] = {NULL, ""};
    for (size_t i = 0; i < ARRAY_LEN(unset); i++) {
        struct ledger_options o = {.path = unset[i]};
        autoledger *l = NULL;
        struct err e = {0};
        assert_int_equal(ledger_open(&o, &l, &e), 0);
        assert_true(ledger_in_memory(l));
        assert_null(ledger_path(l));
        assert_true(ledger_now_ms(l) > f->clock_ms);
    }
    struct ledger_options o = {.role = LEDGER_OPERATOR};
    struct ledger *l = NULL;
    struct err e = {0};
    assert_int_equal(ledger_open(&o, &l, &e), -1);
    assert_non_null(strstr(e.message, "in memory"));
}

static void test_connection_is_set_up(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *sql;
        int64_t want;
    } rows[] = {
        {"PRAGMA foreign_keys", 1},
        {"PRAGMA secure_delete", 1},
        {"PRAGMA auto_vacuum", 2},
        {"PRAGMA application_id", LEDGER_APPLICATION_ID},
        {"PRAGMA busy_timeout", LEDGER_BUSY_MS},
        {"SELECT count(*) FROM pragma_journal_mode WHERE journal_mode='wal'", 1},
        {"SELECT count(*) FROM pragma_table_list WHERE schema='main' AND type='table'"
         " AND name NOT LIKE 'sqlite_%' AND NOT strict",
         0},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_int_equal(fixture_number(f, rows[i].sql), rows[i].want);
    struct err e = {0};
    static const enum ledger_sync syncs[] = {LEDGER_LAZY, LEDGER_DURABLE, LEDGER_LAZY};
    for (size_t i = 0; i < ARRAY_LEN(syncs); i++) {
        autotxn txn = {0};
        assert_int_equal(ledger_begin(f->l, syncs[i], &txn, &e), 0);
        assert_int_equal(fixture_number(f, "PRAGMA synchronous"),
                         syncs[i] == LEDGER_DURABLE ? 2 : 1);
    }
}

static void test_what_is_no_ledger_is_refused(void **state)
{
    struct fixture *f = *state;
    char junk[8192];
    memset(junk, 'j', sizeof(junk));
    fixture_put_file(f->path, junk, sizeof(junk));
    fixture_expect_refusal(f, f->path, "not an SQLite database");
    assert_int_equal(unlink(f->path), 0);
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(f->path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "CREATE TABLE operations(x)", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    fixture_expect_refusal(f, f->path, "of another program");
    /* And it was not touched. */
    assert_int_equal(sqlite3_open(f->path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "SELECT x FROM operations", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

static void test_damage_is_told_with_what_to_do(void **state)
{
    struct fixture *f = *state;
    fixture_open(f);
    fixture_add_operations(f, 200);
    fixture_close(f);
    autofd int fd = open(f->path, O_RDWR | O_CLOEXEC);
    char junk[4096];
    memset(junk, 0x5a, sizeof(junk));
    struct stat st = {0};
    assert_int_equal(fstat(fd, &st), 0);
    for (off_t at = 3 * 4096; at < st.st_size; at += 4096)
        assert_int_equal(pwrite(fd, junk, sizeof(junk), at), (ssize_t)sizeof(junk));
    fixture_expect_refusal(f, f->path, "damaged");
    fixture_expect_refusal(f, f->path, "put back a copy");
}

static void test_a_newer_schema_is_refused(void **state)
{
    struct fixture *f = *state;
    fixture_open(f);
    fixture_sql(f, "PRAGMA user_version=999");
    fixture_close(f);
    fixture_expect_refusal(f, f->path, "newer version (schema 999");
}

static void test_the_operator_works_beside_the_gateway(void **state)
{
    struct fixture *f = *state;
    struct err e = {0};
    fixture_add_operations(f, 1);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct ledger_options o = {.path = f->path, .role = LEDGER_OPERATOR};
        struct ledger *l = NULL;
        struct op_request q = {.kind = OP_PATCH, .workspace_id = "o", .fingerprint = "f"};
        if (ledger_open(&o, &l, &e) < 0)
            _exit(1);
        for (int i = 0; i < 200; i++) {
            autorecord r = {0};
            if (opstore_begin(l, &q, LEDGER_LAZY, &r, &e) != 0)
                _exit(2);
        }
        ledger_free(l);
        _exit(0);
    }
    fixture_add_operations(f, 200);
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_true(WIFEXITED(status));
    assert_int_equal(fixture_number(f, "SELECT count(*) FROM operations"), 401);
}

static void test_the_operator_makes_and_migrates_nothing(void **state)
{
    struct fixture *f = *state;
    struct ledger_options o = {.path = f->path, .role = LEDGER_OPERATOR};
    struct ledger *l = NULL;
    struct err e = {0};
    assert_int_equal(ledger_open(&o, &l, &e), -1);
    assert_non_null(strstr(e.message, "there is no ledger"));
    assert_int_equal(access(f->path, F_OK), -1);
    fixture_put_file(f->path, "", 0);
    assert_int_equal(ledger_open(&o, &l, &e), -1);
    assert_non_null(strstr(e.message, "start the gateway once"));
}

/* The schema as text, without SQLite's own tables. */
static char *schema_of(const char *path)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *s = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db,
                                        "SELECT group_concat(sql, char(10)) FROM (SELECT sql FROM"
                                        " sqlite_schema WHERE sql IS NOT NULL ORDER BY name)",
                                        -1, &s, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_step(s), SQLITE_ROW);
    char *text = ledger_column_dup(s, 0);
    sqlite3_finalize(s);
    sqlite3_close(db);
    return text;
}

static void build_version(const char *path, int version)
{
    sqlite3 *db = NULL;
    char mark[96];
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    for (int v = 1; v <= version; v++)
        assert_int_equal(sqlite3_exec(db, ledger_schema_step(v), NULL, NULL, NULL), SQLITE_OK);
    snprintf(mark, sizeof(mark), "PRAGMA application_id=%d;PRAGMA user_version=%d",
             version == 0 ? 0 : LEDGER_APPLICATION_ID, version);
    assert_int_equal(sqlite3_exec(db, mark, NULL, NULL, NULL), SQLITE_OK);
    if (version >= 1)
        assert_int_equal(sqlite3_exec(db,
                                      "INSERT INTO operations(operation_id, workspace_id, kind,"
                                      " fingerprint, status, created_ms) VALUES('op-old', 'w',"
                                      " 'patch', 'f', 'unknown', 1);"
                                      "INSERT INTO operation_changes VALUES(1, 0, 'a', 'add', '',"
                                      " '', 0);"
                                      "INSERT INTO operation_inverses VALUES(1, 4, x'00')",
                                      NULL, NULL, NULL),
                         SQLITE_OK);
    sqlite3_close(db);
}

static void test_every_older_version_is_migrated(void **state)
{
    struct fixture *f = *state;
    fixture_open(f);
    fixture_close(f);
    autofree char *want = schema_of(f->path);
    for (int v = 0; v <= ledger_schema_version(); v++) {
        snprintf(f->path, sizeof(f->path), "%s/v%d.db", f->dir, v);
        build_version(f->path, v);
        fixture_open(f);
        assert_int_equal(fixture_number(f, "PRAGMA user_version"), ledger_schema_version());
        assert_int_equal(fixture_number(f, "SELECT count(*) FROM operations"), v >= 1);
        assert_int_equal(fixture_number(f, "SELECT count(*) FROM operation_changes"), v >= 1);
        assert_int_equal(fixture_number(f, "SELECT count(*) FROM operation_inverses"), v >= 1);
        assert_int_equal(fixture_number(f, "SELECT count(*) FROM pragma_foreign_key_check"), 0);
        assert_int_equal(fixture_number(f, "PRAGMA foreign_keys"), 1);
        fixture_add_operations(f, 1);
        fixture_close(f);
        autofree char *got = schema_of(f->path);
        assert_string_equal(got, want);
    }
}

static void test_a_failed_migration_changes_nothing(void **state)
{
    struct fixture *f = *state;
    build_version(f->path, 1);
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(f->path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "CREATE TABLE intents(x)", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    fixture_expect_refusal(f, f->path, "bringing the ledger to schema 3");
    assert_int_equal(sqlite3_open(f->path, &db), SQLITE_OK);
    sqlite3_stmt *s = NULL;
    assert_int_equal(sqlite3_prepare_v2(db, "PRAGMA user_version", -1, &s, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(s), SQLITE_ROW);
    assert_int_equal(sqlite3_column_int(s, 0), 2);
    sqlite3_finalize(s);
    assert_int_equal(sqlite3_exec(db, "SELECT * FROM works", NULL, NULL, NULL), SQLITE_ERROR);
    sqlite3_close(db);
}

/* L30: a failure of the database never reads as "not found". */
static void test_failures_keep_their_own_code(void **state)
{
    struct fixture *f = *state;
    struct err e = {0};
    autorecord r = {0};
    autowork w = {0};
    fixture_sql(f, "PRAGMA foreign_keys=OFF; DROP TABLE operations; DROP TABLE works");
    assert_int_equal(opstore_get(f->l, "op-x", &r, &e), -1);
    assert_int_equal(e.code, ERR_LEDGER_FAILED);
    assert_non_null(strstr(e.message, "no such table"));
    assert_int_equal(works_get(f->l, "work-x", &w, &e), -1);
    assert_int_equal(e.code, ERR_LEDGER_FAILED);
}

static void test_a_full_disk_is_told_and_survived(void **state)
{
    struct fixture *f = *state;
    struct err e = {0};
    char limit[64];
    int64_t pages = fixture_number(f, "PRAGMA page_count");
    snprintf(limit, sizeof(limit), "PRAGMA max_page_count=%lld", (long long)pages + 8);
    fixture_sql(f, limit);
    struct op_request q = {.kind = OP_PATCH, .workspace_id = "w", .fingerprint = "f"};
    int64_t done = 0;
    for (;; done++) {
        autorecord r = {0};
        if (opstore_begin(f->l, &q, LEDGER_DURABLE, &r, &e) < 0)
            break;
    }
    assert_int_equal(e.code, ERR_LEDGER_FAILED);
    assert_non_null(strstr(e.message, "make room"));
    assert_int_equal(fixture_number(f, "SELECT count(*) FROM operations"), done);
    fixture_sql(f, "PRAGMA max_page_count=1000000");
    fixture_add_operations(f, 1);
    assert_int_equal(fixture_number(f, "SELECT count(*) FROM operations"), done + 1);
}

static void test_an_early_return_rolls_back_and_lets_go(void **state)
{
    struct fixture *f = *state;
    struct err e = {0};
    for (int i = 0; i < 3; i++) {
        autotxn txn = {0};
        assert_int_equal(ledger_begin(f->l, LEDGER_DURABLE, &txn, &e), 0);
        assert_int_equal(ledger_run(f->l,
                                    "INSERT INTO works(work_id, workspace_id, state, created_ms)"
                                    " VALUES('x', 'w', 'active', 1)",
                                    L_NONE, &e),
                         1);
    }
    assert_int_equal(fixture_number(f, "SELECT count(*) FROM works"), 0);
    /* The database itself refuses words that are not ours. */
    autotxn txn = {0};
    assert_int_equal(ledger_begin(f->l, LEDGER_DURABLE, &txn, &e), 0);
    assert_int_equal(ledger_run(f->l,
                                "INSERT INTO works(work_id, workspace_id, state, created_ms)"
                                " VALUES('x', 'w', 'asleep', 1)",
                                L_NONE, &e),
                     -1);
    assert_int_equal(e.code, ERR_LEDGER_FAILED);
}

enum { THREADS = 4, EACH = 100 };

static void *add_many(void *user)
{
    struct fixture *f = user;
    for (int i = 0; i < EACH; i++) {
        struct op_request q = {.kind = OP_PATCH, .workspace_id = "w", .fingerprint = "f"};
        autorecord r = {0};
        autorecord again = {0};
        if (opstore_begin(f->l, &q, LEDGER_LAZY, &r, NULL) != 0 ||
            opstore_get(f->l, r.operation_id, &again, NULL) != 0)
            return f;
    }
    return NULL;
}

static void test_any_thread_may_call(void **state)
{
    struct fixture *f = *state;
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, add_many, f), 0);
    for (int i = 0; i < THREADS; i++) {
        void *failed = NULL;
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
    assert_int_equal(fixture_number(f, "SELECT count(*) FROM operations"), THREADS * EACH);
}

static void test_hash_tells_parts_apart(void **state)
{
    (void)state;
    static const struct ledger_part rows[][2] = {
        {{"ab", 2}, {"c", 1}},   {{"a", 1}, {"bc", 2}}, {{"abc", 3}, {"", 0}},
        {{"abc", 3}, {NULL, 0}}, {{"", 0}, {"abc", 3}},
    };
    char seen[ARRAY_LEN(rows)][LEDGER_HASH_LEN];
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        ledger_hash(rows[i], 2, seen[i]);
        assert_int_equal(strlen(seen[i]), 64);
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(seen[i], seen[j]);
    }
    /* SHA-256 of eight bytes of length 0: of an empty part alone. */
    char one[LEDGER_HASH_LEN];
    ledger_hash(&(struct ledger_part){"", 0}, 1, one);
    assert_string_equal(one, "af5570f5a1810b7af78caf4bc70a660f0df51e42baf91d4de5b2328de0e83dfc");
}

UNIT_MAIN(TEST_DIR(test_in_memory_leaves_no_file), TEST(test_connection_is_set_up),
          TEST_DIR(test_what_is_no_ledger_is_refused),
          TEST_DIR(test_damage_is_told_with_what_to_do), TEST_DIR(test_a_newer_schema_is_refused),
          TEST(test_the_operator_works_beside_the_gateway),
          TEST_DIR(test_the_operator_makes_and_migrates_nothing),
          TEST_DIR(test_every_older_version_is_migrated),
          TEST_DIR(test_a_failed_migration_changes_nothing),
          TEST(test_failures_keep_their_own_code), TEST(test_a_full_disk_is_told_and_survived),
          TEST(test_an_early_return_rolls_back_and_lets_go), TEST(test_any_thread_may_call),
          TEST_DIR(test_hash_tells_parts_apart))
