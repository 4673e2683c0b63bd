/* core/oauth: this server as an OAuth 2.1 resource server (RFC 9728, RFC 6750, MCP authorization).
 *
 * Theory. Somebody else, the issuer, decides who gets a token; here it is only checked: signed by a
 * key of the issuer's file, from that issuer, for this resource (its canonical URI is the
 * audience), not expired, with the scopes that are demanded. A client that has none is told by
 * WWW-Authenticate where the metadata is, and by the metadata who the issuer is.
 *
 * The key file is read at the start, and again when it has changed, which is looked at once a
 * second, and at once when a token names a key that is not known: that is how issuers change keys
 * and take one back. What was verified is remembered by its digest until it expires or the keys
 * change, since a client sends the same token with every request.
 *
 * Must not: fetch anything, keep or log a token, or accept one that is for another resource.
 */
#ifndef CODESPACE_CORE_OAUTH_H
#define CODESPACE_CORE_OAUTH_H

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

#define OAUTH_WELL_KNOWN "/.well-known/oauth-protected-resource"
/* Longest URI of the issuer and of the resource. */
#define OAUTH_URI_MAX 1024u
/* Scopes that may be demanded, as text. */
#define OAUTH_SCOPES_MAX 1024u

struct oauth_options {
    const char *issuer;    /* https://...; http only on loopback */
    const char *resource;  /* canonical URI of the endpoint: https://host/mcp */
    const char *keys_file; /* a JSON Web Key Set */
    const char *scopes;    /* demanded, with blanks between them; NULL or "": none */
};

enum oauth_verdict {
    OAUTH_FINE,
    OAUTH_NONE,      /* 401: no token */
    OAUTH_MALFORMED, /* 400: not one Bearer token */
    OAUTH_INVALID,   /* 401 */
    OAUTH_SCOPE,     /* 403: it lacks a scope */
};

struct oauth;

/* Copies all. NULL and CONFIG_INVALID or INVALID_ARGUMENT when it cannot be served so. */
struct oauth *oauth_new(const struct oauth_options *options, struct err *e);
void oauth_free(struct oauth *o); /* NULL is fine */

/* Whom a token speaks for: a digest of its issuer and its `sub`, of `client_id` (or `azp`) where it
 * has no subject, of the token itself where it has neither. All zero: nobody in particular, as
 * where no token of an issuer was given. */
struct oauth_principal {
    unsigned char digest[32];
};
bool oauth_principal_same(const struct oauth_principal *a, const struct oauth_principal *b);
bool oauth_principal_known(const struct oauth_principal *p);

/* Judge the value of an Authorization header. `ret` (may be NULL) is set when it is fine, `why` is
 * filled when it is not. */
enum oauth_verdict oauth_check(struct oauth *o, const char *value, size_t n, int64_t now_s,
                               struct oauth_principal *ret, struct err *why);

/* The status of a verdict, and the header line WWW-Authenticate for it, with its end. */
int oauth_status(enum oauth_verdict verdict);
void oauth_challenge(const struct oauth *o, enum oauth_verdict verdict, struct buf *out);

/* Is that the path of the metadata (a target, perhaps with a query)? And its JSON. */
bool oauth_is_metadata(const struct oauth *o, const char *target, size_t n);
void oauth_write_metadata(const struct oauth *o, struct buf *out);

/* "host" or "host:port" of the resource. */
const char *oauth_authority(const struct oauth *o);

#endif
