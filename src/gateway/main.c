/* codespace-mcp: the gateway. Decides who may do what, speaks MCP with the client.
 *
 * Should: put the registry, the runner, the server and a transport together, run the loop, and end
 * promptly at the end of input, at SIGTERM, SIGINT or SIGHUP, leaving no process behind.
 * Must not: tighten itself for a command (that happens in the process that becomes the command), or
 * let anything but the transport near the client's descriptors: they are moved away first, standard
 * input then reads nothing and standard output is standard error, so no stray print can break the
 * protocol and no child can eat it.
 */
#include "base/log.h"
#include "base/str.h"
#include "gateway/approvals_cli.h"
#include "gateway/egress_cli.h"
#include "gateway/options.h"
#include "gateway/options_http.h"
#include "gateway/store.h"
#include "mcp/command_record.h"
#include "mcp/egress_change.h"
#include "mcp/http_server.h"
#include "mcp/server.h"
#include "mcp/stdio_peer.h"
#include "mcp/task.h"
#include "run/local.h"
#include "run/remote.h"
#include "run/workerproc.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Blocks from this size on are given back to the system as soon as they are freed. */
#define MMAP_BYTES (8 * 1024 * 1024)
/* Freed storage that is kept for the next large answer: two of the largest. Faulting it in again
 * each time was a third of a 1 MiB read. */
#define KEEP_BYTES (8 * 1024 * 1024)
/* Arenas of the allocator: the loop and the pool. More only hold memory. */
#define ARENAS 2

static const int stop_signals[] = {SIGTERM, SIGINT, SIGHUP};
/* The operator says that the rules of the network be read again. Not SIGHUP: that is how a terminal
 * says that it is gone. */
#define RELOAD_SIGNAL SIGUSR1

struct gateway {
    struct options options;
    struct registry registry;
    uv_loop_t loop;
    struct store store;
    struct runner *runner;
    struct server server;
    struct stdio_peer *transport; /* one of these two */
    struct http_server *http;
    bool ending;
    uv_signal_t signals[ARRAY_LEN(stop_signals)];
    uv_signal_t reload;
};

static int print_err(const struct err *e)
{
    fprintf(stderr, "codespace-mcp: %s\n", e->message);
    return err_info(e->code)->exit_status;
}

static int print_text(const struct buf *text)
{
    fwrite(buf_bytes(text), 1, text->len, stdout);
    return fflush(stdout) == 0 ? 0 : err_info(ERR_FILE_OPERATION_FAILED)->exit_status;
}

/* A program started without 0, 1 or 2 would get them for its own files. */
static void fill_standard_fds(void)
{
    int fd;
    do {
        fd = open("/dev/null", O_RDWR);
    } while (fd >= 0 && fd <= 2);
    if (fd > 2)
        close(fd);
}

