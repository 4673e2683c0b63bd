/* core/oauth_keys: see oauth_keys.h. */
#include "core/oauth_keys.h"

#include "base/mem.h"
#include "base/str.h"
#include "wire/json.h"

#include <nettle/ecc-curve.h>
#include <nettle/ecc.h>
#include <nettle/ecdsa.h>
#include <nettle/eddsa.h>
#include <nettle/rsa.h>
#include <string.h>

#define RSA_BITS_MIN 2048
#define RSA_BITS_MAX 8192
#define EXPONENT_BYTES_MAX 8u
#define P256_BYTES 32u

struct oauth_key {
    enum jwt_alg alg; /* says which of the three it is */
    char *kid;        /* NULL: it has none */
    union {
        struct rsa_public_key rsa;
        struct ecc_point p256;
        uint8_t ed25519[ED25519_KEY_SIZE];
    };
};

/* ---- reading ---- */

static int member(struct json_object *jwk, const char *name, struct buf *out)
{
    const char *text = json_str(json_get(jwk, name));
    if (text == NULL || jwt_base64url(text, strlen(text), out) < 0 || out->len == 0)
        return -1;
    return 0;
}

static const uint8_t *bytes_of(const struct buf *b)
{
    return (const uint8_t *)buf_bytes(b);
}

/* An even modulus or exponent, or an exponent of 1, is no RSA key, and nettle does not look. */
static bool read_rsa(struct json_object *jwk, struct oauth_key *key)
{
    autobuf n = BUF_INIT;
    autobuf e = BUF_INIT;
    if (member(jwk, "n", &n) < 0 || member(jwk, "e", &e) < 0 || n.len > RSA_BITS_MAX / 8 ||
        e.len > EXPONENT_BYTES_MAX)
        return false;
    struct rsa_public_key *rsa = &key->rsa;
    rsa_public_key_init(rsa);
    nettle_mpz_set_str_256_u(rsa->n, n.len, bytes_of(&n));
    nettle_mpz_set_str_256_u(rsa->e, e.len, bytes_of(&e));
    if (mpz_sizeinbase(rsa->n, 2) >= RSA_BITS_MIN && mpz_odd_p(rsa->n) && mpz_odd_p(rsa->e) &&
        mpz_cmp_ui(rsa->e, 1) > 0 && rsa_public_key_prepare(rsa))
        return true;
    rsa_public_key_clear(rsa);
    return false;
}

/* nettle refuses a point that is not on the curve. */
static bool set_point(struct ecc_point *point, const uint8_t *x, const uint8_t *y)
{
    mpz_t mx;
    mpz_t my;
    nettle_mpz_init_set_str_256_u(mx, P256_BYTES, x);
    nettle_mpz_init_set_str_256_u(my, P256_BYTES, y);
    ecc_point_init(point, nettle_get_secp_256r1());
    bool good = ecc_point_set(point, mx, my) != 0;
    if (!good)
        ecc_point_clear(point);
    mpz_clear(mx);
    mpz_clear(my);
    return good;
}

static bool read_p256(struct json_object *jwk, struct oauth_key *key)
{
    autobuf x = BUF_INIT;
    autobuf y = BUF_INIT;
    if (!str_eq(json_str(json_get(jwk, "crv")), "P-256") || member(jwk, "x", &x) < 0 ||
        member(jwk, "y", &y) < 0 || x.len != P256_BYTES || y.len != P256_BYTES)
        return false;
    return set_point(&key->p256, bytes_of(&x), bytes_of(&y));
}

static bool read_ed25519(struct json_object *jwk, struct oauth_key *key)
{
    autobuf x = BUF_INIT;
    if (!str_eq(json_str(json_get(jwk, "crv")), "Ed25519") || member(jwk, "x", &x) < 0 ||
        x.len != sizeof(key->ed25519))
        return false;
    memcpy(key->ed25519, bytes_of(&x), x.len);
    return true;
}

static const struct {
    const char *type;
    enum jwt_alg alg;
    bool (*read)(struct json_object *jwk, struct oauth_key *key);
} types[] = {
    {"RSA", JWT_RS256, read_rsa},
    {"EC", JWT_ES256, read_p256},
    {"OKP", JWT_EDDSA, read_ed25519},
};

static void take_key(struct oauth_keys *k, struct json_object *jwk)
{
    const char *type = json_str(json_get(jwk, "kty"));
    const char *use = json_str(json_get(jwk, "use"));
    const char *alg = json_str(json_get(jwk, "alg"));
    const char *kid = json_str(json_get(jwk, "kid"));
    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        if (!str_eq(type, types[i].type) || (use != NULL && strcmp(use, "sig") != 0) ||
            (alg != NULL && jwt_alg_of(alg) != (int)types[i].alg))
            continue;
        struct oauth_key *key = &k->keys[k->n];
        if (!types[i].read(jwk, key))
            continue;
        key->alg = types[i].alg;
        key->kid = kid != NULL ? mem_strdup(kid) : NULL;
        k->n++;
    }
}

