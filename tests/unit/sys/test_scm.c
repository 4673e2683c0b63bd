/* sys/scm: messages keep their borders and their descriptors, and a wrong one leaves nothing. */
#include "../../helpers/unit.h"
#include "base/mem.h"
#include "sys/fd.h"
#include "sys/scm.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static int count_fds(void)
{
    int n = 0;
    for (int fd = 0; fd < 256; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

static void test_there(void **state)
{
    (void)state;
    int pair[2], pipes[2], got[2];
    char text[16];
    assert_int_equal(scm_pair(pair), 0);
    assert_int_equal(fd_pipe(pipes), 0);
    assert_int_equal(scm_send(pair[0], "one", 3, pipes, 2), 0);
    assert_int_equal(scm_send(pair[0], "three", 5, NULL, 0), 0);
    assert_int_equal(scm_receive(pair[1], text, sizeof(text), got, 2), 3);
    assert_int_equal(fcntl(got[0], F_GETFD), FD_CLOEXEC);
    assert_int_equal(write(got[1], "x", 1), 1);
    assert_int_equal(read(pipes[0], text, 1), 1);
    assert_int_equal(scm_receive(pair[1], text, sizeof(text), NULL, 0), 5);
    close(pair[0]);
    assert_int_equal(scm_receive(pair[1], text, sizeof(text), got, 2), 0);
    assert_int_equal(scm_send(pair[1], "x", 1, NULL, 0), -EPIPE);
    int all[] = {pair[1], pipes[0], pipes[1], got[0], got[1]};
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        close(all[i]);
}

static void test_refused(void **state)
{
    (void)state;
    int pair[2], got[4];
    char text[4];
    assert_int_equal(scm_pair(pair), 0);
    int before = count_fds();
    const int fds[4] = {0, 1, 2, 0};
    assert_int_equal(scm_send(pair[0], "one", 3, fds, 3), 0);
    assert_int_equal(scm_receive(pair[1], text, sizeof(text), got, 4), -EBADMSG);
    assert_int_equal(scm_send(pair[0], "one", 3, fds, 4), 0);
    assert_int_equal(scm_receive(pair[1], text, sizeof(text), got, 3), -EBADMSG);
    assert_int_equal(scm_send(pair[0], "too long", 8, fds, 4), 0);
    assert_int_equal(scm_receive(pair[1], text, sizeof(text), got, 4), -EBADMSG);
    assert_int_equal(count_fds(), before);
    close(pair[0]);
    close(pair[1]);
}

static void test_full(void **state)
{
    (void)state;
    int pair[2];
    int rc = 0;
    static const char large[8192];
    assert_int_equal(scm_pair(pair), 0);
    for (int i = 0; i < 10000 && rc == 0; i++)
        rc = scm_send(pair[0], large, sizeof(large), NULL, 0);
    assert_int_equal(rc, -EAGAIN);
    close(pair[0]);
    close(pair[1]);
}

static void test_stream(void **state)
{
    (void)state;
    int pair[2], got;
    char text[16];
    assert_int_equal(fd_socketpair(pair), 0);
    int before = count_fds();
    const int fds[3] = {0, 1, 2};
    assert_int_equal(scm_send(pair[0], "plain", 5, NULL, 0), 0);
    assert_int_equal(scm_read(pair[1], text, sizeof(text), &got), 5);
    assert_int_equal(got, -1);
    assert_int_equal(scm_send(pair[0], "\n", 1, fds, 3), 0);
    assert_int_equal(scm_read(pair[1], text, sizeof(text), &got), 1);
    assert_int_equal(fcntl(got, F_GETFD), FD_CLOEXEC);
    assert_int_equal(count_fds(), before + 1); /* of several the first */
    close(got);
    assert_int_equal(fd_set_nonblocking(pair[1], true), 0);
    assert_int_equal(scm_read(pair[1], text, sizeof(text), &got), -EAGAIN);
    close(pair[0]);
    assert_int_equal(scm_read(pair[1], text, sizeof(text), &got), 0);
    close(pair[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_there),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_full),
        cmocka_unit_test(test_stream),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
