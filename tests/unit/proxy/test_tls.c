/* proxy/tls and proxy/authority: both sides of a handshake in one process, over a pair of sockets,
 * and the certificates that are made for it. */
#include "../../helpers/unit.h"
#include "base/mem.h"
#include "proxy/authority.h"
#include "proxy/tls.h"
#include "sys/fd.h"
#include "wire/inject.h"

#include <errno.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define RULE(host) "{\"host\":\"" host "\",\"header\":\"A\",\"tls\":\"intercept\",\"value\":\"v\"}"
#define DAY_S 86400

static void read_rules(const char *text, struct inject_rules *ret)
{
    *ret = (struct inject_rules){0};
    assert_int_equal(inject_read_values(text, strlen(text), ret, NULL), 0);
}

static struct host host_of(const char *text)
{
    struct host h;
    assert_int_equal(host_parse(text, strlen(text), &h, NULL), 0);
    return h;
}

/* ---- the authority ---- */

static X509 *own_cert(const struct authority *a)
{
    autobuf pem = BUF_INIT;
    authority_write(a, &pem);
    BIO *bio = BIO_new_mem_buf(buf_bytes(&pem), (int)pem.len);
    X509 *cert = PEM_read_bio_X509(bio, NULL, NULL, NULL);
    BIO_free(bio);
    assert_non_null(cert);
    return cert;
}

/* What a strict client finds: X509_V_OK or the reason. */
static int verify(X509 *trusted, X509 *leaf, const char *host)
{
    X509_STORE *store = X509_STORE_new();
    X509_STORE_CTX *ctx = X509_STORE_CTX_new();
    X509_STORE_add_cert(store, trusted);
    assert_int_equal(X509_STORE_CTX_init(ctx, store, leaf, NULL), 1);
    X509_VERIFY_PARAM *param = X509_STORE_CTX_get0_param(ctx);
    X509_VERIFY_PARAM_set_flags(param, X509_V_FLAG_X509_STRICT);
    X509_VERIFY_PARAM_set_purpose(param, X509_PURPOSE_SSL_SERVER);
    X509_VERIFY_PARAM_set1_host(param, host, 0);
    X509_verify_cert(ctx);
    int result = X509_STORE_CTX_get_error(ctx);
    X509_STORE_CTX_free(ctx);
    X509_STORE_free(store);
    return result;
}

static void test_leaves(void **state)
{
    (void)state;
    struct inject_rules rules;
    read_rules("[" RULE("a.test") "," RULE("b.test:8443") "]", &rules);
    struct authority *a = authority_new(&rules);
    struct authority *other = authority_new(&rules);
    SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
    SSL *ssl = SSL_new(ctx);
    struct host host = host_of("a.test"), stranger = host_of("c.test");
    X509 *own = own_cert(a), *others = own_cert(other);
    int64_t now = time(NULL);
    assert_int_equal(authority_serve(a, ssl, &host, now), 0);
    X509 *leaf = SSL_get_certificate(ssl);
    assert_int_equal(verify(own, leaf, "a.test"), X509_V_OK);
    assert_int_equal(verify(own, leaf, "b.test"), X509_V_ERR_HOSTNAME_MISMATCH);
    assert_int_not_equal(verify(others, leaf, "a.test"), X509_V_OK);
    assert_int_equal(X509_check_ca(leaf), 0);
    /* Not its host, not anybody's. */
    assert_int_equal(authority_serve(a, ssl, &stranger, now), -1);
    X509_free(own);
    X509_free(others);
    SSL_free(ssl);
    SSL_CTX_free(ctx);
    authority_free(a);
    authority_free(other);
    inject_fini(&rules);
}

