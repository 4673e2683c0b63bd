/* mcp/tool_*: what each tool checks, asks the runner, and answers. The runner is a fake. */
#include "fixture.h"

#include "core/exec_limits.h"
#include "core/files.h"
#include "mcp/tool.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- workspace_info ---- */

static void test_info(void **state)
{
    struct fixture *f = *state;
    const char *out = fixture_call(f, "workspace_info", "{}");
    assert_has(out, "\"workspace_id\":null", "\"internal_model_calls\":false",
               "\"workspace_id_is_credential\":false", "\"tools_exposed\":[\"workspace_info\"",
               "\"workspaces\":[{\"workspace_id\":\"ws\",\"profile\":\"workspace-write\"}]", NULL);
    assert_null(strstr(out, "\"execution\""));
    assert_null(strstr(out, "\"root\""));
    out = fixture_call(f, "workspace_info", "{\"workspace_id\":\"ws\"}");
    assert_has(out, "\"workspace_id\":\"ws\"", "\"execution\":{", f->dir,
               "\"command_sandbox\":\"linux-sandbox\"", NULL);
    assert_has(fixture_call(f, "workspace_info", "{\"workspace_id\":\"no\"}"),
               "WORKSPACE_NOT_FOUND", "\"isError\":true", NULL);
}

/* Older clients send these; they decide nothing. */
static void test_ignored_arguments(void **state)
{
    struct fixture *f = *state;
    assert_has(fixture_call(f, "workspace_info",
                            "{\"approved\":true,\"user_id\":5,\"network\":{},\"work_id\":null}"),
               "\"workspace_id\":null", NULL);
    assert_has(fixture_call(f, "workspace_info", "{\"workspace\":\"ws\"}"), "INVALID_ARGUMENT",
               "did you mean \\\\\\\"workspace_id\\\\\\\"", "\"isError\":true", NULL);
    assert_has(fixture_call(f, "workspace_info", "null"), "\"workspace_id\":null", NULL);
    assert_has(fixture_call(f, "workspace_info", "[]"), "INVALID_ARGUMENT", NULL);
}

/* ---- read and find ---- */

static void test_read(void **state)
{
    struct fixture *f = *state;
    fixture_file(f, "a.txt", "abcdef\n\"x\"", 10);
    const char *out = fixture_call(f, "read", "{\"workspace_id\":\"ws\",\"path\":\"a.txt\"}");
    assert_has(out, "\"content\":\"abcdef\\n\\\"x\\\"\"", "\"byte_count\":10",
               "\"truncated\":false", "\"version\":\"sha256:", "\"content_lossy\":false",
               "\"text\":\"{\\\"path\\\":\\\"a.txt\\\"", NULL);
    assert_null(strstr(out, "next_offset"));
    assert_null(strstr(out, "\"offset\""));
    out = fixture_call(f, "read",
                       "{\"workspace_id\":\"ws\",\"path\":\"./a.txt\",\"offset\":2,\"limit\":3}");
    assert_has(out, "\"content\":\"cde\"", "\"offset\":2", "\"next_offset\":5",
               "\"truncated\":true", "\"path\":\"a.txt\"", NULL);
}

static void test_read_large(void **state)
{
    struct fixture *f = *state;
    size_t n = 300000;
    autofree char *bytes = mem_zalloc(n, 1);
    memset(bytes, 'z', n);
    fixture_file(f, "big", bytes, n);
    assert_has(
        fixture_call(f, "read", "{\"workspace_id\":\"ws\",\"path\":\"big\",\"limit\":300000}"),
        "\"byte_count\":300000", "\"truncated\":false", NULL);
    assert_true(f->sent.len > 2 * n);
    memset(bytes, 0xff, n);
    fixture_file(f, "big", bytes, n);
    assert_has(fixture_call(f, "read", "{\"workspace_id\":\"ws\",\"path\":\"big\"}"),
               "\"content_lossy\":true", NULL);
}

