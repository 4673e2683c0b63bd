/* core/journal: a transaction that is killed at any system call is undone or finished at the next
 * start, with nothing left over; nothing of others is touched; a full disk at any byte (R20, F11).
 */
#include "../../helpers/deny.h"
#include "../../helpers/scratch.h"
#include "../../helpers/unit.h"
#include "base/mem.h"
#include "core/journal.h"
#include "core/patch.h"
#include "core/txn.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* The journal lies beside the workspace. */
static struct journal *open_journal(struct scratch *s)
{
    struct journal *j = NULL;
    struct err e = {0};
    int dir = open(s->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (journal_open(dir, "journal", &j, &e) < 0)
        fail_msg("%s", e.message);
    close(dir);
    return j;
}

static struct journal *open_recovered(struct scratch *s)
{
    struct journal *j = open_journal(s);
    struct journal_report r = {0};
    struct err e = {0};
    if (journal_recover(j, s->ws.root_fd, &r, &e) < 0)
        fail_msg("%s", e.message);
    return j;
}

/* Some patch of a workspace: what is there before, the text, what is there after. */
struct variant {
    const char *name;
    const char *text;
    bool lax;
    bool without_renameat2;
};

#define SEVERAL                                                                                    \
    "*** Begin Patch\n*** Add File: x/y/new\n+new\n*** Update File: d/replaced\n-old\n+NEW\n"      \
    "*** Delete File: removed\n*** Update File: moved\n*** Move to: x/target\n-old\n+moved\n"      \
    "*** End Patch\n"
#define ONE "*** Begin Patch\n*** Update File: d/replaced\n-old\n+NEW\n*** End Patch\n"

static const struct variant variants[] = {
    {"several", SEVERAL, false, false},
    {"several, without exchange", SEVERAL, false, true},
    {"several, lax", SEVERAL, true, false},
    {"one", ONE, false, false},
    {"one, without exchange", ONE, false, true},
};

static void put_world(struct scratch *s)
{
    static const char *const files[] = {"d/replaced", "removed", "moved"};
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        (void)unlinkat(s->ws.root_fd, files[i], 0);
        scratch_put(s, files[i], "old\n");
    }
    (void)unlinkat(s->ws.root_fd, "x/y/new", 0);
    (void)unlinkat(s->ws.root_fd, "x/target", 0);
    (void)unlinkat(s->ws.root_fd, "x/y", AT_REMOVEDIR);
    (void)unlinkat(s->ws.root_fd, "x", AT_REMOVEDIR);
}

/* Everything, as one text. */
static void describe(struct scratch *s, struct buf *out)
{
    static const char *const names[] = {"d/replaced", "removed", "moved", "x/y/new", "x/target"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (!scratch_has(s, names[i]))
            continue;
        autobuf b = scratch_get(s, names[i]);
        buf_printf(out, "%s=%s", names[i], buf_cstr(&b));
    }
    buf_puts(out, scratch_has(s, "x") ? "x" : "");
    buf_printf(out, ";%zu left over", scratch_leftovers(s));
}

#define BEFORE "d/replaced=old\nremoved=old\nmoved=old\n;0 left over"
#define AFTER_SEVERAL "d/replaced=NEW\nx/y/new=new\nx/target=moved\nx;0 left over"
#define AFTER_ONE "d/replaced=NEW\nremoved=old\nmoved=old\n;0 left over"

static int apply(struct scratch *s, const struct variant *v)
{
    struct journal *j = open_recovered(s);
    struct patch_request q = {
        .text = v->text, .text_len = strlen(v->text), .journal = j, .lax = v->lax};
    struct patch_result r = {0};
    struct err e = {0};
    int rc = patch_apply(&s->ws, &q, &r, &e);
    bool applied = rc == 0 && r.status == PATCH_APPLIED && r.durable == !v->lax;
    patch_result_fini(&r);
    journal_close(j);
    return applied ? 0 : 1;
}

static _Noreturn void be_traced(struct scratch *s, const struct variant *v)
{
    if (v->without_renameat2 && deny_syscall(SYS_renameat2, ENOSYS) < 0)
        _exit(3);
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
        _exit(4);
    raise(SIGSTOP);
    /* No patch: only what every start does. */
    if (v->text == NULL)
        journal_close(open_recovered(s));
    _exit(v->text == NULL ? 0 : apply(s, v));
}

