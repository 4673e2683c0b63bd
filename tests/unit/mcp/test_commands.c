/* mcp/tool_exec, tool_process, tool_list: arguments reach the runner as they were meant, and what
 * is not known is said to be unknown. The runner is a fake. */
#include "fixture.h"

#include <signal.h>

#define EXEC "\"workspace_id\":\"ws\",\"command\":[\"true\"]"

static void lose(struct fixture *f, const char *process_id)
{
    struct err e;
    err_set(&e, ERR_RUNNER_LOST, "the worker was lost before it answered");
    run_exec_fn done = f->fake.exec_done;
    done(f->fake.user, process_id, &e);
}

static void test_exec_options(void **state)
{
    struct fixture *f = *state;
    fixture_call(f, "exec_command",
                 "{" EXEC ",\"idle_timeout_ms\":7,\"background\":\"keep\",\"exclusive\":true,"
                 "\"exclusive_wait_ms\":9}");
    assert_int_equal(f->fake.exec.idle_timeout_ms, 7);
    assert_int_equal(f->fake.exec.background, RUN_BACKGROUND_KEEP);
    assert_true(f->fake.exec.exclusive);
    assert_int_equal(f->fake.exec.exclusive_wait_ms, 9);
    fixture_started(f, "proc-1");
    fixture_call(f, "exec_command", "{" EXEC "}");
    assert_int_equal(f->fake.exec.background, RUN_BACKGROUND_KILL);
    assert_false(f->fake.exec.exclusive);
    fixture_started(f, "proc-2");
}

/* Whether it runs is not known: no error, no guess, and what to do. */
static void test_lost_start(void **state)
{
    struct fixture *f = *state;
    static const char *const calls[] = {"{" EXEC "}", "{" EXEC ",\"wait_ms\":100}"};
    for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
        fixture_call(f, "exec_command", calls[i]);
        lose(f, "proc-9");
        const char *out = fixture_run(f);
        assert_has(out, "\"process_id\":\"proc-9\"", "\"dispatch_status\":\"unknown\"",
                   "process_status", "list_processes", NULL);
        assert_null(strstr(out, "isError\":true"));
        assert_null(strstr(out, "\"state\""));
        assert_int_equal(f->fake.reads, 0);
    }
    fixture_call(f, "exec_command", calls[0]);
    lose(f, NULL); /* then there is nothing to look for */
    assert_has(fixture_run(f), "RUNNER_LOST", "\"isError\":true", NULL);
}

/* It was started; a wait that fails does not take the id away. */
static void test_failed_wait(void **state)
{
    struct fixture *f = *state;
    struct err e;
    fixture_call(f, "exec_command", "{" EXEC ",\"wait_ms\":100}");
    fixture_started(f, "proc-3");
    err_set(&e, ERR_PROCESS_NOT_FOUND, "its record was dropped");
    f->fake.page_done(f->fake.user, NULL, &e);
    assert_has(fixture_run(f), "\"process_id\":\"proc-3\"", "\"dispatch_status\":\"confirmed\"",
               "PROCESS_NOT_FOUND", "its record was dropped", NULL);
    assert_null(strstr(fixture_run(f), "isError\":true"));
}

static void test_status_in_full(void **state)
{
    struct fixture *f = *state;
    const char *const left[] = {"7 a b", "9 ", NULL};
    const char *const created[] = {"sub/.git", NULL};
    struct run_status s = {.process_id = "p",
                           .workspace_id = "ws",
                           .state = RUN_EXITED,
                           .termination = RUN_END_EXITED,
                           .reason = "",
                           .command = "make all",
                           .sandboxed = true,
                           .shares_network = true,
                           .started_ms = 10,
                           .ended_ms = 15,
                           .cpu_us = 6,
                           .max_rss_kib = 7,
                           .background = 2,
                           .background_alive = true,
                           .background_pids = left,
                           .created = created,
                           .idle_timeout_ms = 8,
                           .output_dropped = 9,
                           .output_failed = "the disk is full"};
    fixture_call(f, "process_status", "{\"process_id\":\"p\"}");
    f->fake.status_done(f->fake.user, &s, NULL);
    assert_has(fixture_run(f), "\"command\":\"make all\"", "\"exit_code\":0", "\"background\":2",
               "\"background_alive\":true",
               "\"background_pids\":[{\"pid\":7,\"name\":\"a b\"},{\"pid\":9,\"name\":\"\"}]",
               "\"created_repositories\":[\"sub/.git\"]", "\"duration_ms\":5", "\"cpu_us\":6",
               "\"max_rss_kib\":7", "\"idle_timeout_ms\":8", "\"output_dropped\":9",
               "\"output_failed\":\"the disk is full\"", "\"network_scope\":\"workspace\"",
               "\"started_at_ms\":10", "\"ended_at_ms\":15", NULL);
}

/* A lost answer of the other tools is an error that says how to find out. */
static void test_lost_answers(void **state)
{
    struct fixture *f = *state;
    struct err e;
    fixture_call(f, "process_status", "{\"process_id\":\"proc-4\"}");
    err_set(&e, ERR_RUNNER_LOST, "it did not answer");
    f->fake.status_done(f->fake.user, NULL, &e);
    assert_has(fixture_run(f), "RUNNER_LOST", "it did not answer", "process_status of proc-4",
               NULL);
}

