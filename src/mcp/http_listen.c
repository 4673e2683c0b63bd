/* mcp/http_listen: see http_listen.h. */
#include "mcp/http_listen.h"

#include "base/mem.h"
#include "base/num.h"
#include "mcp/http_server.h"
#include "sys/fd.h"
#include "sys/unixsock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* Connections that wait to be accepted. */
#define BACKLOG 1024
#define ACTIVATED_FD 3

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct sockaddr_storage room;
};

static bool is_loopback(const union address *a)
{
    if (a->any.sa_family == AF_INET)
        return ntohl(a->v4.sin_addr.s_addr) >> 24 == 127;
    if (a->any.sa_family != AF_INET6)
        return a->any.sa_family == AF_UNIX;
    const struct in6_addr *v6 = &a->v6.sin6_addr;
    return IN6_IS_ADDR_LOOPBACK(v6) || (IN6_IS_ADDR_V4MAPPED(v6) && v6->s6_addr[12] == 127);
}

/* Take a listening socket in; ask the kernel what it is. */
static int take(struct http_listener *all, unsigned *n, int fd, struct err *e)
{
    union address a = {0};
    socklen_t len = sizeof(a);
    char host[INET6_ADDRSTRLEN];
    char port[8];
    if (*n == HTTP_LISTENERS_MAX || getsockname(fd, &a.any, &len) < 0 ||
        fd_set_nonblocking(fd, true) < 0 || fd_set_cloexec(fd, true) < 0) {
        close(fd);
        return err_set(e, ERR_FILE_OPERATION_FAILED, "the socket cannot be listened on");
    }
    struct http_listener *l = &all[*n];
    *l = (struct http_listener){.fd = fd, .loopback = is_loopback(&a)};
    l->local = a.any.sa_family == AF_UNIX;
    if (l->local)
        snprintf(l->text, sizeof(l->text), "a Unix socket");
    else if (getnameinfo(&a.any, len, host, sizeof(host), port, sizeof(port),
                         NI_NUMERICHOST | NI_NUMERICSERV) == 0)
        snprintf(l->text, sizeof(l->text),
                 strchr(host, ':') != NULL ? "http://[%s]:%s" HTTP_PATH : "http://%s:%s" HTTP_PATH,
                 host, port);
    ++*n;
    return 0;
}

static int cannot_listen(int failed, const char *where, struct err *e)
{
    if (failed != -EADDRINUSE)
        return err_sys(e, ERR_FILE_OPERATION_FAILED, failed, "listen on %.256s", where);
    return err_set(e, ERR_FILE_OPERATION_FAILED,
                   "listen on %.256s: another program listens there already; end it, or give "
                   "another --port (0 = any that is free) or --unix-socket",
                   where);
}

static int bind_one(const struct addrinfo *ai)
{
    int on = 1;
    autofd int fd =
        socket(ai->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, ai->ai_protocol);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0)
        return -errno;
    /* Its own family only, or the second of "localhost" or "::" fails. */
    if (ai->ai_family == AF_INET6 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on)) < 0)
        return -errno;
    if (bind(fd, ai->ai_addr, ai->ai_addrlen) < 0 || listen(fd, BACKLOG) < 0)
        return -errno;
    return steal_fd(&fd);
}

static int bind_all(struct http_listener *all, unsigned *n, const struct addrinfo *list,
                    bool any_port, const char *host, const char *service, struct err *e)
{
    int failed = 0;
    for (const struct addrinfo *ai = list; ai != NULL && *n < HTTP_LISTENERS_MAX;
         ai = ai->ai_next) {
        int fd = bind_one(ai);
        if (fd < 0) {
            failed = fd;
            /* One family may be missing from this machine. */
            if (fd != -EAFNOSUPPORT && fd != -EADDRNOTAVAIL)
                break;
            continue;
        }
        failed = 0;
        if (take(all, n, fd, e) < 0)
            return -1;
        if (any_port) /* two addresses would get two different ones */
            break;
    }
    if (*n > 0 && (failed == 0 || failed == -EAFNOSUPPORT || failed == -EADDRNOTAVAIL))
        return 0;
    autofree char *where = mem_printf("%.200s, port %s", host, service);
    return cannot_listen(failed, where, e);
}

int http_listen_tcp(struct http_listener *all, unsigned *n, const char *host, uint16_t port,
                    struct err *e)
{
    char service[8];
    struct addrinfo *list = NULL;
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    snprintf(service, sizeof(service), "%u", port);
    int status = getaddrinfo(host, service, &hints, &list);
    if (status != 0)
        return err_set(e, ERR_INVALID_ARGUMENT, "--host %.128s: %s", host, gai_strerror(status));
    int r = bind_all(all, n, list, port == 0, host, service, e);
    freeaddrinfo(list);
    return r;
}

int http_listen_unix(struct http_listener *all, unsigned *n, const char *path, struct err *e)
{
    int fd = unixsock_listen(path);
    if (fd < 0)
        return cannot_listen(fd, path, e);
    if (take(all, n, fd, e) < 0)
        return -1;
    (void)listen(fd, BACKLOG); /* it was opened for one peer; here many come at once */
    struct http_listener *l = &all[*n - 1];
    l->path = mem_strdup(path);
    snprintf(l->text, sizeof(l->text), "%s", path);
    return 0;
}

int http_listen_activated(struct http_listener *all, unsigned *n, struct err *e)
{
    uint64_t pid = 0;
    uint64_t count = 0;
    const char *pid_text = getenv("LISTEN_PID");
    const char *count_text = getenv("LISTEN_FDS");
    if (pid_text == NULL || count_text == NULL || num_parse_u64(pid_text, 1, INT32_MAX, &pid) < 0 ||
        pid != (uint64_t)getpid() || num_parse_u64(count_text, 1, HTTP_LISTENERS_MAX, &count) < 0)
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "--socket-activation: the service manager gave no sockets (LISTEN_PID, "
                       "LISTEN_FDS: 1 to HTTP_LISTENERS_MAX, %u)",
                       HTTP_LISTENERS_MAX);
    for (int i = 0; i < (int)count; i++) {
        int listening = 0;
        socklen_t len = sizeof(listening);
        int fd = ACTIVATED_FD + i;
        if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &len) < 0 || !listening)
            return err_set(e, ERR_INVALID_ARGUMENT,
                           "--socket-activation: descriptor %d is no listening socket", fd);
        if (take(all, n, fd, e) < 0)
            return -1;
    }
    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDS");
    unsetenv("LISTEN_FDNAMES");
    return 0;
}

void http_listener_close(struct http_listener *l)
{
    close(l->fd);
    if (l->path != NULL)
        unlink(l->path);
    free(l->path);
}
