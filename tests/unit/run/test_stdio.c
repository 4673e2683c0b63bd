/* run/stdio, run/wait: input with its limits, the log as readers see it, long polls, terminals. */
#include "rig.h"

static void test_stdin_roundtrip_and_eof(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig);
    char id[64];
    rig_exec(&rig, &(struct run_exec){.argv = RIG_SH("cat")}, id);
    autoanswer w = {0}, e = {0}, late = {0}, ended = {0}, a = {0};
    rig_write(&rig, id, "line\0with nul\n", 14, false, &w);
    assert_false(w.failed);
    rig_expect(&rig, id, "line");
    rig_write(&rig, id, "last", 4, true, &e);
    assert_false(e.failed);
    rig_finish(&rig, id, &a);
    assert_memory_equal(buf_bytes(&a.bytes), "line\0with nul\nlast", 18);
    assert_int_equal(a.status.exit_code, 0);
    rig_write(&rig, id, "x", 1, false, &ended);
    assert_int_equal(ended.err.code, ERR_PROCESS_NOT_RUNNING);
    rig_write(&rig, "proc-none", "x", 1, false, &late);
    assert_int_equal(late.err.code, ERR_PROCESS_NOT_FOUND);
    rig_stop(&rig);
}

static void test_write_after_eof(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig);
    char id[64];
    rig_exec(&rig, &(struct run_exec){.argv = RIG_SH("cat; echo eof; sleep 600")}, id);
    autoanswer e = {0}, late = {0};
    rig_write(&rig, id, "", 0, true, &e);
    assert_false(e.failed);
    rig_expect(&rig, id, "eof\n");
    rig_write(&rig, id, "x", 1, false, &late);
    assert_int_equal(late.err.code, ERR_STDIN_CLOSED);
    rig_stop(&rig);
}

static void test_given_stdin(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig);
    /* More than a pipe holds, so that part of it waits. */
    autobuf data = BUF_INIT;
    for (int i = 0; i < 60000; i++)
        buf_printf(&data, "%09d\n", i);
    char id[64];
    rig_exec(&rig,
             &(struct run_exec){.argv = RIG_SH("sha256sum; wc -c"),
                                .stdin_data = buf_bytes(&data),
                                .stdin_len = data.len},
             id);
    autoanswer a = {0};
    rig_finish(&rig, id, &a);
    autofree char *path = mem_printf("%s/data", rig.ws.root);
    rig_write_file(path, buf_cstr(&data), 0644);
    autoanswer b = {0};
    rig_sh(&rig, "sha256sum <data; echo 0", &b);
    assert_string_equal(buf_bytes(&a.bytes), buf_bytes(&b.bytes));
    rig_stop(&rig);
}

/* A process that does not read: a named limit, and nothing of the refused write is taken. */
static void test_stdin_is_bounded(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig);
    char id[64];
    rig_exec(&rig, &(struct run_exec){.argv = RIG_SH("read go; cat | wc -c")}, id);
    char *mib = mem_zalloc(RUN_STDIN_MAX, 1);
    memset(mib, 'x', RUN_STDIN_MAX);
    size_t taken = 0;
    for (int i = 0; i < 4; i++) {
        autoanswer w = {0};
        rig_write(&rig, id, mib, RUN_STDIN_MAX / 2, false, &w);
        taken += w.failed ? 0 : RUN_STDIN_MAX / 2;
        if (w.failed) {
            assert_int_equal(w.err.code, ERR_STDIN_FULL);
            assert_non_null(strstr(w.err.message, "RUN_STDIN_MAX"));
        }
    }
    assert_true(taken >= RUN_STDIN_MAX && taken < 2 * RUN_STDIN_MAX);
    rig_terminate(&rig, id);
    autoanswer a = {0};
    rig_finish(&rig, id, &a);
    free(mib);
    rig_stop(&rig);
}