/* Run in a child that is killed at its n-th stop at a system call: before or after it. True when it
 * came to its end. */
static bool run_and_kill(struct scratch *s, const struct variant *v, long n)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        be_traced(s, v);
    int status = 0;
    for (long i = 0;; i++) {
        assert_int_equal(waitpid(pid, &status, 0), pid);
        if (WIFEXITED(status)) {
            assert_int_equal(WEXITSTATUS(status), 0);
            return true;
        }
        assert_true(WIFSTOPPED(status));
        if (i == n)
            break;
        assert_int_equal(ptrace(PTRACE_SYSCALL, pid, NULL, NULL), 0);
    }
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
    return false;
}

static void recover(struct scratch *s, struct journal_report *ret)
{
    struct journal *j = open_journal(s);
    struct journal_report again = {0};
    struct err e = {0};
    if (journal_recover(j, s->ws.root_fd, ret, &e) < 0)
        fail_msg("%s", e.message);
    assert_int_equal(journal_recover(j, s->ws.root_fd, &again, &e), 0);
    assert_int_equal(again.outcome, JOURNAL_CLEAN);
    journal_close(j);
}

static void kill_everywhere(struct scratch *s, const struct variant *v)
{
    const char *after = strcmp(v->text, ONE) == 0 ? AFTER_ONE : AFTER_SEVERAL;
    long counts[4] = {0};
    bool ended = false;
    long n = 0;
    for (; !ended; n++) {
        struct journal_report r = {0};
        autobuf have = BUF_INIT;
        put_world(s);
        ended = run_and_kill(s, v, n);
        recover(s, &r);
        describe(s, &have);
        bool all = strcmp(buf_cstr(&have), after) == 0;
        if (!all && (ended || strcmp(buf_cstr(&have), BEFORE) != 0))
            fail_msg("%s, stop %ld: %s (%s)", v->name, n, buf_cstr(&have), r.text);
        assert_true(r.outcome != JOURNAL_STUCK);
        if (r.outcome != JOURNAL_CLEAN)
            assert_int_equal(all, r.outcome == JOURNAL_FINISHED);
        counts[r.outcome]++;
    }
    print_message("%s: %ld stops, %ld rolled back, %ld finished\n", v->name, n,
                  counts[JOURNAL_ROLLED_BACK], counts[JOURNAL_FINISHED]);
    assert_true(counts[JOURNAL_ROLLED_BACK] > 10);
    assert_true(counts[JOURNAL_FINISHED] > 1);
}

static void test_killed_at_every_system_call(void **state)
{
    for (size_t i = 0; i < ARRAY_LEN(variants); i++)
        kill_everywhere(*state, &variants[i]);
}

/* A recovery that is killed is done again. */
static void test_recovery_is_killed_too(void **state)
{
    struct scratch *s = *state;
    static const struct variant only_recover = {.name = "recovery"};
    size_t unfinished = 0;
    for (long first = 40; first < 260; first += 20) {
        bool ended = false;
        for (long n = 0; !ended; n += 3) {
            struct journal_report r = {0};
            autobuf have = BUF_INIT;
            put_world(s);
            run_and_kill(s, &variants[0], first);
            ended = run_and_kill(s, &only_recover, n);
            recover(s, &r);
            describe(s, &have);
            if (strcmp(buf_cstr(&have), BEFORE) != 0 && strcmp(buf_cstr(&have), AFTER_SEVERAL) != 0)
                fail_msg("stops %ld and %ld: %s", first, n, buf_cstr(&have));
            unfinished += r.outcome != JOURNAL_CLEAN;
        }
    }
    assert_true(unfinished > 20);
}

/* ---- what others did after the crash is theirs ---- */

static int stop_before_sync(void *data, enum txn_step step, size_t op)
{
    (void)data;
    (void)op;
    if (step == TXN_SYNC)
        _exit(0);
    return 0;
}

