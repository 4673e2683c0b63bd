/* core/files, core/version_cache: reading by lines and from the end, encodings told, versions that
 * are remembered only while they are true, cancelling (F6, F15). */
#include "../../helpers/scratch.h"
#include "../../helpers/unit.h"
#include "base/mem.h"
#include "core/files.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static struct file_page get(struct scratch *s, struct read_request q)
{
    struct file_page p = {0};
    struct err e = {0};
    q.path = "f";
    q.limit = q.limit == 0 ? FILES_READ_MAX : q.limit;
    if (files_read_request(&s->ws, &q, &p, &e) < 0)
        fail_msg("%s", e.message);
    return p;
}

static const struct {
    const char *content;
    uint64_t first_line;
    uint64_t n_lines;
    uint64_t tail_lines;
    uint64_t limit;
    const char *window;
    uint64_t offset;
    uint64_t count;
    bool truncated;
} rows[] = {
    {"a\nb\nc\n", 1, 0, 0, 0, "a\nb\nc\n", 0, 3, false},
    {"a\nb\nc\n", 2, 1, 0, 0, "b\n", 2, 1, true},
    {"a\nb\nc\n", 3, 9, 0, 0, "c\n", 4, 1, false},
    {"a\nb\nc", 2, 2, 0, 0, "b\nc", 2, 2, false},
    {"a\nb\nc", 4, 1, 0, 0, "", 5, 0, false},
    {"", 1, 1, 0, 0, "", 0, 0, false},
    {"\n\n\n", 2, 1, 0, 0, "\n", 1, 1, true},
    {"a\r\nb\r\n", 2, 1, 0, 0, "b\r\n", 3, 1, false},
    /* Only whole lines, as many as the limit holds; of a long one its beginning. */
    {"aaa\nbbb\nccc\n", 1, 0, 0, 9, "aaa\nbbb\n", 0, 2, true},
    {"aaaaaaaaaaaa\nb\n", 1, 0, 0, 5, "aaaaa", 0, 1, true},
    /* From the end. */
    {"a\nb\nc\n", 0, 0, 1, 0, "c\n", 4, 1, false},
    {"a\nb\nc", 0, 0, 2, 0, "b\nc", 2, 2, false},
    {"a\nb\nc\n", 0, 0, 99, 0, "a\nb\nc\n", 0, 3, false},
    {"", 0, 0, 3, 0, "", 0, 0, false},
    {"aaa\nbbb\nccc\n", 0, 0, 3, 9, "bbb\nccc\n", 4, 2, false},
    {"aaaaaaaaaaaab", 0, 0, 1, 5, "aaaab", 8, 1, false},
};

static void check_row(struct scratch *s, size_t i, struct version_cache *cache)
{
    struct file_page p = get(s, (struct read_request){.first_line = rows[i].first_line,
                                                      .n_lines = rows[i].n_lines,
                                                      .tail_lines = rows[i].tail_lines,
                                                      .limit = rows[i].limit,
                                                      .cache = cache});
    char version[FILES_VERSION_LEN];
    version_of(rows[i].content, strlen(rows[i].content), version);
    if (strcmp(buf_cstr(&p.content), rows[i].window) != 0 || p.offset != rows[i].offset ||
        p.n_lines != rows[i].count || p.truncated != rows[i].truncated)
        fail_msg("row %zu: \"%s\" at %d, %d lines", i, buf_cstr(&p.content), (int)p.offset,
                 (int)p.n_lines);
    assert_string_equal(p.version, version);
    assert_int_equal(p.first_line, rows[i].tail_lines > 0 ? 0 : rows[i].first_line);
    file_page_fini(&p);
}

static void age(struct scratch *s, const char *path)
{
    struct timespec old[2] = {{1000000000, 0}, {1000000000, 0}};
    assert_int_equal(utimensat(s->ws.root_fd, path, old, 0), 0);
}

