/* mcp/peer: whoever is at the other end of a session, as the session sees it.
 *
 * Theory. Sessions, methods and tools know nothing of pipes or HTTP: a transport hands whole
 * messages in (mcp/session) and takes whole messages out through this table. Must not: be called
 * from any thread but the loop's.
 */
#ifndef CODESPACE_MCP_PEER_H
#define CODESPACE_MCP_PEER_H

#include "base/buf.h"

struct peer;

struct peer_ops {
    /* Take one whole JSON-RPC message, without a line end. Leaves `message` empty; its storage may
     * be taken too, so that a large answer is not copied. */
    void (*send)(struct peer *p, struct buf *message);
    /* A call in flight has ended: there may be room for more, or nothing left to wait for. */
    void (*ended)(struct peer *p);
};

struct peer {
    const struct peer_ops *ops;
};

#endif
