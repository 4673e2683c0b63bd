/* run with many processes: limits, turns, the list, the log on disk; and many in a row. */
#include "rig.h"

#include <sys/resource.h>

struct listing {
    bool arrived;
    size_t n;
    bool more;
    uint64_t serials[RUN_LIST_MAX];
    char commands[RUN_LIST_MAX][64];
    size_t live;
};

static void on_list(void *user, const struct run_listing *list, const struct err *failure)
{
    struct listing *l = user;
    assert_null(failure);
    l->arrived = true;
    l->n = list->n;
    l->more = list->more;
    l->live = 0;
    for (size_t i = 0; i < list->n; i++) {
        l->serials[i] = list->items[i].serial;
        l->live += list->items[i].state == RUN_RUNNING;
        snprintf(l->commands[i], sizeof(l->commands[i]), "%s", list->items[i].command);
    }
}

static void get_list(struct rig *rig, const struct run_list *ask, struct listing *ret)
{
    ret->arrived = false;
    runner_list(rig->runner, ask, on_list, ret);
    rig_until(rig, &ret->arrived);
}

static void test_list(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig);
    struct listing l;
    char ids[5][64];
    get_list(&rig, &(struct run_list){0}, &l);
    assert_int_equal(l.n, 0);
    for (int i = 0; i < 5; i++)
        rig_exec(&rig, &(struct run_exec){.argv = RIG_SH("exec cat")}, ids[i]);
    autoanswer a = {0};
    rig_terminate(&rig, ids[1]);
    rig_finish(&rig, ids[1], &a);
    get_list(&rig, &(struct run_list){0}, &l);
    assert_int_equal(l.n, 5);
    assert_int_equal(l.live, 4);
    assert_string_equal(l.commands[0], "/bin/sh -c exec cat");
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(l.serials[i], i + 1);
    get_list(&rig, &(struct run_list){.live_only = true}, &l);
    assert_int_equal(l.n, 4);
    get_list(&rig, &(struct run_list){.workspace_id = "other"}, &l);
    assert_int_equal(l.n, 0);
    get_list(&rig, &(struct run_list){.max = 2}, &l);
    assert_true(l.n == 2 && l.more);
    get_list(&rig, &(struct run_list){.max = 3, .after = l.serials[1]}, &l);
    assert_true(l.n == 3 && !l.more && l.serials[0] == 3);
    rig_stop(&rig);
}

static void test_limit_of_a_workspace(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig);
    rig.options.max_workspace_processes = 2;
    rig_run(&rig, 3);
    struct workspace other = rig.ws;
    other.id = (char *)"other";
    char id[64];
    for (int i = 0; i < 2; i++)
        rig_exec(&rig, &(struct run_exec){.argv = RIG_SH("exec cat")}, id);
    autoanswer a = {0};
    rig_exec_with(&rig, &(struct run_exec){.argv = RIG_SH("exec cat")}, &a);
    assert_int_equal(a.err.code, ERR_WORKSPACE_PROCESS_LIMIT);
    autoanswer b = {0};
    struct run_exec x = {.ws = &other, .argv = RIG_SH("exec cat")};
    runner_exec(rig.runner, &x, rig_on_exec, &b);
    rig_until(&rig, &b.arrived);
    assert_false(b.failed);
    autoanswer c = {0};
    runner_exec(rig.runner, &x, rig_on_exec, &c);
    rig_until(&rig, &c.arrived);
    assert_int_equal(c.err.code, ERR_PROCESS_LIMIT);
    rig_stop(&rig);
}

/* One that asks to be alone waits for the others, and the others for it, in order. */
static void test_exclusive(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig);
    char first[64], id[64];
    rig_exec(&rig, &(struct run_exec){.argv = RIG_SH("echo 1 >>log; echo up; exec cat")}, first);
    rig_expect(&rig, first, "up\n");
    struct run_exec alone = {.ws = &rig.ws, .argv = RIG_SH("echo 2 >>log"), .exclusive = true};
    struct run_exec after = {.ws = &rig.ws, .argv = RIG_SH("echo 3 >>log; cat log")};
    autoanswer a = {0}, b = {0}, end = {0};
    runner_exec(rig.runner, &alone, rig_on_exec, &a);
    runner_exec(rig.runner, &after, rig_on_exec, &b);
    autoanswer late = {0};
    rig_exec_with(&rig,
                  &(struct run_exec){
                      .argv = RIG_SH("echo 4 >>log"), .exclusive = true, .exclusive_wait_ms = 50},
                  &late);
    assert_int_equal(late.err.code, ERR_WORKSPACE_BUSY);
    assert_non_null(strstr(late.err.message, "nothing was run"));
    assert_false(a.arrived || b.arrived);
    rig_terminate(&rig, first);
    rig_until(&rig, &b.arrived);
    assert_true(a.arrived && !a.failed && !b.failed);
    memcpy(id, b.id, sizeof(id));
    rig_finish(&rig, id, &end);
    assert_string_equal(buf_bytes(&end.bytes), "1\n2\n3\n");
    rig_stop(&rig);
}

