/* run/local on the host (R13: no helper): starts, ends, streams, limits. */
#include "rig.h"

#include <sys/resource.h>

#define END(a, t, v)                                                                               \
    do {                                                                                           \
        assert_int_equal((a).status.termination, t);                                               \
        assert_int_equal((t) == RUN_END_SIGNALED ? (a).status.signal : (a).status.exit_code, v);   \
    } while (0)

static void test_echo_and_status(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig);
    autoanswer a = {0};
    rig_sh(&rig, "echo hello", &a);
    assert_string_equal(buf_bytes(&a.bytes), "hello\n");
    END(a, RUN_END_EXITED, 0);
    assert_true(a.status.eof);
    assert_false(a.status.sandboxed);
    assert_int_equal(a.status.output_total, 6);
    assert_true(a.status.started_ms > 1500000000000u);
    assert_true(a.status.ended_ms >= a.status.started_ms);
    assert_string_equal(a.reason, "");
    assert_int_equal(a.status.max_rss_kib, 0); /* not above our own: unknown */
    autoanswer b = {0};
    rig_sh(&rig, "head -c 90M /dev/zero | tail -c 90M | wc -c", &b);
    assert_true(b.status.max_rss_kib > 80000);
    assert_true(b.status.cpu_us > 0);
    rig_stop(&rig);
}

/* E8: killed by 9 is not exit 137. */
static void test_exit_codes_and_signals(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig);
    static const struct {
        const char *line;
        enum run_termination t;
        int value;
    } rows[] = {
        {"exit 1", RUN_END_EXITED, 1},
        {"exit 137", RUN_END_EXITED, 137},
        {"exit 255", RUN_END_EXITED, 255},
        {"kill -9 $$", RUN_END_SIGNALED, SIGKILL},
        {"kill -TERM $$", RUN_END_SIGNALED, SIGTERM},
        {"kill -ABRT $$", RUN_END_SIGNALED, SIGABRT},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        autoanswer a = {0};
        rig_sh(&rig, rows[i].line, &a);
        END(a, rows[i].t, rows[i].value);
    }
    rig_stop(&rig);
}

static void test_missing_program_is_a_spawn_failure(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig);
    static const struct {
        char *const argv[2];
        const char *cwd;
        const char *words;
    } rows[] = {
        {{(char *)"no-such-program", NULL}, NULL, "PATH is "},
        {{(char *)"./missing", NULL}, NULL, "No such file"},
        {{(char *)"echo hello", NULL}, NULL, "argv"},
        {{(char *)"/etc/passwd", NULL}, NULL, "Permission denied"},
        {{(char *)"/bin/true", NULL}, "nowhere", "cwd 'nowhere'"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        autoanswer a = {0};
        rig_exec_with(&rig, &(struct run_exec){.argv = rows[i].argv, .cwd = rows[i].cwd}, &a);
        assert_true(a.failed);
        assert_int_equal(a.err.code, ERR_PROCESS_SPAWN_FAILED);
        if (strstr(a.err.message, rows[i].words) == NULL)
            fail_msg("\"%s\" does not say \"%s\"", a.err.message, rows[i].words);
    }
    rig_stop(&rig);
}

static void test_too_large_arguments(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig);
    char *big = mem_zalloc(200001, 1);
    memset(big, 'x', 200000);
    autoanswer a = {0};
    char *const argv[] = {(char *)"/bin/echo", big, NULL};
    rig_exec_with(&rig, &(struct run_exec){.argv = argv}, &a);
    assert_true(a.failed);
    assert_int_equal(a.err.sys, E2BIG);
    free(big);
    rig_stop(&rig);
}

static void test_cwd_and_environment(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig);
    autofree char *sub = mem_printf("%s/sub", rig.ws.root);
    assert_int_equal(mkdir(sub, 0755), 0);
    setenv("CODESPACE_TEST_LEAK", "secret", 1);
    char id[64];
    char *const env[] = {(char *)"GREETING=hi", NULL};
    rig_exec(&rig,
             &(struct run_exec){
                 .argv = RIG_SH("pwd; echo $GREETING $CODESPACE_TEST_LEAK; ls -l /proc/self/fd | "
                                "grep -c socket"),
                 .cwd = "sub",
                 .env = env},
             id);
    autoanswer a = {0};
    rig_finish(&rig, id, &a);
    autofree char *want = mem_printf("%s\nhi\n0\n", sub);
    assert_string_equal(buf_bytes(&a.bytes), want);
    unsetenv("CODESPACE_TEST_LEAK");
    rig_stop(&rig);
}

