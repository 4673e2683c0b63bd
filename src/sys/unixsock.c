/* sys/unixsock: see unixsock.h. */
#include "sys/unixsock.h"

#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static int fill_address(const char *path, struct sockaddr_un *ret)
{
    size_t n = strlen(path);
    *ret = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (n >= sizeof(ret->sun_path))
        return -ENAMETOOLONG;
    memcpy(ret->sun_path, path, n + 1);
    return 0;
}

/* The directory that the last component of `path` lies in. */
static int open_parent(const char *path)
{
    const char *slash = strrchr(path, '/');
    size_t n = slash == NULL ? 0 : (size_t)(slash - path);
    autofree char *dir = slash == NULL ? mem_strdup(".")
                         : n == 0      ? mem_strdup("/")
                                       : mem_dup(path, n);
    int fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

/* Ours or root's, and nobody else may write it (a sticky bit does not help: names can be planted).
 */
static int check_parent(const char *path)
{
    struct stat st;
    autofd int dir = open_parent(path);
    if (dir < 0)
        return dir;
    if (fstat(dir, &st) < 0)
        return -errno;
    bool ours = st.st_uid == geteuid() || st.st_uid == 0;
    return ours && (st.st_mode & 022) == 0 ? 0 : -EPERM;
}

static int new_socket(void)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return fd < 0 ? -errno : fd;
}

/* Somebody listens: -EADDRINUSE. A leftover is removed. */
static int clear_leftover(const char *path, const struct sockaddr_un *address)
{
    struct stat st;
    if (lstat(path, &st) < 0)
        return errno == ENOENT ? 0 : -errno;
    if (!S_ISSOCK(st.st_mode))
        return -EEXIST;
    autofd int fd = new_socket();
    if (fd < 0)
        return fd;
    if (connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0)
        return -EADDRINUSE;
    if (errno == ENOENT)
        return 0;
    if (errno != ECONNREFUSED)
        return -errno;
    return unlink(path) < 0 && errno != ENOENT ? -errno : 0;
}

int unixsock_listen(const char *path)
{
    struct sockaddr_un address;
    int rc = fill_address(path, &address);
    if (rc == 0)
        rc = check_parent(path);
    if (rc == 0)
        rc = clear_leftover(path, &address);
    if (rc < 0)
        return rc;
    autofd int fd = new_socket();
    if (fd < 0)
        return fd;
    mode_t old = umask(0177);
    rc = bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ? -errno : 0;
    umask(old);
    if (rc < 0)
        return rc;
    if (listen(fd, 1) < 0)
        return -errno;
    return steal_fd(&fd);
}

static int check_peer(int fd)
{
    struct ucred peer;
    socklen_t n = sizeof(peer);
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) < 0)
        return -errno;
    return peer.uid == geteuid() || peer.uid == 0 ? 0 : -EPERM;
}

int unixsock_accept(int listener)
{
    autofd int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0)
        return errno == EINTR || errno == ECONNABORTED ? -EAGAIN : -errno;
    int rc = check_peer(fd);
    return rc < 0 ? rc : steal_fd(&fd);
}

int unixsock_connect(const char *path)
{
    struct sockaddr_un address;
    int rc = fill_address(path, &address);
    if (rc < 0)
        return rc;
    autofd int fd = new_socket();
    if (fd < 0)
        return fd;
    if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
        return -errno;
    rc = check_peer(fd);
    return rc < 0 ? rc : steal_fd(&fd);
}