/* Move the client's descriptors away from 0 and 1. */
static int take_client_fds(int *ret_in, int *ret_out, struct err *e)
{
    autofd int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    autofd int in = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
    autofd int out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    if (null < 0 || in < 0 || out < 0 || dup2(null, STDIN_FILENO) < 0 ||
        dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
        return err_sys(e, ERR_FILE_OPERATION_FAILED, errno, "standard input and output");
    *ret_in = steal_fd(&in);
    *ret_out = steal_fd(&out);
    return 0;
}

static void make_local_runner(struct gateway *g)
{
    autofree char *helper = local_find_helper();
    const char *spill_dir = getenv("CODESPACE_SPILL_DIR");
    struct local_options options = {
        .helper_path = helper,
        .timeout_ms = g->options.timeout_ms,
        .max_processes = g->options.max_processes,
        .max_workspace_processes = g->options.max_workspace_processes,
        .spill_dir = spill_dir,
        .spill_off = str_eq(spill_dir, "none"),
    };
    g->runner = local_runner_new(&g->loop, &options);
}

/* A worker that was named is started, else one that runs is used, else the one beside us is
 * started. */
static int make_runner(struct gateway *g, struct err *e)
{
    const struct options *o = &g->options;
    autofree char *found =
        o->runtime_bin == NULL && o->runner_socket != NULL ? NULL : workerproc_find();
    const struct remote_options options = {
        .worker_bin = o->runtime_bin != NULL ? o->runtime_bin : found,
        .socket = o->runner_socket,
        .dir = o->runner_dir,
        .durable_dir = o->runner_durable,
        .timeout_ms = o->timeout_ms,
        .max_processes = o->max_processes,
        .max_workspace_processes = o->max_workspace_processes,
    };
    if (o->runner == OPTIONS_RUNNER_IN_PROCESS && o->runner_durable != NULL)
        err_set(e, ERR_CONFIG_INVALID,
                "--runner-durable needs --runner uds: processes of this program end with it");
    else if (o->runner == OPTIONS_RUNNER_IN_PROCESS)
        make_local_runner(g);
    else
        g->runner = remote_runner_new(&g->loop, &options, e);
    if (g->runner == NULL)
        uv_run(&g->loop, UV_RUN_DEFAULT); /* what was begun of it closes itself */
    return g->runner == NULL ? -1 : 0;
}

/* May commands of ours, or of the last gateway, live on without it? */
static bool commands_outlive(const struct options *o)
{
    bool other = o->runner_socket != NULL && o->runtime_bin == NULL;
    return o->runner == OPTIONS_RUNNER_UDS && (o->runner_durable != NULL || other);
}

static struct facts limits_of(const struct options *o)
{
    return (struct facts){
        .timeout_ms = o->timeout_ms != 0 ? o->timeout_ms : RUN_TIMEOUT_DEFAULT_MS,
        .timeout_max_ms = RUN_TIMEOUT_MAX_MS,
        .max_processes = o->max_processes != 0 ? o->max_processes : RUN_PROCESSES_DEFAULT,
        .output_ring = RUN_RING_BYTES,
    };
}

/* ---- serve ---- */

static void on_ended(void *user)
{
    struct gateway *g = user;
    uv_stop(&g->loop);
}

/* Over HTTP the first signal lets answers that are in the making go out. */
static void on_signal(uv_signal_t *handle, int number)
{
    struct gateway *g = handle->data;
    log_info("signal %d: ending", number);
    if (g->http != NULL && !g->ending)
        http_server_drain(g->http, on_ended, g);
    else
        uv_stop(handle->loop);
    g->ending = true;
}

static void on_reload(uv_signal_t *handle, int number)
{
    struct gateway *g = handle->data;
    struct err e;
    if (g->options.config == NULL) {
        log_warn("signal %d: there is no configuration file (--config) to read again", number);
        return;
    }
    int n = egress_change_reload(&g->server, &g->registry, g->options.config, &e);
    if (n < 0)
        log_error("signal %d: nothing was changed: %s", number, e.message);
    else
        log_warn("signal %d: %s was read again; egress rules of %d workspaces are others now. "
                 "Nothing else of it was taken: that needs a restart",
                 number, g->options.config, n);
}

static void watch_signals(struct gateway *g)
{
    uv_signal_init(&g->loop, &g->reload);
    g->reload.data = g;
    uv_signal_start(&g->reload, on_reload, RELOAD_SIGNAL);
    for (size_t i = 0; i < ARRAY_LEN(stop_signals); i++) {
        uv_signal_init(&g->loop, &g->signals[i]);
        g->signals[i].data = g;
        uv_signal_start(&g->signals[i], on_signal, stop_signals[i]);
    }
}

static void unwatch_signals(struct gateway *g)
{
    uv_close((uv_handle_t *)&g->reload, NULL);
    for (size_t i = 0; i < ARRAY_LEN(stop_signals); i++)
        uv_close((uv_handle_t *)&g->signals[i], NULL);
}

/* Calls are given up first, so the runner answers nobody; then its processes end; then the loop
 * runs until a patch that is being written has come to its end and every handle is closed. */
static void shut_down(struct gateway *g)
{
    stdio_peer_free(g->transport);
    http_server_free(g->http);
    task_free_all(&g->server);
    unwatch_signals(g);
    runner_free(g->runner);
    uv_run(&g->loop, UV_RUN_DEFAULT);
    server_fini(&g->server);
}

static int start_stdio(struct gateway *g, struct err *e)
{
    int in = -1;
    int out = -1;
    if (take_client_fds(&in, &out, e) < 0)
        return -1;
    g->transport = stdio_peer_new(&g->server, in, out, on_ended, g, e);
    return g->transport != NULL ? 0 : -1;
}

static int start_http(struct gateway *g, struct err *e)
{
    const struct options_http *o = &g->options.http;
    if (options_token(&g->options, e) < 0)
        return -1;
    const struct http_options options = {.host = o->host,
                                         .port = (uint16_t)o->port,
                                         .token = o->token,
                                         .operator_token = o->operator_token,
                                         .rules = &g->registry,
                                         .oauth = options_has_oauth(&g->options) ? &o->oauth : NULL,
                                         .hosts = &o->allow_hosts,
                                         .origins = &o->allow_origins,
                                         .unix_path = o->unix_socket,
                                         .activated = o->activated};
    g->http = http_server_new(&g->server, &options, e);
    return g->http != NULL ? 0 : -1;
}

/* Who reads a token is who it is for; who writes the keys makes tokens; who reaches the socket is a
 * client, or the worker's gateway. */
static int keep_from_commands(const struct options *o, struct registry *r, struct err *e)
{
    const struct {
        const char *what, *path;
    } all[] = {{"--token-file", o->http.token_file},
               {"--operator-token-file", o->http.operator_token_file},
               {"--oauth-keys", o->http.oauth.keys_file},
               {"--unix-socket", o->http.unix_socket},
               {"--runner-socket", o->runner_socket},
               {"--runner-dir", o->runner_dir},
               {"--runner-durable", o->runner_durable}};
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        if (store_keep_from_commands(r, all[i].what, all[i].path, e) < 0)
            return -1;
    }
    return 0;
}

