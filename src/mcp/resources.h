/* mcp/resources: resources/list, resources/templates/list, resources/read, and the subscriptions of
 * legacy sessions, from a table.
 *
 * A template's URI has parts in braces, each of which stands for one or more bytes other than '/'.
 *
 * Must not: answer an unknown URI with empty contents.
 */
#ifndef CODESPACE_MCP_RESOURCES_H
#define CODESPACE_MCP_RESOURCES_H

#include "mcp/request.h"

/* Resources that one legacy session may subscribe to. */
#define RESOURCES_SUBSCRIBED_MAX 256u

struct resource {
    const char *uri; /* or a template */
    const char *name;
    const char *title;
    const char *description;
    const char *mime;
    /* Writes the one member of `contents` after its uri and mimeType (text or blob). */
    void (*read)(const char *uri, struct jsonw *w);
};

void resources_list_run(const struct inbound *in);
void resources_templates_run(const struct inbound *in);
void resources_read_run(const struct inbound *in);
void resources_subscribe_run(const struct inbound *in);
void resources_unsubscribe_run(const struct inbound *in);

/* Does `uri` fit the template (or is it the same URI)? */
bool resources_match(const char *uri_template, const char *uri);

#endif
