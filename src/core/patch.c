/* core/patch: see patch.h. The order of things: policy, parse, expectations, plan, transaction. */
#include "core/patch.h"

#include "base/mem.h"
#include "core/diffout.h"
#include "core/linediff.h"
#include "core/plan.h"
#include "core/policy.h"
#include "core/spread.h"
#include "core/txn.h"
#include "core/udiff.h"
#include "core/v4a.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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

void patch_linger_end(int *linger, size_t n)
{
    for (size_t i = 0; linger != NULL && i < n; i++) {
        if (linger[i] >= 0)
            close(linger[i]);
    }
    free(linger);
}

void patch_result_fini(struct patch_result *r)
{
    for (size_t i = 0; i < r->n_changes; i++)
        free(r->changes[i].path);
    free(r->changes);
    buf_fini(&r->diff);
    buf_fini(&r->inverse);
    patch_linger_end(r->linger, r->n_linger);
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
    *c = (struct patch_change){.path = mem_strdup(f->path),
                               .kind = change_kind(f),
                               .fuzzy = f->fuzzy,
                               .mode_changed = plan_changes_mode(f),
                               .moved_away = !f->exists && f->moved_away};
    memcpy(c->before, f->before, sizeof(c->before));
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
        mode_t old = meta->st.st_mode & 07777;
        op.meta_path = meta->path;
        op.meta_was = &meta->st;
        op.plain = meta->plain;
        op.mode_set = plan_mode(f, &meta->st) & ~old;
        op.mode_clear = old & ~plan_mode(f, &meta->st);
    } else if (f->exists && f->mode == PATCH_MODE_EXECUTABLE) {
        op.mode_set = 0111;
    }
    return op;
}

/* The changes of the plan, and an operation for each that changes bytes. */
struct work {
    struct txn_op *ops;
    size_t *change; /* index of the change of each operation */
    bool *standing;
    size_t n;
    const struct plan_file **of; /* the file of each change */
    struct patch_result *r;
};

static int hash_one(void *user, size_t i)
{
    struct work *w = user;
    const struct plan_file *f = w->of[i];
    if (f->exists)
        version_of(buf_bytes(&f->content), f->content.len, w->r->changes[i].after);
    return 0;
}

static bool changes_nothing(const struct plan_file *f, const struct patch_change *c)
{
    return f->existed && f->exists && !f->moved && !c->mode_changed &&
           strcmp(c->before, c->after) == 0;
}

static void work_init(struct work *w, const struct plan *p, struct patch_result *r)
{
    size_t failed = 0;
    *w = (struct work){mem_zalloc(p->n, sizeof(*w->ops)),
                       mem_zalloc(p->n, sizeof(*w->change)),
                       mem_zalloc(p->n, sizeof(bool)),
                       0,
                       mem_zalloc(p->n, sizeof(const struct plan_file *)),
                       r};
    for (size_t i = 0; i < p->n; i++) {
        if (!plan_changes(p->files[i]))
            continue;
        w->of[r->n_changes] = p->files[i];
        add_change(p->files[i], r);
    }
    (void)spread(r->n_changes, hash_one, w, &failed);
    for (size_t i = 0; i < r->n_changes; i++) {
        if (changes_nothing(w->of[i], &r->changes[i]))
            continue;
        w->change[w->n] = i;
        w->ops[w->n++] = make_op(w->of[i]);
    }
}

