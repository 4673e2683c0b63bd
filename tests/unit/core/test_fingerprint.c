/* core/fingerprint: two requests are the same exactly when every field that changes the effect is.
 */
#include "../../helpers/unit.h"

#include "base/mem.h"
#include "core/fingerprint.h"
#include "wire/json.h"

#include <string.h>

/* A request in all its parts. Text and edits are never given together; here they make rows. */
struct sample {
    struct patch_expect expect[2];
    struct patch_edit edits[2];
    struct patch_request q;
};

static void fill(struct sample *s)
{
    *s = (struct sample){
        .expect = {{"a", "absent"}, {"b", "sha256:1"}},
        .edits = {{"p", "old", 3, "new", 3, 1}, {"r", "x", 1, "y", 1, 2}},
        .q = {.text = "text", .text_len = 4, .n_expect = 2, .n_edits = 2},
    };
    s->q.expect = s->expect;
    s->q.edits = s->edits;
}

static void print_of(const struct sample *s, const char *ws, char ret[LEDGER_HASH_LEN])
{
    fingerprint_patch(ws, &s->q, ret);
}

static void set_check_only(struct sample *s)
{
    s->q.check_only = true;
}
static void set_lax(struct sample *s)
{
    s->q.lax = true;
}
static void set_format(struct sample *s)
{
    s->q.format = PATCH_FORMAT_UNIFIED;
}
static void set_strip(struct sample *s)
{
    s->q.strip_plus_one = 1;
}
static void set_inverse(struct sample *s)
{
    s->q.is_inverse = true;
}
static void set_text(struct sample *s)
{
    s->q.text = "texT";
}
static void set_length(struct sample *s)
{
    s->q.text_len = 3;
}
static void set_no_text(struct sample *s)
{
    s->q.text = NULL, s->q.text_len = 0;
}
static void set_empty_text(struct sample *s)
{
    s->q.text_len = 0;
}
static void set_fewer_expect(struct sample *s)
{
    s->q.n_expect = 1;
}
static void set_expect_path(struct sample *s)
{
    s->expect[1].path = "c";
}
static void set_expect_version(struct sample *s)
{
    s->expect[0].version = "sha256:2";
}
static void set_fewer_edits(struct sample *s)
{
    s->q.n_edits = 1;
}
static void set_edit_path(struct sample *s)
{
    s->edits[0].path = "q";
}
static void set_edit_old(struct sample *s)
{
    s->edits[0].old = "olD";
}
static void set_edit_old_len(struct sample *s)
{
    s->edits[0].old_len = 2;
}
static void set_edit_new(struct sample *s)
{
    s->edits[1].replacement = "z";
}
static void set_edit_count(struct sample *s)
{
    s->edits[1].count = 3;
}

static void set_swapped_edits(struct sample *s)
{
    struct patch_edit first = s->edits[0];
    s->edits[0] = s->edits[1];
    s->edits[1] = first;
}

static void test_every_field_counts(void **state)
{
    (void)state;
    static void (*const rows[])(struct sample *) = {
        set_check_only,  set_lax,          set_format,        set_strip,
        set_inverse,     set_text,         set_length,        set_no_text,
        set_empty_text,  set_fewer_expect, set_expect_path,   set_expect_version,
        set_fewer_edits, set_edit_path,    set_edit_old,      set_edit_old_len,
        set_edit_new,    set_edit_count,   set_swapped_edits,
    };
    char seen[ARRAY_LEN(rows) + 2][LEDGER_HASH_LEN];
    struct sample s;
    size_t n = 0;
    fill(&s);
    print_of(&s, "ws", seen[n++]);
    print_of(&s, "other", seen[n++]);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        fill(&s);
        rows[i](&s);
        print_of(&s, "ws", seen[n++]);
    }
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < i; k++) {
            if (strcmp(seen[i], seen[k]) == 0)
                fail_msg("rows %zu and %zu look the same", i, k);
        }
    }
}

