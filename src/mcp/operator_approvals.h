/* mcp/operator_approvals: held calls, as the operator lists and decides them over HTTP. All on the
 * pool. */
#ifndef CODESPACE_MCP_OPERATOR_APPROVALS_H
#define CODESPACE_MCP_OPERATOR_APPROVALS_H

#include "mcp/operator_call.h"

int operator_approvals_list(struct http_operator_call *x);
int operator_approvals_show(struct http_operator_call *x);
int operator_approvals_grant(struct http_operator_call *x);
int operator_approvals_deny(struct http_operator_call *x);

#endif
