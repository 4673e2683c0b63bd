/* mcp/http_check: who may ask over HTTP.
 *
 * Theory. A page in a browser can make requests to a loopback address, and with a name that it
 * points there (DNS rebinding) it may read the answers. It cannot choose Host and Origin, so both
 * must name us. A token is compared without telling by the time it takes where the first wrong
 * byte is. Pure.
 *
 * Must not: take a missing Origin for a wrong one (clients that are no browsers send none), or put
 * a token into a message.
 */
#ifndef CODESPACE_MCP_HTTP_CHECK_H
#define CODESPACE_MCP_HTTP_CHECK_H

#include "base/err.h"
#include "base/str.h"
#include "core/oauth.h"

#include <stdbool.h>
#include <stddef.h>

/* Longest token; larger ones do not fit the other headers beside them. */
#define HTTP_TOKEN_MAX 4096u
/* Short ones can be tried out. */
#define HTTP_TOKEN_MIN 16u

struct http_policy {
    char *token;          /* NULL: there is none */
    char *operator_token; /* NULL: nobody is the operator here */
    struct oauth
        *oauth; /* NULL: tokens of an issuer are not taken; with neither, none is asked for */
    struct strv hosts;   /* "name" (any port) or "name:port", canonical */
    struct strv origins; /* exact */
};

void http_policy_fini(struct http_policy *p);

/* `token` may be NULL. Errors: INVALID_ARGUMENT. */
int http_policy_set_token(struct http_policy *p, const char *token, struct err *e);

/* After http_policy_set_token(). Another one than that: INVALID_ARGUMENT. */
int http_policy_set_operator_token(struct http_policy *p, const char *token, struct err *e);

/* `host`: a name, an address, either with a port. Errors: INVALID_ARGUMENT. */
int http_policy_add_host(struct http_policy *p, const char *host, struct err *e);

/* `origin`: scheme://host[:port], or "null". Errors: INVALID_ARGUMENT. */
int http_policy_add_origin(struct http_policy *p, const char *origin, struct err *e);

/* The value of a Host header. Loopback names are always fine, with any port. */
bool http_policy_host(const struct http_policy *p, const char *value, size_t n);

/* The value of an Origin header: http or https of a host that is fine, or one that was added. */
bool http_policy_origin(const struct http_policy *p, const char *value, size_t n);

/* The value of an Authorization header. */
bool http_policy_bearer(const struct http_policy *p, const char *value, size_t n);
/* The same of the operator; there must be one. */
bool http_policy_operator(const struct http_policy *p, const char *value, size_t n);

#endif