static void test_lines(void **state)
{
    struct scratch *s = *state;
    struct version_cache *c = version_cache_new();
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        scratch_put(s, "f", rows[i].content);
        check_row(s, i, NULL);
        check_row(s, i, c);
    }
    version_cache_free(c);
}

/* Lines behind many, and pages that follow each other, put together the file. */
static void test_pages_of_lines(void **state)
{
    struct scratch *s = *state;
    autobuf all = BUF_INIT;
    autobuf got = BUF_INIT;
    for (int i = 1; all.len < (3u << 20); i++)
        buf_printf(&all, "%d\n", i);
    scratch_put_bytes(s, "f", buf_bytes(&all), all.len);
    for (uint64_t line = 1;;) {
        struct file_page p = get(s, (struct read_request){.first_line = line, .limit = 100000});
        buf_put(&got, buf_bytes(&p.content), p.content.len);
        line += p.n_lines;
        bool more = p.truncated;
        file_page_fini(&p);
        if (!more)
            break;
    }
    assert_int_equal(got.len, all.len);
    assert_memory_equal(buf_bytes(&got), buf_bytes(&all), all.len);
    struct file_page p = get(s, (struct read_request){.first_line = 300000, .n_lines = 2});
    assert_string_equal(buf_cstr(&p.content), "300000\n300001\n");
    file_page_fini(&p);
}

static void test_encodings(void **state)
{
    struct scratch *s = *state;
    static const struct {
        const char *bytes;
        size_t n;
        const char *encoding;
        bool binary;
    } table[] = {
        {"abc", 3, "utf-8", false},
        {"\xef\xbb\xbf"
         "a",
         4, "utf-8", false},
        {"caf\xe9", 4, "unknown", false},
        {"a\0b", 3, "binary", true},
        {"\xff\xfe"
         "a\0",
         4, "utf-16le", false},
        {"\xfe\xff\0a", 4, "utf-16be", false},
        {"", 0, "utf-8", false},
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        scratch_put_bytes(s, "f", table[i].bytes, table[i].n);
        struct file_page p = get(s, (struct read_request){0});
        assert_string_equal(p.encoding, table[i].encoding);
        assert_int_equal(p.binary, table[i].binary);
        file_page_fini(&p);
    }
}

static void test_forms_are_not_mixed(void **state)
{
    struct scratch *s = *state;
    static const struct read_request mixed[] = {
        {.path = "f", .limit = 9, .first_line = 1, .tail_lines = 1},
        {.path = "f", .limit = 9, .n_lines = 1, .tail_lines = 1},
        {.path = "f", .limit = 9, .offset = 1, .first_line = 1},
        {.path = "f", .limit = 9, .offset = 1, .tail_lines = 1},
    };
    scratch_put(s, "f", "a\n");
    for (size_t i = 0; i < ARRAY_LEN(mixed); i++) {
        struct file_page p = {0};
        struct err e = {0};
        assert_int_equal(files_read_request(&s->ws, &mixed[i], &p, &e), -1);
        assert_int_equal(e.code, ERR_INVALID_ARGUMENT);
    }
}

/* ---- versions that are remembered ---- */

static struct stat stat_of(struct scratch *s)
{
    struct stat st;
    assert_int_equal(fstatat(s->ws.root_fd, "f", &st, 0), 0);
    return st;
}

static void test_the_cache(void **state)
{
    struct scratch *s = *state;
    struct version_cache *c = version_cache_new();
    char got[FILES_VERSION_LEN];
    char version[FILES_VERSION_LEN];
    scratch_put(s, "f", "aaaa\n");
    version_of("aaaa\n", 5, version);
    struct stat st = stat_of(s);
    /* Just written: a second write could leave the same times. */
    version_cache_put(c, &st, version);
    assert_false(version_cache_get(c, &st, got));
    st.st_mtim.tv_sec -= 10;
    st.st_ctim.tv_sec -= 10;
    version_cache_put(c, &st, version);
    assert_true(version_cache_get(c, &st, got));
    assert_string_equal(got, version);
    struct stat other = st;
    other.st_ctim.tv_nsec ^= 1;
    assert_false(version_cache_get(c, &other, got));
    other = st;
    other.st_size++;
    assert_false(version_cache_get(c, &other, got));
    other = st;
    other.st_ino++;
    assert_false(version_cache_get(c, &other, got));
    version_cache_free(c);
}

