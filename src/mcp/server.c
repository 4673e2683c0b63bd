/* mcp/server: see server.h. */
#include "mcp/server.h"

#include "core/search.h"
#include "core/version_cache.h"

#include "base/log.h"
#include "mcp/aside.h"
#include "mcp/command_record.h"
#include "mcp/egress_change.h"
#include "mcp/provider.h"
#include "mcp/recorder.h"
#include "mcp/request.h"

#include <sys/random.h>

void server_init(struct server *s, uv_loop_t *loop, const struct registry *registry,
                 struct runner *runner, struct ledger *ledger, const struct facts *limits)
{
    *s = (struct server){.loop = loop,
                         .registry = registry,
                         .provider = &provider_product,
                         .runner = runner,
                         .ledger = ledger,
                         .facts = *limits,
                         .versions = version_cache_new()};
    ensure(ledger != NULL);
    s->recorder = recorder_new(loop, ledger);
    s->aside = aside_new();
    s->commands = command_records_new(s);
    list_init(&s->waiting);
    list_init(&s->sessions);
    list_init(&s->listeners);
    list_init(&s->tasks);
    list_init(&s->egress_changes);
    ensure(getrandom(s->state_key, sizeof(s->state_key), 0) == sizeof(s->state_key));
}

void server_fini(struct server *s)
{
    size_t pos = 0;
    ensure(list_empty(&s->waiting) && list_empty(&s->sessions) && list_empty(&s->listeners));
    for (struct lane *l; (l = map_next(&s->lanes, &pos, NULL)) != NULL;) {
        ensure(!l->busy);
        free(l);
    }
    map_fini(&s->lanes);
    command_records_free(s->commands);
    egress_change_forget(s);
    recorder_free(s->recorder);
    aside_free(s->aside);
    pos = 0;
    for (struct workspace *w; (w = map_next(&s->searchers, &pos, NULL)) != NULL;) {
        free(w->id);
        free(w->mounts);
        free(w);
    }
    map_fini(&s->searchers);
    map_fini(&s->slow_searches);
    version_cache_free(s->versions);
    buf_fini(&s->tools_list);
    buf_fini(&s->spare);
    json_parser_fini(&s->parser);
}

static void log_no_sandbox(const struct probe_result *r)
{
    log_warn("the command sandbox is off: %s%s%s; %s", probe_cause_what(r->cause),
             r->detail[0] != '\0' ? ": " : "", r->detail, probe_cause_remedy(r->cause));
}

static void probed(void *user, const struct probe_result *result)
{
    struct server *s = user;
    s->facts.probe = *result;
    s->facts.probed = true;
    if (!result->works)
        log_no_sandbox(result);
    while (!list_empty(&s->waiting))
        request_resume(container_of(s->waiting.next, struct request, wait));
}

void server_start_probe(struct server *s)
{
    runner_probe(s->runner, probed, s);
}

/* What is not replaced is borrowed from the registry. */
static struct workspace *make_searcher(const struct workspace *ws)
{
    struct workspace *w = mem_new(struct workspace);
    *w = *ws;
    w->id = mem_printf("%s/search", ws->id); /* no workspace can be called so */
    w->profile = PROFILE_READ_ONLY;
    w->network = NETWORK_RESTRICTED;
    w->sandbox = SANDBOX_REQUIRED;
    w->shared_tmp = false;
    w->debug = false;
    w->user_namespaces = false;
    w->egress = (struct egress_policy){0}; /* it may be replaced */
    if (w->limits.data == 0 || w->limits.data > SEARCH_DATA_MAX)
        w->limits.data = SEARCH_DATA_MAX;
    w->mounts = mem_zalloc(ws->n_mounts + 1, sizeof(*w->mounts));
    for (size_t i = 0; i < ws->n_mounts; i++) {
        w->mounts[i] = ws->mounts[i];
        w->mounts[i].writable = false;
    }
    return w;
}

const struct workspace *server_searcher(struct server *s, const struct workspace *ws)
{
    struct workspace *w = map_get(&s->searchers, ws->id);
    if (w == NULL) {
        w = make_searcher(ws);
        map_set(&s->searchers, ws->id, w);
    }
    return w;
}

struct lane *server_lane(struct server *s, const struct workspace *ws)
{
    struct lane *l = map_get(&s->lanes, ws->id);
    if (l == NULL) {
        l = mem_new(struct lane);
        lane_init(l);
        map_set(&s->lanes, ws->id, l);
    }
    return l;
}
