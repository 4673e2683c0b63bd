/* run/gate: turns on a root: side by side, alone, first come first served. */
#include "../../helpers/unit.h"
#include "base/mem.h"
#include "run/gate.h"
#include "run/runner.h"

struct user {
    struct pass pass;
    int opened;
};

static void opens(void *user, struct pass *p)
{
    container_of(p, struct user, pass)->opened++;
    ++*(int *)user;
}

static void fill(struct user *u, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        u[i].opened = 0;
        pass_init(&u[i].pass);
    }
}

static void test_side_by_side(void **state)
{
    (void)state;
    struct gate g;
    struct user u[3];
    int n = 0;
    gate_init(&g, opens, &n);
    fill(u, 3);
    assert_true(gate_enter(&g, &u[0].pass, 1, 1, false));
    assert_true(gate_enter(&g, &u[1].pass, 1, 1, false));
    assert_true(gate_enter(&g, &u[2].pass, 1, 2, true)); /* another root */
    for (int i = 0; i < 3; i++)
        pass_leave(&u[i].pass);
    pass_leave(&u[0].pass); /* twice is fine */
    assert_int_equal(n, 0);
    gate_fini(&g);
}

/* Who asks to be alone waits for those before it, and those after it wait behind it. */
static void test_alone_in_order(void **state)
{
    (void)state;
    struct gate g;
    struct user u[5];
    int n = 0;
    gate_init(&g, opens, &n);
    fill(u, 5);
    assert_true(gate_enter(&g, &u[0].pass, 1, 1, false));
    assert_false(gate_enter(&g, &u[1].pass, 1, 1, true));
    assert_false(gate_enter(&g, &u[2].pass, 1, 1, false));
    assert_false(gate_enter(&g, &u[3].pass, 1, 1, false));
    assert_false(gate_enter(&g, &u[4].pass, 1, 1, true));
    pass_leave(&u[0].pass);
    assert_int_equal(u[1].opened, 1);
    assert_int_equal(n, 1);
    pass_leave(&u[1].pass);
    assert_int_equal(u[2].opened + u[3].opened, 2); /* both at once */
    assert_int_equal(u[4].opened, 0);
    pass_leave(&u[2].pass);
    assert_int_equal(u[4].opened, 0);
    pass_leave(&u[3].pass);
    assert_int_equal(u[4].opened, 1);
    pass_leave(&u[4].pass);
    gate_fini(&g);
}

/* One that gives up waiting frees those behind it. */
static void test_giving_up(void **state)
{
    (void)state;
    struct gate g;
    struct user u[3];
    int n = 0;
    gate_init(&g, opens, &n);
    fill(u, 3);
    gate_enter(&g, &u[0].pass, 1, 1, false);
    gate_enter(&g, &u[1].pass, 1, 1, true);
    gate_enter(&g, &u[2].pass, 1, 1, false);
    pass_leave(&u[1].pass);
    assert_int_equal(u[2].opened, 1);
    pass_leave(&u[2].pass);
    pass_leave(&u[0].pass);
    gate_fini(&g);
}

static void test_closed_lets_nobody_in(void **state)
{
    (void)state;
    struct gate g;
    struct user u[2];
    int n = 0;
    gate_init(&g, opens, &n);
    fill(u, 2);
    gate_enter(&g, &u[0].pass, 1, 1, true);
    gate_enter(&g, &u[1].pass, 1, 1, false);
    gate_close(&g);
    pass_leave(&u[0].pass);
    assert_int_equal(n, 0);
    pass_leave(&u[1].pass);
    gate_fini(&g);
}

static void test_queue_is_bounded(void **state)
{
    (void)state;
    struct gate g;
    struct user *u = mem_zalloc(RUN_QUEUE_MAX + 1, sizeof(*u));
    struct err e = {0};
    int n = 0;
    gate_init(&g, opens, &n);
    fill(u, RUN_QUEUE_MAX + 1);
    gate_enter(&g, &u[0].pass, 1, 1, true);
    for (size_t i = 1; i <= RUN_QUEUE_MAX; i++) {
        assert_int_equal(gate_check_room(&g, 1, 1, false, &e), 0);
        gate_enter(&g, &u[i].pass, 1, 1, false);
    }
    assert_int_equal(gate_check_room(&g, 1, 1, false, &e), -1);
    assert_int_equal(e.code, ERR_RESOURCE_QUEUE_FULL);
    assert_int_equal(gate_check_room(&g, 1, 2, true, &e), 0);
    pass_leave(&u[0].pass);
    assert_int_equal(n, RUN_QUEUE_MAX);
    for (size_t i = 1; i <= RUN_QUEUE_MAX; i++)
        pass_leave(&u[i].pass);
    gate_fini(&g);
    free(u);
}

UNIT_MAIN(cmocka_unit_test(test_side_by_side), cmocka_unit_test(test_alone_in_order),
          cmocka_unit_test(test_giving_up), cmocka_unit_test(test_closed_lets_nobody_in),
          cmocka_unit_test(test_queue_is_bounded))
