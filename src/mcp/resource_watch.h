/* mcp/resource_watch: telling subscribers that a resource has changed.
 *
 * Theory. What somebody subscribed to is asked once a second for a stamp (of a file its inode, size
 * and times; of a process its output and state), and a new stamp is told. Asking is the same for
 * every kind of resource, for every runner and for files that are replaced by a rename, which a
 * notification of the kernel about an inode is not. While nobody subscribes there is no timer. All
 * of a server's sessions share one stamp for a URI.
 *
 * Must not: hold more than RESOURCE_WATCH_MAX URIs, or read content.
 */
#ifndef CODESPACE_MCP_RESOURCE_WATCH_H
#define CODESPACE_MCP_RESOURCE_WATCH_H

#include "mcp/server.h"

#define RESOURCE_WATCH_MS 1000u
/* Different URIs over all sessions: so many stamps are taken a second. */
#define RESOURCE_WATCH_MAX 1024u

struct resource_watch;

/* Somebody subscribes to a URI of the provider's. Errors: LIMIT_EXCEEDED. What never changes is not
 * watched and is fine. */
int resource_watch_add(struct server *s, const char *uri, struct err *e);

/* Subscriptions ended: forget what nobody wants any more. */
void resource_watch_check(struct server *s);

#endif
