/* core/journal_roots: slots, what a crash left in them, and who may keep them. */
#include "../../helpers/unit.h"

#include "base/mem.h"
#include "core/journal_roots.h"
#include "core/txn.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct fixture {
    char dir[64];
    char journals[96];
    char root[96];
    struct workspace ws;
};

static int setup(void **state)
{
    struct fixture *f = mem_new(struct fixture);
    strcpy(f->dir, "/tmp/test-journal-roots-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    snprintf(f->journals, sizeof(f->journals), "%s/state/journals", f->dir);
    snprintf(f->root, sizeof(f->root), "%s/ws", f->dir);
    assert_int_equal(mkdir(f->root, 0755), 0);
    f->ws = (struct workspace){.id = mem_strdup("ws"), .root = f->root};
    f->ws.root_fd = open(f->root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    *state = f;
    return 0;
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    close(f->ws.root_fd);
    free(f->ws.id);
    nftw(f->dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    free(f);
    return 0;
}

static struct journal_roots *open_roots(struct fixture *f)
{
    struct err e;
    struct journal_roots *j = NULL;
    if (journal_roots_open(f->journals, &j, &e) < 0)
        fail_msg("%s", e.message);
    return j;
}

static struct journal *get(struct fixture *f, struct journal_roots *j)
{
    struct err e;
    struct journal *journal = NULL;
    if (journal_roots_get(j, &f->ws, &journal, &e) < 0)
        fail_msg("%s", e.message);
    return journal;
}

static unsigned count_entries(const char *path)
{
    unsigned n = 0;
    DIR *d = opendir(path);
    assert_non_null(d);
    for (struct dirent *it = readdir(d); it != NULL; it = readdir(d))
        n += it->d_name[0] != '.' || strlen(it->d_name) > 2;
    closedir(d);
    return n;
}

static void test_each_server_has_a_slot(void **state)
{
    struct fixture *f = *state;
    struct journal_roots *servers[JOURNAL_SLOTS + 1];
    struct journal *held[JOURNAL_SLOTS + 1];
    for (size_t i = 0; i < ARRAY_LEN(servers); i++) {
        servers[i] = open_roots(f);
        held[i] = get(f, servers[i]);
        assert_ptr_equal(get(f, servers[i]), held[i]);
    }
    for (size_t i = 0; i < JOURNAL_SLOTS; i++)
        assert_non_null(held[i]);
    assert_null(held[JOURNAL_SLOTS]); /* goes without */
    assert_int_equal(count_entries(f->journals), JOURNAL_SLOTS);
    /* A slot that is given up is taken by who asks next. */
    journal_roots_free(servers[3]);
    assert_non_null(get(f, servers[JOURNAL_SLOTS]));
    for (size_t i = 0; i < ARRAY_LEN(servers); i++) {
        if (i != 3)
            journal_roots_free(servers[i]);
    }
}

static int die(void *data, enum txn_step step, size_t op)
{
    (void)data;
    if (step == TXN_COMMIT && op == 1)
        _exit(7);
    return 0;
}

/* In a process of its own: a transaction of two files that ends between its renames. */
static void crash(struct fixture *f)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        const struct txn_op ops[] = {
            {.kind = TXN_CREATE, .path = "a", .bytes = "x", .len = 1},
            {.kind = TXN_CREATE, .path = "b", .bytes = "x", .len = 1},
        };
        struct txn_probe probe = {.before = die};
        bool standing[2];
        struct err why;
        struct journal_roots *j = open_roots(f);
        struct txn_env env = {.root_fd = f->ws.root_fd, .journal = get(f, j), .probe = &probe};
        (void)txn_run(&env, ops, 2, standing, &why);
        _exit(8);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(WEXITSTATUS(status), 7);
}

static void test_leftovers_are_settled(void **state)
{
    struct fixture *f = *state;
    struct journal_roots *busy = open_roots(f);
    assert_non_null(get(f, busy)); /* slot 0 stays held by a server that lives */
    crash(f);
    assert_true(count_entries(f->root) > 0);
    struct journal_roots *j = open_roots(f);
    assert_int_equal(journal_roots_settle(j, &f->ws), 1);
    assert_int_equal(count_entries(f->root), 0);
    assert_int_equal(journal_roots_settle(j, &f->ws), 0);
    journal_roots_free(j);
    journal_roots_free(busy);
}

/* The first patch settles, too, should nobody have asked before. */
static void test_get_settles(void **state)
{
    struct fixture *f = *state;
    crash(f);
    struct journal_roots *j = open_roots(f);
    assert_non_null(get(f, j));
    assert_int_equal(count_entries(f->root), 0);
    journal_roots_free(j);
}

/* What belongs to a directory that had this path is left, and keeps nobody from patching. */
static void test_another_directory(void **state)
{
    struct fixture *f = *state;
    char aside[128];
    crash(f);
    snprintf(aside, sizeof(aside), "%s.old", f->root);
    assert_int_equal(rename(f->root, aside), 0);
    assert_int_equal(mkdir(f->root, 0755), 0);
    close(f->ws.root_fd);
    f->ws.root_fd = open(f->root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    struct journal_roots *j = open_roots(f);
    assert_int_equal(journal_roots_settle(j, &f->ws), 0);
    assert_non_null(get(f, j));
    assert_true(count_entries(aside) > 0);
    journal_roots_free(j);
}

static void test_the_directory_is_private(void **state)
{
    struct fixture *f = *state;
    struct err e;
    struct stat st;
    struct journal_roots *j = open_roots(f);
    journal_roots_free(j);
    assert_int_equal(stat(f->journals, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    assert_int_equal(chmod(f->journals, 0770), 0);
    assert_int_equal(journal_roots_open(f->journals, &j, &e), -1);
    assert_int_equal(e.code, ERR_CONFIG_INVALID);
    char link[128];
    snprintf(link, sizeof(link), "%s/link", f->dir);
    assert_int_equal(symlink(f->root, link), 0);
    assert_int_equal(journal_roots_open(link, &j, &e), -1);
    assert_int_equal(e.code, ERR_FILE_OPERATION_FAILED);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
UNIT_MAIN(WITH(test_each_server_has_a_slot), WITH(test_leftovers_are_settled),
          WITH(test_get_settles), WITH(test_another_directory), WITH(test_the_directory_is_private))
