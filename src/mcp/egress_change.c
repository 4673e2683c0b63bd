/* mcp/egress_change: see egress_change.h. */
#include "mcp/egress_change.h"

#include "base/log.h"
#include "core/registry_egress.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* The last change of one workspace. */
struct egress_state {
    uint64_t number; /* of the change */
    bool changing;
    uint64_t changed_ms;
    const char *by;
    char why[256];
    struct strv others;
};

/* One on its way. */
struct change {
    struct list link;
    struct server *server;
    char *workspace_id;
    uint64_t number;
    egress_change_fn done; /* NULL: nobody waits */
    void *user;
};

static uint64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000u + (uint64_t)t.tv_nsec / 1000000u;
}

static struct egress_state *state_of(struct server *s, const char *workspace_id)
{
    struct egress_state *state = map_get(&s->egress_states, workspace_id);
    if (state == NULL) {
        state = mem_new(struct egress_state);
        map_set(&s->egress_states, workspace_id, state);
    }
    return state;
}

static void note(struct change *c, const struct run_rules *outcome, const struct err *failure)
{
    struct egress_state *state = state_of(c->server, c->workspace_id);
    if (state->number != c->number) /* a later one is on its way */
        return;
    state->changing = false;
    if (failure != NULL) {
        snprintf(state->why, sizeof(state->why), "%.250s", failure->message);
    } else {
        snprintf(state->why, sizeof(state->why), "%.250s", outcome->why);
        for (size_t i = 0; i < RUN_LIST_MAX && outcome->others[i] != NULL; i++)
            strv_add(&state->others, outcome->others[i]);
    }
    if (state->why[0] != '\0')
        log_warn("workspace '%s': the new rules of egress are not in force everywhere: %s",
                 c->workspace_id, state->why);
}

static void free_change(struct change *c)
{
    list_remove(&c->link);
    free(c->workspace_id);
    free(c);
}

static void on_rules(void *user, const struct run_rules *outcome, const struct err *failure)
{
    struct change *c = user;
    note(c, outcome, failure);
    egress_change_fn done = c->done;
    void *to = c->user;
    free_change(c);
    if (done != NULL)
        done(to, outcome, failure);
}

run_ticket egress_change_bring(struct server *s, const struct workspace *ws, const char *by,
                               egress_change_fn done, void *user)
{
    struct egress_state *state = state_of(s, ws->id);
    struct change *c = mem_new(struct change);
    state->number++;
    state->changing = true;
    state->changed_ms = now_ms();
    state->by = by;
    state->why[0] = '\0';
    strv_fini(&state->others);
    *c = (struct change){.server = s,
                         .workspace_id = mem_strdup(ws->id),
                         .number = state->number,
                         .done = done,
                         .user = user};
    list_append(&s->egress_changes, &c->link);
    return runner_rules(s->runner, ws, on_rules, c);
}

static void tell(const struct workspace *ws, const char *by)
{
    log_warn("workspace '%s': new rules of egress (allow: %zu, deny: %zu) with %s", ws->id,
             ws->egress.allow.len, ws->egress.deny.len, by);
}

int egress_change_take(struct workspace *ws, struct json_object *egress, const char *by,
                       struct err *e)
{
    if (registry_egress_replace(ws, egress, e) < 0)
        return -1;
    tell(ws, by);
    return 0;
}

/* ---- from the file ---- */

static bool same_policy(const struct egress_policy *a, const struct egress_policy *b)
{
    autobuf left = BUF_INIT, right = BUF_INIT;
    struct jsonw w;
    jsonw_init(&w, &left);
    egress_policy_write(a, &w);
    jsonw_init(&w, &right);
    egress_policy_write(b, &w);
    return left.len == right.len && memcmp(buf_bytes(&left), buf_bytes(&right), left.len) == 0;
}

/* The file's rules with the credentials of the start. False when they are the same. */
static bool take_policy(struct workspace *ws, struct workspace *fresh)
{
    struct egress_policy old = ws->egress;
    struct inject_rules said = fresh->egress.inject;
    const struct egress_policy a = {.inject = old.inject}, b = {.inject = said};
    if (!same_policy(&a, &b))
        log_warn("workspace '%s': egress.inject is taken from the configuration at the start only; "
                 "what was there then stays",
                 ws->id);
    fresh->egress.inject = old.inject;
    bool same = same_policy(&old, &fresh->egress);
    if (!same) {
        ws->egress = fresh->egress;
        fresh->egress = old;
    }
    fresh->egress.inject = said;
    return !same;
}

int egress_change_reload(struct server *s, struct registry *r, const char *path, struct err *e)
{
    struct registry fresh = {0};
    int n = 0;
    int rc = registry_load_file(&fresh, path, e);
    for (size_t i = 0; rc == 0 && i < fresh.n; i++) {
        struct workspace *ws = map_get(&r->by_id, fresh.items[i]->id);
        if (ws == NULL || ws->network != NETWORK_ENABLED ||
            fresh.items[i]->network != NETWORK_ENABLED || !take_policy(ws, fresh.items[i]))
            continue;
        tell(ws, EGRESS_BY_FILE);
        (void)egress_change_bring(s, ws, EGRESS_BY_FILE, NULL, NULL);
        n++;
    }
    registry_fini(&fresh);
    return rc < 0 ? -1 : n;
}

/* ---- what is known ---- */

bool egress_change_facts(const struct server *s, const char *workspace_id, struct facts_rules *ret)
{
    struct egress_state *state = map_get(&s->egress_states, workspace_id);
    if (state == NULL)
        return false;
    *ret = (struct facts_rules){.changing = state->changing,
                                .changed_ms = state->changed_ms,
                                .by = state->by,
                                .why = state->why,
                                .others = (const char *const *)strv_array(&state->others)};
    return true;
}

void egress_change_forget(struct server *s)
{
    size_t pos = 0;
    for (struct egress_state *state; (state = map_next(&s->egress_states, &pos, NULL)) != NULL;) {
        strv_fini(&state->others);
        free(state);
    }
    map_fini(&s->egress_states);
    while (!list_empty(&s->egress_changes))
        free_change(container_of(s->egress_changes.next, struct change, link));
}
