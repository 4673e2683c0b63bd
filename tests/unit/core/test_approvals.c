/* core/approvals: the state machine, who may grant, one run, scrubbed arguments, limits. */
#include "approvals_fixture.h"

#include <stdatomic.h>

/* The machine, spelled out once more: everything that is not here is refused. */
static void test_the_table(void **state)
{
    (void)state;
    static const struct {
        enum approval_state from;
        enum approval_event event;
        enum approval_state to;
    } rows[] = {
        {APPROVAL_PENDING, APPROVAL_GRANT, APPROVAL_GRANTED},
        {APPROVAL_PENDING, APPROVAL_DENY, APPROVAL_DENIED},
        {APPROVAL_GRANTED, APPROVAL_CLAIM, APPROVAL_QUEUED},
        {APPROVAL_QUEUED, APPROVAL_START, APPROVAL_RESUMING},
        {APPROVAL_QUEUED, APPROVAL_RELEASE, APPROVAL_GRANTED},
        {APPROVAL_QUEUED, APPROVAL_CONSUME, APPROVAL_CONSUMED},
        {APPROVAL_QUEUED, APPROVAL_REQUEUE, APPROVAL_GRANTED},
        {APPROVAL_RESUMING, APPROVAL_RELEASE, APPROVAL_GRANTED},
        {APPROVAL_RESUMING, APPROVAL_CONSUME, APPROVAL_CONSUMED},
        {APPROVAL_RESUMING, APPROVAL_REQUEUE, APPROVAL_GRANTED},
    };
    for (int s = APPROVAL_PENDING; s <= APPROVAL_CONSUMED; s++) {
        for (int v = APPROVAL_GRANT; v <= APPROVAL_REQUEUE; v++) {
            int want = -1;
            for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
                if ((int)rows[i].from == s && (int)rows[i].event == v)
                    want = (int)rows[i].to;
            }
            assert_int_equal(approval_next((enum approval_state)s, (enum approval_event)v), want);
        }
    }
}

static void test_grant_resume_once_and_replay(void **state)
{
    struct fixture *f = *state;
    struct err e = {0};
    autofree char *id = hold(f, &patch_hold, 0);
    expect_conflict(f, id, "nobody has decided");
    grant(f, id);
    autoapproval a = {0};
    assert_int_equal(approvals_claim(f->l, id, &a, &e), 0);
    assert_string_equal(a.arguments, ARGUMENTS);
    assert_string_equal(a.resolved_by, "command_line");
    assert_int_equal(a.resolved_ms, f->clock_ms);
    expect_conflict(f, id, "another resume has it");
    assert_int_equal(approvals_start(f->l, id, &e), 0);
    expect_conflict(f, id, "another resume runs it");
    /* The tool proved that nothing ran: given back, and taken once more. */
    assert_int_equal(approvals_release(f->l, id, &e), 0);
    assert_int_equal(state_of(f, id), APPROVAL_GRANTED);
    autoapproval retry = {0};
    assert_int_equal(approvals_claim(f->l, id, &retry, &e), 0);
    assert_string_equal(retry.arguments, ARGUMENTS);
    assert_int_equal(approvals_start(f->l, id, &e), 0);
    assert_int_equal(approvals_finish(f->l, id, "{\"status\":\"applied\"}", false, &e), 0);
    for (int i = 0; i < 2; i++) {
        autoapproval again = {0};
        assert_int_equal(approvals_claim(f->l, id, &again, &e), 1);
        assert_string_equal(again.result, "{\"status\":\"applied\"}");
        assert_false(again.result_is_error);
        fixture_reopen(f);
    }
    assert_int_equal(approvals_finish(f->l, id, "{}", false, &e), -1);
    assert_int_equal(e.code, ERR_APPROVAL_CONFLICT);
}

