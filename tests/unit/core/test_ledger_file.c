/* core/ledger_file: what may be a ledger, whose it is, and one gateway on it. */
#include "ledger_fixture.h"

#include <signal.h>
#include <sys/wait.h>

static mode_t mode_of(const char *path)
{
    struct stat st = {0};
    assert_int_equal(lstat(path, &st), 0);
    return st.st_mode & 07777;
}

static void test_file_and_parents_are_private(void **state)
{
    struct fixture *f = *state;
    mode_t old = umask(0);
    snprintf(f->path, sizeof(f->path), "%s/a/b/ops.db", f->dir);
    fixture_open(f);
    umask(old);
    char name[128];
    assert_false(ledger_in_memory(f->l));
    assert_string_equal(ledger_path(f->l), f->path);
    assert_int_equal(mode_of(f->path), 0600);
    static const char *const sides[] = {"-wal", "-shm", "-gateway"};
    for (size_t i = 0; i < ARRAY_LEN(sides); i++) {
        snprintf(name, sizeof(name), "%s%s", f->path, sides[i]);
        assert_int_equal(mode_of(name), 0600);
    }
    snprintf(name, sizeof(name), "%s/a", f->dir);
    assert_int_equal(mode_of(name), 0700);
    snprintf(name, sizeof(name), "%s/a/b", f->dir);
    assert_int_equal(mode_of(name), 0700);
}

static void test_a_loose_mode_is_tightened(void **state)
{
    struct fixture *f = *state;
    fixture_open(f);
    fixture_close(f);
    assert_int_equal(chmod(f->path, 0666), 0);
    fixture_open(f);
    assert_int_equal(mode_of(f->path), 0600);
}

static void test_what_is_not_a_file_of_ours_is_refused(void **state)
{
    struct fixture *f = *state;
    char other[128];
    snprintf(other, sizeof(other), "%s/other", f->dir);
    fixture_put_file(other, "", 0);
    assert_int_equal(symlink(other, f->path), 0);
    fixture_expect_refusal(f, f->path, "symbolic link");
    assert_int_equal(unlink(f->path), 0);
    assert_int_equal(symlink("/nowhere/at/all", f->path), 0);
    fixture_expect_refusal(f, f->path, "symbolic link");
    assert_int_equal(unlink(f->path), 0);
    assert_int_equal(mkfifo(f->path, 0600), 0);
    fixture_expect_refusal(f, f->path, "not a regular file");
    assert_int_equal(unlink(f->path), 0);
    assert_int_equal(mkdir(f->path, 0700), 0);
    fixture_expect_refusal(f, f->path, "not a regular file");
    assert_int_equal(rmdir(f->path), 0);
    assert_int_equal(link(other, f->path), 0);
    fixture_expect_refusal(f, f->path, "hard links");
    assert_int_equal(unlink(f->path), 0);
}

static void test_side_files_are_checked_too(void **state)
{
    struct fixture *f = *state;
    static const char *const sides[] = {"-wal", "-shm", "-journal", "-gateway"};
    for (size_t i = 0; i < ARRAY_LEN(sides); i++) {
        char name[128];
        snprintf(name, sizeof(name), "%s%s", f->path, sides[i]);
        unlink(name); /* a refused attempt has made its own -gateway */
        assert_int_equal(symlink("/etc/passwd", name), 0);
        fixture_expect_refusal(f, f->path, "symbolic link");
        assert_int_equal(unlink(name), 0);
        assert_int_equal(mkfifo(name, 0600), 0);
        fixture_expect_refusal(f, f->path, "not a regular file");
        assert_int_equal(unlink(name), 0);
    }
    fixture_open(f);
}

