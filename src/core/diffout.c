/* core/diffout: see diffout.h. */
#include "core/diffout.h"

#include "base/mem.h"
#include "core/linediff.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

struct diff {
    struct buf *out;
    size_t max;
    uint64_t *budget;
    const struct diff_side *side[2];
    struct text middle[2]; /* what is left of each without common lines at the ends */
    size_t before;         /* lines in front of it, on both sides */
    struct lines lines[2]; /* of the middle */
    bool *marks[2];        /* lines that are on one side only */
};

/* ---- what differs ---- */

/* Bytes that are compared at a time; the last ones are looked at one by one. */
#define AT_ONCE 256u

static size_t common_start(const char *a, const char *b, size_t n)
{
    size_t i = 0;
    while (n - i >= AT_ONCE && memcmp(a + i, b + i, AT_ONCE) == 0)
        i += AT_ONCE;
    while (i < n && a[i] == b[i])
        i++;
    return i;
}

/* Of the bytes before both ends. */
static size_t common_end(const char *a_end, const char *b_end, size_t n)
{
    size_t i = 0;
    while (n - i >= AT_ONCE && memcmp(a_end - i - AT_ONCE, b_end - i - AT_ONCE, AT_ONCE) == 0)
        i += AT_ONCE;
    while (i < n && a_end[-1 - (ssize_t)i] == b_end[-1 - (ssize_t)i])
        i++;
    return i;
}

/* Where the line begins that is `back` lines in front of the one with byte `at`. */
static size_t line_start(const char *bytes, size_t at, unsigned back)
{
    for (;; back--) {
        const char *lf = at > 0 ? memrchr(bytes, '\n', at) : NULL;
        at = lf != NULL ? (size_t)(lf - bytes) + 1 : 0;
        if (back == 0 || at == 0)
            return at;
        at--;
    }
}

/* Bytes of the first n lines of `t`. */
static size_t lines_length(struct text t, unsigned n)
{
    size_t at = 0;
    for (; n > 0 && at < t.len; n--) {
        const char *lf = memchr(t.at + at, '\n', t.len - at);
        at = lf != NULL ? (size_t)(lf - t.at) + 1 : t.len;
    }
    return at;
}

static bool at_line_start(struct text t, size_t at)
{
    return at == 0 || t.at[at - 1] == '\n';
}

/* Mostly little differs: nothing is split, hashed or kept for the rest but its context. */
static void find_middle(struct diff *d)
{
    struct text *m = d->middle;
    for (int i = 0; i < 2; i++)
        m[i] = d->side[i]->path != NULL ? d->side[i]->bytes : (struct text){"", 0};
    size_t n = m[0].len < m[1].len ? m[0].len : m[1].len;
    size_t first = line_start(m[0].at, common_start(m[0].at, m[1].at, n), 0);
    size_t same = common_end(m[0].at + m[0].len, m[1].at + m[1].len, n - first);
    struct text tail = {m[0].at + m[0].len - same, same};
    bool whole = at_line_start(m[0], m[0].len - same) && at_line_start(m[1], m[1].len - same);
    size_t kept = lines_length(tail, DIFFOUT_CONTEXT + !whole);
    size_t start = line_start(m[0].at, first, DIFFOUT_CONTEXT);
    for (size_t i = 0; i < start; i++)
        d->before += m[0].at[i] == '\n';
    for (int i = 0; i < 2; i++)
        m[i] = (struct text){m[i].at + start, m[i].len - start - (same - kept)};
}

/* ---- names ---- */

static bool is_plain(const char *name)
{
    for (; *name != '\0'; name++) {
        unsigned char c = (unsigned char)*name;
        if (c < 0x20 || c >= 0x7f || c == '"' || c == '\\')
            return false;
    }
    return true;
}

static void put_name(struct buf *out, const char *prefix, const char *name)
{
    if (is_plain(name)) {
        buf_puts(out, prefix);
        buf_puts(out, name);
        return;
    }
    buf_printf(out, "\"%s", prefix);
    for (; *name != '\0'; name++) {
        unsigned char c = (unsigned char)*name;
        if (c == '"' || c == '\\')
            buf_printf(out, "\\%c", c);
        else if (c < 0x20 || c >= 0x7f)
            buf_printf(out, "\\%03o", c);
        else
            buf_putc(out, (char)c);
    }
    buf_putc(out, '"');
}

static void put_side(struct buf *out, const char *mark, const char *prefix, const char *name)
{
    buf_puts(out, mark);
    if (name == NULL)
        buf_puts(out, "/dev/null");
    else
        put_name(out, prefix, name);
    /* So that a name with a blank is not taken for a name and a time. */
    buf_puts(out, name != NULL && strchr(name, ' ') != NULL ? "\t\n" : "\n");
}

/* ---- the header ---- */

static bool runs(const struct diff_side *s)
{
    return (s->mode & 0111) != 0;
}

static const char *mode_text(const struct diff_side *s)
{
    return runs(s) ? "100755" : "100644";
}

