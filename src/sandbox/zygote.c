/* sandbox/zygote: see zygote.h. */
#include "sandbox/zygote.h"

#include "base/mem.h"
#include "sandbox/child.h"
#include "sandbox/control.h"
#include "sandbox/environ.h"
#include "sandbox/exits.h"
#include "sandbox/fresh.h"
#include "sandbox/inner.h"
#include "sandbox/layout.h"
#include "sandbox/listings.h"
#include "sandbox/loopback.h"
#include "sandbox/masks.h"
#include "sandbox/netrelay.h"
#include "sys/caps.h"
#include "sys/fd.h"
#include "sys/scm.h"
#include "sys/tighten.h"
#include "wire/warm.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CONTROL_FD INNER_CONTROL_FD

/* What a zygote may hold: to make namespaces and mounts, to empty the bounding set, and to map its
 * user (sandbox/fresh). */
#define CAPS_ALLOWED (1ull << CAP_SYS_ADMIN | 1ull << CAP_SETPCAP | 1ull << CAP_SETFCAP)
/* And, when each command gets a network of its own, to set its loopback up. */
#define CAPS_NETWORK (1ull << CAP_NET_ADMIN)

struct child {
    pid_t pid;
    unsigned char slot;
    bool taken; /* it has a command */
};

/* Shared with the children. A child that takes a command writes it down here at once, and wakes the
 * zygote when that is worth a processor. */
struct pool {
    atomic_size_t crowd;             /* all children */
    atomic_uint waiting;             /* that wait for a command */
    atomic_bool taken[ZYGOTE_READY]; /* by slot: one has a command, and was not counted yet */
};

struct zygote {
    struct plan *plan;
    struct fresh fresh;
    struct netrelay relay; /* of the egress proxy's events */
    unsigned long files;
    int signal_fd;
    int taken[2]; /* a byte, the slot, from a child that has taken a command: look at the pool */
    struct child *children;
    size_t n, cap;
    struct pool *pool;
    struct listings *listings; /* of the workspace, written by the children; or NULL */
    bool ready[ZYGOTE_READY];  /* by slot */
    uint64_t due_ns;           /* when the missing ones are made; 0 = none is missing */
    bool closing;
    int code;
};

/* ---- at prepare ---- */

/* What a command may ask for that only a new view, or a new process, gives; NULL = nothing. */
static const char *asks_for_more(const struct helper_request *r)
{
    const struct view *v = &r->view;
    if (r->network != HELPER_NETWORK_RESTRICTED && r->own_network)
        return "network: \"enabled\" with a network for each command has a door of its own";
    if (v->read != VIEW_READ_MINIMAL)
        return "read: \"all\" hides the secrets that are there when the view is built";
    if (v->deny.len > 0)
        return "deny: a pattern takes what matches when the view is built";
    if (v->git != VIEW_GIT_READ_ONLY)
        return "git: \"commit\" lets a command make places that the next one must not write";
    if (v->inherited_proc)
        return "proc: \"inherited\" cannot be made anew";
    if (r->cgroup_parent != NULL || r->limits.memory != 0 || r->limits.pids != 0 ||
        r->limits.cpu_percent != 0)
        return "limits: a group is made for one command";
    return NULL;
}

int zygote_plan(const struct helper_request *r, struct plan *p, struct err *e)
{
    const char *more = asks_for_more(r);
    if (more != NULL)
        return err_set(e, ERR_INVALID_COMMAND, "zygote: this view is built for each command (%s)",
                       more);
    p->zygote = true;
    p->own_network = r->own_network;
    /* Two commands would meet in it. */
    layout_args(p, "--remount-ro", "/dev", NULL);
    layout_args(p, "--cap-add", "CAP_SYS_ADMIN", "--cap-add", "CAP_SETPCAP", NULL);
    if (r->own_network)
        layout_args(p, "--cap-add", "CAP_NET_ADMIN", NULL);
    if (getuid() != 0 || getgid() != 0)
        layout_args(p, "--cap-add", "CAP_SETFCAP", "--uid", "0", "--gid", "0", NULL);
    else if (p->namespaces)
        layout_args(p, "--cap-add", "CAP_SETFCAP", NULL);
    return 0;
}

