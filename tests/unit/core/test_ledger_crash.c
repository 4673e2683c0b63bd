/* core/ledger: SIGKILL at any point, and a power cut after any write: what was acknowledged is
 * there, what is there is whole.
 *
 * A child works on a ledger and notes in shared memory what was acknowledged to it. It dies in one
 * of three ways: by our kill after some acknowledgements, inside a statement (SQLite's progress
 * handler), or in the middle of a write to a file (SQLite's table of system calls), half of the
 * bytes written. The power cut takes back what had not reached the disk: the log is cut anywhere
 * behind what the last fdatasync saw of it, so a commit that says LEDGER_DURABLE and did not sync
 * would be caught.
 */
#include "ledger_fixture.h"

#include "base/str.h"
#include "core/approvals.h"
#include "core/intents.h"
#include "core/operations_store.h"
#include "core/works.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { ROUNDS = 51, ACKS_MAX = 4096, CUTS = 40 };

enum step { BEGUN, PLANNED, FINISHED, HELD, STARTED, CONSUMED };

struct acks {
    atomic_uint n;
    struct {
        char id[48];
        enum step step;
    } items[ACKS_MAX];
};

/* Set in the child only. */
static struct acks *acks;
static int ack_fd = -1;
static unsigned long countdown;

static void ack(const char *id, enum step step)
{
    unsigned n = atomic_load(&acks->n);
    if (n == ACKS_MAX)
        _exit(3);
    snprintf(acks->items[n].id, sizeof(acks->items[n].id), "%s", id);
    acks->items[n].step = step;
    atomic_store(&acks->n, n + 1);
    if (write(ack_fd, "x", 1) != 1)
        _exit(4);
}

static void must(int ok)
{
    if (!ok)
        _exit(2);
}

static void one_patch(struct ledger *l, const char *approval_id)
{
    struct op_request q = {.kind = OP_PATCH, .workspace_id = "w", .fingerprint = "f"};
    autofree char *key = str_new_id("key-");
    q.key = key;
    q.approval_id = approval_id;
    autorecord r = {0};
    must(opstore_begin(l, &q, LEDGER_LAZY, &r, NULL) == 0);
    ack(r.operation_id, BEGUN);
    char path[] = "some/file.c";
    struct patch_change c[3];
    memset(c, 0, sizeof(c));
    for (size_t i = 0; i < 3; i++)
        c[i].path = path;
    must(opstore_plan(l, r.operation_id, c, 3, "inverse", 7, LEDGER_DURABLE, NULL) == 0);
    ack(r.operation_id, PLANNED);
    struct op_outcome o = {.status = OP_APPLIED};
    must(opstore_finish(l, r.operation_id, &o, LEDGER_LAZY, NULL) == 0);
    ack(r.operation_id, FINISHED);
}

static void one_held_patch(struct ledger *l)
{
    autofree char *print = str_new_id("f-");
    struct approval_request q = {.workspace_id = "w", .fingerprint = print, .arguments = "{}"};
    autoapproval a = {0};
    autoapproval taken = {0};
    must(approvals_create(l, &q, &a, NULL) == 0);
    ack(a.approval_id, HELD);
    must(approvals_grant(l, a.approval_id, APPROVAL_BY_COMMAND_LINE, false, NULL) == 0);
    must(approvals_claim(l, a.approval_id, &taken, NULL) == 0);
    must(approvals_start(l, a.approval_id, NULL) == 0);
    ack(a.approval_id, STARTED);
    one_patch(l, a.approval_id);
    must(approvals_finish(l, a.approval_id, "{}", false, NULL) == 0);
    ack(a.approval_id, CONSUMED);
}

static void one_work(struct ledger *l)
{
    autowork w = {0};
    autointent draft = {0};
    autointent queued = {0};
    autointent claimed = {0};
    autointent done = {0};
    struct work_finish out = {0};
    must(works_open(l, "w", NULL, &w, NULL) == 0);
    must(intents_add(l, w.work_id, INTENT_NOTE, INTENT_NEXT_CHECKPOINT, "x", &draft, NULL) == 0);
    must(intents_queue(l, draft.intent_id, 1, &queued, NULL) == 0);
    must(intents_claim_next(l, w.work_id, &claimed, NULL) == 1);
    must(intents_complete(l, w.work_id, claimed.intent_id, false, &done, NULL) == 0);
    must(works_finish(l, w.work_id, &out, NULL) == 0 && out.closed);
}