static void test_an_error_is_a_result_too(void **state)
{
    struct fixture *f = *state;
    struct err e = {0};
    autofree char *id = hold(f, &patch_hold, 0);
    grant(f, id);
    claim(f, id);
    assert_int_equal(approvals_finish(f->l, id, "{\"code\":\"UNAUTHORIZED\"}", true, &e), 0);
    autoapproval a = {0};
    assert_int_equal(approvals_claim(f->l, id, &a, &e), 1);
    assert_true(a.result_is_error);
}

/* L17: who asks does not grant. */
static void test_the_caller_cannot_grant(void **state)
{
    struct fixture *f = *state;
    struct err e = {0};
    autofree char *id = hold(f, &patch_hold, 0);
    assert_int_equal(approvals_grant(f->l, id, APPROVAL_BY_CALLER, false, &e), -1);
    assert_int_equal(e.code, ERR_UNAUTHORIZED);
    assert_non_null(strstr(e.message, "operator"));
    assert_int_equal(state_of(f, id), APPROVAL_PENDING);
    static const enum approval_actor operators[] = {
        APPROVAL_BY_OPERATOR_TOKEN, APPROVAL_BY_ELICITATION, APPROVAL_BY_COMMAND_LINE};
    for (size_t i = 0; i < ARRAY_LEN(operators); i++) {
        struct approval_request q = patch_hold;
        char print[16];
        snprintf(print, sizeof(print), "print-%zu", i);
        q.fingerprint = print;
        autofree char *other = hold(f, &q, 0);
        assert_int_equal(approvals_grant(f->l, other, operators[i], false, &e), 0);
        autoapproval a = {0};
        assert_int_equal(approvals_get(f->l, other, &a, &e), 0);
        assert_string_equal(a.resolved_by, approval_actor_name(operators[i]));
    }
    /* Unless the operator wants it so; withdrawing one's own request is always fine. */
    assert_int_equal(approvals_grant(f->l, id, APPROVAL_BY_CALLER, true, &e), 0);
    autofree char *exec = hold(f, &exec_hold, 0);
    assert_int_equal(approvals_deny(f->l, exec, APPROVAL_BY_CALLER, &e), 0);
    assert_int_equal(approvals_grant(f->l, "appr-none", APPROVAL_BY_COMMAND_LINE, false, &e), -1);
    assert_int_equal(e.code, ERR_APPROVAL_NOT_FOUND);
}

static void test_a_denial_is_final(void **state)
{
    struct fixture *f = *state;
    struct err e = {0};
    autofree char *id = hold(f, &patch_hold, 0);
    assert_int_equal(approvals_deny(f->l, id, APPROVAL_BY_OPERATOR_TOKEN, &e), 0);
    expect_conflict(f, id, "denied");
    assert_int_equal(approvals_grant(f->l, id, APPROVAL_BY_OPERATOR_TOKEN, false, &e), -1);
    assert_int_equal(e.code, ERR_APPROVAL_CONFLICT);
    autofree char *granted = hold(f, &patch_hold, 0);
    assert_string_not_equal(granted, id);
    grant(f, granted);
    assert_int_equal(approvals_deny(f->l, granted, APPROVAL_BY_OPERATOR_TOKEN, &e), -1);
    assert_int_equal(e.code, ERR_APPROVAL_CONFLICT);
}

static void test_the_same_call_shares_one_active_hold(void **state)
{
    struct fixture *f = *state;
    struct err e = {0};
    autofree char *id = hold(f, &patch_hold, 0);
    struct approval_request elsewhere = patch_hold;
    elsewhere.workspace_id = "w2";
    autofree char *other = hold(f, &elsewhere, 0);
    assert_string_not_equal(id, other);
    static void (*const steps[])(struct fixture *, const char *) = {NULL, grant, start};
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        if (steps[i] != NULL)
            steps[i](f, id);
        autofree char *same = hold(f, &patch_hold, 1);
        assert_string_equal(same, id);
    }
    assert_int_equal(approvals_finish(f->l, id, "{}", false, &e), 0);
    autofree char *next = hold(f, &patch_hold, 0);
    assert_string_not_equal(next, id);
}

