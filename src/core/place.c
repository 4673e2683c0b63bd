/* core/place: see place.h. */
#include "core/place.h"

#include "base/mem.h"

#include <stdio.h>
#include <string.h>

/* Bytes of a line that a message shows. */
#define SHOWN 80

struct text place_text(const struct lines *file, const struct hunk_line *line)
{
    struct text t = {line->at, line->len};
    if (file->has_crlf && t.len > 0 && t.at[t.len - 1] == '\r')
        t.len--;
    if (file->bom > 0 && t.len >= 3 && memcmp(t.at, "\xef\xbb\xbf", 3) == 0)
        t = (struct text){t.at + 3, t.len - 3};
    return t;
}

/* The old lines of a hunk. */
struct run {
    struct text *items;
    size_t n;
};

static void run_init(struct run *r, const struct lines *file, const struct hunk *h, size_t n_lines)
{
    r->items = mem_zalloc(n_lines, sizeof(struct text));
    r->n = 0;
    for (size_t i = 0; i < n_lines; i++) {
        if (h->lines[i].op != '+')
            r->items[r->n++] = place_text(file, &h->lines[i]);
    }
}

/* ---- messages ---- */

/* Append what is around byte `at` of t, with every byte that is not plain ASCII as \xNN. */
static void quote(struct buf *b, struct text t, size_t at)
{
    size_t from = at > SHOWN / 2 ? at - SHOWN / 2 : 0;
    size_t to = t.len - from > SHOWN ? from + SHOWN : t.len;
    buf_puts(b, from > 0 ? "\"..." : "\"");
    for (size_t i = from; i < to; i++) {
        unsigned char c = (unsigned char)t.at[i];
        if (c >= 0x20 && c < 0x7f)
            buf_putc(b, (char)c);
        else
            buf_printf(b, "\\x%02x", c);
    }
    buf_puts(b, to < t.len ? "...\"" : "\"");
}

static size_t first_difference(struct text a, struct text b)
{
    size_t i = 0;
    while (i < a.len && i < b.len && a.at[i] == b.at[i])
        i++;
    return i;
}

/* Append the first line in which the file at `at` differs from the run. */
static void describe_difference(struct buf *b, struct lines *f, const struct run *r, size_t at)
{
    for (size_t i = 0; i < r->n; i++) {
        if (at + i >= f->n) {
            buf_printf(b, "the file ends after line %zu where the patch has ", f->n);
            quote(b, r->items[i], 0);
            return;
        }
        struct text have = lines_text(f, at + i);
        if (lines_equal(f, LINES_FOLDED, have, r->items[i]))
            continue;
        size_t column = first_difference(have, r->items[i]);
        buf_printf(b, "line %zu has ", at + i + 1);
        quote(b, have, column);
        buf_puts(b, " where the patch has ");
        quote(b, r->items[i], column);
        return;
    }
    buf_puts(b, "all lines fit there, but not in this order of hunks");
}

/* The line that shares the longest beginning with the first line of the run that is not blank. */
static size_t similar_line(struct lines *f, const struct run *r)
{
    size_t skip = 0;
    while (skip + 1 < r->n && text_trim(r->items[skip]).len == 0)
        skip++;
    struct text want = text_trim(r->items[skip]);
    size_t best = LINES_NONE;
    size_t best_len = 0;
    for (size_t i = 0; i < f->n; i++) {
        size_t same = first_difference(text_trim(lines_text(f, i)), want);
        if (same > best_len) {
            best_len = same;
            best = i;
        }
    }
    return best == LINES_NONE || best < skip ? LINES_NONE : best - skip;
}

static int say_miss(const struct placer *p, const struct hunk *h, const struct run *r,
                    struct err *e)
{
    autobuf b = BUF_INIT;
    struct lines *f = p->file;
    size_t earlier = lines_find(f, LINES_FOLDED, r->items, r->n, 0);
    size_t near = lines_nearest(f, r->items, r->n);
    const char *s = r->n == 1 ? "" : "s";
    const char *are = r->n == 1 ? "is" : "are";
    const char *them = r->n == 1 ? "it" : "them";
    if (near == LINES_NONE)
        near = similar_line(f, r);
    if (h->at_end)
        buf_printf(&b, "%s not the last line%s of the file (\"*** End of File\"); ", are, s);
    else
        buf_printf(&b, "%s not in the file from line %zu on; ", are, p->from + 1);
    if (earlier != LINES_NONE && !h->at_end)
        buf_printf(&b,
                   "%s %s at line %zu, before the place of the hunk or \"@@\" line before %s: "
                   "write hunks in the order of the file",
                   r->n == 1 ? "it" : "they", are, earlier + 1, them);
    else if (near == LINES_NONE)
        buf_printf(&b, "nothing in the file resembles %s", them);
    else {
        buf_printf(&b, "the nearest place is line %zu: ", near + 1);
        describe_difference(&b, f, r, near);
    }
    return err_set(e, ERR_INVALID_PATCH,
                   "%s: hunk %zu (line %zu of the patch) does not apply: its %zu old line%s %s. "
                   "Read the file again and send a patch against what it holds now.",
                   p->path, p->hunk_number, h->patch_line, r->n, s, buf_cstr(&b));
}

static int say_ambiguous(const struct placer *p, const struct hunk *h, size_t a, size_t b,
                         struct err *e)
{
    return err_set(e, ERR_INVALID_PATCH,
                   "%s: hunk %zu (line %zu of the patch) is ambiguous: no place fits exactly, and "
                   "ignoring white space or look-alike characters it fits at line %zu and at line "
                   "%zu. Copy the file's lines exactly, or give more context.",
                   p->path, p->hunk_number, h->patch_line, a + 1, b + 1);
}

