/* sandbox/supervise: see supervise.h. */
#include "sandbox/supervise.h"

#include "base/mem.h"
#include "sandbox/control.h"
#include "sandbox/exits.h"
#include "sandbox/outer.h"
#include "sandbox/planfile.h"
#include "sandbox/secondline.h"
#include "sys/fd.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

static const int forwarded[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGCONT};

/* How long what bubblewrap leaves may take to end by itself. */
#define GRACE_MS 1000

struct supervisor {
    struct control control;
    int plan_fd; /* until process 1 told of the command */
    struct secondline second;
    int signal_fd;
    sigset_t old_mask;
    pid_t child;
    bool ended; /* end is the verdict */
    struct helper_verdict end;
    bool gone; /* bubblewrap was reaped; status is of waitpid */
    int status;
    char words[1024]; /* bubblewrap's, before the end */
};

static void on_line(struct supervisor *s, const char *line, size_t n)
{
    struct helper_verdict v;
    if (n == 0)
        return; /* the receipt */
    helper_verdict_read(line, n, &v);
    if (v.event == HELPER_TEXT) {
        control_add_words(s->words, sizeof(s->words), v.message);
        return;
    }
    fd_close(&s->plan_fd);
    if (v.event != HELPER_STARTED && !s->ended) {
        s->ended = true;
        s->end = v;
    }
}

/* The receipt brings the descriptor. */
static bool fill(struct supervisor *s)
{
    autofd int init_fd = -1;
    if (control_receive(&s->control, &init_fd) == 0)
        return false;
    if (init_fd >= 0)
        secondline_arm(&s->second, &init_fd, s->plan_fd);
    if (init_fd < 0 && s->second.init_fd >= 0)
        fd_close(&s->plan_fd); /* process 1 has it still, so that costs nothing */
    return true;
}

/* False when the other end is closed. */
static bool on_control(struct supervisor *s)
{
    size_t n;
    bool open = fill(s);
    for (const char *line = control_next(&s->control, &n); line != NULL;
         line = control_next(&s->control, &n))
        on_line(s, line, n);
    return open;
}

static void on_signal(struct supervisor *s)
{
    struct signalfd_siginfo info;
    autobuf line = BUF_INIT;
    if (read(s->signal_fd, &info, sizeof(info)) != sizeof(info))
        return;
    if (info.ssi_signo == SIGCHLD) {
        s->gone = waitpid(s->child, &s->status, WNOHANG) == s->child;
        return;
    }
    helper_signal_write((int)info.ssi_signo, &line);
    fd_write_all(s->control.fd, buf_bytes(&line), line.len);
}

/* Until the verdict, or the other end closes. When bubblewrap was killed in the middle of its
 * set-up, what it leaves holds the other end and waits for ever. */
static void watch(struct supervisor *s)
{
    struct pollfd fds[] = {
        {.fd = s->control.fd, .events = POLLIN},
        {.fd = s->signal_fd, .events = POLLIN},
    };
    while (!s->ended) {
        int n = poll(fds, ARRAY_LEN(fds), s->gone ? GRACE_MS : -1);
        if (n == 0)
            return;
        if (n > 0 && fds[1].revents != 0)
            on_signal(s);
        if (n > 0 && fds[0].revents != 0 && !on_control(s))
            return;
    }
}

static int start(struct supervisor *s)
{
    int pair[2];
    sigset_t wanted;
    int rc = fd_socketpair(pair);
    if (rc < 0)
        return rc;
    sigemptyset(&wanted);
    for (size_t i = 0; i < ARRAY_LEN(forwarded); i++)
        sigaddset(&wanted, forwarded[i]);
    sigaddset(&wanted, SIGCHLD);
    sigaddset(&wanted, SIGPIPE);
    sigprocmask(SIG_BLOCK, &wanted, &s->old_mask);
    sigdelset(&wanted, SIGPIPE);
    s->signal_fd = signalfd(-1, &wanted, SFD_CLOEXEC);
    s->child = s->signal_fd < 0 ? -1 : fork();
    if (s->child == 0) {
        close(pair[0]);
        sigprocmask(SIG_SETMASK, &s->old_mask, NULL);
        _exit(outer_become_plan(s->plan_fd, pair[1], true));
    }
    rc = s->child < 0 ? -errno : 0;
    close(pair[1]);
    s->control.fd = pair[0];
    return rc;
}

/* As the command died. A signal that does not kill us leaves the shell's convention. */
static int die_by(int signal)
{
    const struct rlimit none = {0, 0};
    const struct sigaction fallback = {.sa_handler = SIG_DFL};
    sigset_t just;
    sigemptyset(&just);
    sigaddset(&just, signal);
    setrlimit(RLIMIT_CORE, &none);
    sigaction(signal, &fallback, NULL);
    raise(signal);
    sigprocmask(SIG_UNBLOCK, &just, NULL);
    return 128 + signal;
}

static void say_removed(const struct helper_verdict *v)
{
    for (size_t i = 0; i < HELPER_REMOVED_MAX && v->removed[i][0] != '\0'; i++)
        sandbox_say("%s is protected; what the command made of it was taken away", v->removed[i]);
}

static int conclude(struct supervisor *s)
{
    if (!s->ended && s->words[0] != '\0') {
        sandbox_say("%s: %s", sandbox_exit_text(SANDBOX_EXIT_BWRAP), s->words);
        return SANDBOX_EXIT_BWRAP;
    }
    if (!s->ended) {
        sandbox_say("%s (bubblewrap's status %#x)", sandbox_exit_text(SANDBOX_EXIT_LOST),
                    (unsigned)s->status);
        return SANDBOX_EXIT_LOST;
    }
    say_removed(&s->end);
    switch (s->end.event) {
    case HELPER_EXIT:
        return s->end.value;
    case HELPER_SIGNAL:
        return die_by(s->end.value);
    case HELPER_EXEC_FAILED:
        sandbox_say("%s", s->end.message);
        return s->end.value == ENOENT ? SANDBOX_COMMAND_NOT_FOUND : SANDBOX_COMMAND_NOT_EXECUTABLE;
    default:
        sandbox_say("%s", s->end.message);
        return s->end.value;
    }
}

static int supervise(struct supervisor *s)
{
    int rc = start(s);
    if (rc < 0) {
        sandbox_say("%s: %s", sandbox_exit_text(SANDBOX_EXIT_START), strerror(-rc));
        return SANDBOX_EXIT_START;
    }
    watch(s);
    /* The whole group: bubblewrap, and what it may have left when it was killed. */
    kill(-s->child, SIGKILL);
    while (!s->gone && waitpid(s->child, &s->status, 0) < 0 && errno == EINTR)
        continue;
    if (!s->ended)
        secondline_sweep(&s->second);
    return conclude(s);
}

int supervise_main(const char *path)
{
    struct err e = {0};
    struct supervisor s = {.control.fd = -1, .signal_fd = -1, .second.init_fd = -1};
    s.plan_fd = planfile_take(path, &e);
    if (s.plan_fd < 0) {
        sandbox_say("%s: %s", sandbox_exit_text(SANDBOX_EXIT_PLAN_FILE), e.message);
        return SANDBOX_EXIT_PLAN_FILE;
    }
    int code = supervise(&s);
    secondline_fini(&s.second);
    fd_close(&s.plan_fd);
    buf_fini(&s.control.in);
    fd_close(&s.control.fd);
    fd_close(&s.signal_fd);
    return code;
}
