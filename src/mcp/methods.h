/* mcp/methods: the methods of the protocol, as a table.
 *
 * Must not: hold anything between two messages other than what the session has.
 */
#ifndef CODESPACE_MCP_METHODS_H
#define CODESPACE_MCP_METHODS_H

#include "mcp/session.h"

/* The one revision in which a client may send arrays of messages. */
#define METHODS_BATCH_VERSION "2025-03-26"

struct provider;

/* Eras that know a method. */
#define METHOD_LEGACY 1u
#define METHOD_MODERN 2u
#define METHOD_BOTH 3u

struct method {
    const char *name;
    enum rpc_kind kind; /* RPC_REQUEST or RPC_NOTIFICATION */
    unsigned eras;
    unsigned provides;  /* exists only with that part of the provider; 0: always */
    bool needs_session; /* in the legacy era only after initialize */
    void (*run)(const struct inbound *in);
    bool one_page; /* a list that is given whole, so no cursor was ever given */
};

/* The method of a message, or NULL when there is none for this provider and the message's era. */
const struct method *method_find(const struct provider *p, const struct inbound *in);

/* Revisions of the legacy era that initialize agrees to, newest first, NULL-terminated. */
extern const char *const method_versions[];

/* Is it one of them? */
bool method_version_served(const char *version);

#endif
