/* core/find: order, pages, versions, what is listed and what is not, bounds told. */
#include "../../helpers/scratch.h"
#include "../../helpers/unit.h"
#include "base/mem.h"
#include "core/files.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct find_page find(struct scratch *s, const char *glob, uint64_t offset, uint64_t limit)
{
    struct find_page p = {0};
    struct err e = {0};
    if (files_find(&s->ws, glob, offset, limit, NULL, &p, &e) < 0)
        fail_msg("%s", e.message);
    return p;
}

/* The whole listing, one path a line. */
static void expect_list(struct scratch *s, const char *glob, const char *lines)
{
    struct find_page p = find(s, glob, 0, FILES_FIND_MAX);
    autobuf b = BUF_INIT;
    for (size_t i = 0; i < p.paths.len; i++)
        buf_printf(&b, "%s\n", p.paths.items[i]);
    if (strcmp(buf_cstr(&b), lines) != 0)
        fail_msg("\"%s\" gives:\n%s", glob, buf_cstr(&b));
    assert_int_equal(p.total, p.paths.len);
    assert_false(p.truncated);
    assert_false(p.incomplete);
    find_page_fini(&p);
}

static void test_order_is_by_bytes_of_the_whole_path(void **state)
{
    struct scratch *s = *state;
    static const char *const paths[] = {"a/x", "a-b", "a.c",   "a/b/z", "a0",
                                        "A",   "a",   "b/-/x", "b/0",   "\xc3\xa9"};
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        if (strcmp(paths[i], "a") != 0)
            scratch_put(s, paths[i], "");
    }
    expect_list(s, NULL, "A\na-b\na.c\na/b/z\na/x\na0\nb/-/x\nb/0\n\xc3\xa9\n");
    struct find_page p = find(s, "", 0, 100);
    for (size_t i = 1; i < p.paths.len; i++)
        assert_true(strcmp(p.paths.items[i - 1], p.paths.items[i]) < 0);
    find_page_fini(&p);
}

static void test_globs_and_kinds(void **state)
{
    struct scratch *s = *state;
    scratch_put(s, "src/a.c", "");
    scratch_put(s, "src/x/b.c", "");
    scratch_put(s, "src/x/b.h", "");
    scratch_put(s, "lib/c.c", "");
    scratch_put(s, ".hidden/d.c", "");
    scratch_put(s, "../outside/e.c", "");
    assert_int_equal(symlinkat("src", s->ws.root_fd, "dlink"), 0);
    assert_int_equal(symlinkat("src/a.c", s->ws.root_fd, "flink.c"), 0);
    assert_int_equal(symlinkat("../outside", s->ws.root_fd, "olink"), 0);
    assert_int_equal(symlinkat(".", s->ws.root_fd, "loop"), 0);
    assert_int_equal(mkfifoat(s->ws.root_fd, "fifo.c", 0644), 0);
    scratch_mkdir(s, "dir.c");
    expect_list(s, "*.c", ".hidden/d.c\nlib/c.c\nsrc/a.c\nsrc/x/b.c\n");
    expect_list(s, "src/**/*.c", "src/a.c\nsrc/x/b.c\n");
    expect_list(s, "src/*.c", "src/a.c\n");
    expect_list(s, "{src/x,lib}/?.[ch]", "lib/c.c\nsrc/x/b.c\nsrc/x/b.h\n");
    expect_list(s, "nothing", "");
}

static void test_vcs_stores(void **state)
{
    struct scratch *s = *state;
    scratch_put(s, ".git/config", "");
    scratch_put(s, "sub/.git/config", "");
    scratch_put(s, "sub/.gitignore", "");
    scratch_put(s, "tree/.git", "gitdir: x");
    struct find_page p = find(s, NULL, 0, 10);
    assert_int_equal(p.paths.len, 2);
    assert_int_equal(p.vcs_skipped, 2);
    assert_false(p.incomplete);
    find_page_fini(&p);
    expect_list(s, "**/.git/config", ".git/config\nsub/.git/config\n");
    expect_list(s, ".git/*", ".git/config\n");
}

static void test_strange_names(void **state)
{
    struct scratch *s = *state;
    scratch_put(s, "new\nline", "");
    scratch_put(s, "bad\xff", "");
    scratch_put(s, "quo\"te'", "");
    scratch_put(s, " ", "");
    struct find_page p = find(s, NULL, 0, 10);
    assert_int_equal(p.paths.len, 4);
    assert_string_equal(p.paths.items[1], "bad\xff");
    assert_string_equal(p.paths.items[2], "new\nline");
    find_page_fini(&p);
}

/* What policy hides is not listed (A27). */
static void test_hidden_paths(void **state)
{
    struct scratch *s = *state;
    scratch_put(s, "secret/key", "");
    scratch_put(s, "d/token", "");
    scratch_put(s, "d/x", "");
    strv_addf(&s->ws.hidden, "%s/secret", s->ws.root);
    strv_addf(&s->ws.hidden, "%s/d/token", s->ws.root);
    expect_list(s, NULL, "d/x\n");
    expect_list(s, "secret/*", "");
    strv_fini(&s->ws.hidden);
}

