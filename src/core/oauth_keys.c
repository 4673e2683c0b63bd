/* core/oauth_keys: see oauth_keys.h. */
#include "core/oauth_keys.h"

#include "base/mem.h"
#include "base/str.h"
#include "wire/json.h"

#include <openssl/core_names.h>
#include <openssl/ecdsa.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>
#include <string.h>

#define RSA_BITS_MIN 2048
#define RSA_BITS_MAX 8192
#define EXPONENT_BYTES_MAX 8u
#define P256_BYTES 32u
#define ED25519_BYTES 32u

struct oauth_key {
    enum jwt_alg alg;
    char *kid; /* NULL: it has none */
    EVP_PKEY *key;
};

#define autopkey __attribute__((cleanup(pkey_cleanup))) EVP_PKEY
static void pkey_cleanup(EVP_PKEY **key)
{
    EVP_PKEY_free(*key);
}

/* ---- reading ---- */

static int member(struct json_object *jwk, const char *name, struct buf *out)
{
    const char *text = json_str(json_get(jwk, name));
    if (text == NULL || jwt_base64url(text, strlen(text), out) < 0 || out->len == 0)
        return -1;
    return 0;
}

static EVP_PKEY *from_params(const char *type, OSSL_PARAM_BLD *build)
{
    EVP_PKEY *key = NULL;
    OSSL_PARAM *params = OSSL_PARAM_BLD_to_param(build);
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_name(NULL, type, NULL);
    ensure(params != NULL && context != NULL);
    if (EVP_PKEY_fromdata_init(context) <= 0 ||
        EVP_PKEY_fromdata(context, &key, EVP_PKEY_PUBLIC_KEY, params) <= 0)
        key = NULL;
    EVP_PKEY_CTX_free(context);
    OSSL_PARAM_free(params);
    return key;
}

static BIGNUM *number(const struct buf *b)
{
    BIGNUM *n = BN_bin2bn((const unsigned char *)buf_bytes(b), (int)b->len, NULL);
    ensure(n != NULL);
    return n;
}

static EVP_PKEY *read_rsa(struct json_object *jwk)
{
    autobuf n = BUF_INIT;
    autobuf e = BUF_INIT;
    if (member(jwk, "n", &n) < 0 || member(jwk, "e", &e) < 0 || n.len > RSA_BITS_MAX / 8 ||
        e.len > EXPONENT_BYTES_MAX)
        return NULL;
    OSSL_PARAM_BLD *build = OSSL_PARAM_BLD_new();
    BIGNUM *modulus = number(&n);
    BIGNUM *exponent = number(&e);
    EVP_PKEY *key = NULL;
    ensure(build != NULL);
    if (BN_num_bits(modulus) >= RSA_BITS_MIN && BN_is_odd(exponent) && !BN_is_one(exponent) &&
        OSSL_PARAM_BLD_push_BN(build, OSSL_PKEY_PARAM_RSA_N, modulus) &&
        OSSL_PARAM_BLD_push_BN(build, OSSL_PKEY_PARAM_RSA_E, exponent))
        key = from_params("RSA", build);
    BN_free(modulus);
    BN_free(exponent);
    OSSL_PARAM_BLD_free(build);
    return key;
}

/* libcrypto refuses a point that is not on the curve. */
static EVP_PKEY *read_p256(struct json_object *jwk)
{
    autobuf x = BUF_INIT;
    autobuf y = BUF_INIT;
    unsigned char point[1 + 2 * P256_BYTES] = {POINT_CONVERSION_UNCOMPRESSED};
    if (!str_eq(json_str(json_get(jwk, "crv")), "P-256") || member(jwk, "x", &x) < 0 ||
        member(jwk, "y", &y) < 0 || x.len != P256_BYTES || y.len != P256_BYTES)
        return NULL;
    memcpy(point + 1, buf_bytes(&x), P256_BYTES);
    memcpy(point + 1 + P256_BYTES, buf_bytes(&y), P256_BYTES);
    OSSL_PARAM_BLD *build = OSSL_PARAM_BLD_new();
    EVP_PKEY *key = NULL;
    ensure(build != NULL);
    if (OSSL_PARAM_BLD_push_utf8_string(build, OSSL_PKEY_PARAM_GROUP_NAME, "P-256", 0) &&
        OSSL_PARAM_BLD_push_octet_string(build, OSSL_PKEY_PARAM_PUB_KEY, point, sizeof(point)))
        key = from_params("EC", build);
    OSSL_PARAM_BLD_free(build);
    return key;
}

static EVP_PKEY *read_ed25519(struct json_object *jwk)
{
    autobuf x = BUF_INIT;
    if (!str_eq(json_str(json_get(jwk, "crv")), "Ed25519") || member(jwk, "x", &x) < 0 ||
        x.len != ED25519_BYTES)
        return NULL;
    return EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, (const unsigned char *)buf_bytes(&x),
                                       x.len);
}

static const struct {
    const char *type;
    enum jwt_alg alg;
    EVP_PKEY *(*read)(struct json_object *jwk);
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
        autopkey *key = types[i].read(jwk);
        if (key != NULL)
            k->keys[k->n++] = (struct oauth_key){.alg = types[i].alg,
                                                 .kid = kid != NULL ? mem_strdup(kid) : NULL,
                                                 .key = steal(key)};
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
        free(k->keys[i].kid);
        EVP_PKEY_free(k->keys[i].key);
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

static bool verify(const struct oauth_key *key, const unsigned char *signature, size_t n,
                   const char *text, size_t text_len)
{
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    const EVP_MD *digest = key->alg == JWT_EDDSA ? NULL : EVP_sha256();
    ensure(context != NULL);
    bool good = EVP_DigestVerifyInit(context, NULL, digest, NULL, key->key) == 1 &&
                EVP_DigestVerify(context, signature, n, (const unsigned char *)text, text_len) == 1;
    EVP_MD_CTX_free(context);
    ERR_clear_error(); /* a bad signature leaves one, and nobody reads the queue */
    return good;
}

/* A JWT has the two numbers side by side, libcrypto wants them in DER. */
static bool verify_p256(const struct oauth_key *key, const struct buf *signature, const char *text,
                        size_t n)
{
    const unsigned char *raw = (const unsigned char *)buf_bytes(signature);
    unsigned char *der = NULL;
    if (signature->len != 2 * P256_BYTES)
        return false;
    ECDSA_SIG *pair = ECDSA_SIG_new();
    ensure(pair != NULL && ECDSA_SIG_set0(pair, BN_bin2bn(raw, P256_BYTES, NULL),
                                          BN_bin2bn(raw + P256_BYTES, P256_BYTES, NULL)));
    int len = i2d_ECDSA_SIG(pair, &der);
    bool good = len > 0 && verify(key, der, (size_t)len, text, n);
    OPENSSL_free(der);
    ECDSA_SIG_free(pair);
    return good;
}

bool oauth_keys_verify(const struct oauth_keys *k, const struct jwt *t, const char *text)
{
    const unsigned char *signature = (const unsigned char *)buf_bytes(&t->signature);
    for (unsigned i = 0; i < k->n; i++) {
        const struct oauth_key *key = &k->keys[i];
        if (!may_be(key, t))
            continue;
        if (key->alg == JWT_ES256 ? verify_p256(key, &t->signature, text, t->signed_len)
                                  : verify(key, signature, t->signature.len, text, t->signed_len))
            return true;
    }
    return false;
}
