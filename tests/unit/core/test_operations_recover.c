/* core/operations_recover: reverts, settling after a crash, retention. */
#include "operations_fixture.h"

#include "core/approvals.h"

static bool exists(struct fixture *f, const char *id)
{
    struct err e = {0};
    autorecord r = {0};
    int got = opstore_get(f->l, id, &r, &e);
    assert_true(got == 0 || e.code == ERR_OPERATION_NOT_FOUND);
    return got == 0;
}

static int try_revert(struct fixture *f, const char *workspace, const char *of, char **ret_id,
                      struct err *e)
{
    struct op_request q = {
        .kind = OP_REVERT, .workspace_id = workspace, .fingerprint = "f", .reverts = of};
    autorecord r = {0};
    int got = opstore_begin(f->l, &q, LEDGER_LAZY, &r, e);
    if (got == 0)
        *ret_id = mem_strdup(r.operation_id);
    return got;
}

static void expect_no_revert(struct fixture *f, const char *workspace, const char *of,
                             enum err_code code)
{
    struct err e = {0};
    char *id = NULL;
    assert_int_equal(try_revert(f, workspace, of, &id, &e), -1);
    assert_int_equal(e.code, code);
}

static void test_what_can_be_reverted(void **state)
{
    struct fixture *f = *state;
    struct err e = {0};
    autofree char *a = applied(f, "a", "1", "2");
    struct op_request q = patch_request("w", NULL, "f");
    autofree char *unfinished = begin(f, &q);
    autofree char *checked = begin(f, &q);
    finish(f, checked, OP_CHECKED);
    struct op_request c = {
        .kind = OP_COMMAND, .workspace_id = "w", .fingerprint = "f", .argv_sha256 = HASH_A};
    autofree char *command = begin(f, &c);
    expect_no_revert(f, "w", unfinished, ERR_OPERATION_NOT_REVERTIBLE);
    expect_no_revert(f, "w", checked, ERR_OPERATION_NOT_REVERTIBLE);
    expect_no_revert(f, "w", command, ERR_OPERATION_NOT_REVERTIBLE);
    expect_no_revert(f, "w", "op-none", ERR_OPERATION_NOT_FOUND);
    expect_no_revert(f, "w2", a, ERR_OPERATION_NOT_FOUND);
    /* One at a time; a failed one does not count; a reverted one is reverted. */
    autofree char *first = NULL;
    assert_int_equal(try_revert(f, "w", a, &first, &e), 0);
    expect_no_revert(f, "w", a, ERR_OPERATION_NOT_REVERTIBLE);
    finish(f, first, OP_FAILED_ROLLED_BACK);
    autofree char *second = NULL;
    assert_int_equal(try_revert(f, "w", a, &second, &e), 0);
    plan(f, second, "a", "2", "1");
    finish(f, second, OP_APPLIED);
    expect_no_revert(f, "w", a, ERR_OPERATION_NOT_REVERTIBLE);
    /* And a revert can be reverted. */
    autofree char *third = NULL;
    assert_int_equal(try_revert(f, "w", second, &third, &e), 0);
    autorecord r = {0};
    assert_int_equal(opstore_get(f->l, third, &r, &e), 0);
    assert_int_equal(r.kind, OP_REVERT);
    assert_string_equal(r.reverts, second);
}

static void test_who_touched_the_files_since(void **state)
{
    struct fixture *f = *state;
    struct err e = {0};
    free(applied(f, "a", "0", "1"));
    autofree char *mine = applied(f, "a", "1", "2");
    free(applied(f, "b", "1", "2"));
    autofree char *after = applied(f, "a", "2", "3");
    struct op_request q = patch_request("w", NULL, "f");
    autofree char *rolled_back = begin(f, &q);
    plan(f, rolled_back, "a", "3", "4");
    finish(f, rolled_back, OP_FAILED_ROLLED_BACK);
    struct op_touch *touches = NULL;
    size_t n = 0;
    assert_int_equal(opstore_touched_since(f->l, mine, &touches, &n, &e), 0);
    assert_int_equal(n, 1);
    assert_string_equal(touches[0].operation_id, after);
    assert_string_equal(touches[0].path, "a");
    assert_int_equal(touches[0].status, OP_APPLIED);
    op_touches_free(touches, n);
    assert_int_equal(opstore_touched_since(f->l, "op-none", &touches, &n, &e), -1);
    assert_int_equal(e.code, ERR_OPERATION_NOT_FOUND);
}

