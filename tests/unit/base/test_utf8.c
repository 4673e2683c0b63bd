/* base/utf8: the table of RFC 3629, section 4, at its edges. */
#include "../../helpers/unit.h"
#include "base/utf8.h"

static const struct {
    const char *bytes;
    size_t len; /* of the character, 0 = none */
} rows[] = {
    {"\x7f", 1},
    {"\xc2\x80", 2},
    {"\xdf\xbf", 2},
    {"\xe0\xa0\x80", 3},
    {"\xed\x9f\xbf", 3},
    {"\xee\x80\x80", 3},
    {"\xef\xbf\xbf", 3},
    {"\xf0\x90\x80\x80", 4},
    {"\xf4\x8f\xbf\xbf", 4},
    {"\x80", 0},
    {"\xc0\x80", 0},
    {"\xc1\xbf", 0},
    {"\xe0\x9f\xbf", 0},
    {"\xed\xa0\x80", 0},
    {"\xf0\x8f\xbf\xbf", 0},
    {"\xf4\x90\x80\x80", 0},
    {"\xf5\x80\x80\x80", 0},
    {"\xc2", 0},
    {"\xe2\x82", 0},
    {"\xf0\x9f\x98", 0},
    {"\xe2\x28\xa1", 0},
};

static void test_characters(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        size_t n = strlen(rows[i].bytes);
        assert_int_equal(utf8_char_len((const unsigned char *)rows[i].bytes, n), rows[i].len);
        assert_int_equal(utf8_valid(rows[i].bytes, n), rows[i].len == n);
    }
    assert_true(utf8_valid("eight bytes and \xe2\x82\xac more", 22));
    assert_false(utf8_valid("eight bytes and \xe2\x82 more", 21));
    assert_true(utf8_valid("", 0));
}

static void test_whole_prefix(void **state)
{
    (void)state;
    const char *euro = "ab\xe2\x82\xac"; /* a, b, a character of 3 bytes */
    assert_int_equal(utf8_whole_prefix(euro, 5), 5);
    assert_int_equal(utf8_whole_prefix(euro, 4), 2);
    assert_int_equal(utf8_whole_prefix(euro, 3), 2);
    assert_int_equal(utf8_whole_prefix(euro, 2), 2);
    assert_int_equal(utf8_whole_prefix("x\xf0\x9f\x98", 4), 1);
    assert_int_equal(utf8_whole_prefix("x\xff", 2), 2);
    assert_int_equal(utf8_whole_prefix("\x80\x80\x80\x80", 4), 4);
    assert_int_equal(utf8_whole_prefix("x\xed\xa0", 3), 3);
    assert_int_equal(utf8_whole_prefix("", 0), 0);
}

UNIT_MAIN(cmocka_unit_test(test_characters), cmocka_unit_test(test_whole_prefix))