/* Cancelled and ended while it waits; and a runner that goes lets nobody in. */
static void test_waiting_can_be_given_up(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig);
    char first[64];
    rig_exec(&rig, &(struct run_exec){.argv = RIG_SH("exec cat")}, first);
    struct run_exec alone = {.ws = &rig.ws, .argv = RIG_SH("touch ran"), .exclusive = true};
    autoanswer a = {0}, b = {0};
    run_ticket t = runner_exec(rig.runner, &alone, rig_on_exec, &a);
    runner_cancel(rig.runner, t);
    struct run_exec named = alone;
    named.process_id = "proc-mine";
    runner_exec(rig.runner, &named, rig_on_exec, &b);
    rig_terminate(&rig, "proc-mine");
    rig_until(&rig, &b.arrived);
    assert_int_equal(b.err.code, ERR_CANCELLED);
    autoanswer again = {0};
    rig_exec_with(&rig, &(struct run_exec){.argv = RIG_SH("exit 0")}, &again);
    assert_false(again.failed);
    runner_exec(rig.runner, &alone, rig_on_exec, &a);
    autofree char *ran = mem_printf("%s/ran", rig.ws.root);
    assert_int_equal(access(ran, F_OK), -1);
    rig_stop(&rig);
}

/* L11, E11: far beyond the ring; head, tail, lines. */
static void test_output_beyond_the_ring(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig);
    char id[64];
    autoanswer end = {0};
    rig_exec(&rig, &(struct run_exec){.argv = RIG_SH("seq 0 499999; read x; echo last >&2")}, id);
    autoanswer all = {0}, w = {0}; /* the two streams are two pipes: one after the other here */
    rig_read(&rig, id, &(struct run_read){.cursor = 3388889, .wait_ms = RIG_WAIT_MS}, &all);
    rig_write(&rig, id, "\n", 1, false, &w);
    rig_read(&rig, id, &(struct run_read){.wait_ms = RIG_WAIT_MS, .until_exit = true}, &end);
    assert_false(end.lost);
    assert_int_equal(end.status.output_total, 3388890 + 5);
    assert_int_equal(end.status.output_retained_from, 0);
    assert_int_equal(end.status.output_dropped, 0);
    assert_memory_equal(buf_bytes(&end.bytes), "0\n1\n2\n", 6);
    autoanswer line = {0};
    rig_read(&rig, id, &(struct run_read){.from = RUN_FROM_LINE, .cursor = 123456, .max_bytes = 14},
             &line);
    assert_string_equal(buf_cstr(&line.bytes), "123456\n123457\n");
    autoanswer tail = {0};
    rig_read(&rig, id, &(struct run_read){.from = RUN_FROM_TAIL_LINES, .cursor = 2}, &tail);
    assert_string_equal(buf_cstr(&tail.bytes), "499999\nlast\n");
    autoanswer bytes = {0};
    rig_read(&rig, id, &(struct run_read){.from = RUN_FROM_TAIL_BYTES, .cursor = 5}, &bytes);
    assert_string_equal(buf_cstr(&bytes.bytes), "last\n");
    autoanswer err = {0};
    rig_read(&rig, id, &(struct run_read){.stream = RUN_STDERR}, &err);
    assert_string_equal(buf_cstr(&err.bytes), "last\n");
    rig_stop(&rig);
}

/* B4: the status is the command's, whatever the disk says. */
static void test_full_disk_keeps_the_status(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig);
    rig.options.spill_dir = "/nowhere/at/all";
    rig_run(&rig, 0);
    autoanswer a = {0};
    rig_sh(&rig, "head -c 400000 /dev/zero; exit 7", &a);
    assert_int_equal(a.status.exit_code, 7);
    assert_true(a.lost);
    assert_non_null(strstr(a.output_failed, "could not be stored"));
    autoanswer b = {0};
    rig_sh(&rig, "echo hi", &b);
    assert_string_equal(a.reason, "");
    assert_string_equal(b.output_failed, "");
    rig_stop(&rig);
}

