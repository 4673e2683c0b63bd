/* core/find in all its forms, core/ignore: ignore files as git reads them (compared with git
 * itself), kinds, details, depth, case. */
#include "../../helpers/scratch.h"
#include "../../helpers/unit.h"
#include "base/mem.h"
#include "core/files.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static struct find_page find(struct scratch *s, struct find_request q)
{
    struct find_page p = {0};
    struct err e = {0};
    q.limit = q.limit > 0 ? q.limit : FILES_FIND_MAX;
    if (files_find_request(&s->ws, &q, &p, &e) < 0)
        fail_msg("%s", e.message);
    return p;
}

static void expect(struct scratch *s, struct find_request q, const char *want)
{
    struct find_page p = find(s, q);
    autobuf b = BUF_INIT;
    for (size_t i = 0; i < p.paths.len; i++)
        buf_printf(&b, "%s ", p.paths.items[i]);
    assert_string_equal(buf_cstr(&b), want);
    assert_false(p.incomplete);
    find_page_fini(&p);
}

static void put_tree(struct scratch *s)
{
    static const char *const paths[] = {"a.c", "B.C", "d/x.c", "d/e/y.c", "d/e/f/z.c", "d-e"};
    for (size_t i = 0; i < ARRAY_LEN(paths); i++)
        scratch_put(s, paths[i], "12345");
    scratch_mkdir(s, "empty");
    assert_int_equal(symlinkat("a.c", s->ws.root_fd, "link.c"), 0);
    assert_int_equal(mkfifoat(s->ws.root_fd, "fifo.c", 0600), 0);
}

static void test_case_and_depth(void **state)
{
    struct scratch *s = *state;
    put_tree(s);
    expect(s, (struct find_request){.glob = "*.c"}, "a.c d/e/f/z.c d/e/y.c d/x.c ");
    expect(s, (struct find_request){.glob = "*.C", .fold_case = true},
           "B.C a.c d/e/f/z.c d/e/y.c d/x.c ");
    expect(s, (struct find_request){.glob = "D/[X-Z].c", .fold_case = true}, "d/x.c ");
    expect(s, (struct find_request){.glob = "*.c", .max_depth = 1}, "a.c ");
    expect(s, (struct find_request){.glob = "*.c", .max_depth = 2}, "a.c d/x.c ");
    expect(s, (struct find_request){.glob = "*.c", .max_depth = 3}, "a.c d/e/y.c d/x.c ");
}

static void test_kinds_and_order(void **state)
{
    struct scratch *s = *state;
    put_tree(s);
    expect(s, (struct find_request){.kinds = FIND_KIND(FIND_DIRECTORY)}, "d/ d/e/ d/e/f/ empty/ ");
    expect(s,
           (struct find_request){.kinds = FIND_KIND(FIND_DIRECTORY) | FIND_KIND(FIND_FILE),
                                 .max_depth = 2},
           "B.C a.c d-e d/ d/e/ d/x.c empty/ ");
    expect(s, (struct find_request){.kinds = FIND_KIND(FIND_DIRECTORY), .max_depth = 1},
           "d/ empty/ ");
    expect(s, (struct find_request){.kinds = FIND_KIND(FIND_LINK) | FIND_KIND(FIND_OTHER)},
           "fifo.c link.c ");
    expect(s, (struct find_request){.kinds = FIND_KIND(FIND_DIRECTORY), .glob = "e*"},
           "d/e/ empty/ ");
}

