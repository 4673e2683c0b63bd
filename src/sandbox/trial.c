/* sandbox/trial: see trial.h. */
#include "sandbox/trial.h"

#include "base/mem.h"
#include "base/str.h"
#include "sandbox/control.h"
#include "sandbox/outer.h"
#include "sandbox/prepare.h"
#include "sys/fd.h"
#include "sys/spawn.h"
#include "wire/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static uint64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000u + (uint64_t)t.tv_nsec / 1000000u;
}

/* Everything that comes until the end of file or the deadline. 0, -ETIMEDOUT or -errno. */
static int read_until(int fd, uint64_t deadline_ms, struct buf *out)
{
    for (;;) {
        uint64_t now = now_ms();
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (now >= deadline_ms || poll(&p, 1, (int)(deadline_ms - now)) == 0)
            return -ETIMEDOUT;
        ssize_t n = fd_read(fd, buf_reserve(out, 4096), 4096);
        if (n <= 0)
            return (int)n;
        if (out->len < HELPER_LINE_MAX)
            buf_commit(out, (size_t)n);
    }
}

/* ---- the version ---- */

void trial_version(const char *path, unsigned timeout_ms, char *ret, size_t cap)
{
    int out[2];
    struct spawned child;
    struct spawn_end end;
    autobuf text = BUF_INIT;
    char *const env[] = {NULL};
    autostrv argv = {0};
    strv_add(&argv, path);
    strv_add(&argv, "--version");
    ret[0] = '\0';
    if (fd_pipe(out) < 0)
        return;
    const int fds[] = {-1, out[1], -1};
    const struct spawn_options o = {
        .path = path, .argv = strv_array(&argv), .env = env, .fds = fds, .n_fds = 3, .cwd_fd = -1};
    int rc = spawn_start(&o, &child);
    fd_close(&out[1]);
    if (rc == 0) {
        rc = read_until(out[0], now_ms() + timeout_ms, &text);
        spawn_signal(child.pidfd, SIGKILL);
        while (spawn_reap(child.pidfd, &end) == -EAGAIN) {
            struct pollfd p = {.fd = child.pidfd, .events = POLLIN};
            poll(&p, 1, -1);
        }
        fd_close(&child.pidfd);
    }
    fd_close(&out[0]);
    if (rc == 0)
        snprintf(ret, cap, "%.*s", (int)strcspn(buf_cstr(&text), "\r\n"), buf_bytes(&text));
}

/* ---- the trial ---- */

/* A place that every host has and no command may change: a trial makes nothing on disk. */
#define TRIAL_WORKSPACE "/usr/lib"

static int make_plan(bool inherited_proc, int *ret_fd, struct err *e)
{
    struct helper_request r = {0};
    r.view.workspace = mem_strdup(TRIAL_WORKSPACE);
    r.cwd = mem_strdup(TRIAL_WORKSPACE);
    r.view.inherited_proc = inherited_proc;
    r.view.masks_always = true;
    strv_add(&r.argv, "report");
    int rc = prepare_report(&r, ret_fd, e);
    helper_request_fini(&r);
    return rc;
}

/* The words in the events: bubblewrap's text, or a failure's message. */
static void collect_words(struct buf *events, char *words, size_t cap)
{
    char *save = NULL;
    buf_cstr(events);
    char *text = events->data + events->start;
    for (char *line = strtok_r(text, "\n", &save); line != NULL;
         line = strtok_r(NULL, "\n", &save)) {
        struct helper_verdict v;
        helper_verdict_read(line, strlen(line), &v);
        if (v.message[0] != '\0')
            control_add_words(words, cap, v.message);
    }
}

/* Closing the socket is what ends a sandbox that hangs. */
static int watch(int out, int control, uint64_t deadline_ms, struct report *ret, struct err *e)
{
    autobuf line = BUF_INIT;
    autobuf events = BUF_INIT;
    char words[1000] = "";
    int rc = read_until(out, deadline_ms, &line);
    if (rc == 0)
        rc = read_until(control, deadline_ms, &events);
    if (rc == -ETIMEDOUT)
        return err_set(e, ERR_SANDBOX_UNAVAILABLE, "the trial did not end in time");
    if (report_parse(buf_cstr(&line), ret) == 0)
        return 0;
    collect_words(&events, words, sizeof(words));
    return err_set(e, ERR_SANDBOX_UNAVAILABLE, "%s",
                   words[0] != '\0' ? words : "the sandbox ended without a word");
}

static int start(int plan, int out, int control)
{
    pid_t pid = fork();
    if (pid != 0)
        return pid < 0 ? -errno : pid;
    int null = open("/dev/null", O_RDWR);
    dup2(null, STDIN_FILENO);
    dup2(null, STDERR_FILENO);
    dup2(out, STDOUT_FILENO);
    _exit(outer_become_plan(plan, control, true));
}

/* bubblewrap that is killed while it sets up leaves a child behind that waits for ever. Its group
 * is killed while the unreaped leader still holds the number. */
static void end_group(int pid)
{
    siginfo_t info;
    while (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) < 0 && errno == EINTR)
        continue;
    kill(-pid, SIGKILL);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        continue;
}

static int run_plan(int plan, unsigned timeout_ms, struct report *ret, struct err *e)
{
    int out[2], control[2];
    if (fd_pipe(out) < 0)
        return err_set(e, ERR_SANDBOX_UNAVAILABLE, "no pipe");
    int rc = fd_socketpair(control);
    int pid = rc < 0 ? rc : start(plan, out[1], control[1]);
    fd_close(&out[1]);
    if (rc == 0)
        fd_close(&control[1]);
    if (pid < 0)
        rc = err_sys(e, ERR_SANDBOX_UNAVAILABLE, pid, "the trial cannot be started");
    else
        rc = watch(out[0], control[0], now_ms() + timeout_ms, ret, e);
    fd_close(&out[0]);
    if (pid > 0) {
        fd_close(&control[0]);
        if (rc < 0)
            kill(-pid, SIGKILL);
        end_group(pid);
    }
    return rc;
}

int trial_run(bool inherited_proc, unsigned timeout_ms, struct report *ret, struct err *e)
{
    autofd int plan = -1;
    if (make_plan(inherited_proc, &plan, e) < 0)
        return -1;
    return run_plan(plan, timeout_ms, ret, e);
}