struct disk {
    const char *a, *b; /* versions now; NULL = cannot be told */
};

static int observe(void *user, const char *workspace_id, const char *path,
                   char ret_version[FILES_VERSION_LEN])
{
    const struct disk *d = user;
    const char *version = *path == 'a' ? d->a : d->b;
    assert_string_equal(workspace_id, "w");
    if (version == NULL)
        return -1;
    snprintf(ret_version, FILES_VERSION_LEN, "%s", version);
    return 0;
}

static void test_recovery_believes_the_disk(void **state)
{
    struct fixture *f = *state;
    const struct {
        struct disk disk;
        enum op_status want;
    } rows[] = {
        {{"a2", "b2"}, OP_APPLIED}, {{"a1", ""}, OP_FAILED_ROLLED_BACK}, {{"a2", ""}, OP_UNKNOWN},
        {{"a1", "b2"}, OP_UNKNOWN}, {{"zz", "b2"}, OP_UNKNOWN},          {{"a2", NULL}, OP_UNKNOWN},
    };
    struct patch_change c[] = {change("a", PATCH_UPDATE, "a1", "a2"),
                               change("b", PATCH_ADD, "", "b2")};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct err e = {0};
        struct op_request q = patch_request("w", NULL, "f");
        autofree char *id = begin(f, &q);
        assert_int_equal(opstore_plan(f->l, id, c, 2, NULL, 0, LEDGER_DURABLE, &e), 0);
        fixture_reopen(f);
        struct op_recovery counts = {0};
        struct disk disk = rows[i].disk;
        assert_int_equal(opstore_recover(f->l, observe, &disk, &counts, &e), 0);
        assert_int_equal(counts.applied, rows[i].want == OP_APPLIED);
        assert_int_equal(counts.rolled_back, rows[i].want == OP_FAILED_ROLLED_BACK);
        assert_int_equal(counts.left, rows[i].want == OP_UNKNOWN);
        autorecord r = {0};
        assert_int_equal(opstore_get(f->l, id, &r, &e), 0);
        assert_int_equal(r.status, rows[i].want);
        assert_int_equal(r.finished_ms != 0, rows[i].want != OP_UNKNOWN);
        if (rows[i].want == OP_UNKNOWN)
            finish(f, id, OP_FAILED_PARTIAL);
        else {
            assert_true(r.recovered);
            assert_string_equal(r.events[2].name, "recovered");
        }
    }
}

static void test_what_was_not_planned_stays_unknown(void **state)
{
    struct fixture *f = *state;
    struct err e = {0};
    struct op_request q = patch_request("w", "k", "f");
    free(begin(f, &q));
    struct disk disk = {"a1", "b1"};
    struct op_recovery counts = {0};
    assert_int_equal(opstore_recover(f->l, observe, &disk, &counts, &e), 0);
    assert_int_equal(counts.left, 1);
    autorecord r = {0};
    assert_int_equal(opstore_begin(f->l, &q, LEDGER_LAZY, &r, &e), 1);
    assert_int_equal(r.status, OP_UNKNOWN);
    assert_int_equal(r.finished_ms, 0);
    assert_int_equal(r.n_events, 1);
}

static void test_retention_by_age(void **state)
{
    struct fixture *f = *state;
    f->keep.age_ms = 1000;
    fixture_reopen(f);
    struct op_request q = patch_request("w", "k", "f");
    autofree char *open = begin(f, &q);
    autofree char *old = applied(f, "a", "1", "2");
    f->clock_ms += 1001;
    autofree char *young = applied(f, "a", "2", "3");
    fixture_reopen(f);
    assert_true(exists(f, open));
    assert_false(exists(f, old));
    assert_true(exists(f, young));
    assert_int_equal(fixture_number(f, "SELECT count(*) FROM operation_changes"), 1);
    assert_int_equal(fixture_number(f, "SELECT count(*) FROM operation_inverses"), 1);
    finish(f, open, OP_REJECTED);
    f->clock_ms += 1001;
    fixture_reopen(f);
    assert_false(exists(f, open));
    /* The newest stays whatever its age, so that its number does not come back. */
    assert_true(exists(f, young));
    /* With its row a key is forgotten. */
    autofree char *again = begin(f, &q);
    assert_string_not_equal(again, open);
    assert_int_equal(fixture_number(f, "SELECT max(seq) FROM operations"), 4);
}