static int die_in_statement(void *user)
{
    (void)user;
    if (--countdown == 0)
        kill(getpid(), SIGKILL);
    return 0;
}

static void tear(int fd, const void *data, size_t n, off_t at)
{
    if (--countdown > 0)
        return;
    ssize_t torn = at < 0 ? write(fd, data, n / 2) : pwrite(fd, data, n / 2, at);
    (void)torn;
    kill(getpid(), SIGKILL);
}

static ssize_t torn_write(int fd, const void *data, size_t n)
{
    tear(fd, data, n, -1);
    return write(fd, data, n);
}

static ssize_t torn_pwrite(int fd, const void *data, size_t n, off_t at)
{
    tear(fd, data, n, at);
    return pwrite(fd, data, n, at);
}

static void die_in_write(void)
{
    sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
    must(vfs->xSetSystemCall(vfs, "write", (sqlite3_syscall_ptr)torn_write) == SQLITE_OK);
    /* Which one there is depends on how SQLite was built. */
    vfs->xSetSystemCall(vfs, "pwrite", (sqlite3_syscall_ptr)torn_pwrite);
    vfs->xSetSystemCall(vfs, "pwrite64", (sqlite3_syscall_ptr)torn_pwrite);
}

static void run_child(struct fixture *f, int round, unsigned random)
{
    struct ledger_options o = fixture_options(f);
    countdown = 1 + random % (round % 3 == 1 ? 60000 : 400);
    if (round % 3 == 2)
        die_in_write();
    must(ledger_open(&o, &f->l, NULL) == 0);
    if (round % 3 == 1)
        sqlite3_progress_handler(f->l->db, 1, die_in_statement, NULL);
    for (;;) {
        one_patch(f->l, NULL);
        one_held_patch(f->l);
        one_work(f->l);
    }
}

/* An acknowledgement is a lower bound: the child may have come further. */
static void check_ack(struct fixture *f, const char *id, enum step step)
{
    struct err e = {0};
    if (step >= HELD) {
        autoapproval a = {0};
        if (approvals_get(f->l, id, &a, &e) < 0)
            fail_msg("%s", e.message);
        assert_true(step != STARTED || a.state >= APPROVAL_RESUMING);
        assert_true(step != CONSUMED || a.state == APPROVAL_CONSUMED);
        return;
    }
    autorecord r = {0};
    if (opstore_get(f->l, id, &r, &e) < 0)
        fail_msg("%s", e.message);
    assert_true(step != PLANNED || (r.planned_ms != 0 && r.inverse_size == 7));
    assert_true(step != FINISHED || r.status == OP_APPLIED);
}

/* What holds of a ledger at any time. */
static void check_whole(struct fixture *f)
{
    static const char *const none[] = {
        "SELECT count(*) FROM pragma_quick_check WHERE quick_check<>'ok'",
        "SELECT count(*) FROM pragma_foreign_key_check",
        "SELECT count(*) FROM operations o WHERE (planned_ms IS NOT NULL)*3 <> (SELECT count(*)"
        " FROM operation_changes WHERE seq=o.seq)",
        "SELECT count(*) FROM operations o WHERE (planned_ms IS NOT NULL) <> (SELECT count(*) FROM"
        " operation_inverses WHERE seq=o.seq)",
        "SELECT count(*) FROM operations WHERE (status='applied') <> (finished_ms IS NOT NULL)",
        "SELECT count(*) FROM operations WHERE status='applied' AND planned_ms IS NULL",
        "SELECT count(*) FROM approvals WHERE state='consumed' AND result IS NULL",
        "SELECT count(*) FROM intents WHERE state='claimed' AND claimed_ms IS NULL",
        "SELECT count(*) FROM works w WHERE state='closed' AND EXISTS (SELECT 1 FROM intents"
        " WHERE work_id=w.work_id AND state IN ('draft','queued','claimed'))",
    };
    for (size_t i = 0; i < ARRAY_LEN(none); i++) {
        if (fixture_number(f, none[i]) != 0)
            fail_msg("%s", none[i]);
    }
}

