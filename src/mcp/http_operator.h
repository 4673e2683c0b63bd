/* mcp/http_operator: what the operator's side asks over HTTP: approvals, and the inbox of works.
 *
 *   GET   /operator/approvals            ?workspace_id &all=1 &limit &before      newest first
 *   GET   /operator/approvals/ID         one, with its arguments
 *   POST  /operator/approvals/ID/grant, .../deny
 *   GET   /operator/workspaces/ID/egress                                          the rules in
 * force PUT   /operator/workspaces/ID/egress {egress of the configuration} GET   /inbox/works
 * ?workspace_id &limit &before             newest first GET   /inbox/works/ID GET
 * /inbox/works/ID/intents        ?limit &offset POST  /inbox/works/ID/intents        {body, kind?,
 * delivery?} POST  /inbox/works/ID/reorder        {intent_ids} POST  /inbox/works/ID/stop {reason?}
 *   PATCH /inbox/intents/ID              {revision, body, delivery?}
 *   POST  /inbox/intents/ID/queue        {revision}
 *   POST  /inbox/intents/ID/cancel
 *
 * Theory. Who may make calls must not be able to grant them, so these paths take a token of their
 * own (--operator-token-file) and no other: the clients' token gets 403 here, and without an
 * operator's token there are no such paths. Host and Origin are checked as everywhere; a page of
 * another origin is never told that it may read an answer, whatever --allow-origin says. Lists are
 * arrays, a page at a time; `Link: <...>; rel="next"` leads on. A failure is {code, message}.
 *
 * New rules of egress count for commands that start from then on: a warm sandbox with the old ones
 * takes no more. Commands that run keep theirs to their end, and the answer names the
 * first RUN_LIST_MAX of them. The configuration file is not changed.
 *
 * Every other call is one question to the ledger on the pool; one runs to its end though its client
 * has gone, since it may have been told so already.
 *
 * Must not: run anything, or open a work.
 */
#ifndef CODESPACE_MCP_HTTP_OPERATOR_H
#define CODESPACE_MCP_HTTP_OPERATOR_H

#include "mcp/http.h"

/* Bytes of a body: the longest instruction, escaped. */
#define HTTP_OPERATOR_BODY_MAX (1u << 20)
/* Calls that are being worked on. */
#define HTTP_OPERATOR_CALLS_MAX 64u

/* Is the path one of these? */
bool http_operator_is(const struct http1_head *h);

/* Before the body: 0 to go on, -1 when it has been answered. */
int http_operator_head(struct http_conn *c, const struct http1_head *h);

/* One whole request. */
void http_operator_route(struct http_conn *c, const struct http1_head *h, const char *body,
                         size_t n);

/* Its connection has closed. */
void http_operator_lost(struct http_operator_call *x);

/* The server ends: give up what waits for the runner. */
void http_operator_drop(struct http_server *h);

#endif
