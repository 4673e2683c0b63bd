/* proxy/intercept: HTTPS to a host of the operator's list, ended here and begun anew.
 *
 * Theory. A tunnel (CONNECT, SOCKS, a carried connection) to a host and port of a rule with "tls":
 * "intercept" is not connected through. The proxy answers the client as that host (proxy/tls), and
 * what comes out is HTTP on a carried connection as any other: each request is parsed strictly, its
 * Host must be the tunnel's, it is judged with its method and written anew, with the credential,
 * and only then the server is dialled, its certificate checked and the request sent. So the
 * policy's methods hold inside such a tunnel, and the tunnel itself needs no "CONNECT" in them.
 *
 *   CONNECT, SOCKS, carried -> TLS_CLIENT -> HTTP <-> DIALING (-> UPSTREAM) -> TLS_SERVER
 *
 * A server whose certificate is not accepted is answered for with a 502 inside the client's TLS. A
 * client that asks for another host than the tunnel's by SNI is refused with an alert.
 *
 * Must not: touch a connection to a place that no rule names, or send a byte to a server before its
 * certificate was accepted.
 */
#ifndef CODESPACE_PROXY_INTERCEPT_H
#define CODESPACE_PROXY_INTERCEPT_H

#include "proxy/conn.h"

/* Intercepted connections at one time: each holds the state of two TLS sessions, about 100 KiB
 * while it works. */
#define INTERCEPT_CONNECTIONS_MAX 1024

/* Is c->target a place whose TLS is ended here? */
bool intercept_is_for(const struct conn *c);

/* Instead of dialling c->target, which was judged as a tunnel: be the server. */
enum conn_step intercept_start(struct conn *c);

/* The dial for a request has ended, or the operator's proxy has let us through: speak TLS. */
void intercept_dialed(struct conn *c, enum dial_result result);
enum conn_step intercept_secure(struct conn *c);

/* The connection is over. */
void intercept_stop(struct conn *c);

/* The server's handshake took too long. */
void intercept_too_slow(struct conn *c);

enum conn_step intercept_step_client(struct conn *c);
enum conn_step intercept_step_server(struct conn *c);

#endif
