/* run with the real helper: what a command does must end as it is told, and nothing may survive.
 *
 * The helper is the one of this build (CODESPACE_LINUX_SANDBOX_BIN, set by meson). Where the
 * sandbox cannot be built this fails, because here it is the thing under test; a machine that has
 * to do without says so by CODESPACE_TEST_SANDBOX_OPTIONAL, and the whole program is skipped aloud.
 */
#include "rig.h"
#include "wire/probe.h"

/* Every rig has its own TMPDIR, so that what is left over can be seen. */
static void start(struct rig *rig)
{
    rig_open(rig);
    autofree char *tmp = mem_printf("%s/tmp", rig->dir);
    assert_int_equal(mkdir(tmp, 0700), 0);
    setenv("TMPDIR", tmp, 1);
    rig->helper = local_find_helper();
    assert_non_null(rig->helper);
    rig_run(rig, 0);
}

static void stop(struct rig *rig)
{
    autofree char *tmp = mem_printf("%s/tmp", rig->dir);
    int n = 0;
    rig_end(rig); /* what is warmed up in the meantime as well */
    DIR *dir = opendir(tmp);
    assert_non_null(dir);
    while (readdir(dir) != NULL)
        n++;
    closedir(dir);
    assert_int_equal(n, 2); /* . and ..: nothing was left (L33) */
    rig_clear(rig);
}

static void test_ends(void **state)
{
    (void)state;
    struct rig rig;
    start(&rig);
    static const struct {
        const char *line;
        enum run_termination t;
        int code, signal;
        const char *out;
    } rows[] = {
        {"echo hello", RUN_END_EXITED, 0, 0, "hello\n"},
        {"exit 1", RUN_END_EXITED, 1, 0, ""},
        {"exit 137", RUN_END_EXITED, 137, 0, ""},
        {"exit 187", RUN_END_EXITED, 187, 0, ""}, /* a wrapper's code, from a command */
        {"kill -9 $$", RUN_END_SIGNALED, 0, 9, ""},
        {"kill -TERM $$", RUN_END_SIGNALED, 0, 15, ""},
        {"cat", RUN_END_EXITED, 0, 0, "given"},
        {"head -c 300000 /dev/zero | tr '\\0' x | tail -c 5; echo", RUN_END_EXITED, 0, 0,
         "xxxxx\n"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        autoanswer a = {0};
        char id[64];
        rig_exec(
            &rig,
            &(struct run_exec){.argv = RIG_SH(rows[i].line), .stdin_data = "given", .stdin_len = 5},
            id);
        rig_finish(&rig, id, &a);
        assert_true(a.status.sandboxed);
        assert_int_equal(a.status.termination, rows[i].t);
        assert_int_equal(a.status.exit_code, rows[i].code);
        assert_int_equal(a.status.signal, rows[i].signal);
        assert_string_equal(buf_bytes(&a.bytes), rows[i].out);
    }
    stop(&rig);
}

/* All that was written before the end is there, though nobody waits for the wrapper. */
static void test_output_is_whole(void **state)
{
    (void)state;
    struct rig rig;
    start(&rig);
    for (int i = 0; i < 20; i++) {
        autoanswer a = {0};
        rig_sh(&rig, "head -c 250000 /dev/zero; head -c 1000 /dev/zero >&2", &a);
        assert_int_equal(a.status.output_total, 251000);
    }
    stop(&rig);
}

static void test_spawn_failures(void **state)
{
    (void)state;
    struct rig rig;
    start(&rig);
    static const struct {
        char *const argv[2];
        const char *cwd;
        const char *words;
    } rows[] = {
        {{(char *)"no-such-program", NULL}, NULL, "PATH is /usr/local/bin"},
        {{(char *)"./missing", NULL}, NULL, "No such file"},
        {{(char *)"/etc/passwd", NULL}, NULL, "Permission denied"},
        {{(char *)"/bin/true", NULL}, "nowhere", "nowhere"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        autoanswer a = {0};
        rig_exec_with(&rig, &(struct run_exec){.argv = rows[i].argv, .cwd = rows[i].cwd}, &a);
        assert_true(a.failed);
        assert_int_equal(a.err.code, ERR_PROCESS_SPAWN_FAILED);
        if (strstr(a.err.message, rows[i].words) == NULL)
            fail_msg("\"%s\" does not say \"%s\"", a.err.message, rows[i].words);
    }
    stop(&rig);
}

/* What tries hardest to stay: own sessions, twice forked, deaf to TERM and HUP. Then `last`. */
static char *stayers(const char *mark, const char *last)
{
    return mem_printf("trap '' TERM HUP INT; "
                      "(setsid sh -c 'trap \"\" TERM HUP; (setsid %s &) ; %s' &) ; "
                      "nohup %s >/dev/null 2>&1 & "
                      "while ! test $(ps -e -o args= | grep -c '^%s') -ge 3; do sleep 0.01; done; "
                      "echo up; %s",
                      mark, mark, mark, mark, last);
}

/* E2, E6: zero survivors, whichever way it ends. */
static void test_no_survivors(void **state)
{
    (void)state;
    struct rig rig;
    start(&rig);
    autoanswer natural = {0}, timeout = {0}, terminated = {0};
    char id[64];
    autofree char *mark = rig_sleep(4);
    autofree char *ends = stayers(mark, "exit 0");
    autofree char *stays = stayers(mark, mark);
    rig_sh(&rig, ends, &natural);
    assert_int_equal(natural.status.termination, RUN_END_EXITED);
    assert_true(natural.status.background >= 3);
    rig_expect_no_survivor(mark);

    rig_exec(&rig, &(struct run_exec){.argv = RIG_SH(stays), .timeout_ms = 1500}, id);
    rig_finish(&rig, id, &timeout);
    assert_int_equal(timeout.status.termination, RUN_END_TIMEOUT);
    rig_expect_no_survivor(mark);

    rig_exec(&rig, &(struct run_exec){.argv = RIG_SH(stays)}, id);
    rig_expect(&rig, id, "up\n");
    rig_terminate(&rig, id);
    rig_finish(&rig, id, &terminated);
    assert_int_equal(terminated.status.termination, RUN_END_TERMINATED);
    rig_expect_no_survivor(mark);

    rig_exec(&rig, &(struct run_exec){.argv = RIG_SH(stays)}, id);
    rig_expect(&rig, id, "up\n");
    stop(&rig); /* R7 */
    rig_expect_no_survivor(mark);
}

static int count_entries(const char *dir)
{
    int n = 0;
    DIR *d = opendir(dir);
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d)) != NULL;)
        n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

