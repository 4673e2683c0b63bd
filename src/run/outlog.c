/* run/outlog: see outlog.h. */
#include "run/outlog.h"

#include "base/mem.h"
#include "base/scan.h"
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
    free(l->marks);
    spill_fini(&l->spill);
    *l = (struct outlog){.spill.budget = l->spill.budget};
}

static uint64_t ring_from(const struct outlog *l)
{
    return l->total > RUN_RING_BYTES ? l->total - RUN_RING_BYTES : 0;
}

/* The offset itself when that byte is there, else the next one that is. */
static uint64_t next_retained(const struct outlog *l, uint64_t offset)
{
    uint64_t ring = ring_from(l);
    uint64_t next = 0;
    if (offset >= ring || spill_has(&l->spill, offset, &next))
        return offset;
    return next < ring ? next : ring;
}

/* A dropped byte may lie before the tail and, after a failed write, behind it. */
uint64_t outlog_retained_from(const struct outlog *l)
{
    uint64_t ring = ring_from(l);
    uint64_t end = 0;
    uint64_t from = 0;
    while (from < ring) {
        uint64_t at = next_retained(l, from);
        if (at >= ring || (spill_has(&l->spill, at, &end) && end >= ring))
            return at;
        from = end;
    }
    return from;
}

uint64_t outlog_dropped(const struct outlog *l)
{
    uint64_t ring = ring_from(l);
    uint64_t dropped = 0;
    for (uint64_t at = 0; at < ring;) {
        uint64_t next = next_retained(l, at);
        dropped += next - at;
        at = next;
        if (at < ring)
            spill_has(&l->spill, at, &at);
    }
    return dropped;
}

/* ---- time ---- */

void outlog_mark(struct outlog *l, uint64_t ms)
{
    const struct outlog_mark *last = l->n_marks > 0 ? &l->marks[l->n_marks - 1] : NULL;
    if (last != NULL && (l->total == last->offset || ms < last->ms + l->mark_gap_ms + 1))
        return;
    if (l->n_marks == OUTLOG_MARKS_MAX) {
        for (size_t i = 0; i < OUTLOG_MARKS_MAX / 2; i++)
            l->marks[i] = l->marks[2 * i];
        l->n_marks = OUTLOG_MARKS_MAX / 2;
        l->mark_gap_ms = (ms - l->marks[0].ms) / (OUTLOG_MARKS_MAX / 2);
    }
    void *items = l->marks;
    mem_grow(&items, &l->cap_marks, l->n_marks + 1, sizeof(*l->marks));
    l->marks = items;
    l->marks[l->n_marks++] = (struct outlog_mark){l->total, ms};
}

