/* sandbox/inner: see inner.h. */
#include "sandbox/inner.h"

#include "base/mem.h"
#include "sandbox/census.h"
#include "sandbox/child.h"
#include "sandbox/control.h"
#include "sandbox/exits.h"
#include "sandbox/gitdir.h"
#include "sandbox/group.h"
#include "sandbox/guard.h"
#include "sandbox/masks.h"
#include "sandbox/netdoor.h"
#include "sandbox/netlost.h"
#include "sandbox/netrelay.h"
#include "sandbox/planfile.h"
#include "sandbox/zygote.h"
#include "sys/caps.h"
#include "sys/fd.h"
#include "sys/scm.h"
#include "sys/tighten.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define DEATH_SIGNAL INNER_DEATH_SIGNAL
#define CONTROL_FD INNER_CONTROL_FD

/* A command that runs longer than this is watched by the guard; see guard_watch(). */
#define GUARD_AFTER_MS 50

/* When the runner is told that the command runs, if it does not end before. */
#define TELL_AFTER_MS 1

/* Of our stack, brought in before there is a command: what the way to the verdict goes deeper than
 * the way here. */
#define STACK_TOUCHED (16u << 10)
#define PAGE_STEP 4096

/* Passed on to the command's process group when they come from outside. */
static const int forwarded[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGTERM,
                                SIGUSR1, SIGUSR2, SIGCONT, SIGWINCH};

/* ---- before the command ---- */

static int place_or_close(int fd, int number)
{
    if (fd >= 0)
        return dup3(fd, number, O_CLOEXEC) < 0 ? -errno : 0;
    close(number);
    return 0;
}

/* 2 carries the control socket; afterwards 0, 1 and 2 are the command's and nothing but CONTROL_FD
 * and INNER_PLAN_FD is open above them, those of `events` (-1 = none) from INNER_EVENTS_FD on, and
 * `network` (the same). */
static int arrange_descriptors(const int events[GROUP_EVENTS], int network)
{
    autofd int control = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, PLAN_FD_SOURCE);
    if (control < 0)
        return -errno;
    if (dup2(PLAN_FD_STDIN, STDIN_FILENO) < 0 || dup2(PLAN_FD_STDOUT, STDOUT_FILENO) < 0 ||
        dup2(PLAN_FD_STDERR, STDERR_FILENO) < 0 ||
        dup3(PLAN_FD_PLAN, INNER_PLAN_FD, O_CLOEXEC) < 0 ||
        dup3(control, CONTROL_FD, O_CLOEXEC) < 0)
        return -errno;
    int rc = place_or_close(network, INNER_NETWORK_FD);
    for (int i = 0; rc == 0 && i < GROUP_EVENTS; i++)
        rc = place_or_close(events[i], INNER_EVENTS_FD + i);
    return rc < 0 ? rc : fd_close_from(INNER_PLAN_FD + 1);
}

/* The command has them now; a second holder would keep pipes open for its own lifetime. */
static void let_go_of_standard_descriptors(void)
{
    autofd int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; null >= 0 && fd <= STDERR_FILENO; fd++)
        dup2(null, fd);
}

/* What bubblewrap leaves to us when there are masks to lay, and not one more: started by hand we
 * would lay them over the host. */
#define MASK_CAPABILITIES (1ull << CAP_SYS_ADMIN | 1ull << CAP_SETPCAP)

static int check_place(const struct plan *p)
{
    uint64_t caps;
    if (getpid() != 1)
        return control_failed(CONTROL_FD, SANDBOX_EXIT_PROCESS_1, "our number is %d",
                              (int)getpid());
    int rc = caps_get(&caps);
    if (rc < 0 || caps != (p->masks.len > 0 ? MASK_CAPABILITIES : 0))
        return control_failed(CONTROL_FD, SANDBOX_EXIT_CAPABILITIES,
                              "%#llx is not what bubblewrap was asked to leave",
                              (unsigned long long)caps);
    return 0;
}

