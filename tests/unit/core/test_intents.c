/* core/intents: visibility, revisions, order, stop notices, one claim each. */
#include "works_fixture.h"

#include <stdatomic.h>

static void test_a_draft_is_hidden_until_queued(void **state)
{
    struct fixture *f = *state;
    autofree char *work = open_work(f, "w");
    uint64_t before = counts(f, work).queue_revision;
    autofree char *id = draft(f, work, INTENT_NEXT_CHECKPOINT, "do it");
    struct work_counts c = counts(f, work);
    assert_int_equal(c.queued + c.claimed + c.claimable_now, 0);
    assert_int_equal(c.queue_revision, before);
    expect_claim(f, work, "");
    struct err e = {0};
    autointent i = {0};
    assert_int_equal(intents_queue(f->l, id, 1, &i, &e), 0);
    c = counts(f, work);
    assert_int_equal(c.queued, 1);
    assert_int_equal(c.claimable_now, 1);
    assert_true(c.queue_revision > before);
    expect_claim(f, work, "do it");
    c = counts(f, work);
    assert_int_equal(c.queued, 0);
    assert_int_equal(c.claimed, 1);
}

static void test_edits_need_the_revision_they_saw(void **state)
{
    struct fixture *f = *state;
    struct err e = {0};
    autofree char *work = open_work(f, "w");
    autofree char *id = queued(f, work, INTENT_AFTER_CURRENT_WORK, "one");
    autointent a = {0};
    assert_int_equal(intents_edit(f->l, id, 1, "two", INTENT_NEXT_CHECKPOINT, &a, &e), 0);
    assert_int_equal(a.revision, 2);
    assert_string_equal(a.body, "two");
    assert_int_equal(a.delivery, INTENT_NEXT_CHECKPOINT);
    autointent b = {0};
    assert_int_equal(intents_edit(f->l, id, 1, "three", -1, &b, &e), -1);
    assert_int_equal(e.code, ERR_INTENT_REVISION_CONFLICT);
    assert_int_equal(intents_edit(f->l, id, 2, "three", -1, &b, &e), 0);
    assert_int_equal(b.delivery, INTENT_NEXT_CHECKPOINT);
    expect_claim(f, work, "three");
    autointent c = {0};
    assert_int_equal(intents_edit(f->l, id, 3, "four", -1, &c, &e), -1);
    assert_int_equal(e.code, ERR_INTENT_ALREADY_CLAIMED);
    assert_int_equal(intents_cancel(f->l, id, &c, &e), -1);
    assert_int_equal(e.code, ERR_INTENT_ALREADY_CLAIMED);
    complete(f, work, id);
    assert_int_equal(intents_edit(f->l, id, 3, "four", -1, &c, &e), -1);
    assert_int_equal(e.code, ERR_INTENT_NOT_EDITABLE);
    assert_int_equal(intents_edit(f->l, "fb-none", 1, "x", -1, &c, &e), -1);
    assert_int_equal(e.code, ERR_INTENT_NOT_FOUND);
}

static void test_queueing_and_cancelling(void **state)
{
    struct fixture *f = *state;
    struct err e = {0};
    autofree char *work = open_work(f, "w");
    autofree char *id = draft(f, work, INTENT_NEXT_CHECKPOINT, "x");
    autointent i = {0};
    assert_int_equal(intents_queue(f->l, id, 2, &i, &e), -1);
    assert_int_equal(e.code, ERR_INTENT_REVISION_CONFLICT);
    assert_int_equal(intents_queue(f->l, id, 1, &i, &e), 0);
    autointent again = {0};
    assert_int_equal(intents_queue(f->l, id, 1, &again, &e), -1);
    assert_int_equal(e.code, ERR_INTENT_NOT_EDITABLE);
    assert_int_equal(intents_cancel(f->l, id, &again, &e), 0);
    assert_int_equal(again.state, INTENT_CANCELLED);
    assert_int_equal(counts(f, work).queued, 0);
    autointent third = {0};
    assert_int_equal(intents_cancel(f->l, id, &third, &e), -1);
    assert_int_equal(e.code, ERR_INTENT_NOT_EDITABLE);
}