static void test_read_errors(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *arguments, *code;
    } rows[] = {
        {"{}", "INVALID_ARGUMENT"},
        {"{\"workspace_id\":\"ws\"}", "INVALID_ARGUMENT"},
        {"{\"workspace_id\":\"no\",\"path\":\"a\"}", "WORKSPACE_NOT_FOUND"},
        {"{\"workspace_id\":\"ws\",\"path\":\"a\"}", "FILE_NOT_FOUND"},
        {"{\"workspace_id\":\"ws\",\"path\":\"\"}", "INVALID_ARGUMENT"},
        {"{\"workspace_id\":\"ws\",\"path\":\"/etc/passwd\"}", "PATH_ESCAPE"},
        {"{\"workspace_id\":\"ws\",\"path\":\"x/../../y\"}", "PATH_ESCAPE"},
        {"{\"workspace_id\":\"ws\",\"path\":\"..\\\\y\"}", "PATH_ESCAPE"},
        {"{\"workspace_id\":\"ws\",\"path\":\"link\"}", "SYMLINK_REJECTED"},
        {"{\"workspace_id\":\"ws\",\"path\":\"fifo\"}", "SPECIAL_FILE_REJECTED"},
        {"{\"workspace_id\":\"ws\",\"path\":\"dir\"}", "SPECIAL_FILE_REJECTED"},
        {"{\"workspace_id\":\"ws\",\"path\":\"f/x\"}", "PATH_NOT_DIRECTORY"},
        {"{\"workspace_id\":\"ws\",\"path\":\"f\",\"limit\":0}", "OUTPUT_LIMIT"},
        {"{\"workspace_id\":\"ws\",\"path\":\"f\",\"limit\":1048577}", "OUTPUT_LIMIT"},
        {"{\"workspace_id\":\"ws\",\"path\":\"f\",\"limit\":-1}", "INVALID_ARGUMENT"},
        {"{\"workspace_id\":\"ws\",\"path\":\"f\",\"offset\":\"1\"}", "INVALID_ARGUMENT"},
        {"{\"workspace_id\":\"ws\",\"path\":7}", "INVALID_ARGUMENT"},
        {"{\"workspace_id\":\"ws\",\"path\":\"f\\u0000g\"}", "INVALID_ARGUMENT"},
    };
    autofree char *link = mem_printf("%s/link", f->dir);
    autofree char *fifo = mem_printf("%s/fifo", f->dir);
    autofree char *dir = mem_printf("%s/dir", f->dir);
    assert_int_equal(symlink("f", link), 0);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    assert_int_equal(mkdir(dir, 0700), 0);
    fixture_file(f, "f", "x", 1);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        autofree char *code = mem_printf("{\\\"code\\\":\\\"%s\\\",\\\"message\\\":", rows[i].code);
        const char *out = fixture_call(f, "read", rows[i].arguments);
        assert_has(out, code, "\"isError\":true", NULL);
        assert_null(strstr(out, "structuredContent"));
        assert_int_equal(f->n_sent, 1);
    }
}

static void test_find(void **state)
{
    struct fixture *f = *state;
    fixture_file(f, "a.c", "", 0);
    fixture_file(f, "b.c", "", 0);
    fixture_file(f, "c.h", "", 0);
    assert_has(fixture_call(f, "find", "{\"workspace_id\":\"ws\",\"glob\":\"*.c\"}"),
               "\"paths\":[\"a.c\",\"b.c\"]", "\"truncated\":false", "\"incomplete\":false",
               "\"listing_version\":\"sha256:", NULL);
    assert_has(fixture_call(f, "find", "{\"workspace_id\":\"ws\",\"offset\":1,\"limit\":1}"),
               "\"paths\":[\"b.c\"]", "\"truncated\":true", "\"next_offset\":2", "\"offset\":1",
               "\"total\":3", NULL);
    assert_has(fixture_call(f, "find", "{\"workspace_id\":\"ws\",\"limit\":0}"), "OUTPUT_LIMIT",
               NULL);
    assert_has(fixture_call(f, "find", "{\"workspace_id\":\"no\"}"), "WORKSPACE_NOT_FOUND", NULL);
}

/* A find that is cancelled while it runs sends nothing, and the session goes on. */
static void test_find_cancelled(void **state)
{
    struct fixture *f = *state;
    static const char find[] = "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":"
                               "{\"name\":\"find\",\"arguments\":{\"workspace_id\":\"ws\"}}}";
    static const char cancel[] = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
                                 "\"params\":{\"requestId\":7}}";
    buf_truncate(&f->sent, 0);
    session_message(&f->session, find, strlen(find));
    session_message(&f->session, cancel, strlen(cancel));
    assert_int_equal(f->session.n_calls, 0);
    assert_string_equal(fixture_run(f), "");
    assert_has(fixture_call(f, "find", "{\"workspace_id\":\"ws\"}"), "\"paths\":[]", NULL);
}

/* ---- exec_command ---- */