static void work_fini(struct work *w)
{
    free(w->ops);
    free(w->change);
    free(w->standing);
    free(w->of);
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

/* `staged` for the transaction; see patch.h. */
struct stage {
    const struct patch_request *q;
    bool called;
};

static int on_staged(void *user, struct err *e)
{
    struct stage *s = user;
    s->called = true;
    return s->q->staged != NULL ? s->q->staged(s->q->user, e) : 0;
}

static bool on_linger(void *user)
{
    const struct stage *s = user;
    return s->q->may_linger == NULL || s->q->may_linger(s->q->user);
}

/* Without a sync before it the unlink is cheap, and giving back later is in the way of the next
 * patch. */
static void prepare_linger(const struct patch_request *q, size_t n, struct patch_result *r)
{
    if (q->lax)
        return;
    r->linger = mem_zalloc(n, sizeof(*r->linger));
    r->n_linger = n;
    for (size_t i = 0; i < n; i++)
        r->linger[i] = -1;
}

static int write_plan(const struct workspace *ws, const struct patch_request *q, struct work *w,
                      struct patch_result *r, struct err *e)
{
    struct err why = {0};
    struct err ignored;
    struct stage stage = {.q = q};
    prepare_linger(q, w->n, r);
    struct txn_env env = {.root_fd = ws->root_fd,
                          .journal = q->journal,
                          .lax = q->lax,
                          .linger = r->linger,
                          .may_linger = on_linger,
                          .staged = on_staged,
                          .user = &stage};
    enum txn_outcome out = txn_run(&env, w->ops, w->n, w->standing, &why);
    if (!stage.called)
        (void)on_staged(&stage, &ignored);
    bool conflict = why.code == ERR_VERSION_CONFLICT || why.code == ERR_ADD_FILE_EXISTS;
    if (out == TXN_STOPPED) {
        *e = why;
        return -1;
    }
    if (out == TXN_APPLIED) {
        r->durable = !q->lax;
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

/* ---- what it does, as a diff ---- */

static struct diff_side side_before(const struct plan_file *f)
{
    const struct buf *b = f->has_before ? &f->content_before : &f->content;
    if (!f->existed)
        return (struct diff_side){0};
    return (struct diff_side){f->path, {buf_bytes(b), b->len}, f->st.st_mode};
}

static struct diff_side side_after(const struct plan_file *f)
{
    const struct plan_file *meta = f->origin != NULL ? f->origin : f;
    mode_t mode = f->mode == PATCH_MODE_EXECUTABLE ? 0755 : 0644;
    if (!f->exists)
        return (struct diff_side){0};
    if (meta->existed)
        mode = plan_mode(f, &meta->st);
    return (struct diff_side){f->path, {buf_bytes(&f->content), f->content.len}, mode};
}

/* A move of one file to a name that was free, which can be written as a rename. */
static bool is_rename(const struct plan_file *f)
{
    return f->moved && !f->existed && f->origin != NULL && f->origin->existed && !f->origin->exists;
}

/* The source of a rename has no section of its own. */
static bool is_renamed(const struct plan *p, const struct plan_file *f)
{
    for (size_t i = 0; !f->exists && i < p->n; i++) {
        if (p->files[i]->origin == f && p->files[i]->exists && is_rename(p->files[i]))
            return true;
    }
    return false;
}

static int write_section(const struct plan *p, const struct plan_file *f, bool inverse,
                         struct buf *out, uint64_t *budget)
{
    if (!plan_changes(f) || is_renamed(p, f))
        return 0;
    struct diff_side old = f->exists && is_rename(f) ? side_before(f->origin) : side_before(f);
    struct diff_side new = side_after(f);
    return inverse ? diffout_write(out, &new, &old, PATCH_INVERSE_MAX, budget)
                   : diffout_write(out, &old, &new, PATCH_DIFF_MAX, budget);
}

static int write_in_turn(const struct plan *p, bool inverse, struct buf *out)
{
    uint64_t budget = LINEDIFF_WORK_MAX;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < p->n; i++)
        rc = write_section(p, p->files[i], inverse, out, &budget);
    return rc;
}

/* Sections of many files, made by several threads. Each begins with the work that is left then, so
 * together they may spend a little more than in turn. */
struct parts {
    const struct plan *p;
    bool inverse;
    struct buf *items;
    atomic_uint_least64_t left;
    atomic_size_t total;
    size_t max;
};

static void spend(struct parts *s, uint64_t used)
{
    uint_least64_t left = atomic_load(&s->left);
    while (!atomic_compare_exchange_weak(&s->left, &left, left > used ? left - used : 0))
        continue;
}

static int write_part(void *user, size_t i)
{
    struct parts *s = user;
    const uint64_t given = atomic_load(&s->left);
    uint64_t budget = given;
    int rc = write_section(s->p, s->p->files[i], s->inverse, &s->items[i], &budget);
    spend(s, given - budget);
    size_t before = atomic_fetch_add(&s->total, s->items[i].len);
    return rc == 0 && before + s->items[i].len > s->max ? -EFBIG : rc;
}

static int write_beside(const struct plan *p, bool inverse, struct buf *out)
{
    struct parts s = {.p = p,
                      .inverse = inverse,
                      .items = mem_zalloc(p->n, sizeof(struct buf)),
                      .left = LINEDIFF_WORK_MAX,
                      .max = inverse ? PATCH_INVERSE_MAX : PATCH_DIFF_MAX};
    size_t failed = 0;
    int rc = spread(p->n, write_part, &s, &failed);
    for (size_t i = 0; i < p->n; i++) {
        if (rc == 0)
            buf_put(out, buf_bytes(&s.items[i]), s.items[i].len);
        buf_fini(&s.items[i]);
    }
    free(s.items);
    return rc;
}

static void write_diff(const struct plan *p, bool inverse, struct buf *out, bool *ret_omitted)
{
    int rc = p->n < SPREAD_FROM ? write_in_turn(p, inverse, out) : write_beside(p, inverse, out);
    if (rc == 0)
        return;
    *ret_omitted = true;
    buf_fini(out);
}

/* Have all contents that were there. A limit is no reason to refuse the patch. */
static int load_all_before(struct plan *p, bool *ret_limit, struct err *e)
{
    for (size_t i = 0; i < p->n && !*ret_limit; i++) {
        struct plan_file *f = p->files[i];
        bool unchanged = f->loaded && !f->changed;
        if (!plan_changes(f) || unchanged || plan_load_before(p, f, e) == 0)
            continue;
        if (e == NULL || e->code != ERR_LIMIT_EXCEEDED)
            return -1;
        *ret_limit = true;
    }
    return 0;
}

static int write_diffs(struct plan *p, const struct patch_request *q, struct patch_result *r,
                       struct err *e)
{
    bool limit = false;
    struct err why = {0};
    if (!q->want_diff && !q->want_inverse)
        return 0;
    if (load_all_before(p, &limit, &why) < 0)
        return err_set(e, why.code, "%s", why.message);
    r->diff_omitted = q->want_diff && limit;
    r->inverse_omitted = q->want_inverse && limit;
    if (q->want_diff && !limit)
        write_diff(p, false, &r->diff, &r->diff_omitted);
    if (q->want_inverse && !limit)
        write_diff(p, true, &r->inverse, &r->inverse_omitted);
    return 0;
}

/* ---- all of it ---- */

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
        rc = q->planned != NULL ? q->planned(q->user, r, e) : 0;
        if (rc == 0)
            rc = write_plan(ws, q, &w, r, e);
    }
    work_fini(&w);
    return rc;
}

