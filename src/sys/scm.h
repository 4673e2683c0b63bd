/* sys/scm: messages with descriptors over a local socket.
 *
 * Theory. One message is one command or answer: SOCK_SEQPACKET keeps the borders, so what arrives
 * is whole or was cut (and then refused), and several processes may receive from one socket, each
 * getting whole messages. Descriptors arrive close-on-exec.
 *
 * Must not: keep a descriptor of a message that it refuses.
 */
#ifndef CODESPACE_SYS_SCM_H
#define CODESPACE_SYS_SCM_H

#include <stddef.h>
#include <sys/types.h>

/* Descriptors in one message. */
#define SCM_FDS_MAX 8

/* Two connected sockets. 0 or -errno; ret is untouched on failure. */
int scm_pair(int ret[2]);

/* Send without waiting, and without SIGPIPE. 0, or -errno with nothing sent: -EAGAIN when the other
 * side has not received what was sent before, -EMSGSIZE, -EPIPE. */
int scm_send(int fd, const void *data, size_t n, const int *fds, size_t n_fds);

/* Wait for one message. Its length and exactly n_fds descriptors in ret_fds (caller closes), 0 at
 * the end, or -errno: -EBADMSG when it has more bytes or another number of descriptors. */
ssize_t scm_receive(int fd, void *data, size_t cap, int *ret_fds, size_t n_fds);

/* As read(2) on a stream, with a descriptor that may have come with the bytes in *ret_fd (caller
 * closes; -1 = none; of several the first). Bytes, 0 at the end, or -errno. */
ssize_t scm_read(int fd, void *data, size_t cap, int *ret_fd);

#endif