/* The rest of the view, with the last capability there is. */
static int finish_view(const struct plan *p)
{
    struct err e = {0};
    if (masks_lay(&p->masks, &e) < 0)
        return control_failed(CONTROL_FD, SANDBOX_EXIT_SOURCE, "%s", e.message);
    int rc = p->masks.len == 0 ? 0 : caps_drop_all();
    if (rc < 0)
        return control_failed(CONTROL_FD, SANDBOX_EXIT_CAPABILITIES, "they cannot be dropped: %s",
                              strerror(-rc));
    return 0;
}

/* H7, looked at again where it counts. Nobody inside may look at process 1: its memory holds the
 * plan and its descriptors the socket. */
static int close_door(void)
{
    uint64_t caps;
    int rc = caps_get(&caps);
    if (rc < 0 || caps != 0)
        return control_failed(CONTROL_FD, SANDBOX_EXIT_CAPABILITIES,
                              "the command is not run while effective or permitted capabilities "
                              "remain");
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ||
        prctl(PR_SET_PDEATHSIG, DEATH_SIGNAL, 0, 0, 0) < 0)
        return control_failed(CONTROL_FD, SANDBOX_EXIT_NO_NEW_PRIVS, "prctl: %s", strerror(errno));
    prctl(PR_SET_NAME, "codespace-init", 0, 0, 0);
    return 0;
}

static int give_up_privileges(struct inner *in)
{
    int rc = tighten_no_new_privs();
    if (rc < 0)
        return control_failed(CONTROL_FD, SANDBOX_EXIT_NO_NEW_PRIVS, "%s", strerror(-rc));
    rc = refusals_load(&in->refusals, &in->plan.filter);
    if (rc < 0)
        return control_failed(CONTROL_FD, SANDBOX_EXIT_FILTER, "%s", strerror(-rc));
    return 0;
}

/* All signals are blocked for ours and read from a descriptor. Their dispositions are the
 * command's, which inherits them: what our caller ignored is not ignored there. */
static int open_signals(struct inner *in)
{
    sigset_t all, wanted;
    if (!in->warm) /* the zygote's are, too */
        child_default_signals();
    sigfillset(&all);
    sigemptyset(&wanted);
    sigaddset(&wanted, SIGCHLD);
    sigaddset(&wanted, DEATH_SIGNAL);
    for (size_t i = 0; i < ARRAY_LEN(forwarded); i++)
        sigaddset(&wanted, forwarded[i]);
    if (sigprocmask(SIG_SETMASK, &all, NULL) < 0)
        return -errno;
    in->signal_fd = signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
    return in->signal_fd < 0 ? -errno : 0;
}

/* ---- starting the command ---- */

/* Of CLOCK_MONOTONIC, which is the runner's, too. */
static uint64_t now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000u + (uint64_t)t.tv_nsec / 1000u;
}

static int tell_exec_failed(const struct child_start *c)
{
    struct helper_verdict v = {.event = HELPER_EXEC_FAILED, .value = c->error};
    snprintf(v.message, sizeof(v.message), "cannot execute \"%.200s\": %s", c->plan->argv.items[0],
             strerror(c->error));
    control_send(CONTROL_FD, &v);
    return c->error == ENOENT ? SANDBOX_COMMAND_NOT_FOUND : SANDBOX_COMMAND_NOT_EXECUTABLE;
}

static int tell_not_started(const struct child_start *c)
{
    const char *why = strerror(c->error);
    switch (c->step) {
    case CHILD_EXEC:
        return tell_exec_failed(c);
    case CHILD_TERMINAL:
        return control_failed(CONTROL_FD, SANDBOX_EXIT_TERMINAL,
                              "it must be a terminal that belongs to no session: %s", why);
    case CHILD_CWD:
        return control_failed(CONTROL_FD, SANDBOX_EXIT_CWD, "%.300s: %s", c->plan->cwd, why);
    default:
        return control_failed(CONTROL_FD, SANDBOX_EXIT_START, "%s", why);
    }
}