/* Exact edits as a document. */
static int doc_of_edits(const struct patch_request *q, struct patch_doc *ret, struct err *e)
{
    if (q->n_edits > PATCH_EDITS_MAX)
        return err_set(e, ERR_LIMIT_EXCEEDED,
                       "more edits (%zu) than PATCH_EDITS_MAX (%u); send several requests",
                       q->n_edits, PATCH_EDITS_MAX);
    for (size_t i = 0; i < q->n_edits; i++) {
        struct patch_section *s = patch_doc_add(ret);
        s->kind = PATCH_UPDATE;
        s->path = mem_strdup(q->edits[i].path);
        s->edit = &q->edits[i];
    }
    return 0;
}

static int parse(const struct patch_request *q, struct patch_doc *ret, struct err *e)
{
    if (q->n_edits > 0 && q->text_len > 0)
        return err_set(e, ERR_INVALID_ARGUMENT, "give a patch or edits, not both");
    if (q->n_edits > 0)
        return doc_of_edits(q, ret, e);
    bool unified = q->format == PATCH_FORMAT_UNIFIED ||
                   (q->format == PATCH_FORMAT_AUTO && udiff_begins(q->text, q->text_len));
    if (q->text_len > (q->is_inverse ? PATCH_INVERSE_MAX : PATCH_TEXT_MAX))
        return err_set(e, ERR_LIMIT_EXCEEDED,
                       "the patch has %zu bytes, more than PATCH_TEXT_MAX (%u); send several "
                       "patches",
                       q->text_len, PATCH_TEXT_MAX);
    if (unified)
        return udiff_parse(q->text, q->text_len, (int)q->strip_plus_one - 1, ret, e);
    return v4a_parse(q->text, q->text_len, ret, e);
}

int patch_apply(const struct workspace *ws, const struct patch_request *request,
                struct patch_result *ret, struct err *e)
{
    struct patch_doc doc = {0};
    struct plan plan = {.ws = ws, .keep_before = request->want_diff || request->want_inverse};
    struct patch_result result = {0};
    int rc = -1;
    if (policy_check(ws, POLICY_WRITE, e) == 0 && parse(request, &doc, e) == 0 &&
        plan_expect(&plan, request->expect, request->n_expect, e) == 0 &&
        plan_sections(&plan, &doc, e) == 0 && write_diffs(&plan, request, &result, e) == 0)
        rc = carry_out(ws, request, &plan, &result, e);
    patch_doc_fini(&doc);
    plan_fini(&plan);
    if (rc == 0)
        *ret = result;
    else
        patch_result_fini(&result);
    return rc;
}
