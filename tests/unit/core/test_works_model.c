/* core/works and core/intents against a plain model: a random walk over every call, the answer and
 * the counts compared at each step.
 */
#include "works_fixture.h"

enum { STEPS = 6000, ITEMS_MAX = 400, WORKS_MAX = 60 };
enum { LOOSE = -1 };

/* state and delivery as the module's enums; a work is an index, LOOSE = unattached. */
struct item {
    char *id;
    int work;
    enum intent_state state;
    enum intent_delivery delivery;
    unsigned revision;
    int position;
    bool stop, told;
};

struct model {
    struct ledger *l;
    unsigned random;
    struct item items[ITEMS_MAX];
    int n_items;
    char *works[WORKS_MAX];
    enum work_state states[WORKS_MAX];
    int n_works;
};

static unsigned pick(struct model *m, unsigned below)
{
    m->random = m->random * 1103515245u + 12345u;
    return (m->random >> 8) % below;
}

static bool is_open(const struct item *i)
{
    return i->state == INTENT_DRAFT || i->state == INTENT_QUEUED;
}

static bool claimable(const struct model *m, const struct item *i, int work)
{
    if (i->work != work)
        return false;
    if (i->stop && i->state == INTENT_CLAIMED)
        return !i->told;
    if (i->state != INTENT_QUEUED)
        return false;
    return i->delivery == INTENT_NEXT_CHECKPOINT ||
           (i->delivery == INTENT_AFTER_CURRENT_WORK && m->states[work] == WORK_CLOSING);
}

/* The one that a claim must give: untold stop notices first, then by position. */
static struct item *expected_claim(struct model *m, int work)
{
    struct item *best = NULL;
    for (int i = 0; i < m->n_items; i++) {
        struct item *it = &m->items[i];
        if (!claimable(m, it, work))
            continue;
        bool first = best == NULL || (it->state == INTENT_CLAIMED && best->state == INTENT_QUEUED);
        if (first || (it->state == best->state && it->position < best->position))
            best = it;
    }
    return best;
}

static uint64_t count_queued(const struct model *m, int work, int delivery)
{
    uint64_t n = 0;
    for (int i = 0; i < m->n_items; i++) {
        const struct item *it = &m->items[i];
        bool fits = delivery < 0 ? it->delivery != INTENT_NEXT_WORK : (int)it->delivery == delivery;
        n += it->work == work && it->state == INTENT_QUEUED && fits;
    }
    return n;
}

static uint64_t count_claimed(const struct model *m, int work)
{
    uint64_t n = 0;
    for (int i = 0; i < m->n_items; i++)
        n += m->items[i].work == work && m->items[i].state == INTENT_CLAIMED;
    return n;
}

static void step_open(struct model *m)
{
    struct err e = {0};
    autowork w = {0};
    if (m->n_works == WORKS_MAX)
        return;
    assert_int_equal(works_open(m->l, "w", NULL, &w, &e), 0);
    int work = m->n_works++;
    m->works[work] = mem_strdup(w.work_id);
    m->states[work] = WORK_ACTIVE;
    for (int i = 0; i < m->n_items; i++) {
        struct item *it = &m->items[i];
        if (it->work != LOOSE || !is_open(it))
            continue;
        it->work = work;
        if (it->delivery == INTENT_NEXT_WORK) {
            it->delivery = INTENT_AFTER_CURRENT_WORK;
            it->revision++;
        }
    }
}

static void step_finish(struct model *m)
{
    struct err e = {0};
    struct work_finish out = {0};
    int work = (int)pick(m, (unsigned)m->n_works);
    int r = works_finish(m->l, m->works[work], &out, &e);
    if (m->states[work] == WORK_CLOSED_STATE) {
        assert_int_equal(r, -1);
        assert_int_equal(e.code, ERR_WORK_CLOSED);
        return;
    }
    assert_int_equal(r, 0);
    bool waits = count_claimed(m, work) > 0 || count_queued(m, work, INTENT_NEXT_CHECKPOINT) > 0;
    bool later = count_queued(m, work, INTENT_AFTER_CURRENT_WORK) > 0;
    assert_int_equal(out.queued, count_queued(m, work, -1));
    assert_int_equal(out.reason != NULL, waits);
    assert_int_equal(out.closed, !waits && !later);
    if (!waits)
        m->states[work] = later ? WORK_CLOSING : WORK_CLOSED_STATE;
    assert_int_equal(out.state, m->states[work]);
    for (int i = 0; out.closed && i < m->n_items; i++) {
        if (m->items[i].work == work && is_open(&m->items[i]))
            m->items[i].work = LOOSE;
    }
}