static int broken(struct zygote *z, int code, const char *what)
{
    z->closing = true;
    z->code = control_failed(CONTROL_FD, code, "%s", what);
    return z->code;
}

/* ---- in a child ---- */

/* Of a command. Static, so that no more of it is touched than has to be. */
static char message[WARM_MESSAGE_MAX];

/* Everything that does not depend on the command. */
static int make_ready(const struct zygote *z, struct inner *in)
{
    struct err e = {0};
    int rc = z->plan->own_network ? loopback_up() : 0;
    if (rc < 0)
        return control_failed(CONTROL_FD, SANDBOX_EXIT_BWRAP, "the loopback: %s", strerror(-rc));
    if (fresh_make(&z->fresh, &e) < 0)
        return control_failed(CONTROL_FD, SANDBOX_EXIT_BWRAP, "%s", e.message);
    /* A user namespace of its own begins with a whole bounding set. */
    rc = z->fresh.map ? caps_drop_all() : caps_drop_held();
    if (rc < 0)
        return control_failed(CONTROL_FD, SANDBOX_EXIT_CAPABILITIES, "%s", strerror(-rc));
    in->plan = *z->plan;
    environ_copy(&z->plan->env, &in->plan.env);
    return inner_settle(in);
}

/* The command's descriptors in their places; its control socket is where the zygote's was. */
static int take_descriptors(int fds[WARM_FDS])
{
    int rc = 0;
    for (int i = 0; i < WARM_FDS && rc == 0; i++)
        rc = (i == WARM_CONTROL ? dup3(fds[i], CONTROL_FD, O_CLOEXEC) : dup2(fds[i], i)) < 0;
    for (int i = 0; i < WARM_FDS; i++)
        fd_close(&fds[i]);
    return rc;
}

static int take_command(const struct zygote *z, const char *bytes, size_t n, struct inner *in)
{
    struct err e = {0};
    struct warm_command c;
    if (warm_command_read(bytes, n, &c, &e) < 0)
        return control_failed(CONTROL_FD, SANDBOX_EXIT_PLAN_FORM, "%s", e.message);
    if (fresh_check(&z->fresh, &e) < 0)
        return control_failed(CONTROL_FD, SANDBOX_EXIT_SOURCE, "%s", e.message);
    in->plan.tty = c.tty;
    in->plan.keep = c.keep;
    in->plan.cwd = c.cwd;
    in->plan.argv = c.argv;
    environ_lay(&in->plan.env, c.tty, c.cwd, &c.env);
    strv_fini(&c.env);
    return 0;
}

/* Go through what a command will need with nothing at stake. Memory that is shared with the zygote
 * is copied, and what is mapped is brought in, page by page where it is first touched; here nobody
 * waits for it. What is wrong now is refused when a command comes. */
static void rehearse(const struct zygote *z, struct inner *in)
{
    char *const argv[] = {(char *)"-", NULL};
    const struct helper_request r = {.cwd = z->plan->cwd, .argv = {(char **)argv, 1, 1}};
    struct err e = {0};
    autobuf bytes = BUF_INIT;
    autostrv env = {0};
    struct warm_command c = {0};
    warm_command_write(&r, &bytes);
    memset(message, 0, bytes.len);
    if (warm_command_read(buf_bytes(&bytes), bytes.len, &c, &e) == 0) {
        environ_lay_over(&z->plan->env, c.tty, c.cwd, &c.env, &env);
        warm_command_fini(&c);
    }
    inner_rehearse(in);
}

/* C libraries differ in what they make of this call; the kernel's is meant. */
static void take_policy(int policy)
{
    const struct sched_param none = {0};
    syscall(SYS_sched_setscheduler, 0, policy, &none);
}

/* The verdict is told. Taking our namespaces down keeps a processor for longer than many a command,
 * so it is left to one that has nothing else to do; unless the machine never has one. */
static void linger(const struct zygote *z)
{
    if (z->pool->crowd < ZYGOTE_CROWD)
        take_policy(SCHED_IDLE);
    poll(NULL, 0, ZYGOTE_LINGER_MS);
}

/* We have a command. While enough others wait, the zygote need not know before our command is known
 * to go on or has ended: it would make the next child on the processor that starts the command. */
