/* mcp/http_param: arguments of a tool that a request of revision 2026-07-28 repeats in headers.
 *
 * Theory. A property of a tool's input schema with "x-mcp-header": "Region" asks clients to send
 * its value as Mcp-Param-Region too, so that a gateway can route by it. Then, as for Mcp-Name, both
 * must say the same, or neither anything. Only tools with a schema of their own text can ask for
 * it; the product's do not. Pure.
 *
 * Must not: look into what is not reachable by `properties` alone, or be a cost to other tools.
 */
#ifndef CODESPACE_MCP_HTTP_PARAM_H
#define CODESPACE_MCP_HTTP_PARAM_H

#include "mcp/tool.h"
#include "wire/http1.h"

/* `tool` and `arguments` may be NULL. Errors: HEADER_MISMATCH. */
int http_param_check(const struct http1_head *h, const struct tool *tool,
                     struct json_object *arguments, struct err *e);

#endif
