/* run/clean: what a terminal would show (E20). */
#include "../../helpers/unit.h"
#include "base/mem.h"
#include "run/clean.h"

static void test_rows(void **state)
{
    (void)state;
    static const struct {
        const char *in, *out;
    } rows[] = {
        {"", ""},
        {"plain\ttext\n", "plain\ttext\n"},
        {"a\r\nb\r\n", "a\nb\n"},
        {"  1%\r 50%\r100%\n", "100%\n"},
        {"longer\rsh", "shnger"},
        {"longer\r\x1b[Ksh\n", "sh\n"},
        {"longer\rsh\x1b[K\n", "sh\n"},
        {"gone\x1b[2K\rhere\n", "here\n"},
        {"abc\x1b[1K!\n", "   !\n"},
        {"\x1b[1;31mred\x1b[0m\x1b[m\n", "red\n"},
        {"\x1b]0;title\x07text\n", "text\n"},
        {"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\\n", "link\n"},
        {"\x1b(Bascii\x1b=\x1b>\n", "ascii\n"},
        {"\x1b[?25lhidden\x1b[?25h\n", "hidden\n"},
        {"ab\bX\n", "aX\n"},
        {"\b\b\x1b[5Dx\n", "x\n"},
        {"a\x1b[3Cb\n", "a   b\n"},
        {"abcdef\x1b[2GX\n", "aXcdef\n"},
        {"\xc3\xa4\xe2\x82\xac\rx\n", "x\xe2\x82\xac\n"},
        {"bell\x07 nul\n", "bell nul\n"},
        {"cut\x1b[3", "cut"},
        {"cut\x1b", "cut"},
        {"\x1b]never ended\nnext\n", "\nnext\n"},
        {"\x1b[12\nx\n", "\nx\n"},
        {"bad\xff\xfe\n", "bad\xff\xfe\n"},
        {"\x1b[99999999999Cx\n", NULL}, /* bounded */
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        autobuf out = BUF_INIT;
        clean_text(rows[i].in, strlen(rows[i].in), &out);
        if (rows[i].out == NULL)
            assert_true(out.len <= CLEAN_LINE_MAX + 1);
        else
            assert_string_equal(buf_cstr(&out), rows[i].out);
    }
}

static void test_long_lines_come_whole(void **state)
{
    (void)state;
    size_t n = 3 * CLEAN_LINE_MAX + 17;
    char *text = mem_zalloc(n + 1, 1);
    memset(text, 'x', n);
    autobuf out = BUF_INIT;
    clean_text(text, n, &out);
    assert_int_equal(out.len, n);
    assert_string_equal(buf_cstr(&out), text);
    free(text);
}

UNIT_MAIN(cmocka_unit_test(test_rows), cmocka_unit_test(test_long_lines_come_whole))
