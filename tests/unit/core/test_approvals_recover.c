/* core/approvals_recover: restarts in every state, failed records, retention. */
#include "approvals_fixture.h"

#include "base/jsonw.h"

#include <sys/wait.h>

static void test_a_result_that_cannot_be_written_is_ambiguous(void **state)
{
    struct fixture *f = *state;
    struct err e = {0};
    autofree char *id = hold(f, &patch_hold, 0);
    grant(f, id);
    start(f, id);
    fixture_sql(f, "PRAGMA query_only=ON");
    assert_int_equal(approvals_finish(f->l, id, "{}", false, &e), -1);
    assert_int_equal(e.code, ERR_APPROVAL_AMBIGUOUS);
    assert_non_null(strstr(e.message, "could not be recorded"));
    fixture_sql(f, "PRAGMA query_only=OFF");
    assert_int_equal(state_of(f, id), APPROVAL_RESUMING);
    assert_int_equal(approvals_finish(f->l, id, "{}", false, &e), 0);
}

static void render(void *user, const struct op_record *record, struct buf *ret)
{
    ++*(int *)user;
    struct jsonw w;
    jsonw_init(&w, ret);
    jsonw_object(&w);
    jsonw_kstr(&w, "operation_id", record->operation_id);
    jsonw_kstr(&w, "status", op_status_name(record->status));
    jsonw_object_end(&w);
}

static struct approval_recovery recover(struct fixture *f)
{
    struct err e = {0};
    struct approval_recovery counts = {0};
    int rendered = 0;
    fixture_reopen(f);
    assert_int_equal(approvals_recover(f->l, render, &rendered, &counts, &e), 0);
    assert_int_equal(rendered, counts.recovered);
    return counts;
}

static void test_a_restart_keeps_what_was_decided(void **state)
{
    struct fixture *f = *state;
    struct approval_request q = patch_hold;
    autofree char *pending = hold(f, &q, 0);
    q.fingerprint = "2";
    autofree char *granted = hold(f, &q, 0);
    grant(f, granted);
    q.fingerprint = "3";
    autofree char *queued = hold(f, &q, 0);
    grant(f, queued);
    claim(f, queued);
    struct approval_recovery counts = recover(f);
    assert_int_equal(counts.requeued, 1);
    assert_int_equal(counts.recovered + counts.ambiguous, 0);
    assert_int_equal(state_of(f, pending), APPROVAL_PENDING);
    assert_int_equal(state_of(f, granted), APPROVAL_GRANTED);
    assert_int_equal(state_of(f, queued), APPROVAL_GRANTED);
    autofree char *same = hold(f, &patch_hold, 1);
    assert_string_equal(same, pending);
}

static void test_a_patch_that_had_not_begun_runs_after_a_restart(void **state)
{
    struct fixture *f = *state;
    struct err e = {0};
    autofree char *id = hold(f, &patch_hold, 0);
    grant(f, id);
    start(f, id);
    assert_int_equal(recover(f).requeued, 1);
    autoapproval a = {0};
    assert_int_equal(approvals_claim(f->l, id, &a, &e), 0);
    assert_string_equal(a.arguments, ARGUMENTS);
}

static void test_a_patch_that_ran_is_taken_from_the_ledger(void **state)
{
    struct fixture *f = *state;
    struct err e = {0};
    autofree char *id = hold(f, &patch_hold, 0);
    grant(f, id);
    start(f, id);
    struct op_request q = {
        .kind = OP_PATCH, .workspace_id = "w", .fingerprint = "print", .approval_id = id};
    autorecord op = {0};
    assert_int_equal(opstore_begin(f->l, &q, LEDGER_DURABLE, &op, &e), 0);
    struct op_outcome done = {.status = OP_APPLIED};
    assert_int_equal(opstore_finish(f->l, op.operation_id, &done, LEDGER_LAZY, &e), 0);
    assert_int_equal(recover(f).recovered, 1);
    autoapproval a = {0};
    assert_int_equal(approvals_claim(f->l, id, &a, &e), 1);
    assert_non_null(strstr(a.result, op.operation_id));
    assert_non_null(strstr(a.result, "applied"));
    assert_false(a.result_is_error);
    assert_int_equal(recover(f).recovered, 0);
    autorecord found = {0};
    assert_int_equal(opstore_find_by_approval(f->l, id, &found, &e), 1);
    assert_string_equal(found.operation_id, op.operation_id);
}

