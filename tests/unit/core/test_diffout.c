/* core/diffout, core/linediff: what a diff looks like, that it is short, and that apply and inverse
 * give back every byte, for thousands of random contents. */
#include "../../helpers/scratch.h"
#include "../../helpers/unit.h"
#include "base/mem.h"
#include "core/diffout.h"
#include "core/exact.h"
#include "core/linediff.h"
#include "core/udiff.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>

static int write_diff(struct buf *out, const struct diff_side *a, const struct diff_side *b,
                      size_t max)
{
    uint64_t budget = LINEDIFF_WORK_MAX;
    return diffout_write(out, a, b, max, &budget);
}

static struct diff_side side(const char *path, const char *text, mode_t mode)
{
    return (struct diff_side){path, {text, strlen(text)}, mode};
}

static void expect_diff(struct diff_side a, struct diff_side b, const char *want)
{
    autobuf out = BUF_INIT;
    assert_int_equal(write_diff(&out, &a, &b, 1u << 20), 0);
    assert_string_equal(buf_cstr(&out), want);
}

static void test_forms(void **state)
{
    (void)state;
    expect_diff(side("f", "a\nb\nc\n", 0644), side("f", "a\nx\nc\n", 0644),
                "diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n a\n-b\n+x\n c\n");
    expect_diff(side("f", "a", 0644), side("f", "a\n", 0644),
                "diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n"
                "\\ No newline at end of file\n+a\n");
    expect_diff(side(NULL, "", 0), side("n", "a\n", 0755),
                "diff --git a/n b/n\nnew file mode 100755\n--- /dev/null\n+++ b/n\n"
                "@@ -0,0 +1 @@\n+a\n");
    expect_diff(side("n", "", 0644), side(NULL, "", 0),
                "diff --git a/n b/n\ndeleted file mode 100644\n");
    expect_diff(side("x y", "a\n", 0644), side("\xc3\xa9\t\"", "b\n", 0755),
                "diff --git a/x y \"b/\\303\\251\\011\\\"\"\nold mode 100644\nnew mode 100755\n"
                "rename from x y\nrename to \"\\303\\251\\011\\\"\"\n--- a/x y\t\n"
                "+++ \"b/\\303\\251\\011\\\"\"\n@@ -1 +1 @@\n-a\n+b\n");
    expect_diff(side("f", "a\n", 0644), side("f", "a\n", 0644), "");
    /* Two changes that are near are one hunk; far ones are two. */
    expect_diff(
        side("f", "1\n2\n3\n4\n5\n6\n7\n8\n9\n", 0), side("f", "x\n2\n3\n4\n5\n6\n7\ny\n9\n", 0),
        "diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1,9 +1,9 @@\n-1\n+x\n 2\n 3\n 4\n 5\n 6\n"
        " 7\n-8\n+y\n 9\n");
    expect_diff(side("f", "1\n2\n3\n4\n5\n6\n7\n8\n9\n", 0),
                side("f", "x\n2\n3\n4\n5\n6\n7\n8\n", 0),
                "diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1,4 +1,4 @@\n-1\n+x\n 2\n 3\n 4\n"
                "@@ -6,4 +6,3 @@\n 6\n 7\n 8\n-9\n");
}

static void test_limits(void **state)
{
    (void)state;
    autobuf out = BUF_INIT;
    struct diff_side a = side("f", "a\n", 0);
    struct diff_side b = side("f", "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb\n", 0);
    assert_int_equal(write_diff(&out, &a, &b, 20), -EFBIG);
}

/* ---- shortest ---- */

static uint64_t seed;

static unsigned rnd(unsigned below)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (unsigned)(seed % below);
}

static void random_text(struct buf *b, unsigned n, unsigned kinds)
{
    static const char *const lines[] = {"a\n",      "b\n",        "c\r\n", "\n",
                                        "dd\xff\n", "\xc3\xa9\n", "-- \n", "+++ x\n"};
    for (unsigned i = 0; i < n; i++)
        buf_puts(b, lines[rnd(kinds)]);
    if (rnd(3) == 0)
        buf_puts(b, "end");
    if (rnd(20) == 0)
        buf_put(b, "\0x\n", 3);
}