/* As execvp does it, here and in the sandbox. */
static void test_script_without_interpreter_line(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig);
    autofree char *path = mem_printf("%s/script", rig.ws.root);
    rig_write_file(path, "echo script $1\n", 0755);
    char id[64];
    char *const argv[] = {(char *)"./script", (char *)"word", NULL};
    rig_exec(&rig, &(struct run_exec){.argv = argv}, id);
    autoanswer a = {0};
    rig_finish(&rig, id, &a);
    assert_string_equal(buf_bytes(&a.bytes), "script word\n");
    rig_stop(&rig);
}

static void test_streams_are_kept_apart(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig);
    autoanswer a = {0};
    rig_sh(&rig, "echo one; echo two >&2; echo three", &a);
    assert_int_equal(a.bytes.len, 14);
    static const struct {
        enum run_stream stream;
        const char *text;
    } rows[] = {{RUN_STDOUT, "one\nthree\n"}, {RUN_STDERR, "two\n"}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        autoanswer b = {0};
        rig_read(&rig, a.id, &(struct run_read){.stream = rows[i].stream}, &b);
        assert_string_equal(buf_cstr(&b.bytes), rows[i].text);
        assert_int_equal(b.cursor, 14);
    }
    rig_stop(&rig);
}

static void test_order_of_streams_with_pauses(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig);
    char id[64];
    rig_exec(&rig, &(struct run_exec){.argv = RIG_SH("echo a; read x; echo b >&2; read x; echo c")},
             id);
    rig_expect(&rig, id, "a\n");
    for (int i = 0; i < 2; i++) {
        autoanswer w = {0};
        rig_write(&rig, id, "\n", 1, false, &w);
        assert_false(w.failed);
        rig_expect(&rig, id, i == 0 ? "a\nb\n" : "a\nb\nc\n");
    }
    autoanswer a = {0};
    rig_finish(&rig, id, &a);
    assert_string_equal(buf_bytes(&a.bytes), "a\nb\nc\n");
    rig_stop(&rig);
}

/* True when this machine let the command speak before its time was over. */
static bool times_out(struct rig *rig, uint64_t timeout_ms)
{
    char id[64];
    autoanswer a = {0};
    autofree char *told = mem_printf(" %d ms", (int)timeout_ms);
    rig_exec(rig,
             &(struct run_exec){.argv = RIG_SH("trap '' TERM; echo up; while :; do sleep 9; done"),
                                .timeout_ms = timeout_ms},
             id);
    rig_finish(rig, id, &a);
    END(a, RUN_END_TIMEOUT, 0);
    assert_non_null(strstr(a.reason, told));
    if (a.bytes.len == 0)
        return false;
    assert_string_equal(buf_bytes(&a.bytes), "up\n");
    return true;
}

static void test_timeout(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig);
    uint64_t timeout_ms = 150;
    while (!times_out(&rig, timeout_ms)) {
        timeout_ms *= 2;
        assert_true(timeout_ms < RIG_LIMIT_MS);
    }
    rig_stop(&rig);
}

static void test_terminate(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig);
    static const char *const lines[] = {
        "echo up; exec sleep 100",
        "trap '' TERM; echo up; while :; do sleep 100; done",
        "trap 'exit 7' TERM; echo up; while :; do sleep 0.01; done",
    };
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        char id[64];
        rig_exec(&rig, &(struct run_exec){.argv = RIG_SH(lines[i])}, id);
        rig_expect(&rig, id, "up\n");
        rig_terminate(&rig, id);
        rig_terminate(&rig, id);
        autoanswer a = {0};
        rig_finish(&rig, id, &a);
        END(a, RUN_END_TERMINATED, 0);
        rig_terminate(&rig, id); /* ended: still fine, and still the same end */
        autoanswer b = {0};
        runner_status(rig.runner, id, rig_on_status, &b);
        rig_until(&rig, &b.arrived);
        END(b, RUN_END_TERMINATED, 0);
    }
    rig_stop(&rig);
}

/* An end that was there before stays what it was. */
static void test_terminate_after_the_end(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig);
    autoanswer a = {0};
    rig_sh(&rig, "exit 3", &a);
    rig_terminate(&rig, a.id);
    autoanswer b = {0};
    runner_status(rig.runner, a.id, rig_on_status, &b);
    rig_until(&rig, &b.arrived);
    END(b, RUN_END_EXITED, 3);
    rig_stop(&rig);
}

/* The output is the numbers of what was left. (A name may still be the shell's: a child that has
 * not executed yet.) */
static void check_left(const struct rig_answer *a)
{
    int pids[2] = {0};
    assert_int_equal(sscanf(buf_bytes(&a->bytes), "%d %d", &pids[0], &pids[1]), 2);
    for (size_t i = 0; i < 2; i++) {
        autofree char *line = mem_printf("%d s", pids[i]);
        if (strstr(a->left, line) == NULL)
            fail_msg("\"%s\" does not name \"%s\"", a->left, line);
    }
}

