/* proxy/tls: the program without it; see tls.h. Nothing calls the rest, since tls_new() fails. */
#include "base/mem.h"
#include "proxy/tls.h"

int tls_new(const struct inject_rules *rules, struct buf *trust, struct tls **ret, struct err *e)
{
    return err_set(
        e, ERR_CONFIG_INVALID,
        "\"tls\": \"intercept\" needs codespace-egress-proxy-tls; this program has no TLS");
}

void tls_free(struct tls *t)
{
    ensure(t == NULL);
}

void tls_write_bundle(const struct tls *t, struct buf *out)
{
    ensure(t == NULL);
}

bool tls_trust_some(struct tls *t)
{
    ensure(t == NULL);
    return true;
}

bool tls_trust_is_there(const struct tls *t)
{
    ensure(t == NULL);
    return true;
}

struct channel *tls_accept(struct tls *t, int fd, const struct host *host, const char *early,
                           size_t n_early)
{
    ensure(t == NULL);
    return NULL;
}

struct channel *tls_connect(struct tls *t, int fd, const struct host *host, const char *early,
                            size_t n_early)
{
    ensure(t == NULL);
    return NULL;
}

enum tls_end tls_handshake(struct channel *ch, char *why)
{
    ensure(ch == NULL);
    return TLS_FAILED;
}
