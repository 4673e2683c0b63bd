/* mcp/lane: one at a time, in order, and who quits does not hold the others up. */
#include "../../helpers/unit.h"
#include "mcp/lane.h"

struct waiter {
    struct lane_wait wait;
    int number;
};

static int order[8];
static int n_order;

static void go(struct lane_wait *w)
{
    order[n_order++] = container_of(w, struct waiter, wait)->number;
}

static void test_order(void **state)
{
    (void)state;
    struct lane lane;
    struct waiter w[4];
    n_order = 0;
    lane_init(&lane);
    for (int i = 0; i < 4; i++) {
        w[i] = (struct waiter){.wait.go = go, .number = i};
        assert_int_equal(lane_enter(&lane, &w[i].wait), i == 0 ? LANE_ENTERED : LANE_WAITS);
    }
    lane_quit(&lane, &w[2].wait);
    lane_leave(&lane);
    assert_int_equal(n_order, 1);
    lane_leave(&lane);
    lane_leave(&lane);
    assert_int_equal(n_order, 2);
    assert_int_equal(order[0], 1);
    assert_int_equal(order[1], 3);
    assert_false(lane.busy);
    assert_int_equal(lane_enter(&lane, &w[0].wait), LANE_ENTERED);
}

static void test_full(void **state)
{
    (void)state;
    struct lane lane;
    struct waiter w[LANE_WAITERS_MAX + 2];
    lane_init(&lane);
    for (unsigned i = 0; i < LANE_WAITERS_MAX + 1; i++) {
        w[i] = (struct waiter){.wait.go = go};
        assert_int_not_equal(lane_enter(&lane, &w[i].wait), LANE_FULL);
    }
    assert_int_equal(lane_enter(&lane, &w[LANE_WAITERS_MAX + 1].wait), LANE_FULL);
    lane_quit(&lane, &w[5].wait);
    assert_int_equal(lane_enter(&lane, &w[LANE_WAITERS_MAX + 1].wait), LANE_WAITS);
}

UNIT_MAIN(cmocka_unit_test(test_order), cmocka_unit_test(test_full))