/* When it began and ended is between what the command itself sees. */
static void test_times_of_the_command(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig);
    for (int i = 0; i < 5; i++) {
        autoanswer a = {0};
        unsigned long long began = 0, ended = 0;
        rig_sh(&rig, "date +%s%3N; sleep 0.02; date +%s%3N", &a);
        assert_int_equal(sscanf(buf_bytes(&a.bytes), "%llu %llu", &began, &ended), 2);
        assert_true(a.status.started_ms <= began);
        assert_true(a.status.ended_ms + 1 >= ended); /* its fraction is the start's */
        assert_true(a.status.ended_ms - a.status.started_ms >= 20);
    }
    rig_stop(&rig);
}

/* E1: a grandchild that holds the pipe holds nobody up; what stays in the session is killed,
 * counted and named. */
static void test_background_children(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig);
    autoanswer a = {0};
    autofree char *mark = rig_sleep(1);
    autofree char *line = mem_printf("%s & echo $!; %s & echo $!", mark, mark);
    rig_sh(&rig, line, &a);
    END(a, RUN_END_EXITED, 0);
    assert_int_equal(a.status.background, 2);
    check_left(&a);
    rig_expect_no_survivor(mark);
    rig_stop(&rig);
}

static void test_job_control_groups_end_too(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig);
    char id[64];
    autofree char *mark = rig_sleep(2);
    autofree char *line = mem_printf("set -m; %s & %s & echo up; wait", mark, mark);
    rig_exec(&rig, &(struct run_exec){.argv = RIG_SH(line)}, id);
    rig_expect(&rig, id, "up\n");
    rig_terminate(&rig, id);
    autoanswer a = {0};
    rig_finish(&rig, id, &a);
    END(a, RUN_END_TERMINATED, 0);
    rig_expect_no_survivor(mark);
    rig_stop(&rig);
}

/* A process that left the session is out of reach without a sandbox: it holds nobody up. */
static void test_setsid_child_does_not_hold_the_end(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig);
    autoanswer a = {0};
    rig_sh(&rig,
           "setsid sh -c 'echo $$ >pid; exec sleep 600' & "
           "while ! test -s pid; do sleep 0.01; done; cat pid",
           &a);
    END(a, RUN_END_EXITED, 0);
    pid_t left = (pid_t)strtol(buf_bytes(&a.bytes), NULL, 10);
    assert_true(left > 1);
    assert_int_equal(kill(left, SIGKILL), 0); /* it was still there */
    rig_stop(&rig);
}

static void test_limit_of_live_processes(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig);
    rig_run(&rig, 2);
    char id[2][64];
    for (int i = 0; i < 2; i++)
        rig_exec(&rig, &(struct run_exec){.argv = RIG_SH("read x")}, id[i]);
    autoanswer a = {0};
    rig_exec_with(&rig, &(struct run_exec){.argv = RIG_SH("true")}, &a);
    assert_true(a.failed);
    assert_int_equal(a.err.code, ERR_PROCESS_LIMIT);
    assert_non_null(strstr(a.err.message, "2 processes"));
    rig_terminate(&rig, id[0]);
    autoanswer b = {0};
    rig_finish(&rig, id[0], &b);
    autoanswer c = {0};
    rig_sh(&rig, "echo room", &c);
    assert_string_equal(buf_bytes(&c.bytes), "room\n");
    rig_stop(&rig);
}

/* L52: evicted is not the same as never there. */
static void test_retention(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig);
    char first[64] = "";
    for (unsigned i = 0; i <= RUN_RETAIN_MAX; i++) {
        autoanswer a = {0};
        rig_sh(&rig, "echo x", &a);
        if (i == 0)
            memcpy(first, a.id, sizeof(first));
    }
    autoanswer gone = {0};
    runner_status(rig.runner, first, rig_on_status, &gone);
    rig_until(&rig, &gone.arrived);
    assert_int_equal(gone.err.code, ERR_PROCESS_NOT_FOUND);
    assert_non_null(strstr(gone.err.message, "RUN_RETAIN_MAX"));
    autoanswer never = {0};
    runner_status(rig.runner, "proc-0000", rig_on_status, &never);
    rig_until(&rig, &never.arrived);
    assert_int_equal(never.err.code, ERR_PROCESS_NOT_FOUND);
    assert_null(strstr(never.err.message, "RUN_RETAIN_MAX"));
    rig_stop(&rig);
}

static void test_500_in_a_row_leak_nothing(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig);
    int before = -1;
    for (int i = 0; i < 500; i++) {
        autoanswer a = {0};
        char id[64];
        rig_exec(&rig, &(struct run_exec){.argv = (char *const[]){(char *)"/bin/true", NULL}}, id);
        rig_finish(&rig, id, &a);
        END(a, RUN_END_EXITED, 0);
        if (i == 10)
            before = rig_count_fds();
    }
    assert_int_equal(rig_count_fds(), before);
    rig_stop(&rig);
}

