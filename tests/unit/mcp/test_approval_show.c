/* mcp/approval_show: nothing that a client wrote reaches a person other than as visible text. */
#include "../../helpers/unit.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "mcp/approval_show.h"
#include "wire/json.h"

#include <stdio.h>
#include <string.h>

static void test_text(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t n;
        const char *shown;
    } rows[] = {
        {"", 0, "\"\""},
        {"plain text", 10, "\"plain text\""},
        {"caf\xc3\xa9 \xe6\xbc\xa2", 9, "\"caf\xc3\xa9 \xe6\xbc\xa2\""},
        {"q\"b\\", 4, "\"q\\\"b\\\\\""},
        {"a\nb\tc\r", 6, "\"a\\nb\\tc\\x0d\""},
        {"\x1b[2J\x07\x7f", 6, "\"\\x1b[2J\\x07\\x7f\""},
        {"\0x", 2, "\"\\x00x\""},
        {"\xc2\x9b"
         "31m",
         5, "\"\\u{9b}31m\""},
        {"\xc2\xa0", 2, "\"\\u{a0}\""},
        {"\xe2\x80\xae", 3, "\"\\u{202e}\""},
        {"\xe2\x80\x8b", 3, "\"\\u{200b}\""},
        {"\xef\xbb\xbf", 3, "\"\\u{feff}\""},
        {"\xe3\x85\xa4", 3, "\"\\u{3164}\""},
        {"\xf3\xa0\x81\x81", 4, "\"\\u{e0041}\""},
        {"\xee\x80\x80", 3, "\"\\u{e000}\""},
        {"\xff\xc3", 2, "\"\\xff\\xc3\""},
        /* Hebrew, Arabic with its digits, an old script, an Arabic form: one letter would turn
         * round what stands beside it. */
        {"a \xd7\x90 -rf", 8, "\"a \\u{5d0} -rf\""},
        {"\xd8\xa7\xd9\xa1", 4, "\"\\u{627}\\u{661}\""},
        {"\xf0\x90\xa4\x80", 4, "\"\\u{10900}\""},
        {"\xef\xbb\xbc", 3, "\"\\u{fefc}\""},
        {"\xf0\x9e\xa4\x80", 4, "\"\\u{1e900}\""},
        {"\xe2\x81\xa7", 3, "\"\\u{2067}\""},
        {"\xed\xa0\x80", 3, "\"\\xed\\xa0\\x80\""},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        autobuf out = BUF_INIT;
        approval_show_text(&out, rows[i].bytes, rows[i].n, 0);
        assert_string_equal(buf_cstr(&out), rows[i].shown);
    }
}

/* Whatever the bytes: printable, one line, and UTF-8. */
static void test_every_character(void **state)
{
    (void)state;
    for (unsigned c = 0; c < 0x3000; c++) {
        unsigned char bytes[3] = {(unsigned char)c};
        size_t n = 1;
        if (c >= 0x80 && c < 0x800) {
            bytes[0] = (unsigned char)(0xc0 | c >> 6);
            bytes[1] = (unsigned char)(0x80 | (c & 0x3f));
            n = 2;
        } else if (c >= 0x800) {
            bytes[0] = (unsigned char)(0xe0 | c >> 12);
            bytes[1] = (unsigned char)(0x80 | (c >> 6 & 0x3f));
            bytes[2] = (unsigned char)(0x80 | (c & 0x3f));
            n = 3;
        }
        autobuf out = BUF_INIT;
        approval_show_text(&out, bytes, n, 0);
        const char *text = buf_cstr(&out);
        assert_true(utf8_valid(text, out.len));
        for (size_t i = 0; i < out.len; i++)
            assert_true((unsigned char)text[i] >= ' ' && text[i] != 0x7f);
        assert_null(strstr(text, "\xc2\x9b"));
    }
}

static void test_what_is_cut_is_counted(void **state)
{
    (void)state;
    autobuf out = BUF_INIT;
    approval_show_text(&out, "abcdefghij", 10, 4);
    assert_string_equal(buf_cstr(&out), "\"abcd\" ... 6 MORE BYTES ARE NOT SHOWN");
    /* A character is shown whole or not at all. */
    buf_truncate(&out, 0);
    approval_show_text(&out, "\xc3\xa9\xc3\xa9", 4, 1);
    assert_string_equal(buf_cstr(&out), "\"\xc3\xa9\" ... 2 MORE BYTES ARE NOT SHOWN");
}

static void show(struct buf *out, enum approval_tool tool, const char *arguments, bool whole)
{
    struct approval a = {.approval_id = (char *)"appr-1",
                         .workspace_id = (char *)"ws",
                         .tool = tool,
                         .arguments = (char *)arguments};
    buf_truncate(out, 0);
    approval_show_call(out, &a, whole);
}

