/* What the tests of works and intents share. */
#ifndef CODESPACE_TESTS_WORKS_FIXTURE_H
#define CODESPACE_TESTS_WORKS_FIXTURE_H

#include "ledger_fixture.h"

#include "base/str.h"
#include "core/intents.h"
#include "core/works.h"

static inline char *open_work(struct fixture *f, const char *workspace)
{
    struct err e = {0};
    autowork w = {0};
    if (works_open(f->l, workspace, "title", &w, &e) < 0)
        fail_msg("%s", e.message);
    assert_int_equal(w.state, WORK_ACTIVE);
    assert_true(str_starts(w.work_id, "work-"));
    return mem_strdup(w.work_id);
}

/* A draft's id; the caller frees. */
static inline char *draft(struct fixture *f, const char *work, enum intent_delivery delivery,
                          const char *body)
{
    struct err e = {0};
    autointent i = {0};
    if (intents_add(f->l, work, INTENT_FOLLOW_UP, delivery, body, &i, &e) < 0)
        fail_msg("%s", e.message);
    assert_true(str_starts(i.intent_id, "fb-"));
    assert_int_equal(i.state, INTENT_DRAFT);
    assert_int_equal(i.revision, 1);
    return mem_strdup(i.intent_id);
}

static inline char *queued(struct fixture *f, const char *work, enum intent_delivery delivery,
                           const char *body)
{
    struct err e = {0};
    char *id = draft(f, work, delivery, body);
    autointent i = {0};
    if (intents_queue(f->l, id, 1, &i, &e) < 0)
        fail_msg("%s", e.message);
    assert_int_equal(i.state, INTENT_QUEUED);
    return id;
}

static inline struct work_counts counts(struct fixture *f, const char *work)
{
    struct err e = {0};
    struct work_counts c = {0};
    assert_int_equal(works_status(f->l, work, &c, &e), 0);
    return c;
}

/* The body that the next claim gives, "" when there is none; the caller frees. */
static inline char *claim(struct fixture *f, const char *work)
{
    struct err e = {0};
    autointent i = {0};
    int got = intents_claim_next(f->l, work, &i, &e);
    if (got < 0)
        fail_msg("%s", e.message);
    if (got == 1)
        assert_int_equal(i.state, INTENT_CLAIMED);
    return mem_strdup(got == 1 ? i.body : "");
}

static inline void expect_claim(struct fixture *f, const char *work, const char *want)
{
    autofree char *got = claim(f, work);
    assert_string_equal(got, want);
}

static inline void complete(struct fixture *f, const char *work, const char *id)
{
    struct err e = {0};
    autointent i = {0};
    if (intents_complete(f->l, work, id, false, &i, &e) < 0)
        fail_msg("%s", e.message);
    assert_int_equal(i.state, INTENT_DONE);
}

static inline struct work_finish finish(struct fixture *f, const char *work)
{
    struct err e = {0};
    struct work_finish out = {0};
    if (works_finish(f->l, work, &out, &e) < 0)
        fail_msg("%s", e.message);
    return out;
}

#endif
