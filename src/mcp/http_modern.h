/* mcp/http_modern: what the headers of a request of revision 2026-07-28 must say: what its body
 * says.
 *
 * Theory. Proxies and gateways route by Mcp-Method and Mcp-Name without reading bodies, so a server
 * must not serve a request whose headers say something else. Pure.
 *
 * Must not: repair an encoded value that is not strict base64.
 */
#ifndef CODESPACE_MCP_HTTP_MODERN_H
#define CODESPACE_MCP_HTTP_MODERN_H

#include "wire/http1.h"
#include "wire/rpc.h"

/* Is this request of the modern era, by its header or by its body (may be NULL)? */
bool http_modern_is(const struct http1_head *h, struct json_object *message);

/* Errors: HEADER_MISMATCH, VERSION_UNSUPPORTED with `data`. */
int http_modern_check(const struct http1_head *h, const struct rpc_message *m, struct buf *data,
                      struct err *e);

/* The header must be there once and say `want`, in base64 or not when `encoded`. Errors:
 * HEADER_MISMATCH. */
int http_modern_says(const struct http1_head *h, const char *name, const char *want, bool encoded,
                     struct err *e);

/* Decode "=?base64?...?=", or copy what is not encoded. NULL when it is malformed; caller frees. */
char *http_modern_decode(const char *text, size_t n);

#endif
