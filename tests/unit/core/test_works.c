/* core/works: opening, delivery, closing without losing an instruction, hints, limits. */
#include "works_fixture.h"

static void test_delivery_decides_when(void **state)
{
    struct fixture *f = *state;
    autofree char *work = open_work(f, "w");
    autofree char *never = queued(f, work, INTENT_NEXT_WORK, "next work");
    autofree char *after = queued(f, work, INTENT_AFTER_CURRENT_WORK, "after");
    autofree char *now = queued(f, work, INTENT_NEXT_CHECKPOINT, "now");
    struct work_counts c = counts(f, work);
    assert_int_equal(c.queued, 2);
    assert_int_equal(c.claimable_now, 1);
    expect_claim(f, work, "now");
    expect_claim(f, work, "");
    complete(f, work, now);
    struct work_finish out = finish(f, work);
    assert_int_equal(out.state, WORK_CLOSING);
    assert_false(out.closed);
    assert_int_equal(out.queued, 1);
    assert_int_equal(counts(f, work).claimable_now, 1);
    expect_claim(f, work, "after");
    expect_claim(f, work, "");
    complete(f, work, after);
    assert_true(finish(f, work).closed);
    autointent i = {0};
    struct err e = {0};
    assert_int_equal(intents_get(f->l, never, &i, &e), 0);
    assert_int_equal(i.state, INTENT_QUEUED);
    assert_null(i.work_id);
}

static void test_finishing_waits_for_what_was_asked(void **state)
{
    struct fixture *f = *state;
    autofree char *work = open_work(f, "w");
    autofree char *id = queued(f, work, INTENT_NEXT_CHECKPOINT, "now");
    struct work_finish out = finish(f, work);
    assert_false(out.closed);
    assert_string_equal(out.reason, "pending_user_input");
    assert_int_equal(out.state, WORK_ACTIVE);
    assert_int_equal(out.queued, 1);
    expect_claim(f, work, "now");
    out = finish(f, work);
    assert_string_equal(out.reason, "pending_user_input"); /* claimed and not completed */
    complete(f, work, id);
    out = finish(f, work);
    assert_true(out.closed);
    assert_null(out.reason);
    assert_int_equal(out.state, WORK_CLOSED_STATE);
    struct err e = {0};
    autointent i = {0};
    assert_int_equal(works_finish(f->l, work, &out, &e), -1);
    assert_int_equal(e.code, ERR_WORK_CLOSED);
    assert_int_equal(intents_claim_next(f->l, work, &i, &e), -1);
    assert_int_equal(e.code, ERR_WORK_CLOSED);
    assert_int_equal(works_finish(f->l, "work-none", &out, &e), -1);
    assert_int_equal(e.code, ERR_WORK_NOT_FOUND);
}

static void test_what_is_left_waits_for_the_next_work(void **state)
{
    struct fixture *f = *state;
    struct err e = {0};
    autofree char *work = open_work(f, "w");
    autofree char *left = draft(f, work, INTENT_NEXT_CHECKPOINT, "left");
    autofree char *next = queued(f, work, INTENT_NEXT_WORK, "next");
    assert_true(finish(f, work).closed);
    autofree char *late = draft(f, work, INTENT_NEXT_CHECKPOINT, "late");
    autointent i = {0};
    assert_int_equal(intents_get(f->l, late, &i, &e), 0);
    assert_null(i.work_id);
    assert_int_equal(i.delivery, INTENT_NEXT_WORK);
    autofree char *elsewhere = open_work(f, "w2");
    assert_int_equal(counts(f, elsewhere).queued, 0);
    autofree char *second = open_work(f, "w");
    autointent adopted = {0};
    assert_int_equal(intents_get(f->l, next, &adopted, &e), 0);
    assert_string_equal(adopted.work_id, second);
    assert_int_equal(adopted.delivery, INTENT_AFTER_CURRENT_WORK);
    assert_int_equal(adopted.revision, 2);
    autointent kept = {0};
    assert_int_equal(intents_get(f->l, left, &kept, &e), 0);
    assert_string_equal(kept.work_id, second);
    assert_int_equal(kept.delivery, INTENT_NEXT_CHECKPOINT);
    assert_int_equal(kept.revision, 1);
    assert_int_equal(counts(f, second).queued, 1);
}