static void test_64_at_once(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig);
    static char ids[RUN_PROCESSES_DEFAULT][64];
    for (unsigned i = 0; i < RUN_PROCESSES_DEFAULT; i++) {
        autofree char *line = mem_printf("read x; echo $x-%u", i);
        rig_exec(&rig, &(struct run_exec){.argv = RIG_SH(line)}, ids[i]);
    }
    for (unsigned i = 0; i < RUN_PROCESSES_DEFAULT; i++) {
        autoanswer w = {0};
        rig_write(&rig, ids[i], "go\n", 3, false, &w);
        assert_false(w.failed);
    }
    for (unsigned i = 0; i < RUN_PROCESSES_DEFAULT; i++) {
        autoanswer a = {0};
        autofree char *want = mem_printf("go-%u\n", i);
        rig_finish(&rig, ids[i], &a);
        assert_string_equal(buf_bytes(&a.bytes), want);
    }
    rig_stop(&rig);
}

/* The next two take something away from the program that owns the processes. */
#ifndef RIG_REMOTE
/* Out of descriptors: a refusal that says so, nothing half-started, and work goes on afterwards. */
static void test_out_of_descriptors(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig);
    struct rlimit old, tight;
    autoanswer warm = {0};
    rig_sh(&rig, "true", &warm);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    int open_now = rig_count_fds();
    int refused = 0;
    for (int spare = 0; spare < 14; spare++) {
        tight = (struct rlimit){(rlim_t)(open_now + spare), old.rlim_max};
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &tight), 0);
        autoanswer a = {0}, end = {0};
        rig_exec_with(&rig, &(struct run_exec){.argv = RIG_SH("exit 0"), .tty = spare % 2}, &a);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
        if (a.failed) {
            assert_int_equal(a.err.code, ERR_PROCESS_SPAWN_FAILED);
            assert_non_null(strstr(a.err.message, "Too many open files"));
            refused++;
        } else {
            rig_finish(&rig, a.id, &end);
        }
    }
    assert_true(refused > 2);
    autoanswer after = {0};
    rig_sh(&rig, "echo fine", &after);
    assert_string_equal(buf_bytes(&after.bytes), "fine\n");
    rig_stop(&rig);
}

/* A status that somebody else took is not invented. */
static void test_lost_status(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig);
    char id[64];
    autoanswer w = {0}, a = {0};
    rig_exec(&rig, &(struct run_exec){.argv = RIG_SH("read x; exit 3")}, id);
    signal(SIGCHLD, SIG_IGN); /* the kernel then reaps by itself */
    rig_write(&rig, id, "\n", 1, false, &w);
    rig_finish(&rig, id, &a);
    signal(SIGCHLD, SIG_DFL);
    END(a, RUN_END_LOST, 0);
    assert_non_null(strstr(a.reason, "No child"));
    rig_stop(&rig);
}

#define OF_THE_OWNER cmocka_unit_test(test_out_of_descriptors), cmocka_unit_test(test_lost_status),
#else
#define OF_THE_OWNER
#endif

/* R7: freeing the runner ends what runs, whatever it ignores. */
static void test_free_kills(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig);
    char id[64];
    autofree char *mark = rig_sleep(3);
    autofree char *line = mem_printf("trap '' TERM HUP; echo up; %s", mark);
    rig_exec(&rig, &(struct run_exec){.argv = RIG_SH(line)}, id);
    rig_expect(&rig, id, "up\n");
    rig_stop(&rig);
    rig_expect_no_survivor(mark);
}

UNIT_MAIN(cmocka_unit_test(test_echo_and_status), cmocka_unit_test(test_exit_codes_and_signals),
          cmocka_unit_test(test_missing_program_is_a_spawn_failure),
          cmocka_unit_test(test_too_large_arguments), cmocka_unit_test(test_cwd_and_environment),
          cmocka_unit_test(test_script_without_interpreter_line),
          cmocka_unit_test(test_streams_are_kept_apart),
          cmocka_unit_test(test_order_of_streams_with_pauses), cmocka_unit_test(test_timeout),
          cmocka_unit_test(test_terminate), cmocka_unit_test(test_terminate_after_the_end),
          cmocka_unit_test(test_background_children), cmocka_unit_test(test_times_of_the_command),
          cmocka_unit_test(test_job_control_groups_end_too),
          cmocka_unit_test(test_setsid_child_does_not_hold_the_end),
          cmocka_unit_test(test_limit_of_live_processes), cmocka_unit_test(test_retention),
          cmocka_unit_test(test_500_in_a_row_leak_nothing), cmocka_unit_test(test_64_at_once),
          OF_THE_OWNER cmocka_unit_test(test_free_kills))
