/* mcp/product: what codespace-mcp serves besides tools: resources, prompts, and what completion
 * proposes. provider_product puts them together.
 */
#ifndef CODESPACE_MCP_PRODUCT_H
#define CODESPACE_MCP_PRODUCT_H

#include "mcp/prompts.h"
#include "mcp/resources.h"
#include "mcp/tool.h"

#define PRODUCT_FILE_URI "codespace://workspaces/{workspace_id}/files/{+path}"

extern const struct resource *const product_resources[]; /* NULL-terminated */
extern const struct prompt *const product_prompts[];     /* NULL-terminated */

/* completion/complete: ids of workspaces and paths in them, for every prompt and template that has
 * such an argument. */
extern const struct tool product_completer;

#endif
