/* run/follow: who counts as a reader that follows, and for how long. */
#include "../../helpers/unit.h"
#include "run/follow.h"

static void expect(const struct follow *f, uint64_t now_ms, uint64_t from)
{
    uint64_t got = 0;
    assert_true(follow_from(f, now_ms, &got));
    assert_int_equal(got, from);
}

static void expect_nobody(const struct follow *f, uint64_t now_ms)
{
    uint64_t got = 0;
    assert_false(follow_from(f, now_ms, &got));
}

/* One look is no following, at whatever place; going on is. */
static void test_going_on(void **state)
{
    (void)state;
    struct follow f = {0};
    expect_nobody(&f, 1);
    follow_note(&f, 0, 100, 10);
    follow_note(&f, 5000, 5100, 11);
    expect_nobody(&f, 11);
    follow_note(&f, 100, 100, 12); /* there was nothing yet */
    expect_nobody(&f, 12);
    follow_note(&f, 100, 300, 13);
    expect(&f, 13, 300);
    expect(&f, 13 + FOLLOW_MS, 300);
    expect_nobody(&f, 14 + FOLLOW_MS);
    follow_note(&f, 300, 400, 20000); /* and is back */
    expect(&f, 20000, 400);
}

/* The slowest of several counts; more than there is room for replace who was away longest. */
static void test_several(void **state)
{
    (void)state;
    struct follow f = {0};
    for (uint64_t i = 0; i < FOLLOW_READERS_MAX; i++) {
        follow_note(&f, 1000 * i, 1000 * i + 1, 10 + i);
        follow_note(&f, 1000 * i + 1, 1000 * i + 2, 10 + i);
    }
    expect(&f, 20, 2);
    follow_note(&f, 1002, 1003, 30);
    follow_note(&f, 77, 78, 31); /* in the place of the first */
    expect(&f, 31, 1003);
    follow_note(&f, 78, 79, 32);
    expect(&f, 32, 79);
}

UNIT_MAIN(cmocka_unit_test(test_going_on), cmocka_unit_test(test_several))
