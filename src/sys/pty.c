/* sys/pty: see pty.h. */
#include "sys/pty.h"

#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>

int pty_resize(int master, uint16_t rows, uint16_t cols)
{
    struct winsize size = {.ws_row = rows, .ws_col = cols};
    return ioctl(master, TIOCSWINSZ, &size) == 0 ? 0 : -errno;
}

/* Erasing a character in the kernel's line editor then takes its whole UTF-8 sequence. */
static int set_utf8(int slave)
{
    struct termios t;
    if (tcgetattr(slave, &t) < 0)
        return -errno;
    t.c_iflag |= IUTF8;
    return tcsetattr(slave, TCSANOW, &t) == 0 ? 0 : -errno;
}

int pty_open(uint16_t rows, uint16_t cols, int *ret_master, int *ret_slave)
{
    autofd int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (master < 0)
        return -errno;
    if (grantpt(master) < 0 || unlockpt(master) < 0)
        return -errno;
    autofd int slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (slave < 0)
        return -errno;
    int rc = set_utf8(slave);
    if (rc == 0)
        rc = pty_resize(master, rows, cols);
    if (rc < 0)
        return rc;
    *ret_master = steal_fd(&master);
    *ret_slave = steal_fd(&slave);
    return 0;
}

int pty_eof_char(int master)
{
    struct termios t;
    if (tcgetattr(master, &t) < 0)
        return -errno;
    return t.c_cc[VEOF];
}