static void test_retention_by_count(void **state)
{
    struct fixture *f = *state;
    f->keep.operations = 3;
    fixture_reopen(f);
    struct op_request q = patch_request("w", NULL, "f");
    autofree char *open = begin(f, &q);
    autofree char *first = applied(f, "a", "1", "2");
    for (int i = 0; i < 3; i++)
        free(applied(f, "b", "1", "2"));
    assert_true(exists(f, first));
    struct err e = {0};
    assert_int_equal(ledger_prune(f->l, &e), 1);
    assert_true(exists(f, open));
    assert_false(exists(f, first));
    assert_int_equal(fixture_number(f, "SELECT count(*) FROM operations"), 4);
}

static void test_retention_runs_by_itself(void **state)
{
    struct fixture *f = *state;
    f->keep.operations = 10;
    fixture_reopen(f);
    for (unsigned i = 0; i < LEDGER_PRUNE_EVERY; i++)
        free(applied(f, "a", "1", "2"));
    assert_true(fixture_number(f, "SELECT count(*) FROM operations") <= 12);
}

static void test_retention_of_inverses_by_size(void **state)
{
    struct fixture *f = *state;
    f->keep.inverse_bytes = 10;
    fixture_reopen(f);
    struct op_request q = patch_request("w", NULL, "f");
    autofree char *open = begin(f, &q);
    plan(f, open, "z", "1", "2");
    autofree char *a = applied(f, "a", "1", "2");
    autofree char *b = applied(f, "b", "1", "2");
    autofree char *c = applied(f, "c", "1", "2");
    fixture_reopen(f);
    autobuf inverse = BUF_INIT;
    struct err e = {0};
    assert_int_equal(opstore_inverse(f->l, c, &inverse, &e), 0);
    assert_int_equal(opstore_inverse(f->l, b, &inverse, &e), 0);
    assert_int_equal(opstore_inverse(f->l, a, &inverse, &e), -1);
    assert_int_equal(e.code, ERR_OPERATION_NOT_REVERTIBLE);
    autorecord r = {0};
    assert_int_equal(opstore_get(f->l, open, &r, &e), 0);
    assert_int_equal(r.inverse_size, 4);
}

static void test_retention_keeps_what_is_held_or_being_undone(void **state)
{
    struct fixture *f = *state;
    struct err e = {0};
    f->keep.age_ms = 1000;
    fixture_reopen(f);
    struct approval_request hold = {.workspace_id = "w", .fingerprint = "h", .arguments = "{}"};
    autoapproval a = {0};
    assert_int_equal(approvals_create(f->l, &hold, &a, &e), 0);
    struct op_request q = patch_request("w", NULL, "f");
    q.approval_id = a.approval_id;
    autofree char *held = begin(f, &q);
    finish(f, held, OP_APPLIED);
    autofree char *undone = applied(f, "a", "1", "2");
    autofree char *revert = NULL;
    assert_int_equal(try_revert(f, "w", undone, &revert, &e), 0);
    f->clock_ms += 5000;
    fixture_reopen(f);
    assert_true(exists(f, held));
    assert_true(exists(f, undone));
    assert_true(exists(f, revert));
    assert_int_equal(approvals_deny(f->l, a.approval_id, APPROVAL_BY_COMMAND_LINE, &e), 0);
    finish(f, revert, OP_REJECTED);
    f->clock_ms += 5000;
    fixture_reopen(f);
    assert_false(exists(f, held));
    assert_false(exists(f, undone));
}

UNIT_MAIN(TEST(test_what_can_be_reverted), TEST(test_who_touched_the_files_since),
          TEST(test_recovery_believes_the_disk), TEST(test_what_was_not_planned_stays_unknown),
          TEST(test_retention_by_age), TEST(test_retention_by_count),
          TEST(test_retention_runs_by_itself), TEST(test_retention_of_inverses_by_size),
          TEST(test_retention_keeps_what_is_held_or_being_undone))
