/* run/spill and the log above it: a random walk against a model that keeps every byte, a full disk,
 * the runner's total; and nothing is ever left in the directory.
 */
#include "../../helpers/unit.h"
#include "base/mem.h"
#include "run/outlog.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#define MODEL_MAX (6u << 20)
#define BLOCKS 8u /* of a small spill: head and tail of four blocks each */

struct model {
    char *bytes;
    bool *is_stderr;
    size_t total;
};

static uint32_t next_random(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

static void append(struct outlog *l, struct model *m, enum run_stream stream, const char *bytes,
                   size_t n)
{
    assert_true(m->total + n <= MODEL_MAX);
    outlog_append(l, stream, bytes, n);
    memcpy(m->bytes + m->total, bytes, n);
    memset(m->is_stderr + m->total, stream == RUN_STDERR, n);
    m->total += n;
}

/* By the rule: head, tail and ring; the tail moves by whole blocks. */
static bool kept(const struct outlog *l, const struct model *m, uint64_t at)
{
    uint64_t half = (uint64_t)BLOCKS / 2 * SPILL_BLOCK;
    uint64_t end = l->spill.end;
    uint64_t tail = end > 2 * half ? end - half : half;
    return (m->total <= RUN_RING_BYTES || at >= m->total - RUN_RING_BYTES) ||
           (at < half && at < end) || (at >= tail && at < end);
}

static void compare(const struct outlog *l, const struct model *m, uint64_t cursor,
                    enum run_stream stream, size_t max)
{
    autobuf got = BUF_INIT;
    autobuf want = BUF_INIT;
    struct outlog_page page = {0};
    bool lost = false;
    uint64_t at = cursor;
    while (at < m->total && want.len < max) {
        if (!kept(l, m, at)) {
            if (want.len > 0)
                break;
            lost = true;
        } else if (stream == RUN_COMBINED || m->is_stderr[at] == (stream == RUN_STDERR)) {
            buf_putc(&want, m->bytes[at]);
        }
        at++;
    }
    outlog_read(l, cursor, stream, max, false, false, &got, &page);
    assert_int_equal(got.len, want.len);
    assert_memory_equal(buf_bytes(&got), buf_bytes(&want), got.len);
    assert_int_equal(page.cursor, at);
    assert_int_equal(page.lost, lost);
}

static void compare_line(const struct outlog *l, const struct model *m, uint64_t line)
{
    uint64_t at = 0;
    for (uint64_t left = line; left > 0 && at < m->total; at++)
        left -= m->bytes[at] == '\n';
    uint64_t found = outlog_find_line(l, line);
    if (at == 0 || at >= m->total || (kept(l, m, at - 1) && kept(l, m, at)))
        assert_int_equal(found, at);
    else
        assert_false(kept(l, m, found) && found < at); /* behind what was dropped */
}

static void compare_tail(const struct outlog *l, const struct model *m, uint64_t n)
{
    uint64_t lines = 0;
    for (size_t i = 0; i < m->total; i++)
        lines += m->bytes[i] == '\n';
    lines += m->total > 0 && m->bytes[m->total - 1] != '\n';
    assert_int_equal(outlog_find_tail(l, n),
                     n == 0 ? m->total : outlog_find_line(l, lines > n ? lines - n : 0));
}

static uint64_t count_dropped(const struct outlog *l, const struct model *m)
{
    uint64_t n = 0;
    for (uint64_t at = 0; at < m->total; at++)
        n += !kept(l, m, at);
    return n;
}

static uint64_t last_dropped(const struct outlog *l, const struct model *m)
{
    uint64_t at = m->total;
    while (at > 0 && kept(l, m, at - 1))
        at--;
    return at;
}

static void walk(uint32_t seed, uint32_t longest, uint32_t streams)
{
    struct spill_budget budget;
    spill_budget_init(&budget, BLOCKS * SPILL_BLOCK, NULL);
    struct model m = {mem_zalloc(MODEL_MAX, 1), mem_zalloc(MODEL_MAX, sizeof(bool)), 0};
    struct outlog l = {.spill.budget = &budget};
    char *piece = mem_zalloc(longest, 1);
    for (int step = 0; step < 250; step++) {
        size_t n = next_random(&seed) % longest;
        if (m.total + n > MODEL_MAX)
            break;
        for (size_t i = 0; i < n; i++)
            piece[i] = (char)next_random(&seed);
        append(&l, &m, next_random(&seed) % streams == 0 ? RUN_STDERR : RUN_STDOUT, piece, n);
        uint64_t cursor = next_random(&seed) % (m.total + 10);
        compare(&l, &m, cursor, (enum run_stream)(step % 3), next_random(&seed) % 90000);
        if (step % 50 == 0) {
            compare_line(&l, &m, next_random(&seed) % (m.total / 200 + 2));
            compare_tail(&l, &m, next_random(&seed) % 3000);
            assert_int_equal(outlog_dropped(&l), count_dropped(&l, &m));
            assert_int_equal(outlog_retained_from(&l), last_dropped(&l, &m));
        }
    }
    assert_true(m.total > 2u * BLOCKS * SPILL_BLOCK);
    assert_true(outlog_dropped(&l) > 0);
    assert_int_equal(l.spill.failed, 0);
    assert_int_equal(budget.total_used, BLOCKS * SPILL_BLOCK);
    outlog_fini(&l);
    assert_int_equal(budget.total_used, 0);
    free(piece);
    free(m.bytes);
    free(m.is_stderr);
    spill_budget_fini(&budget);
}

static void test_random_walk(void **state)
{
    (void)state;
    walk(1, 14000, 3);
    walk(2, 30000, 2);
    walk(3, 30000, 1);   /* all of stderr */
    walk(4, 200000, 99); /* seldom */
}

static void flood(struct outlog *l, size_t bytes)
{
    char block[SPILL_BLOCK];
    for (size_t i = 0; i < sizeof(block); i++)
        block[i] = "0123456789abcde\n"[i % 16];
    for (; bytes >= sizeof(block); bytes -= sizeof(block))
        outlog_append(l, RUN_STDOUT, block, sizeof(block));
}

/* B4: what was stored before stays, the newest stays, and the cause is known. RLIMIT_FSIZE stands
 * for a full disk: the write of the fifth block is refused. */
static void test_full_disk(void **state)
{
    (void)state;
    struct rlimit old;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &(struct rlimit){4 * SPILL_PLACE + 100, old.rlim_max}),
                     0);
    struct spill_budget budget;
    spill_budget_init(&budget, BLOCKS * SPILL_BLOCK, NULL);
    struct outlog l = {.spill.budget = &budget};
    flood(&l, 40 * SPILL_BLOCK);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_int_equal(l.spill.failed, EFBIG);
    assert_int_equal(l.total, 40 * SPILL_BLOCK);
    assert_int_equal(outlog_dropped(&l), 32 * SPILL_BLOCK);
    assert_int_equal(outlog_retained_from(&l), 36 * SPILL_BLOCK);
    autobuf out = BUF_INIT;
    struct outlog_page page = {0};
    outlog_read(&l, 0, RUN_COMBINED, RUN_PAGE_MAX, false, true, &out, &page);
    assert_false(page.lost);
    assert_int_equal(page.cursor, 4 * SPILL_BLOCK);
    outlog_read(&l, page.cursor, RUN_COMBINED, 16, false, true, &out, &page);
    assert_true(page.lost);
    assert_int_equal(page.start, 36 * SPILL_BLOCK);
    /* lines are counted all the same */
    assert_int_equal(outlog_find_line(&l, 3 * SPILL_BLOCK / 16 + 1), 3 * SPILL_BLOCK + 16);
    assert_int_equal(outlog_find_line(&l, 38 * SPILL_BLOCK / 16), 38 * SPILL_BLOCK);
    assert_int_equal(outlog_find_tail(&l, 2), 40 * SPILL_BLOCK - 32);
    outlog_fini(&l);
    spill_budget_fini(&budget);
}

