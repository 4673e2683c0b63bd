/* core/patch: see patch.h. The order of things: policy, parse, expectations, plan, transaction. */
#include "core/patch.h"

#include "base/mem.h"
#include "core/plan.h"
#include "core/policy.h"
#include "core/txn.h"
#include "core/v4a.h"

#include <stdio.h>
#include <string.h>

/* ---- names ---- */

const char *patch_status_name(enum patch_status s)
{
    static const char *const names[] = {
        [PATCH_APPLIED] = "applied",
        [PATCH_CHECKED] = "checked",
        [PATCH_REJECTED] = "rejected",
        [PATCH_FAILED_ROLLED_BACK] = "failed_rolled_back",
        [PATCH_FAILED_PARTIAL] = "failed_partial",
        [PATCH_UNKNOWN] = "unknown",
    };
    ensure((size_t)s < ARRAY_LEN(names));
    return names[s];
}

const char *patch_kind_name(enum patch_kind k)
{
    static const char *const names[] = {
        [PATCH_ADD] = "add",
        [PATCH_UPDATE] = "update",
        [PATCH_DELETE] = "delete",
        [PATCH_MOVE] = "move",
    };
    ensure((size_t)k < ARRAY_LEN(names));
    return names[k];
}

void patch_result_fini(struct patch_result *r)
{
    for (size_t i = 0; i < r->n_changes; i++)
        free(r->changes[i].path);
    free(r->changes);
    *r = (struct patch_result){0};
}

/* ---- from the plan to changes and operations ---- */

static enum patch_kind change_kind(const struct plan_file *f)
{
    if (!f->exists)
        return PATCH_DELETE;
    if (f->moved)
        return PATCH_MOVE;
    return f->existed ? PATCH_UPDATE : PATCH_ADD;
}

static void add_change(const struct plan_file *f, struct patch_result *r)
{
    void *items = r->changes;
    mem_grow(&items, &r->cap, r->n_changes + 1, sizeof(struct patch_change));
    r->changes = items;
    struct patch_change *c = &r->changes[r->n_changes++];
    *c = (struct patch_change){
        .path = mem_strdup(f->path), .kind = change_kind(f), .fuzzy = f->fuzzy};
    memcpy(c->before, f->before, sizeof(c->before));
    if (f->exists)
        version_of(buf_bytes(&f->content), f->content.len, c->after);
}

static struct txn_op make_op(const struct plan_file *f)
{
    struct txn_op op = {.kind = TXN_CREATE, .path = f->path};
    const struct plan_file *meta = f->origin != NULL ? f->origin : f;
    if (f->existed) {
        op.kind = f->exists ? TXN_REPLACE : TXN_REMOVE;
        op.was = &f->st;
    }
    if (f->exists) {
        op.bytes = buf_bytes(&f->content);
        op.len = f->content.len;
    }
    if (f->exists && meta->existed) {
        op.meta_path = meta->path;
        op.meta_was = &meta->st;
    }
    return op;
}

/* The changes of the plan, and an operation for each that changes bytes. */
struct work {
    struct txn_op *ops;
    size_t *change; /* index of the change of each operation */
    bool *standing;
    size_t n;
};

static void work_init(struct work *w, const struct plan *p, struct patch_result *r)
{
    *w = (struct work){mem_zalloc(p->n, sizeof(*w->ops)), mem_zalloc(p->n, sizeof(*w->change)),
                       mem_zalloc(p->n, sizeof(bool)), 0};
    for (size_t i = 0; i < p->n; i++) {
        const struct plan_file *f = p->files[i];
        if (!plan_changes(f))
            continue;
        add_change(f, r);
        const struct patch_change *c = &r->changes[r->n_changes - 1];
        if (f->existed && f->exists && !f->moved && strcmp(c->before, c->after) == 0)
            continue;
        w->change[w->n] = r->n_changes - 1;
        w->ops[w->n++] = make_op(f);
    }
}

static void work_fini(struct work *w)
{
    free(w->ops);
    free(w->change);
    free(w->standing);
}

/* ---- the result ---- */

/* What did not happen, or was put back, has the version it had. */
static void take_back(const struct work *w, struct patch_result *r)
{
    for (size_t i = 0; i < w->n; i++) {
        struct patch_change *c = &r->changes[w->change[i]];
        if (!w->standing[i])
            memcpy(c->after, c->before, sizeof(c->after));
    }
}

static int write_plan(const struct workspace *ws, struct work *w, struct patch_result *r,
                      struct err *e)
{
    struct err why = {0};
    enum txn_outcome out = txn_run(ws->root_fd, w->ops, w->n, NULL, w->standing, &why);
    bool conflict = why.code == ERR_VERSION_CONFLICT || why.code == ERR_ADD_FILE_EXISTS;
    if (out == TXN_APPLIED) {
        r->status = PATCH_APPLIED;
        return 0;
    }
    if (out == TXN_REFUSED && conflict)
        return err_set(e, why.code, "%s; nothing was changed", why.message);
    take_back(w, r);
    r->status = out == TXN_PARTIAL ? PATCH_FAILED_PARTIAL : PATCH_FAILED_ROLLED_BACK;
    snprintf(r->failure, sizeof(r->failure), "%.900s; %s", why.message,
             out == TXN_PARTIAL ? "the other files are as they were"
                                : "all files are as they were");
    return 0;
}

static int carry_out(const struct workspace *ws, const struct patch_request *q, struct plan *p,
                     struct patch_result *r, struct err *e)
{
    struct work w;
    int rc = 0;
    work_init(&w, p, r);
    if (q->check_only) {
        r->status = PATCH_CHECKED;
        for (size_t i = 0; i < r->n_changes; i++)
            r->changes[i].after[0] = '\0';
    } else {
        rc = write_plan(ws, &w, r, e);
    }
    work_fini(&w);
    return rc;
}

int patch_apply(const struct workspace *ws, const struct patch_request *request,
                struct patch_result *ret, struct err *e)
{
    struct patch_doc doc = {0};
    struct plan plan = {.ws = ws};
    struct patch_result result = {0};
    int rc = -1;
    if (policy_check(ws, POLICY_WRITE, e) == 0 &&
        v4a_parse(request->text, request->text_len, &doc, e) == 0 &&
        plan_expect(&plan, request->expect, request->n_expect, e) == 0 &&
        plan_sections(&plan, &doc, e) == 0)
        rc = carry_out(ws, request, &plan, &result, e);
    patch_doc_fini(&doc);
    plan_fini(&plan);
    if (rc == 0)
        *ret = result;
    else
        patch_result_fini(&result);
    return rc;
}
