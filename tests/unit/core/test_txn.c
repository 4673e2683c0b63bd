/* core/txn: a failure at every step leaves the disk as it was; others' changes in between are seen;
 * what cannot be put back is told (F11, A18). Runs a second time with renameat2 denied, as on a
 * file system that cannot exchange names. */
#include "../../helpers/deny.h"
#include "../../helpers/scratch.h"
#include "../../helpers/unit.h"
#include "base/mem.h"
#include "core/txn.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* The transaction that all tests run: two files in new directories, one replaced, one removed, one
 * moved. */
#define N_OPS 5

struct job {
    struct scratch *s;
    struct stat replaced;
    struct stat removed;
    struct stat moved;
    struct txn_op ops[N_OPS];
    bool standing[N_OPS];
    struct err why;
    /* The probe. */
    enum txn_step step;
    size_t op;
    int fail;
    void (*act)(struct scratch *s);
    enum txn_step step2;
    size_t op2;
    void (*act2)(struct scratch *s);
};

static int probe(void *data, enum txn_step step, size_t op)
{
    struct job *j = data;
    if (j->act2 != NULL && step == j->step2 && op == j->op2)
        j->act2(j->s);
    if (step != j->step || op != j->op)
        return 0;
    if (j->act != NULL)
        j->act(j->s);
    return j->fail;
}

static void stat_of(struct scratch *s, const char *path, struct stat *st)
{
    assert_int_equal(fstatat(s->ws.root_fd, path, st, AT_SYMLINK_NOFOLLOW), 0);
}

static void job_init(struct job *j, struct scratch *s)
{
    *j = (struct job){.s = s, .op = SIZE_MAX};
    scratch_put(s, "d/replaced", "old\n");
    scratch_put(s, "removed", "old\n");
    scratch_put(s, "moved", "old\n");
    stat_of(s, "d/replaced", &j->replaced);
    stat_of(s, "removed", &j->removed);
    stat_of(s, "moved", &j->moved);
    const struct txn_op ops[N_OPS] = {
        {TXN_CREATE, "x/y/new", "new\n", 4, NULL, NULL, NULL},
        {TXN_REPLACE, "d/replaced", "NEW\n", 4, &j->replaced, "d/replaced", &j->replaced},
        {TXN_REMOVE, "removed", NULL, 0, &j->removed, NULL, NULL},
        {TXN_CREATE, "x/target", "moved\n", 6, NULL, "moved", &j->moved},
        {TXN_REMOVE, "moved", NULL, 0, &j->moved, NULL, NULL},
    };
    memcpy(j->ops, ops, sizeof(ops));
}

static enum txn_outcome job_run(struct job *j)
{
    struct txn_probe p = {probe, j};
    struct txn_env env = {.root_fd = j->s->ws.root_fd, .probe = &p};
    return txn_run(&env, j->ops, N_OPS, j->standing, &j->why);
}

static void expect_inode(struct scratch *s, const char *path, const struct stat *was)
{
    struct stat st;
    stat_of(s, path, &st);
    assert_int_equal(st.st_ino, was->st_ino);
    assert_int_equal(st.st_mtim.tv_nsec, was->st_mtim.tv_nsec);
    scratch_expect(s, path, "old\n");
}

/* As it was: the very inodes, and nothing besides. */
static void expect_untouched(struct job *j)
{
    expect_inode(j->s, "d/replaced", &j->replaced);
    expect_inode(j->s, "removed", &j->removed);
    expect_inode(j->s, "moved", &j->moved);
    assert_false(scratch_has(j->s, "x"));
    assert_int_equal(scratch_leftovers(j->s), 0);
    for (size_t i = 0; i < N_OPS; i++)
        assert_false(j->standing[i]);
}

static void test_applies(void **state)
{
    struct scratch *s = *state;
    struct job j;
    job_init(&j, s);
    assert_int_equal(fchmodat(s->ws.root_fd, "moved", 0751, 0), 0);
    stat_of(s, "moved", &j.moved);
    assert_int_equal(job_run(&j), TXN_APPLIED);
    scratch_expect(s, "x/y/new", "new\n");
    scratch_expect(s, "d/replaced", "NEW\n");
    scratch_expect(s, "x/target", "moved\n");
    assert_false(scratch_has(s, "removed"));
    assert_false(scratch_has(s, "moved"));
    assert_int_equal(scratch_leftovers(s), 0);
    struct stat st;
    stat_of(s, "x/target", &st);
    assert_int_equal(st.st_mode & 07777, 0751);
    for (size_t i = 0; i < N_OPS; i++)
        assert_true(j.standing[i]);
}

