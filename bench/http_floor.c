/* bench/http_floor: the least that a server of MCP over HTTP could do: one process, epoll, requests
 * told apart by Content-Length, and each answered with the same bytes around its id.
 *
 *   http_floor SIZE
 *
 * Prints "listening on http://127.0.0.1:PORT/mcp" on stderr; the text of its answer has SIZE
 * characters. It checks nothing and knows no session: it is the floor of a row, not a server.
 */
#include "sample.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define CLIENTS 4096
#define IN 65536

struct client {
    char *in;
    size_t have;
};

static struct client clients[CLIENTS];
static char *text; /* of the result of every request but initialize */

static const char initialize_result[] =
    "{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"tools\":{}},"
    "\"serverInfo\":{\"name\":\"floor\",\"version\":\"1\"}}";

static void make_text(size_t size)
{
    static const char before[] = "{\"content\":[{\"type\":\"text\",\"text\":\"";
    static const char after[] = "\"}]}";
    text = calloc(1, sizeof(before) + size + sizeof(after));
    if (text == NULL)
        die("out of memory");
    strcpy(text, before);
    memset(text + strlen(before), 'x', size);
    strcpy(text + strlen(before) + size, after);
}

/* Bytes of the first request in `in`, or 0. */
static size_t whole_request(char *in, size_t have)
{
    in[have] = '\0';
    char *end = strstr(in, "\r\n\r\n");
    if (end == NULL)
        return 0;
    char *length = strcasestr(in, "content-length:");
    size_t n = (size_t)(end - in) + 4;
    if (length != NULL && length < end)
        n += strtoul(length + 15, NULL, 10);
    return have >= n ? n : 0;
}

static void forget(int fd)
{
    free(clients[fd].in);
    clients[fd] = (struct client){0};
    close(fd);
}

static void write_both(int fd, const char *head, size_t head_len, const char *body, size_t n)
{
    struct iovec parts[] = {{(char *)head, head_len}, {(char *)body, n}};
    ssize_t put = writev(fd, parts, 2);
    for (size_t done = put < 0 ? head_len + n : (size_t)put; done < head_len + n;) {
        put = done < head_len ? write(fd, head + done, head_len - done)
                              : write(fd, body + (done - head_len), head_len + n - done);
        if (put <= 0)
            return;
        done += (size_t)put;
    }
}

/* A GET is refused, what has no id is accepted, and the rest is answered with that id. */
static void answer(int fd, char *request, size_t n)
{
    char head[400];
    char last = request[n];
    request[n] = '\0';
    char *id = strstr(request, "\"id\":");
    const char *result = strstr(request, "\"initialize\"") != NULL ? initialize_result : text;
    request[n] = last;
    if (id == NULL) {
        int len = snprintf(head, sizeof(head), "HTTP/1.1 %s\r\nContent-Length: 0\r\n\r\n",
                           *request == 'P' ? "202 Accepted" : "405 Method Not Allowed");
        write_both(fd, head, (size_t)len, "", 0);
        return;
    }
    char open[64];
    int open_len =
        snprintf(open, sizeof(open),
                 "{\"jsonrpc\":\"2.0\",\"id\":%lld,\"result\":", strtoll(id + 5, NULL, 10));
    size_t len = strlen(result);
    int head_len = snprintf(head, sizeof(head),
                            "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n"
                            "Content-Type: application/json\r\nMcp-Session-Id: floor\r\n\r\n%s",
                            (size_t)open_len + len + 1, open);
    char *body = malloc(len + 1);
    if (body == NULL)
        die("out of memory");
    memcpy(body, result, len);
    body[len] = '}';
    write_both(fd, head, (size_t)head_len, body, len + 1);
    free(body);
}

static void serve(int fd)
{
    struct client *c = &clients[fd];
    ssize_t got = read(fd, c->in + c->have, IN - c->have);
    if (got <= 0) {
        forget(fd);
        return;
    }
    c->have += (size_t)got;
    for (size_t n; (n = whole_request(c->in, c->have)) > 0;) {
        answer(fd, c->in, n);
        memmove(c->in, c->in + n, c->have - n);
        c->have -= n;
    }
}

static void take(int epoll, int listener)
{
    int on = 1;
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0 || fd >= CLIENTS) {
        close(fd);
        return;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    clients[fd].in = malloc(IN + 1);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    if (clients[fd].in == NULL || epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) < 0)
        forget(fd);
}

int main(int argc, char **argv)
{
    struct sockaddr_in a = {.sin_family = AF_INET};
    socklen_t len = sizeof(a);
    if (argc != 2)
        die("usage: http_floor SIZE");
    make_text(number_or_die(argv[1]));
    signal(SIGPIPE, SIG_IGN);
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(listener, (struct sockaddr *)&a, sizeof(a)) < 0 || listen(listener, 512) < 0 ||
        getsockname(listener, (struct sockaddr *)&a, &len) < 0)
        die("listen: %m");
    struct epoll_event event = {.events = EPOLLIN, .data.fd = listener};
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event) < 0)
        die("epoll: %m");
    fprintf(stderr, "listening on http://127.0.0.1:%d/mcp\n", ntohs(a.sin_port));
    for (;;) {
        struct epoll_event ready[64];
        int n = epoll_wait(epoll, ready, 64, -1);
        for (int i = 0; i < n; i++) {
            if (ready[i].data.fd == listener)
                take(epoll, listener);
            else
                serve(ready[i].data.fd);
        }
    }
}
