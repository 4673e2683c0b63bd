/* mcp/provider: what is served, as one row of tables.
 *
 * Theory. The core knows the protocol; which tools, prompts and resources there are is a table that
 * is handed to it. The product has one, and the programs that test the core bring their own. What a
 * provider leaves NULL is not declared as a capability, and its methods do not exist.
 *
 * Must not: be changed while a server uses it.
 */
#ifndef CODESPACE_MCP_PROVIDER_H
#define CODESPACE_MCP_PROVIDER_H

#include "mcp/prompts.h"
#include "mcp/resources.h"
#include "mcp/tool.h"

/* Parts that are served or not. */
#define PROVIDES_TOOLS 1u
#define PROVIDES_PROMPTS 2u
#define PROVIDES_RESOURCES 4u
#define PROVIDES_COMPLETION 8u
#define PROVIDES_LOGGING 16u
/* The lists may change while the server runs (mcp/listen tells who listens). */
#define PROVIDES_CHANGES 32u
/* Calls of tools that say TOOL_TASKS may be tasks. */
#define PROVIDES_TASKS 64u

struct provider {
    unsigned provides;
    const struct tool *const *tools;         /* NULL-terminated */
    const struct prompt *const *prompts;     /* NULL-terminated, or NULL */
    const struct resource *const *resources; /* NULL-terminated, or NULL */
    /* Answers completion/complete, once what it is about is known to exist; not in any list of
     * tools. NULL: nothing is proposed. */
    const struct tool *completer;
};

/* What codespace-mcp serves. */
extern const struct provider provider_product;

/* Append the object `capabilities`, as `version` knows them; NULL: as the modern era does. */
void provider_write_capabilities(const struct provider *p, const char *version, struct jsonw *w);

#endif