static void test_a_failure_at_every_step_leaves_everything(void **state)
{
    struct scratch *s = *state;
    static const enum txn_step steps[] = {TXN_DIRECTORY, TXN_STAGE, TXN_CHECK, TXN_COMMIT};
    static const int errors[] = {-ENOSPC, -EACCES, -EIO, -EROFS};
    for (size_t k = 0; k < ARRAY_LEN(steps); k++) {
        for (size_t op = 0; op < N_OPS; op++) {
            struct job j;
            job_init(&j, s);
            j.step = steps[k];
            j.op = op;
            j.fail = errors[(k + op) % ARRAY_LEN(errors)];
            bool committed = steps[k] == TXN_COMMIT && op > 0;
            assert_int_equal(job_run(&j), committed ? TXN_ROLLED_BACK : TXN_REFUSED);
            assert_int_equal(j.why.code, ERR_FILE_OPERATION_FAILED);
            assert_int_equal(j.why.sys, -j.fail);
            assert_non_null(strstr(j.why.message, j.ops[op].path));
            expect_untouched(&j);
        }
    }
}

static void test_a_failed_sync_goes_back(void **state)
{
    struct scratch *s = *state;
    struct job j;
    job_init(&j, s);
    j.step = TXN_SYNC;
    j.op = 0;
    j.fail = -EIO;
    assert_int_equal(job_run(&j), TXN_ROLLED_BACK);
    expect_untouched(&j);
}

/* ---- others write meanwhile ---- */

static void write_in_place(struct scratch *s)
{
    scratch_put(s, "d/replaced", "theirs, longer\n");
}

static void save_atomically(struct scratch *s)
{
    scratch_put(s, "d/tmp", "theirs\n");
    assert_int_equal(renameat(s->ws.root_fd, "d/tmp", s->ws.root_fd, "d/replaced"), 0);
}

static void remove_target(struct scratch *s)
{
    assert_int_equal(unlinkat(s->ws.root_fd, "d/replaced", 0), 0);
}

static void put_directory(struct scratch *s)
{
    remove_target(s);
    scratch_put(s, "d/replaced/inner", "theirs\n");
}

static void put_symlink(struct scratch *s)
{
    scratch_put(s, "../outside", "old\n");
    remove_target(s);
    assert_int_equal(symlinkat("../../outside", s->ws.root_fd, "d/replaced"), 0);
}

static void make_new(struct scratch *s)
{
    scratch_put(s, "x/y/new", "theirs\n");
}

static void replace_removed(struct scratch *s)
{
    scratch_put(s, "tmp", "theirs\n");
    assert_int_equal(renameat(s->ws.root_fd, "tmp", s->ws.root_fd, "removed"), 0);
}

static const struct {
    void (*act)(struct scratch *s);
    enum txn_step step;
    size_t op;
    enum err_code code;
    const char *path;
    const char *holds; /* NULL: does not exist */
} races[] = {
    {write_in_place, TXN_STAGE, 1, ERR_VERSION_CONFLICT, "d/replaced", "theirs, longer\n"},
    {write_in_place, TXN_CHECK, 1, ERR_VERSION_CONFLICT, "d/replaced", "theirs, longer\n"},
    {write_in_place, TXN_COMMIT, 1, ERR_VERSION_CONFLICT, "d/replaced", "theirs, longer\n"},
    {save_atomically, TXN_STAGE, 1, ERR_VERSION_CONFLICT, "d/replaced", "theirs\n"},
    {save_atomically, TXN_CHECK, 1, ERR_VERSION_CONFLICT, "d/replaced", "theirs\n"},
    {save_atomically, TXN_COMMIT, 1, ERR_VERSION_CONFLICT, "d/replaced", "theirs\n"},
    {remove_target, TXN_CHECK, 1, ERR_VERSION_CONFLICT, "d/replaced", NULL},
    {remove_target, TXN_COMMIT, 1, ERR_VERSION_CONFLICT, "d/replaced", NULL},
    {put_directory, TXN_CHECK, 1, ERR_VERSION_CONFLICT, "d/replaced/inner", "theirs\n"},
    {put_directory, TXN_COMMIT, 1, ERR_VERSION_CONFLICT, "d/replaced/inner", "theirs\n"},
    {put_symlink, TXN_CHECK, 1, ERR_VERSION_CONFLICT, "../outside", "old\n"},
    {put_symlink, TXN_COMMIT, 1, ERR_VERSION_CONFLICT, "../outside", "old\n"},
    {make_new, TXN_CHECK, 0, ERR_ADD_FILE_EXISTS, "x/y/new", "theirs\n"},
    {make_new, TXN_COMMIT, 0, ERR_ADD_FILE_EXISTS, "x/y/new", "theirs\n"},
    {replace_removed, TXN_CHECK, 2, ERR_VERSION_CONFLICT, "removed", "theirs\n"},
    {replace_removed, TXN_COMMIT, 2, ERR_VERSION_CONFLICT, "removed", "theirs\n"},
};