/* L18: never run again, and the record of the command is named. */
static void test_a_command_that_was_resuming_is_ambiguous(void **state)
{
    struct fixture *f = *state;
    struct err e = {0};
    autofree char *bare = hold(f, &exec_hold, 0);
    grant(f, bare);
    start(f, bare);
    struct approval_request q = exec_hold;
    q.fingerprint = "exec-2";
    autofree char *recorded = hold(f, &q, 0);
    grant(f, recorded);
    start(f, recorded);
    struct op_request r = {.kind = OP_COMMAND,
                           .workspace_id = "w",
                           .fingerprint = "x",
                           .argv_sha256 = "h",
                           .approval_id = recorded};
    autorecord op = {0};
    assert_int_equal(opstore_begin(f->l, &r, LEDGER_LAZY, &op, &e), 0);
    assert_int_equal(recover(f).ambiguous, 2);
    autoapproval a = {0};
    assert_int_equal(approvals_claim(f->l, bare, &a, &e), 1);
    assert_true(a.result_is_error);
    assert_non_null(strstr(a.result, "\"code\":\"APPROVAL_AMBIGUOUS\""));
    autoapproval b = {0};
    assert_int_equal(approvals_claim(f->l, recorded, &b, &e), 1);
    assert_non_null(strstr(b.result, op.operation_id));
}

static void test_a_queued_command_did_not_run(void **state)
{
    struct fixture *f = *state;
    autofree char *id = hold(f, &exec_hold, 0);
    grant(f, id);
    claim(f, id);
    assert_int_equal(recover(f).requeued, 1);
    assert_int_equal(state_of(f, id), APPROVAL_GRANTED);
}

static void test_retention_never_takes_an_active_hold(void **state)
{
    struct fixture *f = *state;
    struct err e = {0};
    f->keep.age_ms = 1000;
    f->keep.approvals = 2;
    fixture_reopen(f);
    autofree char *active = hold(f, &patch_hold, 0);
    autofree char *granted = hold(f, &exec_hold, 0);
    grant(f, granted);
    char print[16];
    struct approval_request q = patch_hold;
    q.fingerprint = print;
    for (int i = 0; i < 4; i++) {
        snprintf(print, sizeof(print), "%d", i);
        autofree char *id = hold(f, &q, 0);
        assert_int_equal(approvals_deny(f->l, id, APPROVAL_BY_COMMAND_LINE, &e), 0);
    }
    fixture_reopen(f);
    assert_int_equal(fixture_number(f, "SELECT count(*) FROM approvals"), 4);
    f->clock_ms += 5000;
    fixture_reopen(f);
    assert_int_equal(fixture_number(f, "SELECT count(*) FROM approvals"), 2);
    assert_int_equal(state_of(f, active), APPROVAL_PENDING);
    assert_int_equal(state_of(f, granted), APPROVAL_GRANTED);
}

/* The command line answers beside a running gateway; it is another process with its own key to the
 * file: the file's owner. */
static void test_the_command_line_grants_beside_the_gateway(void **state)
{
    struct fixture *f = *state;
    struct err e = {0};
    autofree char *id = hold(f, &patch_hold, 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct ledger_options o = {.path = f->path, .role = LEDGER_OPERATOR};
        struct ledger *l = NULL;
        bool done = ledger_open(&o, &l, &e) == 0 &&
                    approvals_grant(l, id, APPROVAL_BY_COMMAND_LINE, false, &e) == 0;
        ledger_free(l);
        _exit(done ? 0 : 1);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    claim(f, id);
}

UNIT_MAIN(TEST(test_the_command_line_grants_beside_the_gateway),
          TEST(test_a_result_that_cannot_be_written_is_ambiguous),
          TEST(test_a_restart_keeps_what_was_decided),
          TEST(test_a_patch_that_had_not_begun_runs_after_a_restart),
          TEST(test_a_patch_that_ran_is_taken_from_the_ledger),
          TEST(test_a_command_that_was_resuming_is_ambiguous),
          TEST(test_a_queued_command_did_not_run), TEST(test_retention_never_takes_an_active_hold))
