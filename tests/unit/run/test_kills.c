/* run behind a worker: SIGKILL for the gateway, the worker, and anything below it (helper,
 * bubblewrap, process 1, command), at random moments. Afterwards nothing may be left: no process,
 * no zombie, no directory; and what is told meanwhile must be honest: a status, lost, or a refusal.
 *
 * Each round forks a gateway of its own, which starts sandboxed commands and looks at what it is
 * told; the parent picks the moment and the victim.
 */
#define RIG_REMOTE
#include "rig.h"

#include "sys/leaf.h"

#include <sys/prctl.h>

#define ROUNDS 200
#define LIMIT_MS 20000 /* fewer rounds on a slow machine; at least a tenth of them */

static uint32_t next_random(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

/* ---- the gateway ---- */

static void check_honest(const struct rig_answer *a)
{
    if (a->failed) {
        assert_true(a->err.code == ERR_PROCESS_SPAWN_FAILED || a->err.code == ERR_RUNNER_LOST ||
                    a->err.code == ERR_RUNNER_UNAVAILABLE ||
                    a->err.code == ERR_SANDBOX_UNAVAILABLE); /* the probe was killed */
        return;
    }
    switch (a->status.termination) {
    case RUN_END_LOST:
    case RUN_END_WRAPPER_FAILED:
        assert_true(a->reason[0] != '\0');
        return;
    case RUN_END_SIGNALED:
        assert_int_equal(a->status.signal, SIGKILL);
        return;
    case RUN_END_EXITED: /* by itself, or the shell's word for a killed child */
        assert_true(a->status.exit_code == 5 || a->status.exit_code == 128 + SIGKILL);
        return;
    default:
        fail_msg("an end that nobody caused: %s", run_termination_name(a->status.termination));
    }
}

/* Runs until it is killed. Exits with 0 never, by a failed assertion with 1. */
static void gateway(const char *dir, const char *line)
{
    struct rig rig;
    rig_open(&rig);
    assert_int_equal(rmdir(rig.ws.root), 0);
    assert_int_equal(rmdir(rig.dir), 0);
    rig.dir = mem_strdup(dir);
    rig.ws.root = mem_printf("%s/ws", dir);
    rig.ws.root_fd = open(rig.ws.root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    rig.ws.sandbox = SANDBOX_REQUIRED;
    rig.helper = mem_strdup(getenv("RIG_HELPER"));
    setenv("TMPDIR", dir, 1);
    rig_run(&rig, 0);
    struct run_exec x = {.ws = &rig.ws, .argv = RIG_SH(line)};
    struct run_exec quick = {.ws = &rig.ws, .argv = RIG_SH("exit 5")};
    for (unsigned i = 0;; i++) {
        autoanswer a = {0}, end = {0};
        runner_exec(rig.runner, i % 3 == 2 ? &quick : &x, rig_on_exec, &a);
        rig_until(&rig, &a.arrived);
        if (a.failed) {
            check_honest(&a);
            continue;
        }
        rig_read(&rig, a.id,
                 &(struct run_read){.wait_ms = i % 3 == 2 ? 60000 : 20, .until_exit = true}, &end);
        if (end.failed || end.status.state == RUN_EXITED)
            check_honest(&end);
    }
}

/* ---- the killer ---- */

/* All processes below `root`, nearest first. */
static size_t descendants(pid_t root, pid_t *ret, size_t max)
{
    size_t n = 0;
    ret[n++] = root;
    for (size_t at = 0; at < n; at++) {
        char path[64], text[4096] = "";
        snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)ret[at], (int)ret[at]);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            continue;
        ssize_t len = read(fd, text, sizeof(text) - 1);
        close(fd);
        char *from = text;
        for (long pid; len > 0 && n < max && (pid = strtol(from, &from, 10)) > 0;)
            ret[n++] = (pid_t)pid;
    }
    return n;
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

static void show_left(void)
{
    pid_t all[256];
    size_t n = descendants(getpid(), all, ARRAY_LEN(all));
    for (size_t i = 1; i < n; i++) {
        char path[64], text[200] = "";
        snprintf(path, sizeof(path), "/proc/%d/stat", (int)all[i]);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd >= 0 && read(fd, text, 80) > 0)
            print_error("left: %s\n", text);
        close(fd);
        snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)all[i]);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t len = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
        close(fd);
        for (ssize_t k = 0; k < len; k++)
            text[k] = text[k] == '\0' ? ' ' : text[k];
        print_error("      %.*s\n", (int)len, text);
    }
}

/* They become our children when their parents are gone: then each is reaped here, and one that
 * stays is seen. */
static void reap_all(pid_t gateway)
{
    uint64_t began = rig_now_ms();
    for (;;) {
        int status = 0;
        pid_t pid = waitpid(-1, &status, WNOHANG);
        if (pid == gateway)
            assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        if (pid < 0)
            return; /* no child, alive or not */
        if (pid == 0) {
            if (rig_now_ms() - began > 10000) {
                show_left();
                fail_msg("a process is left 10 s after the gateway was killed");
            }
            usleep(2000);
        }
    }
}

static void round_of(uint32_t *seed, const char *dir, const char *line)
{
    pid_t all[256];
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        gateway(dir, line);
        _exit(1);
    }
    usleep(next_random(seed) % 80000);
    for (unsigned hits = next_random(seed) % 3; hits > 0; hits--) {
        size_t n = descendants(pid, all, ARRAY_LEN(all));
        kill(all[next_random(seed) % n], SIGKILL);
        usleep(next_random(seed) % 20000);
    }
    kill(pid, SIGKILL);
    reap_all(pid);
}

static void test_kills(void **state)
{
    (void)state;
    uint32_t seed = 20240607;
    uint64_t began = rig_now_ms();
    char dir[] = "/tmp/codespace-kills-XXXXXX";
    assert_non_null(mkdtemp(dir));
    autofree char *root = mem_printf("%s/ws", dir);
    assert_int_equal(mkdir(root, 0755), 0);
    setenv("RIG_HELPER", getenv("CODESPACE_LINUX_SANDBOX_BIN"), 1);
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
    autofree char *mark = rig_sleep(9);
    autofree char *line = mem_printf("setsid %s & (%s &); %s", mark, mark, mark);
    int rounds = 0;
    for (; rounds < ROUNDS && rig_now_ms() - began < LIMIT_MS; rounds++) {
        round_of(&seed, dir, line);
        assert_int_equal(rig_count_processes(mark), 0);
    }
    print_message("%d rounds\n", rounds);
    assert_true(rounds >= ROUNDS / 10);
    assert_int_equal(rmdir(root), 0);
    /* What is left when worker and gateway were killed at once, the next start sweeps. */
    assert_true(count_entries(dir) < rounds / 4);
    leaf_sweep(dir, 0);
    assert_int_equal(count_entries(dir), 0);
    assert_int_equal(rmdir(dir), 0);
}

UNIT_MAIN(cmocka_unit_test(test_kills))
