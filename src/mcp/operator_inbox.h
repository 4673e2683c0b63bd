/* mcp/operator_inbox: works and their instructions, as the operator reads and writes them over
 * HTTP. On the pool, but for the one that says otherwise. */
#ifndef CODESPACE_MCP_OPERATOR_INBOX_H
#define CODESPACE_MCP_OPERATOR_INBOX_H

#include "mcp/operator_call.h"

int operator_inbox_works(struct http_operator_call *x);
int operator_inbox_work(struct http_operator_call *x);
int operator_inbox_intents(struct http_operator_call *x);
int operator_inbox_add(struct http_operator_call *x);
int operator_inbox_edit(struct http_operator_call *x);
int operator_inbox_queue(struct http_operator_call *x);
int operator_inbox_cancel(struct http_operator_call *x);
int operator_inbox_reorder(struct http_operator_call *x);
/* A stop: finds whose processes end; then, on the loop, they are ended, and a notice is left. */
int operator_inbox_stop(struct http_operator_call *x);
void operator_inbox_stop_processes(struct http_operator_call *x);

#endif
