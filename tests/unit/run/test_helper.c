/* run against helpers that are scripts: every way in which the other side of wire/helper can be
 * slow, wrong, hostile or gone. What must hold in all of them: an error that says what happened, no
 * command on the host (R14), nothing left.
 */
#include "rig.h"
#include "wire/probe.h"

#include <string.h>

/* A helper whose probe works and which starts like this: until it has answered, and from there. The
 * bodies see $dir. */
static void start_with(struct rig *rig, const char *prepare, const char *run)
{
    rig_open(rig);
    struct probe_result works = {.works = true, .cause = PROBE_NONE, .egress = true};
    autobuf json = BUF_INIT;
    probe_write(&works, &json);
    autofree char *script = mem_printf("#!/bin/sh\ndir=%s\ncase \"$1\" in\nprobe) echo '%s';;\n"
                                       "start) %s\n%s\n;;\nesac\n",
                                       rig->dir, buf_cstr(&json), prepare, run);
    rig_fake_helper(rig, script);
    rig_run(rig, 0);
}

#define PREPARED "cat <&4 >$dir/request; echo '{\"type\":\"prepared\"}' >&3; "
#define SAY(event) "echo '{\"event\":" event "}' >&3; "
#define STARTED SAY("\"started\"")

static void on_works(void *user, const struct probe_result *result)
{
    assert_true(result->works);
    ((struct rig_answer *)user)->arrived = true;
}

static void await_probe(struct rig *rig, struct rig_answer *a)
{
    runner_probe(rig->runner, on_works, a);
    rig_until(rig, &a->arrived);
}

static void await_file(const char *path)
{
    for (uint64_t began = rig_now_ms(); access(path, F_OK) < 0;) {
        assert_true(rig_now_ms() - began < RIG_LIMIT_MS);
        usleep(1000);
    }
}