int oauth_keys_read(const char *text, size_t n, struct oauth_keys *ret, struct err *e)
{
    autojson *set = NULL;
    struct oauth_keys k = {0};
    if (json_parse(text, n, &set, e) < 0) {
        if (e != NULL)
            e->code = ERR_CONFIG_INVALID;
        return -1;
    }
    struct json_object *keys = json_get(set, "keys");
    size_t count = json_object_is_type(keys, json_type_array) ? json_object_array_length(keys) : 0;
    if (count > OAUTH_KEYS_MAX)
        return err_set(e, ERR_CONFIG_INVALID, "OAUTH_KEYS_MAX: at most %u keys may be in it",
                       OAUTH_KEYS_MAX);
    k.keys = mem_zalloc(count + 1, sizeof(*k.keys));
    for (size_t i = 0; i < count; i++)
        take_key(&k, json_object_array_get_idx(keys, i));
    if (k.n == 0) {
        oauth_keys_fini(&k);
        return err_set(e, ERR_CONFIG_INVALID,
                       "holds no key that can be used: a JSON Web Key Set (\"keys\") with a public "
                       "RSA key of 2048 bits or more, P-256 or Ed25519 key is wanted");
    }
    *ret = k;
    return 0;
}

void oauth_keys_fini(struct oauth_keys *k)
{
    for (unsigned i = 0; i < k->n; i++) {
        struct oauth_key *key = &k->keys[i];
        free(key->kid);
        if (key->alg == JWT_RS256)
            rsa_public_key_clear(&key->rsa);
        else if (key->alg == JWT_ES256)
            ecc_point_clear(&key->p256);
    }
    free(k->keys);
    *k = (struct oauth_keys){0};
}

/* ---- verifying ---- */

static bool may_be(const struct oauth_key *key, const struct jwt *t)
{
    return key->alg == t->alg &&
           (t->kid == NULL || key->kid == NULL || strcmp(t->kid, key->kid) == 0);
}

bool oauth_keys_has(const struct oauth_keys *k, const struct jwt *t)
{
    for (unsigned i = 0; i < k->n; i++) {
        if (may_be(&k->keys[i], t))
            return true;
    }
    return false;
}

/* RFC 8017 8.2.2: a signature is exactly as long as the modulus. */
static bool verify_rsa(const struct rsa_public_key *key, struct sha256_ctx *hash,
                       const struct buf *signature)
{
    if (signature->len != key->size)
        return false;
    mpz_t s;
    nettle_mpz_init_set_str_256_u(s, signature->len, bytes_of(signature));
    bool good = rsa_sha256_verify(key, hash, s) != 0;
    mpz_clear(s);
    return good;
}

/* RFC 7518 3.4: the two numbers side by side. */
static bool verify_p256(const struct ecc_point *key, struct sha256_ctx *hash,
                        const struct buf *signature)
{
    uint8_t digest[SHA256_DIGEST_SIZE];
    struct dsa_signature pair;
    if (signature->len != 2 * P256_BYTES)
        return false;
    sha256_digest(hash, sizeof(digest), digest);
    dsa_signature_init(&pair);
    nettle_mpz_set_str_256_u(pair.r, P256_BYTES, bytes_of(signature));
    nettle_mpz_set_str_256_u(pair.s, P256_BYTES, bytes_of(signature) + P256_BYTES);
    bool good = ecdsa_verify(key, sizeof(digest), digest, &pair) != 0;
    dsa_signature_clear(&pair);
    return good;
}

static bool verify_ed25519(const uint8_t *key, const struct buf *signature, const char *text,
                           size_t n)
{
    return signature->len == ED25519_SIGNATURE_SIZE &&
           ed25519_sha512_verify(key, n, (const uint8_t *)text, bytes_of(signature)) != 0;
}

static bool verify(const struct oauth_key *key, const struct buf *signature, const char *text,
                   size_t n)
{
    struct sha256_ctx hash;
    if (key->alg == JWT_EDDSA)
        return verify_ed25519(key->ed25519, signature, text, n);
    sha256_init(&hash);
    sha256_update(&hash, n, (const uint8_t *)text);
    return key->alg == JWT_ES256 ? verify_p256(&key->p256, &hash, signature)
                                 : verify_rsa(&key->rsa, &hash, signature);
}

bool oauth_keys_verify(const struct oauth_keys *k, const struct jwt *t, const char *text)
{
    for (unsigned i = 0; i < k->n; i++) {
        if (may_be(&k->keys[i], t) && verify(&k->keys[i], &t->signature, text, t->signed_len))
            return true;
    }
    return false;
}