static int start_command(struct inner *in, unsigned long files)
{
    struct child_start *c = &in->child;
    *c = (struct child_start){.plan = &in->plan, .files = files};
    in->started_us = now_us();
    child_run(c);
    if (c->step != CHILD_STARTED)
        return tell_not_started(c);
    in->begun = true;
    in->command = c->pid;
    in->untold = !in->quiet;
    if (in->plan.tty) /* who reads a terminal waits for its last holder */
        let_go_of_standard_descriptors();
    if (!in->warm)
        close(INNER_PLAN_FD);
    return 0;
}

void inner_tell_taken(struct inner *in)
{
    if (in->taken_fd >= 0)
        (void)fd_write_all(in->taken_fd, (const char *)&in->slot, 1);
    fd_close(&in->taken_fd);
}

static void add_started(const struct inner *in, struct buf *lines)
{
    if (in->untold)
        helper_verdict_write(
            &(struct helper_verdict){.event = HELPER_STARTED, .at_us = in->started_us}, lines);
}

/* What the runner learns first, `started` included when it does not know yet, is one write: a
 * command that ends within TELL_AFTER_MS wakes the runner once. */
static void tell(struct inner *in, const struct helper_verdict *v)
{
    autobuf lines = BUF_INIT;
    add_started(in, &lines);
    helper_verdict_write(v, &lines);
    fd_write_all(CONTROL_FD, buf_bytes(&lines), lines.len);
    in->untold = false;
}

/* The command goes on. What only one that does can notice is done now: letting go of its pipes, and
 * that the zygote makes another child. */
static void tell_started(struct inner *in)
{
    autobuf line = BUF_INIT;
    if (!in->untold)
        return;
    if (!in->plan.tty)
        let_go_of_standard_descriptors();
    add_started(in, &line);
    in->untold = false;
    fd_write_all(CONTROL_FD, buf_bytes(&line), line.len);
    inner_tell_taken(in);
}

/* ---- while it runs ---- */

/* As waitpid(-1); notes the end of the command. */
static pid_t reap_one(struct inner *in, int flags)
{
    int status;
    pid_t pid = waitpid(-1, &status, flags);
    if (pid > 0 && pid == in->command) {
        in->ended = true;
        in->ended_us = now_us();
        in->status = status;
    }
    return pid;
}

/* Is there something to wait for? */
static bool goes_on(const struct inner *in)
{
    return !in->closed && (in->keeping ? !in->alone : !in->ended);
}

static void reap(struct inner *in)
{
    pid_t pid = 0;
    do {
        pid = reap_one(in, WNOHANG);
    } while (pid > 0 && goes_on(in));
    in->alone = pid < 0 && errno == ECHILD;
}

/* To the command's process group; when the command has ended, to all that it left. */
static void pass_on(const struct inner *in, int signal)
{
    kill(in->keeping ? -1 : -in->command, signal);
}

/* A sender inside has a number here; whoever is outside, and the kernel, has none. Of the codes
 * those are left that nobody inside can choose: not what a sender writes himself (sigqueue), nor
 * what the kernel sends to the owner of a descriptor, who can be anybody (F_SETOWN, F_SETSIG). */
static bool is_from_outside(const struct signalfd_siginfo *info)
{
    return info->ssi_pid == 0 && (info->ssi_code == SI_USER || info->ssi_code == SI_KERNEL);
}

static void on_signal(struct inner *in)
{
    struct signalfd_siginfo info;
    while (read(in->signal_fd, &info, sizeof(info)) == sizeof(info)) {
        if (info.ssi_signo == SIGCHLD || !is_from_outside(&info))
            continue;
        if (info.ssi_signo == DEATH_SIGNAL)
            in->closed = true;
        else
            pass_on(in, (int)info.ssi_signo);
    }
    reap(in);
}

static void on_control(struct inner *in)
{
    size_t n;
    if (control_fill(&in->control) == 0)
        in->closed = true;
    for (const char *line = control_next(&in->control, &n); line != NULL;
         line = control_next(&in->control, &n)) {
        int signal = helper_signal_read(line, n);
        if (signal > 0)
            pass_on(in, signal);
    }
}