static void note_taken(struct zygote *z, struct inner *in)
{
    z->pool->taken[in->slot] = true;
    if (atomic_fetch_sub(&z->pool->waiting, 1) <= ZYGOTE_LOW)
        inner_tell_taken(in);
}

struct serving {
    struct zygote *zygote;
    struct inner *inner;
    bool connected; /* the control socket is the command's */
};

/* In the command's process: wait for the command. As child_start.arrive. */
static int receive_command(void *user)
{
    struct serving *s = user;
    struct inner *in = s->inner;
    int fds[WARM_FDS];
    ssize_t n = scm_receive(CONTROL_FD, message, sizeof(message), fds, WARM_FDS);
    if (n == 0)
        return 1;
    note_taken(s->zygote, in);
    if (n < 0 || take_descriptors(fds) != 0)
        return SANDBOX_EXIT_DESCRIPTORS + 1;
    s->connected = true;
    int code = 0;
    if (in->network && !netrelay_discard(INNER_NETWORK_FD))
        code = control_failed(CONTROL_FD, SANDBOX_EXIT_NETWORK, "the egress proxy ended");
    if (code == 0)
        code = take_command(s->zygote, message, (size_t)n, in);
    if (code == 0)
        code = inner_begin(in);
    return code == 0 ? 0 : code + 1;
}

/* Wait for a command and serve it. The memory is ours alone and goes with us. */
static int serve(struct zygote *z, unsigned char slot, int events)
{
    struct inner in = {.control.fd = CONTROL_FD,
                       .signal_fd = -1,
                       .refusals.fd = -1,
                       .self_fd = -1,
                       .clock_fd = -1,
                       .taken_fd = z->taken[1],
                       .slot = slot,
                       .listings = z->listings,
                       .warm = true};
    struct serving serving = {z, &in, false};
    fd_close(&z->signal_fd);
    fd_close(&z->taken[0]);
    netrelay_fini(&z->relay);
    in.network = events >= 0;
    if (in.network && dup3(events, INNER_NETWORK_FD, O_CLOEXEC) < 0)
        return SANDBOX_EXIT_DESCRIPTORS;
    fd_close(&events);
    take_policy(SCHED_BATCH); /* nobody waits for this */
    int code = make_ready(z, &in);
    if (code != 0)
        return code;
    rehearse(z, &in);
    take_policy(SCHED_OTHER);
    code = inner_run_ahead(&in, z->files, receive_command, &serving);
    if (in.child.step == CHILD_WAITS && code == 0)
        return 0; /* there came none */
    /* The runner reads no line of a short command before the last one is there (run/control). */
    if (serving.connected)
        (void)shutdown(CONTROL_FD, SHUT_WR);
    linger(z);
    return code;
}

/* ---- in the zygote ---- */

static void start_child(struct zygote *z, unsigned char slot)
{
    mem_grow((void **)&z->children, &z->cap, z->n + 1, sizeof(*z->children));
    unsigned long network = z->plan->own_network ? CLONE_NEWNET : 0;
    autofd int events = -1;
    if (z->relay.epoll_fd >= 0 && netrelay_add(&z->relay, &events) < 0) {
        broken(z, SANDBOX_EXIT_NETWORK, "a socket for the proxy's events");
        return;
    }
    listings_renew(&z->listings);
    z->pool->waiting++;
    pid_t pid =
        (pid_t)syscall(SYS_clone, CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | network | SIGCHLD,
                       NULL, NULL, NULL, NULL);
    if (pid == 0)
        _exit(serve(z, slot, steal_fd(&events)));
    if (pid < 0)
        broken(z, SANDBOX_EXIT_START, strerror(errno));
    else
        z->children[z->n++] = (struct child){.pid = pid, .slot = slot};
    z->pool->crowd = z->n;
    z->ready[slot] = true;
}

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* See to it that so many wait. */
static void fill(struct zygote *z, unsigned wanted)
{
    unsigned n = 0;
    for (unsigned char slot = 0; slot < ZYGOTE_READY; slot++)
        n += z->ready[slot];
    for (unsigned char slot = 0; slot < ZYGOTE_READY && n < wanted && !z->closing; slot++) {
        if (z->ready[slot])
            continue;
        start_child(z, slot);
        n++;
    }
    if (n >= ZYGOTE_READY)
        z->due_ns = 0;
    else if (z->due_ns == 0)
        z->due_ns = now_ns() + ZYGOTE_LATER_US * 1000ull;
}

