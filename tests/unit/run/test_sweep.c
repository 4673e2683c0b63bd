/* run/sweep with the real helper: process 1 inside is killed from outside while its command plants
 * what is protected. When the result is there nothing of it is left, it is told, and what a person
 * had before is as it was.
 */
#include "rig.h"

#define ROUNDS 8

static void start(struct rig *rig)
{
    rig_open(rig);
    autofree char *tmp = mem_printf("%s/tmp", rig->dir);
    assert_int_equal(mkdir(tmp, 0700), 0);
    setenv("TMPDIR", tmp, 1);
    rig->helper = local_find_helper();
    assert_non_null(rig->helper);
    rig->ws.sandbox = SANDBOX_REQUIRED;
    rig_run(rig, 0);
}

struct warmth {
    bool arrived;
    enum run_warm warm;
};

static void on_warm(void *user, enum run_warm warm)
{
    *(struct warmth *)user = (struct warmth){true, warm};
}

static void warm_up(struct rig *rig)
{
    uint64_t began = rig_now_ms();
    for (;;) {
        struct warmth w = {0};
        runner_warm(rig->runner, rig->ws.id, on_warm, &w);
        rig_until(rig, &w.arrived);
        if (w.warm == RUN_WARM_ON)
            return;
        autoanswer a = {0};
        rig_sh(rig, "true", &a);
        assert_true(rig_now_ms() - began < RIG_LIMIT_MS);
    }
}

static void read_file(const char *directory, const char *name, char *ret, size_t cap)
{
    char path[300];
    snprintf(path, sizeof(path), "/proc/%.240s/%s", directory, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, ret, cap - 1);
    if (fd >= 0)
        close(fd);
    ret[n > 0 ? n : 0] = '\0';
    for (ssize_t i = 0; i < n; i++)
        ret[i] = ret[i] == '\0' ? ' ' : ret[i];
}

static pid_t parent_of(pid_t pid)
{
    char name[32], text[512];
    snprintf(name, sizeof(name), "%d", (int)pid);
    read_file(name, "stat", text, sizeof(text));
    const char *end = strrchr(text, ')');
    return end == NULL ? 0 : (pid_t)strtol(end + 4, NULL, 10);
}

static bool is_called(pid_t pid, const char *comm)
{
    char name[32], text[64];
    snprintf(name, sizeof(name), "%d", (int)pid);
    read_file(name, "comm", text, sizeof(text));
    return strncmp(text, comm, strlen(comm)) == 0;
}

/* Any process with `mark` among its words, or 0. */
static pid_t find_marked(const char *mark)
{
    DIR *dir = opendir("/proc");
    pid_t found = 0;
    assert_non_null(dir);
    for (struct dirent *d; found == 0 && (d = readdir(dir)) != NULL;) {
        char text[512];
        if (d->d_name[0] < '1' || d->d_name[0] > '9')
            continue;
        read_file(d->d_name, "cmdline", text, sizeof(text));
        if (strstr(text, mark) != NULL)
            found = (pid_t)strtol(d->d_name, NULL, 10);
    }
    closedir(dir);
    return found;
}

/* Process 1 around it. */
static pid_t find_init(const char *mark)
{
    pid_t pid = find_marked(mark);
    assert_true(pid > 0);
    while (pid > 1 && !is_called(pid, "codespace-init"))
        pid = parent_of(pid);
    assert_true(pid > 1);
    return pid;
}

static char state_of(pid_t pid)
{
    char name[32], text[512];
    snprintf(name, sizeof(name), "%d", (int)pid);
    read_file(name, "stat", text, sizeof(text));
    const char *end = strrchr(text, ')');
    return end == NULL ? '\0' : end[2];
}

