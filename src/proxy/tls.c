/* proxy/tls: see tls.h. */
#include "proxy/tls.h"

#include "base/mem.h"
#include "proxy/authority.h"
#include "sys/fd.h"

#include <errno.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* What may wait for the socket: a handshake's flight, or a block and its frames. Answers to
 * messages of the other side that are never read end the connection here. */
#define WIRE_MAX (256u << 10)

static const unsigned char http11[] = "\x08http/1.1";

struct tls {
    struct authority *authority;
    struct buf trust;
    BIO *trust_at; /* as far as it was parsed */
    bool trust_parsed;
    SSL_CTX *server; /* towards clients */
    SSL_CTX *client; /* towards servers */
    BIO_METHOD *method;
};

struct tls_channel {
    struct channel channel;
    SSL *ssl;
    struct host host;
    int fd;
    struct buf early;
    bool eof;    /* of the socket */
    bool broken; /* nothing may be asked of `ssl` any more */
    bool named;  /* the client named another host: */
    char name[TLS_WHY_MAX];
};

static struct tls_channel *channel_of(struct channel *ch)
{
    return container_of(ch, struct tls_channel, channel);
}

/* ---- the socket, as the library sees it ---- */

static int take_early(struct tls_channel *t, char *to, int n)
{
    size_t some = t->early.len < (size_t)n ? t->early.len : (size_t)n;
    memcpy(to, buf_bytes(&t->early), some);
    buf_consume(&t->early, some);
    if (t->early.len == 0)
        buf_fini(&t->early);
    return (int)some;
}

static int bio_read(BIO *b, char *to, int n)
{
    struct tls_channel *t = BIO_get_data(b);
    BIO_clear_retry_flags(b);
    if (t->early.len > 0)
        return take_early(t, to, n);
    ssize_t got = fd_read(t->fd, to, (size_t)n);
    if (got == -EAGAIN)
        BIO_set_retry_read(b);
    t->eof |= got == 0;
    return got < 0 ? -1 : (int)got;
}

static int bio_write(BIO *b, const char *data, int n)
{
    struct tls_channel *t = BIO_get_data(b);
    BIO_clear_retry_flags(b);
    if (t->channel.wire.len + (size_t)n > WIRE_MAX)
        return -1;
    buf_put(&t->channel.wire, data, (size_t)n);
    return n;
}

static long bio_ctrl(BIO *b, int what, long number, void *pointer)
{
    const struct tls_channel *t = BIO_get_data(b);
    if (what == BIO_CTRL_EOF)
        return t->eof;
    return what == BIO_CTRL_FLUSH;
}

static BIO_METHOD *new_method(void)
{
    BIO_METHOD *m = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "end");
    if (m == NULL || BIO_meth_set_read(m, bio_read) != 1 || BIO_meth_set_write(m, bio_write) != 1 ||
        BIO_meth_set_ctrl(m, bio_ctrl) != 1) {
        BIO_meth_free(m);
        return NULL;
    }
    return m;
}

/* ---- both sides ---- */

static ssize_t channel_read(struct channel *ch, void *to, size_t n)
{
    struct tls_channel *t = channel_of(ch);
    size_t got = 0;
    if (t->broken)
        return -ECONNRESET;
    ERR_clear_error();
    if (SSL_read_ex(t->ssl, to, n, &got) == 1)
        return (ssize_t)got;
    switch (SSL_get_error(t->ssl, 0)) {
    case SSL_ERROR_WANT_READ:
        return -EAGAIN;
    case SSL_ERROR_ZERO_RETURN:
        return 0;
    default:
        t->broken = true;
        return -ECONNRESET;
    }
}

static int channel_send(struct channel *ch, const void *data, size_t n)
{
    struct tls_channel *t = channel_of(ch);
    size_t put = 0;
    ERR_clear_error();
    if (!t->broken && SSL_write_ex(t->ssl, data, n, &put) == 1 && put == n)
        return 0;
    t->broken = true;
    return -ECONNRESET;
}

static void channel_shutdown(struct channel *ch)
{
    struct tls_channel *t = channel_of(ch);
    ERR_clear_error();
    if (!t->broken && SSL_is_init_finished(t->ssl))
        SSL_shutdown(t->ssl);
}