static void kill_one_child(struct fixture *f, int round, unsigned random)
{
    int acked[2];
    assert_int_equal(pipe2(acked, O_CLOEXEC), 0);
    atomic_store(&acks->n, 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        ack_fd = acked[1];
        run_child(f, round, random);
    }
    close(acked[1]);
    char byte = 0;
    unsigned wanted = round % 3 == 0 ? random % 60 : ACKS_MAX;
    for (unsigned i = 0; i < wanted && read(acked[0], &byte, 1) == 1; i++)
        ;
    close(acked[0]);
    kill(child, SIGKILL);
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void test_killed_anywhere(void **state)
{
    struct fixture *f = *state;
    acks = mmap(NULL, sizeof(*acks), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(acks != MAP_FAILED);
    unsigned random = 12345;
    for (int round = 0; round < ROUNDS; round++) {
        random = random * 1103515245u + 12345u;
        kill_one_child(f, round, random >> 8);
        fixture_open(f);
        check_whole(f);
        for (unsigned i = 0; i < atomic_load(&acks->n); i++)
            check_ack(f, acks->items[i].id, acks->items[i].step);
        fixture_close(f);
    }
    munmap(acks, sizeof(*acks));
}

static size_t copy_file(const char *from, const char *to, size_t keep)
{
    autofd int in = open(from, O_RDONLY | O_CLOEXEC);
    autofd int out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(in >= 0 && out >= 0);
    struct stat st = {0};
    assert_int_equal(fstat(in, &st), 0);
    size_t n = keep < (size_t)st.st_size ? keep : (size_t)st.st_size;
    char *bytes = mem_zalloc(1, n + 1);
    assert_int_equal(read(in, bytes, n), (ssize_t)n);
    assert_int_equal(write(out, bytes, n), (ssize_t)n);
    free(bytes);
    return (size_t)st.st_size;
}

static struct stat stat_log(struct fixture *f)
{
    char wal[128];
    struct stat st = {0};
    snprintf(wal, sizeof(wal), "%s-wal", f->path);
    assert_int_equal(stat(wal, &st), 0);
    return st;
}

/* Take the place of libc's for SQLite too, and note how much of the log was brought to the disk,
 * and how often. Nothing is really synced: SIGKILL loses nothing of the page cache, and the power
 * cut is played from these notes. */
static ino_t synced_inode;
static size_t synced_bytes;
static unsigned synced_times;

/* Faults: the N-th call from now on, and every later one, fails; 0 = none. */
static unsigned long write_fault;
static unsigned long sync_fault;

static bool faulty(unsigned long *fault)
{
    if (*fault == 0)
        return false;
    if (*fault > 1)
        --*fault;
    return *fault == 1;
}

int fdatasync(int fd)
{
    struct stat st = {0};
    if (faulty(&sync_fault)) {
        errno = EIO;
        return -1;
    }
    if (fstat(fd, &st) == 0 && st.st_ino == synced_inode) {
        synced_bytes = (size_t)st.st_size;
        synced_times++;
    }
    return 0;
}

int fsync(int fd)
{
    (void)fd;
    return 0;
}

/* The ledger as a machine would find it that lost everything of the log from `keep` on. */
static void open_cut(struct fixture *f, size_t keep, struct fixture *ret)
{
    char from[128];
    char to[160];
    snprintf(ret->dir, sizeof(ret->dir), "%s", f->dir);
    snprintf(ret->path, sizeof(ret->path), "%s/cut.db", f->dir);
    copy_file(f->path, ret->path, SIZE_MAX);
    snprintf(from, sizeof(from), "%s-wal", f->path);
    snprintf(to, sizeof(to), "%s-wal", ret->path);
    copy_file(from, to, keep);
    fixture_open(ret);
}

static void test_a_power_cut_takes_no_plan_back(void **state)
{
    struct fixture *f = *state;
    struct err e = {0};
    unsigned random = 777;
    char path[] = "a";
    struct patch_change c = {.path = path};
    fixture_sql(f, "PRAGMA wal_autocheckpoint=0");
    synced_inode = stat_log(f).st_ino;
    for (int i = 0; i < CUTS; i++) {
        struct op_request q = {.kind = OP_PATCH, .workspace_id = "w", .fingerprint = "f"};
        struct op_outcome done = {.status = OP_APPLIED};
        autorecord r = {0};
        assert_int_equal(opstore_begin(f->l, &q, LEDGER_LAZY, &r, &e), 0);
        assert_int_equal(opstore_plan(f->l, r.operation_id, &c, 1, "u", 1, LEDGER_DURABLE, &e), 0);
        assert_int_equal(opstore_finish(f->l, r.operation_id, &done, LEDGER_LAZY, &e), 0);
        assert_int_equal(synced_times, i + 1); /* one a patch, the plan's */
        size_t unsafe = (size_t)stat_log(f).st_size - synced_bytes;
        random = random * 1103515245u + 12345u;
        struct fixture cut = {.clock_ms = f->clock_ms};
        open_cut(f, synced_bytes + (random >> 8) % (unsafe + 1), &cut);
        autorecord found = {0};
        assert_int_equal(opstore_get(cut.l, r.operation_id, &found, &e), 0);
        assert_true(found.planned_ms != 0 && found.inverse_size == 1);
        assert_true(found.status == OP_APPLIED || found.finished_ms == 0);
        assert_int_equal(fixture_number(&cut, "SELECT count(*) FROM operations"), i + 1);
        fixture_close(&cut);
    }
}

static ssize_t full_write(int fd, const void *data, size_t n)
{
    if (!faulty(&write_fault))
        return write(fd, data, n);
    errno = ENOSPC;
    return -1;
}

static ssize_t full_pwrite(int fd, const void *data, size_t n, off_t at)
{
    if (!faulty(&write_fault))
        return pwrite(fd, data, n, at);
    errno = ENOSPC;
    return -1;
}

static void set_writers(sqlite3_syscall_ptr plain, sqlite3_syscall_ptr positioned)
{
    sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
    vfs->xSetSystemCall(vfs, "write", plain);
    vfs->xSetSystemCall(vfs, "pwrite", positioned);
    vfs->xSetSystemCall(vfs, "pwrite64", positioned);
}

/* A bit of everything, up to the first failure. */
static int sequence(struct ledger *l, struct err *e)
{
    autofree char *print = str_new_id("f-");
    char path[] = "a";
    struct patch_change c[3] = {{.path = path}, {.path = path}, {.path = path}};
    struct op_request q = {.kind = OP_PATCH, .workspace_id = "w", .fingerprint = print};
    struct op_outcome done = {.status = OP_APPLIED};
    struct approval_request hold = {.workspace_id = "w", .fingerprint = print, .arguments = "{}"};
    autorecord r = {0};
    autoapproval a = {0};
    autoapproval taken = {0};
    autowork w = {0};
    struct work_finish out = {0};
    if (approvals_create(l, &hold, &a, e) < 0 ||
        approvals_grant(l, a.approval_id, APPROVAL_BY_COMMAND_LINE, false, e) < 0 ||
        approvals_claim(l, a.approval_id, &taken, e) < 0 ||
        approvals_start(l, a.approval_id, e) < 0 || opstore_begin(l, &q, LEDGER_LAZY, &r, e) < 0 ||
        opstore_plan(l, r.operation_id, c, 3, "u", 1, LEDGER_DURABLE, e) < 0 ||
        opstore_finish(l, r.operation_id, &done, LEDGER_LAZY, e) < 0 ||
        approvals_finish(l, a.approval_id, "{}", false, e) < 0 ||
        works_open(l, "w", NULL, &w, e) < 0 || works_finish(l, w.work_id, &out, e) < 0)
        return -1;
    return 0;
}

/* True when the fault was met. */
static bool run_with_fault(struct fixture *f, unsigned long *fault, unsigned long n)
{
    struct err e = {0};
    *fault = n;
    int r = sequence(f->l, &e);
    *fault = 0;
    assert_true(r == 0 || e.code == ERR_LEDGER_FAILED || e.code == ERR_APPROVAL_AMBIGUOUS);
    check_whole(f);
    struct err after = {0};
    if (sequence(f->l, &after) < 0)
        fail_msg("after fault %lu: %s", n, after.message);
    return r < 0;
}

/* Every write and every sync once: nothing half done, the right code, and it goes on afterwards. */
static void test_every_write_may_fail(void **state)
{
    struct fixture *f = *state;
    unsigned long *const faults[] = {&write_fault, &sync_fault};
    static const unsigned least[] = {20, 4};
    set_writers((sqlite3_syscall_ptr)full_write, (sqlite3_syscall_ptr)full_pwrite);
    for (size_t i = 0; i < ARRAY_LEN(faults); i++) {
        unsigned long n = 2;
        while (run_with_fault(f, faults[i], n))
            n++;
        assert_true(n >= least[i]);
    }
    set_writers(NULL, NULL);
}

UNIT_MAIN(TEST_DIR(test_killed_anywhere), TEST(test_a_power_cut_takes_no_plan_back),
          TEST(test_every_write_may_fail))