static void on_probed(void *user, const struct probe_result *result)
{
    assert_true(result->works);
    ((struct rig_answer *)user)->arrived = true;
}

/* The runner ends at whatever moment of a start: nothing is left. */
static void test_ends_while_it_starts(void **state)
{
    (void)state;
    const char *before = getenv("TMPDIR");
    autofree char *old = mem_strdup(before);
    for (useconds_t round = 0; round < 24; round++) {
        struct rig rig;
        rig_open(&rig);
        autofree char *tmp = mem_printf("%s/tmp", rig.dir);
        assert_int_equal(mkdir(tmp, 0700), 0);
        setenv("TMPDIR", tmp, 1);
        rig.helper = local_find_helper();
        rig.options.warm_off = round % 2 == 0;
        rig.ws.sandbox = SANDBOX_REQUIRED;
        rig_run(&rig, 0);
        autoanswer probed = {0}, a = {0};
        runner_probe(rig.runner, on_probed, &probed);
        rig_until(&rig, &probed.arrived);
        runner_exec(rig.runner, &(struct run_exec){.ws = &rig.ws, .argv = RIG_SH("exit 0")},
                    rig_on_exec, &a);
        for (useconds_t i = 0; i < round && !a.arrived; i++) {
            usleep(500);
            if (round % 3 != 0) /* else it sees nothing of what happens meanwhile */
                uv_run(&rig.loop, UV_RUN_NOWAIT);
        }
        runner_free(steal(rig.runner));
        assert_int_equal(uv_run(&rig.loop, UV_RUN_DEFAULT), 0);
        assert_int_equal(count_entries(tmp), 0);
        rig_stop(&rig);
    }
    if (old != NULL)
        setenv("TMPDIR", old, 1);
    else
        unsetenv("TMPDIR");
}

