/* sys/pty: a pseudo-terminal pair.
 *
 * Theory. The pair comes from /dev/ptmx and its other side by descriptor (TIOCGPTPEER), so no path
 * under /dev/pts is trusted and a container with another devpts works. Neither side ever becomes
 * the controlling terminal of this program. What is read from the master after the last slave
 * descriptor was closed ends in EIO, which is a terminal's end of file.
 *
 * Must not: be used with the server's own terminal (E24).
 */
#ifndef CODESPACE_SYS_PTY_H
#define CODESPACE_SYS_PTY_H

#include <stdint.h>

#define PTY_ROWS_DEFAULT 24
#define PTY_COLS_DEFAULT 80

/* Open a pair of rows x cols, close-on-exec. 0 or -errno; outputs are untouched on failure. */
int pty_open(uint16_t rows, uint16_t cols, int *ret_master, int *ret_slave);

/* New size; the foreground process group gets SIGWINCH when it differs. 0 or -errno. */
int pty_resize(int master, uint16_t rows, uint16_t cols);

/* The character that means end of file at the start of a line now (usually 4), or -errno. */
int pty_eof_char(int master);

#endif