/* Two replacements, of which the names are exchanged and nothing is marked. */
static void crash_after_the_renames(struct scratch *s)
{
    scratch_put(s, "a", "old a\n");
    scratch_put(s, "b", "old b\n");
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct stat a;
        struct stat b;
        struct txn_probe probe = {stop_before_sync, NULL};
        struct txn_env env = {
            .root_fd = s->ws.root_fd, .journal = open_recovered(s), .probe = &probe};
        bool standing[2];
        struct err why = {0};
        fstatat(s->ws.root_fd, "a", &a, 0);
        fstatat(s->ws.root_fd, "b", &b, 0);
        struct txn_op ops[] = {{TXN_REPLACE, "a", "new a\n", 6, &a, "a", &a, 0, 0},
                               {TXN_REPLACE, "b", "new b\n", 6, &b, "b", &b, 0, 0}};
        txn_run(&env, ops, 2, standing, &why);
        _exit(1);
    }
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void test_all_renamed_goes_forward(void **state)
{
    struct scratch *s = *state;
    struct journal_report r = {0};
    crash_after_the_renames(s);
    recover(s, &r);
    assert_int_equal(r.outcome, JOURNAL_FINISHED);
    scratch_expect(s, "a", "new a\n");
    scratch_expect(s, "b", "new b\n");
    assert_int_equal(scratch_leftovers(s), 0);
}

static void test_others_files_stay(void **state)
{
    struct scratch *s = *state;
    struct journal_report r = {0};
    crash_after_the_renames(s);
    scratch_put(s, "theirs", "theirs\n");
    assert_int_equal(renameat(s->ws.root_fd, "theirs", s->ws.root_fd, "b"), 0);
    recover(s, &r);
    assert_int_equal(r.outcome, JOURNAL_STUCK);
    assert_non_null(strstr(r.text, "b was changed by somebody else"));
    scratch_expect(s, "a", "old a\n");
    scratch_expect(s, "b", "theirs\n");
    assert_int_equal(scratch_leftovers(s), 1);
}

static void test_a_directory_that_became_a_link(void **state)
{
    struct scratch *s = *state;
    struct journal_report r = {0};
    /* The record names d/replaced; d leads outside when recovery runs. */
    put_world(s);
    assert_false(run_and_kill(s, &variants[0], 60));
    assert_int_equal(renameat(s->ws.root_fd, "d", s->ws.root_fd, "elsewhere"), 0);
    scratch_put(s, "../outside/replaced", "theirs\n");
    assert_int_equal(symlinkat("../outside", s->ws.root_fd, "d"), 0);
    recover(s, &r);
    scratch_expect(s, "../outside/replaced", "theirs\n");
}

/* ---- the file itself ---- */

static void test_one_holder(void **state)
{
    struct scratch *s = *state;
    struct journal *j = open_journal(s);
    struct journal *other = NULL;
    struct err e = {0};
    assert_int_equal(journal_open(s->dir_fd, "journal", &other, &e), -1);
    assert_int_equal(e.code, ERR_WORKSPACE_BUSY);
    journal_close(j);
    assert_int_equal(symlinkat("journal", s->dir_fd, "link"), 0);
    assert_int_equal(journal_open(s->dir_fd, "link", &other, &e), -1);
}