/* Process 1 inside tells the moments, so they are those of the command. */
static void test_times_of_the_command(void **state)
{
    (void)state;
    struct rig rig;
    start(&rig);
    for (int i = 0; i < 8; i++) {
        autoanswer a = {0};
        unsigned long long began = 0, ended = 0;
        rig_sh(&rig, "date +%s%3N; sleep 0.02; date +%s%3N; kill -9 $$", &a);
        assert_int_equal(sscanf(buf_bytes(&a.bytes), "%llu %llu", &began, &ended), 2);
        assert_true(a.status.started_ms <= began);
        assert_true(a.status.ended_ms + 1 >= ended); /* its fraction is the start's */
        assert_true(a.status.ended_ms - a.status.started_ms >= 20);
    }
    stop(&rig);
}

/* E1 in the sandbox: the end is the command's, output before it is whole. */
static void test_background_holds_nobody_up(void **state)
{
    (void)state;
    struct rig rig;
    start(&rig);
    autoanswer a = {0};
    autofree char *mark = rig_sleep(5);
    autofree char *line = mem_printf("%s & echo $!; setsid %s & echo done", mark, mark);
    rig_sh(&rig, line, &a);
    char *rest = NULL;
    char *first = strtok_r(a.bytes.data + a.bytes.start, "\n", &rest);
    assert_string_equal(rest, "done\n");
    assert_int_equal(a.status.background, 2);
    autofree char *named_so = mem_printf("%s s", first); /* by the number it has inside */
    assert_non_null(strstr(a.left, named_so));
    rig_expect_no_survivor(mark);
    autoanswer many = {0};
    autofree char *crowd = mem_printf("i=0; while [ $i -lt 40 ]; do %s & i=$((i+1)); done", mark);
    rig_sh(&rig, crowd, &many);
    assert_int_equal(many.status.background, 40);
    size_t named = 1;
    for (const char *at = many.left; (at = strchr(at, '|')) != NULL; at++)
        named++;
    assert_int_equal(named, RUN_BACKGROUND_NAMED_MAX);
    rig_expect_no_survivor(mark);
    stop(&rig);
}

static void test_terminal(void **state)
{
    (void)state;
    struct rig rig;
    start(&rig);
    char id[64];
    autoanswer a = {0}, r = {0}, b = {0}, w = {0}, c = {0};
    rig_exec(&rig,
             &(struct run_exec){.argv = RIG_SH("test -t 0 && test -t 1 && test -t 2 && echo yes; "
                                               "stty size; echo ctty >/dev/tty; echo $TERM"),
                                .tty = true},
             id);
    rig_finish(&rig, id, &a);
    assert_string_equal(buf_bytes(&a.bytes), "yes\r\n24 80\r\nctty\r\nxterm\r\n");
    rig_exec(
        &rig,
        &(struct run_exec){.argv = RIG_SH("trap 'stty size; exit 4' WINCH; stty size; while :; "
                                          "do sleep 0.01; done"),
                           .tty = true,
                           .rows = 30,
                           .cols = 100},
        id);
    rig_expect(&rig, id, "30 100");
    runner_resize(rig.runner, id, 50, 132, rig_on_done, &r);
    rig_finish(&rig, id, &b);
    assert_string_equal(buf_bytes(&b.bytes), "30 100\r\n50 132\r\n");
    assert_int_equal(b.status.exit_code, 4);
    rig_exec(&rig, &(struct run_exec){.argv = RIG_SH("echo up; exec cat"), .tty = true}, id);
    rig_expect(&rig, id, "up");
    rig_write(&rig, id, "\003", 1, false, &w);
    rig_finish(&rig, id, &c);
    assert_int_equal(c.status.termination, RUN_END_SIGNALED); /* L8 */
    assert_int_equal(c.status.signal, SIGINT);
    stop(&rig);
}

