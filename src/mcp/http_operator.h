/* mcp/http_operator: what the operator's side asks over HTTP: who may, and which paths there are.
 *
 *   GET   /operator/approvals            ?workspace_id &all=1 &limit &before     newest first
 *   GET   /operator/approvals/ID         one, with its arguments
 *   POST  /operator/approvals/ID/grant, .../deny
 *   GET   /operator/workspaces/ID/egress                                         the rules
 *   PUT   /operator/workspaces/ID/egress {egress of the configuration}
 *   GET   /inbox/works                   ?workspace_id &limit &before            newest first
 *   GET   /inbox/works/ID
 *   GET   /inbox/works/ID/intents        ?limit &offset
 *   POST  /inbox/works/ID/intents        {body, kind?, delivery?}
 *   POST  /inbox/works/ID/reorder        {intent_ids}
 *   POST  /inbox/works/ID/stop           {reason?}
 *   PATCH /inbox/intents/ID              {revision, body, delivery?}
 *   POST  /inbox/intents/ID/queue        {revision}
 *   POST  /inbox/intents/ID/cancel
 *
 * Theory. Who may make calls must not be able to grant them, so these paths take a token of their
 * own (--operator-token-file) and no other: the clients' token gets 403 here, and without an
 * operator's token there are no such paths. Host and Origin are checked as everywhere; a page of
 * another origin is never told that it may read an answer, whatever --allow-origin says. Lists are
 * arrays, a page at a time; `Link: <...>; rel="next"` leads on. A failure is {code, message}.
 * What a call does is in operator_approvals, operator_egress and operator_inbox; how it runs, in
 * operator_call.
 *
 * Must not: run anything, or open a work.
 */
#ifndef CODESPACE_MCP_HTTP_OPERATOR_H
#define CODESPACE_MCP_HTTP_OPERATOR_H

#include "mcp/http.h"

/* Is the path one of these? */
bool http_operator_is(const struct http1_head *h);

/* Before the body: 0 to go on, -1 when it has been answered. */
int http_operator_head(struct http_conn *c, const struct http1_head *h);

/* One whole request. */
void http_operator_route(struct http_conn *c, const struct http1_head *h, const char *body,
                         size_t n);

#endif