/* The child that waited in this slot has a command. */
static void leave_slot(struct zygote *z, unsigned char slot)
{
    for (size_t i = 0; i < z->n; i++) {
        if (!z->children[i].taken && z->children[i].slot == slot)
            z->children[i].taken = true;
    }
    z->ready[slot] = false;
}

static void on_taken(struct zygote *z)
{
    char woken[64];
    while (read(z->taken[0], woken, sizeof(woken)) == (ssize_t)sizeof(woken))
        continue;
    for (unsigned char slot = 0; slot < ZYGOTE_READY; slot++) {
        if (atomic_exchange(&z->pool->taken[slot], false))
            leave_slot(z, slot);
    }
    fill(z, ZYGOTE_LOW);
}

/* The runner's end. Children that wait see it as soon as we do, and end. */
static bool is_closed(void)
{
    struct pollfd p = {.fd = CONTROL_FD};
    return poll(&p, 1, 0) > 0;
}

static void forget(struct zygote *z, pid_t pid)
{
    for (size_t i = 0; i < z->n; i++) {
        if (z->children[i].pid != pid)
            continue;
        bool waited = !z->children[i].taken;
        z->children[i] = z->children[--z->n];
        z->pool->crowd = z->n;
        if (waited && !z->closing && is_closed())
            z->closing = true;
        if (waited && !z->closing)
            broken(z, SANDBOX_EXIT_INTERNAL, "a child ended before it took a command");
        return;
    }
}

/* Who has taken a command has written it down before it ended. One that has ended is replaced now:
 * of a short command that is when we first hear of it. */
static void reap(struct zygote *z)
{
    pid_t pid;
    while ((pid = waitpid(-1, NULL, WNOHANG)) > 0) {
        on_taken(z);
        forget(z, pid);
        fill(z, ZYGOTE_READY);
    }
}

/* bubblewrap is gone: nothing holds the view from outside any more. */
static void end_children(struct zygote *z)
{
    z->closing = true;
    on_taken(z);
    for (size_t i = 0; i < z->n; i++)
        kill(z->children[i].pid, z->children[i].taken ? INNER_DEATH_SIGNAL : SIGKILL);
}

static void on_signal(struct zygote *z)
{
    struct signalfd_siginfo info;
    while (read(z->signal_fd, &info, sizeof(info)) == sizeof(info)) {
        if (info.ssi_signo == INNER_DEATH_SIGNAL && info.ssi_pid == 0)
            end_children(z);
    }
    reap(z);
}

/* Wait for an event, or until children are due: 0. */
static int wait_event(const struct zygote *z, struct pollfd *fds, nfds_t n)
{
    if (z->due_ns == 0 || z->closing)
        return poll(fds, n, -1);
    uint64_t now = now_ns();
    uint64_t left = z->due_ns > now ? z->due_ns - now : 0;
    const struct timespec t = {(time_t)(left / 1000000000u), (long)(left % 1000000000u)};
    return ppoll(fds, n, &t, NULL);
}

/* Who waits for a command must not get one. */
static void end_waiting(struct zygote *z)
{
    broken(z, SANDBOX_EXIT_NETWORK, "the egress proxy ended");
    on_taken(z);
    for (size_t i = 0; i < z->n; i++) {
        if (!z->children[i].taken)
            kill(z->children[i].pid, SIGKILL);
    }
}

/* False when the proxy is gone. Another one needs another view; commands that run go on without. */
static bool on_network(struct zygote *z)
{
    netrelay_on_event(&z->relay);
    if (z->relay.proxy_fd >= 0)
        return true;
    if (!z->closing)
        end_waiting(z);
    return false;
}

/* Until the socket closes, and then until the last child has ended. Who waits for a command sees
 * the same end of the socket. */
