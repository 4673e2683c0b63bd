/* core/oauth: tokens signed with keys that are made here, and what is not one. */
#include "../../helpers/unit.h"
#include "base/mem.h"
#include "core/oauth.h"
#include "core/oauth_keys.h"
#include "wire/json.h"

#include <openssl/core_names.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <string.h>
#include <unistd.h>

#define NOW 1800000000
#define CLAIMS(more)                                                                               \
    "{\"iss\":\"https://id.example.com\",\"aud\":\"https://mcp.example.com/mcp\"," more "}"
#define GOOD CLAIMS("\"exp\":1800000100,\"scope\":\"code:run other\"")

static struct {
    EVP_PKEY *rsa, *ec, *ed;
} keys;

static void put64(struct buf *out, const void *bytes, size_t n)
{
    static const char alphabet[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    const unsigned char *in = bytes;
    for (size_t i = 0; i < n; i += 3) {
        unsigned bits = 0;
        for (size_t k = 0; k < 3; k++)
            bits = bits << 8 | (i + k < n ? in[i + k] : 0);
        for (size_t k = 0; k < 4 && i + k < n + 1; k++)
            buf_putc(out, alphabet[bits >> (18 - 6 * k) & 63]);
    }
}

static void put_number(struct buf *out, const char *name, EVP_PKEY *key, const char *param,
                       size_t size)
{
    BIGNUM *n = NULL;
    unsigned char bytes[1024];
    assert_int_equal(EVP_PKEY_get_bn_param(key, param, &n), 1);
    size_t len = size != 0 ? size : (size_t)BN_num_bytes(n);
    assert_int_equal(BN_bn2binpad(n, bytes, (int)len), (int)len);
    buf_printf(out, ",\"%s\":\"", name);
    put64(out, bytes, len);
    buf_putc(out, '"');
    BN_free(n);
}

static void put_rsa(struct buf *out, EVP_PKEY *key, const char *kid)
{
    buf_printf(out, "{\"kty\":\"RSA\",\"use\":\"sig\",\"alg\":\"RS256\",\"kid\":\"%s\"", kid);
    put_number(out, "n", key, OSSL_PKEY_PARAM_RSA_N, 0);
    put_number(out, "e", key, OSSL_PKEY_PARAM_RSA_E, 0);
    buf_putc(out, '}');
}

static void put_set(struct buf *out)
{
    unsigned char raw[32];
    size_t n = sizeof(raw);
    buf_puts(out, "{\"keys\":[{\"kty\":\"oct\",\"k\":\"AAAA\",\"kid\":\"r\"},");
    put_rsa(out, keys.rsa, "r");
    buf_puts(out, ",{\"kty\":\"EC\",\"crv\":\"P-256\",\"kid\":\"c\"");
    put_number(out, "x", keys.ec, OSSL_PKEY_PARAM_EC_PUB_X, 32);
    put_number(out, "y", keys.ec, OSSL_PKEY_PARAM_EC_PUB_Y, 32);
    buf_puts(out, "},{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"kid\":\"d\",\"x\":\"");
    assert_int_equal(EVP_PKEY_get_raw_public_key(keys.ed, raw, &n), 1);
    put64(out, raw, n);
    buf_puts(out, "\"}]}");
}

/* What a JWT has for a signature of P-256. */
static size_t raw_signature(unsigned char *signature, size_t n)
{
    const unsigned char *p = signature;
    ECDSA_SIG *pair = d2i_ECDSA_SIG(NULL, &p, (long)n);
    assert_non_null(pair);
    BN_bn2binpad(ECDSA_SIG_get0_r(pair), signature, 32);
    BN_bn2binpad(ECDSA_SIG_get0_s(pair), signature + 32, 32);
    ECDSA_SIG_free(pair);
    return 64;
}

static char *sign(const char *header, const char *claims, EVP_PKEY *key)
{
    autobuf text = BUF_INIT;
    unsigned char signature[1024];
    size_t n = sizeof(signature);
    put64(&text, header, strlen(header));
    buf_putc(&text, '.');
    put64(&text, claims, strlen(claims));
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    const EVP_MD *digest = key == keys.ed ? NULL : EVP_sha256();
    assert_int_equal(EVP_DigestSignInit(context, NULL, digest, NULL, key), 1);
    assert_int_equal(
        EVP_DigestSign(context, signature, &n, (const unsigned char *)buf_bytes(&text), text.len),
        1);
    EVP_MD_CTX_free(context);
    if (key == keys.ec)
        n = raw_signature(signature, n);
    buf_putc(&text, '.');
    put64(&text, signature, n);
    return buf_steal(&text);
}

/* The confusion of old: the public key as it is published taken for a shared secret. */
static char *sign_hmac(const char *header, const char *claims)
{
    autobuf text = BUF_INIT;
    autobuf secret = BUF_INIT;
    unsigned char mac[EVP_MAX_MD_SIZE];
    unsigned n = 0;
    put_rsa(&secret, keys.rsa, "r");
    put64(&text, header, strlen(header));
    buf_putc(&text, '.');
    put64(&text, claims, strlen(claims));
    HMAC(EVP_sha256(), buf_bytes(&secret), (int)secret.len, (const unsigned char *)buf_bytes(&text),
         text.len, mac, &n);
    buf_putc(&text, '.');
    put64(&text, mac, n);
    return buf_steal(&text);
}

static void save(const char *path, const struct buf *text)
{
    FILE *f = fopen(path, "we");
    assert_non_null(f);
    assert_int_equal(fwrite(buf_bytes(text), 1, text->len, f), text->len);
    fclose(f);
}

/* ---- the fixture: a key file, a server's side of it ---- */

struct fixture {
    char dir[64], file[80];
    struct oauth *oauth;
};

static struct oauth *make(const char *file, const char *scopes, struct err *e)
{
    const struct oauth_options options = {.issuer = "https://id.example.com",
                                          .resource = "https://mcp.example.com/mcp",
                                          .keys_file = file,
                                          .scopes = scopes};
    return oauth_new(&options, e);
}

static int set_up(void **state)
{
    struct fixture *f = mem_new(struct fixture);
    autobuf set = BUF_INIT;
    struct err e;
    strcpy(f->dir, "/tmp/codespace-oauth-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    snprintf(f->file, sizeof(f->file), "%s/keys.json", f->dir);
    put_set(&set);
    save(f->file, &set);
    f->oauth = make(f->file, "code:run", &e);
    if (f->oauth == NULL)
        fail_msg("%s", e.message);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    oauth_free(f->oauth);
    unlink(f->file);
    rmdir(f->dir);
    free(f);
    return 0;
}

static int make_keys(void **state)
{
    (void)state;
    keys.rsa = EVP_PKEY_Q_keygen(NULL, NULL, "RSA", (size_t)2048);
    keys.ec = EVP_PKEY_Q_keygen(NULL, NULL, "EC", "P-256");
    keys.ed = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
    return keys.rsa == NULL || keys.ec == NULL || keys.ed == NULL;
}

static int free_keys(void **state)
{
    (void)state;
    EVP_PKEY_free(keys.rsa);
    EVP_PKEY_free(keys.ec);
    EVP_PKEY_free(keys.ed);
    return 0;
}

static enum oauth_verdict check_at(struct fixture *f, const char *token, int64_t now)
{
    struct err why = {0};
    autofree char *value = mem_printf("Bearer %s", token);
    struct oauth_principal whose;
    enum oauth_verdict verdict = oauth_check(f->oauth, value, strlen(value), now, &whose, &why);
    assert_null(strstr(why.message, token));
    assert_true(verdict == OAUTH_FINE || why.message[0] != '\0');
    return verdict;
}

static enum oauth_verdict check(struct fixture *f, const char *token)
{
    return check_at(f, token, NOW);
}

static void test_each_algorithm(void **state)
{
    struct fixture *f = *state;
    const struct {
        const char *header;
        EVP_PKEY *key;
        enum oauth_verdict verdict;
    } rows[] = {
        {"{\"alg\":\"RS256\",\"kid\":\"r\"}", keys.rsa, OAUTH_FINE},
        {"{\"alg\":\"ES256\",\"kid\":\"c\"}", keys.ec, OAUTH_FINE},
        {"{\"alg\":\"EdDSA\",\"kid\":\"d\"}", keys.ed, OAUTH_FINE},
        {"{\"alg\":\"RS256\"}", keys.rsa, OAUTH_FINE},
        {"{\"alg\":\"RS256\",\"kid\":\"c\"}", keys.rsa, OAUTH_INVALID},
        {"{\"alg\":\"RS256\",\"kid\":\"../r\"}", keys.rsa, OAUTH_INVALID},
        {"{\"alg\":\"ES256\",\"kid\":\"r\"}", keys.rsa, OAUTH_INVALID},
        {"{\"alg\":\"ES256\"}", keys.rsa, OAUTH_INVALID},
        {"{\"alg\":\"EdDSA\"}", keys.ec, OAUTH_INVALID},
        {"{\"alg\":\"none\"}", keys.rsa, OAUTH_INVALID},
        {"{\"alg\":\"HS256\",\"kid\":\"r\"}", keys.rsa, OAUTH_INVALID},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        autofree char *token = sign(rows[i].header, GOOD, rows[i].key);
        if (check(f, token) != rows[i].verdict)
            fail_msg("%s", rows[i].header);
        if (rows[i].verdict == OAUTH_FINE) /* what is remembered is judged alike */
            assert_int_equal(check(f, token), OAUTH_FINE);
    }
}

static void test_claims(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *claims;
        enum oauth_verdict verdict;
    } rows[] = {
        {GOOD, OAUTH_FINE},
        {CLAIMS("\"exp\":1800000100,\"scope\":\"other\""), OAUTH_SCOPE},
        {CLAIMS("\"exp\":1800000100"), OAUTH_SCOPE},
        {CLAIMS("\"exp\":1799999900,\"scope\":\"code:run\""), OAUTH_INVALID},
        {CLAIMS("\"scope\":\"code:run\""), OAUTH_INVALID},
        {"{\"iss\":\"https://id.example.com\",\"aud\":\"https://other.example.com\","
         "\"exp\":1800000100,\"scope\":\"code:run\"}",
         OAUTH_INVALID},
        {"{\"iss\":\"https://evil.example.com\",\"aud\":\"https://mcp.example.com/mcp\","
         "\"exp\":1800000100,\"scope\":\"code:run\"}",
         OAUTH_INVALID},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        autofree char *token = sign("{\"alg\":\"EdDSA\"}", rows[i].claims, keys.ed);
        if (check(f, token) != rows[i].verdict)
            fail_msg("%s", rows[i].claims);
    }
}

static void test_every_bit_counts(void **state)
{
    struct fixture *f = *state;
    autofree char *token = sign("{\"alg\":\"ES256\",\"kid\":\"c\"}", GOOD, keys.ec);
    assert_int_equal(check(f, token), OAUTH_FINE);
    size_t n = strlen(token);
    for (size_t i = 0; i < n; i += 3) {
        char was = token[i];
        token[i] = was == 'A' ? 'B' : 'A';
        if (check(f, token) != OAUTH_INVALID)
            fail_msg("character %zu", i);
        token[i] = was;
    }
    token[n - 4] = '\0';
    assert_int_equal(check(f, token), OAUTH_INVALID);
}

static void test_a_public_key_is_no_secret(void **state)
{
    struct fixture *f = *state;
    autofree char *hmac = sign_hmac("{\"alg\":\"HS256\",\"kid\":\"r\"}", GOOD);
    autofree char *disguised = sign_hmac("{\"alg\":\"RS256\",\"kid\":\"r\"}", GOOD);
    assert_int_equal(check(f, hmac), OAUTH_INVALID);
    assert_int_equal(check(f, disguised), OAUTH_INVALID);
}

static void test_what_was_seen_expires(void **state)
{
    struct fixture *f = *state;
    autofree char *token = sign("{\"alg\":\"EdDSA\"}", GOOD, keys.ed);
    assert_int_equal(check_at(f, token, NOW), OAUTH_FINE);
    assert_int_equal(check_at(f, token, NOW + 100 + JWT_LEEWAY_S - 1), OAUTH_FINE);
    assert_int_equal(check_at(f, token, NOW + 100 + JWT_LEEWAY_S), OAUTH_INVALID);
}

static void test_headers(void **state)
{
    struct fixture *f = *state;
    static const char *const all[] = {"",           "Bearer",     "Bearer ",
                                      "Basic YTpi", "Bearer a b", "bearer"};
    struct err why;
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        assert_int_equal(oauth_check(f->oauth, all[i], strlen(all[i]), NOW, NULL, &why),
                         OAUTH_MALFORMED);
}

static void test_keys_are_read_again(void **state)
{
    struct fixture *f = *state;
    autobuf set = BUF_INIT;
    autobuf bad = BUF_INIT;
    autofree char *old = sign("{\"alg\":\"RS256\",\"kid\":\"r\"}", GOOD, keys.rsa);
    EVP_PKEY *fresh = EVP_PKEY_Q_keygen(NULL, NULL, "RSA", (size_t)2048);
    autofree char *token = sign("{\"alg\":\"RS256\",\"kid\":\"new\"}", GOOD, fresh);
    assert_int_equal(check(f, old), OAUTH_FINE);
    assert_int_equal(check(f, token), OAUTH_INVALID);
    buf_puts(&bad, "{");
    save(f->file, &bad);
    assert_int_equal(check(f, token), OAUTH_INVALID);
    assert_int_equal(check(f, old), OAUTH_FINE);
    buf_puts(&set, "{\"keys\":[");
    put_rsa(&set, fresh, "new");
    buf_puts(&set, "]}");
    save(f->file, &set);
    assert_int_equal(check(f, token), OAUTH_FINE);
    assert_int_equal(check(f, old), OAUTH_INVALID);
    EVP_PKEY_free(fresh);
}

/* Nobody sends a token of a new key; the old one was stolen. */
static void test_a_key_is_taken_back(void **state)
{
    struct fixture *f = *state;
    autobuf set = BUF_INIT;
    autofree char *old = sign("{\"alg\":\"RS256\",\"kid\":\"r\"}", GOOD, keys.rsa);
    EVP_PKEY *fresh = EVP_PKEY_Q_keygen(NULL, NULL, "RSA", (size_t)2048);
    autofree char *token = sign("{\"alg\":\"RS256\",\"kid\":\"r\"}", GOOD, fresh);
    assert_int_equal(check(f, old), OAUTH_FINE);
    buf_puts(&set, "{\"keys\":[");
    put_rsa(&set, fresh, "r"); /* under the name of the old one */
    buf_puts(&set, "]}");
    save(f->file, &set);
    assert_int_equal(check_at(f, old, NOW + 1), OAUTH_INVALID);
    assert_int_equal(check_at(f, token, NOW + 1), OAUTH_FINE);
    EVP_PKEY_free(fresh);
}

static void test_key_files_that_do_not_serve(void **state)
{
    struct fixture *f = *state;
    EVP_PKEY *small = EVP_PKEY_Q_keygen(NULL, NULL, "RSA", (size_t)1024);
    autobuf weak = BUF_INIT;
    buf_puts(&weak, "{\"keys\":[");
    put_rsa(&weak, small, "r");
    buf_puts(&weak, "]}");
    const char *const all[] = {
        "",
        "{",
        "[]",
        "{}",
        "{\"keys\":[]}",
        "{\"keys\":{}}",
        "{\"keys\":[null,1,\"\"]}",
        "{\"keys\":[{\"kty\":\"oct\",\"k\":\"AAAA\"}]}",
        "{\"keys\":[{\"kty\":\"RSA\",\"n\":\"AQAB\",\"e\":\"AQAB\"}]}",
        "{\"keys\":[{\"kty\":\"EC\",\"crv\":\"P-256\","
        "\"x\":\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\","
        "\"y\":\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\"}]}",
        "{\"keys\":[{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"AAAA\"}]}",
        buf_cstr(&weak),
    };
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        autobuf text = BUF_INIT;
        struct err e = {0};
        buf_puts(&text, all[i]);
        save(f->file, &text);
        if (make(f->file, NULL, &e) != NULL)
            fail_msg("%s", all[i]);
        assert_int_equal(e.code, ERR_CONFIG_INVALID);
    }
    EVP_PKEY_free(small);
}

