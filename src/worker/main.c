/* codespace-codex-runtime: the worker: the runner behind the framed protocol (R2 to R7).
 *
 * Should: harden itself first, then open its socket or take stdin and stdout, serve exactly one
 * connection, and end with it, whichever way it ends; by then every process it started, with all
 * descendants, has been killed.
 * With --durable it serves one connection after the other and ends by a signal or when none came
 * for its idle limit (worker/durable). Must not: decide about policy (the gateway sends what each
 * command may do), keep anything on disk after its end (but a durable worker's last words), or
 * touch a socket on which somebody else listens.
 */
#include "base/log.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "run/local.h"
#include "sys/fd.h"
#include "sys/leaf.h"
#include "sys/rmtree.h"
#include "sys/unixsock.h"
#include "wire/runmsg.h"
#include "worker/durable.h"
#include "worker/harden.h"
#include "worker/serve.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Blocks from this size on are given back to the system as soon as they are freed, and so much
 * freed storage is kept for the next page of output: faulting it in again each time was a third of
 * the work of reading a flood. */
#define MMAP_BYTES (8 * 1024 * 1024)
#define KEEP_BYTES (8 * 1024 * 1024)

/* To empty a directory that only we write. */
#define OWN_DIR_PASSES 16

/* For the first byte of a connection. */
#define SILENT_MS 5000

#define EXIT_USAGE 64
#define EXIT_UNAVAILABLE 69
#define EXIT_FAULT 70

static const char usage[] =
    "usage: codespace-codex-runtime SOCKET            serve one connection on that Unix socket\n"
    "       codespace-codex-runtime --stdio           serve standard input and output\n"
    "       codespace-codex-runtime --own-dir SOCKET  the socket's directory is ours to remove\n"
    "       codespace-codex-runtime --durable DIR     outlive gateways: socket DIR/runner.sock\n"
    "       codespace-codex-runtime --version, --help\n"
    "Without SOCKET the variable CODESPACE_RUNNER_SOCKET names it. Prints \"listening\" when a\n"
    "connection can be made; ends with its connection, and ends every process it started.\n"
    "A durable worker keeps its processes when a connection ends and serves the next one. It "
    "ends,\n"
    "with all of them, at SIGTERM, SIGINT or SIGHUP, or when none came for\n"
    "CODESPACE_DURABLE_IDLE_SECS (default 86400); DIR/ended says why.\n";

static const int stop_signals[] = {SIGTERM, SIGINT, SIGHUP};

struct worker {
    uv_loop_t loop;
    struct runner *runner;
    struct serve *serve;
    uv_signal_t signals[ARRAY_LEN(stop_signals)];
    const char *socket; /* NULL = stdio, or durable */
    const char *durable_dir;
    struct durable durable;
    int signal; /* that ends it */
    bool own_dir;
};

static int complain(const char *what, int rc, const char *hint)
{
    fprintf(stderr, "codespace-codex-runtime: %s: %s%s\n", what, strerror(-rc), hint);
    return -1;
}

static const char *listen_hint(int rc)
{
    if (rc == -EADDRINUSE)
        return "; another worker listens there";
    if (rc == -EPERM)
        return "; its directory must be ours and nobody else may write it";
    return "";
}

/* The socket's directory, when it is ours alone: what our helpers keep for a moment (plans) lies in
 * it too, so that whoever survives removes all of it. */
static void use_own_dir(const struct worker *w)
{
    autofree char *copy = mem_strdup(w->socket);
    setenv("TMPDIR", dirname(copy), 1);
    (void)leaf_hold(getenv("TMPDIR")); /* until we end, however we end */
}

static void remove_own_dir(const struct worker *w)
{
    autofree char *copy = mem_strdup(w->socket);
    (void)rmtree(AT_FDCWD, dirname(copy), OWN_DIR_PASSES);
}

/* A connection that ends before it says anything was a look whether we live (sys/unixsock), and one
 * that stays silent is nobody's; neither is the one we serve. */
static bool speaks(int fd)
{
    char first;
    struct pollfd p = {fd, POLLIN, 0};
    return poll(&p, 1, SILENT_MS) == 1 && recv(fd, &first, 1, MSG_PEEK) == 1;
}

/* Tell who started us, then wait for the one connection. With --own-dir whoever started us holds
 * the other end of stdout: when it is gone, nobody will connect. */
