/* sys/rmtree: any kind, any depth, no permission in the way, nothing outside touched. */
#include "../../helpers/unit.h"
#include "base/mem.h"
#include "sys/rmtree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEPTH 1500

static int make_base(char *template)
{
    assert_non_null(mkdtemp(template));
    int fd = open(template, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

static void make_file(int dir_fd, const char *name)
{
    autofd int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0);
    assert_true(fd >= 0);
}

static bool exists(int dir_fd, const char *name)
{
    struct stat st;
    return fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static void test_kinds(void **state)
{
    (void)state;
    char base[] = "/tmp/cs-test-rmtree-XXXXXX";
    autofd int fd = make_base(base);
    assert_int_equal(rmtree(fd, "nothing", 1), 0);
    make_file(fd, "file");
    assert_int_equal(rmtree(fd, "file", 1), 0);
    assert_int_equal(symlinkat("/etc", fd, "link"), 0);
    assert_int_equal(rmtree(fd, "link", 1), 0);
    assert_int_equal(mkfifoat(fd, "fifo", 0), 0);
    assert_int_equal(rmtree(fd, "fifo", 1), 0);
    assert_int_equal(mkdirat(fd, "empty", 0), 0);
    assert_int_equal(rmtree(fd, "empty", 1), 0);
    assert_true(exists(AT_FDCWD, "/etc/passwd"));
    assert_int_equal(rmdir(base), 0);
}

/* A tree that no recursion with a descriptor for each level could remove. */
static void test_deep(void **state)
{
    (void)state;
    char base[] = "/tmp/cs-test-rmtree-XXXXXX";
    autofd int fd = make_base(base);
    assert_int_equal(mkdirat(fd, "top", 0700), 0);
    autofd int at = openat(fd, "top", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; i < DEPTH; i++) {
        make_file(at, "f");
        assert_int_equal(symlinkat("/", at, "l"), 0);
        assert_int_equal(mkdirat(at, "d", 0700), 0);
        int next = openat(at, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_int_equal(fchmod(at, i % 2 ? 0 : 0500), 0);
        close(at);
        at = next;
    }
    assert_int_equal(rmtree(fd, "top", 1), -EBUSY);
    assert_int_equal(rmtree(fd, "top", 4 * DEPTH), 0);
    assert_false(exists(fd, "top"));
    assert_int_equal(rmdir(base), 0);
}

static void test_leaves_the_rest(void **state)
{
    (void)state;
    char base[] = "/tmp/cs-test-rmtree-XXXXXX";
    autofd int fd = make_base(base);
    assert_int_equal(mkdirat(fd, "kept", 0500), 0);
    assert_int_equal(mkdirat(fd, "gone", 0700), 0);
    assert_int_equal(mkdirat(fd, "gone/sub", 0700), 0);
    assert_int_equal(symlinkat("../../kept", fd, "gone/sub/link"), 0);
    assert_int_equal(symlinkat("../kept", fd, "gone/link"), 0);
    assert_int_equal(rmtree(fd, "gone", 10), 0);
    struct stat st;
    assert_int_equal(fstatat(fd, "kept", &st, 0), 0);
    assert_int_equal(st.st_mode & 0777, 0500);
    assert_int_equal(rmtree(fd, "kept", 10), 0);
    assert_int_equal(rmdir(base), 0);
}

UNIT_MAIN(cmocka_unit_test(test_kinds), cmocka_unit_test(test_deep),
          cmocka_unit_test(test_leaves_the_rest))