static void test_options(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *issuer, *resource, *scopes;
        bool fine;
    } rows[] = {
        {"https://id", "https://mcp.example.com/mcp", NULL, true},
        {"http://localhost:9000/realm", "http://127.0.0.1:8787/mcp", "a b", true},
        {"http://id.example.com", "https://mcp.example.com/mcp", NULL, false},
        {"https://id", "http://mcp.example.com/mcp", NULL, false},
        {"id", "https://mcp.example.com/mcp", NULL, false},
        {"https://id?x", "https://mcp.example.com/mcp", NULL, false},
        {"https://id", "https://user@mcp.example.com/mcp", NULL, false},
        {"https://id", "https://mcp.example.com/mcp#x", NULL, false},
        {"https://id", "https://mcp.example.com/m\"cp", NULL, false},
        {"https://id", "https://mcp.example.com/m\r\ncp", NULL, false},
        {"https://id", "https://", NULL, false},
        {"https://id", NULL, NULL, false},
        {NULL, "https://mcp.example.com/mcp", NULL, false},
        {"https://id", "https://mcp.example.com/mcp", "a\"b", false},
        {"https://id", "https://mcp.example.com/mcp", "a\\b", false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct err e = {0};
        const struct oauth_options options = {.issuer = rows[i].issuer,
                                              .resource = rows[i].resource,
                                              .keys_file = f->file,
                                              .scopes = rows[i].scopes};
        struct oauth *o = oauth_new(&options, &e);
        if ((o != NULL) != rows[i].fine)
            fail_msg("row %zu: %s", i, e.message);
        oauth_free(o);
    }
}