static void test_terminal_output_is_whole(void **state)
{
    (void)state;
    struct rig rig;
    start(&rig);
    for (int i = 0; i < 20; i++) {
        autoanswer a = {0};
        char id[64];
        rig_exec(&rig, &(struct run_exec){.argv = RIG_SH("seq 1 2000"), .tty = true}, id);
        rig_finish(&rig, id, &a);
        assert_int_equal(a.bytes.len, 8893 + 2000);
    }
    stop(&rig);
}

static void test_terminate_asks_first(void **state)
{
    (void)state;
    struct rig rig;
    start(&rig);
    char id[64];
    autoanswer a = {0};
    rig_exec(&rig,
             &(struct run_exec){
                 .argv = RIG_SH("trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.01; "
                                "done")},
             id);
    rig_expect(&rig, id, "up\n");
    rig_terminate(&rig, id);
    rig_finish(&rig, id, &a);
    assert_non_null(strstr(buf_bytes(&a.bytes), "bye\n"));
    assert_int_equal(a.status.termination, RUN_END_TERMINATED);
    stop(&rig);
}

static void test_protected_names_are_told(void **state)
{
    (void)state;
    struct rig rig;
    start(&rig);
    autoanswer a = {0};
    rig_sh(&rig, "mkdir .codex; echo file >kept", &a);
    assert_string_equal(a.removed, ".codex");
    autofree char *gone = mem_printf("%s/.codex", rig.ws.root);
    autofree char *kept = mem_printf("%s/kept", rig.ws.root);
    assert_int_equal(access(gone, F_OK), -1);
    assert_int_equal(access(kept, F_OK), 0);
    stop(&rig);
}

static void test_100_in_a_row_and_16_at_once(void **state)
{
    (void)state;
    struct rig rig;
    start(&rig);
    static char ids[16][64];
    int before = -1;
    for (int i = 0; i < 100; i++) {
        autoanswer a = {0};
        rig_sh(&rig, "exit 3", &a);
        assert_int_equal(a.status.exit_code, 3);
        if (i == 10)
            before = rig_count_fds();
    }
    /* Less than one of each command: what the runner keeps of the next one is there or not. */
    for (uint64_t began = rig_now_ms(); rig_count_fds() > before + 20;) {
        assert_true(rig_now_ms() - began < RIG_LIMIT_MS);
        uv_run(&rig.loop, UV_RUN_NOWAIT); /* wrappers of the last ones may still go */
    }
    for (int i = 0; i < 16; i++) {
        autofree char *line = mem_printf("read x; echo $x-%d", i);
        rig_exec(&rig, &(struct run_exec){.argv = RIG_SH(line)}, ids[i]);
    }
    for (int i = 0; i < 16; i++) {
        autoanswer w = {0}, a = {0};
        autofree char *want = mem_printf("go-%d\n", i);
        rig_write(&rig, ids[i], "go\n", 3, false, &w);
        rig_finish(&rig, ids[i], &a);
        assert_string_equal(buf_bytes(&a.bytes), want);
    }
    stop(&rig);
}

#ifndef RIG_REMOTE /* there the only child is the worker: see test_kills */
/* SIGKILL for the wrapper at all kinds of moments: an honest state, no survivor. */
static void kill_children(void)
{
    char path[64];
    char text[256] = "";
    snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    ssize_t n = read(fd, text, sizeof(text) - 1);
    close(fd);
    for (char *at = text; n > 0 && *at != '\0';) {
        long pid = strtol(at, &at, 10);
        if (pid <= 0)
            break;
        kill((pid_t)pid, SIGKILL);
    }
}

