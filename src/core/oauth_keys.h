/* core/oauth_keys: the public keys of an issuer, from a JSON Web Key Set (RFC 7517) in a file.
 *
 * Theory. A key takes part with one algorithm only, which follows from its type: RSA with RS256,
 * P-256 with ES256, Ed25519 with EdDSA. So a token cannot choose what a key is used as. Keys of
 * other types, and those for encryption, are passed over: issuers publish them side by side.
 * nettle verifies.
 *
 * Must not: fetch anything, or accept a shared secret ("oct") or a short RSA key.
 */
#ifndef CODESPACE_CORE_OAUTH_KEYS_H
#define CODESPACE_CORE_OAUTH_KEYS_H

#include "wire/jwt.h"

/* Keys of one file, and its size. Issuers publish two to five. */
#define OAUTH_KEYS_MAX 32u
#define OAUTH_KEYS_BYTES_MAX (256u << 10)

struct oauth_key;
struct oauth_keys {
    struct oauth_key *keys;
    unsigned n;
};

/* Read n bytes of JSON. Errors: CONFIG_INVALID when there is no key that can be used. */
int oauth_keys_read(const char *text, size_t n, struct oauth_keys *ret, struct err *e);
void oauth_keys_fini(struct oauth_keys *k);

/* Could a key of these have signed it, by algorithm and key id? */
bool oauth_keys_has(const struct oauth_keys *k, const struct jwt *t);

/* Is the signature one of these keys'? `text` is what `t` was read from. */
bool oauth_keys_verify(const struct oauth_keys *k, const struct jwt *t, const char *text);

#endif
