/* sys/privdir: private when written, and taken only when still private; used once. */
#include "../../helpers/unit.h"
#include "base/mem.h"
#include "base/str.h"
#include "sys/privdir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static char base[64];

static int make_base(void **state)
{
    (void)state;
    snprintf(base, sizeof(base), "/tmp/cs-test-privdir-XXXXXX");
    return mkdtemp(base) == NULL ? -1 : 0;
}

/* Fails when a test left something in it. */
static int remove_base(void **state)
{
    (void)state;
    return rmdir(base);
}

static char *write_one(void)
{
    char *path = NULL;
    assert_int_equal(privdir_write(base, "p-", "file", "words", 5, &path), 0);
    return path;
}

static void remove_one(const char *path)
{
    autofree char *dir = mem_dup(path, (size_t)(strrchr(path, '/') - path));
    unlink(path);
    assert_int_equal(rmdir(dir), 0);
}

static void test_there_and_back(void **state)
{
    (void)state;
    struct stat st;
    char text[8] = "";
    size_t size = 0;
    autofree char *path = write_one();
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    autofd int fd = privdir_take(path, "p-", 100, &size);
    assert_true(fd >= 0);
    assert_int_equal(size, 5);
    assert_int_equal(read(fd, text, sizeof(text)), 5);
    assert_string_equal(text, "words");
    assert_int_equal(privdir_take(path, "p-", 100, &size), -ENOENT);
}

static void test_discard(void **state)
{
    (void)state;
    autofree char *path = write_one();
    privdir_discard(path); /* the directory, too: remove_base() sees to it */
    assert_int_equal(access(path, F_OK), -1);
    privdir_discard(path);
    privdir_discard("no-slash");
    privdir_discard("/no-directory-of-ours");
}

static void test_another_prefix_keeps_the_directory(void **state)
{
    (void)state;
    size_t size;
    autofree char *path = write_one();
    autofd int fd = privdir_take(path, "other-", 100, &size);
    assert_true(fd >= 0);
    assert_int_equal(access(path, F_OK), -1);
    remove_one(path);
}

static void test_too_large(void **state)
{
    (void)state;
    size_t size;
    autofree char *path = write_one();
    assert_int_equal(privdir_take(path, "p-", 4, &size), -EFBIG);
    assert_int_equal(access(path, F_OK), -1);
}

static void test_paths(void **state)
{
    (void)state;
    size_t size;
    assert_int_equal(privdir_take("relative/file", "p-", 4, &size), -EINVAL);
    assert_int_equal(privdir_take("/file", "p-", 4, &size), -EINVAL);
    assert_int_equal(privdir_take("/tmp/dir/", "p-", 4, &size), -EINVAL);
    assert_int_equal(privdir_take("", "p-", 4, &size), -EINVAL);
    char *path = NULL;
    assert_int_equal(privdir_write("/nonexistent", "p-", "f", "x", 1, &path), -ENOENT);
    assert_null(path);
}

static void test_not_private(void **state)
{
    (void)state;
    size_t size;
    autofree char *path = write_one();
    autofree char *other = mem_printf("%s.other", path);
    autofree char *dir = mem_dup(path, (size_t)(strrchr(path, '/') - path));
    chmod(path, 0604);
    assert_int_equal(privdir_take(path, "p-", 100, &size), -EPERM);
    chmod(path, 0600);
    chmod(dir, 0750);
    assert_int_equal(privdir_take(path, "p-", 100, &size), -EPERM);
    chmod(dir, 0700);
    assert_int_equal(link(path, other), 0);
    assert_int_equal(privdir_take(path, "p-", 100, &size), -EPERM);
    unlink(path);
    assert_int_equal(symlink(other, path), 0);
    assert_int_equal(privdir_take(path, "p-", 100, &size), -ELOOP);
    unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(privdir_take(path, "p-", 100, &size), -EPERM);
    unlink(other);
    remove_one(path);
}

UNIT_MAIN(cmocka_unit_test_setup_teardown(test_there_and_back, make_base, remove_base),
          cmocka_unit_test_setup_teardown(test_discard, make_base, remove_base),
          cmocka_unit_test_setup_teardown(test_another_prefix_keeps_the_directory, make_base,
                                          remove_base),
          cmocka_unit_test_setup_teardown(test_too_large, make_base, remove_base),
          cmocka_unit_test(test_paths),
          cmocka_unit_test_setup_teardown(test_not_private, make_base, remove_base))
