/* core/hunk, core/place, core/lines: what comes out, byte for byte (F1, F2, F4, F6, F8, F9, F14).
 */
#include "../../helpers/unit.h"
#include "base/mem.h"
#include "core/v4a.h"

#include <stdio.h>
#include <time.h>

struct outcome {
    int rc;
    bool fuzzy;
    struct buf out;
    struct err e;
};

/* Apply the body of one update section. */
static struct outcome apply_bytes(const char *before, size_t n, const char *hunks)
{
    struct outcome o = {.out = BUF_INIT};
    struct patch_doc d = {0};
    uint64_t work = 0;
    autofree char *text =
        mem_printf("*** Begin Patch\n*** Update File: f\n%s*** End Patch\n", hunks);
    if (v4a_parse(text, strlen(text), &d, &o.e) < 0)
        fail_msg("%s\n%s", o.e.message, text);
    o.rc = hunks_apply("f", before, n, d.sections[0].hunks, d.sections[0].n, &o.out, &work,
                       &o.fuzzy, &o.e);
    patch_doc_fini(&d);
    return o;
}

static struct outcome apply(const char *before, const char *hunks)
{
    return apply_bytes(before, strlen(before), hunks);
}

#define BOM "\xef\xbb\xbf"

static const struct {
    const char *before;
    const char *hunks;
    const char *after;
    bool fuzzy;
} rows[] = {
    /* Plain. */
    {"a\nb\nc\n", "@@\n a\n-b\n+x\n c\n", "a\nx\nc\n", false},
    {"a\nb\nc\n", "-b\n", "a\nc\n", false},
    {"a\nb\nc\n", " a\n+x\n", "a\nx\nb\nc\n", false},
    {"a\nb\nc\n", "+x\n a\n", "x\na\nb\nc\n", false},
    {"a\nb\nc\n", "-a\n-b\n-c\n+x\n", "x\n", false},
    {"a\nb\nc\nd\n", "@@\n-a\n+1\n@@\n-c\n+3\n", "1\nb\n3\nd\n", false},
    {"a\nb\n", "-a\n+$&\n-b\n+\\1 %s\n", "$&\n\\1 %s\n", false},
    {"a\nb\nc\n", "-a\n+1\n+2\n b\n-c\n", "1\n2\nb\n", false},
    {"a\nb\nc\nd\n", " a\n-b\n+1\n c\n-d\n+2\n+3\n", "a\n1\nc\n2\n3\n", false},
    /* Order and repetition: the first place behind the hunk before. */
    {"x\na\nx\n", "-x\n+y\n", "y\na\nx\n", false},
    {"x\na\nx\n", "-x\n+1\n@@\n-x\n+2\n", "1\na\n2\n", false},
    {"x\na\nx\n", " a\n-x\n+y\n", "x\na\ny\n", false},
    {"x\nx\nx\n", "@@\n-x\n+1\n@@\n-x\n+2\n@@\n-x\n+3\n", "1\n2\n3\n", false},
    /* Anchors. */
    {"f()\n  x\ng()\n  x\n", "@@ g()\n-  x\n+  y\n", "f()\n  x\ng()\n  y\n", false},
    {"A\n m\n  x\nB\n m\n  x\n", "@@ B\n@@ m\n-  x\n+  y\n", "A\n m\n  x\nB\n m\n  y\n", false},
    {"A\n m\n  x\n", "@@ A\n@@  m\n-  x\n", "A\n m\n", false},
    {"class A(B):\n x\n", "@@ class A\n- x\n+ y\n", "class A(B):\n y\n", true},
    {"f()\n x\n", "@@ f()\n f()\n- x\n+ y\n", "f()\n y\n", false},
    {"f()\nz\n", "@@ f()\n+new\n", "f()\nnew\nz\n", false},
    {"a\nf()\nz\n", "@@ f()\n+new\n@@\n-z\n", "a\nf()\nnew\n", false},
    /* Insertion only: at the end. */
    {"a\nb\n", "+c\n", "a\nb\nc\n", false},
    {"a\nb", "+c\n", "a\nb\nc", false},
    {"", "+x\n", "x\n", false},
    {"", "+x\n+y\n", "x\ny\n", false},
    {"\n", "+x\n", "\nx\n", false},
    /* End of file. */
    {"x\na\nx\n", "-x\n+y\n*** End of File\n", "x\na\ny\n", false},
    {"x\na\nx", "@@\n a\n-x\n+y\n*** End of File\n", "x\na\ny", false},
    {"a\n", "+b\n*** End of File\n", "a\nb\n", false},
    /* Missing final newline stays missing (F2). */
    {"a\nb", "-a\n+x\n", "x\nb", false},
    {"a\nb", "-b\n+x\n", "a\nx", false},
    {"a\nb", "-b\n+x\n+y\n", "a\nx\ny", false},
    {"a\nb", " b\n+x\n", "a\nb\nx", false},
    {"a\nb", "+x\n b\n", "a\nx\nb", false},
    {"a\nb", "-b\n", "a\n", false},
    {"a", "-a\n", "", false},
    {"a", "-a\n+b\n", "b", false},
    /* Empty content (F4). */
    {"x", "-x\n+\n", "", false},
    {"x\n", "-x\n", "", false},
    {"\n", "-\n+x\n", "x\n", false},
    {"\n\n\n", " \n-\n \n", "\n\n", false},
    /* CR LF and mixed endings (F1). */
    {"a\r\nb\r\nc\r\n", "-b\n+x\n", "a\r\nx\r\nc\r\n", false},
    {"a\r\nb\r\nc\r\n", " a\n+x\n", "a\r\nx\r\nb\r\nc\r\n", false},
    {"a\r\nb\r\nc\r\n", "-b\n", "a\r\nc\r\n", false},
    {"a\r\nb\r\n", "+x\n", "a\r\nb\r\nx\r\n", false},
    {"a\r\nb\nc\r\nd\n", "-b\n+1\n-c\n+2\n", "a\r\n1\n2\r\nd\n", false},
    {"a\r\nb\nc\r\n", "-a\n-b\n+1\n+2\n+3\n", "1\r\n2\n3\nc\r\n", false},
    {"a\r\nb", "-b\n+x\n+y\n", "a\r\nx\r\ny", false},
    {"a\r\nb", "+x\n", "a\r\nb\r\nx", false},
    {"a\nb\r\n", "-b\n+x\n", "a\nx\r\n", false},
    /* A patch whose lines carry the file's CR. */
    {"a\r\nb\r\n", "-b\r\n+x\r\n", "a\r\nx\r\n", false},
    {"a\r\nb\r\n", " a\r\n+x\r\n", "a\r\nx\r\nb\r\n", false},
    /* A lone CR is a byte like another. */
    {"a\rb\nc\n", "-c\n+d\n", "a\rb\nd\n", false},
    /* Byte order mark. */
    {BOM "a\nb\n", "-a\n+x\n", BOM "x\nb\n", false},
    {BOM "a\nb\n", "-" BOM "a\n+" BOM "x\n", BOM "x\nb\n", false},
    {BOM "a\n", "+x\n a\n", BOM "x\na\n", false},
    {BOM "a\n", "-a\n", BOM, false},
    {BOM, "+a\n", BOM "a\n", false},
    /* Bytes that are not UTF-8 elsewhere (F6). */
    {"const x = 1;\n// caf\xe9\n", "-const x = 1;\n+const x = 2;\n", "const x = 2;\n// caf\xe9\n",
     false},
    {"\xff\xfe\n\x80\nb\n", "-b\n", "\xff\xfe\n\x80\n", false},
    /* Blanks: the file's own context lines stay as they are. */
    {"a  \nb\n", " a\n-b\n+c\n", "a  \nc\n", true},
    {"a\t\nb\n", " a\n-b\n+c\n", "a\t\nc\n", true},
    {"    a\n    b\n", " a\n-b\n+    c\n", "    a\n    c\n", true},
    {"a\nb\n", " a  \n-b\n+c\n", "a\nc\n", true},
    /* Look-alikes (F8). */
    {"a \xe2\x80\x91 b\nc\n", " a - b\n-c\n+d\n", "a \xe2\x80\x91 b\nd\n", true},
    {"a\xc2\xa0"
     "b\nc\n",
     " a b\n-c\n+d\n",
     "a\xc2\xa0"
     "b\nd\n",
     true},
    {"a\xe2\x80\xaf"
     "b\nc\n",
     " a b\n-c\n+d\n",
     "a\xe2\x80\xaf"
     "b\nd\n",
     true},
    {"1 \xe2\x88\x92 2\nc\n", " 1 - 2\n-c\n+d\n", "1 \xe2\x88\x92 2\nd\n", true},
    {"\xe2\x80\x9cq\xe2\x80\x9d\nc\n", " \"q\"\n-c\n+d\n", "\xe2\x80\x9cq\xe2\x80\x9d\nd\n", true},
    {"it's\nc\n", " it\xe2\x80\x99s\n-c\n", "it's\n", true},
    {"a\xe3\x80\x80"
     "b\n",
     "-a b\n+x\n", "x\n", true},
    /* Exact wins over an earlier place that fits with tolerance only. */
    {" x\nb\nx\n", "-x\n+y\n", " x\nb\ny\n", false},
    /* Empty lines: context, or separators at a hunk's end. */
    {"a\n\nb\n", " a\n\n-b\n", "a\n\n", false},
    {"a\nb\n", "-a\n+x\n\n", "x\nb\n", false},
    {"a\n\nb\n", "-a\n+x\n\n", "x\n\nb\n", false},
    {"a\nb\n", "@@\n-a\n+x\n\n\n@@\n-b\n", "x\n", false},
    {"a\n", "+b\n\n", "a\nb\n", false},
};

