/* core/spread: each item once, whatever their number; the first failure is told, and when it is
 * told nothing runs any more. */
#include "../../helpers/unit.h"
#include "core/spread.h"

#include <sched.h>
#include <stdatomic.h>

#define MOST 1000

struct run {
    atomic_uint times[MOST];
    size_t fails; /* this one and all above it */
    atomic_uint running;
};

static int step(void *user, size_t i)
{
    struct run *r = user;
    atomic_fetch_add(&r->running, 1);
    atomic_fetch_add(&r->times[i], 1);
    int rc = i >= r->fails ? -(int)(i + 1) : 0;
    atomic_fetch_sub(&r->running, 1);
    return rc;
}

static void test_each_once(void **state)
{
    (void)state;
    for (size_t n = 0; n <= MOST; n = n < 70 ? n + 1 : n * 3 / 2 + 1) {
        struct run r = {.fails = MOST};
        size_t failed = 99;
        assert_int_equal(spread(n, step, &r, &failed), 0);
        assert_int_equal(failed, 99);
        for (size_t i = 0; i < MOST; i++)
            assert_int_equal(r.times[i], i < n);
    }
}

static void test_the_first_failure_is_told(void **state)
{
    (void)state;
    for (size_t fails = 0; fails < MOST; fails += 37) {
        struct run r = {.fails = fails};
        size_t failed = MOST;
        int rc = spread(MOST, step, &r, &failed);
        assert_int_equal(r.running, 0);
        /* One of those that fail; the very first, unless another thread was quicker. */
        assert_true(failed >= fails && failed < MOST);
        assert_int_equal(rc, -(int)(failed + 1));
        assert_int_equal(r.times[failed], 1);
        for (size_t i = 0; i < MOST; i++)
            assert_true(r.times[i] <= 1);
    }
}

static void test_few_stay_with_the_caller(void **state)
{
    (void)state;
    struct run r = {.fails = 5};
    size_t failed = MOST;
    assert_int_equal(spread(SPREAD_FROM - 1, step, &r, &failed), -6);
    assert_int_equal(failed, 5);
    for (size_t i = 6; i < MOST; i++)
        assert_int_equal(r.times[i], 0);
}

/* One processor: one thread, and the same outcome. */
static void test_one_processor(void **state)
{
    (void)state;
    cpu_set_t before;
    cpu_set_t one;
    assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
    CPU_ZERO(&one);
    for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; cpu++) {
        if (CPU_ISSET(cpu, &before))
            CPU_SET(cpu, &one);
    }
    assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
    struct run r = {.fails = 700};
    size_t failed = MOST;
    assert_int_equal(spread(MOST, step, &r, &failed), -701);
    assert_int_equal(failed, 700);
    assert_int_equal(r.times[699], 1);
    assert_int_equal(r.times[701], 0);
    assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
}

UNIT_MAIN(cmocka_unit_test(test_each_once), cmocka_unit_test(test_the_first_failure_is_told),
          cmocka_unit_test(test_few_stay_with_the_caller), cmocka_unit_test(test_one_processor))
