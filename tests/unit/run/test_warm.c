/* run/warm with the real helper: a warm command is told from a cold one by nothing but its speed,
 * and whatever is wrong with a zygote ends in a cold start.
 */
#include "rig.h"

static void start(struct rig *rig)
{
    rig_open(rig);
    autofree char *tmp = mem_printf("%s/tmp", rig->dir);
    assert_int_equal(mkdir(tmp, 0700), 0);
    setenv("TMPDIR", tmp, 1);
    rig->helper = local_find_helper();
    assert_non_null(rig->helper);
}

static void expect_no_plan(const struct rig *rig)
{
    autofree char *tmp = mem_printf("%s/tmp", rig->dir);
    assert_int_equal(rmdir(tmp), 0);
    assert_int_equal(mkdir(tmp, 0700), 0);
}

static void on_warm(void *user, enum run_warm warm)
{
    *(enum run_warm *)user = warm;
}

static bool is_warm(const struct rig *rig)
{
    enum run_warm warm = RUN_WARM_UNKNOWN;
    runner_warm(rig->runner, rig->ws.id, on_warm, &warm);
    return warm == RUN_WARM_ON;
}

/* The first command asks for a zygote; others until it is there. */
static void warm_up(struct rig *rig)
{
    uint64_t began = rig_now_ms();
    while (!is_warm(rig)) {
        autoanswer a = {0};
        rig_sh(rig, "true", &a);
        assert_true(rig_now_ms() - began < RIG_LIMIT_MS);
    }
}

/* How a command ends, as text. */
static char *describe(struct rig *rig, const struct run_exec *ask)
{
    autoanswer a = {0};
    rig_exec_with(rig, ask, &a);
    if (a.failed)
        return mem_printf("refused: %s", a.err.message);
    autoanswer end = {0};
    rig_finish(rig, a.id, &end);
    return mem_printf("%d code %d signal %d background %u removed %s eof %d reason %s: %s",
                      end.status.termination, end.status.exit_code, end.status.signal,
                      end.status.background, end.removed, end.status.eof, end.reason,
                      buf_cstr(&end.bytes));
}

#define SH(text) .argv = RIG_SH(text)

/* The same as cold, in every way in which a command can end. */
static void test_same_as_cold(void **state)
{
    (void)state;
    char *const missing[] = {(char *)"no-such-program", NULL};
    char *const slash[] = {(char *)"./no-such", NULL};
    char *const env[] = {(char *)"MINE=1", (char *)"TERM=odd", NULL};
    const struct run_exec rows[] = {
        {SH("echo hello")},
        {SH("exit 1")},
        {SH("exit 187")},
        {SH("kill -9 $$")},
        {SH("kill -TERM $$")},
        {.argv = missing},
        {.argv = slash},
        {SH("cat"), .stdin_data = "given", .stdin_len = 5},
        {SH("cat"), .stdin_data = "", .stdin_len = 0},
        {SH("sleep 60 & sleep 60 & exit 3")},
        {SH("mkdir .git; mkdir .agents; exit 4")},
        {SH("tty | sed s/[0-9]*$//; echo $TERM; test -t 0 && echo terminal"), .tty = true},
        {SH("stty size; exit 5"), .tty = true, .rows = 33, .cols = 77},
        {SH("env | sort; pwd; id; umask; ulimit -n; n=$(ls /proc); echo \"$n\" | grep -c '^[0-9]'"),
         .env = env},
        {SH("ls -a /tmp /tmp/home /dev/shm; grep Cap /proc/self/status; ls -l /proc/self/fd | wc "
            "-l")},
        {SH("true"), .cwd = "missing"},
        {SH("exec sleep 60"), .timeout_ms = 50},
        {SH("trap '' TERM; exec sleep 60"), .timeout_ms = 50},
    };
    struct rig cold, warm;
    start(&cold);
    cold.options.warm_off = true;
    rig_run(&cold, 0);
    char *expected[ARRAY_LEN(rows)];
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        expected[i] = describe(&cold, &rows[i]);
    assert_false(is_warm(&cold));
    autofree char *scratch = mem_strdup(strrchr(cold.dir, '/') + 1); /* of the same length */
    rig_stop(&cold);
    start(&warm);
    rig_run(&warm, 0);
    warm_up(&warm);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        autofree char *got = describe(&warm, &rows[i]);
        for (char *at; (at = strstr(got, strrchr(warm.dir, '/') + 1)) != NULL;)
            memcpy(at, scratch, strlen(scratch));
        assert_string_equal(got, expected[i]);
        assert_true(is_warm(&warm));
        free(expected[i]);
    }
    expect_no_plan(&warm);
    rig_stop(&warm);
}