/* Length of the longest common run of lines, by the plain table. */
static size_t common_lines(const struct lines *a, const struct lines *b)
{
    autofree size_t *row = mem_zalloc(b->n + 1, sizeof(size_t));
    for (size_t i = 0; i < a->n; i++) {
        size_t corner = 0;
        for (size_t j = 0; j < b->n; j++) {
            struct text x = lines_text(a, i);
            struct text y = lines_text(b, j);
            size_t above = row[j + 1];
            bool same = x.len == y.len && a->items[i].eol == b->items[j].eol &&
                        memcmp(x.at, y.at, x.len) == 0;
            if (same)
                row[j + 1] = corner + 1;
            else if (row[j] > row[j + 1])
                row[j + 1] = row[j];
            corner = above;
        }
    }
    return row[b->n];
}

static void test_shortest(void **state)
{
    (void)state;
    for (int i = 0; i < 3000; i++) {
        seed = 77 + (uint64_t)i;
        autobuf x = BUF_INIT;
        autobuf y = BUF_INIT;
        random_text(&x, rnd(40), 1 + rnd(8));
        random_text(&y, rnd(40), 1 + rnd(8));
        struct lines a;
        struct lines b;
        lines_init_raw(&a, buf_bytes(&x), x.len);
        lines_init_raw(&b, buf_bytes(&y), y.len);
        autofree bool *removed = mem_zalloc(a.n, sizeof(bool));
        autofree bool *added = mem_zalloc(b.n, sizeof(bool));
        uint64_t budget = LINEDIFF_WORK_MAX;
        linediff(&a, &b, removed, added, &budget);
        size_t kept = 0;
        for (size_t k = 0; k < a.n; k++)
            kept += !removed[k];
        if (kept != common_lines(&a, &b))
            fail_msg("round %d: %zu lines kept of %zu", i, kept, common_lines(&a, &b));
        lines_fini(&a);
        lines_fini(&b);
    }
}

static void test_bounded_time(void **state)
{
    (void)state;
    autobuf x = BUF_INIT;
    autobuf y = BUF_INIT;
    seed = 5;
    for (int i = 0; i < 200000; i++) {
        buf_printf(&x, "%u\n", rnd(1000));
        buf_printf(&y, "%u\n", rnd(1000));
    }
    struct diff_side a = {"f", {buf_bytes(&x), x.len}, 0};
    struct diff_side b = {"f", {buf_bytes(&y), y.len}, 0};
    autobuf out = BUF_INIT;
    clock_t before = clock();
    assert_int_equal(write_diff(&out, &a, &b, 64u << 20), 0);
    double seconds = (double)(clock() - before) / CLOCKS_PER_SEC;
    if (seconds > 60)
        fail_msg("%.1f s of CPU", seconds);
}

/* ---- there and back ---- */

static void expect_result(const struct patch_doc *d, const struct buf *from, const struct buf *to)
{
    autobuf out = BUF_INIT;
    uint64_t work = 0;
    bool moved = false;
    struct err e = {0};
    const struct patch_section *s = &d->sections[0];
    if (exact_apply("f", buf_bytes(from), from->len, s->hunks, s->n, &out, &work, &moved, &e) != 0)
        fail_msg("%s", e.message);
    assert_false(moved);
    assert_int_equal(out.len, to->len);
    assert_memory_equal(buf_bytes(&out), buf_bytes(to), to->len);
}

static void test_what_is_written_is_read(void **state)
{
    (void)state;
    for (int i = 0; i < 5000; i++) {
        seed = 1000 + (uint64_t)i;
        struct buf x[2] = {BUF_INIT, BUF_INIT};
        random_text(&x[0], rnd(i % 3 == 0 ? 300 : 60), 1 + rnd(8));
        random_text(&x[1], rnd(i % 3 == 0 ? 300 : 60), 1 + rnd(8));
        struct diff_side a = {"f", {buf_bytes(&x[0]), x[0].len}, 0};
        struct diff_side b = {"f", {buf_bytes(&x[1]), x[1].len}, 0};
        autobuf out = BUF_INIT;
        /* Rough ones too. */
        uint64_t budget = i % 3 == 0 ? 0 : LINEDIFF_WORK_MAX;
        assert_int_equal(diffout_write(&out, &a, &b, 1u << 20, &budget), 0);
        struct patch_doc d = {0};
        struct err e = {0};
        if (out.len > 0) {
            if (udiff_parse(buf_bytes(&out), out.len, PATCH_STRIP_AUTO, &d, &e) < 0)
                fail_msg("%s\n%s", e.message, buf_cstr(&out));
            expect_result(&d, &x[0], &x[1]);
        }
        patch_doc_fini(&d);
        buf_fini(&x[0]);
        buf_fini(&x[1]);
    }
}