static bool on_network(struct inner *in)
{
    in->network = netdoor_on_event(INNER_NETWORK_FD, in->refusals.list);
    return in->network;
}

/* Until the command's process, made ahead, has executed and goes on for TELL_AFTER_MS, or has
 * ended. To be woken as soon as it has executed would take the processor from it, for 30 us. */
static void await_begin(struct inner *in)
{
    struct pollfd fds[] = {
        {.fd = in->signal_fd, .events = POLLIN},
        {.fd = in->clock_fd, .events = POLLIN},
        {.fd = in->refusals.fd, .events = POLLIN},
    };
    int timeout_ms = -1;
    while (goes_on(in)) {
        int n = poll(fds, ARRAY_LEN(fds), timeout_ms);
        if (n > 0 && fds[0].revents != 0)
            on_signal(in);
        bool due = n == 0 || fds[1].revents != 0 || fds[2].revents != 0 || in->ended;
        if (due && child_has_left(&in->child)) {
            in->begun = true;
            return;
        }
        if (due) { /* it takes its time to execute */
            fds[1].fd = fds[2].fd = -1;
            timeout_ms = TELL_AFTER_MS;
        }
    }
}

static void serve(struct inner *in)
{
    struct pollfd fds[] = {
        {.fd = in->signal_fd, .events = POLLIN},
        {.fd = CONTROL_FD, .events = POLLIN},
        {.fd = in->guard.watch_fd, .events = POLLIN},
        {.fd = in->refusals.fd, .events = POLLIN},
        {.fd = in->network ? INNER_NETWORK_FD : -1, .events = POLLIN},
    };
    int timeout_ms = in->guard.watch_fd < 0 ? GUARD_AFTER_MS : -1;
    while (goes_on(in)) {
        int n = poll(fds, ARRAY_LEN(fds), in->untold ? TELL_AFTER_MS : timeout_ms);
        if (n == 0 && in->untold) {
            tell_started(in);
        } else if (n == 0) {
            guard_watch(&in->guard);
            fds[2].fd = in->guard.watch_fd;
            timeout_ms = -1;
        }
        if (n <= 0)
            continue;
        if (fds[4].revents != 0 && !on_network(in))
            fds[4].fd = -1;
        if (fds[3].revents != 0)
            refusals_on_event(&in->refusals);
        if (fds[2].revents != 0)
            guard_on_event(&in->guard);
        if (fds[1].revents != 0)
            on_control(in);
        if (fds[0].revents != 0)
            on_signal(in);
        if (goes_on(in))
            tell_started(in);
    }
}

/* ---- the end ---- */

/* Kill and reap all that is left: how many were still alive, and which. */
static void clear_namespace(struct inner *in, struct helper_verdict *v)
{
    uint32_t seen = 0;
    pid_t pid = 0;
    do {
        pid = reap_one(in, WNOHANG);
    } while (pid > 0);
    if (pid < 0) /* nobody is there */
        return;
    if (in->ended && !in->closed)
        seen = census_name(in->plan.namespaces, v->left);
    kill(-1, SIGKILL);
    for (pid = reap_one(in, 0); pid > 0; pid = reap_one(in, 0))
        v->background += pid != in->command;
    /* Those of a PID namespace inside of ours are reaped by its own process 1. */
    if (v->background < seen)
        v->background = seen;
}

/* Relative to the workspace where it lies in it. */
static void put_name(const struct inner *in, const char *path, char ret[HELPER_NAME_MAX])
{
    size_t n = strlen(in->plan.workspace);
    bool within = strncmp(path, in->plan.workspace, n) == 0 && path[n] == '/';
    snprintf(ret, HELPER_NAME_MAX, "%s", within ? path + n + 1 : path);
}

static void fill_removed(const struct inner *in, struct helper_verdict *v)
{
    size_t to = 0;
    for (size_t i = 0; i < in->plan.guards.len / 2 && to < HELPER_REMOVED_MAX; i++) {
        if (in->guard.touched[i])
            put_name(in, in->plan.guards.items[2 * i], v->removed[to++]);
    }
}