static int say_no_place(const struct placer *p, const struct hunk *h, struct err *e)
{
    return err_set(e, ERR_INVALID_PATCH,
                   "%s: hunk %zu (line %zu of the patch) has no old lines, and the line numbers of "
                   "its header do not say where it belongs; give some lines of context",
                   p->path, p->hunk_number, h->patch_line);
}

/* ---- anchors ---- */

/* The line begins with the anchor, blanks aside: "@@ class Foo" for "class Foo(Base):". Taken only
 * when one line does. */
static size_t find_beginning(struct lines *f, struct text anchor, size_t from)
{
    size_t found = LINES_NONE;
    f->work += f->n - from;
    for (size_t i = from; i < f->n; i++) {
        struct text line = text_trim(lines_text(f, i));
        if (line.len < anchor.len || memcmp(line.at, anchor.at, anchor.len) != 0)
            continue;
        if (found != LINES_NONE)
            return LINES_NONE;
        found = i;
    }
    return found;
}

/* Anchors are written with or without their indentation, so blanks do not make them fuzzy. */
static size_t find_anchor(struct placer *p, struct text anchor, size_t from)
{
    for (enum lines_level level = LINES_EXACT; level < LINES_LEVELS; level++) {
        size_t at = lines_find(p->file, level, &anchor, 1, from);
        if (at != LINES_NONE) {
            p->fuzzy |= level == LINES_FOLDED;
            return at;
        }
    }
    size_t at = find_beginning(p->file, text_trim(anchor), from);
    p->fuzzy |= at != LINES_NONE;
    return at;
}

static int find_anchors(struct placer *p, const struct hunk *h, size_t *ret_last, struct err *e)
{
    size_t from = p->from;
    for (size_t i = 0; i < h->n_anchors; i++) {
        struct run r = {&h->anchors[i], 1};
        size_t at = find_anchor(p, h->anchors[i], from);
        if (at == LINES_NONE) {
            autobuf b = BUF_INIT;
            quote(&b, h->anchors[i], 0);
            size_t near = similar_line(p->file, &r);
            if (near != LINES_NONE) {
                buf_printf(&b, "; the nearest is line %zu, ", near + 1);
                quote(&b, lines_text(p->file, near), 0);
            }
            return err_set(e, ERR_INVALID_PATCH,
                           "%s: hunk %zu (line %zu of the patch) does not apply: from line %zu on "
                           "no line is its \"@@\" line %s",
                           p->path, p->hunk_number, h->patch_line, from + 1, buf_cstr(&b));
        }
        *ret_last = at;
        from = at + 1;
    }
    return 0;
}

/* ---- old lines ---- */

/* The place of the run, LINES_NONE, or -1 with an error when several fit. */
static int find_run(struct placer *p, const struct hunk *h, const struct run *r, size_t from,
                    size_t *ret, struct err *e)
{
    for (enum lines_level level = LINES_EXACT; level < LINES_LEVELS; level++) {
        size_t at = lines_find(p->file, level, r->items, r->n, from);
        if (at == LINES_NONE)
            continue;
        if (level != LINES_EXACT || h->numbered) {
            size_t other = lines_find(p->file, level, r->items, r->n, at + 1);
            if (other != LINES_NONE)
                return say_ambiguous(p, h, at, other, e);
            p->fuzzy = true;
        }
        *ret = at;
        return 0;
    }
    *ret = LINES_NONE;
    return 0;
}

/* As find_run, where `anchor` is the last anchor's line or LINES_NONE. */
static int find_place(struct placer *p, const struct hunk *h, const struct run *r, size_t anchor,
                      size_t *ret, struct err *e)
{
    size_t from = anchor == LINES_NONE ? p->from : anchor + 1;
    size_t n = p->file->n;
    if (h->at_end) {
        if (r->n > n || n - r->n < from) {
            *ret = LINES_NONE;
            return 0;
        }
        from = n - r->n;
    }
    if (find_run(p, h, r, from, ret, e) < 0)
        return -1;
    /* A hunk may repeat its anchor as its first line. */
    if (*ret == LINES_NONE && anchor != LINES_NONE && !h->at_end)
        return find_run(p, h, r, anchor, ret, e);
    return 0;
}

/* The hunk's lines without the empty ones at its end that may only separate it from the next. */
static size_t without_separators(const struct hunk *h)
{
    size_t n = h->n;
    while (n > 0 && h->lines[n - 1].bare)
        n--;
    return n;
}

static int place_lines(struct placer *p, const struct hunk *h, size_t anchor, struct place *ret,
                       struct err *e)
{
    size_t counts[] = {h->n, without_separators(h)};
    for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
        struct run r = {0};
        run_init(&r, p->file, h, counts[i]);
        bool last = i + 1 == ARRAY_LEN(counts) || counts[0] == counts[1];
        size_t at = p->file->n;
        int rc = 0;
        if (r.n > 0)
            rc = find_place(p, h, &r, anchor, &at, e);
        else if (h->numbered && (!h->at_known || h->at < p->from || h->at > p->file->n))
            rc = say_no_place(p, h, e);
        else if (h->numbered)
            at = h->at;
        else if (anchor != LINES_NONE && !h->at_end)
            at = anchor + 1;
        if (rc == 0 && at == LINES_NONE && last)
            rc = say_miss(p, h, &r, e);
        free(r.items);
        if (rc < 0 || at != LINES_NONE) {
            *ret = (struct place){at, counts[i]};
            return rc;
        }
    }
    return 0;
}

int place_hunk(struct placer *p, const struct hunk *h, struct place *ret, struct err *e)
{
    size_t anchor = LINES_NONE;
    if (find_anchors(p, h, &anchor, e) < 0)
        return -1;
    return place_lines(p, h, anchor, ret, e);
}