static int wait_for_peer(int listener, bool watch_starter)
{
    if (fd_write_all(STDOUT_FILENO, "listening\n", 10) < 0 && watch_starter)
        return -EPIPE;
    for (;;) {
        struct pollfd fds[2] = {{listener, POLLIN, 0}, {STDOUT_FILENO, 0, 0}};
        if (poll(fds, watch_starter ? 2 : 1, -1) < 0 && errno != EINTR)
            return -errno;
        if (fds[0].revents != 0) {
            autofd int fd = unixsock_accept(listener);
            if (fd < 0 && fd != -EAGAIN && fd != -EPERM)
                return fd;
            if (fd >= 0 && speaks(fd))
                return steal_fd(&fd);
        } else if (fds[1].revents != 0) {
            return -EPIPE;
        }
    }
}

/* Whoever started us and made our directory has ended meanwhile: that is no fault of anybody. */
static int give_up(const struct worker *w, const char *what, int rc, const char *hint)
{
    if (!w->own_dir || (rc != -ENOENT && rc != -EPIPE))
        return complain(what, rc, hint);
    log_info("nobody waits for us any more");
    return -1;
}

static int open_socket(const struct worker *w, int *ret_in)
{
    autofd int listener = unixsock_listen(w->socket);
    if (listener < 0)
        return give_up(w, w->socket, listener, listen_hint(listener));
    int fd = wait_for_peer(listener, w->own_dir);
    unlink(w->socket); /* nobody else needs to find it */
    if (fd < 0)
        return give_up(w, "no connection", fd, "");
    *ret_in = fd;
    return 0;
}