static void channel_free(struct channel *ch)
{
    struct tls_channel *t = channel_of(ch);
    SSL_free(t->ssl);
    buf_fini(&t->early);
    free(t);
}

static const struct channel_ops ops = {channel_read, channel_send, channel_shutdown, channel_free};

static struct tls_channel *new_channel(struct tls *t, SSL_CTX *ctx, int fd, const struct host *host,
                                       const char *early, size_t n_early)
{
    struct tls_channel *c = mem_new(struct tls_channel);
    *c = (struct tls_channel){.channel = {&ops, BUF_INIT}, .host = *host, .fd = fd};
    c->early = (struct buf)BUF_INIT;
    buf_put(&c->early, early, n_early);
    c->ssl = SSL_new(ctx);
    BIO *bio = c->ssl == NULL ? NULL : BIO_new(t->method);
    if (bio == NULL) {
        channel_free(&c->channel);
        return NULL;
    }
    BIO_set_data(bio, c);
    BIO_set_init(bio, 1);
    SSL_set_bio(c->ssl, bio, bio);
    SSL_set_app_data(c->ssl, c);
    return c;
}

struct channel *tls_accept(struct tls *t, int fd, const struct host *host, const char *early,
                           size_t n_early)
{
    struct tls_channel *c = new_channel(t, t->server, fd, host, early, n_early);
    if (c == NULL)
        return NULL;
    if (authority_serve(t->authority, c->ssl, host, time(NULL)) < 0) {
        channel_free(&c->channel);
        return NULL;
    }
    SSL_set_accept_state(c->ssl);
    return &c->channel;
}

/* ---- the server's certificate ---- */

/* The next certificate of the text; what is between them is comment. False: there is none. */
static bool parse_one(X509_STORE *store, BIO *bio)
{
    X509 *cert = bio == NULL ? NULL : PEM_read_bio_X509_AUX(bio, NULL, NULL, NULL);
    if (cert != NULL)
        X509_STORE_add_cert(store, cert);
    X509_free(cert);
    ERR_clear_error();
    return cert != NULL;
}

bool tls_trust_some(struct tls *t)
{
    if (t->trust_parsed)
        return true;
    if (t->trust_at == NULL)
        t->trust_at = BIO_new_mem_buf(buf_bytes(&t->trust), (int)t->trust.len);
    for (int i = 0; i < TLS_TRUST_TURN; i++) {
        if (parse_one(SSL_CTX_get_cert_store(t->client), t->trust_at))
            continue;
        t->trust_parsed = true;
        BIO_free(steal(t->trust_at));
        buf_fini(&t->trust);
        return true;
    }
    return false;
}

bool tls_trust_is_there(const struct tls *t)
{
    return t->trust_parsed;
}

