/* core/patch against a real disk that says no, and against a directory that is swapped for a link
 * all the time (F11, F15, A18). Each case runs in a child, since limits and identities do not come
 * back. */
#include "../../helpers/scratch.h"
#include "../../helpers/unit.h"
#include "base/mem.h"
#include "core/patch.h"
#include "sys/path.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* A child's answers. */
enum { CHILD_OK = 0, CHILD_WRONG = 1, CHILD_CANNOT = 77 };

static int in_child(int (*run)(struct scratch *s), struct scratch *s)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        _exit(run(s));
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

#define WRONG(...) (fprintf(stderr, __VA_ARGS__), fputc('\n', stderr), CHILD_WRONG)

/* Apply and compare with what is expected of a failure. */
static int expect_rolled_back(struct scratch *s, const char *text, const char *reason)
{
    struct patch_request q = {.text = text, .text_len = strlen(text)};
    struct patch_result r = {0};
    struct err e = {0};
    if (patch_apply(&s->ws, &q, &r, &e) < 0)
        return WRONG("refused: %s", e.message);
    if (r.status != PATCH_FAILED_ROLLED_BACK)
        return WRONG("%s: %s", patch_status_name(r.status), r.failure);
    if (strstr(r.failure, reason) == NULL ||
        strstr(r.failure, "all files are as they were") == NULL)
        return WRONG("%s", r.failure);
    for (size_t i = 0; i < r.n_changes; i++) {
        if (strcmp(r.changes[i].before, r.changes[i].after) != 0)
            return WRONG("%s is said to have changed", r.changes[i].path);
    }
    patch_result_fini(&r);
    return CHILD_OK;
}

/* Two small files and one that does not fit in between. */
static char *three_files(const char *big_path)
{
    autobuf b = BUF_INIT;
    buf_puts(&b, "*** Begin Patch\n*** Update File: a\n-a\n+A\n*** Delete File: gone\n");
    buf_printf(&b, "*** Add File: %s\n", big_path);
    for (int i = 0; i < 30000; i++)
        buf_puts(&b, "+0123456789\n");
    buf_puts(&b, "*** Add File: n/z\n+z\n*** End Patch\n");
    return buf_steal(&b);
}

static void put_three(struct scratch *s)
{
    scratch_put(s, "a", "a\n");
    scratch_put(s, "gone", "gone\n");
}

static void expect_three(struct scratch *s)
{
    scratch_expect(s, "a", "a\n");
    scratch_expect(s, "gone", "gone\n");
    assert_false(scratch_has(s, "n"));
    assert_int_equal(scratch_leftovers(s), 0);
}

static int run_file_size_limit(struct scratch *s)
{
    struct rlimit limit = {100000, 100000};
    signal(SIGXFSZ, SIG_IGN);
    if (setrlimit(RLIMIT_FSIZE, &limit) < 0)
        return CHILD_CANNOT;
    autofree char *text = three_files("n/big");
    return expect_rolled_back(s, text, "write n/big: File too large");
}

static void test_a_write_that_fails(void **state)
{
    struct scratch *s = *state;
    put_three(s);
    assert_int_equal(in_child(run_file_size_limit, s), CHILD_OK);
    expect_three(s);
}