static void test_the_cache_is_bounded(void **state)
{
    (void)state;
    struct version_cache *c = version_cache_new();
    char version[FILES_VERSION_LEN];
    char got[FILES_VERSION_LEN];
    struct stat st = {.st_size = 1};
    size_t found = 0;
    for (ino_t i = 1; i <= 3 * VERSION_CACHE_MAX; i++) {
        version_of(&i, sizeof(i), version);
        st.st_ino = i;
        version_cache_put(c, &st, version);
        assert_true(version_cache_get(c, &st, got));
    }
    for (ino_t i = 1; i <= 3 * VERSION_CACHE_MAX; i++) {
        st.st_ino = i;
        if (!version_cache_get(c, &st, got))
            continue;
        found++;
        version_of(&i, sizeof(i), version);
        assert_string_equal(got, version);
    }
    assert_true(found > VERSION_CACHE_MAX / 2 && found <= VERSION_CACHE_MAX);
    version_cache_free(c);
}

/* A write that keeps size and time of content is seen all the same: the inode's time changes. */
static void test_a_forged_time_is_seen(void **state)
{
    struct scratch *s = *state;
    struct version_cache *c = version_cache_new();
    char version[FILES_VERSION_LEN];
    scratch_put(s, "f", "aaaa\n");
    age(s, "f");
    struct file_page p = get(s, (struct read_request){.cache = c});
    file_page_fini(&p);
    scratch_put(s, "f", "bbbb\n");
    age(s, "f");
    p = get(s, (struct read_request){.cache = c});
    version_of("bbbb\n", 5, version);
    assert_string_equal(p.version, version);
    assert_string_equal(buf_cstr(&p.content), "bbbb\n");
    file_page_fini(&p);
    version_cache_free(c);
}

/* ---- cancelling ---- */

static void test_cancelled(void **state)
{
    struct scratch *s = *state;
    scratch_put(s, "f", "");
    int fd = openat(s->ws.root_fd, "f", O_WRONLY | O_CLOEXEC);
    assert_int_equal(ftruncate(fd, (off_t)5 << 30), 0);
    close(fd);
    atomic_bool stop = true;
    struct read_request forms[] = {{.path = "f", .limit = 9, .cancel = &stop},
                                   {.path = "f", .limit = 9, .first_line = 7, .cancel = &stop}};
    for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
        struct file_page p = {0};
        struct err e = {0};
        assert_int_equal(files_read_request(&s->ws, &forms[i], &p, &e), -1);
        assert_int_equal(e.code, ERR_CANCELLED);
    }
}

/* Bytes for base64 may cut a character; text may not. */
static void test_exact_windows(void **state)
{
    struct scratch *s = *state;
    scratch_put(s, "f", "\xe2\x82\xac\xe2\x82\xac");
    struct file_page p = get(s, (struct read_request){.limit = 4, .exact = true});
    assert_int_equal(p.content.len, 4);
    assert_true(p.truncated);
    file_page_fini(&p);
    p = get(s, (struct read_request){.limit = 4});
    assert_int_equal(p.content.len, 3);
    file_page_fini(&p);
}

#define S(f) cmocka_unit_test_setup_teardown(f, scratch_up, scratch_down)

UNIT_MAIN(S(test_lines), S(test_pages_of_lines), S(test_encodings), S(test_forms_are_not_mixed),
          S(test_the_cache), cmocka_unit_test(test_the_cache_is_bounded),
          S(test_a_forged_time_is_seen), S(test_cancelled), S(test_exact_windows))