static void test_exec_starts(void **state)
{
    struct fixture *f = *state;
    assert_string_equal(fixture_call(f, "exec_command",
                                     "{\"workspace_id\":\"ws\",\"command\":[\"make\",\"-j\"],"
                                     "\"env\":{\"A\":\"b\"},\"timeout_ms\":50}"),
                        "");
    assert_string_equal(f->fake.argv0, "make");
    assert_string_equal(f->fake.exec.ws->id, "ws");
    assert_null(f->fake.exec.cwd);
    assert_null(f->fake.exec.stdin_data);
    assert_int_equal(f->fake.exec.timeout_ms, 50);
    fixture_started(f, "proc-1");
    assert_has(
        fixture_run(f),
        "\"structuredContent\":{\"process_id\":\"proc-1\",\"dispatch_status\":\"confirmed\",",
        "\"operation_id\":\"op-", NULL);
    assert_null(f->fake.exec.first);
    assert_int_equal(f->fake.reads, 1); /* the one that sees the end for the ledger */
    assert_true(f->fake.read.until_exit);
}

static void test_exec_waits(void **state)
{
    struct fixture *f = *state;
    static const char *const removed[] = {".git", NULL};
    static const char *const denials[] = {"filter.trace 2 ptrace", "filter.unobserved 0 ", NULL};
    struct run_page page = {.bytes = "out\xff", .len = 4, .cursor = 4};
    fixture_call(f, "exec_command",
                 "{\"workspace_id\":\"ws\",\"command\":[\"x\"],\"stdin\":\"\",\"wait_ms\":100,"
                 "\"tty\":true,\"rows\":3,\"cols\":4}");
    assert_non_null(f->fake.exec.stdin_data);
    assert_int_equal(f->fake.exec.stdin_len, 0);
    assert_true(f->fake.exec.tty);
    assert_int_equal(f->fake.exec.rows, 3);
    fixture_started(f, "proc-2");
    assert_string_equal(fixture_run(f), "");
    assert_true(f->fake.read.until_exit);
    assert_int_equal(f->fake.read.wait_ms, 100);
    page.status = (struct run_status){.process_id = "proc-2",
                                      .state = RUN_EXITED,
                                      .termination = RUN_END_SIGNALED,
                                      .signal = 9,
                                      .reason = "why",
                                      .sandboxed = true,
                                      .eof = true,
                                      .output_total = 9,
                                      .started_ms = 10,
                                      .ended_ms = 15,
                                      .background = 2,
                                      .removed = removed,
                                      .denials = denials,
                                      .weaker = "proc: inherited"};
    fixture_page(f, &page);
    assert_has(fixture_run(f), "\"process_id\":\"proc-2\"", "\"state\":\"exited\"",
               "\"termination\":\"signaled\"", "\"signal\":{\"number\":9,\"name\":\"SIGKILL\"}",
               "\"reason\":\"why\"", "\"background\":2", "\"removed\":[\".git\"]",
               "\"duration_ms\":5", "\"sandbox\":\"linux-sandbox\"", "\"output_lossy\":true",
               "\"denials\":[{\"rule\":\"filter.trace\",\"layer\":\"filter\",\"what\":\"ptrace\","
               "\"count\":2,",
               "\"denials_unknown\":[\"view\",\"masks\",\"network\",\"filter\"]",
               "\"weaker\":\"proc: inherited\"", "\"truncated\":true", "\"eof\":false",
               "\"cursor\":4", NULL);
    assert_null(strstr(fixture_run(f), "exit_code"));
    assert_int_equal(f->fake.reads, 1); /* the ledger has the end from it, too */
}

/* The start says which read follows; when the wait is over first, somebody else sees the end. */
static void test_exec_outlives_its_wait(void **state)
{
    struct fixture *f = *state;
    const struct run_page page = {.bytes = "", .status = {.process_id = "proc-5", .reason = ""}};
    fixture_call(f, "exec_command",
                 "{\"workspace_id\":\"ws\",\"command\":[\"x\"],\"wait_ms\":100}");
    assert_non_null(f->fake.exec.first);
    assert_int_equal(f->fake.exec.first->wait_ms, 100);
    fixture_started(f, "proc-5");
    assert_int_equal(f->fake.reads, 1);
    fixture_page(f, &page);
    assert_has(fixture_run(f), "\"process_id\":\"proc-5\"", "\"state\":\"running\"", NULL);
    assert_int_equal(f->fake.reads, 2);
    assert_true(f->fake.read.until_exit);
    assert_int_equal(f->fake.read.wait_ms, RUN_WAIT_MAX_MS);
}