static void test_completing_needs_a_claim_of_that_work(void **state)
{
    struct fixture *f = *state;
    struct err e = {0};
    autofree char *work = open_work(f, "w");
    autofree char *other = open_work(f, "w");
    autofree char *id = queued(f, work, INTENT_NEXT_CHECKPOINT, "x");
    autointent i = {0};
    assert_int_equal(intents_complete(f->l, work, id, false, &i, &e), -1);
    assert_int_equal(e.code, ERR_INTENT_NOT_EDITABLE);
    expect_claim(f, work, "x");
    assert_int_equal(intents_complete(f->l, other, id, false, &i, &e), -1);
    assert_int_equal(e.code, ERR_INTENT_NOT_FOUND);
    assert_int_equal(intents_complete(f->l, work, "fb-none", false, &i, &e), -1);
    assert_int_equal(e.code, ERR_INTENT_NOT_FOUND);
    assert_int_equal(intents_complete(f->l, work, id, true, &i, &e), 0);
    assert_int_equal(i.state, INTENT_BLOCKED);
    assert_int_equal(i.completed_ms, f->clock_ms);
    autointent again = {0};
    assert_int_equal(intents_complete(f->l, work, id, false, &again, &e), -1);
    assert_int_equal(e.code, ERR_INTENT_NOT_EDITABLE);
}

static void test_reordering_takes_exactly_the_queue(void **state)
{
    struct fixture *f = *state;
    struct err e = {0};
    autofree char *work = open_work(f, "w");
    autofree char *a = queued(f, work, INTENT_NEXT_CHECKPOINT, "a");
    autofree char *hidden = draft(f, work, INTENT_NEXT_CHECKPOINT, "hidden");
    autofree char *b = queued(f, work, INTENT_NEXT_CHECKPOINT, "b");
    autofree char *c = queued(f, work, INTENT_NEXT_CHECKPOINT, "c");
    const char *const wrong[][4] = {{a, b}, {a, b, b}, {a, b, hidden}, {a, b, c, hidden}};
    static const size_t lengths[] = {2, 3, 3, 4};
    for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
        e = (struct err){0};
        assert_int_equal(intents_reorder(f->l, work, wrong[i], lengths[i], &e), -1);
        assert_int_equal(e.code, ERR_INTENT_REVISION_CONFLICT);
    }
    const char *const right[] = {c, a, b};
    uint64_t before = counts(f, work).queue_revision;
    assert_int_equal(intents_reorder(f->l, work, right, 3, &e), 0);
    assert_int_equal(counts(f, work).queue_revision, before + 1);
    expect_claim(f, work, "c");
    expect_claim(f, work, "a");
    expect_claim(f, work, "b");
    assert_int_equal(intents_reorder(f->l, work, right, 0, &e), 0);
    assert_int_equal(intents_reorder(f->l, "work-none", right, 0, &e), -1);
    assert_int_equal(e.code, ERR_WORK_NOT_FOUND);
}

static void test_a_stop_notice_is_told_once_and_stays(void **state)
{
    struct fixture *f = *state;
    struct err e = {0};
    autofree char *work = open_work(f, "w");
    autofree char *other = queued(f, work, INTENT_NEXT_CHECKPOINT, "other");
    autointent stop = {0};
    assert_int_equal(intents_stop(f->l, work, "halt", &stop, &e), 0);
    assert_int_equal(stop.state, INTENT_CLAIMED);
    assert_int_equal(stop.kind, INTENT_STOP_NOTICE);
    autointent i = {0};
    assert_int_equal(intents_edit(f->l, stop.intent_id, 1, "go on", -1, &i, &e), -1);
    assert_int_equal(e.code, ERR_INTENT_ALREADY_CLAIMED);
    assert_int_equal(intents_cancel(f->l, stop.intent_id, &i, &e), -1);
    struct work_counts c = counts(f, work);
    assert_int_equal(c.claimable_now, 2);
    assert_int_equal(c.claimed, 1);
    expect_claim(f, work, "halt"); /* before what was queued earlier */
    expect_claim(f, work, "other");
    expect_claim(f, work, "");
    assert_string_equal(finish(f, work).reason, "pending_user_input");
    complete(f, work, stop.intent_id);
    complete(f, work, other);
    assert_true(finish(f, work).closed);
    autointent late = {0};
    assert_int_equal(intents_stop(f->l, work, NULL, &late, &e), 0);
    assert_int_equal(late.state, INTENT_QUEUED);
    assert_null(late.work_id);
    assert_int_equal(intents_cancel(f->l, late.intent_id, &i, &e), -1);
    assert_int_equal(e.code, ERR_INTENT_NOT_EDITABLE);
    autofree char *next = open_work(f, "w");
    expect_claim(f, next, late.body);
    autointent no = {0};
    assert_int_equal(intents_add(f->l, next, INTENT_STOP_NOTICE, INTENT_NEXT_WORK, "x", &no, &e),
                     -1);
    assert_int_equal(e.code, ERR_INVALID_ARGUMENT);
}