static void test_details(void **state)
{
    struct scratch *s = *state;
    put_tree(s);
    struct timespec times[2] = {{1000, 5}, {1000, 5}};
    assert_int_equal(utimensat(s->ws.root_fd, "d/x.c", times, 0), 0);
    assert_int_equal(fchmodat(s->ws.root_fd, "d/x.c", 0750, 0), 0);
    struct find_page p =
        find(s, (struct find_request){.glob = "*.c", .details = true, .kinds = 15});
    size_t seen = 0;
    for (size_t i = 0; i < p.paths.len; i++) {
        assert_true(p.entries[i].known);
        if (strcmp(p.paths.items[i], "d/x.c") == 0) {
            assert_int_equal(p.entries[i].kind, FIND_FILE);
            assert_int_equal(p.entries[i].size, 5);
            assert_int_equal(p.entries[i].mode, 0750);
            assert_int_equal(p.entries[i].modified_ns, 1000000000005);
            seen++;
        }
        if (strcmp(p.paths.items[i], "link.c") == 0)
            seen += p.entries[i].kind == FIND_LINK;
        if (strcmp(p.paths.items[i], "fifo.c") == 0)
            seen += p.entries[i].kind == FIND_OTHER;
    }
    assert_int_equal(seen, 3);
    find_page_fini(&p);
}

/* ---- ignore files: what git itself would list is what we list ---- */

static const char *const ignore_texts[] = {
    "*.o\n!keep.o\n/only-top\nbuild/\ndoc/*.txt\n",
    "# comment\n\n*.log   \nsp\\ ace\nq\\*\n[ab]x\n",
    "**/deep\na/**/z\nfoo/**\n!foo/keep\n",
    "/*\n!/src\n!/a\n",
    "*\n!*/\n!*.c\n",
    "x{1,2}\n{a,b}\n",
    "a/\n!a/keep\n",
    "/a/b\nsub/one\n\\!odd\n\\#hash\n",
    "[unclosed\n*.c\n",
    "?.c\nsrc/?.o\n*.[oa]\r\n",
};

static const char *const ignore_paths[] = {
    "a.o",         "keep.o",  "only-top", "s/only-top", "build/x",   "s/build/y", "doc/a.txt",
    "doc/b/c.txt", "x.log",   "sp ace",   "q*",         "qq",        "ax",        "bx",
    "cx",          "deep",    "s/deep",   "a/z",        "a/m/n/z",   "foo/x",     "foo/keep",
    "src/a.c",     "src/b.o", "a/keep",   "a/b",        "s/sub/one", "sub/one",   "!odd",
    "#hash",       "x{1,2}",  "x1",       "{a,b}",      "[unclosed", "lib.a",     "e.c",
};

static void list_of_git(struct scratch *s, struct buf *out)
{
    autofree char *command =
        mem_printf("cd %s && git init -q . && git -c core.quotePath=false ls-files -z --others "
                   "--exclude-standard | tr '\\0' '\\n' | LC_ALL=C sort && rm -rf .git",
                   s->ws.root);
    FILE *f = popen(command, "r");
    char line[300];
    assert_non_null(f);
    while (fgets(line, sizeof(line), f) != NULL)
        buf_puts(out, line);
    assert_int_equal(pclose(f), 0);
}

static void test_ignore_files_as_git_reads_them(void **state)
{
    struct scratch *s = *state;
    for (size_t i = 0; i < ARRAY_LEN(ignore_paths); i++)
        scratch_put(s, ignore_paths[i], "x");
    for (size_t i = 0; i < ARRAY_LEN(ignore_texts); i++) {
        autobuf want = BUF_INIT;
        autobuf have = BUF_INIT;
        scratch_put(s, ".gitignore", ignore_texts[i]);
        /* One of a lower directory, which goes before. */
        scratch_put(s, "src/.gitignore", i % 2 ? "!b.o\n" : "*.c\n");
        list_of_git(s, &want);
        struct find_page p = find(s, (struct find_request){.ignore_files = true});
        for (size_t k = 0; k < p.paths.len; k++)
            buf_printf(&have, "%s\n", p.paths.items[k]);
        if (strcmp(buf_cstr(&have), buf_cstr(&want)) != 0)
            fail_msg("with\n%swe list\n%sand git lists\n%s", ignore_texts[i], buf_cstr(&have),
                     buf_cstr(&want));
        assert_true(p.ignored > 0);
        find_page_fini(&p);
    }
}