static void test_command(void **state)
{
    (void)state;
    autobuf out = BUF_INIT;
    show(&out, APPROVAL_EXEC_COMMAND,
         "{\"workspace_id\":\"ws\",\"command\":[\"rm\",\"a b\"],\"cwd\":\"x\",\"env\":{\"A\":"
         "\"\\u001b\"},\"stdin\":\"y\",\"timeout_ms\":5}",
         false);
    assert_string_equal(buf_cstr(&out), "  tool: exec_command\n  workspace: \"ws\"\n"
                                        "  command: 2 words: \"rm\" \"a b\"\n  cwd: \"x\"\n"
                                        "  env: \"{\\\"A\\\":\\\"\\\\u001b\\\"}\"\n"
                                        "  stdin: \"y\"\n  timeout_ms: \"5\"\n");
    show(&out, APPROVAL_EXEC_COMMAND, "{\"command\":[\"sh\"]}", false);
    assert_non_null(strstr(buf_cstr(&out), "stdin: stays open"));
    show(&out, APPROVAL_EXEC_COMMAND, "{\"command\":[\"sh\"],\"stdin\":\"\",\"tty\":true}", false);
    assert_non_null(strstr(buf_cstr(&out), "stdin: stays open"));
}

static void test_patch(void **state)
{
    (void)state;
    autobuf out = BUF_INIT;
    show(&out, APPROVAL_APPLY_PATCH,
         "{\"patch\":\"*** Begin Patch\\n*** Add File: a\\n+x\\u001b[0m\\n*** Delete File: b\\n"
         "*** End Patch\\n\"}",
         false);
    const char *text = buf_cstr(&out);
    assert_non_null(strstr(text, "  files: 2\n    add \"a\"\n    delete \"b\"\n"));
    assert_non_null(strstr(text, "    \"+x\\x1b[0m\"\n"));
    show(&out, APPROVAL_APPLY_PATCH, "{\"patch\":\"--- a/f\\n+++ b/f\\n@@ -1 +1 @@\\n-a\\n+b\\n\"}",
         false);
    assert_non_null(strstr(buf_cstr(&out), "    update \"f\"\n"));
    /* Looks like the one and is sent as the other: the files are those that would change. */
    show(&out, APPROVAL_APPLY_PATCH,
         "{\"patch\":\"*** Begin Patch\\n*** Delete File: harmless\\n*** End Patch\\n"
         "--- a/f\\n+++ b/f\\n@@ -1 +1 @@\\n-a\\n+b\\n\",\"format\":\"unified\"}",
         false);
    assert_non_null(strstr(buf_cstr(&out), "  files: 1\n    update \"f\"\n"));
    show(&out, APPROVAL_APPLY_PATCH, "{\"patch\":\"nonsense\"}", false);
    assert_non_null(strstr(buf_cstr(&out), "no patch that can be read"));
    show(&out, APPROVAL_APPLY_PATCH, "{\"edits\":[{\"path\":\"p\",\"old\":\"a\",\"new\":\"b\"}]}",
         false);
    assert_non_null(strstr(buf_cstr(&out), "edits: \"[{"));
    show(&out, APPROVAL_APPLY_PATCH, "{\"scrubbed\":true}", false);
    assert_non_null(strstr(buf_cstr(&out), "not kept any more"));
}

/* Many long words, many members: bounded for a question, whole for who asks for it. */
static void test_bounded(void **state)
{
    (void)state;
    autobuf args = BUF_INIT;
    autobuf out = BUF_INIT;
    buf_puts(&args, "{\"command\":[\"sh\"");
    for (unsigned i = 0; i < 20000; i++)
        buf_printf(&args, ",\"word-%u\"", i);
    buf_puts(&args, "],\"cwd\":\"the-end\"}");
    show(&out, APPROVAL_EXEC_COMMAND, buf_cstr(&args), false);
    assert_true(out.len < APPROVAL_SHOW_MAX + 4096);
    assert_non_null(strstr(buf_cstr(&out), "MORE WORDS ARE NOT SHOWN"));
    assert_non_null(strstr(buf_cstr(&out), "cwd: \""));
    show(&out, APPROVAL_EXEC_COMMAND, buf_cstr(&args), true);
    assert_null(strstr(buf_cstr(&out), "NOT SHOWN"));
    assert_non_null(strstr(buf_cstr(&out), "\"word-19999\""));
}

/* In a list nothing is left out silently either. */
static void test_line(void **state)
{
    (void)state;
    autobuf args = BUF_INIT;
    autobuf out = BUF_INIT;
    buf_puts(&args, "{\"command\":[\"echo\",\"");
    for (unsigned i = 0; i < 150; i++)
        buf_putc(&args, 'x');
    buf_puts(&args, "\",\"--and\",\"worse\"]}");
    const struct approval a = {.approval_id = (char *)"appr-1",
                               .workspace_id = (char *)"ws",
                               .tool = APPROVAL_EXEC_COMMAND,
                               .arguments = (char *)buf_cstr(&args)};
    approval_show_line(&out, &a, 0);
    assert_non_null(strstr(buf_cstr(&out), "\"echo\" \"xxx"));
    assert_non_null(strstr(buf_cstr(&out), " ... 2 MORE WORDS ARE NOT SHOWN\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_every_character),
        cmocka_unit_test(test_what_is_cut_is_counted),
        cmocka_unit_test(test_command),
        cmocka_unit_test(test_patch),
        cmocka_unit_test(test_bounded),
        cmocka_unit_test(test_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
