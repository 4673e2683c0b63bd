/* run under a load that only lasts: thousands of commands in a row, and more output than any buffer
 * holds. What must stay flat is looked at on the way, not only at the end: descriptors and memory.
 */
#include "rig.h"

#if defined(__SANITIZE_ADDRESS__)
#define INSTRUMENTED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define INSTRUMENTED 1
#endif
#endif

/* Fewer where each costs several times as much; descriptors do not leak one in a thousand. */
#ifdef INSTRUMENTED
#define COMMANDS 1500
#define WRITTEN (256ull << 20)
#define FLAT_KIB (400u << 10) /* what is freed is kept aside, up to 256 MiB */
#else
#define COMMANDS 10000
#define WRITTEN (2ull << 30)
#define FLAT_KIB 8192u
#endif
#define SIDE_BY_SIDE 16
/* Descriptors of what a runner keeps between two commands: a warm workspace, an output file. */
#define KEPT_FDS 24

static size_t resident_kib(void)
{
    unsigned long pages = 0, resident = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%lu %lu", &pages, &resident), 2);
    fclose(f);
    return resident * (size_t)sysconf(_SC_PAGESIZE) / 1024;
}

/* One round: start them all, then see each end as it should. */
static void round_of(struct rig *rig)
{
    struct rig_answer started[SIDE_BY_SIDE] = {0};
    char *const argv[] = {(char *)"/bin/true", NULL};
    const struct run_exec x = {.ws = &rig->ws, .argv = argv};
    for (int i = 0; i < SIDE_BY_SIDE; i++)
        runner_exec(rig->runner, &x, rig_on_exec, &started[i]);
    for (int i = 0; i < SIDE_BY_SIDE; i++) {
        autoanswer end = {0};
        rig_until(rig, &started[i].arrived);
        if (started[i].failed)
            fail_msg("%s", started[i].err.message);
        rig_finish(rig, started[i].id, &end);
        assert_int_equal(end.status.termination, RUN_END_EXITED);
        assert_int_equal(end.status.exit_code, 0);
        assert_true(end.status.eof);
    }
}

static void test_thousands_in_a_row(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig);
    round_of(&rig); /* the probe, the first warm workspace */
    size_t before = resident_kib();
    for (int done = 0; done < COMMANDS; done += SIDE_BY_SIDE) {
        round_of(&rig);
        assert_in_range(rig_count_fds(), rig.fds, rig.fds + KEPT_FDS);
    }
    assert_true(resident_kib() < before + FLAT_KIB);
    rig_stop(&rig); /* and none is left at all */
}

/* Read as it comes, with a reader that follows as well as it can: it gets all of it, in order, and
 * nobody's memory grew with it. */
static void test_a_writer_of_gibibytes(void **state)
{
    (void)state;
    struct rig rig;
    char id[64];
    rig_start(&rig);
    autofree char *line = mem_printf("yes 0123456789abcde | head -c %llu", WRITTEN);
    rig_exec(&rig, &(struct run_exec){.argv = RIG_SH(line)}, id);
    size_t before = resident_kib(), most = 0;
    uint64_t cursor = 0, got = 0, missed = 0;
    for (bool end = false; !end;) {
        autoanswer a = {0};
        rig_read(
            &rig, id,
            &(struct run_read){.cursor = cursor, .max_bytes = RUN_PAGE_MAX, .wait_ms = RIG_WAIT_MS},
            &a);
        assert_false(a.failed);
        assert_int_equal(a.lost, a.start > cursor);
        assert_int_equal(a.cursor, a.start + a.bytes.len);
        if (a.bytes.len > 0) /* a line is 16 bytes */
            assert_int_equal(buf_bytes(&a.bytes)[0], "0123456789abcde\n"[a.start % 16]);
        missed += a.start - cursor;
        got += a.bytes.len;
        cursor = a.cursor;
        size_t now = resident_kib();
        most = now > most ? now : most;
        end = a.status.eof && cursor == a.status.output_total;
    }
    assert_int_equal(cursor, WRITTEN);
    assert_int_equal(got + missed, WRITTEN);
    assert_int_equal(missed, 0);
    assert_true(most < before + FLAT_KIB);
    autoanswer last = {0};
    rig_finish(&rig, id, &last);
    assert_int_equal(last.status.exit_code, 0);
    rig_stop(&rig);
}

UNIT_MAIN(cmocka_unit_test(test_thousands_in_a_row), cmocka_unit_test(test_a_writer_of_gibibytes))
