/* run behind a worker: SIGKILL for the gateway, the worker, and anything below it (helper,
 * bubblewrap, process 1, command), at random moments. Afterwards nothing may be left: no process,
 * no zombie, no directory; and what is told meanwhile must be honest: a status, lost, or a refusal.
 *
 * Each round forks a gateway of its own, which starts sandboxed commands and looks at what it is
 * told; the parent picks the moment and the victim. With a durable worker another gateway comes
 * after each round and asks for all that the killed one had started: as long as the worker lived
 * on, it knows them all, and can end them.
 *
 * Only what this program started is killed: it is found by walking down from ourselves.
 */
#define RIG_REMOTE
#include "rig.h"

#include "sys/leaf.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#define ROUNDS 200
#define LIMIT_MS 20000 /* fewer rounds on a slow machine; at least a tenth of them */
#define DURABLE_ROUNDS 100

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

/* A rig in the common directory. `place` NULL: with a worker of its own; else with the durable one
 * there. */
static void join(struct rig *rig, const char *dir, const char *place)
{
    struct err e;
    rig_open(rig);
    assert_int_equal(rmdir(rig->ws.root), 0);
    assert_int_equal(rmdir(rig->dir), 0);
    rig->dir = mem_strdup(dir);
    rig->ws.root = mem_printf("%s/ws", dir);
    rig->ws.root_fd = open(rig->ws.root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    rig->ws.sandbox = SANDBOX_REQUIRED;
    rig->helper = mem_strdup(getenv("RIG_HELPER"));
    setenv("TMPDIR", dir, 1);
    if (place == NULL) {
        rig_run(rig, 0);
        return;
    }
    setenv("CODESPACE_LINUX_SANDBOX_BIN", rig->helper, 1);
    const struct remote_options o = {
        .worker_bin = getenv("CODESPACE_RUNTIME_BIN"), .durable_dir = place, .dir = dir};
    rig->runner = remote_runner_new(&rig->loop, &o, &e);
    if (rig->runner == NULL)
        fail_msg("no worker: %s", e.message);
}

/* Runs until it is killed. Exits with 0 never, by a failed assertion with 1. The ids of what was
 * started go to `ids` (-1 = nobody wants them). */
static void gateway(const char *dir, const char *place, const char *line, int ids)
{
    struct rig rig;
    join(&rig, dir, place);
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
        if (ids >= 0)
            assert_int_equal(write(ids, a.id, sizeof(a.id)), sizeof(a.id));
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
            if (rig_now_ms() - began > RIG_LIMIT_MS) {
                show_left();
                fail_msg("a process is left long after the gateway was killed");
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
        gateway(dir, NULL, line, -1);
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

/* ---- around a durable worker ---- */

#define IDS_MAX 256

struct started {
    char ids[IDS_MAX][sizeof(((struct rig_answer *)0)->id)];
    size_t n;
};

static bool is_ours(pid_t pid)
{
    pid_t all[256];
    size_t n = descendants(getpid(), all, ARRAY_LEN(all));
    for (size_t i = 1; i < n; i++) {
        if (all[i] == pid)
            return true;
    }
    return false;
}

/* It lives and is not only waited for. */
static bool is_alive(pid_t pid)
{
    char path[64], text[200] = "";
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
    close(fd);
    const char *after = n <= 0 ? NULL : strrchr(text, ')');
    return after != NULL && after[2] != 'Z' && after[2] != 'X';
}

/* The durable worker of the place, as its lock says; 0 = none that lives. */
static pid_t worker_of(const char *place)
{
    autofree char *path = mem_printf("%s/lock", place);
    char text[32] = "";
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t n = read(fd, text, sizeof(text) - 1);
    close(fd);
    pid_t pid = n <= 0 ? 0 : (pid_t)strtol(text, NULL, 10);
    return pid > 0 && is_ours(pid) && is_alive(pid) ? pid : 0;
}

/* What the killed gateway had started, asked for by the next one. `lived`: the worker is the same.
 */
static void check_one(struct rig *rig, const char *id, bool lived)
{
    autoanswer now = {0}, asked = {0}, end = {0};
    runner_status(rig->runner, id, rig_on_status, &now);
    rig_until(rig, &now.arrived);
    if (now.failed) {
        /* The killed gateway may just have started a worker, too: then one of the two gives way. */
        if (lived ||
            (now.err.code != ERR_PROCESS_NOT_FOUND && now.err.code != ERR_RUNNER_UNAVAILABLE))
            fail_msg("%s: %s", id, now.err.message);
        return;
    }
    assert_true(lived);
    if (now.status.state == RUN_EXITED) {
        check_honest(&now);
        return;
    }
    runner_terminate_by(rig->runner, id, &(struct run_terminate){.signal = SIGKILL}, rig_on_done,
                        &asked);
    rig_until(rig, &asked.arrived);
    assert_false(asked.failed);
    rig_read(rig, id, &(struct run_read){.wait_ms = RIG_WAIT_MS, .until_exit = true}, &end);
    assert_int_equal(end.status.state, RUN_EXITED);
    if (end.status.termination != RUN_END_TERMINATED)
        check_honest(&end);
}

static void on_probed(void *user, const struct probe_result *result)
{
    *(bool *)user = true;
}

static void check_all(const char *dir, const char *place, const struct started *s, bool lived)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct rig rig;
        bool answered = false;
        join(&rig, dir, place);
        runner_probe(rig.runner, on_probed, &answered); /* the worker is there when it answers */
        rig_until(&rig, &answered);
        for (size_t i = 0; i < s->n; i++)
            check_one(&rig, s->ids[i], lived);
        runner_free(rig.runner);
        uv_run(&rig.loop, UV_RUN_DEFAULT);
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void take_ids(int fd, struct started *s)
{
    while (s->n < IDS_MAX && read(fd, s->ids[s->n], sizeof(s->ids[0])) == sizeof(s->ids[0]))
        s->n++;
}

/* A killed process is there for a moment more: until then nobody can tell that it is not. */
static void await_end(int pidfd)
{
    struct pollfd p = {.fd = pidfd, .events = POLLIN};
    while (pidfd >= 0 && poll(&p, 1, -1) < 0 && errno == EINTR)
        continue;
    close(pidfd);
}

/* Anything of ours: the gateway, the worker, what is below them. All that were hit are dead then.
 */
static void hit_some(uint32_t *seed)
{
    pid_t all[256];
    int victims[3] = {-1, -1, -1};
    usleep(next_random(seed) % 80000);
    for (unsigned hits = next_random(seed) % 3; hits > 0; hits--) {
        size_t n = descendants(getpid(), all, ARRAY_LEN(all));
        pid_t victim = n > 1 ? all[1 + next_random(seed) % (n - 1)] : 0;
        if (victim > 0) {
            victims[hits] = (int)syscall(SYS_pidfd_open, victim, 0);
            kill(victim, SIGKILL);
        }
        usleep(next_random(seed) % 20000);
    }
    for (size_t i = 0; i < ARRAY_LEN(victims); i++)
        await_end(victims[i]);
}

/* How many processes were found again. */
static size_t durable_round(uint32_t *seed, const char *dir, const char *place, const char *line)
{
    int ids[2], status = 0;
    struct started *started = mem_new(struct started);
    assert_int_equal(pipe2(ids, O_CLOEXEC), 0);
    for (int i = 0; i < 50 && worker_of(place) == 0; i++)
        check_all(dir, place, &(struct started){0}, false); /* starts one */
    pid_t before = worker_of(place);
    assert_true(before > 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        close(ids[0]);
        gateway(dir, place, line, ids[1]);
        _exit(1);
    }
    close(ids[1]);
    hit_some(seed);
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    take_ids(ids[0], started);
    close(ids[0]);
    pid_t after = worker_of(place);
    /* A worker that replaced a killed one knows what was started through it, and no more. */
    if (after == before || after == 0)
        check_all(dir, place, started, after != 0);
    while (waitpid(-1, NULL, WNOHANG) > 0)
        continue;
    size_t found = after != 0 && after == before ? started->n : 0;
    free(started);
    return found;
}

static void end_worker(const char *place)
{
    pid_t pid = worker_of(place);
    if (pid > 0)
        kill(pid, SIGTERM);
    reap_all(getpid()); /* whoever it is, there is no gateway among them */
}

static bool goes_on(int rounds, int all, uint64_t began)
{
    return rounds < all / 10 || (rounds < all && rig_now_ms() - began < LIMIT_MS);
}

static void test_durable_kills(void **state)
{
    (void)state;
    uint32_t seed = 20261130;
    uint64_t began = rig_now_ms();
    char dir[] = "/tmp/codespace-kills-XXXXXX";
    assert_non_null(mkdtemp(dir));
    autofree char *root = mem_printf("%s/ws", dir);
    autofree char *place = mem_printf("%s/place", dir);
    autofree char *tmp = mem_printf("%s/tmp", place);
    assert_int_equal(mkdir(root, 0755), 0);
    autofree char *mark = rig_sleep(8);
    autofree char *line = mem_printf("setsid %s & (%s &); %s", mark, mark, mark);
    size_t found = 0;
    int rounds = 0;
    for (; goes_on(rounds, DURABLE_ROUNDS, began); rounds++)
        found += durable_round(&seed, dir, place, line);
    print_message("%d rounds, %zu processes found again\n", rounds, found);
    assert_true(found > (size_t)rounds / 2);
    end_worker(place);
    assert_int_equal(rig_count_processes(mark), 0);
    check_all(dir, place, &(struct started){0}, false); /* a fresh one empties what kills left */
    end_worker(place);
    assert_int_equal(access(tmp, F_OK), -1);
    assert_int_equal(rmdir(root), 0);
    leaf_sweep(dir, 0);
    assert_int_equal(nftw(place, rig_remove, 16, FTW_DEPTH | FTW_PHYS), 0);
    assert_int_equal(count_entries(dir), 0);
    assert_int_equal(rmdir(dir), 0);
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
    for (; goes_on(rounds, ROUNDS, began); rounds++) {
        round_of(&seed, dir, line);
        assert_int_equal(rig_count_processes(mark), 0);
    }
    print_message("%d rounds\n", rounds);
    assert_int_equal(rmdir(root), 0);
    /* What is left when worker and gateway were killed at once, the next start sweeps. */
    assert_true(count_entries(dir) < rounds / 4);
    leaf_sweep(dir, 0);
    assert_int_equal(count_entries(dir), 0);
    assert_int_equal(rmdir(dir), 0);
}

UNIT_MAIN(cmocka_unit_test(test_kills), cmocka_unit_test(test_durable_kills))