static void test_table(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct outcome o = apply(rows[i].before, rows[i].hunks);
        if (o.rc < 0)
            fail_msg("row %zu: %s\n%s", i, o.e.message, rows[i].hunks);
        if (strcmp(buf_cstr(&o.out), rows[i].after) != 0)
            fail_msg("row %zu gives \"%s\", not \"%s\"", i, buf_cstr(&o.out), rows[i].after);
        if (o.fuzzy != rows[i].fuzzy)
            fail_msg("row %zu: fuzzy is %d\n%s", i, o.fuzzy, rows[i].hunks);
        buf_fini(&o.out);
    }
}

static const struct {
    const char *before;
    const char *hunks;
    const char *message;
} misses[] = {
    {"a\nb\nc\n", "@@\n-a\n@@\n a\n-x\n", "f: hunk 2 (line 5 of the patch) does not apply"},
    {"one\ntwo\nthree\n", " one\n-tow\n three\n",
     "its 3 old lines are not in the file from line 1 on; the nearest place is line 1: line 2 has "
     "\"two\" where the patch has \"tow\""},
    {"caf\xc3\xa9\n", "-cafe\xcc\x81\n",
     "line 1 has \"caf\\xc3\\xa9\" where the patch has \"cafe\\xcc\\x81\""},
    {"a\nb\n", " b\n-c\n", "the file ends after line 2 where the patch has \"c\""},
    {"x\ny\n", "-qqq\n",
     "its 1 old line is not in the file from line 1 on; nothing in the file resembles it"},
    {"", "-a\n-b\n", "nothing in the file resembles them"},
    {"a\nb\n", "@@\n-b\n@@\n-a\n",
     "it is at line 1, before the place of the hunk or \"@@\" line before it"},
    {"a\nb\n", "-a\n*** End of File\n", "is not the last line of the file"},
    {"def foo(x):\n p\n", "@@ def fob():\n- p\n",
     "no line is its \"@@\" line \"def fob():\"; the nearest is line 1, \"def foo(x):\""},
    {"ab\nac\n", "@@ a\n+x\n", "no line is its \"@@\" line \"a\""},
    {"x \na\nx  \n", "-x\n",
     "ambiguous: no place fits exactly, and ignoring white space or "
     "look-alike characters it fits at line 1 and at line 3"},
    {"\xe2\x80\x90\n\xe2\x80\x91\n", "--\n", "is ambiguous"},
};