/* A directory that cannot be read makes the answer incomplete, with the reason. */
static int run_unreadable(struct scratch *s)
{
    if (getuid() == 0 && (setgid(65534) < 0 || setuid(65534) < 0))
        return 2;
    struct find_page p = {0};
    struct err e = {0};
    if (files_find(&s->ws, NULL, 0, 10, NULL, &p, &e) < 0)
        return 3;
    bool right = p.incomplete && p.paths.len == 1 &&
                 strcmp(p.reason, "closed/ could not be read: Permission denied") == 0;
    find_page_fini(&p);
    return right ? 0 : 4;
}

static void test_unreadable_directory(void **state)
{
    struct scratch *s = *state;
    scratch_put(s, "closed/x", "");
    scratch_put(s, "open", "");
    assert_int_equal(chmod(s->dir, 0755), 0);
    assert_int_equal(fchmodat(s->ws.root_fd, "closed", 0, 0), 0);
    pid_t pid = fork();
    if (pid == 0)
        _exit(run_unreadable(s));
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(fchmodat(s->ws.root_fd, "closed", 0755, 0), 0);
    assert_int_equal(status, 0);
}

static void test_pages(void **state)
{
    struct scratch *s = *state;
    for (int i = 0; i < 25; i++) {
        autofree char *path = mem_printf("d%d/f%02d", i % 3, i);
        scratch_put(s, path, "");
    }
    struct find_page all = find(s, NULL, 0, 100);
    assert_int_equal(all.paths.len, 25);
    size_t at = 0;
    for (bool more = true; more;) {
        struct find_page p = find(s, NULL, at, 10);
        for (size_t i = 0; i < p.paths.len; i++)
            assert_string_equal(p.paths.items[i], all.paths.items[at + i]);
        assert_string_equal(p.listing_version, all.listing_version);
        assert_int_equal(p.total, 25);
        at += p.paths.len;
        more = p.truncated;
        find_page_fini(&p);
    }
    assert_int_equal(at, 25);
    struct find_page past = find(s, NULL, 1000, 10);
    assert_int_equal(past.paths.len, 0);
    assert_false(past.truncated);
    find_page_fini(&past);
    scratch_put(s, "new", "");
    struct find_page changed = find(s, NULL, 0, 10);
    assert_string_not_equal(changed.listing_version, all.listing_version);
    find_page_fini(&changed);
    find_page_fini(&all);
}

static void test_depth_bound_is_told(void **state)
{
    struct scratch *s = *state;
    char path[1000] = "";
    for (unsigned i = 0; i < FILES_WALK_DEPTH_MAX; i++)
        strcat(path, "d/");
    strcat(path, "f");
    scratch_put(s, path, "");
    struct find_page p = find(s, NULL, 0, 10);
    assert_int_equal(p.paths.len, 1);
    assert_false(p.incomplete);
    autofree char *version = mem_strdup(p.listing_version);
    find_page_fini(&p);
    path[strlen(path) - 1] = '\0';
    strcat(path, "d/f");
    scratch_put(s, path, "");
    p = find(s, NULL, 0, 10);
    assert_int_equal(p.paths.len, 1);
    assert_true(p.incomplete);
    assert_non_null(strstr(p.reason, "FILES_WALK_DEPTH_MAX (64)"));
    assert_string_not_equal(p.listing_version, version);
    find_page_fini(&p);
}

static void test_errors(void **state)
{
    struct scratch *s = *state;
    struct find_page p = {0};
    struct err e = {0};
    assert_int_equal(files_find(&s->ws, "a[", 0, 10, NULL, &p, &e), -1);
    assert_int_equal(e.code, ERR_INVALID_ARGUMENT);
    assert_int_equal(files_find(&s->ws, NULL, 0, 0, NULL, &p, &e), -1);
    assert_int_equal(e.code, ERR_OUTPUT_LIMIT);
    assert_int_equal(files_find(&s->ws, NULL, 0, FILES_FIND_MAX + 1, NULL, &p, &e), -1);
    assert_int_equal(e.code, ERR_OUTPUT_LIMIT);
    atomic_bool stop = true;
    assert_int_equal(files_find(&s->ws, NULL, 0, 10, &stop, &p, &e), -1);
    assert_int_equal(e.code, ERR_CANCELLED);
    assert_int_equal(unlinkat(s->dir_fd, "ws", AT_REMOVEDIR), 0);
    assert_int_equal(files_find(&s->ws, NULL, 0, 10, NULL, &p, &e), -1);
    assert_int_equal(e.code, ERR_FILE_OPERATION_FAILED);
    assert_null(p.paths.items);
}

#define S(f) cmocka_unit_test_setup_teardown(f, scratch_up, scratch_down)

UNIT_MAIN(S(test_order_is_by_bytes_of_the_whole_path), S(test_globs_and_kinds), S(test_vcs_stores),
          S(test_strange_names), S(test_hidden_paths), S(test_unreadable_directory), S(test_pages),
          S(test_depth_bound_is_told), S(test_errors))
