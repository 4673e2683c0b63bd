/* tests/unit/run/rig: a runner on a real loop, with a workspace of its own and calls that wait.
 *
 * Every rig_* call drives the loop until its answer is there, with a limit far beyond what any of
 * them needs on the slowest machine, so a test that would hang fails instead. rig_stop() checks
 * that nothing is left: no handle on the loop, no child, no descriptor that was not there before.
 */
#ifndef CODESPACE_TESTS_RUN_RIG_H
#define CODESPACE_TESTS_RUN_RIG_H

#include "../../helpers/unit.h"
#include "base/buf.h"
#include "base/mem.h"
#include "core/registry.h"
#include "run/local.h"
#include "run/remote.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define RIG_LIMIT_MS 90000
#define RIG_WAIT_MS 50000 /* of a read that waits: less than that, and than the longest grace */

struct rig {
    uv_loop_t loop;
    struct runner *runner;
    struct workspace ws;
    char *dir;    /* scratch: ws/ and whatever the test puts beside it */
    char *helper; /* path of a fake helper, or NULL */
    int fds;      /* open before anything began */
    struct local_options options;
};

/* The answer of a call, copied. */
struct rig_answer {
    bool arrived;
    bool failed;
    struct err err;
    char id[64];
    struct buf bytes;
    uint64_t cursor, start;
    bool lost;
    struct run_status status;
    char reason[1024];
    char removed[256];
    char denials[512];
    char left[512];
    char output_failed[256];
};

static inline int rig_count_fds(void)
{
    int n = 0;
    DIR *dir = opendir("/proc/self/fd");
    assert_non_null(dir);
    while (readdir(dir) != NULL)
        n++;
    closedir(dir);
    return n;
}

static inline uint64_t rig_now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static inline void rig_late(uv_timer_t *t)
{
    *(bool *)t->data = true;
}

/* Run the loop until *flag; fails the test when it takes too long. */
static inline void rig_until(struct rig *rig, const bool *flag)
{
    bool late = false;
    uv_timer_t timer;
    uv_timer_init(&rig->loop, &timer);
    timer.data = &late;
    uv_timer_start(&timer, rig_late, RIG_LIMIT_MS, 0);
    while (!*flag && !late)
        uv_run(&rig->loop, UV_RUN_ONCE);
    uv_close((uv_handle_t *)&timer, NULL);
    uv_run(&rig->loop, UV_RUN_NOWAIT);
    assert_true(*flag);
}

static inline void rig_take_status(struct rig_answer *a, const struct run_status *s)
{
    a->status = *s;
    snprintf(a->reason, sizeof(a->reason), "%s", s->reason);
    a->removed[0] = '\0';
    for (size_t i = 0; s->removed[i] != NULL; i++) {
        size_t n = strlen(a->removed);
        snprintf(a->removed + n, sizeof(a->removed) - n, "%s%s", n ? " " : "", s->removed[i]);
    }
    a->denials[0] = '\0';
    for (size_t i = 0; s->denials != NULL && s->denials[i] != NULL; i++) {
        size_t n = strlen(a->denials);
        snprintf(a->denials + n, sizeof(a->denials) - n, "%s%s", n ? "|" : "", s->denials[i]);
    }
    a->left[0] = '\0';
    for (size_t i = 0; s->background_pids != NULL && s->background_pids[i] != NULL; i++) {
        size_t n = strlen(a->left);
        snprintf(a->left + n, sizeof(a->left) - n, "%s%s", n ? "|" : "", s->background_pids[i]);
    }
    snprintf(a->output_failed, sizeof(a->output_failed), "%s", s->output_failed);
    a->status.process_id = a->status.workspace_id = a->status.reason = NULL;
    a->status.command = a->status.output_failed = NULL;
    a->status.removed = a->status.denials = a->status.background_pids = NULL;
    a->status.weaker = NULL;
}

static inline void rig_take_failure(struct rig_answer *a, const struct err *failure)
{
    assert_false(a->arrived); /* each call answers once */
    a->arrived = true;
    a->failed = failure != NULL;
    if (failure != NULL) {
        a->err = *failure;
        assert_int_not_equal(failure->code, ERR_NONE);
        assert_true(failure->message[0] != '\0');
    }
}

static inline void rig_on_exec(void *user, const char *id, const struct err *failure)
{
    struct rig_answer *a = user;
    rig_take_failure(a, failure);
    if (failure == NULL)
        snprintf(a->id, sizeof(a->id), "%s", id);
}

static inline void rig_on_page(void *user, const struct run_page *page, const struct err *failure)
{
    struct rig_answer *a = user;
    rig_take_failure(a, failure);
    if (failure != NULL)
        return;
    buf_put(&a->bytes, page->bytes, page->len);
    a->cursor = page->cursor;
    a->start = page->start;
    a->lost = page->lost;
    rig_take_status(a, &page->status);
}