static void test_misses(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(misses); i++) {
        struct outcome o = apply(misses[i].before, misses[i].hunks);
        if (o.rc == 0)
            fail_msg("row %zu applied: %s", i, buf_cstr(&o.out));
        assert_int_equal(o.e.code, ERR_INVALID_PATCH);
        if (strstr(o.e.message, misses[i].message) == NULL)
            fail_msg("row %zu: %s", i, o.e.message);
        buf_fini(&o.out);
    }
}

/* A difference far into a long line is shown around the place. */
static void test_miss_shows_the_differing_bytes(void **state)
{
    (void)state;
    char before[3000];
    char hunk[3010];
    memset(before, 'k', sizeof(before));
    memcpy(before + 2000, "\xe2\x80\x8b", 3);
    strcpy(before + sizeof(before) - 2, "\n");
    snprintf(hunk, sizeof(hunk), "-%s", before);
    memcpy(hunk + 2001, "???", 3);
    struct outcome o = apply(before, hunk);
    assert_int_equal(o.rc, -1);
    assert_non_null(strstr(o.e.message, "kk\\xe2\\x80\\x8bkk"));
    assert_non_null(strstr(o.e.message, "kk???kk"));
    buf_fini(&o.out);
}

/* A search that is not linear takes minutes of processor time for the inputs below. */
#define BOUND_SECONDS 60.0