/* A whole patch and its inverse, on disk: every byte and executable bit as it was. */
static void apply(struct scratch *s, const struct buf *text, bool inverse, struct patch_result *r)
{
    struct patch_request q = {
        .text = buf_bytes(text), .text_len = text->len, .want_diff = true, .want_inverse = inverse};
    struct err e = {0};
    if (patch_apply(&s->ws, &q, r, &e) < 0)
        fail_msg("%s: %s\n%.*s", err_info(e.code)->name, e.message, (int)text->len,
                 buf_bytes(text));
    assert_int_equal(r->status, PATCH_APPLIED);
}

#define N_FILES 6

struct world {
    struct buf content[N_FILES];
    bool there[N_FILES];
    mode_t mode[N_FILES];
};

static void file_name(int i, char out[16])
{
    snprintf(out, 16, i < 3 ? "f %d" : "d/\xc3\xa9%d", i);
}

static void take_world(struct scratch *s, struct world *w)
{
    for (int i = 0; i < N_FILES; i++) {
        char name[16];
        struct stat st;
        file_name(i, name);
        w->there[i] = fstatat(s->ws.root_fd, name, &st, 0) == 0;
        w->mode[i] = w->there[i] ? st.st_mode & 0111 : 0;
        w->content[i] = w->there[i] ? scratch_get(s, name) : (struct buf)BUF_INIT;
    }
}

static void expect_world(struct scratch *s, const struct world *w)
{
    struct world now;
    take_world(s, &now);
    for (int i = 0; i < N_FILES; i++) {
        assert_int_equal(now.there[i], w->there[i]);
        assert_int_equal(now.mode[i], w->mode[i]);
        assert_int_equal(now.content[i].len, w->content[i].len);
        assert_memory_equal(buf_bytes(&now.content[i]), buf_bytes(&w->content[i]),
                            now.content[i].len);
        buf_fini(&now.content[i]);
    }
}

/* A diff of git's form from the world to a random other one; and a move now and then. */
static void random_patch(const struct world *w, struct buf *out)
{
    int moved = (int)rnd(N_FILES);
    for (int i = 0; i < N_FILES; i++) {
        char name[16];
        autobuf b = BUF_INIT;
        file_name(i, name);
        random_text(&b, rnd(30), 1 + rnd(8));
        mode_t mode = rnd(2) ? 0755 : 0644;
        struct diff_side old = {
            w->there[i] ? name : NULL, {buf_bytes(&w->content[i]), w->content[i].len}, w->mode[i]};
        struct diff_side new = {rnd(4) > 0 ? name : NULL, {buf_bytes(&b), b.len}, mode};
        if (w->there[i] && i == moved && !w->there[(i + 1) % N_FILES]) {
            char to[16];
            file_name(++i % N_FILES, to);
            if (i == N_FILES)
                continue;
            new.path = to;
            assert_int_equal(write_diff(out, &old, &new, 1u << 20), 0);
            continue;
        }
        if (rnd(3) > 0)
            assert_int_equal(write_diff(out, &old, &new, 1u << 20), 0);
    }
}

static void test_there_and_back(void **state)
{
    struct scratch *s = *state;
    umask(022);
    for (int i = 0; i < 1500; i++) {
        seed = 4711 + (uint64_t)i;
        struct world before;
        struct world after;
        autobuf text = BUF_INIT;
        struct patch_result there = {0};
        struct patch_result back = {0};
        struct patch_result again = {0};
        take_world(s, &before);
        random_patch(&before, &text);
        if (text.len > 0) {
            apply(s, &text, true, &there);
            take_world(s, &after);
            assert_false(there.inverse_omitted);
            apply(s, &there.inverse, false, &back);
            expect_world(s, &before);
            /* The diff that was told does what the patch did. */
            apply(s, &there.diff, false, &again);
            expect_world(s, &after);
            for (int k = 0; k < N_FILES; k++)
                buf_fini(&after.content[k]);
        }
        for (int k = 0; k < N_FILES; k++)
            buf_fini(&before.content[k]);
        patch_result_fini(&there);
        patch_result_fini(&back);
        patch_result_fini(&again);
    }
    assert_int_equal(scratch_leftovers(s), 0);
}