static void test_stdin_closed_by_the_process(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig);
    char id[64];
    rig_exec(&rig, &(struct run_exec){.argv = RIG_SH("exec <&-; echo closed; exec sleep 600")}, id);
    rig_expect(&rig, id, "closed\n");
    autoanswer first = {0}, second = {0};
    rig_write(&rig, id, "x", 1, false, &first);
    assert_int_equal(first.err.code, ERR_STDIN_CLOSED);
    rig_write(&rig, id, "x", 1, false, &second);
    assert_int_equal(second.err.code, ERR_STDIN_CLOSED);
    rig_stop(&rig);
}

/* E11, L11: memory is flat, the loss is told to the reader whom it hits and to no other. */
static void test_ring_overflow(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig);
    rig.options.spill_off = true;
    rig_run(&rig, 0);
    autoanswer a = {0};
    char id[64];
    rig_exec(&rig, &(struct run_exec){.argv = RIG_SH("seq 1 100000; echo end")}, id);
    autoanswer done = {0};
    rig_read(&rig, id, &(struct run_read){.wait_ms = RIG_WAIT_MS, .until_exit = true}, &done);
    uint64_t total = done.status.output_total;
    assert_int_equal(total, 588895 + 4);
    assert_int_equal(done.status.output_retained_from, total - RUN_RING_BYTES);
    assert_true(done.lost);
    assert_int_equal(done.bytes.len, RUN_PAGE_DEFAULT);
    assert_int_equal(done.cursor, total - RUN_RING_BYTES + RUN_PAGE_DEFAULT);
    rig_read(&rig, id, &(struct run_read){.cursor = done.cursor, .max_bytes = RUN_PAGE_MAX}, &a);
    assert_false(a.lost);
    assert_int_equal(a.cursor, total);
    assert_memory_equal(buf_bytes(&a.bytes) + a.bytes.len - 11, "100000\nend\n", 11);
    rig_stop(&rig);
}

static void test_flood_is_bounded_and_others_live(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig);
    char id[64];
    rig_exec(&rig, &(struct run_exec){.argv = RIG_SH("exec yes"), .timeout_ms = 600000}, id);
    rig_expect(&rig, id, "y\ny\n");
    for (int i = 0; i < 20; i++) {
        autoanswer a = {0};
        rig_sh(&rig, "echo quick", &a);
        assert_string_equal(buf_bytes(&a.bytes), "quick\n");
    }
    autoanswer s = {0}; /* it still runs, and all that it says goes by */
    rig_read(&rig, id, &(struct run_read){.cursor = 10 * RUN_RING_BYTES, .wait_ms = RIG_WAIT_MS},
             &s);
    assert_true(s.status.output_total > 10 * RUN_RING_BYTES);
    assert_int_equal(s.status.state, RUN_RUNNING);
    rig_stop(&rig);
}

static void test_pages_keep_characters_whole(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig);
    autoanswer a = {0};
    rig_sh(&rig, "printf 'ab\\342\\202\\254\\342\\202\\254c\\342\\202'", &a);
    autobuf all = BUF_INIT;
    uint64_t cursor = 0;
    for (int i = 0; i < 10 && cursor < 11; i++) {
        autoanswer p = {0};
        rig_read(&rig, a.id,
                 &(struct run_read){.cursor = cursor, .max_bytes = 4, .whole_chars = true}, &p);
        assert_true(p.bytes.len > 0 && p.bytes.len <= 4);
        assert_int_equal(p.cursor, cursor + p.bytes.len);
        buf_put(&all, buf_bytes(&p.bytes), p.bytes.len);
        cursor = p.cursor;
        if (i == 0)
            assert_int_equal(p.bytes.len, 2); /* "ab": the sign would be cut */
    }
    assert_int_equal(all.len, 11);
    assert_memory_equal(buf_bytes(&all),
                        "ab\xe2\x82\xac\xe2\x82\xac"
                        "c\xe2\x82",
                        11);
    rig_stop(&rig);
}

