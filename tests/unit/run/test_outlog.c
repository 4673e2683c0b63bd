/* run/outlog: against a model that keeps every byte, in a random walk; and the edges one by one. */
#include "../../helpers/unit.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "run/outlog.h"

#define MODEL_MAX (4u << 20)

struct model {
    char *bytes;
    bool *is_stderr;
    size_t total;
};

static uint32_t next_random(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

static void model_append(struct model *m, enum run_stream stream, const char *bytes, size_t n)
{
    assert_true(m->total + n <= MODEL_MAX);
    memcpy(m->bytes + m->total, bytes, n);
    for (size_t i = 0; i < n; i++)
        m->is_stderr[m->total + i] = stream == RUN_STDERR;
    m->total += n;
}

/* The same answer, computed byte by byte. */
static void model_read(const struct model *m, uint64_t cursor, enum run_stream stream, size_t max,
                       struct buf *out, struct outlog_page *ret)
{
    uint64_t from = m->total > RUN_RING_BYTES ? m->total - RUN_RING_BYTES : 0;
    ret->lost = cursor < from;
    uint64_t at = ret->lost ? from : cursor;
    while (at < m->total && out->len < max) {
        if (stream == RUN_COMBINED || m->is_stderr[at] == (stream == RUN_STDERR))
            buf_putc(out, m->bytes[at]);
        at++;
    }
    ret->cursor = at;
}

static void compare(const struct outlog *l, const struct model *m, uint64_t cursor,
                    enum run_stream stream, size_t max)
{
    autobuf got = BUF_INIT, want = BUF_INIT;
    struct outlog_page a = {0}, b = {0};
    outlog_read(l, cursor, stream, max, false, false, &got, &a);
    model_read(m, cursor, stream, max, &want, &b);
    assert_int_equal(got.len, want.len);
    assert_memory_equal(buf_bytes(&got), buf_bytes(&want), got.len);
    assert_int_equal(a.cursor, b.cursor);
    assert_int_equal(a.lost, b.lost);
}

static void walk(uint32_t seed, uint32_t longest)
{
    struct model m = {mem_zalloc(MODEL_MAX, 1), mem_zalloc(MODEL_MAX, sizeof(bool)), 0};
    struct outlog l = {0};
    char *piece = mem_zalloc(longest, 1);
    for (int step = 0; step < 2000; step++) {
        size_t n = next_random(&seed) % longest;
        if (m.total + n > MODEL_MAX)
            break;
        for (size_t i = 0; i < n; i++)
            piece[i] = (char)next_random(&seed);
        enum run_stream stream = next_random(&seed) % 3 == 0 ? RUN_STDERR : RUN_STDOUT;
        outlog_append(&l, stream, piece, n);
        model_append(&m, stream, piece, n);
        assert_int_equal(l.total, m.total);
        uint64_t span = m.total + 10;
        uint64_t back = next_random(&seed) % (RUN_RING_BYTES + 1000);
        uint64_t cursor = back < m.total && step % 3 ? m.total - back : next_random(&seed) % span;
        compare(&l, &m, cursor, (enum run_stream)(step % 3), next_random(&seed) % 9000);
    }
    compare(&l, &m, 0, RUN_COMBINED, RUN_PAGE_MAX);
    free(piece);
    free(m.bytes);
    free(m.is_stderr);
    outlog_fini(&l);
}

static void test_random_walk(void **state)
{
    (void)state;
    walk(1, 7); /* many changes of stream */
    walk(2, 300);
    walk(3, 20000);
    walk(4, RUN_RING_BYTES + 5000); /* pieces larger than the ring */
}

static void test_memory_is_lazy(void **state)
{
    (void)state;
    struct outlog l = {0};
    assert_null(l.ring);
    outlog_append(&l, RUN_STDOUT, "x", 1);
    assert_int_equal(l.cap, 4096);
    assert_null(l.tags);
    for (int i = 0; i < 100000; i++)
        outlog_append(&l, RUN_STDOUT, "0123456789", 10);
    assert_int_equal(l.cap, RUN_RING_BYTES);
    outlog_fini(&l);
}

/* Read in pages of every small size and put together again; none ends inside a character. */
static void test_pages_keep_characters(void **state)
{
    (void)state;
    static const char text[] = "a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80z\xff\xfe\xe2\x82\xac\xc3";
    size_t n = sizeof(text) - 1;
    struct outlog l = {0};
    outlog_append(&l, RUN_STDOUT, text, n);
    for (size_t max = 1; max <= n + 2; max++) {
        autobuf all = BUF_INIT;
        uint64_t cursor = 0;
        while (cursor < n) {
            struct outlog_page page = {0};
            size_t before = all.len;
            outlog_read(&l, cursor, RUN_COMBINED, max, true, true, &all, &page);
            assert_true(all.len > before && all.len - before <= (max < 4 ? 4 : max));
            assert_int_equal(page.cursor, cursor + all.len - before);
            cursor = page.cursor;
            if (cursor < n)
                assert_int_equal(utf8_whole_prefix(text, cursor), cursor);
        }
        assert_memory_equal(buf_bytes(&all), text, n);
    }
    outlog_fini(&l);
}

static void test_unfinished_character_waits(void **state)
{
    (void)state;
    struct outlog l = {0};
    struct outlog_page page = {0};
    autobuf out = BUF_INIT;
    outlog_append(&l, RUN_STDOUT, "ok\xe2\x82", 4);
    outlog_append(&l, RUN_STDERR, "err", 3);
    outlog_read(&l, 0, RUN_STDOUT, 100, true, false, &out, &page);
    assert_string_equal(buf_cstr(&out), "ok");
    assert_int_equal(page.cursor, 2);
    outlog_append(&l, RUN_STDOUT, "\xac!", 2);
    outlog_read(&l, page.cursor, RUN_STDOUT, 100, true, false, &out, &page);
    assert_string_equal(buf_cstr(&out), "ok\xe2\x82\xac!");
    assert_int_equal(page.cursor, 9);
    buf_truncate(&out, 0);
    outlog_append(&l, RUN_STDOUT, "\xe2\x82", 2);
    outlog_read(&l, page.cursor, RUN_STDOUT, 100, true, true, &out, &page); /* no more will come */
    assert_int_equal(out.len, 2);
    outlog_fini(&l);
}

/* The held-back bytes may lie on both sides of bytes of the other stream. */
static void test_held_back_over_the_other_stream(void **state)
{
    (void)state;
    struct outlog l = {0};
    struct outlog_page page = {0};
    autobuf out = BUF_INIT;
    outlog_append(&l, RUN_STDOUT, "a\xf0", 2);
    outlog_append(&l, RUN_STDERR, "xx", 2);
    outlog_append(&l, RUN_STDOUT, "\x9f", 1);
    outlog_append(&l, RUN_STDERR, "yy", 2);
    outlog_append(&l, RUN_STDOUT, "\x98", 1);
    outlog_read(&l, 0, RUN_STDOUT, 100, true, false, &out, &page);
    assert_string_equal(buf_cstr(&out), "a");
    assert_int_equal(page.cursor, 1);
    outlog_append(&l, RUN_STDOUT, "\x80", 1);
    outlog_read(&l, page.cursor, RUN_STDOUT, 100, true, false, &out, &page);
    assert_string_equal(buf_cstr(&out), "a\xf0\x9f\x98\x80");
    outlog_fini(&l);
}

/* A loss does not leave half a character at the front. */
static void test_loss_ends_at_a_character(void **state)
{
    (void)state;
    struct outlog l = {0};
    struct outlog_page page = {0};
    autobuf out = BUF_INIT;
    for (unsigned i = 0; i < RUN_RING_BYTES / 3 + 2; i++)
        outlog_append(&l, RUN_STDOUT, "\xe2\x82\xac", 3);
    assert_int_not_equal(outlog_retained_from(&l) % 3, 0);
    outlog_read(&l, 0, RUN_COMBINED, 9, true, false, &out, &page);
    assert_true(page.lost);
    assert_string_equal(buf_cstr(&out), "\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac");
    buf_truncate(&out, 0);
    outlog_read(&l, 0, RUN_COMBINED, 9, false, false, &out, &page); /* raw bytes: all of them */
    assert_int_equal(page.cursor, outlog_retained_from(&l) + 9);
    outlog_fini(&l);
}

static void test_cursor_beyond_the_end(void **state)
{
    (void)state;
    struct outlog l = {0};
    struct outlog_page page = {0};
    autobuf out = BUF_INIT;
    outlog_read(&l, 7, RUN_COMBINED, 100, true, true, &out, &page);
    assert_int_equal(page.cursor, 7);
    outlog_append(&l, RUN_STDOUT, "abc", 3);
    outlog_read(&l, UINT64_MAX, RUN_STDERR, 100, true, true, &out, &page);
    assert_int_equal(page.cursor, UINT64_MAX);
    assert_int_equal(out.len, 0);
    assert_false(page.lost);
    outlog_fini(&l);
}

UNIT_MAIN(cmocka_unit_test(test_random_walk), cmocka_unit_test(test_memory_is_lazy),
          cmocka_unit_test(test_pages_keep_characters),
          cmocka_unit_test(test_unfinished_character_waits),
          cmocka_unit_test(test_held_back_over_the_other_stream),
          cmocka_unit_test(test_loss_ends_at_a_character),
          cmocka_unit_test(test_cursor_beyond_the_end))
