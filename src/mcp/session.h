/* mcp/session: one client's conversation.
 *
 * Theory. A transport hands in whole messages, one JSON text each; the session checks the envelope,
 * finds the method (mcp/methods), keeps the calls in flight, and answers through the peer. What a
 * message is served as is decided for each message, never pinned by the first one. A session owns
 * no process: those belong to the runner (R6).
 *
 * Must not: leave a request without an answer, answer a notification, or answer a cancelled call.
 */
#ifndef CODESPACE_MCP_SESSION_H
#define CODESPACE_MCP_SESSION_H

#include "base/list.h"
#include "mcp/peer.h"
#include "mcp/request.h"
#include "wire/rpc.h"

/* Calls in flight of one session. Each may hold a page of output; a client that has more
 * outstanding than processes may be alive has lost count. */
#define SESSION_CALLS_MAX 1024u

struct session {
    struct server *server;
    struct peer *peer;
    const char *version; /* the negotiated revision; NULL before initialize. Static. */
    struct list calls;
    unsigned n_calls;
    size_t coming; /* bytes of answers that are being worked on, about; a transport that takes in no
                      more while too many come bounds the memory of a client that does not read */
};

/* Both are borrowed. */
void session_init(struct session *s, struct server *server, struct peer *peer);

/* Cancels every call in flight; nothing more is sent. */
void session_fini(struct session *s);

/* One message. Every answer that is due at once is sent before this returns. */
void session_message(struct session *s, const char *text, size_t n);

/* Cancel the calls that wait for something only the client or time can bring (processes). What is
 * being worked on goes on. */
void session_hang_up(struct session *s);

/* Send an error; `id` may be empty (null is sent) when the message's own is not known. */
void session_error(struct session *s, const struct rpc_id *id, const struct err *e);

/* Send a result: `json` is one JSON value. */
void session_reply(struct session *s, const struct rpc_id *id, const struct buf *json);

/* The call in flight of that id, or NULL. */
struct request *session_find(struct session *s, const struct rpc_id *id);

void session_link(struct session *s, struct request *rq);
void session_unlink(struct session *s, struct request *rq);

#endif
