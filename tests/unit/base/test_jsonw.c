/* base/jsonw: commas, escapes, broken UTF-8, base64, one line only. */
#include "../../helpers/unit.h"
#include "base/jsonw.h"

#include <math.h>

static void test_nesting_and_commas(void **state)
{
    (void)state;
    autobuf b = BUF_INIT;
    struct jsonw w;
    jsonw_init(&w, &b);
    jsonw_object(&w);
    jsonw_kint(&w, "a", -5);
    jsonw_key(&w, "b");
    jsonw_array(&w);
    jsonw_bool(&w, true);
    jsonw_null(&w);
    jsonw_object(&w);
    jsonw_object_end(&w);
    jsonw_array(&w);
    jsonw_array_end(&w);
    jsonw_array_end(&w);
    jsonw_kuint(&w, "c", UINT64_MAX);
    jsonw_kstr(&w, "d", NULL);
    jsonw_key(&w, "e");
    jsonw_double(&w, NAN);
    jsonw_object_end(&w);
    assert_string_equal(buf_cstr(&b), "{\"a\":-5,\"b\":[true,null,{},[]],"
                                      "\"c\":18446744073709551615,\"d\":null,\"e\":null}");
}

static void check_string(const char *bytes, size_t n, const char *json)
{
    autobuf b = BUF_INIT;
    struct jsonw w;
    jsonw_init(&w, &b);
    jsonw_strn(&w, bytes, n);
    assert_string_equal(buf_cstr(&b), json);
}

static void test_strings(void **state)
{
    (void)state;
    check_string("plain", 5, "\"plain\"");
    check_string("a\"b\\c\n\t\r\b\f", 10, "\"a\\\"b\\\\c\\n\\t\\r\\b\\f\"");
    check_string("\0\x1f\x7f", 3, "\"\\u0000\\u001f\\u007f\"");
    check_string("\xc3\xa9\xf0\x9f\x98\x80", 6, "\"\xc3\xa9\xf0\x9f\x98\x80\"");
    /* bytes that are no characters: one replacement each; a surrogate is none (RFC 3629) */
    check_string("ok\xff\xc3", 4, "\"ok\xef\xbf\xbd\xef\xbf\xbd\"");
    check_string("\xed\xa0\x80", 3, "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
}

/* The fast path for plain bytes must agree with a byte at a time, wherever the others stand. */
static void test_every_byte_at_every_place(void **state)
{
    (void)state;
    for (unsigned c = 0; c < 256; c++) {
        autobuf one = BUF_INIT;
        char byte = (char)c;
        jsonw_escape(&one, &byte, 1);
        for (size_t at = 0; at < 20; at++) {
            char text[21];
            memset(text, 'x', sizeof(text));
            text[at] = byte;
            autobuf b = BUF_INIT;
            jsonw_escape(&b, text, sizeof(text));
            assert_int_equal(b.len, 20 + one.len);
            assert_memory_equal(buf_bytes(&b), "xxxxxxxxxxxxxxxxxxxxx", at);
            assert_memory_equal(buf_bytes(&b) + at, buf_bytes(&one), one.len);
        }
    }
}

/* Characters of several bytes across the edges of the writer's blocks. */
static void test_characters_across_blocks(void **state)
{
    (void)state;
    for (size_t pad = 4090; pad < 4100; pad++) {
        autobuf in = BUF_INIT;
        autobuf out = BUF_INIT;
        memset(buf_reserve(&in, pad), 'x', pad);
        buf_commit(&in, pad);
        for (int i = 0; i < 3000; i++)
            buf_puts(&in, "\xf0\x9f\x98\x80\xe2\x82\xac");
        jsonw_escape(&out, buf_bytes(&in), in.len);
        assert_int_equal(out.len, in.len);
        assert_memory_equal(buf_bytes(&out), buf_bytes(&in), in.len);
    }
}

static void test_base64(void **state)
{
    (void)state;
    static const char *const want[] = {"\"\"", "\"/w==\"", "\"/+8=\"", "\"/+8A\"", "\"/+8AQQ==\""};
    for (size_t n = 0; n <= 4; n++) {
        autobuf b = BUF_INIT;
        struct jsonw w;
        jsonw_init(&w, &b);
        jsonw_base64(&w, "\xff\xef\x00\x41", n);
        assert_string_equal(buf_cstr(&b), want[n]);
    }
}

UNIT_MAIN(cmocka_unit_test(test_nesting_and_commas), cmocka_unit_test(test_strings),
          cmocka_unit_test(test_every_byte_at_every_place),
          cmocka_unit_test(test_characters_across_blocks), cmocka_unit_test(test_base64))