static void test_another_owner_is_refused(void **state)
{
    struct fixture *f = *state;
    if (geteuid() != 0) {
        /* An ordinary user meets it with any file of root's. */
        fixture_expect_refusal(f, "/etc/passwd", "/etc/passwd");
        return;
    }
    fixture_put_file(f->path, "", 0);
    assert_int_equal(chown(f->path, 12345, 12345), 0);
    fixture_expect_refusal(f, f->path, "another user (uid 12345)");
    assert_int_equal(unlink(f->path), 0);
    assert_int_equal(chown(f->dir, 12345, 12345), 0);
    fixture_expect_refusal(f, f->path, "another user (uid 12345)");
    assert_int_equal(chown(f->dir, 0, 0), 0);
}

static void test_paths_that_name_no_file(void **state)
{
    struct fixture *f = *state;
    static const char *const rows[] = {"/", "/tmp/", "/tmp/.", "/tmp/..", ".."};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        fixture_expect_refusal(f, rows[i], "does not name a file");
    fixture_expect_refusal(f, "/dev/null/ops.db", "/dev/null");
    assert_int_equal(chmod(f->dir, 0777), 0);
    fixture_expect_refusal(f, f->path, "everybody may write");
    char below[128];
    snprintf(below, sizeof(below), "%s/mine", f->dir);
    assert_int_equal(mkdir(below, 0700), 0);
    snprintf(below, sizeof(below), "%s/mine/ops.db", f->dir);
    fixture_expect_refusal(f, below, "everybody may write");
    assert_int_equal(chmod(f->dir, 01777), 0);
    fixture_open(f);
}

static void test_a_symlinked_parent_is_followed_once(void **state)
{
    struct fixture *f = *state;
    char name[128];
    snprintf(name, sizeof(name), "%s/real", f->dir);
    assert_int_equal(mkdir(name, 0700), 0);
    snprintf(name, sizeof(name), "%s/link", f->dir);
    assert_int_equal(symlink("real", name), 0);
    snprintf(f->path, sizeof(f->path), "%s/link/ops.db", f->dir);
    fixture_open(f);
    snprintf(name, sizeof(name), "%s/real/ops.db", f->dir);
    assert_string_equal(ledger_path(f->l), name);
    /* The other name of the same file is the same ledger. */
    fixture_expect_refusal(f, name, "another gateway");
}

static void test_a_second_gateway_is_refused_by_name(void **state)
{
    struct fixture *f = *state;
    char who[32];
    snprintf(who, sizeof(who), "(process %d)", (int)getpid());
    fixture_expect_refusal(f, f->path, who);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct ledger_options o = {.path = f->path};
        struct ledger *l = NULL;
        struct err e = {0};
        int r = ledger_open(&o, &l, &e);
        _exit(r == -1 && strstr(e.message, who) != NULL ? 0 : 1);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    /* The refused attempts did not take the first one's locks away. */
    fixture_add_operations(f, 3);
    assert_int_equal(fixture_number(f, "SELECT count(*) FROM operations"), 3);
    fixture_reopen(f);
}

static void test_a_killed_gateway_leaves_no_lock(void **state)
{
    struct fixture *f = *state;
    int ready[2];
    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        fixture_open(f);
        fixture_add_operations(f, 5);
        if (write(ready[1], "x", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    char c = 0;
    assert_int_equal(read(ready[0], &c, 1), 1);
    fixture_expect_refusal(f, f->path, "another gateway");
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    close(ready[0]);
    close(ready[1]);
    fixture_open(f);
    assert_int_equal(fixture_number(f, "SELECT count(*) FROM operations"), 5);
}

UNIT_MAIN(TEST_DIR(test_file_and_parents_are_private), TEST_DIR(test_a_loose_mode_is_tightened),
          TEST_DIR(test_what_is_not_a_file_of_ours_is_refused),
          TEST_DIR(test_side_files_are_checked_too), TEST_DIR(test_another_owner_is_refused),
          TEST_DIR(test_paths_that_name_no_file),
          TEST_DIR(test_a_symlinked_parent_is_followed_once),
          TEST(test_a_second_gateway_is_refused_by_name),
          TEST_DIR(test_a_killed_gateway_leaves_no_lock))
