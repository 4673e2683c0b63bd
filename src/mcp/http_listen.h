/* mcp/http_listen: the sockets that HTTP is served on.
 *
 * Theory. An address and a port, a Unix socket by its path, or what the service manager opened for
 * us (sd_listen_fds(3): LISTEN_PID, LISTEN_FDS, descriptors from 3 on). Each knows whether only
 * this machine can reach it.
 *
 * Must not: take over a path where somebody listens (sys/unixsock).
 */
#ifndef CODESPACE_MCP_HTTP_LISTEN_H
#define CODESPACE_MCP_HTTP_LISTEN_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

/* "localhost" is two addresses; a service manager may hand over some more. */
#define HTTP_LISTENERS_MAX 8u

struct http_listener {
    uv_poll_t poll;
    int fd;
    bool loopback; /* only this machine reaches it */
    bool local;    /* a Unix socket */
    char *path;    /* of a socket that we made, to be removed */
    char text[96]; /* for people */
};

/* Fill up to HTTP_LISTENERS_MAX of them; each counts as soon as *n says so, whatever is returned.
 * Errors: INVALID_ARGUMENT, FILE_OPERATION_FAILED. */
int http_listen_tcp(struct http_listener *all, unsigned *n, const char *host, uint16_t port,
                    struct err *e);
int http_listen_unix(struct http_listener *all, unsigned *n, const char *path, struct err *e);
int http_listen_activated(struct http_listener *all, unsigned *n, struct err *e);

/* Close it, and remove the path. */
void http_listener_close(struct http_listener *l);

#endif
