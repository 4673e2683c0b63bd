/* mcp/egress_change: see egress_change.h. */
#include "mcp/egress_change.h"

#include "base/log.h"
#include "core/operations_store.h"
#include "core/registry_egress.h"
#include "mcp/recorder.h"

#include <inttypes.h>
#include <json-c/json.h>
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
    struct strv taken; /* keys that were taken and not yet brought */
};

/* One on its way. */
struct change {
    struct list link;
    struct server *server;
    char *workspace_id;
    uint64_t number;
    const char *by;
    struct strv keys;      /* that are others now; none: not a change, nothing to record */
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

/* ---- the ledger ---- */

struct change_record {
    struct record record;
    char *workspace_id;
    char *rules; /* JSON */
    char *why;
};

static bool write_change(struct record *base, struct ledger *l)
{
    struct change_record *cr = container_of(base, struct change_record, record);
    struct err e = {0};
    autorecord made = {0};
    const struct op_request q = {
        .kind = OP_EGRESS, .workspace_id = cr->workspace_id, .fingerprint = "", .rules = cr->rules};
    const struct op_outcome applied = {.status = OP_APPLIED, .reason = cr->why};
    bool ok = l == NULL || opstore_record(l, &q, &applied, LEDGER_DURABLE, &made, &e) >= 0;
    if (!ok)
        log_error("workspace '%s': new rules of egress are not in the ledger: %s", cr->workspace_id,
                  e.message);
    free(cr->workspace_id);
    free(cr->rules);
    free(cr->why);
    free(cr);
    return ok;
}

static void put_count(struct jsonw *w, const char *key, bool known, const char *const *ids)
{
    uint64_t n = 0;
    jsonw_key(w, key);
    while (known && ids[n] != NULL)
        n++;
    if (known)
        jsonw_uint(w, n);
    else
        jsonw_null(w);
}

/* `outcome` NULL: who of what runs has them is not known. */
static char *describe(const struct change *c, const struct run_rules *outcome)
{
    struct buf text = BUF_INIT;
    struct jsonw w;
    jsonw_init(&w, &text);
    jsonw_object(&w);
    jsonw_kstr(&w, "by", c->by);
    jsonw_key(&w, "changed");
    jsonw_array(&w);
    for (size_t i = 0; i < c->keys.len; i++)
        jsonw_str(&w, c->keys.items[i]);
    jsonw_array_end(&w);
    put_count(&w, "running_with_these", outcome != NULL, outcome ? outcome->changed : NULL);
    put_count(&w, "running_with_others", outcome != NULL, outcome ? outcome->others : NULL);
    jsonw_object_end(&w);
    return buf_steal(&text);
}

/* Written soon, when the recorder is kicked. */
static void record(const struct change *c, const struct run_rules *outcome, const char *why)
{
    if (c->keys.len == 0)
        return;
    struct change_record *cr = mem_new(struct change_record);
    *cr = (struct change_record){.record.write = write_change,
                                 .workspace_id = mem_strdup(c->workspace_id),
                                 .rules = describe(c, outcome),
                                 .why = mem_strdup(why)};
    recorder_push_quietly(c->server->recorder, &cr->record);
}

/* ---- on its way ---- */

static void free_change(struct change *c)
{
    list_remove(&c->link);
    strv_fini(&c->keys);
    free(c->workspace_id);
    free(c);
}

static void on_rules(void *user, const struct run_rules *outcome, const struct err *failure)
{
    struct change *c = user;
    note(c, outcome, failure);
    record(c, outcome, failure != NULL ? failure->message : outcome->why);
    recorder_kick(c->server->recorder);
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
                         .by = by,
                         .keys = state->taken,
                         .done = done,
                         .user = user};
    state->taken = (struct strv){0};
    list_append(&s->egress_changes, &c->link);
    return runner_rules(s->runner, ws, on_rules, c);
}

static void tell(const struct workspace *ws, const char *by)
{
    log_warn("workspace '%s': new rules of egress (allow: %zu, deny: %zu) with %s", ws->id,
             ws->egress.allow.len, ws->egress.deny.len, by);
}

/* ---- what is another ---- */

static struct json_object *as_json(const struct egress_policy *p)
{
    autobuf text = BUF_INIT;
    struct jsonw w;
    jsonw_init(&w, &text);
    egress_policy_write(p, &w);
    return json_tokener_parse(buf_cstr(&text));
}

/* The keys of `a` that `b` has not, or otherwise. */
static void add_other_keys(struct json_object *a, struct json_object *b, struct strv *keys)
{
    json_object_object_foreach(a, key, mine)
    {
        struct json_object *theirs = NULL;
        json_object_object_get_ex(b, key, &theirs);
        if (!json_object_equal(mine, theirs) && !strv_has(keys, key))
            strv_add(keys, key);
    }
}

/* Which keys of the configuration two policies differ in, added to `keys`. */
static void compare(const struct egress_policy *a, const struct egress_policy *b, struct strv *keys)
{
    struct json_object *left = as_json(a), *right = as_json(b);
    add_other_keys(left, right, keys);
    add_other_keys(right, left, keys);
    json_object_put(left);
    json_object_put(right);
}

int egress_change_take(struct server *s, struct workspace *ws, struct json_object *egress,
                       const char *by, struct err *e)
{
    struct egress_policy old;
    egress_policy_dup(&ws->egress, &old);
    int r = registry_egress_replace(ws, egress, e);
    if (r == 0) {
        compare(&old, &ws->egress, &state_of(s, ws->id)->taken);
        tell(ws, by);
    }
    egress_policy_fini(&old);
    return r;
}

/* ---- from the file ---- */

/* The file's rules with the credentials of the start. False when they are the same; else the keys
 * that are others are added to `keys`. */
static bool take_policy(struct workspace *ws, struct workspace *fresh, struct strv *keys)
{
    struct egress_policy old = ws->egress;
    struct inject_rules said = fresh->egress.inject;
    const struct egress_policy a = {.inject = old.inject}, b = {.inject = said};
    autostrv credentials = {0};
    compare(&a, &b, &credentials);
    if (credentials.len > 0)
        log_warn("workspace '%s': egress.inject is taken from the configuration at the start only; "
                 "what was there then stays",
                 ws->id);
    fresh->egress.inject = old.inject;
    compare(&old, &fresh->egress, keys);
    bool same = keys->len == 0;
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
            fresh.items[i]->network != NETWORK_ENABLED)
            continue;
        autostrv keys = {0};
        if (!take_policy(ws, fresh.items[i], &keys))
            continue;
        strv_fini(&state_of(s, ws->id)->taken);
        state_of(s, ws->id)->taken = keys;
        keys = (struct strv){0};
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
        strv_fini(&state->taken);
        free(state);
    }
    map_fini(&s->egress_states);
    while (!list_empty(&s->egress_changes)) {
        struct change *c = container_of(s->egress_changes.next, struct change, link);
        record(c, NULL, "the server ended before it was known which commands have these rules");
        free_change(c);
    }
}