static void test_a_leaf_is_kept_and_renewed(void **state)
{
    (void)state;
    struct inject_rules rules;
    read_rules("[" RULE("a.test") "]", &rules);
    struct authority *a = authority_new(&rules);
    SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
    SSL *ssl = SSL_new(ctx);
    struct host host = host_of("a.test");
    int64_t now = time(NULL);
    assert_int_equal(authority_serve(a, ssl, &host, now), 0);
    X509 *first = SSL_get_certificate(ssl);
    X509_up_ref(first);
    assert_int_equal(authority_serve(a, ssl, &host, now + DAY_S), 0);
    assert_ptr_equal(SSL_get_certificate(ssl), first);
    assert_int_equal(authority_serve(a, ssl, &host, now + TLS_LEAF_DAYS * DAY_S / 2), 0);
    assert_ptr_not_equal(SSL_get_certificate(ssl), first);
    X509_free(first);
    SSL_free(ssl);
    SSL_CTX_free(ctx);
    authority_free(a);
    inject_fini(&rules);
}

/* ---- the channels ---- */

struct side {
    int fd;
    struct channel *ch;
};

struct both {
    struct inject_rules rules;
    struct tls *ours, *theirs; /* theirs trusts ours */
    struct side server, client;
};

static void trust_all(struct tls *t)
{
    assert_false(tls_trust_is_there(t));
    while (!tls_trust_some(t))
        ;
    assert_true(tls_trust_is_there(t));
}

