/* run/watch: handles are counted, descriptors are closed at once, the owner goes last. */
#include "../../helpers/unit.h"
#include "base/mem.h"
#include "run/watch.h"
#include "sys/fd.h"

#include <errno.h>
#include <fcntl.h>

struct owner {
    uv_loop_t loop;
    struct anchor anchor;
    struct watch watch;
    struct alarm alarm;
    int ready, rang, gone;
};

static void on_ready(struct watch *w, void *owner)
{
    struct owner *o = owner;
    char c;
    assert_ptr_equal(w, &o->watch);
    o->ready++;
    if (fd_read(w->fd, &c, 1) == 0)
        watch_close(w);
}

static void on_ring(struct alarm *a, void *owner)
{
    (void)a;
    ((struct owner *)owner)->rang++;
}

static void on_gone(struct anchor *a)
{
    container_of(a, struct owner, anchor)->gone++;
}

static void start(struct owner *o, int pair[2])
{
    *o = (struct owner){0};
    assert_int_equal(uv_loop_init(&o->loop), 0);
    assert_int_equal(fd_pipe(pair), 0);
    watch_init(&o->watch);
    alarm_open(&o->alarm, &o->loop, &o->anchor, on_ring, o);
}

static void stop(struct owner *o)
{
    assert_int_equal(uv_run(&o->loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(uv_loop_close(&o->loop), 0);
    assert_int_equal(o->gone, 1);
}

static void test_reads_until_the_end(void **state)
{
    (void)state;
    struct owner o;
    int pair[2];
    start(&o, pair);
    int number = pair[0];
    assert_int_equal(watch_take(&o.watch, &o.loop, &o.anchor, &pair[0], UV_READABLE, on_ready, &o),
                     0);
    assert_int_equal(pair[0], -1); /* taken */
    assert_int_equal(fd_write(pair[1], "x", 1), 1);
    uv_run(&o.loop, UV_RUN_ONCE);
    assert_int_equal(o.ready, 1);
    watch_want(&o.watch, 0); /* not now */
    fd_close(&pair[1]);
    uv_run(&o.loop, UV_RUN_NOWAIT);
    assert_int_equal(o.ready, 1);
    watch_want(&o.watch, UV_READABLE);
    uv_run(&o.loop, UV_RUN_ONCE);
    assert_int_equal(o.ready, 2);
    assert_int_equal(o.watch.fd, -1);
    assert_int_equal(fcntl(number, F_GETFD), -1); /* closed at once */
    watch_close(&o.watch);                        /* twice is fine */
    watch_want(&o.watch, UV_READABLE);            /* as is this */
    alarm_close(&o.alarm);
    anchor_leave(&o.anchor, on_gone);
    assert_int_equal(o.gone, 0); /* the handles close on the loop */
    stop(&o);
}

static void test_release_keeps_the_descriptor(void **state)
{
    (void)state;
    struct owner o;
    int pair[2];
    start(&o, pair);
    assert_int_equal(watch_take(&o.watch, &o.loop, &o.anchor, &pair[0], UV_READABLE, on_ready, &o),
                     0);
    int fd = watch_release(&o.watch);
    assert_int_equal(watch_release(&o.watch), -1);
    assert_int_equal(fd_write(pair[1], "x", 1), 1);
    uv_run(&o.loop, UV_RUN_NOWAIT);
    assert_int_equal(o.ready, 0);
    /* the same descriptor may go straight to another watch */
    struct watch second;
    watch_init(&second);
    assert_int_equal(watch_take(&second, &o.loop, &o.anchor, &fd, 0, on_ready, &o), 0);
    watch_close(&second);
    fd_close(&pair[1]);
    alarm_close(&o.alarm);
    anchor_leave(&o.anchor, on_gone);
    stop(&o);
}

static void test_held(void **state)
{
    (void)state;
    struct owner o;
    int pair[2];
    start(&o, pair);
    assert_int_equal(watch_hold(&o.watch, &o.loop, &o.anchor, &pair[0], on_ready, &o), 0);
    assert_int_equal(pair[0], -1);
    assert_int_equal(o.anchor.open, 1); /* the alarm: the loop does not know of it */
    assert_true((fcntl(o.watch.fd, F_GETFL) & O_NONBLOCK) != 0);
    assert_int_equal(fd_write(pair[1], "x", 1), 1);
    watch_want(&o.watch, 0);
    assert_int_equal(o.anchor.open, 1);
    watch_want(&o.watch, UV_READABLE);
    assert_int_equal(o.anchor.open, 2);
    uv_run(&o.loop, UV_RUN_ONCE);
    assert_int_equal(o.ready, 1);
    watch_close(&o.watch);
    fd_close(&pair[1]);
    alarm_close(&o.alarm);
    anchor_leave(&o.anchor, on_gone);
    stop(&o);
}

/* It goes at once, because the loop has nothing to close. */
static void test_held_and_never_wanted(void **state)
{
    (void)state;
    struct owner o;
    int pair[2];
    start(&o, pair);
    alarm_close(&o.alarm);
    uv_run(&o.loop, UV_RUN_DEFAULT);
    assert_int_equal(watch_hold(&o.watch, &o.loop, &o.anchor, &pair[0], on_ready, &o), 0);
    int number = o.watch.fd;
    watch_close(&o.watch);
    assert_int_equal(fcntl(number, F_GETFD), -1);
    assert_int_equal(watch_hold(&o.watch, &o.loop, &o.anchor, &pair[1], on_ready, &o), 0);
    int fd = watch_release(&o.watch);
    assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
    fd_close(&fd);
    anchor_leave(&o.anchor, on_gone);
    assert_int_equal(o.gone, 1);
    stop(&o);
}

static void test_refused_descriptor_stays_ours(void **state)
{
    (void)state;
    struct owner o;
    int pair[2];
    start(&o, pair);
    int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC); /* files cannot be waited for */
    int kept = file;
    assert_int_equal(watch_take(&o.watch, &o.loop, &o.anchor, &file, UV_READABLE, on_ready, &o),
                     -EPERM);
    assert_int_equal(file, kept);
    assert_int_equal(o.watch.fd, -1);
    fd_close(&file);
    fd_close(&pair[0]);
    fd_close(&pair[1]);
    alarm_close(&o.alarm);
    anchor_leave(&o.anchor, on_gone);
    stop(&o);
}

static void test_alarm(void **state)
{
    (void)state;
    struct owner o;
    int pair[2];
    start(&o, pair);
    fd_close(&pair[0]);
    fd_close(&pair[1]);
    alarm_set(&o.alarm, 1);
    uv_run(&o.loop, UV_RUN_DEFAULT);
    assert_int_equal(o.rang, 1);
    alarm_set(&o.alarm, 1);
    alarm_stop(&o.alarm);
    uv_run(&o.loop, UV_RUN_DEFAULT);
    assert_int_equal(o.rang, 1);
    alarm_close(&o.alarm);
    alarm_close(&o.alarm);
    alarm_set(&o.alarm, 0); /* closed: nothing happens */
    uv_run(&o.loop, UV_RUN_DEFAULT);
    assert_int_equal(o.rang, 1);
    anchor_leave(&o.anchor, on_gone); /* nothing is open: now */
    assert_int_equal(o.gone, 1);
    stop(&o);
}

UNIT_MAIN(cmocka_unit_test(test_reads_until_the_end),
          cmocka_unit_test(test_release_keeps_the_descriptor), cmocka_unit_test(test_held),
          cmocka_unit_test(test_held_and_never_wanted),
          cmocka_unit_test(test_refused_descriptor_stays_ours), cmocka_unit_test(test_alarm))