static double seconds_since(clock_t begin)
{
    return (double)(clock() - begin) / CLOCKS_PER_SEC;
}

/* F14: a large file, a long hunk, and 50 places that almost fit. */
static void test_near_misses_take_bounded_time(void **state)
{
    (void)state;
    autobuf file = BUF_INIT;
    autobuf hunk = BUF_INIT;
    for (int k = 0; k < 50; k++) {
        for (int i = 0; i < 2000; i++)
            buf_printf(&file, "    same line of the block %d\n", i);
        buf_printf(&file, "end %d\n", k);
    }
    for (int i = 0; i < 2000; i++)
        buf_printf(&hunk, "     same line of the block %d\n", i);
    buf_puts(&hunk, "-end of it\n");
    clock_t begin = clock();
    struct outcome o = apply_bytes(buf_bytes(&file), file.len, buf_cstr(&hunk));
    assert_int_equal(o.rc, -1);
    assert_non_null(
        strstr(o.e.message, "line 2001 has \"end 0\" where the patch has \"end of it\""));
    assert_true(seconds_since(begin) < BOUND_SECONDS);
    buf_fini(&o.out);
}

/* The worst for a naive search: one line repeated, and a long hunk that differs at its end. */
static void test_repetition_takes_linear_time(void **state)
{
    (void)state;
    autobuf file = BUF_INIT;
    autobuf hunk = BUF_INIT;
    for (int i = 0; i < 1000000; i++)
        buf_puts(&file, "x\n");
    for (int i = 0; i < 500000; i++)
        buf_puts(&hunk, " x\n");
    buf_puts(&hunk, "-y\n");
    clock_t begin = clock();
    struct outcome o = apply_bytes(buf_bytes(&file), file.len, buf_cstr(&hunk));
    assert_int_equal(o.rc, -1);
    assert_true(seconds_since(begin) < BOUND_SECONDS);
    buf_fini(&o.out);
}

static void test_limits(void **state)
{
    (void)state;
    autobuf file = BUF_INIT;
    char *at = buf_reserve(&file, (size_t)LINES_MAX + 1);
    memset(at, '\n', (size_t)LINES_MAX + 1);
    buf_commit(&file, (size_t)LINES_MAX + 1);
    struct outcome o = apply_bytes(buf_bytes(&file), file.len, "-\n");
    assert_int_equal(o.rc, -1);
    assert_int_equal(o.e.code, ERR_LIMIT_EXCEEDED);
    assert_non_null(strstr(o.e.message, "LINES_MAX (4194304)"));
    buf_fini(&o.out);
}

/* Very many tolerant hunks for a long file: ended by the work limit, not after minutes. */
static void test_work_limit(void **state)
{
    (void)state;
    autobuf file = BUF_INIT;
    autobuf hunk = BUF_INIT;
    for (int i = 0; i < 100000; i++)
        buf_printf(&file, "line %d \n", i);
    for (int i = 0; i < 20000; i++)
        buf_printf(&hunk, "@@\n-line %d\n", i);
    struct outcome o = apply_bytes(buf_bytes(&file), file.len, buf_cstr(&hunk));
    assert_int_equal(o.rc, -1);
    assert_int_equal(o.e.code, ERR_LIMIT_EXCEEDED);
    assert_non_null(strstr(o.e.message, "LINES_WORK_MAX"));
    buf_fini(&o.out);
}

UNIT_MAIN(cmocka_unit_test(test_table), cmocka_unit_test(test_misses),
          cmocka_unit_test(test_miss_shows_the_differing_bytes),
          cmocka_unit_test(test_near_misses_take_bounded_time),
          cmocka_unit_test(test_repetition_takes_linear_time), cmocka_unit_test(test_limits),
          cmocka_unit_test(test_work_limit))
