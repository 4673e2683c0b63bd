/* mcp/methods: the methods of the protocol, as a table.
 *
 * Must not: hold anything between two messages other than what the session has.
 */
#ifndef CODESPACE_MCP_METHODS_H
#define CODESPACE_MCP_METHODS_H

#include "mcp/session.h"

/* The one revision in which a client may send arrays of messages. */
#define METHODS_BATCH_VERSION "2025-03-26"

struct method {
    const char *name;
    enum rpc_kind kind; /* RPC_REQUEST or RPC_NOTIFICATION */
    bool needs_session; /* only after initialize */
    /* `message` is the whole parsed message that m borrows from. */
    void (*run)(struct session *s, const struct rpc_message *m, struct json_object *message);
};

const struct method *method_by_name(const char *name, enum rpc_kind kind);

/* Revisions of the protocol that initialize agrees to, newest first, NULL-terminated. */
extern const char *const method_versions[];

#endif
