/* mcp/meta: what a request of the modern era (2026-07-28) carries in _meta, and what its result
 * must carry.
 *
 * Theory. The modern era has no session: every request says its revision and the client's
 * capabilities itself. A request is of that era if and only if _meta names a revision (or the
 * transport's header did), whatever came before it on the same stream: nothing pins the era.
 *
 * Must not: keep anything between two requests.
 */
#ifndef CODESPACE_MCP_META_H
#define CODESPACE_MCP_META_H

#include "base/buf.h"
#include "base/jsonw.h"
#include "wire/rpc.h"

#define META_PREFIX "io.modelcontextprotocol/"
#define META_VERSION META_PREFIX "protocolVersion"
#define META_CAPABILITIES META_PREFIX "clientCapabilities"
#define META_LOG_LEVEL META_PREFIX "logLevel"
#define META_SERVER_INFO META_PREFIX "serverInfo"
#define META_SUBSCRIPTION META_PREFIX "subscriptionId"

/* How long a list may be kept. They change only when the program is started anew, but another
 * revision of it may listen at the same address soon. */
#define META_TTL_MS 60000

/* Revisions of the modern era that are served, NULL-terminated. */
extern const char *const meta_versions[];

/* A member of params._meta, or NULL. */
struct json_object *meta_get(struct json_object *params, const char *name);

/* The revision that params._meta names, or NULL. */
const char *meta_version(struct json_object *params);

/* True for a revision that is served statelessly. */
bool meta_version_served(const char *version);

/* What every modern request must satisfy. Errors: VERSION_UNSUPPORTED with `data` filled,
 * INVALID_PARAMS. */
int meta_check(struct json_object *params, struct buf *data, struct err *e);

/* The `data` of VERSION_UNSUPPORTED. */
void meta_write_unsupported(struct buf *data, const char *requested);

/* Append the members of every modern result, after at least one other when `comma`:
 * resultType (of that name), _meta with serverInfo, and unless ttl_ms is below 0 ttlMs and
 * cacheScope. */
void meta_write_tail(struct buf *out, bool comma, const char *result_type, int ttl_ms);

/* {name, title, version} of this server. */
void meta_write_server_info(struct jsonw *w);

#endif
