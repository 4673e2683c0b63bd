/* What the ledger's tests share: a directory of their own, a clock that they turn, and a ledger in
 * it. cmocka's *state is a struct fixture.
 */
#ifndef CODESPACE_TESTS_LEDGER_FIXTURE_H
#define CODESPACE_TESTS_LEDGER_FIXTURE_H

#include "../../helpers/unit.h"
#include "base/mem.h"
#include "core/ledger.h"
#include "core/ledger_sql.h"
#include "core/operations_store.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

struct fixture {
    char dir[64];
    char path[96];
    uint64_t clock_ms;
    struct ledger_keep keep;
    struct ledger *l;
};

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

static inline struct ledger_options fixture_options(struct fixture *f)
{
    return (struct ledger_options){.path = f->path, .keep = f->keep, .clock_ms = &f->clock_ms};
}

static inline void fixture_open(struct fixture *f)
{
    struct ledger_options o = fixture_options(f);
    struct err e = {0};
    if (ledger_open(&o, &f->l, &e) < 0)
        fail_msg("%s", e.message);
}

static inline void fixture_close(struct fixture *f)
{
    ledger_free(steal(f->l));
}

static inline void fixture_reopen(struct fixture *f)
{
    fixture_close(f);
    fixture_open(f);
}

/* A directory and no ledger yet. */
static inline int fixture_dir(void **state)
{
    struct fixture *f = mem_new(struct fixture);
    snprintf(f->dir, sizeof(f->dir), "/tmp/codespace-ledger-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    snprintf(f->path, sizeof(f->path), "%s/ops.db", f->dir);
    f->clock_ms = 1700000000000;
    *state = f;
    return 0;
}

static inline int fixture_up(void **state)
{
    fixture_dir(state);
    fixture_open(*state);
    return 0;
}

static inline int fixture_down(void **state)
{
    struct fixture *f = *state;
    fixture_close(f);
    nftw(f->dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    free(f);
    return 0;
}

/* One number out of the database. */
static inline int64_t fixture_number(struct fixture *f, const char *sql)
{
    sqlite3_stmt *s = NULL;
    assert_int_equal(sqlite3_prepare_v2(f->l->db, sql, -1, &s, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(s), SQLITE_ROW);
    int64_t n = sqlite3_column_int64(s, 0);
    sqlite3_finalize(s);
    return n;
}

static inline void fixture_sql(struct fixture *f, const char *sql)
{
    if (sqlite3_exec(f->l->db, sql, NULL, NULL, NULL) != SQLITE_OK)
        fail_msg("%s: %s", sql, sqlite3_errmsg(f->l->db));
}

/* Does any file of the directory hold these bytes? */
static inline bool fixture_grep(struct fixture *f, const char *needle)
{
    static const char *const names[] = {"", "-wal", "-journal"};
    bool found = false;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        char path[128];
        snprintf(path, sizeof(path), "%s%s", f->path, names[i]);
        FILE *file = fopen(path, "re");
        if (file == NULL)
            continue;
        char *text = mem_zalloc(1, 8u << 20);
        size_t n = fread(text, 1, 8u << 20, file);
        found = found || memmem(text, n, needle, strlen(needle)) != NULL;
        free(text);
        fclose(file);
    }
    return found;
}

static inline void fixture_put_file(const char *path, const void *bytes, size_t n)
{
    autofd int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, n), (ssize_t)n);
}

static inline void fixture_expect_refusal(struct fixture *f, const char *path, const char *part)
{
    struct ledger_options o = {.path = path, .clock_ms = &f->clock_ms};
    struct ledger *l = NULL;
    struct err e = {0};
    assert_int_equal(ledger_open(&o, &l, &e), -1);
    assert_null(l);
    assert_int_equal(e.code, ERR_LEDGER_FAILED);
    if (strstr(e.message, part) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", e.message, part);
}

static inline void fixture_add_operations(struct fixture *f, int n)
{
    struct err e = {0};
    for (int i = 0; i < n; i++) {
        struct op_request q = {.kind = OP_PATCH, .workspace_id = "w", .fingerprint = "f"};
        autorecord r = {0};
        assert_int_equal(opstore_begin(f->l, &q, LEDGER_LAZY, &r, &e), 0);
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, fixture_up, fixture_down)
#define TEST_DIR(f) cmocka_unit_test_setup_teardown(f, fixture_dir, fixture_down)

#endif