static void test_long_poll(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig);
    char id[64];
    rig_exec(&rig,
             &(struct run_exec){.argv = RIG_SH("read x; echo out; read x; echo err >&2; read x")},
             id);
    autoanswer nothing = {0}, out = {0}, err = {0}, end = {0};
    struct rig_answer w[3] = {{0}};
    rig_read(&rig, id, &(struct run_read){.wait_ms = 30}, &nothing);
    assert_int_equal(nothing.bytes.len, 0);
    assert_int_equal(nothing.status.state, RUN_RUNNING);
    struct run_read ask = {.process_id = id, .wait_ms = RIG_WAIT_MS};
    assert_int_not_equal(runner_read(rig.runner, &ask, rig_on_page, &out), 0);
    ask.stream = RUN_STDERR;
    assert_int_not_equal(runner_read(rig.runner, &ask, rig_on_page, &err), 0);
    ask.until_exit = true;
    assert_int_not_equal(runner_read(rig.runner, &ask, rig_on_page, &end), 0);
    rig_write(&rig, id, "\n", 1, false, &w[0]);
    rig_until(&rig, &out.arrived);
    assert_string_equal(buf_cstr(&out.bytes), "out\n");
    assert_false(err.arrived);
    rig_write(&rig, id, "\n", 1, false, &w[1]);
    rig_until(&rig, &err.arrived);
    assert_string_equal(buf_cstr(&err.bytes), "err\n");
    assert_false(end.arrived);
    rig_write(&rig, id, "\n", 1, false, &w[2]);
    rig_until(&rig, &end.arrived);
    assert_int_equal(end.status.state, RUN_EXITED);
    assert_true(end.status.eof);
    rig_stop(&rig);
}

struct canceller {
    struct runner *runner;
    run_ticket victim;
    struct rig_answer answer;
};

static void cancel_other(void *user, const struct run_page *page, const struct err *failure)
{
    struct canceller *c = user;
    runner_cancel(c->runner, c->victim);
    rig_on_page(&c->answer, page, failure);
}

/* A callback may cancel the next one in the same list. */
static void test_cancel(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig);
    char id[64];
    rig_exec(&rig, &(struct run_exec){.argv = RIG_SH("read x; echo out; read x")}, id);
    autoanswer never = {0}, too = {0}, w = {0};
    struct canceller c = {.runner = rig.runner};
    struct run_read ask = {.process_id = id, .wait_ms = RIG_WAIT_MS};
    run_ticket first = runner_read(rig.runner, &ask, rig_on_page, &never);
    runner_read(rig.runner, &ask, cancel_other, &c);
    c.victim = runner_read(rig.runner, &ask, rig_on_page, &too);
    runner_cancel(rig.runner, first);
    runner_cancel(rig.runner, first);
    runner_cancel(rig.runner, 0);
    rig_write(&rig, id, "\n", 1, false, &w);
    rig_until(&rig, &c.answer.arrived);
    rig_terminate(&rig, id);
    autoanswer end = {0};
    rig_finish(&rig, id, &end);
    assert_false(never.arrived);
    assert_false(too.arrived);
    rig_answer_fini(&c.answer);
    rig_stop(&rig);
}

static void free_runner(void *user, const struct run_page *page, const struct err *failure)
{
    struct canceller *c = user;
    rig_on_page(&c->answer, page, failure);
    runner_free(c->runner);
}

/* Freeing from inside an answer, with others waiting. */
static void test_free_in_a_callback(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig);
    char id[64];
    rig_exec(&rig, &(struct run_exec){.argv = RIG_SH("read x; echo out; read x")}, id);
    autoanswer never = {0};
    struct canceller c = {.runner = rig.runner};
    struct run_read ask = {.process_id = id, .wait_ms = RIG_WAIT_MS};
    runner_read(rig.runner, &ask, free_runner, &c);
    runner_read(rig.runner, &ask, rig_on_page, &never);
    runner_write(rig.runner, id, "\n", 1, false, rig_on_done, &(struct rig_answer){0});
    rig_until(&rig, &c.answer.arrived);
    rig.runner = NULL;
    rig_stop(&rig);
    assert_false(never.arrived);
    rig_answer_fini(&c.answer);
}

/* ---- terminals ---- */

