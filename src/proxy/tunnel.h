/* proxy/tunnel: connections whose bytes are not ours to understand: CONNECT, SOCKS, carried ones.
 *
 * Of a tunnel's bytes only the first are looked at (proxy/sniff): the name in a TLS hello or an
 * HTTP request is compared with the name that was judged (C10: a tunnel to one name that talks to
 * another behind the same address). Half-close passes through in both directions.
 */
#ifndef CODESPACE_PROXY_TUNNEL_H
#define CODESPACE_PROXY_TUNNEL_H

#include "proxy/conn.h"

enum conn_step tunnel_step_greeting(struct conn *c);
enum conn_step tunnel_step_request(struct conn *c);
enum conn_step tunnel_step_upstream(struct conn *c);
enum conn_step tunnel_step(struct conn *c);

/* The dial of a tunnel has ended. */
void tunnel_dialed(struct conn *c, enum dial_result result);
/* Tell the client that its tunnel stands, in the way that it asked. */
void tunnel_answer(struct conn *c);
/* Both ends are connected and the answer, if any, is in the client's output: carry. */
enum conn_step tunnel_start(struct conn *c);

#endif