static void put_header(struct diff *d, bool moved)
{
    const struct diff_side *old = d->side[0];
    const struct diff_side *new = d->side[1];
    buf_puts(d->out, "diff --git ");
    put_name(d->out, "a/", old->path != NULL ? old->path : new->path);
    buf_putc(d->out, ' ');
    put_name(d->out, "b/", new->path != NULL ? new->path : old->path);
    buf_putc(d->out, '\n');
    if (old->path == NULL)
        buf_printf(d->out, "new file mode %s\n", mode_text(new));
    else if (new->path == NULL)
        buf_printf(d->out, "deleted file mode %s\n", mode_text(old));
    else if (runs(old) != runs(new))
        buf_printf(d->out, "old mode %s\nnew mode %s\n", mode_text(old), mode_text(new));
    if (moved) {
        buf_puts(d->out, "rename from ");
        put_name(d->out, "", old->path);
        buf_puts(d->out, "\nrename to ");
        put_name(d->out, "", new->path);
        buf_putc(d->out, '\n');
    }
}

/* ---- hunks ---- */

/* Lines from..to of both sides that a hunk shows. */
struct span {
    size_t from[2];
    size_t to[2];
};

static void put_line(struct diff *d, int side, char op, size_t i)
{
    struct text t = lines_text(&d->lines[side], i);
    buf_putc(d->out, op);
    buf_put(d->out, t.at, t.len);
    buf_puts(d->out, d->lines[side].items[i].eol > 0 ? "\n" : "\n\\ No newline at end of file\n");
}

static void put_range(struct diff *d, char mark, size_t from, size_t to)
{
    size_t n = to - from;
    size_t line = d->before + from;
    buf_printf(d->out, "%c%zu", mark, n > 0 ? line + 1 : line);
    if (n != 1)
        buf_printf(d->out, ",%zu", n);
}

static bool too_long(const struct diff *d)
{
    return d->out->len > d->max;
}

static void put_hunk(struct diff *d, const struct span *s)
{
    buf_puts(d->out, "@@ ");
    put_range(d, '-', s->from[0], s->to[0]);
    buf_putc(d->out, ' ');
    put_range(d, '+', s->from[1], s->to[1]);
    buf_puts(d->out, " @@\n");
    size_t i = s->from[0];
    size_t j = s->from[1];
    while ((i < s->to[0] || j < s->to[1]) && !too_long(d)) {
        if (i < s->to[0] && d->marks[0][i])
            put_line(d, 0, '-', i++);
        else if (j < s->to[1] && d->marks[1][j])
            put_line(d, 1, '+', j++);
        else {
            put_line(d, 0, ' ', i++);
            j++;
        }
    }
}

/* The next run of changes at or behind the two lines: pass over what is common. */
static bool next_change(const struct diff *d, size_t at[2])
{
    while (at[0] < d->lines[0].n || at[1] < d->lines[1].n) {
        if ((at[0] < d->lines[0].n && d->marks[0][at[0]]) ||
            (at[1] < d->lines[1].n && d->marks[1][at[1]]))
            return true;
        at[0]++;
        at[1]++;
    }
    return false;
}

static void pass_change(const struct diff *d, size_t at[2])
{
    for (int side = 0; side < 2; side++) {
        while (at[side] < d->lines[side].n && d->marks[side][at[side]])
            at[side]++;
    }
}

static void put_hunks(struct diff *d)
{
    size_t at[2] = {0, 0};
    bool more = next_change(d, at);
    while (more && !too_long(d)) {
        size_t before = at[0] < DIFFOUT_CONTEXT ? at[0] : DIFFOUT_CONTEXT;
        struct span s = {.from = {at[0] - before, at[1] - before}};
        size_t end[2];
        do {
            pass_change(d, at);
            memcpy(end, at, sizeof(end));
            more = next_change(d, at);
        } while (more && at[0] - end[0] <= 2 * DIFFOUT_CONTEXT);
        size_t left = d->lines[0].n - end[0];
        size_t after = left < DIFFOUT_CONTEXT ? left : DIFFOUT_CONTEXT;
        s.to[0] = end[0] + after;
        s.to[1] = end[1] + after;
        put_hunk(d, &s);
    }
}

static int put_content(struct diff *d)
{
    find_middle(d);
    for (int i = 0; i < 2; i++) {
        if (lines_init_raw(&d->lines[i], d->middle[i].at, d->middle[i].len) < 0)
            return -EFBIG;
        d->marks[i] = mem_zalloc(d->lines[i].n, sizeof(bool));
    }
    linediff(&d->lines[0], &d->lines[1], d->marks[0], d->marks[1], d->budget);
    put_side(d->out, "--- ", "a/", d->side[0]->path);
    put_side(d->out, "+++ ", "b/", d->side[1]->path);
    put_hunks(d);
    return 0;
}

static bool same_bytes(const struct diff_side *a, const struct diff_side *b)
{
    size_t n = a->path != NULL ? a->bytes.len : 0;
    size_t m = b->path != NULL ? b->bytes.len : 0;
    return n == m && (n == 0 || memcmp(a->bytes.at, b->bytes.at, n) == 0);
}

int diffout_write(struct buf *out, const struct diff_side *old, const struct diff_side *new,
                  size_t max, uint64_t *budget)
{
    struct diff d = {.out = out, .max = max, .budget = budget, .side = {old, new}};
    bool both = old->path != NULL && new->path != NULL;
    bool moved = both && strcmp(old->path, new->path) != 0;
    bool same = same_bytes(old, new);
    if ((both && same && !moved && runs(old) == runs(new)) ||
        (old->path == NULL && new->path == NULL))
        return 0;
    put_header(&d, moved);
    int rc = same ? 0 : put_content(&d);
    for (int i = 0; i < 2; i++) {
        lines_fini(&d.lines[i]);
        free(d.marks[i]);
    }
    return rc == 0 && too_long(&d) ? -EFBIG : rc;
}
