/* sys/unixsock: Unix stream sockets by path, for one user's programs among themselves.
 *
 * Theory. Whoever can connect to a worker can run commands as its user. So: the socket is made with
 * mode 0600 in a directory that nobody else can write, the peer's user is asked of the kernel, and
 * a path where somebody listens is never taken away. A path that refuses is a leftover and is
 * removed; anything else that stands there stays and is an error.
 *
 * Must not: chmod a directory, follow a symbolic link at the leaf, or unlink what is no socket.
 */
#ifndef CODESPACE_SYS_UNIXSOCK_H
#define CODESPACE_SYS_UNIXSOCK_H

/* Listen on `path`. The descriptor, or -errno: -EADDRINUSE somebody listens there, -EPERM the
 * directory can be written by others, -ENAMETOOLONG (108 bytes are the limit of the system),
 * -EEXIST something else is there. */
int unixsock_listen(const char *path);

/* Take one connection, of our own user (or root). The descriptor (close-on-exec), -EAGAIN, or
 * -EPERM for somebody else, who is hung up on. */
int unixsock_accept(int listener);

/* Connect to `path`, whose listener must be our own user (or root). Descriptor or -errno. */
int unixsock_connect(const char *path);

#endif