uint64_t outlog_time(const struct outlog *l, uint64_t offset)
{
    size_t low = 0;
    size_t high = l->n_marks;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (l->marks[middle].offset <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low == 0 || offset >= l->total ? 0 : l->marks[low - 1].ms;
}

/* ---- writing ---- */

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

/* All output passes here. */
static uint32_t count_lines(const char *bytes, size_t n)
{
    uint32_t lines = 0;
    size_t i = 0;
    while (n - i >= SCAN_BYTES) {
        size_t step = n - i < SCAN_COUNT_MAX ? n - i : SCAN_COUNT_MAX;
        step -= step % SCAN_BYTES;
        lines += (uint32_t)scan_count(bytes + i, step, '\n');
        i += step;
    }
    for (; i < n; i++)
        lines += bytes[i] == '\n';
    return lines;
}

/* The oldest whole block of the ring is about to be overwritten: count it, and keep it elsewhere.
 */
static void spill_block(struct outlog *l)
{
    size_t at = (size_t)(l->counted_to & (l->cap - 1));
    const uint64_t *tags = l->tags == NULL ? NULL : l->tags + at / 64;
    struct spill_block about = {.lines_before = l->lines_counted};
    about.lines = count_lines(l->ring + at, SPILL_BLOCK);
    (void)spill_put(&l->spill, l->ring + at, tags, &about);
    l->lines_counted += about.lines;
    l->counted_to += SPILL_BLOCK;
}

static void make_room(struct outlog *l, size_t n)
{
    while (l->total + n > l->counted_to + RUN_RING_BYTES)
        spill_block(l);
}

/* They are in the ring, in one piece. */
void outlog_commit(struct outlog *l, enum run_stream stream, size_t n)
{
    if (stream == RUN_STDERR && l->tags == NULL && n > 0)
        l->tags = mem_zalloc(l->cap / 8, 1);
    if (l->tags != NULL)
        tag(l, (size_t)(l->total & (l->cap - 1)), n, stream == RUN_STDERR);
    l->total += n;
}

char *outlog_room(struct outlog *l, size_t *ret_n)
{
    if (l->cap < RUN_RING_BYTES)
        return NULL;
    size_t at = (size_t)(l->total & (l->cap - 1));
    *ret_n = l->cap - at < SPILL_BLOCK ? l->cap - at : SPILL_BLOCK;
    make_room(l, *ret_n);
    return l->ring + at;
}

/* At most SPILL_BLOCK bytes. */
static void append_piece(struct outlog *l, enum run_stream stream, const char *from, size_t n)
{
    grow(l, n);
    make_room(l, n);
    while (n > 0) {
        size_t at = (size_t)(l->total & (l->cap - 1));
        size_t step = n < l->cap - at ? n : l->cap - at;
        memcpy(l->ring + at, from, step);
        outlog_commit(l, stream, step);
        from += step;
        n -= step;
    }
}

void outlog_append(struct outlog *l, enum run_stream stream, const void *bytes, size_t n)
{
    const char *from = bytes;
    while (n > 0) {
        size_t step = n < SPILL_BLOCK ? n : SPILL_BLOCK;
        append_piece(l, stream, from, step);
        from += step;
        n -= step;
    }
}

/* ---- reading ---- */

/* Bytes that lie in one piece, from the ring or from the file. */
struct piece {
    const char *bytes;
    size_t n;
    const uint64_t *tags; /* NULL = all of stdout */
    size_t bit;           /* of the first byte in tags */
};

/* Room for a piece of the file; allocated when one is read. */
struct room {
    char *bytes;
    uint64_t *tags;
};

static void room_fini(struct room *r)
{
    free(r->bytes);
    free(r->tags);
}

static bool get_spilled(const struct outlog *l, uint64_t offset, struct room *room,
                        struct piece *ret)
{
    size_t n = SPILL_BLOCK - (size_t)(offset % SPILL_BLOCK);
    const struct spill_block *block = spill_block_at(&l->spill, offset);
    if (room->bytes == NULL)
        room->bytes = mem_realloc(NULL, SPILL_BLOCK, 1);
    if (spill_read(&l->spill, offset, room->bytes, n) < 0)
        return false;
    *ret = (struct piece){room->bytes, n, NULL, 0};
    if (block->tags == SPILL_ALL_STDOUT)
        return true;
    if (room->tags == NULL)
        room->tags = mem_realloc(NULL, SPILL_TAG_WORDS, sizeof(uint64_t));
    if (spill_read_tags(&l->spill, offset, room->tags) < 0)
        return false;
    ret->tags = room->tags;
    ret->bit = (size_t)(offset % SPILL_BLOCK);
    return true;
}

/* What is at a retained offset. A file that cannot be read any more is as good as dropped. */
static bool get_piece(const struct outlog *l, uint64_t offset, struct room *room, struct piece *ret)
{
    if (offset < ring_from(l))
        return get_spilled(l, offset, room, ret);
    size_t at = (size_t)(offset & (l->cap - 1));
    uint64_t left = l->total - offset;
    *ret =
        (struct piece){l->ring + at, l->cap - at < left ? l->cap - at : (size_t)left, l->tags, at};
    return true;
}

/* Length of the run of one stream at `from` of the piece. */
static size_t run_length(const struct piece *p, size_t from, bool *ret_stderr)
{
    size_t limit = p->n - from;
    *ret_stderr = false;
    if (p->tags == NULL)
        return limit;
    size_t at = p->bit + from;
    *ret_stderr = (p->tags[at / 64] >> (at % 64) & 1) != 0;
    uint64_t same = *ret_stderr ? ~UINT64_C(0) : 0;
    size_t n = 0;
    while (n < limit) {
        size_t bit = (at + n) % 64;
        uint64_t differs = (p->tags[(at + n) / 64] ^ same) >> bit;
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
static size_t cut_char(const struct piece *p)
{
    size_t n = 0;
    while (n < HELD_MAX && n < p->n && ((unsigned char)p->bytes[n] & 0xc0) == 0x80)
        n++;
    return n;
}

/* A page in the making. */
struct reading {
    enum run_stream stream;
    size_t max;
    struct buf *out;
    size_t before; /* bytes of `out` that are not ours */
    uint64_t at;
    struct tail tail;
};

static bool is_full(const struct reading *r)
{
    return r->out->len - r->before >= r->max;
}

/* Take what is asked for out of a piece that begins at r->at. */
static void take(struct reading *r, const struct piece *p, size_t from)
{
    while (from < p->n && !is_full(r)) {
        bool is_stderr = false;
        size_t n = run_length(p, from, &is_stderr);
        if (r->stream == RUN_COMBINED || is_stderr == (r->stream == RUN_STDERR)) {
            size_t room = r->max - (r->out->len - r->before);
            n = n < room ? n : room;
            buf_put(r->out, p->bytes + from, n);
            tail_note(&r->tail, r->at, n);
        }
        from += n;
        r->at += n;
    }
}

/* Go over a dropped part, unless the page has something already. False = the page ends here. */
static bool jump(const struct outlog *l, struct reading *r, bool *lost)
{
    uint64_t next = next_retained(l, r->at);
    if (next == r->at)
        return true;
    if (r->out->len > r->before)
        return false;
    *lost = true;
    r->at = next;
    return true;
}

/* Of both streams, and what is asked for is in the file: straight to where it belongs. */
static bool take_spilled(const struct outlog *l, struct reading *r)
{
    uint64_t end = 0;
    if (r->stream != RUN_COMBINED || r->at >= ring_from(l) || !spill_has(&l->spill, r->at, &end))
        return false;
    size_t room = r->max - (r->out->len - r->before);
    size_t n = SPILL_BLOCK - (size_t)(r->at % SPILL_BLOCK);
    n = n < room ? n : room;
    if (spill_read(&l->spill, r->at, buf_reserve(r->out, n), n) < 0)
        return false;
    buf_commit(r->out, n);
    tail_note(&r->tail, r->at, n);
    r->at += n;
    return true;
}

static void fill(const struct outlog *l, struct reading *r, bool whole_chars, bool *lost)
{
    __attribute__((cleanup(room_fini))) struct room room = {0};
    while (r->at < l->total && !is_full(r)) {
        uint64_t asked = r->at;
        struct piece p;
        if (take_spilled(l, r))
            continue;
        if (!jump(l, r, lost))
            return;
        if (!get_piece(l, r->at, &room, &p)) {
            if (r->out->len > r->before)
                return;
            *lost = true;
            r->at = ring_from(l);
            continue;
        }
        size_t skip = r->at != asked && whole_chars ? cut_char(&p) : 0;
        r->at += skip;
        take(r, &p, skip);
    }
}

void outlog_read(const struct outlog *l, uint64_t cursor, enum run_stream stream, size_t max,
                 bool whole_chars, bool final, struct buf *out, struct outlog_page *ret)
{
    struct reading r = {stream, max, out, out->len, cursor, {{0}}};
    bool lost = false;
    if (whole_chars && max < CHAR_MAX_BYTES)
        r.max = CHAR_MAX_BYTES;
    fill(l, &r, whole_chars, &lost);
    size_t len = out->len - r.before;
    size_t whole = len;
    if (whole_chars && !(final && r.at == l->total))
        whole = utf8_whole_prefix(buf_bytes(out) + r.before, len);
    if (whole < len) {
        r.at = r.tail.offsets[HELD_MAX - (len - whole)];
        buf_truncate(out, r.before + whole);
    }
    uint64_t start = lost ? next_retained(l, cursor) : cursor;
    *ret = (struct outlog_page){.start = start, .cursor = r.at, .lost = lost};
}

/* ---- lines ---- */

/* Behind the n-th newline (from 1) of these bytes: how many bytes that is, or 0. */
static size_t behind_newline(const char *bytes, size_t n, uint64_t nth)
{
    const char *at = bytes;
    const char *end = bytes + n;
    while (nth-- > 0) {
        at = memchr(at, '\n', (size_t)(end - at));
        if (at == NULL)
            return 0;
        at++;
    }
    return (size_t)(at - bytes);
}

/* Newlines in what the ring holds of [from, to). */
static uint64_t lines_in_ring(const struct outlog *l, uint64_t from, uint64_t to)
{
    uint64_t lines = 0;
    while (from < to) {
        struct piece p;
        get_piece(l, from, NULL, &p);
        size_t n = p.n < to - from ? p.n : (size_t)(to - from);
        lines += count_lines(p.bytes, n);
        from += n;
    }
    return lines;
}

/* Behind the n-th newline of the ring; the end when there are not so many. */
static uint64_t find_in_ring(const struct outlog *l, uint64_t nth)
{
    for (uint64_t at = ring_from(l); at < l->total;) {
        struct piece p;
        get_piece(l, at, NULL, &p);
        size_t found = behind_newline(p.bytes, p.n, nth);
        if (found > 0)
            return at + found;
        nth -= count_lines(p.bytes, p.n);
        at += p.n;
    }
    return l->total;
}

static uint64_t find_in_block(const struct outlog *l, uint64_t at, uint64_t nth)
{
    __attribute__((cleanup(room_fini))) struct room room = {0};
    struct piece p;
    if (!get_piece(l, at, &room, &p))
        return at;
    size_t n = p.n < SPILL_BLOCK ? p.n : SPILL_BLOCK;
    return at + behind_newline(p.bytes, n, nth);
}

/* In a block of the file; what was dropped gives the byte before the next that is there. */
static uint64_t find_in_file(const struct outlog *l, uint64_t line)
{
    uint64_t end = 0;
    for (uint64_t at = 0; at < l->spill.end; at += SPILL_BLOCK) {
        if (!spill_has(&l->spill, at, &end)) {
            at = (end < l->spill.end ? end : l->spill.end) - SPILL_BLOCK;
            continue;
        }
        const struct spill_block *b = spill_block_at(&l->spill, at);
        if (b->lines_before >= line)
            return at - 1;
        if (b->lines_before + b->lines >= line)
            return find_in_block(l, at, line - b->lines_before);
    }
    return ring_from(l) - 1;
}

uint64_t outlog_find_line(const struct outlog *l, uint64_t line)
{
    if (line == 0)
        return 0;
    uint64_t before_ring = l->lines_counted - lines_in_ring(l, ring_from(l), l->counted_to);
    return line > before_ring ? find_in_ring(l, line - before_ring) : find_in_file(l, line);
}

uint64_t outlog_find_tail(const struct outlog *l, uint64_t n)
{
    if (n == 0 || l->total == 0)
        return l->total;
    uint64_t lines = l->lines_counted + lines_in_ring(l, l->counted_to, l->total);
    if (l->ring[(l->total - 1) & (l->cap - 1)] != '\n')
        lines++;
    return outlog_find_line(l, lines > n ? lines - n : 0);
}