static void test_ends_and_signals(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *rest;
        struct run_terminate how;
    } ends[] = {
        {"", {0, false, 0}},
        {",\"signal\":\"INT\"", {SIGINT, false, 0}},
        {",\"signal\":\"sigkill\",\"grace_ms\":0", {SIGKILL, true, 0}},
        {",\"signal\":\"1\",\"grace_ms\":60000", {SIGHUP, true, 60000}},
    };
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        autofree char *arguments = mem_printf("{\"process_id\":\"p\"%s}", ends[i].rest);
        assert_has(fixture_call(f, "terminate_process", arguments), "{\"ok\":true}", NULL);
        assert_int_equal(f->fake.how.signal, ends[i].how.signal);
        assert_int_equal(f->fake.how.has_grace, ends[i].how.has_grace);
        assert_int_equal(f->fake.how.grace_ms, ends[i].how.grace_ms);
    }
    assert_has(fixture_call(f, "terminate_process", "{\"process_id\":\"p\",\"signal\":\"STOP\"}"),
               "INVALID_ARGUMENT", "signal_process", NULL);
    assert_has(fixture_call(f, "signal_process", "{\"process_id\":\"p\",\"signal\":\"CONT\"}"),
               "{\"ok\":true}", NULL);
    assert_int_equal(f->fake.signal, SIGCONT);
    f->fake.signal = 0;
    static const char *const bad[] = {"",      "SIG",      "65", "0",   "+2", "INT ",
                                      "KILLL", "RTMIN+70", "--", "1e1", "2.0"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        autofree char *arguments = mem_printf("{\"process_id\":\"p\",\"signal\":\"%s\"}", bad[i]);
        assert_has(fixture_call(f, "signal_process", arguments), "INVALID_ARGUMENT", NULL);
    }
    assert_int_equal(f->fake.signal, 0);
}

static void test_list(void **state)
{
    struct fixture *f = *state;
    struct run_status items[] = {
        {.process_id = "p1", .workspace_id = "ws", .reason = "", .command = "a", .serial = 4},
        {.process_id = "p2", .workspace_id = "ws", .reason = "", .command = "b", .serial = 9},
    };
    f->fake.listing = (struct run_listing){items, 2, true};
    assert_has(fixture_call(f, "list_processes",
                            "{\"workspace_id\":\"ws\",\"live_only\":true,\"after\":3,"
                            "\"limit\":2}"),
               "\"serial\":4,\"process_id\":\"p1\"", "\"serial\":9,\"process_id\":\"p2\"",
               "\"more\":true", "\"next_after\":9", NULL);
    assert_int_equal(f->fake.list.after, 3);
    assert_int_equal(f->fake.list.max, 2);
    assert_true(f->fake.list.live_only);
    f->fake.listing = (struct run_listing){0};
    assert_has(fixture_call(f, "list_processes", "{\"after\":7}"), "\"processes\":[]",
               "\"more\":false", "\"next_after\":7", NULL);
    assert_null(f->fake.list.workspace_id);
    assert_has(fixture_call(f, "list_processes", "{\"workspace_id\":\"no\"}"),
               "WORKSPACE_NOT_FOUND", NULL);
    assert_has(fixture_call(f, "list_processes", "{\"limit\":101}"), "INVALID_ARGUMENT", NULL);
}

static void test_where_a_read_begins(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *rest;
        enum run_from from;
        uint64_t cursor;
    } rows[] = {
        {"", RUN_FROM_OFFSET, 0},
        {",\"cursor\":5", RUN_FROM_OFFSET, 5},
        {",\"line\":5", RUN_FROM_LINE, 4},
        {",\"tail_bytes\":5", RUN_FROM_TAIL_BYTES, 5},
        {",\"tail_lines\":0,\"clean\":true", RUN_FROM_TAIL_LINES, 0},
    };
    const struct run_page page = {.bytes = "x",
                                  .len = 1,
                                  .start = 3,
                                  .time_ms = 4,
                                  .status = {.process_id = "p", .reason = ""}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        autofree char *arguments = mem_printf("{\"process_id\":\"p\"%s}", rows[i].rest);
        fixture_call(f, "read_process", arguments);
        assert_int_equal(f->fake.read.from, rows[i].from);
        assert_int_equal(f->fake.read.cursor, rows[i].cursor);
        assert_int_equal(f->fake.read.clean, i == 4);
        fixture_page(f, &page);
        assert_has(fixture_run(f), "\"start\":3", "\"written_at_ms\":4", NULL);
    }
    assert_has(fixture_call(f, "read_process", "{\"process_id\":\"p\",\"line\":1,\"cursor\":0}"),
               "INVALID_ARGUMENT", "cursor, line", NULL);
    assert_has(fixture_call(f, "read_process",
                            "{\"process_id\":\"p\",\"clean\":true,\"encoding\":\"base64\"}"),
               "INVALID_ARGUMENT", NULL);
}

static void test_info_tells_warmth(void **state)
{
    struct fixture *f = *state;
    static const struct {
        enum run_warm warm;
        const char *says, *scope;
    } rows[] = {
        {RUN_WARM_UNKNOWN, "\"start\":{\"warm\":\"unknown\"}", "\"scope_now\":\"unknown\""},
        {RUN_WARM_OFF, "\"start\":{\"warm\":\"off\"}", "\"scope_now\":\"command\""},
        {RUN_WARM_ON, "\"start\":{\"warm\":\"on\"}", "\"scope_now\":\"workspace\""},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        f->fake.warm = rows[i].warm;
        assert_has(fixture_call(f, "workspace_info", "{\"workspace_id\":\"ws\"}"), rows[i].says,
                   "\"scope\":\"workspace\"", rows[i].scope, NULL);
    }
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)
UNIT_MAIN(WITH(test_exec_options), WITH(test_lost_start), WITH(test_failed_wait),
          WITH(test_status_in_full), WITH(test_lost_answers), WITH(test_ends_and_signals),
          WITH(test_list), WITH(test_where_a_read_begins), WITH(test_info_tells_warmth))