static void test_total_of_all(void **state)
{
    (void)state;
    struct spill_budget budget;
    spill_budget_init(&budget, BLOCKS * SPILL_BLOCK, NULL);
    budget.total_max = 10 * SPILL_BLOCK;
    struct outlog a = {.spill.budget = &budget};
    struct outlog b = {.spill.budget = &budget};
    flood(&a, 40 * SPILL_BLOCK);
    flood(&b, 40 * SPILL_BLOCK);
    assert_int_equal(a.spill.failed, 0);
    assert_int_equal(b.spill.failed, EDQUOT);
    assert_int_equal(budget.total_used, 10 * SPILL_BLOCK);
    outlog_fini(&a);
    outlog_fini(&b);
    assert_int_equal(budget.total_used, 0);
    spill_budget_fini(&budget);
}

/* Whoever follows misses nothing while the writer is ahead by far more than is kept otherwise, and
 * what he has read is given back; when he stays away, or the room for it is used up, the oldest
 * goes as always. */
static void read_on(struct outlog *l, uint64_t *cursor, size_t n, bool want_lost)
{
    autobuf out = BUF_INIT;
    struct outlog_page page = {0};
    outlog_read(l, *cursor, RUN_COMBINED, n, false, false, &out, &page);
    assert_int_equal(page.lost, want_lost);
    for (size_t i = 0; i < out.len; i++)
        assert_int_equal(buf_bytes(&out)[i], "0123456789abcde\n"[(page.start + i) % 16]);
    *cursor = page.cursor;
    spill_follow(&l->spill, *cursor);
}

