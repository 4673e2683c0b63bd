/* proxy/authority: a certificate authority that lives as long as its process, for a list of hosts.
 *
 * Theory. Keys are on P-256: they are made in a tenth of a millisecond, and every client takes
 * them. One key serves all leaves. Extensions are those that strict clients want (RFC 5280): key
 * identifiers on both sides, critical basic constraints and key usage, the name in the subject
 * alternative name only.
 *
 * Must not: write a key anywhere.
 */
#ifndef CODESPACE_PROXY_AUTHORITY_H
#define CODESPACE_PROXY_AUTHORITY_H

#include "base/buf.h"
#include "wire/inject.h"

#include <openssl/ssl.h>

struct authority;

/* For the hosts of the rules that intercept. NULL when the library fails. */
struct authority *authority_new(const struct inject_rules *rules);
void authority_free(struct authority *a);

/* Its certificate as PEM. */
void authority_write(const struct authority *a, struct buf *out);

/* Let `ssl` be the server `host`; makes the leaf when there is none or it is half over. `now` in
 * seconds. 0, or -1: not a host of the list, or the library failed. */
int authority_serve(struct authority *a, SSL *ssl, const struct host *host, int64_t now);

#endif