static inline void rig_on_status(void *user, const struct run_status *s, const struct err *failure)
{
    struct rig_answer *a = user;
    rig_take_failure(a, failure);
    if (failure == NULL)
        rig_take_status(a, s);
}

static inline void rig_on_done(void *user, const struct err *failure)
{
    rig_take_failure(user, failure);
}

static inline void rig_answer_fini(struct rig_answer *a)
{
    buf_fini(&a->bytes);
}
#define autoanswer __attribute__((cleanup(rig_answer_fini))) struct rig_answer

/* Processes of this machine whose command line holds `mark`. */
static inline int rig_count_processes(const char *mark)
{
    int n = 0;
    DIR *dir = opendir("/proc");
    assert_non_null(dir);
    for (struct dirent *d; (d = readdir(dir)) != NULL;) {
        char path[300];
        char text[256] = "";
        snprintf(path, sizeof(path), "/proc/%s/cmdline", d->d_name);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            continue;
        ssize_t len = read(fd, text, sizeof(text) - 1);
        close(fd);
        for (ssize_t i = 0; i < len; i++)
            text[i] = text[i] == '\0' ? ' ' : text[i];
        n += strstr(text, mark) != NULL;
    }
    closedir(dir);
    return n;
}

/* Killed processes take a moment to go, and nobody tells us when they have. */
static inline void rig_expect_no_survivor(const char *mark)
{
    for (uint64_t began = rig_now_ms(); rig_count_processes(mark) > 0;) {
        assert_true(rig_now_ms() - began < RIG_LIMIT_MS);
        usleep(10000);
    }
}

/* "sleep N" with an N of this test program's own, so that runs side by side do not see each other:
 * none is the beginning of another one. Longer than any test. */
static inline char *rig_sleep(int row)
{
    return mem_printf("sleep 6%d00.%08d", row, (int)getpid());
}

/* ---- the rig ---- */

static inline void rig_write_file(const char *path, const char *text, mode_t mode)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    assert_int_equal(fchmod(fd, mode), 0);
    close(fd);
}