static void test_limits_of_ignore_files_are_told(void **state)
{
    struct scratch *s = *state;
    autobuf b = BUF_INIT;
    for (int i = 0; b.len < (300u << 10); i++)
        buf_printf(&b, "ignored%d\n", i);
    scratch_put_bytes(s, ".gitignore", buf_bytes(&b), b.len);
    struct find_page p = find(s, (struct find_request){.ignore_files = true});
    assert_true(p.incomplete);
    assert_non_null(strstr(p.reason, "IGNORE_FILE_MAX"));
    find_page_fini(&p);
    /* Neither a link nor a FIFO is read. */
    assert_int_equal(unlinkat(s->ws.root_fd, ".gitignore", 0), 0);
    scratch_put(s, "../rules", "*\n");
    assert_int_equal(symlinkat("../rules", s->ws.root_fd, ".gitignore"), 0);
    assert_int_equal(mkfifoat(s->ws.root_fd, ".ignore", 0600), 0);
    scratch_put(s, "f", "x");
    expect(s, (struct find_request){.ignore_files = true}, "f ");
}

/* Also when it is done in the smallest pieces. */
static void test_steps(void **state)
{
    struct scratch *s = *state;
    put_tree(s);
    struct find_request q = {.limit = FILES_FIND_MAX};
    struct find_page whole = find(s, q);
    struct find_page p = {0};
    struct find_walk *w = files_find_begin(&s->ws, &q, NULL);
    int steps = 0;
    int rc = 1;
    for (; rc == 1; steps++)
        rc = files_find_step(w, 0, &p, NULL);
    assert_int_equal(rc, 0);
    assert_true(steps > 3);
    assert_string_equal(p.listing_version, whole.listing_version);
    assert_int_equal(p.paths.len, whole.paths.len);
    files_find_free(w);
    find_page_fini(&p);
    find_page_fini(&whole);
    /* One that is given up half way leaves nothing behind. */
    w = files_find_begin(&s->ws, &q, NULL);
    assert_int_equal(files_find_step(w, 0, &p, NULL), 1);
    files_find_free(w);
}

static void test_pages_by_bytes(void **state)
{
    struct scratch *s = *state;
    put_tree(s);
    struct find_page whole = find(s, (struct find_request){0});
    size_t got = 0;
    for (uint64_t bytes = 1; bytes < 20; bytes += 9) {
        got = 0;
        while (got < whole.paths.len) {
            struct find_page p = find(s, (struct find_request){.offset = got, .max_bytes = bytes});
            assert_true(p.paths.len > 0);
            for (size_t i = 0; i < p.paths.len; i++)
                assert_string_equal(p.paths.items[i], whole.paths.items[got + i]);
            got += p.paths.len;
            assert_int_equal(p.truncated, got < whole.paths.len);
            assert_int_equal(p.total, whole.paths.len);
            find_page_fini(&p);
        }
        assert_int_equal(got, whole.paths.len);
    }
    find_page_fini(&whole);
}

static void test_the_listing_that_is_meant(void **state)
{
    struct scratch *s = *state;
    put_tree(s);
    struct find_page p = find(s, (struct find_request){.limit = 1});
    struct find_request q = {.limit = 1, .offset = 1, .listing_version = p.listing_version};
    struct find_page next = find(s, q);
    assert_int_equal(next.paths.len, 1);
    find_page_fini(&next);
    scratch_put(s, "new", "x");
    struct err e = {0};
    assert_int_equal(files_find_request(&s->ws, &q, &next, &e), -1);
    assert_int_equal(e.code, ERR_VERSION_CONFLICT);
    find_page_fini(&p);
}

#define S(f) cmocka_unit_test_setup_teardown(f, scratch_up, scratch_down)

UNIT_MAIN(S(test_case_and_depth), S(test_kinds_and_order), S(test_details),
          S(test_ignore_files_as_git_reads_them), S(test_limits_of_ignore_files_are_told),
          S(test_steps), S(test_pages_by_bytes), S(test_the_listing_that_is_meant))