struct channel *tls_connect(struct tls *t, int fd, const struct host *host, const char *early,
                            size_t n_early)
{
    ensure(t->trust_parsed);
    struct tls_channel *c = new_channel(t, t->client, fd, host, early, n_early);
    if (c == NULL)
        return NULL;
    SSL_set_hostflags(c->ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    if (SSL_set1_host(c->ssl, host->text) != 1 ||
        SSL_set_tlsext_host_name(c->ssl, host->text) != 1) {
        channel_free(&c->channel);
        return NULL;
    }
    SSL_set_connect_state(c->ssl);
    return &c->channel;
}

/* ---- the handshake ---- */

/* RFC 6066: a name that is not ours is answered with an alert. */
static int on_name(SSL *ssl, int *alert, void *user)
{
    struct tls_channel *c = SSL_get_app_data(ssl);
    const char *name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
    struct host host;
    if (name == NULL)
        return SSL_TLSEXT_ERR_NOACK;
    if (host_parse(name, strlen(name), &host, NULL) == 0 && host_eq(&host, &c->host))
        return SSL_TLSEXT_ERR_OK;
    c->named = true;
    snprintf(c->name, sizeof(c->name), "%.*s", (int)sizeof(c->name) - 1, name);
    *alert = SSL_AD_UNRECOGNIZED_NAME;
    return SSL_TLSEXT_ERR_ALERT_FATAL;
}

static int on_protocols(SSL *ssl, const unsigned char **out, unsigned char *out_len,
                        const unsigned char *in, unsigned in_len, void *user)
{
    for (unsigned at = 0; at < in_len; at += 1u + in[at]) {
        if (in[at] == http11[0] && at + http11[0] < in_len &&
            memcmp(in + at + 1, http11 + 1, http11[0]) == 0) {
            *out = in + at + 1;
            *out_len = http11[0];
            return SSL_TLSEXT_ERR_OK;
        }
    }
    return SSL_TLSEXT_ERR_ALERT_FATAL;
}

static enum tls_end failure(struct tls_channel *t, char *why)
{
    long verdict = SSL_get_verify_result(t->ssl);
    unsigned long error = ERR_peek_last_error();
    const char *reason = ERR_reason_error_string(error);
    ERR_clear_error();
    t->broken = true;
    if (t->named) {
        snprintf(why, TLS_WHY_MAX, "%s", t->name);
        return TLS_NAME;
    }
    if (verdict != X509_V_OK) {
        snprintf(why, TLS_WHY_MAX, "%s", X509_verify_cert_error_string(verdict));
        return TLS_CERTIFICATE;
    }
    snprintf(why, TLS_WHY_MAX, "%s",
             t->eof           ? "it closed in the middle of the handshake"
             : reason == NULL ? "the connection was lost"
                              : reason);
    return TLS_FAILED;
}

enum tls_end tls_handshake(struct channel *ch, char *why)
{
    struct tls_channel *t = channel_of(ch);
    if (t->broken)
        return TLS_FAILED;
    ERR_clear_error();
    int r = SSL_do_handshake(t->ssl);
    if (r == 1)
        return TLS_DONE;
    if (SSL_get_error(t->ssl, r) == SSL_ERROR_WANT_READ)
        return TLS_MORE;
    return failure(t, why);
}

/* ---- the start ---- */

static SSL_CTX *new_ctx(const SSL_METHOD *method)
{
    SSL_CTX *ctx = SSL_CTX_new(method);
    if (ctx == NULL || SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) != 1) {
        SSL_CTX_free(ctx);
        return NULL;
    }
    SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_NO_TICKET);
    SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_read_ahead(ctx, 1);
    return ctx;
}

static bool make_contexts(struct tls *t)
{
    t->server = new_ctx(TLS_server_method());
    t->client = new_ctx(TLS_client_method());
    t->method = new_method();
    if (t->server == NULL || t->client == NULL || t->method == NULL)
        return false;
    SSL_CTX_set_num_tickets(t->server, 0);
    SSL_CTX_set_tlsext_servername_callback(t->server, on_name);
    SSL_CTX_set_alpn_select_cb(t->server, on_protocols, NULL);
    SSL_CTX_set_verify(t->client, SSL_VERIFY_PEER, NULL);
    return SSL_CTX_set_alpn_protos(t->client, http11, sizeof(http11) - 1) == 0;
}

int tls_new(const struct inject_rules *rules, struct buf *trust, struct tls **ret, struct err *e)
{
    struct tls *t = mem_new(struct tls);
    *t = (struct tls){.trust = *trust};
    *trust = (struct buf)BUF_INIT;
    /* No configuration file of the machine's decides what is accepted here. */
    bool made = OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG, NULL) == 1 && make_contexts(t);
    if (made)
        t->authority = authority_new(rules);
    if (t->authority != NULL && strstr(buf_cstr(&t->trust), "-----BEGIN ") != NULL) {
        *ret = t;
        return 0;
    }
    bool without = t->authority != NULL;
    tls_free(t);
    return err_set(e, ERR_CONFIG_INVALID, "%s",
                   without ? "the system's trust store has no certificates"
                           : "the TLS library cannot be set up");
}

void tls_free(struct tls *t)
{
    if (t == NULL)
        return;
    authority_free(t->authority);
    SSL_CTX_free(t->server);
    SSL_CTX_free(t->client);
    BIO_meth_free(t->method);
    BIO_free(t->trust_at);
    buf_fini(&t->trust);
    free(t);
}

void tls_write_bundle(const struct tls *t, struct buf *out)
{
    buf_put(out, buf_bytes(&t->trust), t->trust.len);
    if (t->trust.len > 0 && buf_bytes(&t->trust)[t->trust.len - 1] != '\n')
        buf_putc(out, '\n');
    authority_write(t->authority, out);
}
