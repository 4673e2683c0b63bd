/* core/exact: see exact.h. */
#include "core/exact.h"

#include "base/mem.h"

#include <string.h>

struct exact {
    const char *path;
    struct lines *file;
    struct buf *out;
    size_t next; /* first line that was not dealt with */
    size_t hunk_number;
    bool moved;
    struct err *e;
};

/* ---- places ---- */

static bool line_is(const struct lines *f, size_t i, const struct hunk_line *l)
{
    struct text have = lines_text(f, i);
    return have.len == l->len && memcmp(have.at, l->at, l->len) == 0 &&
           (f->items[i].eol == 0) == l->no_eol;
}

/* Do the old lines stand at line `at`? */
static bool fits(const struct lines *f, const struct hunk *h, size_t at)
{
    const struct hunk_line *last_new = NULL;
    size_t first = at;
    for (size_t i = 0; i < h->n; i++) {
        const struct hunk_line *l = &h->lines[i];
        if (l->op != '-')
            last_new = l;
        if (l->op == '+')
            continue;
        if (at >= f->n || !line_is(f, at, l))
            return false;
        at++;
    }
    /* Nothing may stand behind a line without an ending, neither a new one nor an old one. */
    bool open_end = last_new != NULL && last_new->no_eol;
    bool behind_open = first == at && at > 0 && at <= f->n && f->items[at - 1].eol == 0;
    return at <= f->n && (!open_end || at == f->n) && !behind_open;
}

struct run {
    struct text *items;
    size_t n;
};

static void run_init(struct run *r, const struct hunk *h)
{
    *r = (struct run){mem_zalloc(h->n, sizeof(struct text)), 0};
    for (size_t i = 0; i < h->n; i++) {
        if (h->lines[i].op != '+')
            r->items[r->n++] = (struct text){h->lines[i].at, h->lines[i].len};
    }
}

static int say_ambiguous(const struct exact *x, const struct hunk *h, size_t a, size_t b)
{
    return err_set(x->e, ERR_INVALID_PATCH,
                   "%s: hunk %zu (line %zu of the patch) is ambiguous: its old lines do not stand "
                   "at the line that its header says, but at line %zu and at line %zu. Correct the "
                   "line numbers, or give more context.",
                   x->path, x->hunk_number, h->patch_line, a + 1, b + 1);
}

static int check_limits(const struct exact *x)
{
    if (x->file->work > LINES_WORK_MAX)
        return err_set(x->e, ERR_LIMIT_EXCEEDED,
                       "%s: finding the places of the hunks looked at more lines than "
                       "LINES_WORK_MAX (%llu); send fewer hunks at once, or right line numbers",
                       x->path, LINES_WORK_MAX);
    if (x->out->len > PATCH_FILE_MAX)
        return err_set(x->e, ERR_LIMIT_EXCEEDED,
                       "%s would have more bytes than PATCH_FILE_MAX (%u); edit it with a command",
                       x->path, PATCH_FILE_MAX);
    return 0;
}

/* The only place in the file: 0, EXACT_MISS, or -1 when there are two. */
static int find_only(struct exact *x, const struct hunk *h, const struct run *r, size_t *ret)
{
    size_t found = LINES_NONE;
    for (size_t at = 0;; at++) {
        at = lines_find(x->file, LINES_EXACT, r->items, r->n, at);
        if (at == LINES_NONE)
            break;
        if (x->file->work > LINES_WORK_MAX)
            return check_limits(x);
        if (!fits(x->file, h, at))
            continue;
        if (found != LINES_NONE)
            return say_ambiguous(x, h, found, at);
        found = at;
    }
    if (found == LINES_NONE || found < x->next)
        return EXACT_MISS;
    *ret = found;
    return 0;
}

static int find_place(struct exact *x, const struct hunk *h, size_t *ret)
{
    if (h->at_known && h->at >= x->next && fits(x->file, h, h->at)) {
        *ret = h->at;
        return 0;
    }
    struct run r;
    run_init(&r, h);
    int rc = r.n > 0 ? find_only(x, h, &r, ret) : EXACT_MISS;
    free(r.items);
    x->moved |= rc == 0 && !(h->at_known && h->at == *ret);
    return rc;
}

/* ---- writing ---- */

static void copy_to(struct exact *x, size_t end)
{
    if (x->next >= end)
        return;
    const struct line *first = &x->file->items[x->next];
    const struct line *last = &x->file->items[end - 1];
    buf_put(x->out, x->file->bytes + first->at, last->at + last->len + last->eol - first->at);
    x->next = end;
}

static void write_hunk(struct exact *x, const struct hunk *h, size_t at)
{
    copy_to(x, at);
    for (size_t i = 0; i < h->n; i++) {
        const struct hunk_line *l = &h->lines[i];
        if (l->op == ' ')
            copy_to(x, x->next + 1);
        else if (l->op == '-')
            x->next++;
        else {
            buf_put(x->out, l->at, l->len);
            buf_puts(x->out, l->no_eol ? "" : "\n");
        }
    }
}

static int apply_all(struct exact *x, const struct hunk *hunks, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        size_t at = 0;
        x->hunk_number = i + 1;
        int rc = find_place(x, &hunks[i], &at);
        if (rc == 0) {
            write_hunk(x, &hunks[i], at);
            rc = check_limits(x);
        }
        if (rc != 0)
            return rc;
    }
    copy_to(x, x->file->n);
    return check_limits(x);
}

int exact_apply(const char *path, const char *bytes, size_t n, const struct hunk *hunks,
                size_t n_hunks, struct buf *out, uint64_t *work, bool *ret_moved, struct err *e)
{
    struct lines file;
    autobuf made = BUF_INIT;
    struct exact x = {.path = path, .file = &file, .out = &made, .e = e};
    int rc = -1;
    if (lines_init_raw(&file, bytes, n) < 0) {
        err_set(e, ERR_LIMIT_EXCEEDED,
                "%s has more lines than LINES_MAX (%u); edit it with a command", path, LINES_MAX);
    } else {
        file.work = *work;
        rc = apply_all(&x, hunks, n_hunks);
        *work = file.work;
    }
    lines_fini(&file);
    if (rc == 0) {
        buf_put(out, buf_bytes(&made), made.len);
        *ret_moved |= x.moved;
    }
    return rc;
}

/* Does the patch say how the last line ends? Tolerance would ignore it. */
static bool speaks_of_the_end(const struct hunk *hunks, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < hunks[i].n; k++) {
            if (hunks[i].lines[k].no_eol)
                return true;
        }
    }
    return false;
}

int exact_or_tolerant(const char *path, const char *bytes, size_t n, const struct hunk *hunks,
                      size_t n_hunks, struct buf *out, uint64_t *work, bool *ret_fuzzy,
                      struct err *e)
{
    int rc = exact_apply(path, bytes, n, hunks, n_hunks, out, work, ret_fuzzy, e);
    if (rc != EXACT_MISS)
        return rc;
    bool fuzzy = false;
    if (hunks_apply(path, bytes, n, hunks, n_hunks, out, work, &fuzzy, e) < 0)
        return -1;
    if (speaks_of_the_end(hunks, n_hunks))
        return err_set(e, ERR_INVALID_PATCH,
                       "%s: the patch fits only when blanks or line endings are ignored, and it "
                       "says how the last line ends (\"\\ No newline at end of file\"), so both "
                       "have to be right; read the file again",
                       path);
    *ret_fuzzy = true;
    return 0;
}