static void test_exec_refusals(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *rest, *code, *says;
    } rows[] = {
        {"", "INVALID_ARGUMENT", "command: is required"},
        {",\"command\":\"ls\"", "INVALID_ARGUMENT", "array of strings"},
        {",\"command\":[]", "INVALID_COMMAND", "must name a program"},
        {",\"command\":[\"\"]", "INVALID_COMMAND", "must name a program"},
        {",\"command\":[\"a\",5]", "INVALID_ARGUMENT", "item 1"},
        {",\"command\":[\"a\\u0000b\"]", "INVALID_ARGUMENT", "NUL"},
        {",\"command\":[\"a\"],\"cwd\":\"/\"", "PATH_ESCAPE", "cwd"},
        {",\"command\":[\"a\"],\"cwd\":\"../x\"", "PATH_ESCAPE", "cwd"},
        {",\"command\":[\"a\"],\"cwd\":\"none\"", "FILE_NOT_FOUND", "cwd"},
        {",\"command\":[\"a\"],\"cwd\":\"file\"", "PATH_NOT_DIRECTORY", "cwd"},
        {",\"command\":[\"a\"],\"cwd\":\"link\"", "SYMLINK_REJECTED", "cwd"},
        {",\"command\":[\"a\"],\"env\":{\"A=B\":\"c\"}", "INVALID_COMMAND", "env"},
        {",\"command\":[\"a\"],\"env\":{\"A\":5}", "INVALID_ARGUMENT", "env"},
        {",\"command\":[\"a\"],\"timeout_ms\":0", "INVALID_ARGUMENT", "timeout_ms"},
        {",\"command\":[\"a\"],\"timeout_ms\":86400001", "INVALID_ARGUMENT", "timeout_ms"},
        {",\"command\":[\"a\"],\"wait_ms\":600001", "INVALID_ARGUMENT", "wait_ms"},
        {",\"command\":[\"a\"],\"tty\":true,\"rows\":0", "INVALID_ARGUMENT", "rows"},
        {",\"command\":[\"a\"],\"rows\":5", "INVALID_ARGUMENT", "tty"},
        {",\"command\":[\"a\"],\"shell\":true", "INVALID_ARGUMENT", "shell"},
    };
    autofree char *link = mem_printf("%s/link", f->dir);
    assert_int_equal(symlink(".", link), 0);
    fixture_file(f, "file", "", 0);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        autofree char *arguments = mem_printf("{\"workspace_id\":\"ws\"%s}", rows[i].rest);
        assert_has(fixture_call(f, "exec_command", arguments), rows[i].code, rows[i].says,
                   "\"isError\":true", NULL);
    }
    assert_int_equal(f->fake.execs, 0);
}

/* E33: what the kernel would refuse is refused before the start, by name. */
static void test_exec_sizes(void **state)
{
    struct fixture *f = *state;
    size_t n = EXEC_STRING_MAX;
    autofree char *big = mem_zalloc(n + 2, 1);
    memset(big, 'x', n + 1);
    autofree char *one = mem_printf("{\"workspace_id\":\"ws\",\"command\":[\"a\",\"%s\"]}", big);
    assert_has(fixture_call(f, "exec_command", one), "INVALID_COMMAND", "command[1]",
               "EXEC_STRING_MAX (131071)", NULL);
    big[n] = '\0';
    autofree char *fits = mem_printf("{\"workspace_id\":\"ws\",\"command\":[\"a\",\"%s\"]}", big);
    assert_string_equal(fixture_call(f, "exec_command", fits), "");
    fixture_started(f, "proc-1");
    autobuf many = BUF_INIT;
    buf_puts(&many, "{\"workspace_id\":\"ws\",\"command\":[\"a\"");
    for (int i = 0; i < 12; i++)
        buf_printf(&many, ",\"%s\"", big);
    buf_puts(&many, "]}");
    assert_has(fixture_call(f, "exec_command", buf_cstr(&many)), "INVALID_COMMAND",
               "EXEC_TOTAL_MAX (1572864", NULL);
    autofree char *value =
        mem_printf("{\"workspace_id\":\"ws\",\"command\":[\"a\"],\"env\":{\"LONG\":\"%s\"}}", big);
    assert_has(fixture_call(f, "exec_command", value), "INVALID_COMMAND", "env.LONG", NULL);
}