static void test_the_hint_names_the_one_open_work(void **state)
{
    struct fixture *f = *state;
    struct err e = {0};
    struct work_hint h = {0};
    assert_false(works_any_open(f->l));
    assert_int_equal(works_hint(f->l, "w", NULL, &h, &e), 0);
    autofree char *work = open_work(f, "w");
    assert_true(works_any_open(f->l));
    free(queued(f, work, INTENT_NEXT_CHECKPOINT, "a"));
    free(queued(f, work, INTENT_AFTER_CURRENT_WORK, "b"));
    free(queued(f, work, INTENT_NEXT_WORK, "c"));
    expect_claim(f, work, "a");
    assert_int_equal(works_hint(f->l, "w", NULL, &h, &e), 1);
    assert_string_equal(h.work_id, work);
    assert_int_equal(h.pending_user_items, 2);
    assert_int_equal(h.queue_revision, counts(f, work).queue_revision);
    fixture_reopen(f);
    assert_true(works_any_open(f->l));
    autofree char *second = open_work(f, "w");
    const struct {
        const char *workspace, *work;
        int want;
    } rows[] = {{"w", NULL, 0},  {"w", work, 1},  {"w", second, 1},
                {"w2", work, 0}, {"w2", NULL, 0}, {"w", "work-none", 0}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_int_equal(works_hint(f->l, rows[i].workspace, rows[i].work, &h, &e), rows[i].want);
    assert_true(finish(f, second).closed);
    assert_int_equal(works_hint(f->l, "w", second, &h, &e), 0);
    assert_int_equal(works_hint(f->l, "w", NULL, &h, &e), 1);
}

static void test_works_are_listed_newest_first(void **state)
{
    struct fixture *f = *state;
    struct err e = {0};
    autofree char *a = open_work(f, "w");
    autofree char *b = open_work(f, "w2");
    autofree char *c = open_work(f, "w");
    struct work *items = NULL;
    size_t n = 0;
    assert_int_equal(works_list(f->l, &(struct work_filter){"w", 0, 0}, &items, &n, &e), 0);
    assert_int_equal(n, 2);
    assert_string_equal(items[0].work_id, c);
    assert_string_equal(items[1].work_id, a);
    assert_string_equal(items[1].title, "title");
    int64_t last = items[0].seq;
    works_free(items, n);
    assert_int_equal(works_list(f->l, &(struct work_filter){"w", last, 0}, &items, &n, &e), 0);
    assert_int_equal(n, 1);
    assert_string_equal(items[0].work_id, a);
    works_free(items, n);
    assert_int_equal(works_list(f->l, &(struct work_filter){NULL, 0, 2}, &items, &n, &e), 0);
    assert_int_equal(n, 2);
    assert_string_equal(items[1].work_id, b);
    works_free(items, n);
    assert_int_equal(
        works_list(f->l, &(struct work_filter){NULL, 0, WORKS_PAGE_MAX + 1}, &items, &n, &e), -1);
    assert_int_equal(e.code, ERR_OUTPUT_LIMIT);
}

static void test_limits_are_named(void **state)
{
    struct fixture *f = *state;
    struct err e = {0};
    autowork w = {0};
    autointent i = {0};
    autofree char *big = mem_zalloc(1, INTENTS_BODY_MAX + 2);
    memset(big, 'x', INTENTS_BODY_MAX + 1);
    assert_int_equal(works_open(f->l, "w", big, &w, &e), -1);
    assert_non_null(strstr(e.message, "WORKS_TITLE_MAX is 1024"));
    fixture_sql(f, "PRAGMA synchronous=OFF");
    autofree char *work = open_work(f, "w");
    assert_int_equal(intents_add(f->l, work, INTENT_NOTE, INTENT_NEXT_WORK, big, &i, &e), -1);
    assert_int_equal(e.code, ERR_LIMIT_EXCEEDED);
    assert_int_equal(intents_add(f->l, work, INTENT_NOTE, INTENT_NEXT_WORK, "", &i, &e), -1);
    assert_int_equal(e.code, ERR_INVALID_ARGUMENT);
    for (unsigned k = 1; k < WORKS_OPEN_MAX; k++)
        free(open_work(f, "w"));
    assert_int_equal(works_open(f->l, "w", NULL, &w, &e), -1);
    assert_int_equal(e.code, ERR_RESOURCE_QUEUE_FULL);
    for (unsigned k = 0; k < INTENTS_OPEN_MAX; k++)
        free(draft(f, work, INTENT_NEXT_WORK, "x"));
    assert_int_equal(intents_add(f->l, work, INTENT_NOTE, INTENT_NEXT_WORK, "x", &i, &e), -1);
    assert_int_equal(e.code, ERR_RESOURCE_QUEUE_FULL);
    assert_non_null(strstr(e.message, "INTENTS_OPEN_MAX is 1000"));
}

static void test_retention_keeps_open_works(void **state)
{
    struct fixture *f = *state;
    struct err e = {0};
    f->keep.age_ms = 1000;
    f->keep.works = 1;
    fixture_reopen(f);
    autofree char *open = open_work(f, "w");
    autofree char *waiting = queued(f, open, INTENT_NEXT_CHECKPOINT, "waiting");
    autofree char *done = queued(f, open, INTENT_NEXT_CHECKPOINT, "done");
    expect_claim(f, open, "waiting");
    expect_claim(f, open, "done");
    complete(f, open, done);
    for (int i = 0; i < 3; i++) {
        autofree char *work = open_work(f, "w3");
        assert_true(finish(f, work).closed);
    }
    fixture_reopen(f);
    assert_int_equal(fixture_number(f, "SELECT count(*) FROM works"), 2);
    f->clock_ms += 5000;
    fixture_reopen(f);
    assert_int_equal(fixture_number(f, "SELECT count(*) FROM works"), 1);
    autointent i = {0};
    assert_int_equal(intents_get(f->l, waiting, &i, &e), 0);
    assert_int_equal(intents_get(f->l, done, &i, &e), -1);
    assert_int_equal(e.code, ERR_INTENT_NOT_FOUND);
}

UNIT_MAIN(TEST(test_delivery_decides_when), TEST(test_finishing_waits_for_what_was_asked),
          TEST(test_what_is_left_waits_for_the_next_work),
          TEST(test_the_hint_names_the_one_open_work), TEST(test_works_are_listed_newest_first),
          TEST(test_limits_are_named), TEST(test_retention_keeps_open_works))