/* What an earlier gateway left running in the worker obeys what this one was told. */
static void bring_rules(struct gateway *g)
{
    for (size_t i = 0; i < g->registry.n; i++) {
        if (g->registry.items[i]->network == NETWORK_ENABLED)
            (void)egress_change_bring(&g->server, g->registry.items[i], EGRESS_BY_START, NULL,
                                      NULL);
    }
}

static int serve(struct gateway *g)
{
    struct err e;
    struct facts limits = limits_of(&g->options);
    if (options_registry(&g->options, &g->registry, &e) < 0)
        return print_err(&e);
    if (g->registry.n == 0)
        log_warn("no workspace is registered; use --workspace or --config");
    bool outlive = commands_outlive(&g->options);
    if (keep_from_commands(&g->options, &g->registry, &e) < 0 ||
        store_open(&g->store, g->options.ledger, outlive, &g->registry, &e) < 0 ||
        make_runner(g, &e) < 0)
        return print_err(&e);
    server_init(&g->server, &g->loop, &g->registry, g->runner, g->store.ledger, &limits);
    g->server.journals = g->store.journals;
    g->server.commands_outlive = outlive;
    watch_signals(g);
    int status = 0;
    if (outlive && command_records_adopt(g->server.commands, &e) < 0)
        status = print_err(&e);
    else if ((g->options.http.on ? start_http(g, &e) : start_stdio(g, &e)) < 0) {
        status = print_err(&e);
    } else {
        if (outlive)
            bring_rules(g);
        server_start_probe(&g->server);
        uv_run(&g->loop, UV_RUN_DEFAULT);
    }
    shut_down(g);
    return status;
}

/* ---- doctor ---- */

static void on_probed(void *user, const struct probe_result *result)
{
    struct facts *facts = user;
    facts->probe = *result;
    facts->probed = true;
}

static int doctor(struct gateway *g)
{
    autobuf report = BUF_INIT;
    struct facts facts = limits_of(&g->options);
    struct err e;
    if (make_runner(g, &e) < 0)
        return print_err(&e);
    runner_probe(g->runner, on_probed, &facts);
    while (!facts.probed && uv_run(&g->loop, UV_RUN_ONCE) != 0)
        continue;
    runner_free(g->runner);
    uv_run(&g->loop, UV_RUN_DEFAULT);
    facts_report(&facts, &report);
    bool ledger = store_report(g->options.ledger, &report);
    int status = print_text(&report);
    if (status != 0)
        return status;
    return facts.probed && facts.probe.works && ledger ? 0 : 1;
}

static int act(struct gateway *g)
{
    autobuf text = BUF_INIT;
    switch (g->options.action) {
    case OPTIONS_HELP:
        options_help(&text);
        return print_text(&text);
    case OPTIONS_VERSION:
        buf_puts(&text, "codespace-mcp " CODESPACE_VERSION "\n");
        return print_text(&text);
    case OPTIONS_DOCTOR:
        return doctor(g);
    case OPTIONS_SERVE:
        break;
    }
    return serve(g);
}

static int run(struct gateway *g, int argc, char *const *argv)
{
    struct err e;
    if (argc > 1 && str_eq(argv[1], "approvals"))
        return approvals_cli(argc - 1, argv + 1);
    if (argc > 1 && str_eq(argv[1], "egress"))
        return egress_cli(argc - 1, argv + 1);
    if (options_read(&g->options, argc, argv, &e) < 0)
        return print_err(&e);
    log_setup("codespace-mcp", g->options.log_level);
    return act(g);
}

int main(int argc, char **argv)
{
    struct gateway g = {0};
    fill_standard_fds();
    signal(SIGPIPE, SIG_IGN);
    mallopt(M_MMAP_THRESHOLD, MMAP_BYTES);
    mallopt(M_TRIM_THRESHOLD, KEEP_BYTES);
    mallopt(M_ARENA_MAX, ARENAS);
    log_setup("codespace-mcp", LOG_WARN);
    ensure(uv_loop_init(&g.loop) == 0);
    int status = run(&g, argc, argv);
    uv_loop_close(&g.loop);
    store_close(&g.store);
    registry_fini(&g.registry);
    options_fini(&g.options);
    return status;
}
