/* core/plan_sections: carry out the sections of a patch on a plan (plan_sections() of core/plan).
 *
 * Two orders. Sections of V4A, of GNU diffs and exact edits come one after the other, each on what
 * the ones before it left. Sections of a git diff speak of the files as they were: a swap of two
 * names is two renames there, and a copy is of the old content whatever else happens to its source.
 */
#include "base/mem.h"
#include "core/edits.h"
#include "core/exact.h"
#include "core/files.h"
#include "core/plan.h"
#include "core/spread.h"

#include <string.h>

/* ---- one section ---- */

static int must_exist(const struct plan_file *f, const char *what, struct err *e)
{
    if (f->exists)
        return 0;
    return err_set(e, ERR_FILE_NOT_FOUND, "%s %s: no such file in the workspace%s", what, f->path,
                   f->existed ? " (the patch removed it further up)" : "");
}

static void set_mode(struct plan_file *f, const struct patch_section *s)
{
    if (s->mode != PATCH_MODE_KEEP)
        f->mode = s->mode;
}

/* Append what the section makes of the file. */
static int transform(struct plan *p, const struct patch_section *s, struct plan_file *f,
                     struct buf *out, struct err *e)
{
    const char *bytes = buf_bytes(&f->content);
    size_t n = f->content.len;
    bool fuzzy = false;
    int rc = 0;
    if (s->edit != NULL)
        rc = edit_apply(f->path, bytes, n, s->edit, out, e);
    else if (s->exact)
        rc = exact_or_tolerant(f->path, bytes, n, s->hunks, s->n, out, &p->work, &fuzzy, e);
    else
        rc = hunks_apply(f->path, bytes, n, s->hunks, s->n, out, &p->work, &fuzzy, e);
    f->fuzzy |= rc == 0 && fuzzy;
    return rc < 0 ? -1 : plan_check_sizes(p, f, out->len, e);
}

static int do_add(struct plan *p, const struct patch_section *s, struct err *e)
{
    struct plan_file *f = plan_look(p, s->path, true, e);
    if (f == NULL)
        return -1;
    if (f->exists)
        return err_set(e, ERR_ADD_FILE_EXISTS,
                       "add %s: the file exists; send an update of it, or delete it first",
                       f->path);
    if (plan_check_sizes(p, f, s->content.len, e) < 0)
        return -1;
    struct buf copy = BUF_INIT;
    buf_put(&copy, buf_bytes(&s->content), s->content.len);
    plan_take(p, f, &copy);
    f->exists = true;
    set_mode(f, s);
    return 0;
}

/* A unified diff says what it deletes; nothing else is deleted. */
static int check_deleted(struct plan *p, const struct patch_section *s, struct plan_file *f,
                         struct err *e)
{
    autobuf left = BUF_INIT;
    if (plan_load(p, f, e) < 0 || transform(p, s, f, &left, e) < 0)
        return -1;
    if (left.len > 0)
        return err_set(e, ERR_INVALID_PATCH,
                       "delete %s: the file holds %zu bytes that the patch does not know of; read "
                       "it again",
                       f->path, left.len);
    return 0;
}

static int do_delete(struct plan *p, const struct patch_section *s, struct err *e)
{
    struct plan_file *f = plan_look(p, s->path, true, e);
    if (f == NULL || must_exist(f, "delete", e) < 0)
        return -1;
    if (s->exact && check_deleted(p, s, f, e) < 0)
        return -1;
    plan_drop(p, f);
    f->exists = false;
    return 0;
}

/* An edit with an empty `old` makes the file. */
static bool makes_file(const struct patch_section *s, const struct plan_file *f)
{
    return s->edit != NULL && s->edit->old_len == 0 && !f->exists;
}

static int do_update(struct plan *p, const struct patch_section *s, struct plan_file **ret,
                     struct err *e)
{
    struct plan_file *f = plan_look(p, s->path, true, e);
    if (f == NULL)
        return -1;
    bool made = makes_file(s, f);
    if (!made && (must_exist(f, "update", e) < 0 || plan_load(p, f, e) < 0))
        return -1;
    *ret = f;
    set_mode(f, s);
    if (s->n == 0 && s->edit == NULL)
        return 0;
    autobuf out = BUF_INIT;
    if (transform(p, s, f, &out, e) < 0)
        return -1;
    plan_take(p, f, &out);
    f->exists = true;
    return 0;
}

static int must_be_free(const struct plan_file *from, const struct plan_file *to, struct err *e)
{
    if (!to->exists)
        return 0;
    return err_set(e, ERR_MOVE_DESTINATION_EXISTS,
                   "move %s to %s: the target exists; delete it first", from->path, to->path);
}

/* `content` came from `from` to `to`. */
static void put_moved(struct plan *p, const struct patch_section *s, struct plan_file *from,
                      struct plan_file *to, struct buf *content)
{
    plan_take(p, to, content);
    to->exists = true;
    to->moved = !s->copy;
    to->fuzzy = from->fuzzy;
    to->mode = s->mode != PATCH_MODE_KEEP ? s->mode : from->mode;
    to->origin = from->origin != NULL ? from->origin : from;
}

