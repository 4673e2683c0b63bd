/* mcp/operator_inbox: see operator_inbox.h. */
#include "mcp/operator_inbox.h"

#include "core/works.h"
#include "mcp/works_json.h"

static void put_work(struct http_operator_call *x, const struct work *work)
{
    jsonw_object(&x->w);
    work_write_members(&x->w, work);
    jsonw_object_end(&x->w);
}

static void put_intent(struct http_operator_call *x, const struct intent *i)
{
    jsonw_object(&x->w);
    intent_write_members(&x->w, i);
    jsonw_object_end(&x->w);
}

int operator_inbox_works(struct http_operator_call *x)
{
    struct work *items = NULL;
    size_t n = 0;
    uint32_t limit = x->query.limit != 0 ? (uint32_t)x->query.limit : WORKS_PAGE_DEFAULT;
    const struct work_filter filter = {operator_call_workspace(x), (int64_t)x->query.before, limit};
    if (works_list(x->ledger, &filter, &items, &n, &x->e) < 0)
        return -1;
    jsonw_array(&x->w);
    for (size_t i = 0; i < n; i++)
        put_work(x, &items[i]);
    jsonw_array_end(&x->w);
    if (n == limit)
        operator_call_link(x, "/inbox/works", "before", (uint64_t)items[n - 1].seq, limit);
    works_free(items, n);
    return 0;
}

int operator_inbox_work(struct http_operator_call *x)
{
    autowork work = {0};
    if (works_get(x->ledger, x->id, &work, &x->e) < 0)
        return -1;
    put_work(x, &work);
    return 0;
}

int operator_inbox_intents(struct http_operator_call *x)
{
    struct intent *items = NULL;
    size_t n = 0;
    uint32_t limit = x->query.limit != 0 ? (uint32_t)x->query.limit : INTENTS_PAGE_DEFAULT;
    uint32_t offset = (uint32_t)x->query.offset;
    if (intents_list(x->ledger, x->id, offset, limit, &items, &n, &x->e) < 0)
        return -1;
    jsonw_array(&x->w);
    for (size_t i = 0; i < n; i++)
        put_intent(x, &items[i]);
    jsonw_array_end(&x->w);
    autofree char *path = mem_printf("/inbox/works/%s/intents", x->id);
    if (n == limit)
        operator_call_link(x, path, "offset", (uint64_t)offset + n, limit);
    intents_free(items, n);
    return 0;
}

/* ---- instructions ---- */

static int tell_intent(struct http_operator_call *x, int status, struct intent *i)
{
    if (status == 0)
        put_intent(x, i);
    intent_fini(i);
    return status;
}

int operator_inbox_add(struct http_operator_call *x)
{
    struct intent i = {0};
    const struct operator_body *b = &x->body;
    return tell_intent(x,
                       intents_add(x->ledger, x->id, (enum intent_kind)b->kind,
                                   (enum intent_delivery)b->delivery, b->text, &i, &x->e),
                       &i);
}

int operator_inbox_edit(struct http_operator_call *x)
{
    struct intent i = {0};
    const struct operator_body *b = &x->body;
    int delivery = json_get(x->body.message, "delivery") != NULL ? b->delivery : -1;
    return tell_intent(x, intents_edit(x->ledger, x->id, b->revision, b->text, delivery, &i, &x->e),
                       &i);
}

int operator_inbox_queue(struct http_operator_call *x)
{
    struct intent i = {0};
    return tell_intent(x, intents_queue(x->ledger, x->id, x->body.revision, &i, &x->e), &i);
}

int operator_inbox_cancel(struct http_operator_call *x)
{
    struct intent i = {0};
    return tell_intent(x, intents_cancel(x->ledger, x->id, &i, &x->e), &i);
}

int operator_inbox_reorder(struct http_operator_call *x)
{
    size_t n = json_object_array_length(x->body.intent_ids);
    autofree const char **ids = mem_zalloc(n + 1, sizeof(*ids));
    for (size_t i = 0; i < n; i++)
        ids[i] = json_str(json_object_array_get_idx(x->body.intent_ids, i));
    if (intents_reorder(x->ledger, x->id, ids, n, &x->e) < 0)
        return -1;
    return operator_inbox_intents(x);
}

/* ---- stop: the processes of the workspace, then the notice ---- */

int operator_inbox_stop(struct http_operator_call *x)
{
    autowork work = {0};
    if (works_get(x->ledger, x->id, &work, &x->e) < 0)
        return -1;
    x->workspace_id = mem_strdup(work.workspace_id);
    return 0;
}

static int leave_notice(struct http_operator_call *x)
{
    autointent i = {0};
    if (intents_stop(x->ledger, x->id, x->body.reason, &i, &x->e) < 0)
        return -1;
    jsonw_object(&x->w);
    jsonw_kbool(&x->w, "ok", true);
    jsonw_kuint(&x->w, "killed", x->killed);
    jsonw_key(&x->w, "intent");
    put_intent(x, &i);
    jsonw_object_end(&x->w);
    return 0;
}

static void ignore_done(void *user, const struct err *failure)
{
}

static void on_list(void *user, const struct run_listing *list, const struct err *failure)
{
    struct http_operator_call *x = user;
    x->ticket = 0;
    if (failure != NULL) {
        x->status = -1;
        x->e = *failure;
        operator_call_answer(x);
        return;
    }
    struct runner *runner = x->http->server->runner;
    autostrv ids = {0};
    for (size_t i = 0; i < list->n; i++)
        strv_add(&ids, list->items[i].process_id);
    bool more = list->more;
    x->after = list->n > 0 ? list->items[list->n - 1].serial : x->after;
    for (size_t i = 0; i < ids.len; i++)
        runner_terminate(runner, ids.items[i], ignore_done, NULL);
    x->killed += (unsigned)ids.len;
    if (more)
        operator_inbox_stop_processes(x);
    else
        operator_call_step(x, leave_notice);
}

void operator_inbox_stop_processes(struct http_operator_call *x)
{
    const struct run_list q = {
        .workspace_id = x->workspace_id, .after = x->after, .live_only = true};
    run_ticket ticket = runner_list(x->http->server->runner, &q, on_list, x);
    if (ticket != 0) /* 0: answered already, and the call may be gone */
        x->ticket = ticket;
}