/* Away from 0 and 1, so that nothing else reads or writes there. */
static int take_stdio(int *ret_in, int *ret_out)
{
    int in = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
    int out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    autofd int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (in < 0 || out < 0 || null < 0 || dup2(null, STDIN_FILENO) < 0 ||
        dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
        return complain("standard input and output", -errno, "");
    *ret_in = in;
    *ret_out = out;
    return 0;
}

static void on_ended(void *user)
{
    struct worker *w = user;
    if (w->durable_dir != NULL)
        durable_detached(&w->durable);
    else
        uv_stop(&w->loop);
}

static void on_idle_limit(void *user)
{
    struct worker *w = user;
    uv_stop(&w->loop);
}

static void on_signal(uv_signal_t *handle, int number)
{
    struct worker *w = handle->data;
    w->signal = number;
    uv_stop(handle->loop);
}

static uint64_t number_of(const char *variable, uint64_t max)
{
    uint64_t n = 0;
    const char *text = getenv(variable);
    return text != NULL && num_parse_u64(text, 1, max, &n) == 0 ? n : 0;
}

static void make_runner(struct worker *w)
{
    autofree char *helper = local_find_helper();
    struct local_options o = {
        .helper_path = helper,
        .timeout_ms = 1000 * number_of("CODESPACE_PROCESS_TIMEOUT_SECS", RUN_TIMEOUT_MAX_MS / 1000),
        .max_processes = number_of("CODESPACE_MAX_PROCESSES", RUN_PROCESSES_MAX),
        .max_workspace_processes =
            number_of("CODESPACE_MAX_WORKSPACE_PROCESSES", RUN_PROCESSES_MAX),
        .spill_dir = getenv("CODESPACE_SPILL_DIR"),
    };
    o.spill_off = str_eq(o.spill_dir, "none");
    w->runner = local_runner_new(&w->loop, &o);
}

static uint64_t idle_ms(void)
{
    uint64_t secs = number_of("CODESPACE_DURABLE_IDLE_SECS", DURABLE_IDLE_SECS_MAX);
    return 1000 * (secs != 0 ? secs : DURABLE_IDLE_SECS);
}

/* Nobody reads our words after that; whoever started us may be gone long before we are. */
static void say_listening(void)
{
    autofd int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    (void)fd_write_all(STDOUT_FILENO, "listening\n", 10);
    if (null >= 0)
        (void)dup2(null, STDOUT_FILENO);
}

static int open_durable(struct worker *w)
{
    struct err e;
    if (durable_open(&w->durable, w->durable_dir, &e) == 0)
        return 0;
    fprintf(stderr, "codespace-codex-runtime: %s\n", e.message);
    durable_free(&w->durable);
    return -1;
}

static int open_stream(struct worker *w, int *ret_in, int *ret_out)
{
    if (w->durable_dir != NULL)
        return open_durable(w);
    return w->socket != NULL ? open_socket(w, ret_in) : take_stdio(ret_in, ret_out);
}

static int start_durable(struct worker *w)
{
    int rc = durable_serve(&w->durable, &w->loop, w->serve, idle_ms(), on_idle_limit, w);
    if (rc == 0)
        say_listening();
    else
        complain(w->durable_dir, rc, "");
    return rc;
}

static int serve(struct worker *w)
{
    int in = -1;
    int out = -1;
    struct err e;
    if (open_stream(w, &in, &out) < 0)
        return EXIT_UNAVAILABLE;
    ensure(uv_loop_init(&w->loop) == 0);
    make_runner(w);
    for (size_t i = 0; i < ARRAY_LEN(stop_signals); i++) {
        uv_signal_init(&w->loop, &w->signals[i]);
        w->signals[i].data = w;
        uv_signal_start(&w->signals[i], on_signal, stop_signals[i]);
    }
    const struct serve_options o = {.loop = &w->loop,
                                    .runner = w->runner,
                                    .in = &in,
                                    .out = &out,
                                    .silence_ms = out >= 0 ? RUNMSG_SILENCE_MS : 0,
                                    .ended = on_ended,
                                    .user = w};
    w->serve = serve_new(&o, &e);
    if (w->serve != NULL && w->durable_dir != NULL && start_durable(w) < 0)
        return EXIT_FAULT;
    if (w->serve != NULL)
        uv_run(&w->loop, UV_RUN_DEFAULT);
    else
        fprintf(stderr, "codespace-codex-runtime: %s\n", e.message);
    return w->serve == NULL ? EXIT_FAULT : 0;
}

/* The reason first: whoever loses the connection reads it. */
static void close_durable(struct worker *w)
{
    autofree char *why = mem_printf("it was ended by signal %d (%s)", w->signal,
                                    w->signal == 0 ? "none" : strsignal(w->signal));
    durable_close(&w->durable, why);
}

/* Everything is killed and reaped before we go. */
static void shut_down(struct worker *w)
{
    if (w->durable_dir != NULL)
        close_durable(w);
    if (w->serve != NULL)
        serve_close(w->serve);
    runner_free(w->runner);
    for (size_t i = 0; i < ARRAY_LEN(stop_signals); i++)
        uv_close((uv_handle_t *)&w->signals[i], NULL);
    uv_run(&w->loop, UV_RUN_DEFAULT);
    if (w->serve != NULL)
        serve_forget(w->serve);
    durable_free(&w->durable);
    uv_loop_close(&w->loop);
}

static int read_arguments(struct worker *w, int argc, char **argv)
{
    int i = 1;
    bool stdio = argc > i && str_eq(argv[i], "--stdio");
    if (argc == 3 && str_eq(argv[1], "--durable") && argv[2][0] != '-') {
        w->durable_dir = argv[2];
        return 0;
    }
    w->own_dir = argc > i && str_eq(argv[i], "--own-dir");
    i += stdio || w->own_dir;
    w->socket = stdio ? NULL : argc > i ? argv[i++] : getenv("CODESPACE_RUNNER_SOCKET");
    bool ok = argc == i && (stdio || (w->socket != NULL && w->socket[0] != '\0'));
    if (!ok || (w->socket != NULL && w->socket[0] == '-')) {
        fputs(usage, stderr);
        return -1;
    }
    return 0;
}

static enum log_level level(void)
{
    const char *name = getenv("CODESPACE_LOG");
    int known = name == NULL ? -1 : log_level_of(name);
    return known < 0 ? LOG_WARN : (enum log_level)known;
}

int main(int argc, char **argv)
{
    struct worker w = {0};
    int rc = harden_self();
    if (rc < 0) {
        complain("hardening was refused", rc, "");
        return EXIT_FAULT;
    }
    signal(SIGPIPE, SIG_IGN);
    mallopt(M_MMAP_THRESHOLD, MMAP_BYTES);
    mallopt(M_TRIM_THRESHOLD, KEEP_BYTES);
    log_setup("codespace-codex-runtime", level());
    if (argc == 2 && str_eq(argv[1], "--version"))
        return puts("codespace-codex-runtime " CODESPACE_VERSION) < 0;
    if (argc == 2 && str_eq(argv[1], "--help"))
        return fputs(usage, stdout) < 0;
    if (read_arguments(&w, argc, argv) < 0)
        return EXIT_USAGE;
    if (w.own_dir)
        use_own_dir(&w);
    int status = serve(&w);
    if (w.runner != NULL)
        shut_down(&w);
    if (w.own_dir)
        remove_own_dir(&w);
    return status;
}
