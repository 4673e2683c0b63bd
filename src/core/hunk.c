/* core/hunk: see hunk.h. The data, and putting the new file together; the search for places is in
 * core/place.c. */
#include "core/hunk.h"

#include "base/mem.h"
#include "core/place.h"

#include <string.h>

/* ---- the data ---- */

static void hunk_fini(struct hunk *h)
{
    free(h->anchors);
    free(h->lines);
}

void patch_doc_fini(struct patch_doc *d)
{
    for (size_t i = 0; i < d->n; i++) {
        struct patch_section *s = &d->sections[i];
        for (size_t k = 0; k < s->n; k++)
            hunk_fini(&s->hunks[k]);
        free(s->hunks);
        free(s->path);
        free(s->move_to);
        buf_fini(&s->content);
    }
    free(d->sections);
    *d = (struct patch_doc){0};
}

struct patch_section *patch_doc_add(struct patch_doc *d)
{
    void *items = d->sections;
    mem_grow(&items, &d->cap, d->n + 1, sizeof(struct patch_section));
    d->sections = items;
    d->sections[d->n] = (struct patch_section){0};
    return &d->sections[d->n++];
}

struct hunk *patch_section_add_hunk(struct patch_section *s)
{
    void *items = s->hunks;
    mem_grow(&items, &s->cap, s->n + 1, sizeof(struct hunk));
    s->hunks = items;
    s->hunks[s->n] = (struct hunk){0};
    return &s->hunks[s->n++];
}

void hunk_add_line(struct hunk *h, struct hunk_line line)
{
    void *items = h->lines;
    mem_grow(&items, &h->cap, h->n + 1, sizeof(struct hunk_line));
    h->lines = items;
    h->lines[h->n++] = line;
}

/* ---- putting the new file together ---- */

struct writer {
    const struct lines *file;
    struct buf *out;
    size_t next;     /* first line of the file that was not dealt with */
    size_t last_eol; /* bytes of the ending of the last line written */
    bool wrote;      /* some line was written */
    bool last_is_inserted;
};

/* The file's last line may have no ending; it needs one as soon as a line follows. */
static void close_line(struct writer *w)
{
    if (!w->wrote || w->last_eol > 0)
        return;
    struct text ending = lines_ending(w->file, w->file->n - 1);
    buf_put(w->out, ending.at, ending.len);
}

static void copy_lines(struct writer *w, size_t end)
{
    if (w->next >= end)
        return;
    close_line(w);
    const struct line *first = &w->file->items[w->next];
    const struct line *last = &w->file->items[end - 1];
    buf_put(w->out, w->file->bytes + first->at, last->at + last->len + last->eol - first->at);
    w->last_eol = last->eol;
    w->wrote = true;
    w->last_is_inserted = false;
    w->next = end;
}

/* Insert with the ending of line `like` of the file. */
static void insert_line(struct writer *w, const struct hunk_line *line, size_t like)
{
    struct text text = place_text(w->file, line);
    struct text ending = lines_ending(w->file, like);
    close_line(w);
    buf_put(w->out, text.at, text.len);
    buf_put(w->out, ending.at, ending.len);
    w->last_eol = ending.len;
    w->wrote = true;
    w->last_is_inserted = true;
}

/* One run of '-' and '+' lines: the k-th added takes the ending of the k-th removed. */
static void write_change(struct writer *w, const struct hunk_line *lines, size_t n)
{
    size_t first = w->next;
    size_t removed = 0;
    for (size_t i = 0; i < n; i++)
        removed += lines[i].op == '-';
    w->next = first + removed;
    for (size_t i = 0, k = 0; i < n; i++) {
        if (lines[i].op != '+')
            continue;
        size_t like = first > 0 ? first - 1 : 0;
        if (removed > 0)
            like = first + (k < removed ? k : removed - 1);
        insert_line(w, &lines[i], like);
        k++;
    }
}

static void write_hunk(struct writer *w, const struct hunk *h, const struct place *p)
{
    copy_lines(w, p->at);
    for (size_t i = 0; i < p->n_lines;) {
        size_t end = i;
        while (end < p->n_lines && h->lines[end].op != ' ')
            end++;
        if (end > i)
            write_change(w, h->lines + i, end - i);
        for (i = end; i < p->n_lines && h->lines[i].op == ' '; i++)
            copy_lines(w, w->next + 1);
    }
}

static void write_rest(struct writer *w)
{
    const struct lines *f = w->file;
    copy_lines(w, f->n);
    bool missing_final = f->n > 0 && f->items[f->n - 1].eol == 0;
    if (missing_final && w->last_is_inserted)
        buf_truncate(w->out, w->out->len - w->last_eol);
}

static int check_work(const struct placer *p, struct err *e)
{
    if (p->file->work <= LINES_WORK_MAX)
        return 0;
    return err_set(e, ERR_LIMIT_EXCEEDED,
                   "%s: finding the places of the hunks looked at more lines than LINES_WORK_MAX "
                   "(%llu); send fewer hunks at once, or copy the file's lines exactly",
                   p->path, LINES_WORK_MAX);
}

static int check_size(const char *path, const struct buf *out, struct err *e)
{
    if (out->len <= PATCH_FILE_MAX)
        return 0;
    return err_set(e, ERR_LIMIT_EXCEEDED,
                   "%s would have %zu bytes, more than PATCH_FILE_MAX (%u); edit it with a command",
                   path, out->len, PATCH_FILE_MAX);
}

static int apply_all(struct placer *p, const struct hunk *hunks, size_t n, struct buf *out,
                     struct err *e)
{
    struct writer w = {.file = p->file, .out = out};
    buf_put(out, p->file->bytes, p->file->bom);
    for (size_t i = 0; i < n; i++) {
        struct place at = {0};
        p->hunk_number = i + 1;
        if (place_hunk(p, &hunks[i], &at, e) < 0 || check_work(p, e) < 0)
            return -1;
        write_hunk(&w, &hunks[i], &at);
        p->from = w.next;
    }
    write_rest(&w);
    return check_size(p->path, out, e);
}

int hunks_apply(const char *path, const char *bytes, size_t n, const struct hunk *hunks,
                size_t n_hunks, struct buf *out, uint64_t *work, bool *ret_fuzzy, struct err *e)
{
    struct lines file;
    struct placer p = {.path = path, .file = &file};
    int rc = -1;
    if (lines_init(&file, bytes, n) < 0)
        err_set(e, ERR_LIMIT_EXCEEDED,
                "%s has more lines than LINES_MAX (%u); edit it with a command", path, LINES_MAX);
    else {
        file.work = *work;
        rc = apply_all(&p, hunks, n_hunks, out, e);
        *work = file.work;
    }
    lines_fini(&file);
    if (rc == 0)
        *ret_fuzzy = p.fuzzy;
    return rc;
}
