/* sys/path: the lexical rule, and one table of openings that runs through openat2 and through the
 * walk; both must give the same verdict (A16, A17, F15). */
#include "../../helpers/deny.h"
#include "../../helpers/unit.h"
#include "base/mem.h"
#include "sys/path.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- the lexical rule ---- */

static void test_normalise(void **state)
{
    (void)state;
    static const struct {
        const char *in;
        int rc;
        const char *out;
    } rows[] = {
        {"a", 0, "a"},
        {"a/b/c", 0, "a/b/c"},
        {"./a//b/./c/", 0, "a/b/c"},
        {"a\\b", 0, "a/b"},
        {".\\a\\..\\b", 0, "b"},
        {"a/..", 0, ""},
        {".", 0, ""},
        {"./", 0, ""},
        {"a/../b/../c", 0, "c"},
        {"a/b/../../c", 0, "c"},
        {"...", 0, "..."},
        {"..a/b..", 0, "..a/b.."},
        {".git/config", 0, ".git/config"},
        {"C:\\x", 0, "C:/x"},
        {"a b\nc", 0, "a b\nc"},
        {"\xff/x", 0, "\xff/x"},
        {"", -EINVAL, NULL},
        {"/", -EXDEV, NULL},
        {"/etc/passwd", -EXDEV, NULL},
        {"\\etc", -EXDEV, NULL},
        {"//a", -EXDEV, NULL},
        {"..", -EXDEV, NULL},
        {"../a", -EXDEV, NULL},
        {"..\\a", -EXDEV, NULL},
        {"a/../../a", -EXDEV, NULL},
        {"./../x", -EXDEV, NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char out[64] = "?";
        int rc = path_normalise(rows[i].in, out, sizeof(out));
        if (rc != rows[i].rc || (rc == 0 && strcmp(out, rows[i].out) != 0))
            fail_msg("\"%s\": %d \"%s\"", rows[i].in, rc, out);
    }
}

static void test_normalise_bounds(void **state)
{
    (void)state;
    char out[PATH_LEN_MAX + 100];
    assert_int_equal(path_normalise("abc", out, 4), 0);
    assert_int_equal(path_normalise("abc", out, 3), -ENAMETOOLONG);
    assert_int_equal(path_normalise("a", out, 0), -ENAMETOOLONG);
    assert_int_equal(path_normalise("abc/..", out, 3), -ENAMETOOLONG);

    autofree char *deep = mem_zalloc(2 * PATH_COMPONENTS_MAX + 3, 1);
    for (size_t i = 0; i <= PATH_COMPONENTS_MAX; i++)
        memcpy(deep + 2 * i, "d/", 2);
    assert_int_equal(path_normalise(deep, out, sizeof(out)), -ENAMETOOLONG);
    deep[2 * PATH_COMPONENTS_MAX] = '\0';
    assert_int_equal(path_normalise(deep, out, sizeof(out)), 0);

    autofree char *wide = mem_zalloc(PATH_LEN_MAX + 1, 1);
    memset(wide, 'w', PATH_LEN_MAX);
    assert_int_equal(path_normalise(wide, out, sizeof(out)), -ENAMETOOLONG);
    wide[PATH_LEN_MAX - 1] = '\0';
    assert_int_equal(path_normalise(wide, out, sizeof(out)), 0);
}

/* ---- the world the openings run in ---- */

struct world {
    char dir[64];
    int outside; /* the parent of the root: must never be reached */
    int root;
};

static void put(int dir, const char *name, const char *text)
{
    int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

static void put_socket(const char *dir)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    snprintf(a.sun_path, sizeof(a.sun_path), "%s/root/socket", dir);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
    close(fd);
}

static int world_up(void **state)
{
    struct world *w = mem_new(struct world);
    strcpy(w->dir, "/tmp/cs-path-XXXXXX");
    assert_non_null(mkdtemp(w->dir));
    w->outside = open(w->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(mkdirat(w->outside, "root", 0755), 0);
    w->root = openat(w->outside, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
    put(w->outside, "secret", "secret");
    assert_int_equal(mkdirat(w->outside, "root_other", 0755), 0);
    put(w->outside, "root_other/f", "secret");
    assert_int_equal(mkdirat(w->root, "dir", 0755), 0);
    assert_int_equal(mkdirat(w->root, "dir/sub", 0755), 0);
    put(w->root, "file", "text");
    put(w->root, "dir/sub/deep", "deep");
    assert_int_equal(symlinkat("file", w->root, "link"), 0);
    assert_int_equal(symlinkat("dir", w->root, "linkdir"), 0);
    assert_int_equal(symlinkat("../secret", w->root, "escape"), 0);
    assert_int_equal(symlinkat("..", w->root, "up"), 0);
    assert_int_equal(symlinkat("/proc/self/fd/0", w->root, "magic"), 0);
    assert_int_equal(symlinkat("nowhere", w->root, "dangling"), 0);
    assert_int_equal(mkfifoat(w->root, "fifo", 0644), 0);
    put_socket(w->dir);
    *state = w;
    return 0;
}

static int world_down(void **state)
{
    struct world *w = *state;
    autofree char *command = mem_printf("rm -rf %s", w->dir);
    assert_int_equal(system(command), 0);
    close(w->root);
    close(w->outside);
    free(w);
    return 0;
}

static const struct {
    const char *path;
    int flags;
    int rc; /* 0 = opens */
} openings[] = {
    {"file", O_RDONLY, 0},
    {"file", O_PATH, 0},
    {"dir/sub/deep", O_RDWR, 0},
    {"dir", O_RDONLY | O_DIRECTORY, 0},
    {"dir/sub", O_PATH | O_DIRECTORY, 0},
    {"", O_PATH | O_DIRECTORY, 0},
    {"", O_RDONLY | O_DIRECTORY, 0},
    {"fifo", O_RDONLY, 0}, /* opens at once; path_open_regular refuses it */
    {"fifo", O_WRONLY, -ENXIO},
    {"socket", O_RDONLY, -ENXIO},
    {"missing", O_RDONLY, -ENOENT},
    {"missing/x", O_RDONLY, -ENOENT},
    {"file/x", O_RDONLY, -ENOTDIR},
    {"file", O_RDONLY | O_DIRECTORY, -ENOTDIR},
    {"file/x/y", O_PATH, -ENOTDIR},
    {"link", O_RDONLY, -ELOOP},
    {"link", O_PATH, -ELOOP},
    {"link", O_WRONLY, -ELOOP},
    {"link", O_RDWR | O_CREAT, -ELOOP},
    {"linkdir", O_RDONLY | O_DIRECTORY, -ELOOP},
    {"linkdir", O_PATH | O_DIRECTORY, -ELOOP},
    {"linkdir/sub", O_PATH, -ELOOP},
    {"linkdir/sub/deep", O_RDONLY, -ELOOP},
    {"linkdir/new", O_WRONLY | O_CREAT, -ELOOP},
    {"escape", O_RDONLY, -ELOOP},
    {"up/secret", O_RDONLY, -ELOOP},
    {"up/new", O_WRONLY | O_CREAT | O_EXCL, -ELOOP},
    {"magic", O_RDONLY, -ELOOP},
    {"dangling", O_RDONLY, -ELOOP},
    {"dangling", O_WRONLY | O_CREAT, -ELOOP},
    {"dangling", O_WRONLY | O_CREAT | O_EXCL, -EEXIST},
    {"file", O_WRONLY | O_CREAT | O_EXCL, -EEXIST},
    {"../secret", O_RDONLY, -EXDEV},
    {"../root_other/f", O_RDONLY, -EXDEV},
    {"dir/../../secret", O_RDONLY, -EXDEV},
    {"/etc/passwd", O_RDONLY, -EXDEV},
    {"dir", O_WRONLY, -EISDIR},
};

/* Runs the table; returns the first row that differs, or -1. */
static int run_openings(int root)
{
    for (size_t i = 0; i < ARRAY_LEN(openings); i++) {
        int fd = path_open_beneath(root, openings[i].path, openings[i].flags, 0600);
        int rc = fd < 0 ? fd : 0;
        if (fd >= 0)
            close(fd);
        if (rc != openings[i].rc) {
            fprintf(stderr, "\"%s\" flags %x: %d, not %d\n", openings[i].path, openings[i].flags,
                    rc, openings[i].rc);
            return (int)i;
        }
    }
    return -1;
}

static const struct {
    const char *path;
    int rc;
} regulars[] = {
    {"file", 0},          {"dir", -EISDIR},     {"", -EISDIR},    {"fifo", -ENXIO},
    {"socket", -ENXIO},   {"missing", -ENOENT}, {"link", -ELOOP}, {"linkdir/sub/deep", -ELOOP},
    {"file/x", -ENOTDIR},
};

static int run_regulars(int root)
{
    for (size_t i = 0; i < ARRAY_LEN(regulars); i++) {
        struct stat st = {0};
        int fd = path_open_regular(root, regulars[i].path, &st);
        int rc = fd < 0 ? fd : 0;
        if (fd >= 0)
            close(fd);
        if (rc != regulars[i].rc || (rc == 0 && st.st_size != 4)) {
            fprintf(stderr, "\"%s\": %d, not %d\n", regulars[i].path, rc, regulars[i].rc);
            return (int)i;
        }
    }
    return -1;
}

static void test_openings(void **state)
{
    struct world *w = *state;
    assert_int_equal(run_openings(w->root), -1);
    assert_int_equal(run_regulars(w->root), -1);
    assert_int_equal(faccessat(w->outside, "new", F_OK, 0), -1);
    assert_int_equal(faccessat(w->root, "dir/new", F_OK, 0), -1);
}

/* The three ways to lose openat2; in a child, since there is no way back. */
static int lose_openat2(int how)
{
    if (how == 0)
        path_force_walk();
    return how == 0 ? 0 : deny_syscall(SYS_openat2, how == 1 ? ENOSYS : EPERM);
}

static void in_walk_child(int (*run)(int), int root)
{
    for (int how = 0; how < 3; how++) {
        pid_t pid = fork();
        if (pid == 0)
            _exit(lose_openat2(how) == 0 && run(root) == -1 ? 0 : 1);
        int status = -1;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
    }
}

static void test_walk_gives_the_same_verdicts(void **state)
{
    struct world *w = *state;
    in_walk_child(run_openings, w->root);
    in_walk_child(run_regulars, w->root);
    assert_int_equal(faccessat(w->outside, "new", F_OK, 0), -1);
    assert_int_equal(faccessat(w->root, "dir/new", F_OK, 0), -1);
}

static void test_a_device_is_not_regular(void **state)
{
    (void)state;
    int dev = open("/dev", O_PATH | O_DIRECTORY | O_CLOEXEC);
    struct stat st;
    assert_int_equal(path_open_regular(dev, "null", &st), -ENXIO);
    assert_int_equal(path_open_regular(dev, "tty", &st), -ENXIO);
    close(dev);
}

static int run_magic_links(int root)
{
    (void)root;
    int fd = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
    int rc = path_open_beneath(fd, "cwd", O_PATH, 0) == -ELOOP &&
                     path_open_beneath(fd, "root/etc/passwd", O_RDONLY, 0) == -ELOOP &&
                     path_open_beneath(fd, "fd/0", O_RDONLY, 0) == -ELOOP
                 ? -1
                 : 0;
    close(fd);
    return rc;
}

static void test_magic_links(void **state)
{
    struct world *w = *state;
    assert_int_equal(run_magic_links(w->root), -1);
    in_walk_child(run_magic_links, w->root);
}

static void test_parent(void **state)
{
    struct world *w = *state;
    const char *leaf = NULL;
    int fd = path_open_parent(w->root, "dir/sub/new", &leaf);
    assert_true(fd >= 0);
    assert_string_equal(leaf, "new");
    assert_int_equal(faccessat(fd, "deep", F_OK, 0), 0);
    close(fd);
    fd = path_open_parent(w->root, "new", &leaf);
    assert_true(fd >= 0);
    assert_string_equal(leaf, "new");
    close(fd);
    assert_int_equal(path_open_parent(w->root, "", &leaf), -EINVAL);
    assert_int_equal(path_open_parent(w->root, "linkdir/x", &leaf), -ELOOP);
    assert_int_equal(path_open_parent(w->root, "file/x", &leaf), -ENOTDIR);
    assert_int_equal(path_open_parent(w->root, "missing/x", &leaf), -ENOENT);
}

static int run_make(int root)
{
    static const struct {
        const char *path;
        int rc;
        size_t existing;
    } rows[] = {
        {"dir/sub", 0, 7},       {"dir/sub/x/y", 0, 7},       {"dir/sub/x/z", 0, 9},
        {"top/x", 0, 0},         {"linkdir/new", -ELOOP, 11}, {"up/new", -ELOOP, 6},
        {"file/x", -ENOTDIR, 6}, {"m/../x", -EXDEV, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        size_t existing = 999;
        int fd = path_make_directory(root, rows[i].path, 0755, &existing);
        int rc = fd < 0 ? fd : 0;
        if (fd >= 0)
            close(fd);
        if (rc != rows[i].rc || existing != rows[i].existing) {
            fprintf(stderr, "\"%s\": %d, %zu\n", rows[i].path, rc, existing);
            return (int)i;
        }
    }
    return -1;
}

static void test_make_directory(void **state)
{
    struct world *w = *state;
    assert_int_equal(run_make(w->root), -1);
    assert_int_equal(faccessat(w->root, "dir/sub/x/y", F_OK, 0), 0);
    assert_int_equal(faccessat(w->outside, "new", F_OK, 0), -1);
    assert_int_equal(faccessat(w->root, "dir/new", F_OK, 0), -1);
}

#define WORLD_TEST(f) cmocka_unit_test_setup_teardown(f, world_up, world_down)

UNIT_MAIN(cmocka_unit_test(test_normalise), cmocka_unit_test(test_normalise_bounds),
          WORLD_TEST(test_openings), WORLD_TEST(test_walk_gives_the_same_verdicts),
          cmocka_unit_test(test_a_device_is_not_regular), WORLD_TEST(test_magic_links),
          WORLD_TEST(test_parent), WORLD_TEST(test_make_directory))