static void expect_race(struct scratch *s, size_t i)
{
    struct job j;
    job_init(&j, s);
    j.step = races[i].step;
    j.op = races[i].op;
    j.act = races[i].act;
    enum txn_outcome out = job_run(&j);
    /* What is there before the first rename is seen before the first rename. */
    enum txn_outcome want =
        races[i].step == TXN_COMMIT && races[i].op > 0 ? TXN_ROLLED_BACK : TXN_REFUSED;
    if (out != want)
        fail_msg("race %zu: outcome %d, %s", i, (int)out, j.why.message);
    if (j.why.code != races[i].code)
        fail_msg("race %zu: %s", i, j.why.message);
    if (races[i].holds == NULL)
        assert_false(scratch_has(s, races[i].path));
    else
        scratch_expect(s, races[i].path, races[i].holds);
    expect_inode(s, "moved", &j.moved);
    assert_false(scratch_has(s, "x/target"));
    assert_int_equal(scratch_leftovers(s), 0);
}

static void test_races_are_seen(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(races); i++) {
        void *scratch = NULL;
        assert_int_equal(scratch_up(&scratch), 0);
        expect_race(scratch, i);
        assert_int_equal(scratch_down(&scratch), 0);
    }
}

/* ---- directories that move away meanwhile ---- */

static void swap_directory_for_link(struct scratch *s)
{
    scratch_mkdir(s, "../outside");
    assert_int_equal(renameat(s->ws.root_fd, "d", s->ws.root_fd, "elsewhere"), 0);
    assert_int_equal(symlinkat("../outside", s->ws.root_fd, "d"), 0);
}

static void test_a_swapped_directory_leads_nowhere(void **state)
{
    struct scratch *s = *state;
    struct job j;
    job_init(&j, s);
    j.step = TXN_COMMIT;
    j.op = 0;
    j.act = swap_directory_for_link;
    assert_int_equal(job_run(&j), TXN_APPLIED);
    scratch_expect(s, "elsewhere/replaced", "NEW\n");
    assert_false(scratch_has(s, "../outside/replaced"));
    assert_int_equal(scratch_leftovers(s), 0);
}

/* ---- what cannot be put back ---- */

static void test_what_is_stuck_is_told_and_kept(void **state)
{
    struct scratch *s = *state;
    struct job j;
    job_init(&j, s);
    j.step = TXN_UNDO;
    j.op = 1;
    j.fail = -EIO;
    /* The commit of the fourth operation fails because its target appears. */
    j.step2 = TXN_COMMIT;
    j.op2 = 3;
    j.act2 = make_new;
    struct stat st;
    j.ops[3].path = "x/y/new"; /* taken by the first operation: fails at commit */
    assert_int_equal(job_run(&j), TXN_PARTIAL);
    assert_true(j.standing[1]);
    assert_false(j.standing[0]);
    assert_false(j.standing[2]);
    scratch_expect(s, "d/replaced", "NEW\n");
    expect_inode(s, "removed", &j.removed);
    expect_inode(s, "moved", &j.moved);
    const char *name = strstr(j.why.message, ".codespace-");
    assert_non_null(name);
    assert_non_null(strstr(j.why.message, "d/replaced could not be put back (Input/output error)"));
    autofree char *path =
        mem_printf("d/%.*s", (int)strlen(".codespace-0123456789abcdef.tmp"), name);
    stat_of(s, path, &st);
    assert_int_equal(st.st_ino, j.replaced.st_ino);
    assert_int_equal(scratch_leftovers(s), 1);
}

