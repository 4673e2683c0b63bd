/* run/process: the table is whole, and the rows that carry a rule say what the rule says. */
#include "../../helpers/unit.h"
#include "run/process.h"
#include "run/runner.h"

static void test_every_pair_is_defined(void **state)
{
    (void)state;
    for (int s = 0; s < PROCESS_STATE_MAX; s++) {
        for (int e = 0; e < PROCESS_EVENT_MAX; e++) {
            struct process_step step = process_step((enum process_state)s, (enum process_event)e);
            if (step.action == PROCESS_DO_UNDEFINED)
                fail_msg("%s on %s has no row", process_state_name((enum process_state)s),
                         process_event_name((enum process_event)e));
            assert_true(step.next < PROCESS_STATE_MAX);
        }
    }
}

/* What has ended stays ended, whatever comes. */
static void test_ends_are_final(void **state)
{
    (void)state;
    for (int e = 0; e < PROCESS_EVENT_MAX; e++) {
        static const enum process_state finals[] = {PROCESS_ENDED, PROCESS_FAILED};
        for (size_t i = 0; i < 2; i++) {
            struct process_step step = process_step(finals[i], (enum process_event)e);
            assert_int_equal(step.next, finals[i]);
            assert_int_equal(step.action, PROCESS_DO_NOTHING);
        }
    }
}

/* A state only goes forward, and nothing runs after a refusal. */
static void test_no_way_back(void **state)
{
    (void)state;
    for (int s = 0; s < PROCESS_STATE_MAX; s++) {
        for (int e = 0; e < PROCESS_EVENT_MAX; e++)
            assert_true(process_step((enum process_state)s, (enum process_event)e).next >=
                        (enum process_state)s);
    }
}

/* From everywhere there is a path to an end by the events that we can bring about ourselves. */
static void test_every_state_can_end(void **state)
{
    (void)state;
    static const enum process_event ours[] = {PROCESS_ON_TERMINATE, PROCESS_ON_TIMER,
                                              PROCESS_ON_REAPED};
    for (int s = 0; s < PROCESS_STATE_MAX; s++) {
        enum process_state at = (enum process_state)s;
        for (int round = 0; round < 3; round++) {
            for (size_t i = 0; i < 3; i++)
                at = process_step(at, ours[i]).next;
        }
        assert_true(at == PROCESS_ENDED || at == PROCESS_FAILED);
    }
}

struct row {
    enum process_state state;
    enum process_event event;
    enum process_state next;
    enum process_action action;
};

static void test_rules(void **state)
{
    (void)state;
    static const struct row rows[] = {
        /* the first intent wins */
        {PROCESS_ENDING, PROCESS_ON_TERMINATE, PROCESS_ENDING, PROCESS_DO_HASTEN},
        {PROCESS_ENDING, PROCESS_ON_IDLE, PROCESS_ENDING, PROCESS_DO_NOTHING},
        {PROCESS_KILLING, PROCESS_ON_TERMINATE, PROCESS_KILLING, PROCESS_DO_NOTHING},
        {PROCESS_RUNNING, PROCESS_ON_TIMER, PROCESS_ENDING, PROCESS_DO_TIME_OUT},
        {PROCESS_RUNNING, PROCESS_ON_IDLE, PROCESS_ENDING, PROCESS_DO_IDLE_OUT},
        /* an end that is known keeps its name */
        {PROCESS_DRAINING, PROCESS_ON_TERMINATE, PROCESS_DRAINING, PROCESS_DO_NOTHING},
        {PROCESS_DRAINING, PROCESS_ON_TIMER, PROCESS_ENDED, PROCESS_DO_FINISH},
        /* TERM, then KILL */
        {PROCESS_ENDING, PROCESS_ON_TIMER, PROCESS_KILLING, PROCESS_DO_KILL},
        /* R14: nothing goes from a failed preparation to a run */
        {PROCESS_PREPARING, PROCESS_ON_REFUSED, PROCESS_FAILED, PROCESS_DO_REFUSE},
        {PROCESS_PREPARING, PROCESS_ON_HOST, PROCESS_PREPARING, PROCESS_DO_NOTHING},
        {PROCESS_PREPARING, PROCESS_ON_LOST, PROCESS_PREPARING, PROCESS_DO_NUDGE},
        {PROCESS_PREPARING, PROCESS_ON_REAPED, PROCESS_FAILED, PROCESS_DO_REFUSE},
        {PROCESS_STARTING, PROCESS_ON_LOST, PROCESS_STARTING, PROCESS_DO_NUDGE},
        {PROCESS_STARTING, PROCESS_ON_REAPED, PROCESS_FAILED, PROCESS_DO_REFUSE},
        /* what a command leaves lives on, unless an end was asked for */
        {PROCESS_RUNNING, PROCESS_ON_KEPT, PROCESS_KEPT, PROCESS_DO_KEEP},
        {PROCESS_ENDING, PROCESS_ON_KEPT, PROCESS_KILLING, PROCESS_DO_KILL},
        {PROCESS_KILLING, PROCESS_ON_KEPT, PROCESS_KILLING, PROCESS_DO_KILL},
        {PROCESS_KEPT, PROCESS_ON_TERMINATE, PROCESS_ENDING, PROCESS_DO_TERMINATE},
        {PROCESS_KEPT, PROCESS_ON_TIMER, PROCESS_ENDING, PROCESS_DO_TIME_OUT},
        {PROCESS_KEPT, PROCESS_ON_VERDICT, PROCESS_DRAINING, PROCESS_DO_DRAIN},
        {PROCESS_KEPT, PROCESS_ON_REAPED, PROCESS_DRAINING, PROCESS_DO_DRAIN},
        /* closed output is not the end */
        {PROCESS_RUNNING, PROCESS_ON_DRAINED, PROCESS_RUNNING, PROCESS_DO_NOTHING},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct process_step step = process_step(rows[i].state, rows[i].event);
        assert_int_equal(step.next, rows[i].next);
        assert_int_equal(step.action, rows[i].action);
    }
}

/* The names are a public contract. */
static void test_names(void **state)
{
    (void)state;
    assert_string_equal(run_state_name(RUN_RUNNING), "running");
    assert_string_equal(run_state_name(RUN_EXITED), "exited");
    assert_string_equal(run_termination_name(RUN_END_NONE), "");
    assert_string_equal(run_termination_name(RUN_END_EXITED), "exited");
    assert_string_equal(run_termination_name(RUN_END_SIGNALED), "signaled");
    assert_string_equal(run_termination_name(RUN_END_TIMEOUT), "timeout");
    assert_string_equal(run_termination_name(RUN_END_TERMINATED), "terminated");
    assert_string_equal(run_termination_name(RUN_END_WRAPPER_FAILED), "wrapper_failed");
    assert_string_equal(run_termination_name(RUN_END_LOST), "lost");
    assert_string_equal(run_termination_name(RUN_END_LIMIT), "limit");
}

UNIT_MAIN(cmocka_unit_test(test_every_pair_is_defined), cmocka_unit_test(test_ends_are_final),
          cmocka_unit_test(test_no_way_back), cmocka_unit_test(test_every_state_can_end),
          cmocka_unit_test(test_rules), cmocka_unit_test(test_names))
