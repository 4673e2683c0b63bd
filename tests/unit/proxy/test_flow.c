/* proxy/flow: bytes from one end to another, copied or spliced, with a receiver that does not read.
 */
#include "../../helpers/unit.h"
#include "base/mem.h"
#include "proxy/flow.h"
#include "sys/fd.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

struct world {
    struct flow_pool pool;
    struct flow flow;
    struct end from;
    struct end to;
    int sender;
    int receiver;
    char block[END_BLOCK];
};

static struct world w;

static int set_up(void **state)
{
    (void)state;
    int a[2];
    int b[2];
    w = (struct world){.sender = -1};
    flow_init(&w.flow);
    end_init(&w.from);
    end_init(&w.to);
    if (fd_socketpair(a) < 0 || fd_socketpair(b) < 0)
        return -1;
    w.sender = a[0];
    w.from.source.fd = a[1];
    w.to.source.fd = b[0];
    w.receiver = b[1];
    for (size_t i = 0; i < 2; i++) {
        fd_set_nonblocking(a[i], true);
        fd_set_nonblocking(b[i], true);
    }
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    flow_fini(&w.pool, &w.flow);
    while (w.pool.n_idle > 0) {
        w.pool.n_idle--;
        close(w.pool.idle[w.pool.n_idle].fd[0]);
        close(w.pool.idle[w.pool.n_idle].fd[1]);
    }
    end_close(NULL, &w.from);
    end_close(NULL, &w.to);
    fd_close(&w.sender);
    fd_close(&w.receiver);
    return 0;
}

static enum flow_result pump(uint64_t *left)
{
    bool moved = false;
    end_note(&w.from, EPOLLIN | EPOLLOUT);
    end_note(&w.to, EPOLLOUT);
    enum flow_result r = flow_pump(&w.pool, &w.flow, &w.from, &w.to, w.block, left, &moved);
    end_settle(&w.from);
    return r;
}

/* Send `total` bytes that count up, and read what comes out, until the flow is at rest. */
static void carry(size_t total, uint64_t *left, enum flow_result expected)
{
    size_t sent = 0;
    size_t got = 0;
    unsigned char block[30000];
    enum flow_result r = FLOW_WAIT;
    while (r == FLOW_WAIT || r == FLOW_MORE) {
        while (sent < total) {
            size_t n = total - sent < sizeof(block) ? total - sent : sizeof(block);
            for (size_t i = 0; i < n; i++)
                block[i] = (unsigned char)((sent + i) % 251);
            ssize_t put = fd_write(w.sender, block, n);
            if (put <= 0)
                break;
            sent += (size_t)put;
        }
        if (sent == total && *left == UINT64_MAX)
            shutdown(w.sender, SHUT_WR);
        r = pump(left);
        for (ssize_t n; (n = fd_read(w.receiver, block, sizeof(block))) > 0; got += (size_t)n) {
            for (ssize_t i = 0; i < n; i++)
                ensure(block[i] == (got + (size_t)i) % 251);
        }
    }
    assert_int_equal(r, expected);
    assert_int_equal(got, total);
}

static void test_until_the_end(void **state)
{
    (void)state;
    uint64_t left = UINT64_MAX;
    carry(5000000, &left, FLOW_EOF);
    assert_int_equal(left, UINT64_MAX);
}

static void test_a_length(void **state)
{
    (void)state;
    uint64_t left = 3000001;
    carry(3000001, &left, FLOW_DONE);
    assert_int_equal(left, 0);
    assert_int_equal(w.flow.pipe.fd[0], -1); /* the pipe is back */
}

static void test_bytes_behind_a_length_stay(void **state)
{
    (void)state;
    uint64_t left = 3;
    char text[8];
    assert_int_equal(fd_write(w.sender, "abcdef", 6), 6);
    assert_int_equal(pump(&left), FLOW_DONE);
    assert_int_equal(fd_read(w.receiver, text, sizeof(text)), 3);
    assert_int_equal(w.from.len, 3);
    assert_memory_equal(w.from.at, "def", 3);
}

static void test_a_receiver_that_does_not_read_stops_the_reading(void **state)
{
    (void)state;
    uint64_t left = UINT64_MAX;
    static char block[END_BLOCK];
    size_t accepted = 0;
    for (int i = 0; i < 1000; i++) {
        ssize_t n = fd_write(w.sender, block, sizeof(block));
        accepted += n > 0 ? (size_t)n : 0;
        assert_int_equal(pump(&left), FLOW_WAIT);
    }
    /* Two sockets' buffers, one pipe, one block: not the 64 MB that were offered. */
    assert_true(accepted < (8u << 20));
    assert_true(w.from.kept.len <= END_BLOCK && w.to.out.len <= END_BLOCK);
}

static void test_a_receiver_that_is_gone(void **state)
{
    (void)state;
    uint64_t left = UINT64_MAX;
    fd_close(&w.receiver);
    assert_int_equal(fd_write(w.sender, "abc", 3), 3);
    assert_int_equal(pump(&left), FLOW_FAIL);
}

static void test_without_a_pipe_bytes_are_copied(void **state)
{
    (void)state;
    uint64_t left = UINT64_MAX;
    w.pool.n_all = FLOW_PIPES_MAX;
    carry(3000000, &left, FLOW_EOF);
    assert_int_equal(w.pool.n_idle, 0);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

UNIT_MAIN(CASE(test_until_the_end), CASE(test_a_length), CASE(test_bytes_behind_a_length_stay),
          CASE(test_a_receiver_that_does_not_read_stops_the_reading),
          CASE(test_a_receiver_that_is_gone), CASE(test_without_a_pipe_bytes_are_copied))