/* A file system of 128 KiB over the root, in a mount namespace of the child's own. */
static int run_full_disk(struct scratch *s)
{
    if (unshare(CLONE_NEWNS) < 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
        return CHILD_CANNOT;
    if (mount("none", "/", "none", MS_REC | MS_PRIVATE, "") < 0 ||
        mount("tmpfs", s->ws.root, "tmpfs", 0, "size=128k") < 0)
        return CHILD_CANNOT;
    s->ws.root_fd = open(s->ws.root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    put_three(s);
    autofree char *text = three_files("n/big");
    int rc = expect_rolled_back(s, text, "write n/big: No space left on device");
    if (rc == CHILD_OK)
        expect_three(s);
    return rc;
}

static void test_a_full_disk(void **state)
{
    struct scratch *s = *state;
    int rc = in_child(run_full_disk, s);
    if (rc == CHILD_CANNOT) {
        print_message("no mount namespace can be made here\n");
        skip();
    }
    assert_int_equal(rc, CHILD_OK);
}

static int run_without_permission(struct scratch *s)
{
    if (getuid() == 0 && (setgid(65534) < 0 || setuid(65534) < 0))
        return CHILD_CANNOT;
    return expect_rolled_back(s,
                              "*** Begin Patch\n*** Update File: a\n-a\n+A\n"
                              "*** Update File: closed/f\n-f\n+F\n*** End Patch\n",
                              "write closed/f: Permission denied");
}

static void test_no_permission_on_the_second_file(void **state)
{
    struct scratch *s = *state;
    scratch_put(s, "a", "a\n");
    scratch_put(s, "closed/f", "f\n");
    assert_int_equal(chmod(s->dir, 0755), 0);
    assert_int_equal(chmod(s->ws.root, 0777), 0);
    assert_int_equal(fchmodat(s->ws.root_fd, "closed", 0555, 0), 0);
    assert_int_equal(in_child(run_without_permission, s), CHILD_OK);
    assert_int_equal(fchmodat(s->ws.root_fd, "closed", 0755, 0), 0);
    scratch_expect(s, "a", "a\n");
    scratch_expect(s, "closed/f", "f\n");
    assert_int_equal(scratch_leftovers(s), 0);
}

/* Owner and group of the file stay when root patches another user's file. */
static void test_owner_is_kept(void **state)
{
    struct scratch *s = *state;
    scratch_put(s, "f", "a\n");
    if (getuid() != 0) {
        print_message("only root can give files away\n");
        skip();
    }
    assert_int_equal(fchownat(s->ws.root_fd, "f", 1234, 5678, 0), 0);
    assert_int_equal(fchmodat(s->ws.root_fd, "f", 06755, 0), 0);
    static const char text[] = "*** Begin Patch\n*** Update File: f\n-a\n+b\n*** End Patch\n";
    struct patch_request q = {.text = text, .text_len = strlen(text)};
    struct patch_result r = {0};
    assert_int_equal(patch_apply(&s->ws, &q, &r, NULL), 0);
    patch_result_fini(&r);
    struct stat st;
    assert_int_equal(fstatat(s->ws.root_fd, "f", &st, 0), 0);
    assert_int_equal(st.st_uid, 1234);
    assert_int_equal(st.st_gid, 5678);
    assert_int_equal(st.st_mode & 07777, 06755);
}

/* ---- the race ---- */

#define ROUNDS 10000

struct swapper {
    int root_fd;
    atomic_bool stop;
};

static void *swap_all_the_time(void *arg)
{
    struct swapper *w = arg;
    while (!atomic_load(&w->stop)) {
        if (renameat2(w->root_fd, "d", w->root_fd, "link", RENAME_EXCHANGE) < 0)
            abort();
        sched_yield();
    }
    return NULL;
}

/* Write d/f, over and over. *ret_applied counts what went through. */
static int write_all_the_time(struct scratch *s, size_t *ret_applied)
{
    static const char text[] = "*** Begin Patch\n*** Delete File: d/f\n*** Add File: d/f\n+x\n"
                               "*** Add File: d/n/g\n+x\n*** Delete File: d/n/g\n"
                               "*** Add File: d/new\n+x\n*** End Patch\n";
    static const char clean[] = "*** Begin Patch\n*** Delete File: d/new\n*** End Patch\n";
    for (int i = 0; i < ROUNDS; i++) {
        struct patch_request q = {.text = i % 2 ? clean : text};
        struct patch_result r = {0};
        struct err e = {0};
        q.text_len = strlen(q.text);
        if (patch_apply(&s->ws, &q, &r, &e) == 0)
            *ret_applied += r.status == PATCH_APPLIED;
        patch_result_fini(&r);
    }
    return CHILD_OK;
}

static int race(struct scratch *s)
{
    struct swapper w = {.root_fd = s->ws.root_fd};
    pthread_t thread;
    size_t applied = 0, rounds = 0;
    if (pthread_create(&thread, NULL, swap_all_the_time, &w) != 0)
        return CHILD_CANNOT;
    do { /* again where one of the two got no turn */
        write_all_the_time(s, &applied);
        rounds += ROUNDS;
    } while ((applied == 0 || applied == rounds) && rounds < 20 * ROUNDS);
    atomic_store(&w.stop, true);
    pthread_join(thread, NULL);
    /* Both sides of the race were met, else it proves nothing. */
    if (applied == 0 || applied == rounds)
        return WRONG("%zu of %zu rounds applied", applied, rounds);
    return CHILD_OK;
}

static int race_by_walk(struct scratch *s)
{
    path_force_walk();
    return race(s);
}

static int race_up(void **state)
{
    /* Where fsync costs nothing. */
    return access("/dev/shm", W_OK) == 0 ? scratch_up_below(state, "/dev/shm") : scratch_up(state);
}

static void run_race(struct scratch *s, int (*run)(struct scratch *s))
{
    scratch_put(s, "../out/f", "secret\n");
    scratch_put(s, "d/f", "x\n");
    assert_int_equal(symlinkat("../out", s->ws.root_fd, "link"), 0);
    assert_int_equal(in_child(run, s), CHILD_OK);
    scratch_expect(s, "../out/f", "secret\n");
    assert_false(scratch_has(s, "../out/new"));
    assert_false(scratch_has(s, "../out/n"));
    assert_int_equal(scratch_leftovers(s), 0);
}

static void test_race(void **state)
{
    run_race(*state, race);
}

static void test_race_by_walk(void **state)
{
    run_race(*state, race_by_walk);
}

#define S(f) cmocka_unit_test_setup_teardown(f, scratch_up, scratch_down)
#define R(f) cmocka_unit_test_setup_teardown(f, race_up, scratch_down)

UNIT_MAIN(S(test_a_write_that_fails), S(test_a_full_disk), S(test_no_permission_on_the_second_file),
          S(test_owner_is_kept), R(test_race), R(test_race_by_walk))
