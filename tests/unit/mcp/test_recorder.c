/* mcp/recorder: the order, who waits for whom, and what is lost when. */
#include "../../helpers/unit.h"

#include "base/mem.h"
#include "mcp/recorder.h"

#include <stdio.h>

struct fixture {
    uv_loop_t loop;
    struct ledger *ledger;
    struct recorder *recorder;
};

/* What was written, in order; dropped ones count apart. */
static unsigned order[64];
static unsigned written, dropped, refused;

struct mark {
    struct record record;
    unsigned number;
    bool fails;
    struct recorder *recorder;
};

static bool write_mark(struct record *record, struct ledger *l)
{
    struct mark *m = container_of(record, struct mark, record);
    bool ok = !m->fails;
    if (l == NULL)
        dropped++;
    else if (!ok)
        refused++;
    else if (written < ARRAY_LEN(order))
        order[written++] = m->number;
    else
        written++;
    free(m);
    return ok;
}

static struct record *mark(unsigned number, bool fails)
{
    struct mark *m = mem_new(struct mark);
    *m = (struct mark){.record.write = write_mark, .number = number, .fails = fails};
    return &m->record;
}

static int setup(void **state)
{
    struct fixture *f = mem_new(struct fixture);
    struct err e;
    written = dropped = refused = 0;
    assert_int_equal(uv_loop_init(&f->loop), 0);
    assert_int_equal(ledger_open(&(struct ledger_options){.role = LEDGER_GATEWAY}, &f->ledger, &e),
                     0);
    f->recorder = recorder_new(&f->loop, f->ledger);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    recorder_free(f->recorder);
    ledger_free(f->ledger);
    assert_int_equal(uv_loop_close(&f->loop), 0);
    free(f);
    return 0;
}

static void nothing(uv_idle_t *idle)
{
    (void)idle;
}

/* The delay is a timer that keeps no loop alive; here something else does. */
static void run_until(struct fixture *f, unsigned n)
{
    uv_idle_t alive;
    uv_idle_init(&f->loop, &alive);
    uv_idle_start(&alive, nothing);
    while (written < n)
        uv_run(&f->loop, UV_RUN_NOWAIT);
    uv_close((uv_handle_t *)&alive, NULL);
    uv_run(&f->loop, UV_RUN_DEFAULT);
}

static void check_order(unsigned n)
{
    assert_int_equal(written, n);
    for (unsigned i = 0; i < n; i++)
        assert_int_equal(order[i], i);
}

static void test_in_order(void **state)
{
    struct fixture *f = *state;
    for (unsigned i = 0; i < 20; i++)
        recorder_push(f->recorder, mark(i, false));
    run_until(f, 20);
    check_order(20);
}

/* After a flush everything is written, whether the loop ran or not. */
static void test_flush(void **state)
{
    struct fixture *f = *state;
    recorder_push_quietly(f->recorder, mark(0, false));
    recorder_push(f->recorder, mark(1, false));
    recorder_flush(f->recorder);
    check_order(2);
    uv_run(&f->loop, UV_RUN_DEFAULT);
    check_order(2);
}

static void test_kick(void **state)
{
    struct fixture *f = *state;
    recorder_push_quietly(f->recorder, mark(0, false));
    assert_int_equal(uv_run(&f->loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(written, 0);
    recorder_kick(f->recorder);
    run_until(f, 1);
    check_order(1);
}

static void test_free_writes(void **state)
{
    struct fixture *f = *state;
    recorder_push_quietly(f->recorder, mark(0, false));
    recorder_free(f->recorder);
    check_order(1);
    f->recorder = NULL;
}

static void set_number(struct record *record, void *user)
{
    container_of(record, struct mark, record)->number = *(unsigned *)user;
}

/* What still waits can be changed, what was written cannot. */
static void test_amend(void **state)
{
    struct fixture *f = *state;
    unsigned number = 0;
    struct record *record = mark(9, false);
    uint64_t batch = recorder_push(f->recorder, record);
    assert_true(recorder_amend(f->recorder, batch, record, set_number, &number));
    recorder_flush(f->recorder);
    check_order(1);
    assert_false(recorder_amend(f->recorder, batch, record, set_number, &number));
}

static bool seen_idle;

static bool look_while_writing(struct record *record, struct ledger *l)
{
    struct mark *m = container_of(record, struct mark, record);
    seen_idle = recorder_idle(m->recorder);
    free(m);
    return true;
}

/* Idle is: nothing waits and nothing is being written. */
static void test_idle(void **state)
{
    struct fixture *f = *state;
    struct mark *m = mem_new(struct mark);
    m->record.write = look_while_writing;
    m->recorder = f->recorder;
    seen_idle = true;
    assert_true(recorder_idle(f->recorder));
    recorder_push_quietly(f->recorder, &m->record);
    assert_false(recorder_idle(f->recorder));
    recorder_flush(f->recorder);
    assert_false(seen_idle);
    assert_true(recorder_idle(f->recorder));
}

static void test_lost_is_counted(void **state)
{
    struct fixture *f = *state;
    recorder_push_quietly(f->recorder, mark(0, true));
    recorder_flush(f->recorder);
    assert_int_equal(recorder_lost(f->recorder), 1);
    for (unsigned i = 0; i < RECORDER_QUEUE_MAX + 3; i++)
        recorder_push_quietly(f->recorder, mark(i, false));
    assert_int_equal(recorder_push(f->recorder, mark(0, false)), RECORDER_DROPPED);
    assert_int_equal(dropped, 4);
    assert_int_equal(recorder_lost(f->recorder), 5);
    recorder_flush(f->recorder);
    assert_int_equal(written, RECORDER_QUEUE_MAX);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
UNIT_MAIN(WITH(test_in_order), WITH(test_flush), WITH(test_kick), WITH(test_free_writes),
          WITH(test_amend), WITH(test_idle), WITH(test_lost_is_counted))
