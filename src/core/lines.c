/* core/lines: see lines.h. */
#include "core/lines.h"

#include "base/mem.h"

#include <errno.h>
#include <string.h>

/* ---- splitting ---- */

static int split(struct lines *l, size_t n, bool raw)
{
    const char *bytes = l->bytes;
    for (size_t at = l->bom; at < n;) {
        const char *lf = memchr(bytes + at, '\n', n - at);
        size_t end = lf != NULL ? (size_t)(lf - bytes) : n;
        bool crlf = !raw && lf != NULL && end > at && bytes[end - 1] == '\r';
        if (l->n == LINES_MAX)
            return -EFBIG;
        void *items = l->items;
        mem_grow(&items, &l->cap, l->n + 1, sizeof(struct line));
        l->items = items;
        l->items[l->n++] = (struct line){.at = (uint32_t)at,
                                         .len = (uint32_t)(end - at - crlf),
                                         .eol = (uint8_t)((lf != NULL) + crlf)};
        l->has_crlf |= crlf;
        at = end + (lf != NULL);
    }
    return 0;
}

int lines_init(struct lines *l, const char *bytes, size_t n)
{
    *l = (struct lines){.bytes = bytes};
    if (n >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0)
        l->bom = 3;
    return split(l, n, false);
}

int lines_init_raw(struct lines *l, const char *bytes, size_t n)
{
    *l = (struct lines){.bytes = bytes};
    return split(l, n, true);
}

void lines_fini(struct lines *l)
{
    free(l->items);
    for (size_t i = 0; i < LINES_LEVELS; i++)
        free(l->prints[i]);
    buf_fini(&l->scratch);
    *l = (struct lines){0};
}

struct text lines_text(const struct lines *l, size_t i)
{
    return (struct text){l->bytes + l->items[i].at, l->items[i].len};
}

struct text lines_ending(const struct lines *l, size_t i)
{
    if (i < l->n && l->items[i].eol == 0 && i > 0)
        i--;
    if (i >= l->n || l->items[i].eol == 0)
        return (struct text){"\n", 1};
    return (struct text){l->bytes + l->items[i].at + l->items[i].len, l->items[i].eol};
}

/* ---- levels ---- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v';
}

static struct text trim_end(struct text t)
{
    while (t.len > 0 && is_blank(t.at[t.len - 1]))
        t.len--;
    return t;
}

struct text text_trim(struct text t)
{
    t = trim_end(t);
    while (t.len > 0 && is_blank(t.at[0])) {
        t.at++;
        t.len--;
    }
    return t;
}

/* What a look-alike of three bytes (E2 xx xx or E3 80 80) folds to, or 0. */
static char fold_three(const unsigned char *p)
{
    static const struct {
        unsigned first;
        unsigned last;
        char as;
    } table[] = {
        {0x2002, 0x200a, ' '}, {0x2010, 0x2015, '-'}, {0x2018, 0x201b, '\''}, {0x201c, 0x201f, '"'},
        {0x202f, 0x202f, ' '}, {0x205f, 0x205f, ' '}, {0x2212, 0x2212, '-'},  {0x3000, 0x3000, ' '},
    };
    if ((p[0] != 0xe2 && p[0] != 0xe3) || (p[1] & 0xc0) != 0x80 || (p[2] & 0xc0) != 0x80)
        return 0;
    unsigned c = (p[0] & 15u) << 12 | (p[1] & 63u) << 6 | (p[2] & 63u);
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        if (table[i].first <= c && c <= table[i].last)
            return table[i].as;
    }
    return 0;
}

/* Append the folded form; it is never longer. */
static void fold(struct text t, struct buf *out)
{
    char *to = buf_reserve(out, t.len + 1);
    size_t n = 0;
    for (size_t i = 0; i < t.len;) {
        const unsigned char *p = (const unsigned char *)t.at + i;
        char as = t.len - i >= 3 ? fold_three(p) : 0;
        if (as != 0) {
            to[n++] = as;
            i += 3;
        } else if (t.len - i >= 2 && p[0] == 0xc2 && p[1] == 0xa0) {
            to[n++] = ' ';
            i += 2;
        } else {
            to[n++] = t.at[i++];
        }
    }
    buf_commit(out, n);
}

/* The bytes that count on that level; a folded text lies in `scratch`. */
static struct text reduce(enum lines_level level, struct text t, struct buf *scratch)
{
    switch (level) {
    case LINES_TRAILING:
        return trim_end(t);
    case LINES_TRIM:
        return text_trim(t);
    case LINES_FOLDED:
        buf_reset(scratch, SIZE_MAX);
        fold(t, scratch);
        return text_trim((struct text){buf_bytes(scratch), scratch->len});
    default:
        return t;
    }
}

bool lines_equal(struct lines *l, enum lines_level level, struct text a, struct text b)
{
    autobuf copy = BUF_INIT;
    a = reduce(level, a, &l->scratch);
    if (level == LINES_FOLDED) {
        buf_put(&copy, a.at, a.len);
        a.at = buf_bytes(&copy);
    }
    b = reduce(level, b, &l->scratch);
    return a.len == b.len && memcmp(a.at, b.at, a.len) == 0;
}