static void loop(struct zygote *z)
{
    struct pollfd fds[] = {
        {.fd = z->signal_fd, .events = POLLIN},
        {.fd = z->taken[0], .events = POLLIN},
        {.fd = CONTROL_FD},
        {.fd = z->relay.epoll_fd, .events = POLLIN},
    };
    while (!z->closing || z->n > 0) {
        if (z->closing && fds[2].fd >= 0) {
            close(CONTROL_FD);
            fds[2].fd = -1;
        }
        int n = wait_event(z, fds, ARRAY_LEN(fds));
        if (n == 0)
            fill(z, ZYGOTE_READY);
        if (n <= 0)
            continue;
        if (fds[3].revents != 0 && !on_network(z))
            fds[3].fd = -1;
        if (fds[1].revents != 0)
            on_taken(z);
        if (fds[2].revents != 0)
            z->closing = true;
        if (fds[0].revents != 0)
            on_signal(z);
    }
}

static int open_signals(struct zygote *z)
{
    sigset_t all, wanted;
    child_default_signals();
    sigfillset(&all);
    sigemptyset(&wanted);
    sigaddset(&wanted, SIGCHLD);
    sigaddset(&wanted, INNER_DEATH_SIGNAL);
    if (sigprocmask(SIG_SETMASK, &all, NULL) < 0)
        return -1;
    z->signal_fd = signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
    return z->signal_fd < 0 || pipe2(z->taken, O_CLOEXEC) < 0 ||
                   fd_set_nonblocking(z->taken[0], true) < 0
               ? -1
               : 0;
}

static void detach_standard(void)
{
    autofd int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; null >= 0 && fd <= STDERR_FILENO; fd++)
        dup2(null, fd);
}

static int settle(struct zygote *z)
{
    uint64_t caps;
    struct err e = {0};
    detach_standard();
    uint64_t allowed = CAPS_ALLOWED | (z->plan->own_network ? CAPS_NETWORK : 0);
    if (caps_get(&caps) < 0 || (caps & ~allowed) != 0)
        return broken(z, SANDBOX_EXIT_CAPABILITIES, "the zygote has more than it needs");
    if (getpid() != 1)
        return broken(z, SANDBOX_EXIT_PROCESS_1, "the zygote is not");
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ||
        prctl(PR_SET_PDEATHSIG, INNER_DEATH_SIGNAL, 0, 0, 0) < 0 || tighten_no_new_privs() < 0)
        return broken(z, SANDBOX_EXIT_NO_NEW_PRIVS, strerror(errno));
    prctl(PR_SET_NAME, "codespace-warm", 0, 0, 0);
    z->pool =
        mmap(NULL, sizeof(*z->pool), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (z->pool == MAP_FAILED || open_signals(z) < 0 ||
        (z->plan->egress.len > 0 && netrelay_init(&z->relay, INNER_NETWORK_FD) < 0))
        return broken(z, SANDBOX_EXIT_INTERNAL, strerror(errno));
    if (z->plan->search)
        z->listings = listings_new();
    if (masks_lay(&z->plan->masks, &e) < 0)
        return broken(z, SANDBOX_EXIT_SOURCE, e.message);
    if (fresh_init(&z->fresh, z->plan, &e) < 0)
        return broken(z, SANDBOX_EXIT_BWRAP, e.message);
    if (caps_drop_bounding() < 0)
        return broken(z, SANDBOX_EXIT_CAPABILITIES, "the bounding set cannot be emptied");
    buf_fini(&z->plan->args);
    strv_fini(&z->plan->argv);
    return 0;
}

int zygote_main(struct plan *p, unsigned long files)
{
    struct zygote z = {
        .plan = p, .files = files, .signal_fd = -1, .taken = {-1, -1}, .relay.epoll_fd = -1};
    if (settle(&z) == 0) {
        fill(&z, ZYGOTE_READY);
        if (!z.closing)
            control_send(CONTROL_FD, &(struct helper_verdict){.event = HELPER_STARTED});
        loop(&z);
    }
    fresh_fini(&z.fresh);
    netrelay_fini(&z.relay);
    listings_free(z.listings);
    free(z.children);
    fd_close(&z.signal_fd);
    fd_close(&z.taken[0]);
    fd_close(&z.taken[1]);
    return z.code;
}
