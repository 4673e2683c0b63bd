/* core/linediff: see linediff.h. */
#include "core/linediff.h"

#include "base/mem.h"

#include <string.h>

/* Differences that one search looks for at least and at most. */
#define LIMIT_MIN 32
#define LIMIT_MAX 4096
/* No path leads there. */
#define NOWHERE (INT32_MIN / 2)

struct side {
    const struct lines *lines;
    size_t first; /* line of hashes[0]; what is before it, and behind the last, is common */
    uint64_t *hashes;
    bool *marks;
};

struct search {
    struct side a;
    struct side b;
    int32_t limit;
    uint64_t steps;
    int32_t *forward; /* 2 * limit + 3 */
    int32_t *backward;
};

struct box {
    size_t a0, a1, b0, b1;
};

static uint64_t hash_line(struct text t, uint8_t eol)
{
    uint64_t h = 0x9e3779b97f4a7c15u ^ (t.len << 1 | eol);
    for (size_t i = 0; i < t.len; i += 8) {
        uint64_t word = 0;
        memcpy(&word, t.at + i, t.len - i < 8 ? t.len - i : 8);
        h = (h ^ word) * 0xff51afd7ed558ccdu;
        h ^= h >> 32;
    }
    return h;
}

static void side_init(struct side *s, const struct lines *lines, size_t first, size_t end,
                      bool *marks)
{
    *s = (struct side){lines, first, mem_zalloc(end - first + 1, sizeof(uint64_t)), marks};
    for (size_t i = first; i < end; i++)
        s->hashes[i - first] = hash_line(lines_text(lines, i), lines->items[i].eol);
}

static bool same_line(const struct lines *a, size_t i, const struct lines *b, size_t j)
{
    const struct line *x = &a->items[i];
    const struct line *y = &b->items[j];
    return x->len == y->len && x->eol == y->eol &&
           memcmp(a->bytes + x->at, b->bytes + y->at, x->len) == 0;
}

static bool equal(const struct search *s, size_t i, size_t j)
{
    return s->a.hashes[i - s->a.first] == s->b.hashes[j - s->b.first] &&
           same_line(s->a.lines, i, s->b.lines, j);
}

/* One diagonal k of one direction: how far it comes with one difference more. */
static int32_t advance(struct search *s, const struct box *x, int32_t *v, int32_t k, bool back)
{
    int32_t n = (int32_t)(x->a1 - x->a0);
    int32_t m = (int32_t)(x->b1 - x->b0);
    int32_t down = v[k + 1];
    int32_t right = v[k - 1] + 1;
    int32_t i = down > right ? down : right;
    if (i < 0 || i > n || i - k > m || i - k < 0)
        return v[k] = NOWHERE;
    int32_t j = i - k;
    int32_t start = i;
    if (!back) {
        while (i < n && j < m && equal(s, x->a0 + (size_t)i, x->b0 + (size_t)j))
            i++, j++;
    } else {
        while (i < n && j < m && equal(s, x->a1 - 1 - (size_t)i, x->b1 - 1 - (size_t)j))
            i++, j++;
    }
    s->steps += (uint64_t)(i - start) + 1;
    return v[k] = i;
}

/* The point that the forward search of `d` differences brought furthest. */
static void furthest(const int32_t *v, int32_t d, const struct box *x, size_t *ret_a, size_t *ret_b)
{
    int32_t best = -1;
    for (int32_t k = -d; k <= d; k += 2) {
        if (v[k] < 0 || 2 * v[k] - k <= best)
            continue;
        best = 2 * v[k] - k;
        *ret_a = x->a0 + (size_t)v[k];
        *ret_b = x->b0 + (size_t)(v[k] - k);
    }
}

static bool in_range(int32_t k, int32_t d)
{
    return k >= -d && k <= d;
}

