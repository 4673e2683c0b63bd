/* core/v4a: the grammar, what is tolerated, what is refused and how it is told. */
#include "../../helpers/unit.h"
#include "base/mem.h"
#include "core/v4a.h"

#include <stdio.h>

#define P(body) "*** Begin Patch\n" body "*** End Patch\n"

/* A document as one line, to compare whole. */
static void describe(const struct patch_doc *d, struct buf *b)
{
    for (size_t i = 0; i < d->n; i++) {
        const struct patch_section *s = &d->sections[i];
        buf_printf(b, "%s %s", patch_kind_name(s->kind), s->path);
        if (s->move_to != NULL)
            buf_printf(b, ">%s", s->move_to);
        if (s->kind == PATCH_ADD)
            buf_printf(b, "={%.*s}", (int)s->content.len, buf_bytes(&s->content));
        for (size_t k = 0; k < s->n; k++) {
            const struct hunk *h = &s->hunks[k];
            buf_puts(b, "[");
            for (size_t a = 0; a < h->n_anchors; a++)
                buf_printf(b, "@%.*s|", (int)h->anchors[a].len, h->anchors[a].at);
            for (size_t l = 0; l < h->n; l++)
                buf_printf(b, "%c%.*s%s|", h->lines[l].op, (int)h->lines[l].len, h->lines[l].at,
                           h->lines[l].bare ? "~" : "");
            buf_puts(b, h->at_end ? "$]" : "]");
        }
        buf_puts(b, ";");
    }
}

static const struct {
    const char *text;
    const char *doc;
} good[] = {
    {P("*** Add File: a b\n+x\n+\n++y\n"), "add a b={x\n\n+y\n};"},
    {P("*** Add File: e\n"), "add e={};"},
    {P("*** Delete File: d/x\n"), "delete d/x;"},
    {P("*** Update File: f\n@@\n a\n-b\n+c\n"), "update f[ a|-b|+c|];"},
    {P("*** Update File: f\n-b\n+c\n"), "update f[-b|+c|];"},
    {P("*** Update File: f\n@@ class A\n@@     def b():\n-x\n"),
     "update f[@class A|@    def b():|-x|];"},
    {P("*** Update File: f\n@@ one\n-x\n@@\n-y\n@@ two\n+z\n"),
     "update f[@one|-x|][-y|][@two|+z|];"},
    {P("*** Update File: f\n@@ -1,2 +3,4 @@ int main\n-x\n"), "update f[-x|];"},
    {P("*** Update File: f\n@@ -1 +1 @@\n-x\n"), "update f[-x|];"},
    {P("*** Update File: f\n@@ -1 is a line\n-x\n"), "update f[@-1 is a line|-x|];"},
    {P("*** Update File: f\n@@\n-x\n+y\n*** End of File\n"), "update f[-x|+y|$];"},
    {P("*** Update File: f\n-x\n*** End of File\n\n+y\n"), "update f[-x|$][+y|];"},
    {P("*** Update File: f\n@@\n a\n\n-b\n\n"), "update f[ a| ~|-b| ~|];"},
    {P("*** Update File: f\n\n@@\n-b\n"), "update f[-b|];"},
    {P("*** Update File: f\n*** Move to: g\n@@\n-b\n"), "move f>g[-b|];"},
    {P("*** Update File: f\n*** Move to: g\n"), "move f>g;"},
    {P("*** Update File: f\n *** Delete File: x\n-*** y\n"),
     "update f[ *** Delete File: x|-*** y|];"},
    {P("*** Delete File: a\n\n*** Add File: b\n+x\n\n*** Update File: c\n-x\n"),
     "delete a;add b={x\n};update c[-x|];"},
    {"\n  \n" P("*** Delete File: a\n") "\n \n", "delete a;"},
    {"*** Begin Patch\n*** Delete File: a\n*** End Patch", "delete a;"},
    {"*** Begin Patch  \n*** Delete File: a  \n*** End Patch  ", "delete a;"},
    {"<<EOF\n" P("*** Delete File: a\n") "EOF\n", "delete a;"},
    {"<<'EOF'\n" P("*** Delete File: a\n") "EOF", "delete a;"},
    {"<<\"PATCH\"\n\n" P("*** Delete File: a\n") "\nPATCH\n", "delete a;"},
    {"*** Begin Patch\r\n*** Update File: f\r\n@@ x\r\n a\r\n-b\r\n+c\r\n\r\n*** End Patch\r\n",
     "update f[@x| a|-b|+c| ~|];"},
    {"*** Begin Patch\r\n*** Add File: f\r\n+a\r\n+b\r\n*** End Patch\r\n", "add f={a\nb\n};"},
    /* A patch with LF keeps a CR that belongs to a line. */
    {P("*** Update File: f\n-b\r\n+c\r\n"), "update f[-b\r|+c\r|];"},
};