static void test_what_is_told(void **state)
{
    struct fixture *f = *state;
    autobuf none = BUF_INIT;
    autobuf scope = BUF_INIT;
    autobuf metadata = BUF_INIT;
    autojson *document = NULL;
    oauth_challenge(f->oauth, OAUTH_NONE, &none);
    assert_string_equal(buf_cstr(&none),
                        "WWW-Authenticate: Bearer resource_metadata=\"https://mcp.example.com"
                        "/.well-known/oauth-protected-resource/mcp\", scope=\"code:run\"\r\n");
    oauth_challenge(f->oauth, OAUTH_SCOPE, &scope);
    assert_non_null(strstr(buf_cstr(&scope), "error=\"insufficient_scope\""));
    assert_int_equal(oauth_status(OAUTH_SCOPE), 403);
    oauth_write_metadata(f->oauth, &metadata);
    assert_int_equal(json_parse(buf_bytes(&metadata), metadata.len, &document, NULL), 0);
    assert_string_equal(json_str(json_get(document, "resource")), "https://mcp.example.com/mcp");
}

static void test_paths(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *target;
        bool is;
    } rows[] = {
        {"/.well-known/oauth-protected-resource", true},
        {"/.well-known/oauth-protected-resource/mcp", true},
        {"/.well-known/oauth-protected-resource/mcp?x=1", true},
        {"/.well-known/oauth-protected-resource/", false},
        {"/.well-known/oauth-protected-resource/mcp/", false},
        {"/.well-known/oauth-protected-resource/other", false},
        {"/.well-known/oauth-protected-resourcex", false},
        {"/.well-known/oauth-authorization-server", false},
        {"/mcp", false},
        {"", false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (oauth_is_metadata(f->oauth, rows[i].target, strlen(rows[i].target)) != rows[i].is)
            fail_msg("%s", rows[i].target);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_each_algorithm, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_claims, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_every_bit_counts, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_public_key_is_no_secret, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_what_was_seen_expires, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_headers, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_keys_are_read_again, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_key_is_taken_back, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_key_files_that_do_not_serve, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_options, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_what_is_told, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_paths, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, make_keys, free_keys);
}
