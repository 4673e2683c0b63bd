/* mcp/peer: whoever takes what a session says, as the session sees it.
 *
 * Theory. Sessions, methods and tools know nothing of pipes or HTTP: a transport hands whole
 * messages in (mcp/session) and takes whole messages out through this table. On stdio there is one
 * peer for everything; over HTTP every POST is a peer of its own, so that an answer and what
 * belongs to it go back where the question came from. Must not: be called from any thread but the
 * loop's.
 */
#ifndef CODESPACE_MCP_PEER_H
#define CODESPACE_MCP_PEER_H

#include "base/buf.h"

#include <stdbool.h>

struct peer;

struct peer_ops {
    /* Take one whole JSON-RPC answer, without a line end. Leaves `message` empty; its storage may
     * be taken too, so that a large answer is not copied. */
    void (*send)(struct peer *p, struct buf *message);
    /* A call in flight has ended: there may be room for more, or nothing left to wait for. The peer
     * may be gone when this returns. */
    void (*ended)(struct peer *p);
    /* Take a notification or a question of ours to the client. False: it cannot be passed on, and
     * was dropped. May be NULL: none can. */
    bool (*notify)(struct peer *p, struct buf *message);
    /* The HTTP status that goes with the answer which follows; NULL where there is none. */
    void (*status)(struct peer *p, int http_status);
    /* Let the client come back for the rest after so long; NULL where that is not possible. */
    void (*part)(struct peer *p, unsigned retry_ms);
};

struct peer {
    const struct peer_ops *ops;
};

/* The optional ones. */
static inline bool peer_notify(struct peer *p, struct buf *message)
{
    return p->ops->notify != NULL && p->ops->notify(p, message);
}

static inline void peer_status(struct peer *p, int http_status)
{
    if (p->ops->status != NULL)
        p->ops->status(p, http_status);
}

#endif
