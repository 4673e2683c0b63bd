/* mcp/product_complete: what completion/complete proposes. See product.h.
 *
 * Ids come from the registry. Paths come from one directory: the value is a directory and the
 * beginning of a name, and what lies there and begins so is proposed, directories with a slash at
 * the end so that a client can go on. The walk is that of the tool find, under the same policy.
 *
 * Must not: propose more than COMPLETE_MAX values, or fail where it can answer with none.
 */
#include "core/files.h"
#include "mcp/product.h"
#include "wire/json.h"

#include <string.h>

/* The protocol's own bound on one answer. */
#define COMPLETE_MAX 100u

struct complete {
    const struct workspace *ws;
    char *glob;
    unsigned depth;
    struct find_page page;
    int status;
    struct err e;
};

static void fini(struct request *rq)
{
    struct complete *x = rq->state;
    free(x->glob);
    find_page_fini(&x->page);
}

static void answer(struct request *rq, const struct strv *values, uint64_t total)
{
    struct jsonw *w = request_answer(rq);
    jsonw_key(w, "completion");
    jsonw_object(w);
    jsonw_key(w, "values");
    jsonw_array(w);
    for (size_t i = 0; i < values->len && i < COMPLETE_MAX; i++)
        jsonw_str(w, values->items[i]);
    jsonw_array_end(w);
    jsonw_kuint(w, "total", total);
    jsonw_kbool(w, "hasMore", total > COMPLETE_MAX);
    jsonw_object_end(w);
    request_finish(rq);
}

static void complete_workspace(struct request *rq, const char *value)
{
    const struct registry *r = rq->server->registry;
    autostrv ids = {0};
    for (size_t i = 0; i < r->n; i++) {
        if (str_starts(r->items[i]->id, value))
            strv_add(&ids, r->items[i]->id);
    }
    answer(rq, &ids, ids.len);
}

/* ---- paths ---- */

/* `value` as a pattern that matches what begins with it. */
static char *glob_of(const char *value)
{
    autobuf out = BUF_INIT;
    for (const char *s = value; *s != '\0'; s++) {
        if (strchr("*?[]{},\\!^", *s) != NULL)
            buf_putc(&out, '\\');
        buf_putc(&out, *s);
    }
    buf_putc(&out, '*');
    return buf_steal(&out);
}

static unsigned depth_of(const char *value)
{
    unsigned depth = 1;
    for (; *value != '\0'; value++)
        depth += *value == '/';
    return depth;
}

static void work(struct request *rq)
{
    struct complete *x = rq->state;
    const struct find_request q = {.glob = x->glob,
                                   .limit = COMPLETE_MAX,
                                   .cancel = &rq->stop,
                                   .kinds = FIND_KIND(FIND_FILE) | FIND_KIND(FIND_DIRECTORY),
                                   .max_depth = x->depth};
    x->status = files_find_request(x->ws, &q, &x->page, &x->e);
}

static void after(struct request *rq)
{
    struct complete *x = rq->state;
    static const struct strv none;
    if (x->status < 0)
        answer(rq, &none, 0);
    else
        answer(rq, &x->page.paths, x->page.total);
}

static void complete_path(struct request *rq, const char *value)
{
    struct complete *x = rq->state;
    static const struct strv none;
    struct json_object *context = json_get(request_params(rq), "context");
    const char *id = json_str(json_get(json_get(context, "arguments"), "workspace_id"));
    const struct registry *r = rq->server->registry;
    if (id != NULL)
        x->ws = registry_get(r, id, &x->e);
    else if (r->n == 1) /* there is no other */
        x->ws = r->items[0];
    if (x->ws == NULL || strlen(value) >= PATH_LEN_MAX / 2) {
        answer(rq, &none, 0);
        return;
    }
    x->glob = glob_of(value);
    x->depth = depth_of(value);
    request_pool(rq, PATH_LEN_MAX, work, after);
}

static void run(struct request *rq)
{
    struct json_object *argument = json_get(request_params(rq), "argument");
    static const struct strv none;
    const char *name = json_str(json_get(argument, "name"));
    const char *value = json_str(json_get(argument, "value"));
    if (value == NULL)
        value = "";
    if (str_eq(name, "workspace_id"))
        complete_workspace(rq, value);
    else if (str_eq(name, "path"))
        complete_path(rq, value);
    else
        answer(rq, &none, 0);
}

const struct tool product_completer = {.name = "completion/complete",
                                       .hints = TOOL_READS | TOOL_CONTENT,
                                       .state_size = sizeof(struct complete),
                                       .run = run,
                                       .fini = fini};