static void test_the_list_shows_the_active_first(void **state)
{
    struct fixture *f = *state;
    struct err e = {0};
    autofree char *closed = open_work(f, "w");
    assert_true(finish(f, closed).closed);
    autofree char *work = open_work(f, "w");
    autofree char *cancelled = draft(f, work, INTENT_NEXT_CHECKPOINT, "cancelled");
    free(draft(f, work, INTENT_NEXT_CHECKPOINT, "draft"));
    free(queued(f, work, INTENT_NEXT_CHECKPOINT, "claimed"));
    expect_claim(f, work, "claimed");
    free(queued(f, work, INTENT_NEXT_CHECKPOINT, "queued"));
    free(draft(f, closed, INTENT_NEXT_CHECKPOINT, "unattached"));
    autointent i = {0};
    assert_int_equal(intents_cancel(f->l, cancelled, &i, &e), 0);
    static const char *const want[] = {"claimed", "queued", "draft", "unattached", "cancelled"};
    struct intent *items = NULL;
    size_t n = 0;
    assert_int_equal(intents_list(f->l, work, 0, 0, &items, &n, &e), 0);
    assert_int_equal(n, ARRAY_LEN(want));
    for (size_t k = 0; k < n; k++)
        assert_string_equal(items[k].body, want[k]);
    intents_free(items, n);
    assert_int_equal(intents_list(f->l, work, 3, 1, &items, &n, &e), 0);
    assert_int_equal(n, 1);
    assert_string_equal(items[0].body, want[3]);
    intents_free(items, n);
    assert_int_equal(intents_list(f->l, "work-none", 0, 0, &items, &n, &e), -1);
    assert_int_equal(e.code, ERR_WORK_NOT_FOUND);
    assert_int_equal(intents_list(f->l, work, 0, INTENTS_PAGE_MAX + 1, &items, &n, &e), -1);
    assert_int_equal(e.code, ERR_OUTPUT_LIMIT);
}

enum { CLAIMERS = 4, ITEMS = 40 };

struct race {
    struct fixture *f;
    const char *work;
    atomic_int got;
};

static void *claim_all(void *user)
{
    struct race *r = user;
    for (;;) {
        autointent i = {0};
        if (intents_claim_next(r->f->l, r->work, &i, NULL) != 1)
            return NULL;
        atomic_fetch_add(&r->got, 1);
    }
}

static void test_each_instruction_is_claimed_once(void **state)
{
    struct fixture *f = *state;
    autofree char *work = open_work(f, "w");
    for (int i = 0; i < ITEMS; i++)
        free(queued(f, work, INTENT_NEXT_CHECKPOINT, "x"));
    struct race r = {.f = f, .work = work};
    pthread_t threads[CLAIMERS];
    for (int i = 0; i < CLAIMERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, claim_all, &r), 0);
    for (int i = 0; i < CLAIMERS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(atomic_load(&r.got), ITEMS);
    assert_int_equal(counts(f, work).claimed, ITEMS);
}

UNIT_MAIN(TEST(test_a_draft_is_hidden_until_queued), TEST(test_edits_need_the_revision_they_saw),
          TEST(test_queueing_and_cancelling), TEST(test_completing_needs_a_claim_of_that_work),
          TEST(test_reordering_takes_exactly_the_queue),
          TEST(test_a_stop_notice_is_told_once_and_stays),
          TEST(test_the_list_shows_the_active_first), TEST(test_each_instruction_is_claimed_once))