static void take_the_name(struct scratch *s)
{
    scratch_put(s, "removed", "theirs\n");
}

static void test_a_name_taken_during_undo_is_left_to_its_taker(void **state)
{
    struct scratch *s = *state;
    struct job j;
    job_init(&j, s);
    j.step = TXN_COMMIT;
    j.op = 3;
    j.fail = -EIO;
    j.step2 = TXN_UNDO;
    j.op2 = 2;
    j.act2 = take_the_name;
    assert_int_equal(job_run(&j), TXN_PARTIAL);
    scratch_expect(s, "removed", "theirs\n");
    assert_non_null(strstr(j.why.message, "removed could not be put back (File exists)"));
    expect_inode(s, "d/replaced", &j.replaced);
}

/* A directory of ours that somebody else put a file into stays, with that file. */
static void put_beside_new(struct scratch *s)
{
    scratch_put(s, "x/theirs", "theirs\n");
}

static void test_directories_with_others_files_stay(void **state)
{
    struct scratch *s = *state;
    struct job j;
    job_init(&j, s);
    j.step = TXN_COMMIT;
    j.op = 3;
    j.fail = -EIO;
    j.act = put_beside_new;
    assert_int_equal(job_run(&j), TXN_ROLLED_BACK);
    scratch_expect(s, "x/theirs", "theirs\n");
    assert_false(scratch_has(s, "x/y"));
    assert_int_equal(scratch_leftovers(s), 0);
}

/* So many files that several threads make and remove them, without a probe. */
#define MANY 300

struct many {
    char paths[MANY][16];
    struct stat was[MANY];
    struct txn_op ops[MANY];
    bool standing[MANY];
};

static void many_init(struct many *m, struct scratch *s)
{
    for (size_t i = 0; i < MANY; i++) {
        snprintf(m->paths[i], sizeof(m->paths[i]), "d%zu/f%zu", i / 40, i);
        scratch_put(s, m->paths[i], "old\n");
        stat_of(s, m->paths[i], &m->was[i]);
        m->ops[i] = (struct txn_op){.kind = i % 7 == 0 ? TXN_REMOVE : TXN_REPLACE,
                                    .path = m->paths[i],
                                    .bytes = "NEW\n",
                                    .len = 4,
                                    .was = &m->was[i],
                                    .meta_path = m->paths[i],
                                    .meta_was = &m->was[i]};
    }
}

static void test_many_files(void **state)
{
    struct scratch *s = *state;
    struct err why = {0};
    for (int lax = 0; lax < 2; lax++) {
        autofree struct many *m = mem_new(struct many);
        many_init(m, s);
        struct txn_env env = {.root_fd = s->ws.root_fd, .lax = lax};
        assert_int_equal(txn_run(&env, m->ops, MANY, m->standing, &why), TXN_APPLIED);
        assert_int_equal(scratch_leftovers(s), 0);
        for (size_t i = 0; i < MANY; i++) {
            assert_true(m->standing[i]);
            assert_int_equal(scratch_has(s, m->paths[i]), i % 7 != 0);
            if (i % 7 != 0)
                scratch_expect(s, m->paths[i], "NEW\n");
        }
    }
}

/* Wherever the one is that cannot be made, all are as they were. */
static void test_one_of_many_fails(void **state)
{
    struct scratch *s = *state;
    static const size_t which[] = {1, 2, MANY / 2, MANY - 2, MANY - 1};
    for (size_t k = 0; k < ARRAY_LEN(which); k++) {
        autofree struct many *m = mem_new(struct many);
        struct err why = {0};
        many_init(m, s);
        scratch_put(s, m->paths[which[k]], "theirs\n");
        struct txn_env env = {.root_fd = s->ws.root_fd, .lax = true};
        assert_int_equal(txn_run(&env, m->ops, MANY, m->standing, &why), TXN_REFUSED);
        assert_int_equal(why.code, ERR_VERSION_CONFLICT);
        assert_non_null(strstr(why.message, m->paths[which[k]]));
        assert_int_equal(scratch_leftovers(s), 0);
        for (size_t i = 0; i < MANY; i++) {
            assert_false(m->standing[i]);
            scratch_expect(s, m->paths[i], i == which[k] ? "theirs\n" : "old\n");
        }
    }
}