/* A point that a shortest script passes, or the best that was found within the limit. */
static void find_middle(struct search *s, const struct box *x, size_t *ret_a, size_t *ret_b)
{
    int32_t n = (int32_t)(x->a1 - x->a0);
    int32_t delta = n - (int32_t)(x->b1 - x->b0);
    int32_t *f = s->forward + s->limit + 1;
    int32_t *b = s->backward + s->limit + 1;
    for (int32_t d = 0; d <= s->limit; d++) {
        f[-d - 1] = f[d + 1] = b[-d - 1] = b[d + 1] = NOWHERE;
        if (d == 0)
            f[1] = b[1] = 0;
        for (int32_t k = -d; k <= d; k += 2) {
            int32_t i = advance(s, x, f, k, false);
            if ((delta & 1) != 0 && in_range(delta - k, d - 1) && i + b[delta - k] >= n) {
                *ret_a = x->a0 + (size_t)i;
                *ret_b = x->b0 + (size_t)(i - k);
                return;
            }
        }
        for (int32_t k = -d; k <= d; k += 2) {
            int32_t i = advance(s, x, b, k, true);
            if ((delta & 1) == 0 && in_range(delta - k, d) && i + f[delta - k] >= n) {
                *ret_a = x->a1 - (size_t)i;
                *ret_b = x->b1 - (size_t)(i - k);
                return;
            }
        }
    }
    furthest(f, s->limit, x, ret_a, ret_b);
}

static void trim(const struct search *s, struct box *x)
{
    while (x->a0 < x->a1 && x->b0 < x->b1 && equal(s, x->a0, x->b0))
        x->a0++, x->b0++;
    while (x->a0 < x->a1 && x->b0 < x->b1 && equal(s, x->a1 - 1, x->b1 - 1))
        x->a1--, x->b1--;
}

/* The smaller half is a call, the other one the next turn: the stack stays logarithmic. */
static void compare(struct search *s, struct box x)
{
    for (;;) {
        trim(s, &x);
        if (x.a0 == x.a1 || x.b0 == x.b1)
            break;
        size_t a = x.a0;
        size_t b = x.b0;
        find_middle(s, &x, &a, &b);
        struct box first = {x.a0, a, x.b0, b};
        struct box second = {a, x.a1, b, x.b1};
        bool first_is_smaller = a - x.a0 + (b - x.b0) < x.a1 - a + (x.b1 - b);
        compare(s, first_is_smaller ? first : second);
        x = first_is_smaller ? second : first;
    }
    for (size_t i = x.a0; i < x.a1; i++)
        s->a.marks[i] = true;
    for (size_t i = x.b0; i < x.b1; i++)
        s->b.marks[i] = true;
}

/* What is left of two files without the lines that both begin and end with: mostly little, so
 * nothing is hashed or kept for the rest. */
static struct box trim_ends(const struct lines *a, const struct lines *b)
{
    struct box x = {0, a->n, 0, b->n};
    while (x.a0 < x.a1 && x.b0 < x.b1 && same_line(a, x.a0, b, x.b0))
        x.a0++, x.b0++;
    while (x.a0 < x.a1 && x.b0 < x.b1 && same_line(a, x.a1 - 1, b, x.b1 - 1))
        x.a1--, x.b1--;
    return x;
}

void linediff(const struct lines *a, const struct lines *b, bool *removed, bool *added,
              uint64_t *budget)
{
    struct search s = {0};
    struct box x = trim_ends(a, b);
    size_t left = x.a1 - x.a0 + (x.b1 - x.b0) + 1;
    size_t lines = a->n + b->n + 1;
    size_t limit = *budget / lines;
    limit = limit < LIMIT_MIN ? LIMIT_MIN : limit > LIMIT_MAX ? LIMIT_MAX : limit;
    /* There are no more differences than lines. */
    s.limit = (int32_t)(limit < left ? limit : left);
    side_init(&s.a, a, x.a0, x.a1, removed);
    side_init(&s.b, b, x.b0, x.b1, added);
    s.forward = mem_zalloc((size_t)s.limit * 2 + 5, sizeof(int32_t));
    s.backward = mem_zalloc((size_t)s.limit * 2 + 5, sizeof(int32_t));
    compare(&s, x);
    *budget -= s.steps < *budget ? s.steps : *budget;
    free(s.a.hashes);
    free(s.b.hashes);
    free(s.forward);
    free(s.backward);
}
