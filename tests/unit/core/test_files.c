/* core/files, reading: windows, versions, what is refused, files that grow or lie about their size.
 */
#include "../../helpers/scratch.h"
#include "../../helpers/unit.h"
#include "base/mem.h"
#include "core/files.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* sha256sum of the named text. */
#define V_EMPTY "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define V_ABCDEF "sha256:bef57ec7f53a6d40beb640a780a639c83bc29ac8a9816f1fc6c5c6dcd93c4721"

static void test_version(void **state)
{
    (void)state;
    char v[FILES_VERSION_LEN];
    files_version("", 0, v);
    assert_string_equal(v, V_EMPTY);
    version_of("abcdef", 6, v);
    assert_string_equal(v, V_ABCDEF);
    struct version_hash h;
    version_begin(&h);
    version_add(&h, "abc", 3);
    version_add(&h, "def", 3);
    version_end(&h, v);
    assert_string_equal(v, V_ABCDEF);
    assert_true(version_valid(v));
    assert_false(version_valid("absent"));
    assert_false(version_valid("sha256:"));
    v[70] = 'G';
    assert_false(version_valid(v));
}

static void expect_page(struct scratch *s, const char *path, uint64_t offset, uint64_t limit,
                        const char *content, bool truncated, bool lossy)
{
    struct file_page p = {0};
    struct err e = {0};
    if (files_read(&s->ws, path, offset, limit, &p, &e) < 0)
        fail_msg("%s: %s", path, e.message);
    if (p.content.len != strlen(content) || memcmp(buf_bytes(&p.content), content, p.content.len))
        fail_msg("%s at %zu: \"%s\"", path, (size_t)offset, buf_cstr(&p.content));
    assert_int_equal(p.truncated, truncated);
    assert_int_equal(p.lossy, lossy);
    assert_int_equal(p.offset, offset);
    file_page_fini(&p);
}

static void test_windows(void **state)
{
    struct scratch *s = *state;
    scratch_put(s, "d/f", "abcdef");
    expect_page(s, "d/f", 0, FILES_READ_MAX, "abcdef", false, false);
    expect_page(s, "d/f", 0, 3, "abc", true, false);
    expect_page(s, "d/f", 3, 3, "def", false, false);
    expect_page(s, "d/f", 3, 2, "de", true, false);
    expect_page(s, "d/f", 6, 2, "", false, false);
    expect_page(s, "d/f", 1000, 2, "", false, false);
    expect_page(s, "d/f", UINT64_MAX, FILES_READ_MAX, "", false, false);
    struct file_page p = {0};
    assert_int_equal(files_read(&s->ws, "./d\\x/..//f", 2, 2, &p, NULL), 0);
    assert_string_equal(p.path, "d/f");
    assert_string_equal(p.version, V_ABCDEF);
    assert_int_equal(p.size, 6);
    file_page_fini(&p);
    scratch_put(s, "empty", "");
    expect_page(s, "empty", 0, 10, "", false, false);
}

static void test_windows_do_not_cut_characters(void **state)
{
    struct scratch *s = *state;
    scratch_put(s, "u",
                "a\xe2\x82\xac"
                "b");
    expect_page(s, "u", 0, 2, "a", true, false);
    expect_page(s, "u", 0, 3, "a", true, false);
    expect_page(s, "u", 0, 4, "a\xe2\x82\xac", true, false);
    expect_page(s, "u", 1, 4,
                "\xe2\x82\xac"
                "b",
                false, false);
    /* A window smaller than the character still makes progress. */
    expect_page(s, "u", 1, 1, "\xe2", true, true);
    expect_page(s, "u", 2, 1, "\x82", true, true);
    scratch_put(s, "latin", "caf\xe9 x");
    expect_page(s, "latin", 0, 100, "caf\xe9 x", false, true);
    scratch_put(s, "cut", "ab\xe2\x82");
    expect_page(s, "cut", 0, 100, "ab\xe2\x82", false, true);
}

