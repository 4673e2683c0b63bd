/* proxy/loop: time limits in order, work at the end of a turn, sources that ended inside one. */
#include "../../helpers/unit.h"
#include "proxy/loop.h"
#include "sys/fd.h"

#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

static struct loop loop;
static int order[8];
static int n_order;

static void note(int what)
{
    assert_true(n_order < 8);
    order[n_order++] = what;
}

static int set_up(void **state)
{
    (void)state;
    n_order = 0;
    return loop_init(&loop);
}

static int tear_down(void **state)
{
    (void)state;
    return close(loop.epoll_fd);
}

static struct timer first, second, third;

static void expired(struct timer *t)
{
    note(t == &first ? 1 : t == &second ? 2 : 3);
    loop.stop = t == &third;
}

static void test_limits(void **state)
{
    (void)state;
    timer_init(&first, expired);
    timer_init(&second, expired);
    timer_init(&third, expired);
    timer_start(&loop, &first, LOOP_HEAD);
    timer_start(&loop, &second, LOOP_HEAD);
    timer_start(&loop, &third, LOOP_IDLE);
    assert_true(first.due_ms >= loop.now_ms + 30000);
    timer_stop(&first);
    timer_stop(&first);
    first.due_ms = second.due_ms = third.due_ms = 0; /* long ago */
    assert_int_equal(loop_run(&loop), 0);
    assert_int_equal(n_order, 2);
    assert_int_equal(order[0], 2);
    assert_int_equal(order[1], 3);
    assert_true(list_empty(&second.node));
}

static void test_limits_can_be_shorter(void **state)
{
    (void)state;
    assert_int_equal(loop_set_limit(&loop, "DIAL=200"), 0);
    timer_init(&first, expired);
    timer_start(&loop, &first, LOOP_DIAL);
    assert_int_equal(first.due_ms, loop.now_ms + 200);
    timer_stop(&first);
    assert_int_equal(loop_set_limit(&loop, "DIAL=10000"), 0);
    assert_int_equal(loop_set_limit(&loop, "HALF_QUIET=1"), 0);
    for (const char *const *bad =
             (const char *const[]){"DIAL=10001", "DIAL=0", "DIAL=", "DIAL=1s", NULL};
         *bad; bad++)
        assert_int_equal(loop_set_limit(&loop, *bad), -ERANGE);
    for (const char *const *bad =
             (const char *const[]){"", "=1", "DIAL", "DIALS=1", "dial=1", NULL};
         *bad; bad++)
        assert_int_equal(loop_set_limit(&loop, *bad), -ENOENT);
}

static void test_starting_again_moves_the_limit(void **state)
{
    (void)state;
    timer_init(&first, expired);
    timer_init(&third, expired);
    timer_start(&loop, &first, LOOP_HEAD);
    timer_start(&loop, &third, LOOP_HEAD);
    timer_start(&loop, &first, LOOP_HEAD); /* now behind the third */
    third.due_ms = 0;
    assert_int_equal(loop_run(&loop), 0);
    assert_int_equal(n_order, 1);
    assert_int_equal(order[0], 3);
    timer_stop(&first);
}

static struct deferred work;
static int runs;

static void again(struct deferred *d)
{
    if (++runs == 3)
        loop.stop = true;
    else
        loop_defer(&loop, d);
}

static void test_deferred_work_runs_once_a_turn(void **state)
{
    (void)state;
    runs = 0;
    deferred_init(&work, again);
    loop_defer(&loop, &work);
    loop_defer(&loop, &work);
    assert_int_equal(loop_run(&loop), 0);
    assert_int_equal(runs, 3);
}

static struct source one, two;

/* Whichever comes first closes the other, whose event of the same turn must not be delivered. */
static void close_other(struct source *s, uint32_t events)
{
    assert_true(events & EPOLLIN);
    note(1);
    loop_close(&loop, s == &one ? &two : &one);
    loop.stop = true;
}

static void test_events_of_closed_sources_are_dropped(void **state)
{
    (void)state;
    int a[2];
    int b[2];
    one.ready = two.ready = close_other;
    assert_int_equal(fd_socketpair(a), 0);
    assert_int_equal(fd_socketpair(b), 0);
    assert_int_equal(loop_add(&loop, &one, a[0]), 0);
    assert_int_equal(loop_add(&loop, &two, b[0]), 0);
    assert_int_equal(fd_write(a[1], "x", 1), 1);
    assert_int_equal(fd_write(b[1], "x", 1), 1);
    assert_int_equal(loop_run(&loop), 0);
    assert_int_equal(n_order, 1);
    loop_close(&loop, &one);
    loop_close(&loop, &two);
    close(a[1]);
    close(b[1]);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

UNIT_MAIN(CASE(test_limits), CASE(test_limits_can_be_shorter),
          CASE(test_starting_again_moves_the_limit), CASE(test_deferred_work_runs_once_a_turn),
          CASE(test_events_of_closed_sources_are_dropped))