/* ---- fingerprints ---- */

static uint64_t print_of(struct text t)
{
    uint64_t h = 0x9e3779b97f4a7c15u ^ t.len;
    for (size_t i = 0; i < t.len; i += 8) {
        uint64_t word = 0;
        memcpy(&word, t.at + i, t.len - i < 8 ? t.len - i : 8);
        h = (h ^ word) * 0xff51afd7ed558ccdu;
        h ^= h >> 32;
    }
    return h;
}

static const uint64_t *prints_of(struct lines *l, enum lines_level level)
{
    if (l->prints[level] == NULL) {
        l->prints[level] = mem_zalloc(l->n, sizeof(uint64_t));
        for (size_t i = 0; i < l->n; i++)
            l->prints[level][i] = print_of(reduce(level, lines_text(l, i), &l->scratch));
    }
    return l->prints[level];
}

static uint64_t *run_prints(struct lines *l, enum lines_level level, const struct text *run,
                            size_t n)
{
    uint64_t *prints = mem_zalloc(n, sizeof(uint64_t));
    for (size_t i = 0; i < n; i++)
        prints[i] = print_of(reduce(level, run[i], &l->scratch));
    return prints;
}

/* ---- searching ---- */

static bool confirm(struct lines *l, enum lines_level level, const struct text *run, size_t n,
                    size_t at)
{
    for (size_t i = 0; i < n; i++) {
        if (!lines_equal(l, level, lines_text(l, at + i), run[i]))
            return false;
    }
    return true;
}

/* next[k]: how much of the run still matches when line k is the first that does not. */
static uint32_t *kmp_table(const uint64_t *run, size_t n)
{
    uint32_t *next = mem_zalloc(n + 1, sizeof(uint32_t));
    for (size_t i = 1, k = 0; i < n; i++) {
        while (k > 0 && run[i] != run[k])
            k = next[k];
        k += run[i] == run[k];
        next[i + 1] = (uint32_t)k;
    }
    return next;
}

size_t lines_find(struct lines *l, enum lines_level level, const struct text *run, size_t n,
                  size_t from)
{
    if (from > l->n || n > l->n - from)
        return LINES_NONE;
    const uint64_t *file = prints_of(l, level);
    autofree uint64_t *want = run_prints(l, level, run, n);
    autofree uint32_t *next = kmp_table(want, n);
    l->work += n;
    for (size_t i = from, k = 0; i < l->n; i++) {
        /* Most lines do not begin the run: skip them in the tightest loop there is. */
        size_t start = i;
        while (k == 0 && i + 1 < l->n && file[i] != want[0])
            i++;
        l->work += i - start + 1;
        while (k > 0 && file[i] != want[k])
            k = next[k];
        k += file[i] == want[k];
        if (k < n)
            continue;
        if (confirm(l, level, run, n, i + 1 - n))
            return i + 1 - n;
        k = next[k];
    }
    return LINES_NONE;
}

/* ---- the nearest place ---- */

/* Fingerprints to the first line of the run that has them: open addressing. */
struct votes {
    uint64_t *keys;
    uint32_t *line; /* + 1; 0 = empty */
    size_t mask;
};

static size_t votes_slot(const struct votes *v, uint64_t key)
{
    size_t i = key & v->mask;
    while (v->line[i] != 0 && v->keys[i] != key)
        i = (i + 1) & v->mask;
    return i;
}

static void votes_init(struct votes *v, const uint64_t *run, size_t n)
{
    size_t size = 16;
    while (size < 2 * n)
        size *= 2;
    *v = (struct votes){mem_zalloc(size, sizeof(uint64_t)), mem_zalloc(size, sizeof(uint32_t)),
                        size - 1};
    const uint64_t blank = print_of((struct text){"", 0});
    for (size_t i = 0; i < n; i++) {
        size_t slot = votes_slot(v, run[i]);
        if (run[i] != blank && v->line[slot] == 0) {
            v->keys[slot] = run[i];
            v->line[slot] = (uint32_t)i + 1;
        }
    }
}

size_t lines_nearest(struct lines *l, const struct text *run, size_t n)
{
    const uint64_t *file = prints_of(l, LINES_TRIM);
    autofree uint64_t *want = run_prints(l, LINES_TRIM, run, n);
    autofree uint32_t *count = mem_zalloc(l->n + 1, sizeof(uint32_t));
    struct votes v;
    votes_init(&v, want, n);
    size_t best = LINES_NONE;
    for (size_t i = 0; i < l->n; i++) {
        size_t line = v.line[votes_slot(&v, file[i])];
        if (line == 0 || line - 1 > i)
            continue;
        size_t at = i - (line - 1);
        count[at]++;
        if (best == LINES_NONE || count[at] > count[best])
            best = at;
    }
    free(v.keys);
    free(v.line);
    return best;
}
