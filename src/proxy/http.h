/* proxy/http: the forward proxy: every request parsed, judged, written anew.
 *
 * Theory. One client connection has at most one server connection, for the host and port of its
 * last request; nothing is shared between clients, so nothing can leak between them. A request is
 * judged each time, also on a kept connection and also after the policy has changed. Its head is
 * written anew from the slices (wire/http1), with Host from the judged target, so that what the
 * server reads is what was judged. Bodies flow both ways at once; a response may come before the
 * request's body has ended. What is not understood in only one way ends the connection, never the
 * proxy.
 *
 * A kept server connection may have been closed by the server just as a request went out. Then, and
 * only for a request without a body and without effect (GET, HEAD, OPTIONS) of which no answer byte
 * came, it is sent once more on a new connection.
 *
 * Must not: forward a byte of a request that was refused, or parse what follows a CONNECT.
 */
#ifndef CODESPACE_PROXY_HTTP_H
#define CODESPACE_PROXY_HTTP_H

#include "proxy/conn.h"
#include "proxy/exchange.h"

void http_start(struct conn *c);
void http_free(struct exchange *x);
enum conn_step http_step(struct conn *c);

/* Is a request on its way? */
bool http_is_busy(const struct conn *c);

/* The dial for a request has ended. */
void http_dialed(struct conn *c, enum dial_result result);
/* The dial for a CONNECT has failed. */
void http_refuse_tunnel(struct conn *c, enum dial_result result);
/* The head did not come in time. */
void http_too_slow(struct conn *c);

/* Answer the request, or the CONNECT, that is there; `verdict` as in exchange_answer(). */
enum conn_step http_refuse(struct conn *c, unsigned status, const char *reason, const char *message,
                           const struct egress_verdict *verdict);

/* The answer of the operator's proxy to our CONNECT. 1: go on, 0: not yet, -1: it refused. */
int http_upstream_answer(struct conn *c);

#endif