static void fill_created(struct inner *in, struct helper_verdict *v)
{
    autostrv found = {0};
    if (!in->plan.search)
        return;
    if (gitdir_find_new(in->plan.workspace, &in->plan.repositories, in->listings, &found) != 0 ||
        found.len > HELPER_REMOVED_MAX)
        denial_unknown(in->refusals.list, DENIAL_UNSEARCHED);
    for (size_t i = 0; i < found.len && i < HELPER_REMOVED_MAX; i++)
        snprintf(v->created[i], HELPER_NAME_MAX, "%s", found.items[i]);
}

/* What the network refused to the command before its end belongs to it. */
static void hear_the_rest(struct inner *in)
{
    struct pollfd p = {.fd = INNER_NETWORK_FD, .events = POLLIN};
    if (in->warm) {
        netrelay_catch_up(INNER_NETWORK_FD, in->refusals.list);
        return;
    }
    while (poll(&p, 1, 0) > 0 && netdoor_on_event(INNER_NETWORK_FD, in->refusals.list))
        continue;
}

static uint64_t processor_us(const struct rusage *u)
{
    return (uint64_t)(u->ru_utime.tv_sec + u->ru_stime.tv_sec) * 1000000u +
           (uint64_t)(u->ru_utime.tv_usec + u->ru_stime.tv_usec);
}

static void tell_limits(struct inner *in, struct helper_verdict *v)
{
    uint32_t refused = 0;
    if (in->tells[GROUP_MEMORY])
        v->oom_kills = group_oom_kills(INNER_EVENTS_FD + GROUP_MEMORY);
    if (in->tells[GROUP_PIDS])
        refused = group_pids_refused(INNER_EVENTS_FD + GROUP_PIDS);
    if (refused == 0)
        return;
    struct denial *d = denial_count(in->refusals.list, "limit.pids", "");
    if (str_eq(d->rule, "limit.pids")) /* else the list is full */
        d->count = refused;
}

/* What the command and all it started have used, made and were refused. */
static void fill_use(struct inner *in, struct helper_verdict *v)
{
    struct rusage usage = {0};
    getrusage(RUSAGE_CHILDREN, &usage);
    uint64_t cpu_us = processor_us(&usage);
    v->cpu_us = cpu_us > in->early_us ? cpu_us - in->early_us : 0;
    v->max_rss_kib = (uint64_t)usage.ru_maxrss;
    fill_removed(in, v);
    fill_created(in, v);
    tell_limits(in, v);
    if (in->network) {
        hear_the_rest(in);
        in->lost6 = netlost_tell(in->lost6, in->refusals.list);
    }
    memcpy(v->denials, in->refusals.list, sizeof(v->denials));
}

static void fill_end(const struct inner *in, struct helper_verdict *v)
{
    bool signaled = WIFSIGNALED(in->status);
    v->event = signaled ? HELPER_SIGNAL : HELPER_EXIT;
    v->value = signaled ? WTERMSIG(in->status) : WEXITSTATUS(in->status);
    v->at_us = in->ended_us;
}

static int tell_end(struct inner *in)
{
    struct err e = {0};
    struct helper_verdict v = {0};
    clear_namespace(in, &v);
    fill_end(in, &v);
    int code = v.event == HELPER_SIGNAL ? 128 + v.value : v.value;
    bool swept = guard_sweep(&in->guard, &e) == 0;
    fill_use(in, &v);
    if (!swept) {
        tell_started(in);
        return control_failed(CONTROL_FD, SANDBOX_EXIT_GUARD, "%s", e.message);
    }
    if (in->keeping) {
        v.event = HELPER_OVER;
        v.value = 0;
    }
    tell(in, &v);
    return code;
}

/* The command has ended: live on with what it left, if there is anything, until that has ended or
 * is ended. */
static void keep_rest(struct inner *in)
{
    struct helper_verdict v = {.kept = true};
    pid_t pid = 0;
    do {
        pid = reap_one(in, WNOHANG);
    } while (pid > 0);
    if (pid < 0) /* nobody is there */
        return;
    v.background = census_take(v.left);
    fill_end(in, &v);
    fill_use(in, &v);
    tell_started(in);
    control_send(CONTROL_FD, &v);
    in->keeping = true;
    serve(in);
}