static struct item *add_item(struct model *m, const struct intent *i, int work)
{
    struct item *it = &m->items[m->n_items];
    *it = (struct item){.id = mem_strdup(i->intent_id),
                        .work = m->states[work] == WORK_CLOSED_STATE ? LOOSE : work,
                        .state = i->state,
                        .delivery = i->delivery,
                        .revision = 1,
                        .position = m->n_items++};
    assert_int_equal(i->work_id == NULL, it->work == LOOSE);
    return it;
}

static void step_add(struct model *m)
{
    struct err e = {0};
    autointent i = {0};
    int work = (int)pick(m, (unsigned)m->n_works);
    enum intent_delivery delivery = (enum intent_delivery)pick(m, 3);
    if (m->n_items == ITEMS_MAX)
        return;
    assert_int_equal(intents_add(m->l, m->works[work], INTENT_NOTE, delivery, "x", &i, &e), 0);
    struct item *it = add_item(m, &i, work);
    assert_int_equal(it->delivery, it->work == LOOSE ? INTENT_NEXT_WORK : delivery);
}

static void step_stop(struct model *m)
{
    struct err e = {0};
    autointent i = {0};
    int work = (int)pick(m, (unsigned)m->n_works);
    if (m->n_items == ITEMS_MAX || pick(m, 4) != 0)
        return;
    assert_int_equal(intents_stop(m->l, m->works[work], NULL, &i, &e), 0);
    struct item *it = add_item(m, &i, work);
    it->stop = true;
    assert_int_equal(i.state, it->work == LOOSE ? INTENT_QUEUED : INTENT_CLAIMED);
}

/* What changing the item must answer; ERR_NONE = it is done. */
static enum err_code expected_change(const struct item *it)
{
    if (it->state == INTENT_CLAIMED)
        return ERR_INTENT_ALREADY_CLAIMED;
    return it->stop || !is_open(it) ? ERR_INTENT_NOT_EDITABLE : ERR_NONE;
}

static void step_change(struct model *m)
{
    struct err e = {0};
    autointent out = {0};
    if (m->n_items == 0)
        return;
    struct item *it = &m->items[pick(m, (unsigned)m->n_items)];
    unsigned revision = pick(m, 8) == 0 ? it->revision + 1 : it->revision;
    enum err_code want = expected_change(it);
    unsigned what = pick(m, 8);
    if (what == 0) {
        intents_cancel(m->l, it->id, &out, &e);
        it->state = want == ERR_NONE ? INTENT_CANCELLED : it->state;
    } else if (what < 3) {
        want = want == ERR_NONE && revision != it->revision ? ERR_INTENT_REVISION_CONFLICT : want;
        int delivery = (int)pick(m, 4) - 1;
        intents_edit(m->l, it->id, revision, "y", delivery, &out, &e);
        it->revision += want == ERR_NONE;
        it->delivery =
            want == ERR_NONE && delivery >= 0 ? (enum intent_delivery)delivery : it->delivery;
    } else {
        want = want == ERR_NONE && it->state == INTENT_QUEUED ? ERR_INTENT_NOT_EDITABLE : want;
        want = want == ERR_NONE && revision != it->revision ? ERR_INTENT_REVISION_CONFLICT : want;
        intents_queue(m->l, it->id, revision, &out, &e);
        it->state = want == ERR_NONE ? INTENT_QUEUED : it->state;
    }
    assert_int_equal(e.code, want);
}

static void step_claim(struct model *m)
{
    struct err e = {0};
    autointent out = {0};
    int work = (int)pick(m, (unsigned)m->n_works);
    int r = intents_claim_next(m->l, m->works[work], &out, &e);
    if (m->states[work] == WORK_CLOSED_STATE) {
        assert_int_equal(e.code, ERR_WORK_CLOSED);
        return;
    }
    struct item *want = expected_claim(m, work);
    assert_int_equal(r, want != NULL);
    if (want == NULL)
        return;
    assert_string_equal(out.intent_id, want->id);
    assert_int_equal(out.revision, want->revision);
    want->state = INTENT_CLAIMED;
    want->told = true;
}

