/* mcp/http_cors: see http_cors.h. */
#include "mcp/http_cors.h"

#include "base/mem.h"

#include <string.h>

/* What the two eras' clients send, and what they read. Seconds that a browser may remember it. */
#define ASKS                                                                                       \
    "Authorization, Content-Type, Last-Event-ID, MCP-Protocol-Version, Mcp-Method, "               \
    "Mcp-Name, Mcp-Session-Id"
#define READS "Mcp-Session-Id, WWW-Authenticate"
#define REMEMBER_S "600"

const char *http_cors_origin(const struct http_policy *p, const struct http1_head *h)
{
    const struct http1_header *origin = http1_find(h, "origin", NULL);
    for (size_t i = 0; origin != NULL && i < p->origins.len; i++) {
        if (http1_is(h, origin->value, p->origins.items[i]))
            return p->origins.items[i];
    }
    return NULL;
}

bool http_cors_is_preflight(const struct http1_head *h)
{
    return http1_is(h, h->method, "OPTIONS") &&
           http1_find(h, "access-control-request-method", NULL) != NULL;
}

void http_cors_write(const char *origin, struct buf *out)
{
    if (origin != NULL)
        buf_printf(out,
                   "Access-Control-Allow-Origin: %s\r\nVary: Origin\r\n"
                   "Access-Control-Expose-Headers: " READS "\r\n",
                   origin);
}

void http_cors_write_preflight(struct buf *out)
{
    buf_puts(out, "Access-Control-Allow-Methods: POST, GET, DELETE\r\n"
                  "Access-Control-Allow-Headers: " ASKS "\r\n"
                  "Access-Control-Max-Age: " REMEMBER_S "\r\n");
}