static void test_good(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        struct patch_doc d = {0};
        struct err e = {0};
        if (v4a_parse(good[i].text, strlen(good[i].text), &d, &e) < 0)
            fail_msg("row %zu: %s\n%s", i, e.message, good[i].text);
        autobuf b = BUF_INIT;
        describe(&d, &b);
        if (strcmp(buf_cstr(&b), good[i].doc) != 0)
            fail_msg("row %zu: %s", i, buf_cstr(&b));
        patch_doc_fini(&d);
    }
}

static const struct {
    const char *text;
    const char *message;
} bad[] = {
    {"", "the patch is empty"},
    {"\n \n", "the patch is empty"},
    {"garbage", "line 1 of the patch: \"garbage\" is not \"*** Begin Patch\""},
    {"\n\ngarbage", "line 3 of the patch"},
    {"--- a/f\n+++ b/f\n", "this is a unified diff"},
    {"diff --git a/f b/f\n", "this is a unified diff"},
    {"*** Begin Patch", "is not \"*** End Patch\""},
    {"*** Begin Patch\n*** Delete File: a\n", "cut off"},
    {P("") "more", "or text follows"},
    {P(""), "the patch has no file sections"},
    {P("\n\n"), "the patch has no file sections"},
    {P("*** Rename File: a\n"), "line 2 of the patch: \"*** Rename File: a\" is not the header"},
    {P("+x\n"), "is not the header of a section"},
    {P("*** Add File: a\n+x\ny\n"), "line 4 of the patch: \"y\" is not the header"},
    {P("*** Add File:\n+x\n"), "is not the header of a section"},
    {P("*** Update File: f\n"), "f (line 2 of the patch): the update has no hunks"},
    {P("*** Update File: f\n@@\n"), "f: hunk 1 (line 3 of the patch) has no ' ', '-' or '+' lines"},
    {P("*** Update File: f\n@@ x\n\n\n"), "has no ' ', '-' or '+' lines"},
    {P("*** Update File: f\n*** Move to: g\n@@\n"), "has no ' ', '-' or '+' lines"},
    {P("*** Update File: f\n-x\nfoo\n"),
     "line 4 of the patch: \"foo\" does not belong into an update"},
    {P("*** Update File: f\n-x\n*** Move to: g\n"), "\"*** Move to: g\" is not the header"},
    {P("*** Delete File: f\n-x\n"), "is not the header"},
    {P("*** Delete File: a\n*** End Patch\n*** Delete File: b\n"),
     "line 3 of the patch: \"*** End Patch\" is not the header"},
    {"<<EOF\n" P("*** Delete File: a\n") "OTHER\n", "\"<<EOF\" is not \"*** Begin Patch\""},
};

static void test_bad(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct patch_doc d = {0};
        struct err e = {0};
        if (v4a_parse(bad[i].text, strlen(bad[i].text), &d, &e) == 0)
            fail_msg("row %zu was accepted:\n%s", i, bad[i].text);
        assert_int_equal(e.code, ERR_INVALID_PATCH);
        if (strstr(e.message, bad[i].message) == NULL)
            fail_msg("row %zu: %s", i, e.message);
        assert_null(d.sections);
    }
}

static void test_nul_in_a_path(void **state)
{
    (void)state;
    static const char text[] = P("*** Delete File: a\0b\n");
    struct patch_doc d = {0};
    struct err e = {0};
    assert_int_equal(v4a_parse(text, sizeof(text) - 1, &d, &e), -1);
    assert_non_null(strstr(e.message, "NUL byte"));
}

static void refuse_repeated(const char *head, const char *line, size_t times, const char *limit)
{
    autobuf b = BUF_INIT;
    buf_printf(&b, "*** Begin Patch\n%s", head);
    for (size_t i = 0; i < times; i++)
        buf_puts(&b, line);
    buf_puts(&b, "*** End Patch\n");
    struct patch_doc d = {0};
    struct err e = {0};
    assert_int_equal(v4a_parse(buf_bytes(&b), b.len, &d, &e), -1);
    assert_int_equal(e.code, ERR_LIMIT_EXCEEDED);
    assert_non_null(strstr(e.message, limit));
}

static void test_limits(void **state)
{
    (void)state;
    refuse_repeated("", "*** Delete File: a\n", PATCH_FILES_MAX + 1, "PATCH_FILES_MAX (4096)");
    refuse_repeated("*** Update File: f\n", "@@\n-\n", PATCH_HUNKS_MAX + 1,
                    "PATCH_HUNKS_MAX (65536)");
    refuse_repeated("*** Add File: f\n", "+0123456789abcdef\n", PATCH_TEXT_MAX / 16,
                    "PATCH_TEXT_MAX (8388608)");
}

UNIT_MAIN(cmocka_unit_test(test_good), cmocka_unit_test(test_bad),
          cmocka_unit_test(test_nul_in_a_path), cmocka_unit_test(test_limits))
