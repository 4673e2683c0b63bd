/* mcp/resources: resources/list, resources/templates/list, resources/read, and the subscriptions of
 * legacy sessions, from a table.
 *
 * A template's URI has parts in braces, as RFC 6570 has them: {x} stands for one or more bytes
 * other than '/', {+x} for one or more bytes of any kind. What they stood for is percent-decoded
 * before a resource sees it.
 *
 * A resource is there at once (`read`), or it is fetched: `fetch` may wait for the runner (keep the
 * ticket in the call) or for a thread, and ends the call with one of the functions below.
 *
 * Must not: answer an unknown URI with empty contents.
 */
#ifndef CODESPACE_MCP_RESOURCES_H
#define CODESPACE_MCP_RESOURCES_H

#include "base/str.h"
#include "mcp/request.h"

struct provider;

/* Resources that one legacy session may subscribe to. */
#define RESOURCES_SUBSCRIBED_MAX 256u

/* Parts of one template. */
#define RESOURCES_PARTS_MAX 4u

struct resource;

/* One resources/read on its way. */
struct resource_read {
    struct request *rq;
    const struct resource *resource;
    const char *uri;
    struct strv parts;
    run_ticket ticket; /* what it waits for at the runner */
    void *own;         /* of the resource, freed with own_free */
    void (*own_free)(void *own);
};

/* What changes whenever the content does; `exists` is false for what cannot be read now. */
struct resource_stamp {
    bool exists;
    uint64_t value;
};
/* Who wants to know; stays where it is until it is told or gives the ticket up. */
struct resource_stamper {
    void (*done)(struct resource_stamper *to, struct resource_stamp stamp);
};

struct resource {
    const char *uri; /* or a template */
    const char *name;
    const char *title;
    const char *description;
    const char *mime;
    /* Writes the one member of `contents` after its uri and mimeType (text or blob). */
    void (*read)(const char *uri, struct jsonw *w);
    void (*fetch)(struct resource_read *x); /* instead of `read` */
    /* For subscriptions: tells `to`, at once or later. The ticket to give it up by; 0 when it has
     * told. NULL: the content never changes. */
    run_ticket (*stamp)(struct server *s, char *const *parts, struct resource_stamper *to);
    bool lasting; /* the same as long as the server runs: a client may keep it for META_TTL_MS */
};

void resources_list_run(const struct inbound *in);
void resources_templates_run(const struct inbound *in);
void resources_read_run(const struct inbound *in);
void resources_subscribe_run(const struct inbound *in);
void resources_unsubscribe_run(const struct inbound *in);

/* Does `uri` fit the template (or is it the same URI)? */
bool resources_match(const char *uri_template, const char *uri);

/* The same, and what the parts stood for. False also when a part is badly encoded or holds %00. */
bool resources_parts(const char *uri_template, const char *uri, struct strv *ret);

/* The resource of that URI with its parts, or NULL. */
const struct resource *resources_find(const struct provider *p, const char *uri, struct strv *ret);

/* End a fetch: with bytes, shown as text when they are UTF-8 and as base64 else; or with an error,
 * which names the URI. Both free the call. `mime` NULL: the resource's. */
void resources_answer(struct resource_read *x, const char *mime, const void *bytes, size_t n);
void resources_refuse(struct resource_read *x, const struct err *e);

#endif