static void test_another_root_is_refused(void **state)
{
    struct scratch *s = *state;
    struct journal_report r = {0};
    struct err e = {0};
    crash_after_the_renames(s);
    scratch_mkdir(s, "sub");
    struct journal *j = open_journal(s);
    int fd = openat(s->ws.root_fd, "sub", O_PATH | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(journal_recover(j, fd, &r, &e), -1);
    assert_int_equal(e.code, ERR_CONFIG_INVALID);
    close(fd);
    journal_close(j);
    recover(s, &r);
    assert_int_equal(r.outcome, JOURNAL_FINISHED);
}

/* Every byte of the record damaged once: never a fault, and never a half. */
static void test_damage(void **state)
{
    struct scratch *s = *state;
    for (off_t at = 0; at < 1400; at += at < 64 ? 1 : 7) {
        struct journal_report r = {0};
        char byte = 0;
        crash_after_the_renames(s);
        int fd = openat(s->dir_fd, "journal", O_RDWR | O_CLOEXEC);
        off_t where = at < 64 ? at : 4096 + at - 64;
        assert_int_equal(pread(fd, &byte, 1, where), 1);
        byte ^= 0x41;
        assert_int_equal(pwrite(fd, &byte, 1, where), 1);
        close(fd);
        recover(s, &r);
        scratch_expect(s, "a", "new a\n");
        scratch_expect(s, "b", "new b\n");
        /* What the damage made unknown lies about; take it away for the next round. */
        char command[200];
        snprintf(command, sizeof(command), "rm -f %s/.codespace-*", s->ws.root);
        assert_int_equal(system(command), 0);
    }
}

/* ---- a full disk at every page ---- */

#define PAGES 40

static int on_small_disk(struct scratch *s, int pages, int *ret_applied)
{
    char size[32];
    autobuf text = BUF_INIT;
    snprintf(size, sizeof(size), "size=%dk", 4 * pages);
    if (mount("tmpfs", s->ws.root, "tmpfs", 0, size) < 0)
        return 77;
    s->ws.root_fd = open(s->ws.root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    put_world(s);
    buf_puts(&text, "*** Begin Patch\n*** Update File: d/replaced\n-old\n");
    for (int i = 0; i < 1000; i++)
        buf_puts(&text, "+a line of text\n");
    buf_puts(&text, "*** Delete File: removed\n*** Add File: x/y/new\n");
    for (int i = 0; i < 1000; i++)
        buf_puts(&text, "+a line of text\n");
    buf_puts(&text, "*** End Patch\n");
    struct variant v = {.text = buf_cstr(&text)};
    bool applied = apply(s, &v) == 0;
    bool none = scratch_has(s, "removed") && !scratch_has(s, "x");
    bool all = !scratch_has(s, "removed") && scratch_has(s, "x/y/new");
    *ret_applied += applied;
    int rc = (applied ? all : none) && scratch_leftovers(s) == 0 ? 0 : 1;
    close(s->ws.root_fd);
    umount2(s->ws.root, MNT_DETACH);
    return rc;
}

static int run_small_disks(struct scratch *s)
{
    int applied = 0;
    if (unshare(CLONE_NEWNS) < 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
        return 77;
    if (mount("none", "/", "none", MS_REC | MS_PRIVATE, "") < 0)
        return 77;
    for (int pages = 8; pages < PAGES; pages++) {
        int rc = on_small_disk(s, pages, &applied);
        if (rc != 0)
            return rc;
    }
    /* Some did not fit and some did, else it proves nothing. */
    return applied > 0 && applied < PAGES - 8 ? 0 : 2;
}

static void test_a_full_disk(void **state)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        _exit(run_small_disks(*state));
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
        print_message("no mount namespace can be made here\n");
        skip();
    }
    assert_int_equal(status, 0);
}

/* ---- so many files that threads share them (core/spread) ---- */

#define MANY 240

static void many_name(size_t i, char out[24])
{
    snprintf(out, 24, "m%zu/f%zu", i / 60, i);
}

static void put_many(struct scratch *s, struct buf *text)
{
    char name[24];
    buf_puts(text, "*** Begin Patch\n");
    for (size_t i = 0; i < MANY; i++) {
        many_name(i, name);
        scratch_put(s, name, "old\n");
        buf_printf(text, "*** Update File: %s\n-old\n+NEW\n", name);
    }
    buf_puts(text, "*** End Patch\n");
}

/* How many files are new; fails unless each is one or the other. */
static size_t count_new(struct scratch *s)
{
    size_t n = 0;
    for (size_t i = 0; i < MANY; i++) {
        char name[24];
        many_name(i, name);
        autobuf b = scratch_get(s, name);
        bool is_new = strcmp(buf_cstr(&b), "NEW\n") == 0;
        assert_true(is_new || strcmp(buf_cstr(&b), "old\n") == 0);
        n += is_new;
    }
    return n;
}

/* Killed when so many temporary files are there: the threads are somewhere in the middle then, each
 * time elsewhere. */
static void kill_when(struct scratch *s, const struct variant *v, size_t temporary)
{
    int status = 0;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        _exit(apply(s, v));
    bool ended = false;
    while (!ended && scratch_leftovers(s) < temporary)
        ended = waitpid(pid, &status, WNOHANG) == pid;
    if (ended)
        return;
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
}

static void test_many_killed_anywhere(void **state)
{
    struct scratch *s = *state;
    for (size_t temporary = 1; temporary <= MANY; temporary += 13) {
        autobuf text = BUF_INIT;
        struct journal_report r = {0};
        put_many(s, &text);
        struct variant v = {"many", buf_cstr(&text), temporary % 2 == 0, false};
        kill_when(s, &v, temporary);
        recover(s, &r);
        assert_int_not_equal(r.outcome, JOURNAL_STUCK);
        size_t n = count_new(s);
        assert_true(n == 0 || n == MANY);
        assert_int_equal(scratch_leftovers(s), 0);
    }
}

/* Killed when the file of that number has the new content: other threads are elsewhere among the
 * exchanges then. */
static void kill_when_new(struct scratch *s, const struct variant *v, size_t i)
{
    struct stat was;
    struct stat now;
    char name[24];
    int status = 0;
    many_name(i, name);
    assert_int_equal(fstatat(s->ws.root_fd, name, &was, 0), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        _exit(apply(s, v));
    bool ended = false;
    bool is_new = false;
    while (!ended && !is_new) {
        is_new = fstatat(s->ws.root_fd, name, &now, 0) == 0 && now.st_ino != was.st_ino;
        ended = waitpid(pid, &status, WNOHANG) == pid;
    }
    if (ended)
        return;
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
}

static void test_many_killed_between_names(void **state)
{
    struct scratch *s = *state;
    for (size_t i = 0; i < MANY; i += 23) {
        autobuf text = BUF_INIT;
        struct journal_report r = {0};
        put_many(s, &text);
        struct variant v = {"many", buf_cstr(&text), i % 2 == 0, false};
        kill_when_new(s, &v, i);
        recover(s, &r);
        assert_int_not_equal(r.outcome, JOURNAL_STUCK);
        size_t n = count_new(s);
        assert_true(n == 0 || n == MANY);
        assert_int_equal(scratch_leftovers(s), 0);
    }
}

/* The disk is full for one of the threads: pages for the old files, and for some of the new. */
static int many_on_small_disk(struct scratch *s, size_t pages, int *ret_applied)
{
    char size[32];
    autobuf text = BUF_INIT;
    snprintf(size, sizeof(size), "size=%zuk", 4 * pages);
    if (mount("tmpfs", s->ws.root, "tmpfs", 0, size) < 0)
        return 77;
    s->ws.root_fd = open(s->ws.root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    put_many(s, &text);
    struct variant v = {.text = buf_cstr(&text)};
    bool applied = apply(s, &v) == 0;
    *ret_applied += applied;
    int rc = count_new(s) == (applied ? MANY : 0) && scratch_leftovers(s) == 0 ? 0 : 1;
    close(s->ws.root_fd);
    umount2(s->ws.root, MNT_DETACH);
    return rc;
}

static int run_many_small_disks(struct scratch *s)
{
    int applied = 0;
    int tried = 0;
    if (unshare(CLONE_NEWNS) < 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
        return 77;
    if (mount("none", "/", "none", MS_REC | MS_PRIVATE, "") < 0)
        return 77;
    for (size_t pages = MANY + 10; pages < 2 * MANY + 40; pages += 29, tried++) {
        int rc = many_on_small_disk(s, pages, &applied);
        if (rc != 0)
            return rc;
    }
    return applied > 0 && applied < tried ? 0 : 2;
}

static void test_a_full_disk_under_threads(void **state)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        _exit(run_many_small_disks(*state));
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
        print_message("no mount namespace can be made here\n");
        skip();
    }
    assert_int_equal(status, 0);
}

static int up_in_memory(void **state)
{
    return access("/dev/shm", W_OK) == 0 ? scratch_up_below(state, "/dev/shm") : scratch_up(state);
}

#define M(f) cmocka_unit_test_setup_teardown(f, up_in_memory, scratch_down)

UNIT_MAIN(M(test_killed_at_every_system_call), M(test_recovery_is_killed_too),
          M(test_all_renamed_goes_forward), M(test_others_files_stay),
          M(test_a_directory_that_became_a_link), M(test_one_holder),
          M(test_another_root_is_refused), M(test_damage), M(test_a_full_disk),
          M(test_many_killed_anywhere), M(test_many_killed_between_names),
          M(test_a_full_disk_under_threads))