/* Is it the zygote? */
static bool is_zygote(pid_t pid)
{
    char path[64], name[32] = "";
    snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t n = read(fd, name, sizeof(name) - 1);
    close(fd);
    return n > 0 && strcmp(name, "codespace-warm\n") == 0;
}

/* Below `parent`, or 0: bubblewrap is our child, and the zygote is bubblewrap's. A wrapper of an
 * earlier command may still be there. */
static pid_t zygote_below(pid_t parent, int depth)
{
    char path[64], text[512] = "";
    snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)parent, (int)parent);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t n = read(fd, text, sizeof(text) - 1);
    close(fd);
    pid_t found = 0;
    for (char *at = text, *end; n > 0 && found == 0; at = end) {
        pid_t pid = (pid_t)strtol(at, &end, 10);
        if (pid == 0)
            break;
        found = depth == 1 ? (is_zygote(pid) ? pid : 0) : zygote_below(pid, depth - 1);
    }
    return found;
}

static pid_t find_zygote(void)
{
    pid_t pid = zygote_below(getpid(), 2);
    assert_true(pid > 0);
    return pid;
}

/* Its death costs nothing but time. */
static void test_killed_zygote(void **state)
{
    (void)state;
    struct rig rig;
    start(&rig);
    rig_run(&rig, 0);
    warm_up(&rig);
    assert_int_equal(kill(find_zygote(), SIGKILL), 0);
    while (is_warm(&rig))
        uv_run(&rig.loop, UV_RUN_ONCE);
    for (int i = 0; i < 3; i++) {
        autoanswer a = {0};
        rig_sh(&rig, "echo x", &a);
        assert_int_equal(a.status.termination, RUN_END_EXITED);
        assert_string_equal(buf_cstr(&a.bytes), "x\n");
    }
    assert_false(is_warm(&rig));
    rig_stop(&rig);
}

/* A command whose sandbox dies is told as such, and not run a second time. */
static void test_killed_under_a_command(void **state)
{
    (void)state;
    struct rig rig;
    char id[64];
    start(&rig);
    rig_run(&rig, 0);
    warm_up(&rig);
    autofree char *sleep = rig_sleep(1);
    autofree char *line = mem_printf("echo x >> ran; echo up; %s", sleep);
    rig_exec(&rig, &(struct run_exec){SH(line)}, id);
    rig_expect(&rig, id, "up\n");
    kill(find_zygote(), SIGKILL);
    autoanswer a = {0};
    rig_finish(&rig, id, &a);
    assert_int_equal(a.status.termination, RUN_END_WRAPPER_FAILED);
    rig_expect_no_survivor(sleep);
    autoanswer b = {0};
    rig_sh(&rig, "cat ran", &b);
    assert_string_equal(buf_cstr(&b.bytes), "x\n");
    rig_stop(&rig);
}

static void put(const struct rig *rig, const char *name, bool dir)
{
    autofree char *path = mem_printf("%s/%s", rig->ws.root, name);
    if (dir)
        assert_int_equal(mkdir(path, 0755), 0);
    else
        rig_write_file(path, "text", 0644);
}

