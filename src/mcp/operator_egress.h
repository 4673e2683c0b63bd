/* mcp/operator_egress: what a workspace's commands may reach, as the operator reads and replaces
 * it.
 *
 * Theory. New rules count for commands that start from then on, and are brought to those that run
 * (mcp/egress_change): the answer waits until each proxy has said that it obeys, and names the
 * commands for which that is so and those for which it is not. The configuration file is not
 * changed. All on the loop, which owns the registry.
 */
#ifndef CODESPACE_MCP_OPERATOR_EGRESS_H
#define CODESPACE_MCP_OPERATOR_EGRESS_H

#include "mcp/operator_call.h"

int operator_egress_show(struct http_operator_call *x);
/* Leaves the answer open, for operator_egress_bring(). */
int operator_egress_replace(struct http_operator_call *x);
/* To what runs; tells who has them, and ends the call. */
void operator_egress_bring(struct http_operator_call *x);

#endif