static void step_complete(struct model *m)
{
    struct err e = {0};
    autointent out = {0};
    if (m->n_items == 0)
        return;
    struct item *it = &m->items[pick(m, (unsigned)m->n_items)];
    int work = it->work == LOOSE ? 0 : it->work;
    bool blocked = pick(m, 2) == 0;
    intents_complete(m->l, m->works[work], it->id, blocked, &out, &e);
    enum err_code want = it->work == LOOSE             ? ERR_INTENT_NOT_FOUND
                         : it->state != INTENT_CLAIMED ? ERR_INTENT_NOT_EDITABLE
                                                       : ERR_NONE;
    assert_int_equal(e.code, want);
    if (want == ERR_NONE)
        it->state = blocked ? INTENT_BLOCKED : INTENT_DONE;
}

/* Reverse the queue of a work. */
static void step_reorder(struct model *m)
{
    struct err e = {0};
    const char *ids[ITEMS_MAX] = {0};
    struct item *queue[ITEMS_MAX];
    size_t n = 0;
    int work = (int)pick(m, (unsigned)m->n_works);
    for (int p = 0; p < m->n_items; p++) {
        for (int i = 0; i < m->n_items; i++) {
            struct item *it = &m->items[i];
            if (it->position == p && it->work == work && it->state == INTENT_QUEUED)
                queue[n++] = it;
        }
    }
    for (size_t i = 0; i < n; i++)
        ids[i] = queue[n - 1 - i]->id;
    int r = intents_reorder(m->l, m->works[work], ids, n, &e);
    assert_int_equal(r, m->states[work] == WORK_CLOSED_STATE ? -1 : 0);
    for (size_t i = 0; r == 0 && i < n / 2; i++) {
        int other = queue[n - 1 - i]->position;
        queue[n - 1 - i]->position = queue[i]->position;
        queue[i]->position = other;
    }
}

static void check_counts(struct model *m)
{
    struct err e = {0};
    int work = (int)pick(m, (unsigned)m->n_works);
    struct work_counts c = {0};
    uint64_t now = 0;
    for (int i = 0; i < m->n_items; i++)
        now += m->states[work] != WORK_CLOSED_STATE && claimable(m, &m->items[i], work);
    assert_int_equal(works_status(m->l, m->works[work], &c, &e), 0);
    assert_int_equal(c.state, m->states[work]);
    assert_int_equal(c.queued, count_queued(m, work, -1));
    assert_int_equal(c.claimed, count_claimed(m, work));
    assert_int_equal(c.claimable_now, now);
}

static void model_free(struct model *m)
{
    for (int i = 0; i < m->n_items; i++)
        free(m->items[i].id);
    for (int i = 0; i < m->n_works; i++)
        free(m->works[i]);
    ledger_free(m->l);
    free(m);
}

static void test_random_walk_against_a_model(void **state)
{
    (void)state;
    static void (*const steps[])(struct model *) = {
        step_finish, step_finish, step_add,      step_add,      step_stop,     step_change,
        step_change, step_change, step_claim,    step_claim,    step_complete, step_complete,
        step_claim,  step_claim,  step_complete, step_complete, step_reorder,
    };
    struct err e = {0};
    struct ledger_options options = {0};
    for (unsigned seed = 1; seed <= 3; seed++) {
        struct model *m = mem_new(struct model);
        m->random = seed;
        assert_int_equal(ledger_open(&options, &m->l, &e), 0);
        step_open(m);
        for (int i = 0; i < STEPS; i++) {
            if (i % 100 == 0)
                step_open(m);
            steps[pick(m, ARRAY_LEN(steps))](m);
            check_counts(m);
        }
        int closed = 0;
        for (int i = 0; i < m->n_works; i++)
            closed += m->states[i] == WORK_CLOSED_STATE;
        assert_int_equal(m->n_items, ITEMS_MAX);
        assert_true(closed > 3);
        model_free(m);
    }
}

UNIT_MAIN(cmocka_unit_test(test_random_walk_against_a_model))
