/* mcp/operator_egress: see operator_egress.h. */
#include "mcp/operator_egress.h"

#include "mcp/egress_change.h"

static struct workspace *find_rules(struct http_operator_call *x)
{
    struct workspace *ws = x->http->rules == NULL ? NULL : map_get(&x->http->rules->by_id, x->id);
    if (ws == NULL)
        err_set(&x->e, ERR_WORKSPACE_NOT_FOUND, "no workspace \"%s\" is registered", x->id);
    return ws;
}

/* Leaves the object open. */
static int tell_egress(struct http_operator_call *x, const struct workspace *ws)
{
    jsonw_object(&x->w);
    jsonw_kstr(&x->w, "workspace_id", ws->id);
    jsonw_kstr(&x->w, "network", network_name(ws->network));
    jsonw_key(&x->w, "egress");
    egress_policy_show(&ws->egress, &x->w);
    return 0;
}

int operator_egress_show(struct http_operator_call *x)
{
    const struct workspace *ws = find_rules(x);
    if (ws == NULL)
        return -1;
    tell_egress(x, ws);
    jsonw_object_end(&x->w);
    return 0;
}

int operator_egress_replace(struct http_operator_call *x)
{
    struct workspace *ws = find_rules(x);
    if (ws == NULL)
        return -1;
    if (!x->body.given)
        return err_set(&x->e, ERR_INVALID_ARGUMENT,
                       "the body is missing: the whole \"egress\" of the configuration");
    if (egress_change_take(x->http->server, ws, x->body.message, EGRESS_BY_TOKEN, &x->e) < 0) {
        x->e.code = ERR_INVALID_ARGUMENT;
        return -1;
    }
    x->workspace_id = mem_strdup(ws->id);
    tell_egress(x, ws);
    jsonw_kstr(&x->w, "counts_for", "commands that run, and those that start from now on");
    return 0;
}

static void put_ids(struct jsonw *w, const char *key, const char *const *ids)
{
    jsonw_key(w, key);
    if (ids == NULL)
        jsonw_null(w);
    else
        jsonw_array(w);
    for (size_t i = 0; ids != NULL && ids[i] != NULL; i++)
        jsonw_str(w, ids[i]);
    if (ids != NULL)
        jsonw_array_end(w);
}

/* Null where it is not known. */
static void on_brought(void *user, const struct run_rules *outcome, const struct err *failure)
{
    struct http_operator_call *x = user;
    const char *why = failure != NULL ? failure->message : outcome->why;
    x->ticket = 0;
    put_ids(&x->w, "running_with_these", failure != NULL ? NULL : outcome->changed);
    put_ids(&x->w, "running_with_others", failure != NULL ? NULL : outcome->others);
    if (why[0] != '\0')
        jsonw_kstr(&x->w, "reason", why);
    jsonw_object_end(&x->w);
    operator_call_answer(x);
}

void operator_egress_bring(struct http_operator_call *x)
{
    const struct workspace *ws = find_rules(x);
    ensure(ws != NULL);
    run_ticket ticket = egress_change_bring(x->http->server, ws, EGRESS_BY_TOKEN, on_brought, x);
    if (ticket != 0) /* 0: answered already, and the call may be gone */
        x->ticket = ticket;
}
