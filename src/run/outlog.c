/* run/outlog: see outlog.h. */
#include "run/outlog.h"

#include "base/mem.h"
#include "base/utf8.h"

#include <string.h>

#define OUTLOG_FIRST_BYTES 4096u
/* Longest UTF-8 character, and how many bytes of one a page may have to hold back. */
#define CHAR_MAX_BYTES 4u
#define HELD_MAX 3u

void outlog_fini(struct outlog *l)
{
    free(l->ring);
    free(l->tags);
    *l = (struct outlog){0};
}

uint64_t outlog_retained_from(const struct outlog *l)
{
    return l->total > RUN_RING_BYTES ? l->total - RUN_RING_BYTES : 0;
}

static void grow(struct outlog *l, size_t more)
{
    size_t want = l->total + more < RUN_RING_BYTES ? (size_t)l->total + more : RUN_RING_BYTES;
    if (want <= l->cap)
        return;
    size_t cap = l->cap ? l->cap : OUTLOG_FIRST_BYTES;
    while (cap < want)
        cap *= 2;
    l->ring = mem_realloc(l->ring, cap, 1);
    if (l->tags != NULL) {
        l->tags = mem_realloc(l->tags, cap / 8, 1);
        memset((char *)l->tags + l->cap / 8, 0, (cap - l->cap) / 8);
    }
    l->cap = cap;
}

/* Tag n bytes that lie in one piece of the ring. */
static void tag(struct outlog *l, size_t at, size_t n, bool is_stderr)
{
    while (n > 0) {
        size_t bit = at % 64;
        size_t step = n < 64 - bit ? n : 64 - bit;
        uint64_t mask = (step == 64 ? ~UINT64_C(0) : (UINT64_C(1) << step) - 1) << bit;
        if (is_stderr)
            l->tags[at / 64] |= mask;
        else
            l->tags[at / 64] &= ~mask;
        at += step;
        n -= step;
    }
}

void outlog_append(struct outlog *l, enum run_stream stream, const void *bytes, size_t n)
{
    const char *from = bytes;
    if (n > RUN_RING_BYTES) { /* only the newest part would stay */
        from += n - RUN_RING_BYTES;
        l->total += n - RUN_RING_BYTES;
        n = RUN_RING_BYTES;
    }
    grow(l, n);
    if (stream == RUN_STDERR && l->tags == NULL && n > 0)
        l->tags = mem_zalloc(l->cap / 8, 1);
    while (n > 0) {
        size_t at = (size_t)(l->total & (l->cap - 1));
        size_t step = n < l->cap - at ? n : l->cap - at;
        memcpy(l->ring + at, from, step);
        if (l->tags != NULL)
            tag(l, at, step, stream == RUN_STDERR);
        l->total += step;
        from += step;
        n -= step;
    }
}

/* Length of the run of one stream that starts at `offset`, up to `end` and within one piece of the
 * ring. */
static size_t run_length(const struct outlog *l, uint64_t offset, uint64_t end, bool *ret_stderr)
{
    size_t at = (size_t)(offset & (l->cap - 1));
    size_t limit = l->cap - at < end - offset ? l->cap - at : (size_t)(end - offset);
    *ret_stderr = l->tags != NULL && (l->tags[at / 64] >> (at % 64) & 1) != 0;
    if (l->tags == NULL)
        return limit;
    uint64_t same = *ret_stderr ? ~UINT64_C(0) : 0;
    size_t n = 0;
    while (n < limit) {
        size_t bit = (at + n) % 64;
        uint64_t differs = (l->tags[(at + n) / 64] ^ same) >> bit;
        if (differs != 0) {
            n += (size_t)__builtin_ctzll(differs);
            break;
        }
        n += 64 - bit;
    }
    return n < limit ? n : limit;
}

/* The offsets of the last bytes of a page, for giving them back. */
struct tail {
    uint64_t offsets[HELD_MAX];
};

static void tail_note(struct tail *t, uint64_t offset, size_t n)
{
    for (size_t i = n > HELD_MAX ? n - HELD_MAX : 0; i < n; i++) {
        memmove(t->offsets, t->offsets + 1, sizeof(t->offsets) - sizeof(t->offsets[0]));
        t->offsets[HELD_MAX - 1] = offset + i;
    }
}

/* Behind a loss the log may begin inside a character; what is left of it is part of the loss. */
static uint64_t skip_cut_char(const struct outlog *l, uint64_t at)
{
    uint64_t limit = at + HELD_MAX;
    while (at < limit && at < l->total && (l->ring[at & (l->cap - 1)] & 0xc0) == 0x80)
        at++;
    return at;
}

void outlog_read(const struct outlog *l, uint64_t cursor, enum run_stream stream, size_t max,
                 bool whole_chars, bool final, struct buf *out, struct outlog_page *ret)
{
    uint64_t from = outlog_retained_from(l);
    size_t before = out->len;
    struct tail tail = {{0}};
    bool lost = cursor < from;
    uint64_t at = lost ? from : cursor;
    if (lost && whole_chars)
        at = skip_cut_char(l, at);
    if (whole_chars && max < CHAR_MAX_BYTES)
        max = CHAR_MAX_BYTES;
    while (at < l->total && out->len - before < max) {
        bool is_stderr = false;
        size_t n = run_length(l, at, l->total, &is_stderr);
        if (stream == RUN_COMBINED || is_stderr == (stream == RUN_STDERR)) {
            size_t room = max - (out->len - before);
            n = n < room ? n : room;
            buf_put(out, l->ring + (at & (l->cap - 1)), n);
            tail_note(&tail, at, n);
        }
        at += n;
    }
    size_t len = out->len - before;
    size_t whole = len;
    if (whole_chars && !(final && at == l->total))
        whole = utf8_whole_prefix(buf_bytes(out) + before, len);
    if (whole < len) {
        at = tail.offsets[HELD_MAX - (len - whole)];
        buf_truncate(out, before + whole);
    }
    *ret = (struct outlog_page){at, lost};
}
