/* core/edits: exact edits, by themselves and through a patch request (F1, F2, F4, F6, F14). */
#include "../../helpers/scratch.h"
#include "../../helpers/unit.h"
#include "base/mem.h"
#include "core/edits.h"

#include <stdio.h>

static const struct {
    const char *before;
    const char *old;
    const char *replacement;
    uint64_t count;
    const char *after; /* NULL: refused */
    const char *message;
} rows[] = {
    {"a b c", "b", "x", 0, "a x c", NULL},
    {"a b c", "b", "", 1, "a  c", NULL},
    {"aaa", "a", "$&\\1", 3, "$&\\1$&\\1$&\\1", NULL},
    {"aaaa", "aa", "b", 2, "bb", NULL},
    {"x", "x", "", 1, "", NULL},
    {"", "", "x\n", 1, "x\n", NULL},
    {"caf\xe9 x\r\n", "x\r\n", "y\r\n", 1, "caf\xe9 y\r\n", NULL},
    {"a\nb\na\n", "a", "x", 1, NULL, "occurs 2 times (line 1 and line 3), not 1"},
    {"a\na\na\n", "a", "x", 5, NULL, "occurs 3 times (line 1 and line 2, ...), not 5"},
    {"a\r\nb\r\n", "a\nb\n", "x", 1, NULL, "with CR LF for each LF"},
    {"one\ntwo\nthree\n", "two\nthrow\n", "x", 1, NULL, "line 3 has \"three\" where the edit has"},
    {"one\n", "zzz", "x", 1, NULL, "does not occur in the file."},
    {"x", "", "y", 1, NULL, "`old` is empty"},
    {"", "", "y", 2, NULL, "`old` is empty"},
    {"", "x", "y", 1, NULL, "does not occur"},
};

static void test_table(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct patch_edit x = {.path = "f",
                               .old = rows[i].old,
                               .old_len = strlen(rows[i].old),
                               .replacement = rows[i].replacement,
                               .replacement_len = strlen(rows[i].replacement),
                               .count = rows[i].count};
        autobuf out = BUF_INIT;
        struct err e = {0};
        int rc = edit_apply("f", rows[i].before, strlen(rows[i].before), &x, &out, &e);
        assert_int_equal(rc, rows[i].after != NULL ? 0 : -1);
        if (rows[i].after != NULL)
            assert_string_equal(buf_cstr(&out), rows[i].after);
        else if (e.code != ERR_INVALID_PATCH || strstr(e.message, rows[i].message) == NULL)
            fail_msg("row %zu: %s", i, e.message);
    }
}

static void test_a_result_that_is_too_large(void **state)
{
    (void)state;
    autobuf many = BUF_INIT;
    autobuf big = BUF_INIT;
    for (int i = 0; i < 1000; i++)
        buf_putc(&many, 'a');
    for (int i = 0; i < 100000; i++)
        buf_putc(&big, 'b');
    struct patch_edit x = {.path = "f",
                           .old = "a",
                           .old_len = 1,
                           .replacement = buf_bytes(&big),
                           .replacement_len = big.len,
                           .count = 1000};
    autobuf out = BUF_INIT;
    struct err e = {0};
    assert_int_equal(edit_apply("f", buf_bytes(&many), many.len, &x, &out, &e), -1);
    assert_int_equal(e.code, ERR_LIMIT_EXCEEDED);
    assert_int_equal(out.len, 0);
}

static struct patch_edit edit(const char *path, const char *old, const char *replacement)
{
    return (struct patch_edit){.path = path,
                               .old = old,
                               .old_len = strlen(old),
                               .replacement = replacement,
                               .replacement_len = strlen(replacement)};
}

static void test_a_request_is_all_or_nothing(void **state)
{
    struct scratch *s = *state;
    scratch_put(s, "f", "a\n");
    scratch_put(s, "g", "a\n");
    struct patch_edit edits[] = {edit("f", "a", "b"), edit("./f", "b", "c"), edit("g", "a", "z"),
                                 edit("new", "", "made\n")};
    struct patch_request q = {.edits = edits, .n_edits = ARRAY_LEN(edits)};
    struct patch_result r = {0};
    struct err e = {0};
    edits[2].old = "q";
    assert_int_equal(patch_apply(&s->ws, &q, &r, &e), -1);
    assert_int_equal(e.code, ERR_INVALID_PATCH);
    scratch_expect(s, "f", "a\n");
    edits[2].old = "a";
    assert_int_equal(patch_apply(&s->ws, &q, &r, &e), 0);
    assert_int_equal(r.status, PATCH_APPLIED);
    assert_int_equal(r.n_changes, 3);
    patch_result_fini(&r);
    scratch_expect(s, "f", "c\n");
    scratch_expect(s, "g", "z\n");
    scratch_expect(s, "new", "made\n");
}

static void test_requests_that_are_refused(void **state)
{
    struct scratch *s = *state;
    struct patch_edit one = edit("missing", "a", "b");
    struct patch_request q = {.edits = &one, .n_edits = 1};
    struct patch_result r = {0};
    struct err e = {0};
    assert_int_equal(patch_apply(&s->ws, &q, &r, &e), -1);
    assert_int_equal(e.code, ERR_FILE_NOT_FOUND);
    one.path = "../x";
    assert_int_equal(patch_apply(&s->ws, &q, &r, &e), -1);
    assert_int_equal(e.code, ERR_PATH_ESCAPE);
    one.path = ".git/x";
    assert_int_equal(patch_apply(&s->ws, &q, &r, &e), -1);
    assert_int_equal(e.code, ERR_PATH_PROTECTED);
    q.text = "x";
    q.text_len = 1;
    assert_int_equal(patch_apply(&s->ws, &q, &r, &e), -1);
    assert_int_equal(e.code, ERR_INVALID_ARGUMENT);
}

#define S(f) cmocka_unit_test_setup_teardown(f, scratch_up, scratch_down)

UNIT_MAIN(cmocka_unit_test(test_table), cmocka_unit_test(test_a_result_that_is_too_large),
          S(test_a_request_is_all_or_nothing), S(test_requests_that_are_refused))
