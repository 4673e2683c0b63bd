/* mcp/session: one client's conversation.
 *
 * Theory. A transport hands in whole messages, one JSON text each; the session checks the envelope,
 * finds the method (mcp/methods), keeps the calls in flight, and answers through the peer that the
 * message came with. What a message is served as is decided for each message, never pinned by the
 * first one (mcp/meta). A session owns no process: those belong to the runner (R6). A modern
 * request over HTTP brings a session of its own, which knows nothing of any other.
 *
 * Must not: leave a request without an answer, answer a notification, or answer a cancelled call.
 */
#ifndef CODESPACE_MCP_SESSION_H
#define CODESPACE_MCP_SESSION_H

#include "base/list.h"
#include "base/str.h"
#include "core/oauth.h"
#include "mcp/notice.h"
#include "mcp/peer.h"
#include "mcp/request.h"
#include "wire/rpc.h"

/* Calls in flight of one session. Each may hold a page of output; a client that has more
 * outstanding than processes may be alive has lost count. */
#define SESSION_CALLS_MAX 1024u

struct approval_run;

struct session {
    struct list node; /* in server->sessions */
    struct server *server;
    uint64_t serial;                  /* no other session of the server ever has it */
    struct oauth_principal principal; /* who it is; all zero where nobody is told from others */
    struct peer *peer;   /* what belongs to no call goes there; on stdio everything does */
    const char *version; /* the negotiated revision; NULL before initialize. Static. */
    struct json_object *capabilities; /* of the client, as initialize said; owned */
    enum notice_level log_level;      /* logging/setLevel */
    struct strv subscribed;           /* resources/subscribe */
    struct list asks;                 /* our questions to the client (mcp/ask) */
    unsigned n_asks;
    uint64_t ask_seq;
    struct list calls;
    unsigned n_calls;
    bool remote;  /* over HTTP: other programs may reach us the same way */
    bool patient; /* its calls are tasks (mcp/task): a command is waited for to its end */
    struct approval_run *approved; /* whose call it makes (mcp/approval_run); NULL: a client's */
    size_t coming; /* bytes of answers that are being worked on, about; a transport that takes in no
                      more while too many come bounds the memory of a client that does not read */
};

/* One message on its way in. */
struct inbound {
    struct session *session;
    struct peer *peer; /* answers go there */
    struct json_object *message;
    struct rpc_message m; /* borrows from message */
    bool modern;          /* served statelessly */
};

/* Both are borrowed. */
void session_init(struct session *s, struct server *server, struct peer *peer);

/* Cancels every call in flight; nothing more is sent. */
void session_fini(struct session *s);

/* One message. Every answer that is due at once is sent before this returns. */
void session_message(struct session *s, const char *text, size_t n);

/* One parsed message whose answers go to `peer`. `modern`: the transport says that it is of the
 * modern era, whatever it carries. Parsing a batch is for whoever calls. */
void session_take(struct session *s, struct peer *peer, struct json_object *message, bool modern);

/* May the client send arrays of messages? */
bool session_takes_batches(const struct session *s);

/* Give up the calls that wait for something only the client or time can bring (processes, an end of
 * a subscription, an answer to a question), and say so. What is being worked on goes on. */
void session_hang_up(struct session *s);

/* Is any call in flight whose answer goes to that peer? */
bool session_has(struct session *s, const struct peer *peer);

/* Cancel all calls whose answers go to that peer. */
void session_drop(struct session *s, struct peer *peer);

/* Send an error; `id` may be empty (null is sent) when the message's own is not known. */
void session_error(struct session *s, const struct rpc_id *id, const struct err *e);

/* The same as the answer to one message. `data` is JSON text or NULL. */
void inbound_error(const struct inbound *in, const struct err *e, const struct buf *data);

/* Send a result: `json` is one JSON value, whole. */
void inbound_reply(const struct inbound *in, const struct buf *json);

/* The call in flight of that id, or NULL. */
struct request *session_find(struct session *s, const struct rpc_id *id);

void session_link(struct session *s, struct request *rq);
void session_unlink(struct session *s, struct request *rq);

#endif