static void begin(struct both *b, const char *served, const char *asked)
{
    struct buf nobody = BUF_INIT, trust = BUF_INIT;
    struct host s = host_of(served), c = host_of(asked);
    int pair[2];
    read_rules("[" RULE("a.test") "," RULE("b.test") "]", &b->rules);
    buf_puts(&nobody, "-----BEGIN CERTIFICATE-----\n");
    assert_int_equal(tls_new(&b->rules, &nobody, &b->ours, NULL), 0);
    tls_write_bundle(b->ours, &trust);
    /* The first, cut one would end the list. */
    buf_consume(&trust, strlen("-----BEGIN CERTIFICATE-----\n"));
    assert_int_equal(tls_new(&b->rules, &trust, &b->theirs, NULL), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
    b->server = (struct side){pair[0], tls_accept(b->ours, pair[0], &s, "", 0)};
    trust_all(b->theirs);
    b->client = (struct side){pair[1], tls_connect(b->theirs, pair[1], &c, "", 0)};
    assert_non_null(b->server.ch);
    assert_non_null(b->client.ch);
}

static void close_side(struct side *s)
{
    if (s->ch != NULL) {
        buf_fini(&s->ch->wire);
        s->ch->ops->free(s->ch);
    }
    fd_close(&s->fd);
}

static void end(struct both *b)
{
    close_side(&b->server);
    close_side(&b->client);
    tls_free(b->ours);
    tls_free(b->theirs);
    inject_fini(&b->rules);
}

static void flush(struct side *s)
{
    struct buf *wire = &s->ch->wire;
    while (wire->len > 0) {
        ssize_t n = fd_send(s->fd, buf_bytes(wire), wire->len);
        assert_true(n > 0);
        buf_consume(wire, (size_t)n);
    }
}

static enum tls_end step(struct side *s, char *why)
{
    enum tls_end end = tls_handshake(s->ch, why);
    flush(s);
    return end;
}

/* Until both have failed or are done; what each says, and what the first one to fail says of it. */
static void shake(struct both *b, enum tls_end *server, enum tls_end *client, char *why)
{
    char later[TLS_WHY_MAX];
    *server = *client = TLS_MORE;
    for (int i = 0; i < 20 && (*server == TLS_MORE || *client == TLS_MORE); i++) {
        if (*client == TLS_MORE)
            *client = step(&b->client, *server > TLS_DONE ? later : why);
        if (*server == TLS_MORE)
            *server = step(&b->server, *client > TLS_DONE ? later : why);
    }
}

static void test_bytes_pass(void **state)
{
    (void)state;
    struct both b;
    enum tls_end server, client;
    char why[TLS_WHY_MAX] = "", data[32];
    begin(&b, "a.test", "a.test");
    shake(&b, &server, &client, why);
    assert_int_equal(server, TLS_DONE);
    assert_int_equal(client, TLS_DONE);
    assert_int_equal(b.client.ch->ops->read(b.client.ch, data, sizeof(data)), -EAGAIN);
    assert_int_equal(b.server.ch->ops->send(b.server.ch, "hello", 5), 0);
    flush(&b.server);
    assert_int_equal(b.client.ch->ops->read(b.client.ch, data, sizeof(data)), 5);
    assert_memory_equal(data, "hello", 5);
    /* A proper end is one, a cut is none. */
    b.server.ch->ops->shutdown(b.server.ch);
    flush(&b.server);
    assert_int_equal(b.client.ch->ops->read(b.client.ch, data, sizeof(data)), 0);
    end(&b);
    begin(&b, "a.test", "a.test");
    shake(&b, &server, &client, why);
    close_side(&b.server);
    b.server = (struct side){-1, NULL};
    assert_int_equal(b.client.ch->ops->read(b.client.ch, data, sizeof(data)), -ECONNRESET);
    end(&b);
}

static void test_another_name(void **state)
{
    (void)state;
    struct both b;
    enum tls_end server, client;
    char why[TLS_WHY_MAX] = "";
    begin(&b, "a.test", "b.test");
    shake(&b, &server, &client, why);
    assert_int_equal(server, TLS_NAME);
    assert_string_equal(why, "b.test");
    assert_int_equal(client, TLS_FAILED);
    end(&b);
}

static void test_an_authority_that_is_not_trusted(void **state)
{
    (void)state;
    struct both b;
    enum tls_end server, client;
    char why[TLS_WHY_MAX] = "";
    struct host host = host_of("a.test");
    begin(&b, "a.test", "a.test");
    /* The same, but with a client that trusts only itself. */
    buf_fini(&b.client.ch->wire);
    b.client.ch->ops->free(b.client.ch);
    trust_all(b.ours);
    b.client.ch = tls_connect(b.ours, b.client.fd, &host, "", 0);
    shake(&b, &server, &client, why);
    assert_int_equal(client, TLS_CERTIFICATE);
    assert_non_null(strstr(why, "certificate"));
    end(&b);
}

static void test_garbage(void **state)
{
    (void)state;
    static const char *const texts[] = {"GET / HTTP/1.1\r\n\r\n", "\x16\x03\x01\xff\xff xxxxxxxxxx",
                                        "\x16\x03\x01\x01 short"};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct both b;
        char why[TLS_WHY_MAX] = "";
        begin(&b, "a.test", "a.test");
        assert_true(fd_send(b.client.fd, texts[i], strlen(texts[i])) > 0);
        shutdown(b.client.fd, SHUT_WR);
        assert_int_equal(tls_handshake(b.server.ch, why), TLS_FAILED);
        assert_string_not_equal(why, "");
        assert_int_equal(tls_handshake(b.server.ch, why), TLS_FAILED);
        assert_int_equal(b.server.ch->ops->read(b.server.ch, why, 1), -ECONNRESET);
        assert_int_equal(b.server.ch->ops->send(b.server.ch, "x", 1), -ECONNRESET);
        end(&b);
    }
}

static void test_only_hosts_of_the_list(void **state)
{
    (void)state;
    struct both b;
    struct host host = host_of("c.test");
    begin(&b, "a.test", "a.test");
    assert_null(tls_accept(b.ours, b.server.fd, &host, "", 0));
    end(&b);
}

UNIT_MAIN(cmocka_unit_test(test_leaves), cmocka_unit_test(test_a_leaf_is_kept_and_renewed),
          cmocka_unit_test(test_bytes_pass), cmocka_unit_test(test_another_name),
          cmocka_unit_test(test_an_authority_that_is_not_trusted), cmocka_unit_test(test_garbage),
          cmocka_unit_test(test_only_hosts_of_the_list))