int inner_settle(struct inner *in)
{
    int code = close_door();
    if (code != 0)
        return code;
    int rc = open_signals(in);
    if (rc < 0)
        return control_failed(CONTROL_FD, SANDBOX_EXIT_INTERNAL, "signals: %s", strerror(-rc));
    return give_up_privileges(in);
}

/* What a cold start would protect and an older plan does not know of: repositories that were made
 * meanwhile. */
static int check_age(struct inner *in)
{
    autostrv found = {0};
    if (in->plan.search)
        gitdir_find_new(in->plan.workspace, &in->plan.repositories, in->listings, &found);
    if (found.len > 0)
        return control_failed(CONTROL_FD, SANDBOX_EXIT_GUARD,
                              "%.300s was made after the view was built; it has to be built again",
                              found.items[0]);
    return 0;
}

static void open_self(struct inner *in)
{
    if (in->self_fd < 0 && in->plan.guards.len > 0)
        in->self_fd = (int)syscall(SYS_pidfd_open, getpid(), 0);
}

/* The receipt. Who is not there to get it may start the command elsewhere. Its descriptor is for
 * the case that we are killed: whoever holds it knows when nothing of us is alive any more, and
 * puts right in our place what we guard. */
static int tell_begins(struct inner *in)
{
    open_self(in);
    autofd int self = steal_fd(&in->self_fd);
    if (in->plan.guards.len == 0 && !in->warm)
        return 0;
    return scm_send(CONTROL_FD, "\n", 1, &self, self >= 0) < 0 ? SANDBOX_EXIT_LOST : 0;
}

/* A page costs 1 to 3 us where it comes on the way to the verdict, and as much here where nobody
 * waits; so no more than are used. */
static __attribute__((noinline)) void touch_stack(void)
{
    volatile char depth[STACK_TOUCHED];
    for (size_t at = 0; at < sizeof(depth); at += PAGE_STEP)
        depth[at] = 0;
}

void inner_rehearse(struct inner *in)
{
    const struct helper_verdict v = {.event = HELPER_EXIT};
    struct guard guard;
    struct err e = {0};
    autostrv found = {0};
    autobuf line = BUF_INIT;
    (void)guard_init(&guard, &in->plan.guards, &e);
    guard_fini(&guard);
    if (in->plan.search)
        gitdir_find_new(in->plan.workspace, &in->plan.repositories, in->listings, &found);
    helper_verdict_write(&v, &line);
    child_rehearse();
    touch_stack();
    open_self(in);
}

int inner_begin(struct inner *in)
{
    struct err e = {0};
    if (guard_init(&in->guard, &in->plan.guards, &e) < 0)
        return control_failed(CONTROL_FD, SANDBOX_EXIT_GUARD, "%s", e.message);
    int code = in->warm ? check_age(in) : 0;
    if (code == 0)
        code = tell_begins(in);
    if (in->warm && in->network) /* else the network is as new as the command */
        in->lost6 = netlost_count();
    return code;
}

/* It runs, or has run. */
static int see_to_the_end(struct inner *in)
{
    /* Gone into the command; a large one would otherwise stay in our memory. */
    buf_fini(&in->plan.args);
    strv_fini(&in->plan.argv);
    strv_fini(&in->plan.env);
    serve(in);
    if (in->plan.keep && in->ended && !in->closed)
        keep_rest(in);
    return tell_end(in);
}

int inner_run(struct inner *in, unsigned long files)
{
    int code = inner_begin(in);
    if (code == 0)
        code = start_command(in, files);
    return code != 0 ? code : see_to_the_end(in);
}