/* A scratch directory and a workspace in it; no runner yet. */
static inline void rig_open(struct rig *rig)
{
    uv_loop_t first; /* the library's own pipe stays open for good */
    assert_int_equal(uv_loop_init(&first), 0);
    assert_int_equal(uv_loop_close(&first), 0);
    *rig = (struct rig){.fds = rig_count_fds()};
    signal(SIGPIPE, SIG_IGN);
    rig->dir = mem_strdup("/tmp/codespace-run-XXXXXX");
    assert_non_null(mkdtemp(rig->dir));
    assert_int_equal(uv_loop_init(&rig->loop), 0);
    rig->ws.id = mem_strdup("demo");
    rig->ws.root = mem_printf("%s/ws", rig->dir);
    assert_int_equal(mkdir(rig->ws.root, 0755), 0);
    rig->ws.root_fd = open(rig->ws.root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    assert_true(rig->ws.root_fd >= 0);
    rig->ws.profile = PROFILE_WORKSPACE_WRITE;
}

/* A fake helper: a shell script. */
static inline void rig_fake_helper(struct rig *rig, const char *script)
{
    rig->helper = mem_printf("%s/helper", rig->dir);
    rig->options.warm_off = true; /* what it is asked, and how often, is the test's business */
    rig_write_file(rig->helper, script, 0755);
}

#ifdef RIG_REMOTE
/* The same behind the wire: with the worker of this build (CODESPACE_RUNTIME_BIN, set by meson). */
static inline void rig_run_remote(struct rig *rig)
{
    struct err e;
    const struct remote_options o = {
        .worker_bin = getenv("CODESPACE_RUNTIME_BIN"),
        .dir = rig->dir,
        .timeout_ms = rig->options.timeout_ms,
        .max_processes = rig->options.max_processes,
        .max_workspace_processes = rig->options.max_workspace_processes,
    };
    assert_non_null(o.worker_bin);
    setenv("CODESPACE_LINUX_SANDBOX_BIN", rig->helper != NULL ? rig->helper : "/none", 1);
    const char *spill = rig->options.spill_dir != NULL ? rig->options.spill_dir : "/tmp";
    setenv("CODESPACE_SPILL_DIR", rig->options.spill_off ? "none" : spill, 1);
    rig->runner = remote_runner_new(&rig->loop, &o, &e);
    if (rig->runner == NULL)
        fail_msg("no worker: %s", e.message);
}
#endif

static inline void rig_run(struct rig *rig, uint64_t max_processes)
{
    rig->options.helper_path = rig->helper;
    rig->options.max_processes = max_processes;
#ifdef RIG_REMOTE
    rig_run_remote(rig);
#else
    rig->runner = local_runner_new(&rig->loop, &rig->options);
#endif
}

/* The usual one: no helper, so commands run on the host (R13), unless the test is run with one. */
static inline void rig_start(struct rig *rig)
{
    rig_open(rig);
    rig->helper = mem_strdup(getenv("CODESPACE_TEST_HELPER"));
    rig->ws.sandbox = rig->helper != NULL ? SANDBOX_REQUIRED : SANDBOX_PREFERRED;
    rig_run(rig, 0);
}

static inline int rig_remove(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

/* The runner and all that it ran is gone; the directory is still there. */
static inline void rig_end(struct rig *rig)
{
    runner_free(rig->runner);
    assert_int_equal(uv_run(&rig->loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(uv_loop_close(&rig->loop), 0);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no child, no zombie */
    assert_int_equal(errno, ECHILD);
}

static inline void rig_clear(struct rig *rig)
{
    close(rig->ws.root_fd);
    assert_int_equal(nftw(rig->dir, rig_remove, 16, FTW_DEPTH | FTW_PHYS), 0);
    free(rig->ws.id);
    free(rig->ws.root);
    free(rig->dir);
    free(rig->helper);
    assert_int_equal(rig_count_fds(), rig->fds);
}

static inline void rig_stop(struct rig *rig)
{
    rig_end(rig);
    rig_clear(rig);
}

/* ---- calls that wait ---- */

static inline void rig_exec_with(struct rig *rig, const struct run_exec *ask, struct rig_answer *a)
{
    struct run_exec x = *ask;
    x.ws = &rig->ws;
    runner_exec(rig->runner, &x, rig_on_exec, a);
    rig_until(rig, &a->arrived);
}

/* Start argv and return its id. */
static inline void rig_exec(struct rig *rig, const struct run_exec *ask, char id[64])
{
    autoanswer a = {0};
    rig_exec_with(rig, ask, &a);
    if (a.failed)
        fail_msg("exec: %s", a.err.message);
    memcpy(id, a.id, 64);
}

#define RIG_SH(text) ((char *const[]){(char *)"/bin/sh", (char *)"-c", (char *)(text), NULL})

static inline void rig_read(struct rig *rig, const char *id, const struct run_read *ask,
                            struct rig_answer *a)
{
    struct run_read x = *ask;
    x.process_id = id;
    runner_read(rig->runner, &x, rig_on_page, a);
    rig_until(rig, &a->arrived);
}

/* Wait for the end and take everything that is still in the log. */
static inline void rig_finish(struct rig *rig, const char *id, struct rig_answer *a)
{
    rig_read(
        rig, id,
        &(struct run_read){.max_bytes = RUN_PAGE_MAX, .wait_ms = RIG_WAIT_MS, .until_exit = true},
        a);
    assert_false(a->failed);
    assert_int_equal(a->status.state, RUN_EXITED);
    buf_cstr(&a->bytes);
}

/* Run a shell line to its end. */
static inline void rig_sh(struct rig *rig, const char *text, struct rig_answer *a)
{
    char id[64];
    rig_exec(rig, &(struct run_exec){.argv = RIG_SH(text)}, id);
    rig_finish(rig, id, a);
    memcpy(a->id, id, sizeof(id));
}

static inline void rig_terminate(struct rig *rig, const char *id)
{
    autoanswer a = {0};
    runner_terminate(rig->runner, id, rig_on_done, &a);
    rig_until(rig, &a.arrived);
    assert_false(a.failed);
}

static inline void rig_write(struct rig *rig, const char *id, const void *data, size_t n, bool eof,
                             struct rig_answer *a)
{
    runner_write(rig->runner, id, data, n, eof, rig_on_done, a);
    rig_until(rig, &a->arrived);
}

/* Wait until the output so far contains `text`. */
static inline void rig_expect(struct rig *rig, const char *id, const char *text)
{
    autobuf all = BUF_INIT;
    uint64_t cursor = 0;
    for (;;) {
        autoanswer a = {0};
        rig_read(rig, id, &(struct run_read){.cursor = cursor, .wait_ms = RIG_WAIT_MS}, &a);
        assert_false(a.failed);
        buf_put(&all, buf_bytes(&a.bytes), a.bytes.len);
        cursor = a.cursor;
        if (strstr(buf_cstr(&all), text) != NULL)
            return;
        if (a.bytes.len == 0)
            fail_msg("\"%s\" never came; there was \"%s\"", text, buf_cstr(&all));
    }
}

#endif
