/* mcp/http: what the files of the HTTP transport know of each other (see http_server.h).
 *
 * A connection lives as long as its socket. A call lives until all its answers are sent, and may
 * outlive its connection when it is a legacy one. A session lives until it is deleted or was silent
 * for too long. Each is unlinked from the others when it goes; the pointers below are NULL then.
 *
 * Must not: be included outside the transport and its tests.
 */
#ifndef CODESPACE_MCP_HTTP_H
#define CODESPACE_MCP_HTTP_H

#include "base/list.h"
#include "base/map.h"
#include "mcp/http_check.h"
#include "mcp/http_listen.h"
#include "mcp/http_server.h"
#include "mcp/session.h"
#include "wire/http1.h"

struct http_operator_call;

struct http_server {
    struct server *server;
    struct registry *rules;
    struct http_policy policy;
    struct http_listener listeners[HTTP_LISTENERS_MAX];
    unsigned n_listeners;
    struct list conns; /* the one that was idle longest first */
    unsigned n_conns;
    struct map sessions; /* id -> struct http_session */
    struct list calls;
    struct list operator_calls; /* mcp/http_operator */
    unsigned n_operator_calls;
    uv_timer_t sweep;
    struct list ready; /* connections whose next request may be there */
    uv_idle_t turn;    /* looks at them */
    unsigned handles;
    size_t bodies; /* bytes of messages that come in or are worked on */
    size_t replay; /* bytes */
    uint64_t drain_until;
    bool draining, over;
    void (*done)(void *user);
    void *user;
};

struct http_conn;
struct http_call;

struct http_session {
    struct peer peer; /* of what belongs to no call */
    struct http_server *http;
    char *id;
    struct session session; /* its `principal` is who may use it */
    struct http_conn *get;  /* the stream for it, or NULL */
    uint64_t get_seq;
    uint32_t streams; /* numbers given so far */
    unsigned n_streams;
    struct list events; /* struct http_event, oldest first */
    size_t event_bytes;
    uint64_t used_ms;
};

/* ---- http_server ---- */

/* The sweeper runs while there is anything to look after. */
void http_server_wake(struct http_server *h);
/* A connection or a call has gone. */
void http_server_less(struct http_server *h);
/* http_conn_resume() at the next turn of the loop. */
void http_server_later(struct http_server *h, struct http_conn *c);

/* ---- http_conn: bytes ---- */

enum http_state { HTTP_READING, HTTP_ANSWERING, HTTP_STREAMING, HTTP_CLOSING };

struct http_message; /* a request that is coming in */

struct http_conn {
    struct list node;
    struct list ready; /* in http->ready */
    struct http_server *http;
    uv_poll_t poll;
    int fd;
    int events; /* that are waited for; asking again costs system calls */
    enum http_state state;
    bool local; /* a Unix socket */
    bool keep_alive;
    struct oauth_principal principal; /* whom the token of the request speaks for */
    const char *origin; /* of the policy: the page that asks may read the answer; or NULL */
    bool chunked;       /* how the stream that is open is framed */
    bool eof;           /* the client sends no more */
    bool processing;    /* inside the loop over requests */
    bool broken;        /* closed; the memory goes with the handle */
    bool dead; /* to be closed at the next turn, since somebody may be in the middle of it */
    struct http_message *message;
    struct buf in, out;
    size_t counted; /* of http->bodies */
    uint64_t deadline_ms;
    struct http_call *call;                   /* the POST that is being answered */
    struct http_session *listens;             /* whose stream this is */
    struct http_operator_call *operator_call; /* that is being answered */
};

void http_conn_new(struct http_server *h, int fd, bool local);
/* Close it now. Whoever uses it is told. */
void http_conn_close(struct http_conn *c);
/* Go on with what the client has sent meanwhile; after a call has let it go. Nothing of it is
 * served before this returns. */
void http_conn_next(struct http_conn *c);
void http_conn_resume(struct http_conn *c);
/* Its deadline has passed. */
void http_conn_overdue(struct http_conn *c);

/* Write both parts, with one call where nothing waits before them. */
void http_conn_send(struct http_conn *c, const struct buf *head, const void *body, size_t n);
/* Something was written, or the state is another: wait for what is due now. */
void http_conn_touch(struct http_conn *c);
/* All of an answer was written: the next request, or the end. */
void http_conn_answered(struct http_conn *c);

/* ---- http_answer ---- */

/* One whole answer; `more` are header lines or "". `body` is emptied. */
void http_conn_answer(struct http_conn *c, int status, const char *more, struct buf *body);
/* The same with a short text of ours, given its type. */
void http_conn_say(struct http_conn *c, int status, const char *more, const char *type,
                   const char *text);
/* The head of an event stream, then its bytes, then its end. */
void http_conn_stream(struct http_conn *c, const char *more);
void http_conn_put(struct http_conn *c, const void *bytes, size_t n);
void http_conn_stream_end(struct http_conn *c);

/* ---- http_route: one whole request ---- */

/* Before the body: 0 to go on, -1 when it has been answered and the connection ends. */
int http_route_head(struct http_conn *c, const struct http1_head *head);
void http_route(struct http_conn *c, const struct http1_head *head, const char *body, size_t n);

/* ---- http_call: a POST that is being answered ---- */

struct http_call {
    struct peer peer;
    struct list node;
    struct http_conn *conn;       /* NULL: the client is not there */
    struct http_session *session; /* legacy; NULL: `own` is used */
    struct http_server *http;
    struct session own;
    bool may_stream; /* the client takes event streams */
    bool streaming;
    bool answered;
    bool handling;   /* the message is being handed in */
    bool announces;  /* the answer carries the id of its session */
    size_t held;     /* of http->bodies */
    int status;      /* 0: 200 */
    uint32_t stream; /* its number in the session, 0: none */
    uint64_t seq;
};

/* Serve a message (legacy when `s` is not NULL; an array is a batch). Consumes nothing. */
void http_call_start(struct http_conn *c, struct http_session *s, struct json_object *message,
                     bool may_stream, bool announces);
/* It is still worked on: its message, of that size, stays in memory. */
void http_call_hold(struct http_call *x, size_t bytes);
/* Its connection has closed. */
void http_call_lost(struct http_call *x);
/* End it and what it waits for. */
void http_call_drop(struct http_call *x);
/* End what waits for processes or for changes. */
void http_call_hang_up(struct http_call *x);
/* Continue a call on another connection. */
void http_call_attach(struct http_call *x, struct http_conn *c);
struct session *http_call_session(struct http_call *x);

/* ---- http_session ---- */

/* NULL when there are HTTP_SESSIONS_MAX, each with something open or in flight. */
struct http_session *http_session_new(struct http_server *h, const struct oauth_principal *whose);
/* NULL when there is none of that id, or it is another's: nobody learns that it exists. */
struct http_session *http_session_get(struct http_server *h, const char *id, size_t n,
                                      const struct oauth_principal *who);
void http_session_free(struct http_session *s);
/* Is anything open or in flight? */
bool http_session_busy(const struct http_session *s);
/* A GET: the stream of the session, or one that was broken off (`last_id` not NULL). False: there
 * is no such stream. */
bool http_session_listen(struct http_session *s, struct http_conn *c, const char *last_id,
                         size_t n);
/* The connection of its stream has closed. */
void http_session_lost(struct http_session *s);
/* Write one event to `c` (may be NULL) and keep it for a client that comes back. */
void http_session_event(struct http_session *s, struct http_conn *c, uint32_t stream, uint64_t seq,
                        const struct buf *message);

#endif