static void test_follower(void **state)
{
    (void)state;
    struct spill_budget budget;
    spill_budget_init(&budget, BLOCKS * SPILL_BLOCK, NULL);
    struct outlog l = {.spill.budget = &budget};
    uint64_t cursor = 0;
    for (int round = 0; round < 60; round++) {
        flood(&l, 5 * SPILL_BLOCK);
        read_on(&l, &cursor, SPILL_BLOCK + 1000, false);
    }
    assert_int_equal(outlog_retained_from(&l), cursor / SPILL_BLOCK * SPILL_BLOCK);
    assert_int_equal(budget.total_used, BLOCKS * SPILL_BLOCK);
    assert_in_range(budget.follow_used, 200 * SPILL_BLOCK, 300 * SPILL_BLOCK);
    assert_int_equal(outlog_find_tail(&l, 200 * SPILL_BLOCK / 16), 100 * SPILL_BLOCK);
    while (cursor < l.total)
        read_on(&l, &cursor, RUN_PAGE_MAX, false);
    assert_int_equal(budget.follow_used, 0);
    flood(&l, 10 * SPILL_BLOCK);
    read_on(&l, &cursor, RUN_PAGE_MAX, false);
    assert_int_equal(budget.follow_used, 0);
    spill_unfollow(&l.spill);
    flood(&l, 40 * SPILL_BLOCK);
    assert_int_equal(budget.follow_used, 0);
    read_on(&l, &cursor, 1000, true);
    outlog_fini(&l);
    assert_int_equal(budget.total_used, 0);
    spill_budget_fini(&budget);
}

static void test_follower_has_a_limit(void **state)
{
    (void)state;
    struct spill_budget budget;
    spill_budget_init(&budget, BLOCKS * SPILL_BLOCK, NULL);
    budget.follow_max = 10 * SPILL_BLOCK;
    struct outlog l = {.spill.budget = &budget};
    flood(&l, 20 * SPILL_BLOCK);
    spill_follow(&l.spill, 18 * SPILL_BLOCK);
    flood(&l, 40 * SPILL_BLOCK);
    assert_int_equal(l.spill.failed, 0);
    assert_int_equal(budget.follow_used, 10 * SPILL_BLOCK);
    /* the ring, the tail and what is beyond it */
    assert_int_equal(outlog_retained_from(&l), (60 - 4 - 4 - 10) * SPILL_BLOCK);
    spill_unfollow(&l.spill); /* goes in steps */
    flood(&l, 3 * SPILL_BLOCK);
    assert_int_equal(budget.follow_used, 0);
    assert_int_equal(outlog_retained_from(&l), (63 - 4 - 4) * SPILL_BLOCK);
    outlog_fini(&l);
    assert_int_equal(budget.total_used + budget.follow_used, 0);
    spill_budget_fini(&budget);
}

/* A disk that is full takes from what is kept beyond the limit first. */
static void test_follower_on_a_full_disk(void **state)
{
    (void)state;
    struct rlimit old;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    assert_int_equal(
        setrlimit(RLIMIT_FSIZE, &(struct rlimit){12 * SPILL_PLACE + 100, old.rlim_max}), 0);
    struct spill_budget budget;
    spill_budget_init(&budget, BLOCKS * SPILL_BLOCK, NULL);
    struct outlog l = {.spill.budget = &budget};
    spill_follow(&l.spill, 0);
    flood(&l, 40 * SPILL_BLOCK);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_int_equal(l.spill.failed, 0);
    assert_int_equal(outlog_retained_from(&l), (40 - 4 - 8) * SPILL_BLOCK);
    outlog_fini(&l);
    spill_budget_fini(&budget);
}

static void test_no_name_is_left(void **state)
{
    (void)state;
    char dir[] = "/tmp/codespace-spill-XXXXXX";
    assert_non_null(mkdtemp(dir));
    struct spill_budget budget;
    spill_budget_init(&budget, BLOCKS * SPILL_BLOCK, dir);
    struct outlog l = {.spill.budget = &budget};
    flood(&l, 8 * SPILL_BLOCK);
    assert_int_equal(l.spill.failed, 0);
    assert_int_equal(rmdir(dir), 0); /* empty while the file is in use */
    outlog_fini(&l);
    struct outlog gone = {.spill.budget = &budget};
    flood(&gone, 8 * SPILL_BLOCK);
    assert_int_equal(gone.spill.failed, ENOENT);
    outlog_fini(&gone);
    spill_budget_fini(&budget);
}

static void test_times(void **state)
{
    (void)state;
    struct outlog l = {0};
    for (uint64_t i = 0; i < 5000; i++) {
        outlog_mark(&l, 1000000 + i * 10);
        outlog_append(&l, RUN_STDOUT, "0123456789", 10);
    }
    assert_true(l.n_marks <= OUTLOG_MARKS_MAX);
    assert_int_equal(outlog_time(&l, 0), 1000000);
    assert_int_equal(outlog_time(&l, 50000), 0); /* not there yet */
    for (uint64_t at = 0; at < 50000; at += 777) {
        uint64_t real = 1000000 + at;
        assert_true(outlog_time(&l, at) <= real && outlog_time(&l, at) + 1100 > real);
    }
    outlog_fini(&l);
}

UNIT_MAIN(cmocka_unit_test(test_random_walk), cmocka_unit_test(test_full_disk),
          cmocka_unit_test(test_total_of_all), cmocka_unit_test(test_follower),
          cmocka_unit_test(test_follower_has_a_limit),
          cmocka_unit_test(test_follower_on_a_full_disk), cmocka_unit_test(test_no_name_is_left),
          cmocka_unit_test(test_times))