static void test_killed_wrappers(void **state)
{
    (void)state;
    struct rig rig;
    start(&rig);
    autoanswer warm = {0};
    rig_sh(&rig, "true", &warm);
    int told = 0;
    autofree char *mark = rig_sleep(6);
    autofree char *line = mem_printf("setsid %s & %s", mark, mark);
    for (unsigned i = 0; i < 60; i++) {
        autoanswer a = {0}, end = {0};
        const struct run_exec x = {.ws = &rig.ws, .argv = RIG_SH(line)};
        runner_exec(rig.runner, &x, rig_on_exec, &a);
        /* At some moment of its start; the last ones after it, however slow it is. */
        uint64_t until = rig_now_ms() + (i < 50 ? i % 20 : RIG_LIMIT_MS);
        while (rig_now_ms() < until && !a.arrived)
            uv_run(&rig.loop, UV_RUN_NOWAIT);
        kill_children();
        rig_until(&rig, &a.arrived);
        if (a.failed) {
            assert_int_equal(a.err.code, ERR_PROCESS_SPAWN_FAILED);
            continue;
        }
        kill_children(); /* in case the first only hit what ended the one before */
        rig_finish(&rig, a.id, &end);
        assert_true(end.status.termination == RUN_END_WRAPPER_FAILED ||
                    end.status.termination == RUN_END_SIGNALED);
        told++;
    }
    assert_true(told > 0);
    rig_expect_no_survivor(mark);
    stop(&rig);
}

#endif

/* R7, E5: the server is killed and can do nothing any more; its commands end all the same. */
static void test_killed_server(void **state)
{
    (void)state;
    autofree char *mark = rig_sleep(7);
    autofree char *line = stayers(mark, mark);
    for (unsigned i = 0; i < 5; i++) {
        int ready[2];
        char c;
        assert_int_equal(pipe(ready), 0);
        pid_t server = fork();
        assert_true(server >= 0);
        if (server == 0) {
            struct rig rig;
            char id[64];
            start(&rig);
            rig_exec(&rig, &(struct run_exec){.argv = RIG_SH(line)}, id);
            rig_expect(&rig, id, "up\n");
            (void)!write(ready[1], rig.dir, strlen(rig.dir));
            close(ready[1]);
            pause();
        }
        close(ready[1]);
        char dir[256] = "";
        assert_true(read(ready[0], dir, sizeof(dir) - 1) > 0);
        assert_int_equal(read(ready[0], &c, 1), 0);
        close(ready[0]);
        assert_true(rig_count_processes(mark) >= 3);
        kill(server, SIGKILL);
        assert_int_equal(waitpid(server, NULL, 0), server);
        rig_expect_no_survivor(mark);
        /* A worker whose server is gone takes its own part of it away at the same time. */
        while (nftw(dir, rig_remove, 16, FTW_DEPTH | FTW_PHYS) != 0 && access(dir, F_OK) == 0)
            continue;
        assert_int_equal(access(dir, F_OK), -1);
    }
}

static void probe_arrived(void *user, const struct probe_result *result)
{
    *(const struct probe_result **)user = result;
}

/* 77 is meson's word for skipped. */
static int check_sandbox(void)
{
    struct rig rig;
    const struct probe_result *result = NULL;
    start(&rig);
    runner_probe(rig.runner, probe_arrived, &result);
    while (result == NULL)
        uv_run(&rig.loop, UV_RUN_ONCE);
    int rc = 0;
    if (!result->works) {
        fprintf(stderr, "the sandbox does not work here: %s (%s)\n",
                probe_cause_what(result->cause), result->detail);
        rc = getenv("CODESPACE_TEST_SANDBOX_OPTIONAL") != NULL ? 77 : 1;
    }
    stop(&rig);
    return rc;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_output_is_whole),
        cmocka_unit_test(test_spawn_failures),
        cmocka_unit_test(test_no_survivors),
        cmocka_unit_test(test_background_holds_nobody_up),
        cmocka_unit_test(test_times_of_the_command),
        cmocka_unit_test(test_ends_while_it_starts),
        cmocka_unit_test(test_terminal),
        cmocka_unit_test(test_terminal_output_is_whole),
        cmocka_unit_test(test_terminate_asks_first),
        cmocka_unit_test(test_protected_names_are_told),
        cmocka_unit_test(test_100_in_a_row_and_16_at_once),
#ifndef RIG_REMOTE
        cmocka_unit_test(test_killed_wrappers),
#endif
        cmocka_unit_test(test_killed_server),
    };
    int rc = check_sandbox();
    return rc != 0 ? rc : cmocka_run_group_tests(tests, NULL, NULL);
}
