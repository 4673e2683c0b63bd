/* mcp/http_cors: what browsers are told about pages of other origins (the Fetch standard's CORS).
 *
 * Theory. A page of an origin that the operator named with --allow-origin may use this server as
 * any client may: its preflight is answered, and each answer says that the page may read it. Pages
 * of other origins are told nothing, loopback ones included: any program on this machine can serve
 * one, so being able to ask is not being allowed to read. A preflight carries no token, so it is
 * answered before tokens are looked at; it says nothing that is not in the manual.
 *
 * Must not: allow cookies, or echo an origin that was not named.
 */
#ifndef CODESPACE_MCP_HTTP_CORS_H
#define CODESPACE_MCP_HTTP_CORS_H

#include "base/buf.h"
#include "mcp/http_check.h"
#include "wire/http1.h"

/* The named origin that asks, as it stands in the policy; NULL: none, or one that was not named. */
const char *http_cors_origin(const struct http_policy *p, const struct http1_head *h);

/* Is it the question of a browser whether it may ask? */
bool http_cors_is_preflight(const struct http1_head *h);

/* Header lines of an answer to that origin (NULL: nothing), and what a preflight's answer adds. */
void http_cors_write(const char *origin, struct buf *out);
void http_cors_write_preflight(struct buf *out);

#endif