static const char cancel_7[] = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
                               "\"params\":{\"requestId\":7}}";

/* G2: cancelled while it starts, the start is given up; cancelled while it runs, it is ended. */
static void test_exec_cancelled(void **state)
{
    struct fixture *f = *state;
    static const char run[] = "{\"workspace_id\":\"ws\",\"command\":[\"x\"],\"wait_ms\":1000}";
    fixture_call(f, "exec_command", run);
    assert_string_equal(fixture_say(f, cancel_7), "");
    assert_int_equal(f->fake.cancels, 1);
    assert_int_equal(f->fake.terminates, 0);
    fixture_call(f, "exec_command", run);
    fixture_started(f, "proc-3");
    assert_string_equal(fixture_say(f, cancel_7), "");
    assert_int_equal(f->fake.cancels, 2);
    assert_int_equal(f->fake.terminates, 1);
    assert_int_equal(f->session.n_calls, 0);
}

/* The start waits for the probe, so that a command never runs before it is known how. */
static void test_exec_waits_for_probe(void **state)
{
    struct fixture *f = *state;
    fixture_say(f, "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":"
                   "{\"protocolVersion\":\"2025-11-25\"}}");
    fixture_call(f, "exec_command", "{\"workspace_id\":\"ws\",\"command\":[\"x\"]}");
    assert_int_equal(f->fake.execs, 0);
    fixture_probe(f, false);
    assert_int_equal(f->fake.execs, 1);
    fixture_started(f, "proc-4");
    assert_has(fixture_run(f), "proc-4", NULL);
}

/* ---- the process tools ---- */

static void test_write_stdin(void **state)
{
    struct fixture *f = *state;
    assert_has(fixture_call(f, "write_stdin", "{\"process_id\":\"p\",\"data\":\"a\\u0000b\"}"),
               "\"structuredContent\":{\"ok\":true}", NULL);
    assert_int_equal(f->fake.n_bytes, 3);
    assert_false(f->fake.eof);
    fixture_call(f, "write_stdin", "{\"process_id\":\"p\",\"eof\":true}");
    assert_int_equal(f->fake.n_bytes, 0);
    assert_true(f->fake.eof);
    assert_has(fixture_call(f, "write_stdin", "{\"process_id\":\"p\"}"), "INVALID_ARGUMENT", "data",
               NULL);
}

static void test_read_process(void **state)
{
    struct fixture *f = *state;
    struct run_page page = {.bytes = "\x01\xff", .len = 2, .cursor = 12, .lost = true};
    page.retained_from = 10;
    page.status.process_id = "p";
    fixture_call(f, "read_process",
                 "{\"process_id\":\"p\",\"cursor\":10,\"stream\":\"stderr\",\"encoding\":"
                 "\"base64\",\"limit\":5,\"wait_ms\":9}");
    assert_int_equal(f->fake.read.cursor, 10);
    assert_int_equal(f->fake.read.stream, RUN_STDERR);
    assert_int_equal(f->fake.read.max_bytes, 5);
    assert_int_equal(f->fake.read.wait_ms, 9);
    assert_false(f->fake.read.until_exit);
    assert_false(f->fake.read.whole_chars);
    fixture_page(f, &page);
    assert_has(fixture_run(f), "\"chunk\":\"Af8=\"", "\"encoding\":\"base64\"", "\"cursor\":12",
               "\"output_lost\":true", "\"retained_from\":10", "\"eof\":false",
               "\"state\":\"running\"", NULL);
    fixture_call(f, "read_process", "{\"process_id\":\"p\"}");
    assert_true(f->fake.read.whole_chars);
    fixture_page(f, &page);
    assert_has(fixture_run(f), "\"chunk\":\"\\u0001\xef\xbf\xbd\"", "\"chunk_lossy\":true", NULL);
}

static void test_read_process_refusals(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *rest, *code;
    } rows[] = {
        {",\"limit\":0", "OUTPUT_LIMIT"},
        {",\"limit\":524289", "OUTPUT_LIMIT"},
        {",\"stream\":\"both\"", "INVALID_ARGUMENT"},
        {",\"encoding\":\"latin1\"", "INVALID_ARGUMENT"},
        {",\"cursor\":-1", "INVALID_ARGUMENT"},
        {",\"wait_ms\":600001", "INVALID_ARGUMENT"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        autofree char *arguments = mem_printf("{\"process_id\":\"p\"%s}", rows[i].rest);
        assert_has(fixture_call(f, "read_process", arguments), rows[i].code, NULL);
    }
    assert_int_equal(f->fake.reads, 0);
}

