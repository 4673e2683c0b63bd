/* codespace-conformance-server: the fixtures of the official suite behind the product's protocol
 * core and HTTP transport. Listens on a free port of 127.0.0.1 and says which on standard error.
 *
 * Must not: be installed.
 */
#include "base/log.h"
#include "core/ledger.h"
#include "fixtures.h"
#include "mcp/http_server.h"
#include "mcp/task.h"

#include <signal.h>
#include <stdio.h>

struct program {
    uv_loop_t loop;
    struct registry registry;
    struct ledger *ledger;
    struct server server;
    struct http_server *http;
    uv_signal_t term;
};

static void on_done(void *user)
{
    struct program *p = user;
    uv_stop(&p->loop);
}

static void on_term(uv_signal_t *handle, int number)
{
    struct program *p = handle->data;
    http_server_drain(p->http, on_done, p);
}

static int serve(struct program *p)
{
    struct err e;
    const struct facts facts = {.probed = true};
    const struct http_options options = {.port = 0};
    if (ledger_open(&(struct ledger_options){.role = LEDGER_GATEWAY}, &p->ledger, &e) < 0) {
        fprintf(stderr, "%s\n", e.message);
        return 1;
    }
    server_init(&p->server, &p->loop, &p->registry, NULL, p->ledger, &facts);
    p->server.provider = &fixtures;
    p->http = http_server_new(&p->server, &options, &e);
    if (p->http == NULL) {
        fprintf(stderr, "%s\n", e.message);
        return 1;
    }
    uv_signal_init(&p->loop, &p->term);
    p->term.data = p;
    uv_signal_start(&p->term, on_term, SIGTERM);
    uv_run(&p->loop, UV_RUN_DEFAULT);
    uv_close((uv_handle_t *)&p->term, NULL);
    http_server_free(p->http);
    task_free_all(&p->server);
    uv_run(&p->loop, UV_RUN_DEFAULT);
    server_fini(&p->server);
    ledger_free(p->ledger);
    return uv_loop_close(&p->loop) == 0 ? 0 : 1;
}

int main(void)
{
    struct program p = {0};
    signal(SIGPIPE, SIG_IGN);
    log_setup("conformance", LOG_INFO);
    ensure(uv_loop_init(&p.loop) == 0);
    return serve(&p);
}
