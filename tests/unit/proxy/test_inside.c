/* proxy/inside: one socket serves one connection after another. */
#include "../../helpers/unit.h"
#include "base/mem.h"
#include "proxy/inside.h"
#include "sys/fd.h"

#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

static int listen_somewhere(struct sockaddr_in *at)
{
    socklen_t len = sizeof(*at);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    *at = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert_int_equal(bind(fd, (struct sockaddr *)at, sizeof(*at)), 0);
    assert_int_equal(listen(fd, 8), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)at, &len), 0);
    return fd;
}

static void nothing(struct source *s, uint32_t events)
{
    (void)s;
    (void)events;
}

static void test_again_and_again(void **state)
{
    (void)state;
    struct inside in = {0};
    struct loop loop;
    struct sockaddr_in at;
    struct source source = {-1, nothing};
    char byte;
    int listener = listen_somewhere(&at);
    assert_int_equal(loop_init(&loop), 0);
    assert_false(inside_has_any(&in));
    inside_add(&in, AF_INET, socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    assert_true(inside_has_any(&in));
    for (int i = 0; i < 20; i++) {
        int fd = inside_take(&in, 4);
        assert_true(fd >= 0);
        assert_int_equal(inside_take(&in, 4), -1);
        assert_int_equal(errno, EMFILE);
        assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
        int peer = accept(listener, NULL, NULL);
        assert_int_equal(loop_add(&loop, &source, fd), 0);
        assert_int_equal(fd_write(peer, "x", 1), 1);
        inside_put(&in, &loop, &source);
        assert_int_equal(source.fd, -1);
        /* The other side sees a proper end before the socket is used again. */
        assert_int_equal(fd_read(peer, &byte, 1), 0);
        close(peer);
    }
    inside_put(&in, &loop, &source); /* closed: nothing happens */
    assert_int_equal(inside_take(&in, 6), -1);
    close(inside_take(&in, 4));
    close(listener);
    close(loop.epoll_fd);
}

UNIT_MAIN(cmocka_unit_test(test_again_and_again))