static bool stands(const struct rig *rig, const char *name)
{
    struct stat st;
    return fstatat(rig->ws.root_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static void expect_gone(const struct rig *rig, const char *name)
{
    assert_false(stands(rig, name));
    assert_int_equal(errno, ENOENT);
}

/* Process 1 does its work as well; only once it has stopped, what is planted stays. */
static void stop_and_kill(const struct rig *rig, pid_t init, const char *const *planted)
{
    uint64_t began = rig_now_ms();
    assert_int_equal(kill(init, SIGSTOP), 0);
    while (state_of(init) != 'T' && rig_now_ms() - began < RIG_LIMIT_MS)
        usleep(1000);
    for (; *planted != NULL; planted++) {
        while (!stands(rig, *planted) && rig_now_ms() - began < RIG_LIMIT_MS)
            usleep(1000);
        assert_true(stands(rig, *planted));
    }
    assert_int_equal(kill(init, SIGKILL), 0);
}

/* Kill process 1 while `script` is run again and again and `planted` stand; `a` is the end. */
static void kill_during(struct rig *rig, const char *script, const char *const *planted, bool warm,
                        struct rig_answer *a)
{
    char id[64];
    autofree char *mark = rig_sleep(8);
    autofree char *line = mem_printf("%s & echo up; while :; do %s; done", mark, script);
    rig_exec(rig, &(struct run_exec){.argv = RIG_SH(line)}, id);
    rig_expect(rig, id, "up\n");
    pid_t init = find_init(mark);
    assert_int_equal(is_called(parent_of(init), "codespace-warm"), warm);
    stop_and_kill(rig, init, planted);
    rig_finish(rig, id, a);
    rig_expect_no_survivor(mark);
}

#define NAMES(...) ((const char *const[]){__VA_ARGS__, NULL})

#define PLANT                                                                                      \
    "mkdir -p .git/hooks .codex; echo '#!/bin/sh' >.git/hooks/pre-commit; echo x >.codex/config"
#define PLANTED NAMES(".git/hooks/pre-commit", ".codex/config")

static void try_planting(bool warm)
{
    autofree char *mine = NULL;
    for (int i = 0; i < (warm ? 1 : ROUNDS); i++) {
        struct rig rig;
        start(&rig);
        free(mine);
        mine = mem_printf("%s/.agents", rig.ws.root);
        rig_write_file(mine, "a person's", 0644);
        if (warm)
            warm_up(&rig);
        for (int k = 0; k < (warm ? ROUNDS : 1); k++) {
            autoanswer a = {0};
            kill_during(&rig, PLANT, PLANTED, warm, &a);
            expect_gone(&rig, ".git");
            expect_gone(&rig, ".codex");
            assert_int_equal(a.status.termination, RUN_END_WRAPPER_FAILED);
            assert_non_null(strstr(a.removed, ".git"));
            assert_non_null(strstr(a.removed, ".codex"));
            assert_null(strstr(a.removed, ".agents"));
            assert_non_null(strstr(a.denials, "protect.name"));
            assert_int_equal(access(mine, R_OK), 0);
            if (warm)
                warm_up(&rig);
        }
        rig_stop(&rig);
    }
}

static void test_planting_cold(void **state)
{
    (void)state;
    try_planting(false);
}

static void test_planting_warm(void **state)
{
    (void)state;
    try_planting(true);
}

/* A link in a protected name's place goes, what it leads to stays; so does one of the person's, as
 * the link that it was. */
static void test_links(void **state)
{
    (void)state;
    struct rig rig;
    autoanswer a = {0};
    char target[64] = "";
    start(&rig);
    assert_int_equal(mkdirat(rig.ws.root_fd, "elsewhere", 0755), 0);
    assert_int_equal(symlinkat("elsewhere", rig.ws.root_fd, ".agents"), 0);
    kill_during(&rig,
                "mkdir -p other/d; ln -sfn other .codex; rm -f .agents; "
                "mkdir .agents 2>/dev/null; touch .agents/x",
                NAMES(".codex", ".agents/x"), false, &a);
    expect_gone(&rig, ".codex");
    assert_true(readlinkat(rig.ws.root_fd, ".agents", target, sizeof(target) - 1) > 0);
    assert_string_equal(target, "elsewhere");
    struct stat st;
    assert_int_equal(fstatat(rig.ws.root_fd, "other/d", &st, 0), 0);
    rig_stop(&rig);
}

/* The command has ended and what it left is kept: it may plant as well. */
static void test_kept(void **state)
{
    (void)state;
    struct rig rig;
    autoanswer a = {0};
    char id[64];
    start(&rig);
    autofree char *mark = rig_sleep(9);
    autofree char *line = mem_printf(
        "(%s & while :; do mkdir -p .git/hooks; touch .git/hooks/x; done) & echo up", mark);
    rig_exec(&rig, &(struct run_exec){.argv = RIG_SH(line), .background = RUN_BACKGROUND_KEEP}, id);
    rig_expect(&rig, id, "up\n");
    rig_finish(&rig, id, &a);
    assert_int_equal(a.status.termination, RUN_END_EXITED);
    stop_and_kill(&rig, find_init(mark), NAMES(".git/hooks/x"));
    rig_expect_no_survivor(mark);
    for (uint64_t began = rig_now_ms(); stands(&rig, ".git");) {
        assert_true(rig_now_ms() - began < RIG_LIMIT_MS);
        uv_run(&rig.loop, UV_RUN_NOWAIT);
        usleep(1000);
    }
    expect_gone(&rig, ".git");
    rig_stop(&rig);
}

/* The runner goes while it is at it, having read or not what process 1 sent: when it is gone
 * nothing lives and nothing is left behind. */
static void test_runner_goes(void **state)
{
    (void)state;
    for (int i = 0; i < 6; i++) {
        struct rig rig;
        char id[64];
        start(&rig);
        autofree char *mark = rig_sleep(7);
        autofree char *line = mem_printf("%s & echo up; while :; do " PLANT "; done", mark);
        rig_exec(&rig, &(struct run_exec){.argv = RIG_SH(line)}, id);
        rig_expect(&rig, id, "up\n");
        stop_and_kill(&rig, find_init(mark), PLANTED);
        for (int k = 0; k < i; k++)
            uv_run(&rig.loop, UV_RUN_NOWAIT);
        rig_end(&rig);
        assert_int_equal(find_marked(mark), 0);
        expect_gone(&rig, ".git");
        expect_gone(&rig, ".codex");
        rig_clear(&rig);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_planting_cold), cmocka_unit_test(test_planting_warm),
        cmocka_unit_test(test_links),         cmocka_unit_test(test_kept),
        cmocka_unit_test(test_runner_goes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