/* Replacements only: their names are exchanged by several threads. The one that fails may be found
 * when others were exchanged already. */
static void test_one_of_many_replacements_is_changed_late(void **state)
{
    struct scratch *s = *state;
    autofree struct many *m = mem_new(struct many);
    struct err why = {0};
    many_init(m, s);
    for (size_t i = 0; i < MANY; i++)
        m->ops[i].kind = TXN_REPLACE;
    /* Same size and time as was planned against, and another file: only the number tells. */
    scratch_put(s, "other", "old\n");
    const struct timespec times[2] = {m->was[MANY - 1].st_atim, m->was[MANY - 1].st_mtim};
    assert_int_equal(utimensat(s->ws.root_fd, "other", times, 0), 0);
    assert_int_equal(renameat(s->ws.root_fd, "other", s->ws.root_fd, m->paths[MANY - 1]), 0);
    struct txn_env env = {.root_fd = s->ws.root_fd};
    assert_int_equal(txn_run(&env, m->ops, MANY, m->standing, &why), TXN_REFUSED);
    assert_int_equal(scratch_leftovers(s), 0);
    stat_of(s, m->paths[MANY - 1], &m->was[MANY - 1]);
    assert_int_equal(txn_run(&env, m->ops, MANY, m->standing, &why), TXN_APPLIED);
    for (size_t i = 0; i < MANY; i++)
        scratch_expect(s, m->paths[i], "NEW\n");
    assert_int_equal(scratch_leftovers(s), 0);
}

/* The n-th exchange fails while other threads are at theirs. */
struct nth {
    enum txn_step step;
    size_t op;
    int error;
    atomic_uint exchanges;
};

static int fail_nth(void *data, enum txn_step step, size_t op)
{
    struct nth *x = data;
    if (step == TXN_COMMIT)
        atomic_fetch_add(&x->exchanges, 1);
    return step == x->step && op == x->op ? x->error : 0;
}

static void run_nth(struct scratch *s, struct many *m, struct nth x)
{
    const struct txn_probe probe = {fail_nth, &x};
    const struct txn_env env = {.root_fd = s->ws.root_fd, .probe = &probe, .lax = true};
    struct err why = {0};
    enum txn_outcome out = txn_run(&env, m->ops, MANY, m->standing, &why);
    /* What a thread did before its failure is put back; with the very first of it, perhaps
     * nothing was done yet. */
    assert_true(out == TXN_ROLLED_BACK || (out == TXN_REFUSED && x.step != TXN_SYNC));
    if (x.step == TXN_COMMIT && x.op == MANY / 2 - 1)
        assert_int_equal(out, TXN_ROLLED_BACK);
    if (x.step == TXN_SYNC)
        assert_int_equal(x.exchanges, MANY);
    assert_int_equal(why.code, ERR_FILE_OPERATION_FAILED);
    assert_int_equal(why.sys, -x.error);
    assert_int_equal(scratch_leftovers(s), 0);
    for (size_t i = 0; i < MANY; i++) {
        assert_false(m->standing[i]);
        expect_inode(s, m->paths[i], &m->was[i]);
    }
}

static void test_the_nth_of_many_exchanges_fails(void **state)
{
    struct scratch *s = *state;
    autofree struct many *m = mem_new(struct many);
    static const size_t which[] = {0, 1, MANY / 4, MANY / 2 - 1, MANY / 2, MANY - 2, MANY - 1};
    static const int errors[] = {-EACCES, -ENOSPC, -EIO};
    many_init(m, s);
    for (size_t i = 0; i < MANY; i++)
        m->ops[i].kind = TXN_REPLACE;
    for (size_t k = 0; k < ARRAY_LEN(which); k++) {
        for (size_t i = 0; i < ARRAY_LEN(errors); i++)
            run_nth(s, m, (struct nth){.step = TXN_COMMIT, .op = which[k], .error = errors[i]});
    }
    /* All were exchanged, and the directories cannot be synced. */
    run_nth(s, m, (struct nth){.step = TXN_SYNC, .error = -EIO});
    struct txn_env env = {.root_fd = s->ws.root_fd, .lax = true};
    assert_int_equal(txn_run(&env, m->ops, MANY, m->standing, NULL), TXN_APPLIED);
}