/* In the command's process, when it has its command. */
static int arrive(void *user)
{
    const struct itimerspec then = {.it_value = {.tv_nsec = TELL_AFTER_MS * 1000000}};
    struct inner *in = user;
    struct rusage usage = {0};
    int code = in->arrive(in->arrive_user);
    if (code != 0)
        return code;
    in->untold = true;
    in->started_us = now_us();
    (void)timerfd_settime(in->clock_fd, 0, &then, NULL);
    getrusage(RUSAGE_SELF, &usage);
    in->early_us = processor_us(&usage);
    return 0;
}

/* The end of all came first; nothing of the command may go on in our memory. */
static void end_child(struct inner *in)
{
    if (!in->ended)
        kill(in->command, SIGKILL);
    while (!in->ended && reap_one(in, 0) > 0)
        continue;
    in->begun = true;
}

/* Its process ended before it executed. */
static int end_early(const struct inner *in)
{
    if (in->child.step != CHILD_WAITS)
        return tell_not_started(&in->child);
    return WIFEXITED(in->status) ? WEXITSTATUS(in->status) : SANDBOX_EXIT_LOST;
}

/* Where the C library makes no such process. */
static int run_at_once(struct inner *in, unsigned long files)
{
    int code = in->arrive(in->arrive_user);
    if (code != 0)
        return code - 1;
    code = start_command(in, files);
    return code != 0 ? code : see_to_the_end(in);
}

int inner_run_ahead(struct inner *in, unsigned long files, int (*function)(void *user), void *user)
{
    in->arrive = function;
    in->arrive_user = user;
    in->child =
        (struct child_start){.plan = &in->plan, .files = files, .arrive = arrive, .user = in};
    in->clock_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    if (in->clock_fd < 0 || child_ahead(&in->child) < 0)
        return run_at_once(in, files);
    in->command = in->child.pid;
    await_begin(in);
    fd_close(&in->clock_fd);
    if (!in->begun)
        end_child(in);
    if (in->child.step != CHILD_STARTED)
        return end_early(in);
    if (in->plan.tty) /* who reads a terminal waits for its last holder */
        let_go_of_standard_descriptors();
    if (goes_on(in))
        tell_started(in);
    return see_to_the_end(in);
}

int inner_main(int plan_fd, unsigned long files, bool quiet)
{
    struct inner in = {.control.fd = CONTROL_FD,
                       .self_fd = -1,
                       .taken_fd = -1,
                       .signal_fd = -1,
                       .refusals.fd = -1};
    struct err e = {0};
    int read_rc = planfile_read(plan_fd, &in.plan, &e);
    int spare = PLAN_FD_SOURCE + (int)in.plan.sources.len;
    int events[GROUP_EVENTS];
    for (int i = 0; i < GROUP_EVENTS; i++) {
        in.tells[i] = read_rc == 0 && group_has_events(&in.plan.groups, (enum group_event)i);
        events[i] = in.tells[i] ? spare++ : -1;
    }
    in.network = read_rc == 0 && in.plan.egress.len > 0;
    in.quiet = quiet;
    int rc = arrange_descriptors(events, in.network ? spare : -1);
    if (rc < 0) {
        sandbox_say("%s: %s", sandbox_exit_text(SANDBOX_EXIT_DESCRIPTORS), strerror(-rc));
        return SANDBOX_EXIT_DESCRIPTORS;
    }
    if (read_rc < 0)
        return control_failed(CONTROL_FD, SANDBOX_EXIT_PLAN_FORM, "%s", e.message);
    if (in.network && netdoor_wait(INNER_NETWORK_FD, &e) < 0)
        return control_failed(CONTROL_FD, SANDBOX_EXIT_NETWORK, "%s", e.message);
    if (in.plan.zygote) {
        close(INNER_PLAN_FD);
        return zygote_main(&in.plan, files);
    }
    int code = check_place(&in.plan);
    if (code == 0)
        code = finish_view(&in.plan);
    if (code == 0)
        code = inner_settle(&in);
    if (code == 0)
        code = inner_run(&in, files);
    guard_fini(&in.guard);
    refusals_fini(&in.refusals);
    plan_fini(&in.plan);
    buf_fini(&in.control.in);
    fd_close(&in.signal_fd);
    return code;
}