static void test_a_call_that_found_no_turn_stays_granted(void **state)
{
    struct fixture *f = *state;
    struct err e = {0};
    autofree char *id = hold(f, &patch_hold, 0);
    grant(f, id);
    for (int i = 0; i < 3; i++) {
        claim(f, id);
        assert_int_equal(approvals_release(f->l, id, &e), 0);
        assert_int_equal(state_of(f, id), APPROVAL_GRANTED);
    }
    start(f, id);
}

static void test_ended_holds_forget_their_arguments(void **state)
{
    struct fixture *f = *state;
    struct err e = {0};
    autofree char *consumed = hold(f, &patch_hold, 0);
    assert_true(fixture_grep(f, SECRET));
    grant(f, consumed);
    start(f, consumed);
    assert_int_equal(approvals_finish(f->l, consumed, "{}", false, &e), 0);
    assert_false(fixture_grep(f, SECRET));
    autofree char *denied = hold(f, &patch_hold, 0);
    assert_true(fixture_grep(f, SECRET));
    assert_int_equal(approvals_deny(f->l, denied, APPROVAL_BY_CALLER, &e), 0);
    assert_false(fixture_grep(f, SECRET));
    autoapproval a = {0};
    assert_int_equal(approvals_get(f->l, denied, &a, &e), 0);
    assert_string_equal(a.arguments, "{\"scrubbed\":true,\"tool\":\"apply_patch\","
                                     "\"workspace_id\":\"w\",\"fingerprint\":\"print\"}");
}

static void test_a_result_that_is_not_kept_is_ambiguous(void **state)
{
    struct fixture *f = *state;
    struct err e = {0};
    autofree char *big = mem_zalloc(1, APPROVALS_RESULT_MAX + 2);
    memset(big, ' ', APPROVALS_RESULT_MAX + 1);
    autofree char *id = hold(f, &patch_hold, 0);
    grant(f, id);
    start(f, id);
    assert_int_equal(approvals_finish(f->l, id, big, false, &e), 0);
    autoapproval a = {0};
    assert_int_equal(approvals_claim(f->l, id, &a, &e), -1);
    assert_int_equal(e.code, ERR_APPROVAL_AMBIGUOUS);
}

static void test_limits_are_named(void **state)
{
    struct fixture *f = *state;
    struct err e = {0};
    autoapproval a = {0};
    autofree char *big = mem_zalloc(1, APPROVALS_ARGUMENTS_MAX + 2);
    memset(big, 'x', APPROVALS_ARGUMENTS_MAX + 1);
    struct approval_request q = patch_hold;
    q.arguments = big;
    assert_int_equal(approvals_create(f->l, &q, &a, &e), -1);
    assert_int_equal(e.code, ERR_LIMIT_EXCEEDED);
    assert_non_null(strstr(e.message, "APPROVALS_ARGUMENTS_MAX"));
    big[APPROVALS_ARGUMENTS_MAX] = '\0';
    char print[16];
    q.fingerprint = print;
    for (int i = 0; i < 4; i++) {
        snprintf(print, sizeof(print), "big-%d", i);
        free(hold(f, &q, 0));
    }
    snprintf(print, sizeof(print), "big-4");
    assert_int_equal(approvals_create(f->l, &q, &a, &e), -1);
    assert_int_equal(e.code, ERR_RESOURCE_QUEUE_FULL);
    assert_non_null(strstr(e.message, "APPROVALS_ARGUMENTS_TOTAL_MAX"));
    q.workspace_id = "w2";
    q.arguments = "{}";
    fixture_sql(f, "PRAGMA synchronous=OFF");
    for (unsigned i = 0; i < APPROVALS_ACTIVE_MAX; i++) {
        snprintf(print, sizeof(print), "small-%u", i);
        free(hold(f, &q, 0));
    }
    snprintf(print, sizeof(print), "one more");
    assert_int_equal(approvals_create(f->l, &q, &a, &e), -1);
    assert_int_equal(e.code, ERR_RESOURCE_QUEUE_FULL);
    assert_non_null(strstr(e.message, "APPROVALS_ACTIVE_MAX is 256"));
}

