/* core/search: the arguments, and ripgrep itself on a tree that hides hits in every way (F17, F18);
 * then what it wrote, cut into pieces at every byte. */
#include "../../helpers/scratch.h"
#include "../../helpers/unit.h"
#include "base/mem.h"
#include "core/search.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- arguments ---- */

static void test_arguments(void **state)
{
    (void)state;
    const char *globs[] = {"*.c", "!x"};
    struct search_request q = {.pattern = "-x",
                               .limit = 1,
                               .globs = globs,
                               .n_globs = 2,
                               .path = "-d",
                               .before = 2,
                               .literal = true};
    autostrv argv = {0};
    autobuf b = BUF_INIT;
    assert_int_equal(search_argv(&q, &argv, NULL), 0);
    for (size_t i = 0; i < argv.len; i++)
        buf_printf(&b, "%s ", argv.items[i]);
    assert_string_equal(
        buf_cstr(&b),
        "rg --no-config --json --debug --no-follow --no-ignore-global --no-ignore-parent --binary "
        "--hidden --no-ignore --case-sensitive --fixed-strings --before-context=2 "
        "--after-context=0 --max-filesize=67108864 --glob=*.c --glob=!x "
        "--glob=!{.git,.hg,.svn,.jj} --regexp=-x -- ./-d ");
}

static void test_requests_that_are_refused(void **state)
{
    (void)state;
    static const struct {
        struct search_request q;
        enum err_code code;
    } table[] = {
        {{.pattern = "", .limit = 1}, ERR_INVALID_ARGUMENT},
        {{.limit = 1}, ERR_INVALID_ARGUMENT},
        {{.pattern = "x"}, ERR_OUTPUT_LIMIT},
        {{.pattern = "x", .limit = SEARCH_PAGE_MAX + 1}, ERR_OUTPUT_LIMIT},
        {{.pattern = "x", .limit = 1, .before = 101}, ERR_LIMIT_EXCEEDED},
        {{.pattern = "x", .limit = 1, .n_globs = 65}, ERR_LIMIT_EXCEEDED},
        {{.pattern = "x", .limit = 1, .path = "../x"}, ERR_PATH_ESCAPE},
        {{.pattern = "x", .limit = 1, .path = "/etc"}, ERR_PATH_ESCAPE},
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        autostrv argv = {0};
        struct err e = {0};
        assert_int_equal(search_argv(&table[i].q, &argv, &e), -1);
        assert_int_equal(e.code, table[i].code);
        assert_int_equal(argv.len, 0);
    }
}

static void test_when_a_quick_try_may_be(void **state)
{
    (void)state;
    static const struct {
        struct search_request q;
        bool may;
    } table[] = {
        {{.pattern = "x"}, true},
        {{.pattern = "x", .max_file_bytes = SEARCH_FILE_MAX}, false},
        {{.pattern = "x", .multiline = true}, false},
        {{.pattern = "x", .binary = true}, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++)
        assert_int_equal(search_may_be_quick(&table[i].q), table[i].may);
    struct search_request q = {.pattern = "x", .limit = 1, .quick = true};
    autostrv argv = {0};
    assert_int_equal(search_argv(&q, &argv, NULL), 0);
    for (size_t i = 0; i < argv.len; i++)
        assert_false(str_starts(argv.items[i], "--max-filesize"));
}

/* ---- ripgrep itself ---- */

struct outcome {
    struct buf output;
    struct buf errors;
    int status;
};

static void read_all(const char *path, struct buf *b)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = 0;
    assert_true(fd >= 0);
    while ((n = read(fd, buf_reserve(b, 65536), 65536)) > 0)
        buf_commit(b, (size_t)n);
    close(fd);
}