/* What a person changes on the host counts from the next command on (H3). */
static void test_changes_on_the_host(void **state)
{
    (void)state;
    struct rig rig;
    start(&rig);
    rig_run(&rig, 0);
    warm_up(&rig);
    put(&rig, ".git", true);
    autoanswer a = {0};
    rig_sh(&rig, "touch .git/x || echo refused", &a);
    assert_non_null(strstr(buf_cstr(&a.bytes), "refused"));
    assert_string_equal(a.removed, "");
    warm_up(&rig);
    autofree char *git = mem_printf("%s/.git", rig.ws.root);
    assert_int_equal(rmdir(git), 0);
    autoanswer b = {0};
    rig_sh(&rig, "mkdir .git", &b);
    assert_string_equal(b.removed, ".git");
    warm_up(&rig);
    put(&rig, "sub", true);
    put(&rig, "sub/.git", true);
    autoanswer c = {0};
    rig_sh(&rig, "touch sub/.git/x || echo refused", &c);
    assert_non_null(strstr(buf_cstr(&c.bytes), "refused"));
    rig_stop(&rig);
}

/* The registry was changed: nobody gets the old view. */
static void test_changed_request(void **state)
{
    (void)state;
    struct rig rig;
    start(&rig);
    rig_run(&rig, 0);
    warm_up(&rig);
    rig.ws.profile = PROFILE_READ_ONLY;
    autoanswer a = {0};
    rig_sh(&rig, "touch x || echo refused", &a);
    assert_non_null(strstr(buf_cstr(&a.bytes), "refused"));
    rig_stop(&rig);
}

static void test_many_at_once(void **state)
{
    (void)state;
    struct rig rig;
    char ids[48][64];
    start(&rig);
    rig_run(&rig, 0);
    warm_up(&rig);
    struct rig_answer a[48] = {0};
    struct run_exec x = {SH("echo x"), .ws = &rig.ws};
    for (size_t i = 0; i < ARRAY_LEN(ids); i++)
        runner_exec(rig.runner, &x, rig_on_exec, &a[i]);
    for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
        autoanswer end = {0};
        rig_until(&rig, &a[i].arrived);
        assert_false(a[i].failed);
        rig_finish(&rig, a[i].id, &end);
        assert_string_equal(buf_cstr(&end.bytes), "x\n");
    }
    rig_stop(&rig);
}

/* Larger than a message: it starts cold. */
static void test_large_command(void **state)
{
    (void)state;
    struct rig rig;
    start(&rig);
    rig_run(&rig, 0);
    warm_up(&rig);
    autofree char *word = mem_zalloc(100001, 1);
    memset(word, 'x', 100000);
    char *const argv[] = {(char *)"printf", (char *)"%s", word, NULL};
    char id[64];
    autoanswer a = {0};
    rig_exec(&rig, &(struct run_exec){.argv = argv}, id);
    rig_finish(&rig, id, &a);
    assert_int_equal(a.bytes.len, 100000);
    rig_stop(&rig);
}

/* R7: with live commands, and in the middle of the making of a zygote. */
static void test_freed_runner(void **state)
{
    (void)state;
    for (int round = 0; round < 3; round++) {
        struct rig rig;
        char id[64];
        autofree char *sleep = rig_sleep(round);
        start(&rig);
        rig_run(&rig, 0);
        if (round > 0)
            warm_up(&rig);
        autofree char *line = mem_printf("setsid %s & echo up; %s", sleep, sleep);
        rig_exec(&rig, &(struct run_exec){SH(line)}, id);
        rig_expect(&rig, id, "up\n");
        rig_stop(&rig);
        rig_expect_no_survivor(sleep);
    }
}

static void test_switched_off(void **state)
{
    (void)state;
    struct rig rig;
    start(&rig);
    setenv("CODESPACE_WARM", "0", 1);
    rig_run(&rig, 0);
    unsetenv("CODESPACE_WARM");
    for (int i = 0; i < 5; i++) {
        autoanswer a = {0};
        rig_sh(&rig, "true", &a);
        assert_false(is_warm(&rig));
    }
    rig_stop(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_as_cold),           cmocka_unit_test(test_killed_zygote),
        cmocka_unit_test(test_killed_under_a_command), cmocka_unit_test(test_changes_on_the_host),
        cmocka_unit_test(test_changed_request),        cmocka_unit_test(test_many_at_once),
        cmocka_unit_test(test_large_command),          cmocka_unit_test(test_freed_runner),
        cmocka_unit_test(test_switched_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
