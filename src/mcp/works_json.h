/* mcp/works_json: works and instructions as JSON, the same for tools and for the inbox. */
#ifndef CODESPACE_MCP_WORKS_JSON_H
#define CODESPACE_MCP_WORKS_JSON_H

#include "base/jsonw.h"
#include "core/intents.h"
#include "core/works.h"

/* The members of an object that the caller opened. */
void work_write_members(struct jsonw *w, const struct work *work);
void intent_write_members(struct jsonw *w, const struct intent *i);

#endif
