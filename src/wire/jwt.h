/* wire/jwt: a signed JSON Web Token (RFC 7515 and 7519, compact form) as a struct.
 *
 * Theory. Three base64url texts with dots between them: header, claims, signature. The algorithm is
 * one of the list below or the token is refused here, so nothing later can be talked into "none" or
 * into taking a public key for a shared secret. What the claims must say is checked against an
 * audience, an issuer and a clock that the caller gives. Pure: the signature is for the caller.
 *
 * Must not: believe a claim before the signature was verified, follow a key or an address that the
 * header names, or put any of the token into a message.
 */
#ifndef CODESPACE_WIRE_JWT_H
#define CODESPACE_WIRE_JWT_H

#include "base/buf.h"
#include "base/err.h"

#include <json-c/json_object.h>
#include <stdbool.h>
#include <stdint.h>

/* Longest token; real ones have one to three thousand characters. */
#define JWT_MAX 16384u
/* Clocks of two machines may be that far apart. */
#define JWT_LEEWAY_S 60

enum jwt_alg { JWT_RS256, JWT_ES256, JWT_EDDSA };

struct jwt {
    enum jwt_alg alg;
    const char *kid;            /* of `header`; NULL: names none */
    struct json_object *header; /* owned */
    struct json_object *claims; /* owned */
    size_t signed_len;          /* the first bytes of the text are what is signed */
    struct buf signature;       /* raw */
};

struct jwt_demands {
    const char *issuer, *audience; /* exact */
    int64_t now_s;                 /* since 1970 */
};

/* The algorithm of that name ("RS256"), or -1. */
int jwt_alg_of(const char *name);

/* Errors: UNAUTHORIZED, with the reason; `ret` is then empty. */
int jwt_read(const char *text, size_t n, struct jwt *ret, struct err *e);
void jwt_fini(struct jwt *t);

/* Issuer, audience, and time with JWT_LEEWAY_S. *ret_until: when it ends. Errors: UNAUTHORIZED. */
int jwt_check(const struct jwt *t, const struct jwt_demands *d, int64_t *ret_until, struct err *e);

/* Is that scope among those of the token (`scope`, or `scp` as some issuers call it)? */
bool jwt_has_scope(const struct jwt *t, const char *scope, size_t n);

/* Append what base64url text (without padding) stands for. 0, or -EINVAL with `out` as it was. */
int jwt_base64url(const char *text, size_t n, struct buf *out);

#endif