static int do_move(struct plan *p, const struct patch_section *s, struct err *e)
{
    struct plan_file *from = NULL;
    if (do_update(p, s, &from, e) < 0)
        return -1;
    struct plan_file *to = plan_look(p, s->move_to, true, e);
    if (to == NULL)
        return -1;
    if (to == from)
        return 0;
    if (must_be_free(from, to, e) < 0)
        return -1;
    autobuf content = BUF_INIT;
    plan_give(p, from, &content);
    put_moved(p, s, from, to, &content);
    from->exists = false;
    from->moved_away = true;
    return 0;
}

static int do_section(struct plan *p, const struct patch_section *s, struct err *e)
{
    struct plan_file *f = NULL;
    switch (s->kind) {
    case PATCH_ADD:
        return do_add(p, s, e);
    case PATCH_DELETE:
        return do_delete(p, s, e);
    case PATCH_UPDATE:
        return do_update(p, s, &f, e);
    default:
        return do_move(p, s, e);
    }
}

/* ---- a git diff ---- */

/* What the renames and copies make, before anything else happened. */
struct made {
    struct plan_file *from;
    struct buf content;
};

static int make_moved(struct plan *p, const struct patch_section *s, struct made *m, struct err *e)
{
    struct plan_file *f = plan_look(p, s->path, !s->copy, e);
    if (f == NULL || must_exist(f, s->copy ? "copy" : "move", e) < 0 || plan_load(p, f, e) < 0)
        return -1;
    m->from = f;
    if (s->n > 0)
        return transform(p, s, f, &m->content, e);
    buf_put(&m->content, buf_bytes(&f->content), f->content.len);
    return plan_check_sizes(p, f, f->content.len, e);
}

/* Deletions, and the sources of renames. */
static int take_away(struct plan *p, const struct patch_section *s, struct made *m, struct err *e)
{
    if (s->kind == PATCH_DELETE)
        return do_delete(p, s, e);
    if (s->kind != PATCH_MOVE || s->copy)
        return 0;
    if (must_exist(m->from, "move", e) < 0)
        return -1;
    plan_drop(p, m->from);
    m->from->exists = false;
    m->from->moved_away = true;
    return 0;
}

static int put_in_place(struct plan *p, const struct patch_section *s, struct made *m,
                        struct err *e)
{
    if (s->kind == PATCH_DELETE)
        return 0;
    if (s->kind != PATCH_MOVE)
        return do_section(p, s, e);
    struct plan_file *to = plan_look(p, s->move_to, true, e);
    if (to == NULL || must_be_free(m->from, to, e) < 0)
        return -1;
    p->held -= m->content.len;
    put_moved(p, s, m->from, to, &m->content);
    return 0;
}

static int carry_out_git(struct plan *p, const struct patch_doc *doc, struct made *made,
                         struct err *e)
{
    for (size_t i = 0; i < doc->n; i++) {
        if (doc->sections[i].kind == PATCH_MOVE &&
            make_moved(p, &doc->sections[i], &made[i], e) < 0)
            return -1;
        p->held += made[i].content.len;
    }
    for (size_t i = 0; i < doc->n; i++) {
        if (take_away(p, &doc->sections[i], &made[i], e) < 0)
            return -1;
    }
    for (size_t i = 0; i < doc->n; i++) {
        if (put_in_place(p, &doc->sections[i], &made[i], e) < 0)
            return -1;
    }
    return 0;
}

/* ---- all sections ---- */

static int carry_out(struct plan *p, const struct patch_doc *doc, struct err *e)
{
    int rc = 0;
    if (!doc->from_preimage) {
        for (size_t i = 0; rc == 0 && i < doc->n; i++)
            rc = do_section(p, &doc->sections[i], e);
        return rc;
    }
    struct made *made = mem_zalloc(doc->n, sizeof(*made));
    rc = carry_out_git(p, doc, made, e);
    for (size_t i = 0; i < doc->n; i++)
        buf_fini(&made[i].content);
    free(made);
    return rc;
}

/* No file may come out below another one that comes out as a file. */
static int check_ancestors(const struct plan *p, const struct plan_file *f, struct err *e)
{
    char dir[PATH_LEN_MAX];
    strcpy(dir, f->path);
    for (char *slash = strrchr(dir, '/'); slash != NULL; slash = strrchr(dir, '/')) {
        *slash = '\0';
        const struct plan_file *above = map_get(&p->by_path, dir);
        if (above != NULL && above->exists)
            return err_set(e, ERR_PATH_NOT_DIRECTORY,
                           "%s: %s is a file of this patch and cannot be a directory too", f->path,
                           dir);
    }
    return 0;
}

/* Additions are of files that are not there. */
static void look_ahead(struct plan *p, const struct patch_doc *doc)
{
    size_t n = 0;
    if (doc->n < SPREAD_FROM)
        return;
    const char **paths = mem_zalloc(doc->n, sizeof(*paths));
    for (size_t i = 0; i < doc->n; i++) {
        if (doc->sections[i].kind != PATCH_ADD)
            paths[n++] = doc->sections[i].path;
    }
    plan_look_ahead(p, paths, n);
    free(paths);
}

int plan_sections(struct plan *p, const struct patch_doc *doc, struct err *e)
{
    look_ahead(p, doc);
    if (carry_out(p, doc, e) < 0)
        return -1;
    for (size_t i = 0; i < p->n; i++) {
        if (p->files[i]->touched && p->files[i]->exists && check_ancestors(p, p->files[i], e) < 0)
            return -1;
    }
    return 0;
}
