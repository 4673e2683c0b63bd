/* proxy/authority: see authority.h. */
#include "proxy/authority.h"

#include "base/mem.h"
#include "proxy/tls.h"

#include <openssl/bn.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <string.h>

#define DAY_S 86400L
/* Clocks differ a little. */
#define EARLIER_S 3600L

struct leaf {
    struct host host;
    X509 *cert; /* NULL until it is asked for */
    int64_t renew_at;
};

struct authority {
    EVP_PKEY *key;
    X509 *cert;
    EVP_PKEY *leaf_key;
    struct leaf leaves[INJECT_RULES_MAX];
    size_t n;
};

/* One extension in the library's own words. */
static bool extend(X509 *cert, X509 *issuer, int nid, const char *words)
{
    X509V3_CTX ctx;
    X509V3_set_ctx(&ctx, issuer, cert, NULL, NULL, 0);
    X509_EXTENSION *ext = X509V3_EXT_conf_nid(NULL, &ctx, nid, words);
    bool done = ext != NULL && X509_add_ext(cert, ext, -1) == 1;
    X509_EXTENSION_free(ext);
    return done;
}

static bool set_serial(X509 *cert)
{
    BIGNUM *number = BN_new();
    bool done = number != NULL && BN_rand(number, 127, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY) == 1 &&
                BN_to_ASN1_INTEGER(number, X509_get_serialNumber(cert)) != NULL;
    BN_free(number);
    return done;
}

static bool set_name(X509_NAME *name, const char *text)
{
    return X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)text, -1, -1,
                                      0) == 1;
}

/* A certificate with everything but its extensions and signature. `issuer` NULL: its own. */
static X509 *new_cert(const char *name, X509 *issuer, EVP_PKEY *key, long days, int64_t now)
{
    time_t from = (time_t)now;
    X509 *cert = X509_new();
    bool done =
        cert != NULL && X509_set_version(cert, 2) == 1 && set_serial(cert) &&
        X509_time_adj_ex(X509_getm_notBefore(cert), 0, -EARLIER_S, &from) != NULL &&
        X509_time_adj_ex(X509_getm_notAfter(cert), (int)days, 0, &from) != NULL &&
        set_name(X509_get_subject_name(cert), name) &&
        X509_set_issuer_name(cert, X509_get_subject_name(issuer == NULL ? cert : issuer)) == 1 &&
        X509_set_pubkey(cert, key) == 1;
    if (done)
        return cert;
    X509_free(cert);
    return NULL;
}

static bool finish_authority(struct authority *a)
{
    autobuf names = BUF_INIT;
    buf_puts(&names, "critical");
    for (size_t i = 0; i < a->n; i++)
        buf_printf(&names, ",permitted;DNS:%s", a->leaves[i].host.text);
    return extend(a->cert, a->cert, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
           extend(a->cert, a->cert, NID_key_usage, "critical,keyCertSign,cRLSign") &&
           extend(a->cert, a->cert, NID_subject_key_identifier, "hash") &&
           extend(a->cert, a->cert, NID_name_constraints, buf_cstr(&names)) &&
           X509_sign(a->cert, a->key, EVP_sha256()) > 0;
}

static struct leaf *find(struct authority *a, const struct host *host)
{
    for (size_t i = 0; i < a->n; i++) {
        if (host_eq(&a->leaves[i].host, host))
            return &a->leaves[i];
    }
    return NULL;
}

struct authority *authority_new(const struct inject_rules *rules)
{
    struct authority *a = mem_new(struct authority);
    for (size_t i = 0; i < rules->len; i++) {
        const struct inject_rule *r = &rules->items[i];
        if (r->intercept && find(a, &r->host) == NULL)
            a->leaves[a->n++].host = r->host;
    }
    a->key = EVP_EC_gen("P-256");
    a->leaf_key = EVP_EC_gen("P-256");
    if (a->key != NULL)
        a->cert = new_cert("CodeSpace interception (this sandbox only)", NULL, a->key,
                           TLS_AUTHORITY_DAYS, time(NULL));
    if (a->cert != NULL && a->leaf_key != NULL && finish_authority(a))
        return a;
    authority_free(a);
    return NULL;
}

void authority_free(struct authority *a)
{
    if (a == NULL)
        return;
    for (size_t i = 0; i < a->n; i++)
        X509_free(a->leaves[i].cert);
    X509_free(a->cert);
    EVP_PKEY_free(a->key);
    EVP_PKEY_free(a->leaf_key);
    free(a);
}

void authority_write(const struct authority *a, struct buf *out)
{
    const char *text = NULL;
    BIO *bio = BIO_new(BIO_s_mem());
    if (bio != NULL && PEM_write_bio_X509(bio, a->cert) == 1) {
        long n = BIO_get_mem_data(bio, &text);
        buf_put(out, text, (size_t)n);
    }
    BIO_free(bio);
}

static X509 *make_leaf(struct authority *a, const struct host *host, int64_t now)
{
    autofree char *names = mem_printf("DNS:%s", host->text);
    X509 *cert = new_cert("CodeSpace interception", a->cert, a->leaf_key, TLS_LEAF_DAYS, now);
    if (cert != NULL && extend(cert, a->cert, NID_basic_constraints, "critical,CA:FALSE") &&
        extend(cert, a->cert, NID_key_usage, "critical,digitalSignature") &&
        extend(cert, a->cert, NID_ext_key_usage, "serverAuth") &&
        extend(cert, a->cert, NID_subject_key_identifier, "hash") &&
        extend(cert, a->cert, NID_authority_key_identifier, "keyid:always") &&
        extend(cert, a->cert, NID_subject_alt_name, names) &&
        X509_sign(cert, a->key, EVP_sha256()) > 0)
        return cert;
    X509_free(cert);
    return NULL;
}

int authority_serve(struct authority *a, SSL *ssl, const struct host *host, int64_t now)
{
    struct leaf *leaf = find(a, host);
    if (leaf == NULL)
        return -1;
    if (leaf->cert == NULL || now >= leaf->renew_at) {
        X509 *fresh = make_leaf(a, host, now);
        if (fresh == NULL)
            return -1;
        X509_free(leaf->cert);
        leaf->cert = fresh;
        leaf->renew_at = now + TLS_LEAF_DAYS * DAY_S / 2;
    }
    return SSL_use_certificate(ssl, leaf->cert) == 1 && SSL_use_PrivateKey(ssl, a->leaf_key) == 1
               ? 0
               : -1;
}