/* What a file without attributes got after it was planned against is kept all the same. */
static void chmod_replaced(struct scratch *s)
{
    assert_int_equal(fchmodat(s->ws.root_fd, "d/replaced", 0640, 0), 0);
}

static void test_a_mode_that_changes_late_is_kept(void **state)
{
    struct scratch *s = *state;
    static const enum txn_step steps[] = {TXN_STAGE, TXN_CHECK};
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        struct job j;
        struct stat st;
        job_init(&j, s);
        assert_int_equal(fchmodat(s->ws.root_fd, "d/replaced", 0604, 0), 0);
        stat_of(s, "d/replaced", &j.replaced);
        j.ops[1].plain = true;
        j.step = steps[i];
        j.op = 0; /* it runs alone */
        j.act = chmod_replaced;
        /* A change within one tick of the clock that stamps files could not be told. */
        do
            assert_int_equal(clock_gettime(CLOCK_REALTIME_COARSE, &st.st_ctim), 0);
        while (st.st_ctim.tv_sec == j.replaced.st_ctim.tv_sec &&
               st.st_ctim.tv_nsec <= j.replaced.st_ctim.tv_nsec);
        struct txn_probe p = {probe, &j};
        struct txn_env env = {.root_fd = s->ws.root_fd, .probe = &p};
        assert_int_equal(txn_run(&env, &j.ops[1], 1, j.standing, &j.why), TXN_APPLIED);
        scratch_expect(s, "d/replaced", "NEW\n");
        stat_of(s, "d/replaced", &st);
        assert_int_equal(st.st_mode & 07777, 0640);
        assert_int_equal(scratch_leftovers(s), 0);
    }
}

static bool say_no(void *user)
{
    ++*(int *)user;
    return false;
}

static size_t count_open(int *linger, size_t n)
{
    size_t open = 0;
    for (size_t i = 0; i < n; i++) {
        struct stat st;
        if (linger[i] < 0)
            continue;
        assert_int_equal(fstat(linger[i], &st), 0);
        assert_int_equal(st.st_nlink, 0);
        assert_int_equal(st.st_size, 4);
        close(linger[i]);
        open++;
    }
    return open;
}

/* Old files have no name any more, and are kept open for the caller, who may not want that. */
static void test_what_was_replaced_lingers(void **state)
{
    struct scratch *s = *state;
    for (int refuse = 0; refuse < 2; refuse++) {
        struct job j;
        int linger[N_OPS];
        int asked = 0;
        job_init(&j, s);
        memset(linger, -1, sizeof(linger));
        struct txn_env env = {.root_fd = s->ws.root_fd, .linger = linger, .user = &asked};
        env.may_linger = refuse ? say_no : NULL;
        assert_int_equal(txn_run(&env, j.ops, N_OPS, j.standing, &j.why), TXN_APPLIED);
        assert_int_equal(scratch_leftovers(s), 0);
        assert_int_equal(asked, refuse);
        /* Replaced, removed, moved. */
        assert_int_equal(count_open(linger, N_OPS), refuse ? 0 : 3);
        (void)unlinkat(s->ws.root_fd, "x/y/new", 0);
        (void)unlinkat(s->ws.root_fd, "x/target", 0);
    }
}

#define S(f) cmocka_unit_test_setup_teardown(f, scratch_up, scratch_down)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        S(test_applies),
        S(test_a_failure_at_every_step_leaves_everything),
        S(test_a_failed_sync_goes_back),
        cmocka_unit_test(test_races_are_seen),
        S(test_a_swapped_directory_leads_nowhere),
        S(test_what_is_stuck_is_told_and_kept),
        S(test_a_name_taken_during_undo_is_left_to_its_taker),
        S(test_directories_with_others_files_stay),
        S(test_many_files),
        S(test_one_of_many_fails),
        S(test_one_of_many_replacements_is_changed_late),
        S(test_the_nth_of_many_exchanges_fails),
        S(test_a_mode_that_changes_late_is_kept),
        S(test_what_was_replaced_lingers),
    };
    if (argc > 1 && strcmp(argv[1], "without-renameat2") == 0 &&
        deny_syscall(SYS_renameat2, ENOSYS) < 0)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
