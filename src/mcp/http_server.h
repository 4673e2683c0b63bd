/* mcp/http_server: the Streamable HTTP transport of MCP, at /mcp.
 *
 * Theory. Listeners hand connections to http_conn, which reads one request at a time (wire/http1)
 * and gives it to http_route. That checks who asks (Host, Origin, token) before a body is taken in,
 * decides the era, and hands the message to a session: of its own for a modern request, the one
 * that Mcp-Session-Id names for a legacy one (http_session). A POST that is being answered is an
 * http_call: a peer that answers with JSON, or with an event stream once there is something to say
 * before the answer.
 *
 * Who may ask: on a loopback address anybody who can connect and is no browser page from elsewhere
 * (Host and Origin are checked), and who has the token when there is one. On any other address a
 * token is demanded, or the program does not start. A Unix socket is for our own user only.
 *
 * Everything that others choose has a limit below. One timer looks once a second for connections
 * that took too long; it sleeps when there are none.
 *
 * Must not: log a token, cancel a legacy call because its connection broke, or end a process
 * because a session ended.
 */
#ifndef CODESPACE_MCP_HTTP_SERVER_H
#define CODESPACE_MCP_HTTP_SERVER_H

#include "base/err.h"
#include "base/str.h"
#include "core/oauth.h"
#include "mcp/server.h"

#include <stdint.h>

#define HTTP_PATH "/mcp"
#define HTTP_HOST_DEFAULT "127.0.0.1"
#define HTTP_PORT_DEFAULT 8787

/* Connections at once. One more takes the place of the one that was idle longest, or is hung up on
 * when all are at work. The number of open files may allow fewer. */
#define HTTP_CONNECTIONS_MAX 16384u
/* A request's body. The same as a line on stdio: the largest patch, escaped, fits. */
#define HTTP_BODY_MAX (16u << 20)
/* All bodies that are coming in or belong to calls that are worked on, of all connections. One of
 * at most HTTP_SMALL bytes is taken all the same; so many connections of that are as much again. */
#define HTTP_BODIES_MAX (256u << 20)
#define HTTP_SMALL 16384u
/* Legacy sessions; one more takes the place of the one that was silent longest. And how long one
 * may be silent without an open stream. */
#define HTTP_SESSIONS_MAX 4096u
#define HTTP_SESSION_IDLE_MS (60u * 60 * 1000)
/* Event streams of one session that are open or can be taken up again. */
#define HTTP_STREAMS_MAX 64u
/* Events that are kept for a client that comes back: of one session, and of all. */
#define HTTP_REPLAY_MAX (1u << 20)
#define HTTP_REPLAY_ALL_MAX (64u << 20)
/* Bytes that may wait for a client to read them before it is told nothing more. */
#define HTTP_OUT_MAX (4u << 20)

/* Time for a whole head, for the next piece of a body, for the next request on a connection, for a
 * client to take some of what it is sent, between two signs of life on a silent stream. */
#define HTTP_HEAD_MS 15000u
#define HTTP_BODY_MS 30000u
#define HTTP_IDLE_MS 300000u
#define HTTP_WRITE_MS 60000u
#define HTTP_COMMENT_MS 20000u
/* Time for calls that are being worked on when the server ends. */
#define HTTP_DRAIN_MS 2000u

struct http_options {
    const char *host; /* NULL: HTTP_HOST_DEFAULT */
    uint16_t port;    /* 0: any free one */
    const char *token;
    const char *operator_token;        /* of the other side: mcp/http_operator; NULL = nobody's */
    struct registry *rules;            /* whose egress the operator may replace; NULL = nobody's */
    const struct oauth_options *oauth; /* take tokens of an issuer; NULL = no */
    const struct strv *hosts;   /* more names that Host may have: name or name:port; may be NULL */
    const struct strv *origins; /* more origins that may ask, exact; may be NULL */
    const char *unix_path;      /* listen there, and not on host and port; NULL = none */
    bool activated;             /* take the sockets that the service manager opened */
};

struct http_server;

/* Everything in `options` is copied. NULL and an err when it must not or cannot be served. */
struct http_server *http_server_new(struct server *server, const struct http_options *options,
                                    struct err *e);

/* Take in nothing more, let what is being worked on come to its answer, then call `done` once. */
void http_server_drain(struct http_server *h, void (*done)(void *user), void *user);

/* Ends everything at once; run the loop afterwards, the memory goes with the last handle. NULL is
 * fine. */
void http_server_free(struct http_server *h);

#endif