static void expect_failure(struct rig *rig, enum err_code code, const char *words)
{
    autoanswer a = {0};
    rig_exec_with(rig, &(struct run_exec){.argv = RIG_SH("echo ran >host-run")}, &a);
    assert_true(a.failed);
    assert_int_equal(a.err.code, code);
    if (strstr(a.err.message, words) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", a.err.message, words);
    autofree char *proof = mem_printf("%s/host-run", rig->ws.root);
    assert_int_equal(access(proof, F_OK), -1);
}

static void test_prepare_failures(void **state)
{
    (void)state;
    static const struct {
        const char *prepare;
        const char *words;
    } rows[] = {
        {"cat <&4 >/dev/null; echo '{\"type\":\"error\",\"message\":\"no such cwd\"}' >&3; exit 1",
         "the sandbox refused: no such cwd"},
        {"echo 'not json' >&3", "not one JSON line"},
        {"echo >&3", "not one JSON line"},
        {SAY("\"failed\",\"code\":187,\"message\":\"early\""), "not understood"},
        {STARTED, "not understood"},
        {"echo '{\"type\":\"prepared\",\"guards\":[1]}' >&3", "not understood"},
        {"cat <&4 >/dev/null; exit 0", "ended before it answered (status 0)"},
        {"echo usage: none >&2; exit 180", "(status 180): usage: none"}, /* of another version */
        {"kill -9 $$", "ended before it answered (killed by signal 9)"},
        {"exec >&-; echo broken >&2; kill -9 $$", "broken"},
        {"yes | tr -d '\\n' | head -c 40000 >&3; exec sleep 600", "HELPER_LINE_MAX"},
        {"exec 3>&-; exec sleep 600", "closed its control socket and did not answer"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct rig rig;
        start_with(&rig, rows[i].prepare, "exec sleep 600");
        expect_failure(&rig, ERR_PROCESS_SPAWN_FAILED, rows[i].words);
        rig_stop(&rig);
    }
}

static void test_prepare_that_hangs(void **state)
{
    (void)state;
    struct rig rig;
    start_with(&rig, "exec sleep 600", "");
    expect_failure(&rig, ERR_PROCESS_SPAWN_FAILED, "did not answer within 5000 ms");
    rig_stop(&rig);
}

static void test_start_failures(void **state)
{
    (void)state;
    static const struct {
        const char *run;
        const char *words;
    } rows[] = {
        {SAY("\"exec_failed\",\"errno\":2"), "cannot execute '/bin/sh': No such file"},
        {"echo \"bwrap: Can't mkdir /x: Permission denied\" >&3; " SAY(
             "\"failed\",\"code\":187,\"message\":\"the view\"") "exit 187",
         "Can't mkdir /x"},
        {"echo 'bwrap: no namespaces' >&3; exit 1", "bwrap: no namespaces"},
        {"kill -9 $$", "killed by signal 9"},
        {"exit 0", "status 0"},
        {"exec 3>&-; exit 9", "status 9"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct rig rig;
        start_with(&rig, PREPARED, rows[i].run);
        expect_failure(&rig, ERR_PROCESS_SPAWN_FAILED, rows[i].words);
        rig_stop(&rig);
    }
}

/* Runs the fake to its end and returns the answer. */
static void run_fake(const char *run, bool tty, struct rig_answer *a)
{
    struct rig rig;
    start_with(&rig, PREPARED, run);
    char id[64];
    rig_exec(&rig, &(struct run_exec){.argv = RIG_SH("x"), .tty = tty}, id);
    rig_finish(&rig, id, a);
    rig_stop(&rig);
}

static void test_verdicts(void **state)
{
    (void)state;
    autoanswer code = {0}, sig = {0}, implied = {0};
    run_fake("echo out; " STARTED SAY(
                 "\"exit\",\"code\":7,\"background\":2,\"cpu_us\":5,\"max_rss_kib\":6,"
                 "\"removed\":[\".git\",\".codex\"]"),
             false, &code);
    assert_int_equal(code.status.termination, RUN_END_EXITED);
    assert_int_equal(code.status.exit_code, 7);
    assert_int_equal(code.status.background, 2);
    assert_int_equal(code.status.cpu_us, 5);
    assert_int_equal(code.status.max_rss_kib, 6);
    assert_string_equal(code.removed, ".git .codex");
    assert_string_equal(buf_bytes(&code.bytes), "out\n");
    assert_true(code.status.sandboxed);
    run_fake(STARTED SAY("\"signal\",\"signal\":11") "exit 139", true, &sig);
    assert_int_equal(sig.status.termination, RUN_END_SIGNALED);
    assert_int_equal(sig.status.signal, 11);
    run_fake(SAY("\"exit\",\"code\":0"), false, &implied);
    assert_int_equal(implied.status.termination, RUN_END_EXITED);
}

/* The other side tells when the command began and ended: only what can be true is taken over. */
static void test_told_times(void **state)
{
    (void)state;
    static const char *const told[] = {"0", "1", "99999999999999", "-5", "\"x\""};
    for (size_t i = 0; i < ARRAY_LEN(told); i++) {
        autoanswer a = {0};
        autofree char *line =
            mem_printf("echo '{\"event\":\"started\",\"at_us\":%s}' >&3; sleep 0.02; "
                       "echo '{\"event\":\"exit\",\"code\":0,\"at_us\":%s}' >&3; ",
                       told[i], told[i]);
        uint64_t before = (uint64_t)time(NULL) * 1000;
        run_fake(line, false, &a);
        assert_int_equal(a.status.termination, RUN_END_EXITED);
        assert_in_range(a.status.started_ms, before, (uint64_t)time(NULL) * 1000 + 1000);
        assert_in_range(a.status.ended_ms - a.status.started_ms, 15, RIG_LIMIT_MS);
    }
}

/* Its answer has come, and the runner ends before it reads it: so does the helper. */
static void test_an_answer_that_nobody_reads(void **state)
{
    (void)state;
    struct rig rig;
    autoanswer probed = {0}, a = {0};
    start_with(&rig, PREPARED "touch $dir/answered", "exec sleep 600");
    autofree char *answered = mem_printf("%s/answered", rig.dir);
    await_probe(&rig, &probed);
    runner_exec(rig.runner, &(struct run_exec){.ws = &rig.ws, .argv = RIG_SH("x")}, rig_on_exec,
                &a);
    await_file(answered); /* the loop does not turn */
    runner_free(steal(rig.runner));
    assert_false(a.arrived);
    rig_stop(&rig); /* which sees that nothing is left */
}

static char *read_text(const char *path)
{
    struct buf text = BUF_INIT;
    autofd int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    for (ssize_t n = 1; n > 0;) {
        n = read(fd, buf_reserve(&text, 65536), 65536);
        buf_commit(&text, n > 0 ? (size_t)n : 0);
    }
    return buf_steal(&text);
}

/* The request goes by descriptor, whole at any size, and no word of it is an argument. */
static void test_the_request(void **state)
{
    (void)state;
    struct rig rig;
    char *large = mem_zalloc(100001, 1);
    memset(large, 'x', 100000);
    char *argv[] = {(char *)"secret-word", large, large, NULL};
    start_with(&rig, "tr '\\0' ' ' </proc/$$/cmdline >$dir/cmdline; " PREPARED,
               SAY("\"exit\",\"code\":0"));
    char id[64];
    autoanswer a = {0};
    rig_exec(&rig, &(struct run_exec){.argv = argv}, id);
    rig_finish(&rig, id, &a);
    autofree char *request_path = mem_printf("%s/request", rig.dir);
    autofree char *cmdline_path = mem_printf("%s/cmdline", rig.dir);
    autofree char *request = read_text(request_path);
    autofree char *cmdline = read_text(cmdline_path);
    assert_true(strlen(request) > 200000);
    assert_non_null(strstr(request, "secret-word"));
    assert_int_equal(request[strlen(request) - 1], '}');
    assert_non_null(strstr(cmdline, "start --control-fd 3 --request-fd 4"));
    assert_null(strstr(cmdline, "secret"));
    free(large);
    rig_stop(&rig);
}

/* G10, E8: what was refused is carried on, and a kill for want of memory has a reason. */
static void test_denials(void **state)
{
    (void)state;
    autoanswer killed = {0}, other = {0};
    run_fake(STARTED SAY("\"signal\",\"signal\":9,\"oom_kills\":2,\"removed\":[\".git\"],"
                         "\"denials\":[{\"rule\":\"filter.trace\",\"what\":\"ptrace\","
                         "\"count\":3}]"),
             false, &killed);
    assert_int_equal(killed.status.termination, RUN_END_SIGNALED);
    assert_non_null(strstr(killed.reason, "memory limit"));
    assert_string_equal(killed.denials,
                        "filter.trace 3 ptrace|protect.name 1 .git|limit.memory 2 ");
    run_fake(STARTED SAY("\"signal\",\"signal\":9"), false, &other);
    assert_string_equal(other.reason, "");
    assert_string_equal(other.denials, "");
}

/* The verdict is seen while there is more in the pipe than one turn reads: all of it counts. */
static void test_output_before_the_verdict_is_whole(void **state)
{
    (void)state;
    struct rig rig;
    start_with(&rig, PREPARED,
               STARTED "read go; head -c 262144 /dev/zero; " SAY(
                   "\"exit\",\"code\":0") "touch $dir/told; exec sleep 600");
    char id[64];
    autoanswer w = {0}, a = {0};
    rig_exec(&rig, &(struct run_exec){.argv = RIG_SH("x")}, id);
    runner_write(rig.runner, id, "\n", 1, false, rig_on_done, &w);
    autofree char *told = mem_printf("%s/told", rig.dir);
    await_file(told); /* the loop stands still meanwhile */
    rig_finish(&rig, id, &a);
    assert_int_equal(a.status.output_total, 262144);
    rig_stop(&rig);
}

static void test_wrapper_dies_in_the_middle(void **state)
{
    (void)state;
    static const struct {
        const char *run;
        const char *words;
    } rows[] = {
        {STARTED "echo 'bwrap: lost it' >&3; kill -9 $$", "killed by signal 9"},
        {STARTED "exit 0", "without a verdict"},
        {STARTED "exec 3>&-; exec sleep 600", "without a verdict"}, /* and does not end by itself */
        {STARTED SAY("\"failed\",\"code\":192,\"message\":\"guard\"") "exit 192", "guard"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        autoanswer a = {0};
        run_fake(rows[i].run, false, &a);
        assert_int_equal(a.status.termination, RUN_END_WRAPPER_FAILED);
        assert_int_equal(a.status.exit_code, 0);
        if (strstr(a.reason, rows[i].words) == NULL)
            fail_msg("\"%s\" does not say \"%s\"", a.reason, rows[i].words);
    }
}

/* Text that looks like an event and is none, lines without end, events after the end. */
static void test_hostile_control_lines(void **state)
{
    (void)state;
    autoanswer a = {0};
    run_fake("yes junk | head -c 60000 | tr -d '\\n' >&3; echo >&3; "
             "echo '{\"event\":\"exit\",\"code\":\"zero\"}' >&3; echo '{' >&3; "
             "printf 'a\\0b\\n' >&3; " STARTED STARTED SAY("\"exit\",\"code\":3")
                 SAY("\"exit\",\"code\":4") STARTED SAY("\"exec_failed\",\"errno\":2"),
             false, &a);
    assert_int_equal(a.status.termination, RUN_END_EXITED);
    assert_int_equal(a.status.exit_code, 3);
}

/* TERM by the control line, KILL by it, then the wrapper by force; the intent names the end. */
static void test_terminate_ladder(void **state)
{
    (void)state;
    static const char *const runs[] = {
        STARTED
        "echo up; read line <&3; case $line in *15*) " SAY("\"signal\",\"signal\":15") ";; esac",
        STARTED "echo up; read line <&3; read line <&3; case $line in *9*) " SAY(
            "\"signal\",\"signal\":9") ";; esac",
        STARTED "echo up; exec sleep 600",
    };
    for (size_t i = 0; i < ARRAY_LEN(runs); i++) {
        struct rig rig;
        start_with(&rig, PREPARED, runs[i]);
        char id[64];
        rig_exec(&rig, &(struct run_exec){.argv = RIG_SH("x")}, id);
        rig_expect(&rig, id, "up\n");
        rig_terminate(&rig, id);
        autoanswer a = {0};
        rig_finish(&rig, id, &a);
        assert_int_equal(a.status.termination, RUN_END_TERMINATED);
        rig_stop(&rig);
    }
}

static void test_verdict_and_a_wrapper_that_lingers(void **state)
{
    (void)state;
    struct rig rig;
    start_with(&rig, PREPARED, STARTED SAY("\"exit\",\"code\":0") "exec sleep 600");
    char id[64];
    rig_exec(&rig, &(struct run_exec){.argv = RIG_SH("x")}, id);
    autoanswer a = {0};
    rig_finish(&rig, id, &a);
    assert_int_equal(a.status.termination, RUN_END_EXITED);
    rig_stop(&rig); /* which sees that the wrapper does not stay */
}

static void test_cancel_and_free_while_probing(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig);
    rig_fake_helper(&rig, "#!/bin/sh\nexec sleep 600\n");
    rig_run(&rig, 0);
    autoanswer never = {0}, nor_this = {0};
    const struct run_exec x = {.ws = &rig.ws, .argv = RIG_SH("x")};
    run_ticket ticket = runner_exec(rig.runner, &x, rig_on_exec, &never);
    runner_exec(rig.runner, &x, rig_on_exec, &nor_this);
    runner_cancel(rig.runner, ticket);
    uv_run(&rig.loop, UV_RUN_NOWAIT);
    rig_stop(&rig);
    assert_false(never.arrived);
    assert_false(nor_this.arrived);
}

/* A start that is given up leaves nothing, at whatever step it was. */
static void test_cancelled_starts(void **state)
{
    (void)state;
    static const struct {
        const char *prepare;
        const char *run;
        const char *wait_for;
    } rows[] = {
        {"exec sleep 600", "", NULL},
        {PREPARED, "touch $dir/started; exec sleep 600", "started"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct rig rig;
        start_with(&rig, rows[i].prepare, rows[i].run);
        autoanswer never = {0};
        const struct run_exec x = {.ws = &rig.ws, .argv = RIG_SH("x")};
        run_ticket ticket = runner_exec(rig.runner, &x, rig_on_exec, &never);
        assert_int_not_equal(ticket, 0);
        autofree char *mark = mem_printf("%s/started", rig.dir);
        uint64_t began = rig_now_ms();
        while (rows[i].wait_for != NULL && access(mark, F_OK) < 0) {
            assert_true(rig_now_ms() - began < RIG_LIMIT_MS);
            uv_run(&rig.loop, UV_RUN_NOWAIT);
            usleep(1000);
        }
        runner_cancel(rig.runner, ticket);
        uv_run(&rig.loop, UV_RUN_NOWAIT);
        assert_false(never.arrived);
        rig_stop(&rig);
        assert_false(never.arrived);
    }
}

struct change {
    bool arrived;
    size_t changed, others;
};

static void on_rules(void *user, const struct run_rules *outcome, const struct err *failure)
{
    struct change *c = user;
    assert_null(failure);
    c->arrived = true;
    while (outcome->changed[c->changed] != NULL)
        c->changed++;
    while (outcome->others[c->others] != NULL)
        c->others++;
}

/* What changes while the helper prepares waits for its proxy, and is lost with it. */
static void test_new_rules_while_it_prepares(void **state)
{
    (void)state;
    static const struct {
        const char *prepare;
        bool runs;
    } rows[] = {
        {"cat <&4 >/dev/null; touch $dir/preparing; read policy <&5; "
         "echo '{\"type\":\"prepared\"}' >&3; echo '{\"event\":\"policy\"}' >&5",
         true},
        {"cat <&4 >/dev/null; touch $dir/preparing; read policy <&5; "
         "echo '{\"type\":\"error\",\"message\":\"no\"}' >&3; exit 1",
         false},
    };
    setenv("CODESPACE_WARM", "0", 1);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct rig rig;
        struct change c = {0};
        autoanswer probed = {0}, a = {0}, w = {0}, end = {0};
        start_with(&rig, rows[i].prepare, STARTED "read go; " SAY("\"exit\",\"code\":0"));
        rig.ws.network = NETWORK_ENABLED;
        await_probe(&rig, &probed);
        runner_exec(rig.runner, &(struct run_exec){.ws = &rig.ws, .argv = RIG_SH("x")}, rig_on_exec,
                    &a);
        autofree char *preparing = mem_printf("%s/preparing", rig.dir);
        await_file(preparing);
        assert_int_not_equal(runner_rules(rig.runner, &rig.ws, on_rules, &c), 0);
        rig_until(&rig, &c.arrived);
        rig_until(&rig, &a.arrived);
        assert_int_equal(c.changed, rows[i].runs);
        assert_int_equal(c.others, !rows[i].runs);
        assert_int_equal(a.failed, !rows[i].runs);
        if (rows[i].runs) {
            runner_write(rig.runner, a.id, "\n", 1, false, rig_on_done, &w);
            rig_finish(&rig, a.id, &end);
        }
        rig_stop(&rig);
    }
    unsetenv("CODESPACE_WARM");
}

static void on_probe(void *user, const struct probe_result *result)
{
    struct rig_answer *a = user;
    assert_false(a->arrived);
    a->arrived = true;
    snprintf(a->reason, sizeof(a->reason), "%s: %s", probe_cause_name(result->cause),
             result->detail);
}

/* R9, R13: a helper that cannot be probed means the host for restricted, an error for who demands.
 */
static void test_broken_probes(void **state)
{
    (void)state;
    static const char *const scripts[] = {
        "#!/bin/sh\nexit 1\n",
        "#!/bin/sh\necho '{\"works\":'\n",
        "#!/nowhere/sh\n",
        "#!/bin/sh\nkill -9 $$\n",
    };
    for (size_t i = 0; i < ARRAY_LEN(scripts); i++) {
        struct rig rig;
        rig_open(&rig);
        rig_fake_helper(&rig, scripts[i]);
        rig_run(&rig, 0);
        autoanswer first = {0}, again = {0}, early = {0};
        runner_probe(rig.runner, on_probe, &first);
        rig_sh(&rig, "echo host", &early); /* waits for the probe by itself */
        assert_string_equal(buf_bytes(&early.bytes), "host\n");
        assert_false(early.status.sandboxed);
        assert_true(first.arrived);
        runner_probe(rig.runner, on_probe, &again);
        assert_string_equal(first.reason, again.reason);
        rig.ws.sandbox = SANDBOX_REQUIRED;
        expect_failure(&rig, ERR_SANDBOX_UNAVAILABLE, "nothing was started");
        rig.ws.sandbox = SANDBOX_PREFERRED;
        rig.ws.network = NETWORK_ENABLED;
        expect_failure(&rig, ERR_PROCESS_SPAWN_FAILED,
                       "which commands get in the sandbox by the egress proxy only");
        rig_stop(&rig);
    }
}

/* A probe that is killed says nothing; commands must not run without the sandbox because of it. */
static void test_killed_probe_is_asked_again(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig);
    struct probe_result works = {.works = true, .cause = PROBE_NONE};
    autobuf json = BUF_INIT;
    probe_write(&works, &json);
    autofree char *script =
        mem_printf("#!/bin/sh\ncd %s\n[ -e asked ] || { : >asked; kill -9 $$; }\necho '%s'\n",
                   rig.dir, buf_cstr(&json));
    rig_fake_helper(&rig, script);
    rig_run(&rig, 0);
    autoanswer a = {0};
    runner_probe(rig.runner, on_probe, &a);
    rig_until(&rig, &a.arrived);
    assert_string_equal(a.reason, "none: ");
    rig_stop(&rig);
}

static void test_no_helper(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig);
    autoanswer a = {0};
    runner_probe(rig.runner, on_probe, &a);
    assert_string_equal(a.reason, "no_helper: ");
    rig.ws.sandbox = SANDBOX_REQUIRED;
    expect_failure(&rig, ERR_SANDBOX_UNAVAILABLE, "CODESPACE_LINUX_SANDBOX_BIN");
    rig_stop(&rig);
}

/* R9: a variable that names no file means no helper, not another one. */
static void test_find_helper(void **state)
{
    (void)state;
    setenv("CODESPACE_LINUX_SANDBOX_BIN", "/nowhere/helper", 1);
    assert_null(local_find_helper());
    setenv("CODESPACE_LINUX_SANDBOX_BIN", "/bin/sh", 1);
    autofree char *named = local_find_helper();
    assert_string_equal(named, "/bin/sh");
    unsetenv("CODESPACE_LINUX_SANDBOX_BIN");
}

/* Our environment is not the helper's: it may hold secrets (E34). */
static void test_helper_environment(void **state)
{
    (void)state;
    setenv("CODESPACE_TEST_SECRET", "hush", 1);
    autoanswer a = {0};
    run_fake("env; ls /proc/$$/fd | tr '\\n' ' '; " STARTED SAY("\"exit\",\"code\":0"), false, &a);
    unsetenv("CODESPACE_TEST_SECRET");
    assert_null(strstr(buf_bytes(&a.bytes), "CODESPACE_TEST_SECRET"));
    assert_non_null(strstr(buf_bytes(&a.bytes), "PATH="));
    assert_non_null(strstr(buf_bytes(&a.bytes), "0 1 10 2 3 4 ")); /* 10: the shell's own script */
}

UNIT_MAIN(cmocka_unit_test(test_prepare_failures), cmocka_unit_test(test_prepare_that_hangs),
          cmocka_unit_test(test_start_failures), cmocka_unit_test(test_verdicts),
          cmocka_unit_test(test_told_times), cmocka_unit_test(test_an_answer_that_nobody_reads),
          cmocka_unit_test(test_the_request), cmocka_unit_test(test_denials),
          cmocka_unit_test(test_output_before_the_verdict_is_whole),
          cmocka_unit_test(test_wrapper_dies_in_the_middle),
          cmocka_unit_test(test_hostile_control_lines), cmocka_unit_test(test_terminate_ladder),
          cmocka_unit_test(test_verdict_and_a_wrapper_that_lingers),
          cmocka_unit_test(test_cancel_and_free_while_probing),
          cmocka_unit_test(test_cancelled_starts),
          cmocka_unit_test(test_new_rules_while_it_prepares), cmocka_unit_test(test_broken_probes),
          cmocka_unit_test(test_killed_probe_is_asked_again), cmocka_unit_test(test_no_helper),
          cmocka_unit_test(test_find_helper), cmocka_unit_test(test_helper_environment))