static void test_limits(void **state)
{
    struct scratch *s = *state;
    struct file_page p = {0};
    struct err e = {0};
    scratch_put(s, "f", "x");
    assert_int_equal(files_read(&s->ws, "f", 0, 0, &p, &e), -1);
    assert_int_equal(e.code, ERR_OUTPUT_LIMIT);
    assert_int_equal(files_read(&s->ws, "f", 0, FILES_READ_MAX + 1, &p, &e), -1);
    assert_int_equal(e.code, ERR_OUTPUT_LIMIT);
    assert_non_null(strstr(e.message, "1 to 1048576 (FILES_READ_MAX)"));
}

static void put_specials(struct scratch *s)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    int n = snprintf(a.sun_path, sizeof(a.sun_path), "%.80s/socket", s->ws.root);
    assert_true(n < (int)sizeof(a.sun_path));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
    close(fd);
    assert_int_equal(mkfifoat(s->ws.root_fd, "fifo", 0644), 0);
    scratch_put(s, "../secret", "secret");
    scratch_put(s, "../ws_secret/f", "secret");
    scratch_put(s, "f", "x");
    scratch_mkdir(s, "d");
    assert_int_equal(symlinkat("f", s->ws.root_fd, "link"), 0);
    assert_int_equal(symlinkat("d", s->ws.root_fd, "dlink"), 0);
    assert_int_equal(symlinkat("..", s->ws.root_fd, "up"), 0);
}

static void test_refusals(void **state)
{
    struct scratch *s = *state;
    put_specials(s);
    static const struct {
        const char *path;
        enum err_code code;
    } rows[] = {
        {"missing", ERR_FILE_NOT_FOUND},     {"d/missing", ERR_FILE_NOT_FOUND},
        {"f/x", ERR_PATH_NOT_DIRECTORY},     {"", ERR_INVALID_ARGUMENT},
        {".", ERR_SPECIAL_FILE_REJECTED},    {"d", ERR_SPECIAL_FILE_REJECTED},
        {"fifo", ERR_SPECIAL_FILE_REJECTED}, {"socket", ERR_SPECIAL_FILE_REJECTED},
        {"link", ERR_SYMLINK_REJECTED},      {"dlink/x", ERR_SYMLINK_REJECTED},
        {"up/secret", ERR_SYMLINK_REJECTED}, {"../secret", ERR_PATH_ESCAPE},
        {"../ws_secret/f", ERR_PATH_ESCAPE}, {"d/../../secret", ERR_PATH_ESCAPE},
        {"/etc/passwd", ERR_PATH_ESCAPE},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct file_page p = {0};
        struct err e = {0};
        if (files_read(&s->ws, rows[i].path, 0, 10, &p, &e) != -1 || e.code != rows[i].code)
            fail_msg("\"%s\": %s: %s", rows[i].path, err_info(e.code)->name, e.message);
        assert_null(p.content.data);
    }
}

static void test_deleted_root(void **state)
{
    struct scratch *s = *state;
    assert_int_equal(unlinkat(s->dir_fd, "ws", AT_REMOVEDIR), 0);
    struct file_page p = {0};
    struct err e = {0};
    assert_int_equal(files_read(&s->ws, "f", 0, 10, &p, &e), -1);
    assert_int_equal(e.code, ERR_FILE_OPERATION_FAILED);
    assert_non_null(strstr(e.message, "was deleted"));
}

