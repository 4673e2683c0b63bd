/* proxy/credential: headers that the operator's side adds and the client never sees.
 *
 * Theory. The values come once, at the start, by a descriptor of their own, and stay in this
 * process, which nothing inside can look into. They go out in one place only: the head of an HTTP
 * request, judged and allowed, to exactly the host and port of the rule, in place of a header of
 * that name that the client wrote: in plain HTTP, or, when the rule says so, in TLS that is ended
 * here (proxy/intercept), never in the other of the two. Not into a tunnel, not to a server of the
 * sandbox's own, not with TRACE, whose answer is the request. A redirect is a new request to
 * another host.
 *
 * A server that shows requests to whoever asks shows these, too; nothing here can know that.
 * Must not: let a value into an answer, an event or the log.
 */
#ifndef CODESPACE_PROXY_CREDENTIAL_H
#define CODESPACE_PROXY_CREDENTIAL_H

#include "proxy/conn.h"

/* Everything of *fd, which is closed. Errors: CONFIG_INVALID without any value. */
int credential_read(int *fd, struct inject_rules *ret, struct err *e);

/* The client's headers for the server (as http1_copy_headers()), and ours for c->target. */
void credential_put_headers(const struct conn *c, const struct http1_head *h, struct buf *out);

#endif
