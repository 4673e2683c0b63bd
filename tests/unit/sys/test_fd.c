/* sys/fd: pairs are close-on-exec, writes survive a gone reader, closing from a number up. */
#include "../../helpers/unit.h"
#include "base/mem.h"
#include "sys/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static void test_pairs(void **state)
{
    (void)state;
    int (*const makers[])(int *) = {fd_pipe, fd_socketpair};
    for (size_t i = 0; i < ARRAY_LEN(makers); i++) {
        int pair[2] = {-1, -1};
        char c = 0;
        assert_int_equal(makers[i](pair), 0);
        for (int j = 0; j < 2; j++)
            assert_true(fcntl(pair[j], F_GETFD) & FD_CLOEXEC);
        assert_int_equal(fd_write(pair[1], "x", 1), 1);
        assert_int_equal(fd_read(pair[0], &c, 1), 1);
        assert_int_equal(c, 'x');
        fd_close(&pair[1]);
        assert_int_equal(pair[1], -1);
        assert_int_equal(fd_read(pair[0], &c, 1), 0);
        fd_close(&pair[0]);
        fd_close(&pair[0]);
    }
}

static void test_flags(void **state)
{
    (void)state;
    int pair[2];
    char c;
    assert_int_equal(fd_pipe(pair), 0);
    assert_int_equal(fd_set_nonblocking(pair[0], true), 0);
    assert_int_equal(fd_read(pair[0], &c, 1), -EAGAIN);
    assert_int_equal(fd_set_nonblocking(pair[0], false), 0);
    assert_false(fcntl(pair[0], F_GETFL) & O_NONBLOCK);
    assert_int_equal(fd_set_cloexec(pair[0], false), 0);
    assert_false(fcntl(pair[0], F_GETFD) & FD_CLOEXEC);
    assert_true(fd_set_pipe_size(pair[0], 262144) >= 262144);
    fd_close(&pair[0]);
    fd_close(&pair[1]);
    assert_int_equal(fd_set_nonblocking(-1, true), -EBADF);
    assert_int_equal(fd_set_pipe_size(-1, 4096), -EBADF);
}

static void test_gone_reader(void **state)
{
    (void)state;
    int pair[2];
    assert_int_equal(fd_socketpair(pair), 0);
    fd_close(&pair[0]);
    assert_int_equal(fd_send(pair[1], "x", 1), -EPIPE); /* and no signal */
    fd_close(&pair[1]);
}

static void test_close_from(void **state)
{
    (void)state;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        int high = fcntl(STDERR_FILENO, F_DUPFD, 200);
        int low = fcntl(STDERR_FILENO, F_DUPFD, 100);
        bool ok = fd_close_from(150) == 0 && fcntl(high, F_GETFD) < 0 && fcntl(low, F_GETFD) >= 0;
        _exit(ok ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void test_write_all(void **state)
{
    (void)state;
    int pair[2];
    char text[64] = "";
    assert_int_equal(fd_pipe(pair), 0);
    assert_int_equal(fd_write_all(pair[1], "hello", 5), 0);
    assert_int_equal(fd_read(pair[0], text, sizeof(text)), 5);
    fd_close(&pair[0]);
    signal(SIGPIPE, SIG_IGN);
    assert_int_equal(fd_write_all(pair[1], "hello", 5), -EPIPE);
    fd_close(&pair[1]);
}

UNIT_MAIN(cmocka_unit_test(test_pairs), cmocka_unit_test(test_flags),
          cmocka_unit_test(test_gone_reader), cmocka_unit_test(test_close_from),
          cmocka_unit_test(test_write_all))
