/* sys/fd: descriptors: pairs that are born close-on-exec, and reads and writes that survive EINTR.
 *
 * Theory. A descriptor that lacks O_CLOEXEC for one instant can be inherited by a child that
 * another thread starts, so every maker here sets it in the creating call. Whoever wants a child to
 * have a descriptor names it in sys/spawn. O_NONBLOCK belongs to the open file description and not
 * to the descriptor, so it is set only on our own end of a pair.
 *
 * Must not: retry on anything but EINTR, or raise SIGPIPE (programs ignore it; sockets are told).
 */
#ifndef CODESPACE_SYS_FD_H
#define CODESPACE_SYS_FD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* A pipe: ret[0] reads, ret[1] writes. 0 or -errno; ret is untouched on failure. */
int fd_pipe(int ret[2]);

/* Two connected stream sockets. 0 or -errno; ret is untouched on failure. */
int fd_socketpair(int ret[2]);

int fd_set_nonblocking(int fd, bool on);

/* Drop or set close-on-exec. */
int fd_set_cloexec(int fd, bool on);

/* Ask for a pipe buffer of `bytes`. Best effort: the size there is now, or -errno (EPERM when the
 * user's share, /proc/sys/fs/pipe-user-pages-soft, is used up; the pipe works as before). */
int fd_set_pipe_size(int fd, int bytes);

/* read(2) and write(2), again after EINTR. Bytes, 0 at end of file, or -errno (-EAGAIN included).
 */
ssize_t fd_read(int fd, void *data, size_t n);
ssize_t fd_write(int fd, const void *data, size_t n);

/* As fd_write for a socket; a peer that is gone gives -EPIPE and no signal. */
ssize_t fd_send(int fd, const void *data, size_t n);

/* Write all n bytes to a blocking descriptor. 0 or -errno. */
int fd_write_all(int fd, const void *data, size_t n);

/* Close every descriptor from `lowest` up. 0 or -errno. For programs that are about to exec. */
int fd_close_from(int lowest);

/* Set close-on-exec on every descriptor from `lowest` up. 0 or -errno. */
int fd_cloexec_from(int lowest);

/* Close *fd when it is >= 0 and leave -1. */
void fd_close(int *fd);

#endif