static int list(struct fixture *f, const char *workspace, bool active, int64_t before,
                uint32_t limit, struct approval **ret, size_t *ret_n, struct err *e)
{
    const struct approval_filter filter = {workspace, active, before, limit};
    return approvals_list(f->l, &filter, ret, ret_n, e);
}

static void test_lists_for_the_operator(void **state)
{
    struct fixture *f = *state;
    struct err e = {0};
    autofree char *first = hold(f, &patch_hold, 0);
    autofree char *second = hold(f, &exec_hold, 0);
    assert_int_equal(approvals_deny(f->l, first, APPROVAL_BY_COMMAND_LINE, &e), 0);
    const struct {
        const char *workspace;
        bool active;
        size_t want;
    } rows[] = {{NULL, false, 2}, {"w", false, 2}, {"w", true, 1}, {"w2", false, 0}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct approval *items = NULL;
        size_t n = 0;
        assert_int_equal(list(f, rows[i].workspace, rows[i].active, 0, 0, &items, &n, &e), 0);
        assert_int_equal(n, rows[i].want);
        if (n > 0)
            assert_string_equal(items[0].approval_id, second);
        approvals_free(items, n);
    }
    struct approval *items = NULL;
    size_t n = 0;
    assert_int_equal(list(f, NULL, false, 0, APPROVALS_PAGE_MAX + 1, &items, &n, &e), -1);
    assert_int_equal(e.code, ERR_OUTPUT_LIMIT);
    /* A page at a time. */
    assert_int_equal(list(f, NULL, false, 0, 1, &items, &n, &e), 0);
    assert_int_equal(n, 1);
    int64_t seq = items[0].seq;
    approvals_free(items, n);
    assert_int_equal(list(f, NULL, false, seq, 1, &items, &n, &e), 0);
    assert_int_equal(n, 1);
    assert_string_equal(items[0].approval_id, first);
    approvals_free(items, n);
}

enum { RACERS = 8 };

struct race {
    struct fixture *f;
    const char *id;
    atomic_int won;
    atomic_int conflicts;
};

static void *race_to_claim(void *user)
{
    struct race *r = user;
    struct err e = {0};
    autoapproval a = {0};
    int got = approvals_claim(r->f->l, r->id, &a, &e);
    atomic_fetch_add(&r->won, got == 0);
    atomic_fetch_add(&r->conflicts, got == -1 && e.code == ERR_APPROVAL_CONFLICT);
    return NULL;
}

static void test_one_of_many_resumes_runs(void **state)
{
    struct fixture *f = *state;
    autofree char *id = hold(f, &patch_hold, 0);
    grant(f, id);
    struct race r = {.f = f, .id = id};
    pthread_t threads[RACERS];
    for (int i = 0; i < RACERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, race_to_claim, &r), 0);
    for (int i = 0; i < RACERS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(atomic_load(&r.won), 1);
    assert_int_equal(atomic_load(&r.conflicts), RACERS - 1);
}

UNIT_MAIN(cmocka_unit_test(test_the_table), TEST(test_grant_resume_once_and_replay),
          TEST(test_an_error_is_a_result_too), TEST(test_the_caller_cannot_grant),
          TEST(test_a_denial_is_final), TEST(test_the_same_call_shares_one_active_hold),
          TEST(test_a_call_that_found_no_turn_stays_granted),
          TEST(test_ended_holds_forget_their_arguments),
          TEST(test_a_result_that_is_not_kept_is_ambiguous), TEST(test_limits_are_named),
          TEST(test_lists_for_the_operator), TEST(test_one_of_many_resumes_runs))