/* A sparse file: nothing but the window is kept, whatever the size. */
static void test_large_file_streams(void **state)
{
    struct scratch *s = *state;
    scratch_put(s, "big", "begin");
    int fd = openat(s->ws.root_fd, "big", O_WRONLY | O_CLOEXEC);
    const off_t size = (off_t)FILES_READ_MAX * 40;
    assert_int_equal(pwrite(fd, "xyz", 3, size - 3), 3);
    close(fd);
    struct file_page p = {0};
    assert_int_equal(files_read(&s->ws, "big", (uint64_t)size - 4, 10, &p, NULL), 0);
    assert_int_equal(p.content.len, 4);
    assert_memory_equal(buf_bytes(&p.content), "\0xyz", 4);
    assert_true(p.content.cap < 4096);
    assert_false(p.truncated);
    assert_int_equal(p.size, size);
    autobuf all = scratch_get(s, "big");
    char v[FILES_VERSION_LEN];
    version_of(buf_bytes(&all), all.len, v);
    assert_string_equal(p.version, v);
    file_page_fini(&p);
    /* A window over the pieces' edges. */
    assert_int_equal(files_read(&s->ws, "big", 1, FILES_READ_MAX, &p, NULL), 0);
    assert_int_equal(p.content.len, FILES_READ_MAX);
    assert_memory_equal(buf_bytes(&p.content), "egin\0", 5);
    assert_true(p.truncated);
    file_page_fini(&p);
}

/* One policy: what the view hides, the file tools refuse (A27). */
static void test_hidden_path(void **state)
{
    struct scratch *s = *state;
    scratch_put(s, "secret/key", "x");
    scratch_put(s, "secret2", "x");
    strv_addf(&s->ws.hidden, "%s/secret", s->ws.root);
    static const char *const paths[] = {"secret/key", "secret", "./a/../secret/key", "secret/none"};
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        struct file_page p = {0};
        struct err e = {0};
        assert_int_equal(files_read(&s->ws, paths[i], 0, 10, &p, &e), -1);
        assert_int_equal(e.code, ERR_PATH_PROTECTED);
    }
    expect_page(s, "secret2", 0, 10, "x", false, false);
    strv_fini(&s->ws.hidden);
}

struct appender {
    int fd;
    atomic_bool stop;
};

static void *append_all_the_time(void *arg)
{
    struct appender *a = arg;
    char line[100];
    memset(line, 'l', sizeof(line));
    for (size_t n = 0; !atomic_load(&a->stop) && n < (256u << 10); n += sizeof(line)) {
        if (write(a->fd, line, sizeof(line)) != (ssize_t)sizeof(line))
            abort();
    }
    return NULL;
}

/* The version, the size and the content of one answer are of one moment. */
static void test_a_growing_file_is_read_consistently(void **state)
{
    struct scratch *s = *state;
    scratch_put(s, "log", "begin\n");
    struct appender a = {.fd = openat(s->ws.root_fd, "log", O_WRONLY | O_APPEND | O_CLOEXEC)};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, append_all_the_time, &a), 0);
    for (int i = 0; i < 200; i++) {
        struct file_page p = {0};
        char v[FILES_VERSION_LEN];
        assert_int_equal(files_read(&s->ws, "log", 0, FILES_READ_MAX, &p, NULL), 0);
        version_of(buf_bytes(&p.content), p.content.len, v);
        assert_string_equal(p.version, v);
        assert_int_equal(p.size, p.content.len);
        assert_false(p.truncated);
        file_page_fini(&p);
    }
    atomic_store(&a.stop, true);
    pthread_join(thread, NULL);
    close(a.fd);
}

/* Files of /proc have size 0 and content. */
static void test_unsized_file(void **state)
{
    (void)state;
    struct workspace ws = {.id = (char *)"proc", .root = (char *)"/proc"};
    ws.root_fd = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
    struct file_page p = {0};
    struct err e = {0};
    if (files_read(&ws, "version", 0, 5, &p, &e) < 0)
        fail_msg("%s", e.message);
    assert_memory_equal(buf_bytes(&p.content), "Linux", 5);
    assert_true(p.truncated);
    file_page_fini(&p);
    close(ws.root_fd);
}

#define S(f) cmocka_unit_test_setup_teardown(f, scratch_up, scratch_down)

UNIT_MAIN(cmocka_unit_test(test_version), S(test_windows), S(test_windows_do_not_cut_characters),
          S(test_limits), S(test_refusals), S(test_deleted_root), S(test_large_file_streams),
          S(test_hidden_path), S(test_a_growing_file_is_read_consistently),
          cmocka_unit_test(test_unsized_file))