/* The same for V4A, where sections follow each other; and with checking only. */
static void test_diff_of_v4a(void **state)
{
    struct scratch *s = *state;
    scratch_put(s, "x", "a\r\nb\r\nc");
    scratch_put(s, "y", "gone\n");
    static const char text[] = "*** Begin Patch\n*** Update File: x\n*** Move to: z\n-b\n+B\n"
                               "*** Delete File: y\n*** Add File: x\n+new\n*** End Patch\n";
    struct patch_request q = {.text = text,
                              .text_len = strlen(text),
                              .want_diff = true,
                              .want_inverse = true,
                              .check_only = true};
    struct patch_result r = {0};
    assert_int_equal(patch_apply(&s->ws, &q, &r, NULL), 0);
    assert_int_equal(r.status, PATCH_CHECKED);
    assert_string_equal(buf_cstr(&r.diff),
                        "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,3 +1 @@\n-a\r\n-b\r\n-c\n"
                        "\\ No newline at end of file\n+new\n"
                        "diff --git a/z b/z\nnew file mode 100644\n--- /dev/null\n+++ b/z\n"
                        "@@ -0,0 +1,3 @@\n+a\r\n+B\r\n+c\n\\ No newline at end of file\n"
                        "diff --git a/y b/y\ndeleted file mode 100644\n--- a/y\n+++ /dev/null\n"
                        "@@ -1 +0,0 @@\n-gone\n");
    patch_result_fini(&r);
    scratch_expect(s, "x", "a\r\nb\r\nc");
    q.check_only = false;
    assert_int_equal(patch_apply(&s->ws, &q, &r, NULL), 0);
    struct patch_result back = {0};
    apply(s, &r.inverse, false, &back);
    scratch_expect(s, "x", "a\r\nb\r\nc");
    scratch_expect(s, "y", "gone\n");
    assert_false(scratch_has(s, "z"));
    patch_result_fini(&r);
    patch_result_fini(&back);
}

static void delete_big(struct scratch *s, const char *line, struct buf *content,
                       struct patch_result *r)
{
    while (content->len <= 10u << 20)
        buf_puts(content, line);
    scratch_put_bytes(s, "big", buf_bytes(content), content->len);
    static const char text[] = "*** Begin Patch\n*** Delete File: big\n*** End Patch\n";
    struct patch_request q = {
        .text = text, .text_len = strlen(text), .want_inverse = true, .want_diff = true};
    assert_int_equal(patch_apply(&s->ws, &q, r, NULL), 0);
    assert_int_equal(r->status, PATCH_APPLIED);
    assert_true(r->diff_omitted);
    assert_int_equal(r->diff.len, 0);
}

static void test_a_large_inverse(void **state)
{
    struct scratch *s = *state;
    autobuf content = BUF_INIT;
    struct patch_result r = {0};
    struct patch_result back = {0};
    struct err e = {0};
    delete_big(s, "0123456789abcdef0123456789abcdef\n", &content, &r);
    assert_false(r.inverse_omitted);
    struct patch_request q = {.text = buf_bytes(&r.inverse), .text_len = r.inverse.len};
    assert_int_equal(patch_apply(&s->ws, &q, &back, &e), -1);
    assert_int_equal(e.code, ERR_LIMIT_EXCEEDED);
    q.is_inverse = true;
    assert_int_equal(patch_apply(&s->ws, &q, &back, &e), 0);
    autobuf after = scratch_get(s, "big");
    assert_int_equal(after.len, content.len);
    assert_memory_equal(buf_bytes(&after), buf_bytes(&content), content.len);
    patch_result_fini(&r);
    patch_result_fini(&back);
}

static void test_too_many_lines_for_an_inverse(void **state)
{
    autobuf content = BUF_INIT;
    struct patch_result r = {0};
    delete_big(*state, "\n", &content, &r);
    assert_true(r.inverse_omitted);
    assert_int_equal(r.inverse.len, 0);
    patch_result_fini(&r);
}

static int up_in_memory(void **state)
{
    return scratch_up_below(state, "/dev/shm");
}

#define S(f) cmocka_unit_test_setup_teardown(f, scratch_up, scratch_down)
#define M(f) cmocka_unit_test_setup_teardown(f, up_in_memory, scratch_down)

UNIT_MAIN(cmocka_unit_test(test_forms), cmocka_unit_test(test_limits),
          cmocka_unit_test(test_shortest), cmocka_unit_test(test_bounded_time),
          cmocka_unit_test(test_what_is_written_is_read), M(test_there_and_back),
          S(test_diff_of_v4a), S(test_a_large_inverse), S(test_too_many_lines_for_an_inverse))