/* The contract: TIMEOUT once all output of a command that ran out of time was read. */
static void test_read_process_timeout(void **state)
{
    struct fixture *f = *state;
    struct run_page page = {.bytes = "abc", .len = 3, .cursor = 3};
    page.status = (struct run_status){.process_id = "p",
                                      .state = RUN_EXITED,
                                      .termination = RUN_END_TIMEOUT,
                                      .output_total = 3,
                                      .eof = true};
    fixture_call(f, "read_process", "{\"process_id\":\"p\"}");
    fixture_page(f, &page);
    assert_has(fixture_run(f), "\"chunk\":\"abc\"", "\"termination\":\"timeout\"", "\"eof\":true",
               NULL);
    fixture_call(f, "read_process", "{\"process_id\":\"p\",\"cursor\":3}");
    fixture_page(f, &page);
    assert_has(fixture_run(f), "TIMEOUT", "\"isError\":true", NULL);
}

static void test_status(void **state)
{
    struct fixture *f = *state;
    struct run_status s = {.process_id = "p",
                           .workspace_id = "ws",
                           .state = RUN_EXITED,
                           .termination = RUN_END_EXITED,
                           .exit_code = 3,
                           .output_total = 5,
                           .output_retained_from = 1,
                           .eof = true};
    fixture_call(f, "process_status", "{\"process_id\":\"p\"}");
    f->fake.status_done(f->fake.user, &s, NULL);
    assert_has(fixture_run(f), "\"exit_code\":3", "\"termination\":\"exited\"",
               "\"output_total\":5", "\"output_retained_from\":1", "\"eof\":true",
               "\"sandbox\":\"none\"", "\"workspace_id\":\"ws\"", NULL);
    s.state = RUN_RUNNING;
    s.termination = RUN_END_NONE;
    fixture_call(f, "process_status", "{\"process_id\":\"p\"}");
    f->fake.status_done(f->fake.user, &s, NULL);
    const char *out = fixture_run(f);
    assert_has(out, "\"state\":\"running\"", NULL);
    assert_null(strstr(out, "termination"));
    assert_null(strstr(out, "exit_code"));
}

static void test_resize(void **state)
{
    struct fixture *f = *state;
    assert_has(fixture_call(f, "process_resize", "{\"process_id\":\"p\",\"rows\":40,\"cols\":120}"),
               "{\"ok\":true,\"rows\":40,\"cols\":120}", NULL);
    assert_int_equal(f->fake.rows, 40);
    f->fake.rows = 0;
    assert_has(fixture_call(f, "process_resize", "{\"process_id\":\"p\",\"rows\":0,\"cols\":1}"),
               "INVALID_COMMAND", NULL);
    assert_has(
        fixture_call(f, "process_resize", "{\"process_id\":\"p\",\"rows\":1,\"cols\":65537}"),
        "INVALID_COMMAND", NULL);
    assert_has(fixture_call(f, "process_resize", "{\"process_id\":\"p\",\"rows\":1}"),
               "INVALID_ARGUMENT", "cols", NULL);
    assert_int_equal(f->fake.rows, 0);
}

static void test_terminate(void **state)
{
    struct fixture *f = *state;
    assert_has(fixture_call(f, "terminate_process", "{\"process_id\":\"p\"}"), "{\"ok\":true}",
               NULL);
    assert_has(fixture_call(f, "terminate_process", "{\"process_id\":\"proc-none\"}"),
               "PROCESS_NOT_FOUND", "\"isError\":true", NULL);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)
#define RAW(test) cmocka_unit_test_setup_teardown(test, fixture_setup_raw, fixture_teardown)
UNIT_MAIN(WITH(test_info), WITH(test_ignored_arguments), WITH(test_read), WITH(test_read_large),
          WITH(test_read_errors), WITH(test_find), WITH(test_find_cancelled),
          WITH(test_exec_starts), WITH(test_exec_waits), WITH(test_exec_outlives_its_wait),
          WITH(test_exec_refusals), WITH(test_exec_sizes), WITH(test_exec_cancelled),
          RAW(test_exec_waits_for_probe), WITH(test_write_stdin), WITH(test_read_process),
          WITH(test_read_process_refusals), WITH(test_read_process_timeout), WITH(test_status),
          WITH(test_resize), WITH(test_terminate))