static void test_clean_reading(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig);
    char id[64];
    rig_exec(&rig,
             &(struct run_exec){
                 .argv = RIG_SH("printf 'a\\n 10%%\\r 50%%\\r\\033[32m100%%\\033[0m\\nend'"),
                 .tty = true},
             id);
    autoanswer raw = {0}, clean = {0}, first = {0};
    rig_finish(&rig, id, &raw);
    rig_read(&rig, id, &(struct run_read){.clean = true}, &clean);
    assert_string_equal(buf_cstr(&clean.bytes), "a\n100%\nend");
    assert_int_equal(clean.cursor, raw.cursor);
    rig_read(&rig, id, &(struct run_read){.clean = true, .max_bytes = 6}, &first);
    assert_string_equal(buf_cstr(&first.bytes), "a\n"); /* the bar comes whole, with the next */
    assert_int_equal(first.cursor, 3);
    rig_stop(&rig);
}

/* The same again and again leaves nothing: rig_stop counts descriptors, children and handles. */
static void test_many_in_a_row(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig);
    int fds = 0;
    for (int i = 0; i < 500; i++) {
        autoanswer a = {0};
        rig_sh(&rig, "echo x; exit 3", &a);
        assert_int_equal(a.status.exit_code, 3);
        if (i == 100)
            fds = rig_count_fds();
    }
    assert_int_equal(rig_count_fds(), fds);
    rig_stop(&rig);
}

/* A thousand live at once, each answers, and all are gone together. */
static void test_a_thousand_at_once(void **state)
{
    (void)state;
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = limit.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    if (limit.rlim_cur < 4500)
        fail_msg("this test needs 4500 descriptors (ulimit -n is %llu)",
                 (unsigned long long)limit.rlim_cur);
    struct rig rig;
    rig_open(&rig);
    rig_run(&rig, RUN_PROCESSES_MAX);
    autofree char *sleep = rig_sleep(7);
    autofree char *line = mem_printf("exec %s", sleep);
    enum { N = 1000 };
    struct rig_answer *a = mem_zalloc(N, sizeof(*a));
    struct run_exec x = {.ws = &rig.ws, .argv = RIG_SH(line)};
    for (int i = 0; i < N; i++)
        runner_exec(rig.runner, &x, rig_on_exec, &a[i]);
    for (int i = 0; i < N; i++) {
        rig_until(&rig, &a[i].arrived);
        assert_false(a[i].failed);
    }
    struct listing l;
    uint64_t after = 0;
    size_t live = 0;
    do {
        get_list(&rig, &(struct run_list){.after = after}, &l);
        live += l.live;
        after = l.n > 0 ? l.serials[l.n - 1] : after;
    } while (l.more);
    assert_int_equal(live, N);
    rig_stop(&rig);
    rig_expect_no_survivor(sleep);
    free(a);
}

/* Processes of the gateway's own: no list shows them, an exclusive command does not hold them up,
 * and to end one that has ended drops its record. */
static void test_own(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig);
    struct listing l;
    char id[64];
    char alone[64];
    rig_exec(&rig, &(struct run_exec){.argv = RIG_SH("exec cat"), .exclusive = true}, alone);
    rig_exec(&rig, &(struct run_exec){.argv = RIG_SH("echo found"), .process_id = "own-1"}, id);
    assert_string_equal(id, "own-1");
    autoanswer a = {0};
    rig_finish(&rig, id, &a);
    assert_string_equal(buf_cstr(&a.bytes), "found\n");
    get_list(&rig, &(struct run_list){0}, &l);
    assert_int_equal(l.n, 1);
    assert_string_equal(l.commands[0], "/bin/sh -c exec cat");
    rig_terminate(&rig, id);
    autoanswer gone = {0};
    runner_status(rig.runner, id, rig_on_status, &gone);
    rig_until(&rig, &gone.arrived);
    assert_int_equal(gone.err.code, ERR_PROCESS_NOT_FOUND);
    rig_stop(&rig);
}

UNIT_MAIN(cmocka_unit_test(test_list), cmocka_unit_test(test_own),
          cmocka_unit_test(test_limit_of_a_workspace), cmocka_unit_test(test_exclusive),
          cmocka_unit_test(test_waiting_can_be_given_up),
          cmocka_unit_test(test_output_beyond_the_ring),
          cmocka_unit_test(test_full_disk_keeps_the_status), cmocka_unit_test(test_clean_reading),
          cmocka_unit_test(test_many_in_a_row), cmocka_unit_test(test_a_thousand_at_once))
