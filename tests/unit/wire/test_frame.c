/* wire/frame and wire/base64: every cut, every bad length, every bad character. */
#include "../../helpers/unit.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "wire/base64.h"
#include "wire/frame.h"

#include <errno.h>

static void put_frame(struct buf *out, const char *text)
{
    size_t begun = frame_begin(out);
    buf_puts(out, text);
    assert_int_equal(frame_end(out, begun), 0);
}

/* However the stream is cut, the same messages come out. */
static void test_every_cut(void **state)
{
    (void)state;
    static const char *const texts[] = {"{}", "{\"a\":1}", "x"};
    autobuf all = BUF_INIT;
    for (size_t i = 0; i < 3; i++)
        put_frame(&all, texts[i]);
    for (size_t step = 1; step <= all.len; step++) {
        autobuf in = BUF_INIT;
        size_t seen = 0;
        for (size_t at = 0; at < all.len; at += step) {
            size_t n = all.len - at < step ? all.len - at : step;
            size_t len = 0;
            buf_put(&in, buf_bytes(&all) + at, n);
            while (frame_look(&in, &len) == 1) {
                assert_int_equal(len, strlen(texts[seen]));
                assert_memory_equal(buf_bytes(&in) + FRAME_HEAD, texts[seen], len);
                frame_consume(&in, len);
                seen++;
            }
        }
        assert_int_equal(seen, 3);
        assert_int_equal(in.len, 0);
    }
}

static void test_bad_lengths(void **state)
{
    (void)state;
    static const char *const heads[] = {"\0\0\0\0", "\x01\0\0\x01", "\xff\xff\xff\xff"};
    for (size_t i = 0; i < 3; i++) {
        autobuf in = BUF_INIT;
        size_t len = 0;
        buf_put(&in, heads[i], 4);
        assert_int_equal(frame_look(&in, &len), -EBADMSG);
    }
    autobuf largest = BUF_INIT;
    size_t len = 0;
    buf_put(&largest, "\x01\0\0\0", 4);
    assert_int_equal(frame_look(&largest, &len), 0); /* and no memory taken for it */
    assert_true(largest.cap < 4096);
    autobuf out = BUF_INIT;
    buf_puts(&out, "before");
    assert_int_equal(frame_end(&out, frame_begin(&out)), -EMSGSIZE);
    size_t begun = frame_begin(&out);
    memset(buf_reserve(&out, FRAME_MAX + 1), 'x', FRAME_MAX + 1);
    buf_commit(&out, FRAME_MAX + 1);
    assert_int_equal(frame_end(&out, begun), -EMSGSIZE);
    assert_string_equal(buf_cstr(&out), "before");
}

static void test_base64(void **state)
{
    (void)state;
    char bytes[256];
    for (size_t n = 0; n <= sizeof(bytes); n++) {
        autobuf text = BUF_INIT, back = BUF_INIT;
        struct jsonw w;
        for (size_t i = 0; i < n; i++)
            bytes[i] = (char)(i * 37 + n);
        jsonw_init(&w, &text);
        jsonw_base64(&w, bytes, n);
        assert_int_equal(base64_read(buf_bytes(&text) + 1, text.len - 2, &back), 0);
        assert_int_equal(back.len, n);
        assert_memory_equal(buf_bytes(&back), bytes, n);
    }
    static const char *const bad[] = {"a",    "ab",    "abc",  "a===", "====", "ab=c",    "=abc",
                                      "ab c", "ab\nc", "YWI_", "YR==", "YWJ=", "YQ==YQ=="};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        autobuf out = BUF_INIT;
        assert_int_equal(base64_read(bad[i], strlen(bad[i]), &out), -EINVAL);
        assert_int_equal(out.len, 0);
    }
}

UNIT_MAIN(cmocka_unit_test(test_every_cut), cmocka_unit_test(test_bad_lengths),
          cmocka_unit_test(test_base64))