static struct outcome run_rg(struct scratch *s, const struct search_request *q)
{
    struct outcome o = {0};
    struct err e = {0};
    autostrv argv = {0};
    if (search_argv(q, &argv, &e) < 0)
        fail_msg("%s", e.message);
    autofree char *out = mem_printf("%s/out", s->dir);
    autofree char *err = mem_printf("%s/err", s->dir);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
        int a = open(out, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        int b = open(err, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        if (chdir(s->ws.root) < 0 || dup2(null, 0) < 0 || dup2(a, 1) < 0 || dup2(b, 2) < 0)
            _exit(126);
        execvp("rg", strv_array(&argv));
        _exit(127);
    }
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    o.status = WEXITSTATUS(status);
    if (o.status == 127)
        fail_msg("ripgrep is not installed");
    read_all(out, &o.output);
    read_all(err, &o.errors);
    return o;
}

static void outcome_fini(struct outcome *o)
{
    buf_fini(&o->output);
    buf_fini(&o->errors);
}

/* Feed in pieces of `piece` bytes. */
static int feed(const struct search_request *q, const struct outcome *o, size_t piece,
                struct search_page *ret, struct err *e)
{
    struct search *s = search_new(q);
    int rc = 0;
    for (size_t i = 0; i < o->output.len && rc == 0; i += piece) {
        size_t n = o->output.len - i < piece ? o->output.len - i : piece;
        rc = search_feed_output(s, buf_bytes(&o->output) + i, n, e);
    }
    for (size_t i = 0; i < o->errors.len; i += piece) {
        size_t n = o->errors.len - i < piece ? o->errors.len - i : piece;
        search_feed_errors(s, buf_bytes(&o->errors) + i, n);
    }
    if (rc == 0)
        rc = search_finish(s, o->status, ret, e);
    search_free(s);
    return rc;
}

static struct search_page search(struct scratch *s, const struct search_request *q)
{
    struct outcome o = run_rg(s, q);
    struct search_page p = {0};
    struct err e = {0};
    if (feed(q, &o, 1u << 20, &p, &e) < 0)
        fail_msg("%s", e.message);
    outcome_fini(&o);
    return p;
}

static void describe(const struct search_page *p, struct buf *b)
{
    for (size_t i = 0; i < p->n; i++) {
        for (size_t k = 0; k < p->files[i].n; k++) {
            const struct search_line *l = &p->files[i].lines[k];
            buf_printf(b, "%s%c%d%c%s\n", p->files[i].path, l->match ? ':' : '-', (int)l->number,
                       l->match ? ':' : '-', l->text);
        }
    }
}

static void expect_page(struct scratch *s, const struct search_request *q, const char *want)
{
    struct search_page p = search(s, q);
    autobuf b = BUF_INIT;
    describe(&p, &b);
    assert_string_equal(buf_cstr(&b), want);
    search_page_fini(&p);
}

static void test_matches_and_context(void **state)
{
    struct scratch *s = *state;
    scratch_put(s, "b.txt", "1\nfoo 2\n3\n4\n5\nFOO 6\r\n7\n");
    scratch_put(s, "a/x.c", "foo\n");
    scratch_put(s, "we\"ird\n\xff", "foo\n");
    expect_page(s, &(struct search_request){.pattern = "fo+", .limit = 9},
                "a/x.c:1:foo\nb.txt:2:foo 2\nwe\"ird\n\xff:1:foo\n");
    const char *globs[] = {"*.txt"};
    expect_page(s,
                &(struct search_request){.pattern = "foo",
                                         .limit = 9,
                                         .before = 1,
                                         .after = 1,
                                         .globs = globs,
                                         .n_globs = 1,
                                         .letter_case = SEARCH_CASE_IGNORE},
                "b.txt-1-1\nb.txt:2:foo 2\nb.txt-3-3\nb.txt-5-5\nb.txt:6:FOO 6\nb.txt-7-7\n");
    expect_page(s, &(struct search_request){.pattern = "fo+", .limit = 9, .literal = true}, "");
    expect_page(s, &(struct search_request){.pattern = "foo", .limit = 9, .path = "a"},
                "a/x.c:1:foo\n");
}

static void put_world(struct scratch *s)
{
    scratch_put(s, "plain", "hit\n");
    scratch_put(s, ".hidden", "hit\n");
    scratch_put(s, ".gitignore", "ignored\nout/\n");
    scratch_put(s, "ignored", "hit\n");
    scratch_put(s, "out/a", "hit\n");
    scratch_put(s, ".git/config", "hit\n");
    scratch_put_bytes(s, "binary", "a\0hit\n", 6);
    scratch_put(s, "large", "hit\n");
    int fd = openat(s->ws.root_fd, "large", O_WRONLY | O_CLOEXEC);
    assert_int_equal(ftruncate(fd, 100000), 0);
    close(fd);
    assert_int_equal(symlinkat("plain", s->ws.root_fd, "link"), 0);
    assert_int_equal(symlinkat(".", s->ws.root_fd, "loop"), 0);
}

static void test_what_is_passed_over_is_told(void **state)
{
    struct scratch *s = *state;
    put_world(s);
    struct search_request q = {.pattern = "hit", .limit = 9, .max_file_bytes = 50000};
    struct search_page p = search(s, &q);
    autobuf b = BUF_INIT;
    describe(&p, &b);
    assert_string_equal(buf_cstr(&b), ".hidden:1:hit\nignored:1:hit\nout/a:1:hit\nplain:1:hit\n");
    assert_int_equal(p.skipped.binary, 1);
    assert_int_equal(p.skipped.too_large, 1);
    assert_int_equal(p.skipped.special, 1);
    assert_int_equal(p.skipped.hidden + p.skipped.ignored + p.skipped.unreadable, 0);
    search_page_fini(&p);
    q.ignore_files = true;
    p = search(s, &q);
    assert_int_equal(p.total, 1);
    assert_int_equal(p.skipped.ignored, 2);
    assert_true(p.skipped.hidden >= 2);
    search_page_fini(&p);
    q.binary = true;
    p = search(s, &q);
    assert_int_equal(p.total, 2);
    search_page_fini(&p);
}

static void test_pages(void **state)
{
    struct scratch *s = *state;
    autobuf want = BUF_INIT;
    autobuf have = BUF_INIT;
    for (int i = 0; i < 30; i++) {
        char name[16];
        snprintf(name, sizeof(name), "f%02d", i);
        scratch_put(s, name, "hit 1\nno\nhit 2\nhit 3\n");
        buf_printf(&want, "%s:1:hit 1\n%s:3:hit 2\n%s:4:hit 3\n", name, name, name);
    }
    struct search_request q = {.pattern = "hit", .limit = 7};
    for (bool more = true; more; q.offset += 7) {
        struct search_page p = search(s, &q);
        describe(&p, &have);
        more = p.truncated;
        assert_int_equal(p.total, 90);
        assert_int_equal(p.total_files, 30);
        assert_true(p.matches == 7 || !more);
        search_page_fini(&p);
    }
    assert_string_equal(buf_cstr(&have), buf_cstr(&want));
    q.offset = 200;
    struct search_page p = search(s, &q);
    assert_int_equal(p.n, 0);
    assert_false(p.truncated);
    search_page_fini(&p);
}

static void test_long_lines_are_cut(void **state)
{
    struct scratch *s = *state;
    autobuf b = BUF_INIT;
    for (int i = 0; i < 200000; i++)
        buf_puts(&b, "\xc3\xa9x");
    size_t at = b.len;
    buf_puts(&b, "needle");
    for (int i = 0; i < 200000; i++)
        buf_puts(&b, "\xc3\xa9x");
    scratch_put_bytes(s, "min.js", buf_bytes(&b), b.len);
    struct search_page p = search(s, &(struct search_request){.pattern = "needle", .limit = 9});
    const struct search_line *l = &p.files[0].lines[0];
    assert_true(l->cut_front && l->cut_back && l->len <= SEARCH_COLUMNS_MAX);
    assert_int_equal(l->column, at + 1);
    assert_non_null(strstr(l->text, "needle"));
    assert_int_not_equal(((unsigned char)l->text[0] & 0xc0), 0x80);
    search_page_fini(&p);
}

static void test_a_bad_pattern(void **state)
{
    struct scratch *s = *state;
    struct search_request q = {.pattern = "(", .limit = 9};
    struct outcome o = run_rg(s, &q);
    struct search_page p = {0};
    struct err e = {0};
    assert_int_equal(feed(&q, &o, 100, &p, &e), -1);
    assert_int_equal(e.code, ERR_INVALID_ARGUMENT);
    assert_non_null(strstr(e.message, "unclosed group"));
    outcome_fini(&o);
}

/* ---- pieces, and what is not ripgrep ---- */

static void test_pieces(void **state)
{
    struct scratch *s = *state;
    put_world(s);
    struct search_request q = {.pattern = "hit", .limit = 9, .after = 1, .ignore_files = true};
    struct outcome o = run_rg(s, &q);
    autobuf want = BUF_INIT;
    for (size_t piece = 1; piece < 200; piece += piece < 20 ? 1 : 37) {
        struct search_page p = {0};
        autobuf have = BUF_INIT;
        assert_int_equal(feed(&q, &o, piece, &p, NULL), 0);
        describe(&p, &have);
        buf_printf(&have, "%d %d", (int)p.skipped.hidden, (int)p.skipped.ignored);
        if (piece == 1)
            buf_puts(&want, buf_cstr(&have));
        assert_string_equal(buf_cstr(&have), buf_cstr(&want));
        search_page_fini(&p);
    }
    outcome_fini(&o);
}

static void test_ends_that_are_no_ends(void **state)
{
    (void)state;
    static const char begin[] = "{\"type\":\"begin\",\"data\":{\"path\":{\"text\":\"a\"}}}\n";
    struct search_request q = {.pattern = "x", .limit = 9};
    struct search_page p = {0};
    struct err e = {0};
    struct outcome o = {.status = -1};
    assert_int_equal(feed(&q, &o, 1, &p, &e), -1);
    assert_int_equal(e.code, ERR_FILE_OPERATION_FAILED);
    buf_puts(&o.output, begin);
    o.status = 0;
    assert_int_equal(feed(&q, &o, 1, &p, &e), 0);
    assert_true(p.incomplete);
    search_page_fini(&p);
    buf_puts(&o.output, "not json\n");
    assert_int_equal(feed(&q, &o, 1, &p, &e), -1);
    assert_int_equal(e.code, ERR_INTERNAL);
    outcome_fini(&o);
}

#define BEGIN(f) "{\"type\":\"begin\",\"data\":{\"path\":{\"text\":\"" f "\"}}}\n"
#define MATCH(n)                                                                                   \
    "{\"type\":\"match\",\"data\":{\"lines\":{\"text\":\"hit\\n\"},\"line_number\":" #n ","        \
    "\"submatches\":[{\"start\":0}]}}\n"
#define END "{\"type\":\"end\",\"data\":{\"binary_offset\":null}}\n"

static void put(struct search *s, const char *text)
{
    assert_int_equal(search_feed_output(s, text, strlen(text), NULL), 0);
}

/* A hole in the output: what follows it is not taken for more of the file before it. */
static void test_output_that_got_lost(void **state)
{
    (void)state;
    const struct search_request q = {.pattern = "x", .limit = 9};
    struct search *s = search_new(&q);
    struct search_page p = {0};
    put(s, BEGIN("a") MATCH(1) "{\"type\":\"mat");
    search_lost(s);
    put(s, "ch\",\"rest of a record\n" MATCH(7) END BEGIN("b") MATCH(2) END);
    assert_int_equal(search_finish(s, 0, &p, NULL), 0);
    assert_true(p.incomplete);
    assert_non_null(strstr(p.reason, "lost"));
    assert_int_equal(p.n, 1);
    assert_string_equal(p.files[0].path, "b");
    assert_int_equal(p.files[0].n, 1);
    search_page_fini(&p);
    search_free(s);
}

static void test_a_search_that_was_stopped(void **state)
{
    (void)state;
    const struct search_request q = {.pattern = "x", .limit = 9};
    struct search *s = search_new(&q);
    struct search_page p = {0};
    put(s, BEGIN("a") MATCH(1) END BEGIN("b") MATCH(2));
    assert_false(search_is_full(s));
    search_stopped(s, "because");
    assert_int_equal(search_finish(s, -1, &p, NULL), 0);
    assert_true(p.incomplete);
    assert_string_equal(p.reason, "because");
    assert_int_equal(p.n, 1);
    search_page_fini(&p);
    search_free(s);
}

/* A page ends at about so many bytes and has no holes; one match is always given. */
static void test_pages_by_bytes(void **state)
{
    (void)state;
    uint64_t offset = 0;
    while (offset < 4) {
        const struct search_request q = {
            .pattern = "x", .limit = 9, .max_bytes = offset == 0 ? 1 : 250, .offset = offset};
        struct search *s = search_new(&q);
        struct search_page p = {0};
        put(s, BEGIN("a") MATCH(1) MATCH(2) END BEGIN("b") MATCH(3) MATCH(4) END);
        assert_int_equal(search_finish(s, 0, &p, NULL), 0);
        assert_int_equal(p.matches, offset == 0 ? 1 : offset == 1 ? 2 : 1);
        assert_int_equal(p.files[0].lines[0].number, offset + 1);
        offset += p.matches;
        assert_int_equal(p.truncated, offset < 4);
        search_page_fini(&p);
        search_free(s);
    }
}

#define END_OF(bytes)                                                                              \
    "{\"type\":\"end\",\"data\":{\"binary_offset\":null,\"stats\":{\"bytes_searched\":" bytes      \
    "}}}\n"

/* Ripgrep was not told of a size: what it found in a file that is larger is dropped. */
static void test_a_quick_try_drops_what_is_too_large(void **state)
{
    (void)state;
    for (int quick = 0; quick < 2; quick++) {
        const struct search_request q = {.pattern = "x", .limit = 9, .quick = quick};
        struct search *s = search_new(&q);
        struct search_page p = {0};
        put(s, BEGIN("a") MATCH(1) END_OF("67108864") BEGIN("b") MATCH(2) END_OF("67108865"));
        assert_false(search_again(s, 0));
        assert_int_equal(search_finish(s, 0, &p, NULL), 0);
        assert_int_equal(p.total, quick ? 1 : 2);
        assert_int_equal(p.total_files, quick ? 1 : 2);
        assert_int_equal(p.n, quick ? 1 : 2);
        assert_int_equal(p.skipped.too_large, quick);
        assert_false(p.incomplete);
        search_page_fini(&p);
        search_free(s);
    }
}

static void test_what_is_asked_again(void **state)
{
    (void)state;
    static const struct {
        const char *output;
        int status;
        bool again;
    } table[] = {
        {BEGIN("a") MATCH(1) END, 0, false},
        {"", 1, false},
        {"", 2, false}, /* a bad pattern, or a file that cannot be read: it would say the same */
        {"", -1, true},
        {BEGIN("a") MATCH(1) END, 134, true},
        {BEGIN("a") MATCH(1), 0, true},
        {"{\"type\":\"be", 0, true},
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        const struct search_request q = {.pattern = "x", .limit = 9, .quick = true};
        struct search *s = search_new(&q);
        put(s, table[i].output);
        assert_int_equal(search_again(s, table[i].status), table[i].again);
        search_lost(s);
        assert_true(search_again(s, 0));
        search_free(s);
    }
}

#define S(f) cmocka_unit_test_setup_teardown(f, scratch_up, scratch_down)

UNIT_MAIN(cmocka_unit_test(test_arguments), cmocka_unit_test(test_requests_that_are_refused),
          S(test_matches_and_context), S(test_what_is_passed_over_is_told), S(test_pages),
          S(test_long_lines_are_cut), S(test_a_bad_pattern), S(test_pieces),
          cmocka_unit_test(test_ends_that_are_no_ends), cmocka_unit_test(test_output_that_got_lost),
          cmocka_unit_test(test_a_search_that_was_stopped), cmocka_unit_test(test_pages_by_bytes),
          cmocka_unit_test(test_when_a_quick_try_may_be),
          cmocka_unit_test(test_a_quick_try_drops_what_is_too_large),
          cmocka_unit_test(test_what_is_asked_again))
