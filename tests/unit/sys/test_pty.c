/* sys/pty: the pair, its size, its end; and that neither side becomes our own terminal. */
#include "../../helpers/unit.h"
#include "base/mem.h"
#include "sys/fd.h"
#include "sys/pty.h"
#include "sys/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

static void test_pair(void **state)
{
    (void)state;
    autofd int master = -1;
    autofd int slave = -1;
    struct winsize size;
    char text[64] = "";
    assert_int_equal(pty_open(30, 100, &master, &slave), 0);
    assert_true(fcntl(master, F_GETFD) & FD_CLOEXEC);
    assert_true(fcntl(slave, F_GETFD) & FD_CLOEXEC);
    assert_true(isatty(slave));
    assert_int_equal(ioctl(slave, TIOCGWINSZ, &size), 0);
    assert_int_equal(size.ws_row, 30);
    assert_int_equal(size.ws_col, 100);
    assert_int_equal(pty_resize(master, 50, 132), 0);
    assert_int_equal(ioctl(slave, TIOCGWINSZ, &size), 0);
    assert_int_equal(size.ws_row, 50);
    assert_int_equal(pty_eof_char(master), 4);
    assert_int_equal(fd_write(slave, "out\n", 4), 4);
    assert_int_equal(fd_read(master, text, sizeof(text)), 5);
    assert_string_equal(text, "out\r\n");
    assert_true(tcgetsid(slave) < 0); /* nobody's controlling terminal */
    fd_close(&slave);
    assert_int_equal(fd_read(master, text, sizeof(text)), -EIO);
    assert_int_equal(pty_resize(-1, 1, 1), -EBADF);
}

static void test_controlling_terminal(void **state)
{
    (void)state;
    int master = -1;
    int slave = -1;
    char text[64] = "";
    struct spawned child;
    struct spawn_end end;
    assert_int_equal(pty_open(24, 80, &master, &slave), 0);
    const int fds[] = {slave, slave, slave};
    char *const argv[] = {(char *)"sh", (char *)"-c", (char *)"echo ok >/dev/tty", NULL};
    char *const env[] = {NULL};
    const struct spawn_options o = {.path = "/bin/sh",
                                    .argv = argv,
                                    .env = env,
                                    .fds = fds,
                                    .n_fds = 3,
                                    .cwd_fd = -1,
                                    .new_session = true,
                                    .terminal = true};
    assert_int_equal(spawn_start(&o, &child), 0);
    fd_close(&slave);
    assert_int_equal(fd_read(master, text, sizeof(text)), 4);
    assert_string_equal(text, "ok\r\n");
    struct pollfd p = {.fd = child.pidfd, .events = POLLIN};
    assert_int_equal(poll(&p, 1, 90000), 1);
    assert_int_equal(spawn_reap(child.pidfd, &end), 0);
    assert_int_equal(end.value, 0);
    fd_close(&child.pidfd);
    fd_close(&master);
}

UNIT_MAIN(cmocka_unit_test(test_pair), cmocka_unit_test(test_controlling_terminal))
