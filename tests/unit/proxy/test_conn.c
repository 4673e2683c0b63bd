/* proxy/conn: the time limits of a client, which cannot be waited for: each is made to have passed.
 */
#include "../../helpers/unit.h"
#include "base/mem.h"
#include "proxy/conn.h"
#include "sys/fd.h"

#include <sys/socket.h>
#include <unistd.h>

static struct proxy p;
static int client = -1;
static int status[2];

static int set_up(void **state)
{
    (void)state;
    int pair[2];
    struct err e = {0};
    p = (struct proxy){.conns_max = 10};
    if (loop_init(&p.loop) < 0 || fd_pipe(status) < 0 || fd_socketpair(pair) < 0 ||
        egress_policy_parse("{}", 2, &p.policy, &e) < 0)
        return -1;
    list_init(&p.conns);
    standins_init(&p.standins);
    status_init(&p.status, status[1]);
    fd_set_nonblocking(pair[0], true);
    client = pair[1];
    return conn_new(&p, &pair[0]) == NULL ? -1 : 0;
}

static void stop_loop(struct deferred *d)
{
    (void)d;
    p.loop.stop = true;
}

/* One turn: what is there is read, limits that have passed are obeyed. */
static void turn(void)
{
    struct deferred stop;
    deferred_init(&stop, stop_loop);
    p.loop.stop = false;
    loop_defer(&p.loop, &stop);
    assert_int_equal(loop_run(&p.loop), 0);
}

static struct conn *only(void)
{
    assert_int_equal(p.n_conns, 1);
    return container_of(p.conns.next, struct conn, node);
}

static void pass_limit(enum loop_limit limit)
{
    assert_int_equal(only()->limit, limit);
    only()->timer.due_ms = 0;
    turn();
}

static int tear_down(void **state)
{
    (void)state;
    while (p.n_conns > 0) {
        conn_abort(only(), false);
        conn_run(only());
    }
    turn();
    fd_close(&client);
    fd_close(&status[0]);
    fd_close(&status[1]);
    close(p.loop.epoll_fd);
    egress_policy_fini(&p.policy);
    buf_fini(&p.status.line);
    standins_fini(&p.standins);
    return 0;
}

static void send_text(const char *text)
{
    assert_int_equal(fd_write(client, text, strlen(text)), strlen(text));
    turn();
}

/* Read what is there; it must begin with `start`. */
static void expect(const char *start)
{
    char text[4096];
    ssize_t n = recv(client, text, sizeof(text) - 1, MSG_DONTWAIT);
    assert_true(n >= (ssize_t)strlen(start));
    assert_memory_equal(text, start, strlen(start));
}

static void expect_closed(void)
{
    char byte;
    assert_int_equal(p.n_conns, 0);
    assert_int_equal(recv(client, &byte, 1, MSG_DONTWAIT), 0);
}

static void test_silent_client(void **state)
{
    (void)state;
    pass_limit(LOOP_HEAD);
    expect_closed();
}

static void test_slow_head_is_told(void **state)
{
    (void)state;
    send_text("GET http://a.test/ HTTP/1.1\r\nHost");
    uint64_t due = only()->timer.due_ms;
    send_text(": a");
    assert_int_equal(only()->timer.due_ms, due); /* more bytes do not put it off */
    pass_limit(LOOP_HEAD);
    expect("HTTP/1.1 408 ");
    pass_limit(LOOP_LINGER); /* the client neither reads on nor closes */
    expect_closed();
}

static void test_slow_socks(void **state)
{
    (void)state;
    send_text("\5\1");
    pass_limit(LOOP_HEAD);
    expect_closed();
}

static void test_idle_client(void **state)
{
    (void)state;
    send_text("GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n");
    expect("HTTP/1.1 403 ");
    send_text("GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n");
    expect("HTTP/1.1 403 ");
    pass_limit(LOOP_IDLE);
    expect_closed();
}

static void test_idle_is_over_with_the_first_byte(void **state)
{
    (void)state;
    send_text("GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n");
    expect("HTTP/1.1 403 ");
    send_text("G");
    pass_limit(LOOP_HEAD);
    expect("HTTP/1.1 408 ");
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

UNIT_MAIN(CASE(test_silent_client), CASE(test_slow_head_is_told), CASE(test_slow_socks),
          CASE(test_idle_client), CASE(test_idle_is_over_with_the_first_byte))