static void test_terminal(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig);
    char id[64];
    rig_exec(&rig,
             &(struct run_exec){.argv = RIG_SH("test -t 0 && test -t 1 && test -t 2 && echo yes; "
                                               "stty size; tty </dev/tty >/dev/null && echo ctty; "
                                               "echo $TERM"),
                                .tty = true},
             id);
    autoanswer a = {0};
    rig_finish(&rig, id, &a);
    assert_string_equal(buf_bytes(&a.bytes), "yes\r\n24 80\r\nctty\r\nxterm\r\n");
    assert_true(a.status.tty);
    rig_stop(&rig);
}

static void test_terminal_resize(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig);
    char id[64], pipe_id[64];
    rig_exec(&rig,
             &(struct run_exec){
                 .argv = RIG_SH("trap 'stty size; exit' WINCH; stty size; while :; do sleep 0.01; "
                                "done"),
                 .tty = true,
                 .rows = 30,
                 .cols = 100},
             id);
    rig_expect(&rig, id, "30 100");
    autoanswer r = {0}, bad = {0}, gone = {0}, a = {0};
    runner_resize(rig.runner, id, 50, 132, rig_on_done, &r);
    rig_until(&rig, &r.arrived);
    assert_false(r.failed);
    rig_finish(&rig, id, &a);
    assert_string_equal(buf_bytes(&a.bytes), "30 100\r\n50 132\r\n");
    runner_resize(rig.runner, id, 5, 5, rig_on_done, &gone);
    rig_until(&rig, &gone.arrived);
    assert_int_equal(gone.err.code, ERR_PROCESS_NOT_RUNNING);
    rig_exec(&rig, &(struct run_exec){.argv = RIG_SH("read x")}, pipe_id);
    runner_resize(rig.runner, pipe_id, 5, 5, rig_on_done, &bad);
    rig_until(&rig, &bad.arrived);
    assert_int_equal(bad.err.code, ERR_PROCESS_NOT_TTY);
    rig_stop(&rig);
}

/* L8: a signal is a signal on a terminal too; ^C and ^D do what they do. */
static void test_terminal_input_and_signals(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig);
    char id[64];
    autoanswer w = {0}, a = {0}, b = {0}, eof = {0}, c = {0};
    rig_exec(&rig, &(struct run_exec){.argv = RIG_SH("kill -9 $$"), .tty = true}, id);
    rig_finish(&rig, id, &a);
    assert_int_equal(a.status.termination, RUN_END_SIGNALED);
    assert_int_equal(a.status.signal, SIGKILL);
    rig_exec(&rig, &(struct run_exec){.argv = RIG_SH("echo up; exec cat"), .tty = true}, id);
    rig_expect(&rig, id, "up");
    rig_write(&rig, id, "\003", 1, false, &w);
    rig_finish(&rig, id, &b);
    assert_int_equal(b.status.signal, SIGINT);
    rig_exec(&rig,
             &(struct run_exec){.argv = RIG_SH("stty -echo; echo up; cat; echo end"), .tty = true},
             id);
    rig_expect(&rig, id, "up");
    rig_write(&rig, id, "typed\n", 6, true, &eof);
    rig_finish(&rig, id, &c);
    assert_string_equal(buf_bytes(&c.bytes), "up\r\ntyped\r\nend\r\n");
    rig_stop(&rig);
}

UNIT_MAIN(cmocka_unit_test(test_stdin_roundtrip_and_eof), cmocka_unit_test(test_write_after_eof),
          cmocka_unit_test(test_given_stdin), cmocka_unit_test(test_stdin_is_bounded),
          cmocka_unit_test(test_stdin_closed_by_the_process), cmocka_unit_test(test_ring_overflow),
          cmocka_unit_test(test_flood_is_bounded_and_others_live),
          cmocka_unit_test(test_pages_keep_characters_whole), cmocka_unit_test(test_long_poll),
          cmocka_unit_test(test_cancel), cmocka_unit_test(test_free_in_a_callback),
          cmocka_unit_test(test_terminal), cmocka_unit_test(test_terminal_resize),
          cmocka_unit_test(test_terminal_input_and_signals))
