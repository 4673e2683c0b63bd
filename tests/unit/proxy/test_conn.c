/* proxy/conn: the time limits of a client, which cannot be waited for: each is made to have passed;
 * and a port of the host's loopback that a new policy takes back.
 */
#include "../../helpers/unit.h"
#include "base/mem.h"
#include "proxy/conn.h"
#include "sys/fd.h"

#include <netinet/in.h>
#include <stdio.h>
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

/* ---- a new policy ---- */

/* A server of the host, which the policy grants; a socket for the sandbox's own loopback, too. */
static int listen_granted(char policy[64], uint16_t *ret_port)
{
    struct err e = {0};
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(at);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(listen(fd, 8), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
    *ret_port = ntohs(at.sin_port);
    snprintf(policy, 64, "{\"local_ports\":[%u]}", *ret_port);
    egress_policy_fini(&p.policy);
    assert_int_equal(egress_policy_parse(policy, strlen(policy), &p.policy, &e), 0);
    inside_add(&p.inside, AF_INET, socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    return fd;
}

static void grant_nothing(void)
{
    struct err e = {0};
    egress_policy_fini(&p.policy);
    assert_int_equal(egress_policy_parse("{}", 2, &p.policy, &e), 0);
    conn_judge_again(&p);
}

/* On the loopback nothing takes longer than the call that causes it. */
static void turns(void)
{
    for (int i = 0; i < 8; i++)
        turn();
}

static void test_tunnel_to_a_port_that_is_taken_back(void **state)
{
    (void)state;
    char text[128];
    uint16_t port;
    int listener = listen_granted(text, &port);
    snprintf(text, sizeof(text), "CONNECT localhost:%u HTTP/1.1\r\nHost: localhost:%u\r\n\r\n",
             port, port);
    send_text(text);
    turns();
    expect("HTTP/1.1 200 ");
    grant_nothing();
    assert_int_equal(p.n_conns, 0);
    close(inside_take(&p.inside, 4));
    close(listener);
}

static void test_kept_connection_to_a_port_that_is_taken_back(void **state)
{
    (void)state;
    static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    char text[128];
    char got[256];
    uint16_t port;
    int listener = listen_granted(text, &port);
    snprintf(text, sizeof(text), "GET http://localhost:%u/ HTTP/1.1\r\nHost: localhost:%u\r\n\r\n",
             port, port);
    send_text(text);
    turns();
    int host = accept(listener, NULL, NULL);
    assert_true(recv(host, got, sizeof(got), MSG_DONTWAIT) > 0);
    assert_int_equal(fd_write(host, answer, strlen(answer)), strlen(answer));
    turns();
    expect("HTTP/1.1 200 ");
    grant_nothing();
    send_text(text);
    turns();
    assert_int_equal(recv(host, got, sizeof(got), MSG_DONTWAIT), 0); /* ended, not asked again */
    conn_abort(only(), false);
    conn_run(only());
    close(inside_take(&p.inside, 4));
    close(host);
    close(listener);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

UNIT_MAIN(CASE(test_silent_client), CASE(test_slow_head_is_told), CASE(test_slow_socks),
          CASE(test_idle_client), CASE(test_idle_is_over_with_the_first_byte),
          CASE(test_tunnel_to_a_port_that_is_taken_back),
          CASE(test_kept_connection_to_a_port_that_is_taken_back))