static void test_what_does_not_count(void **state)
{
    (void)state;
    struct sample a;
    struct sample b;
    char x[LEDGER_HASH_LEN];
    char y[LEDGER_HASH_LEN];
    fill(&a);
    fill(&b);
    b.expect[0] = a.expect[1]; /* the order of a map's members */
    b.expect[1] = a.expect[0];
    b.edits[0].count = 0; /* 1 by default */
    b.q.want_diff = true;
    b.q.want_inverse = true;
    print_of(&a, "ws", x);
    print_of(&b, "ws", y);
    assert_string_equal(x, y);
}

static void print_args(const char *text, char ret[LEDGER_HASH_LEN])
{
    static const char *const out[] = {"operation_key", "wait_ms", NULL};
    struct err e;
    autojson *args = NULL;
    assert_int_equal(json_parse(text, strlen(text), &args, &e), 0);
    fingerprint_arguments("ws", "exec_command", args, out, ret);
}

static void test_arguments(void **state)
{
    (void)state;
    static const struct {
        const char *a, *b;
        bool same;
    } rows[] = {
        {"{\"command\":[\"a\"]}", "{\"command\":[\"a\"],\"wait_ms\":5,\"operation_key\":\"k\"}",
         true},
        {"{\"command\":[\"a\"]}", "{\"command\":[\"a\"],\"tty\":false,\"cwd\":\"\",\"env\":{}}",
         true},
        {"{\"command\":[\"a\"]}", "{\"command\":[\"a\"],\"tty\":null}", true},
        {"{\"a\":1,\"b\":2}", "{\"b\":2,\"a\":1}", true},
        {"{\"env\":{\"A\":\"1\",\"B\":\"2\"}}", "{\"env\":{\"B\":\"2\",\"A\":\"1\"}}", true},
        {"{\"command\":[\"a\"]}", "{\"command\":[\"b\"]}", false},
        {"{\"command\":[\"a\",\"b\"]}", "{\"command\":[\"b\",\"a\"]}", false},
        {"{\"command\":[\"a b\"]}", "{\"command\":[\"a\",\"b\"]}", false},
        {"{\"command\":[\"a\"]}", "{\"command\":[\"a\",\"\"]}", false},
        {"{\"command\":[\"a\"]}", "{\"command\":[\"a\"],\"tty\":true}", false},
        {"{\"env\":{\"A\":\"1\"}}", "{\"env\":{\"A\":\"2\"}}", false},
        {"{\"env\":{\"A\":\"\"}}", "{\"env\":{\"A\":\"1\"}}", false},
        {"{\"env\":{\"A\":\"\",\"B\":\"1\"}}", "{\"env\":{\"B\":\"1\"}}", false},
        {"{\"x\":{\"a\":\"b\"}}", "{\"x\":[\"a\",\"b\"]}", false},
        {"{\"x\":1}", "{\"x\":\"1\"}", false},
        {"{\"timeout_ms\":1}", "{\"timeout_ms\":2}", false},
        {"{\"stdin\":\"a\\u0000b\"}", "{\"stdin\":\"a\"}", false},
        {"{\"stdin\":\"\"}", "{}", false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char x[LEDGER_HASH_LEN];
        char y[LEDGER_HASH_LEN];
        print_args(rows[i].a, x);
        print_args(rows[i].b, y);
        if ((strcmp(x, y) == 0) != rows[i].same)
            fail_msg("%s and %s: should be %s", rows[i].a, rows[i].b,
                     rows[i].same ? "the same" : "different");
    }
}

static void test_reverts(void **state)
{
    (void)state;
    char prints[5][LEDGER_HASH_LEN];
    fingerprint_revert("ws", "op-1", false, false, prints[0]);
    fingerprint_revert("ws", "op-2", false, false, prints[1]);
    fingerprint_revert("ws", "op-1", true, false, prints[2]);
    fingerprint_revert("ws", "op-1", false, true, prints[3]);
    fingerprint_revert("other", "op-1", false, false, prints[4]);
    for (size_t i = 0; i < ARRAY_LEN(prints); i++) {
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(prints[i], prints[k]);
    }
}

UNIT_MAIN(cmocka_unit_test(test_every_field_counts), cmocka_unit_test(test_what_does_not_count),
          cmocka_unit_test(test_arguments), cmocka_unit_test(test_reverts))
