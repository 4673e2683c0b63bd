/* mcp/approval_gate: where a call waits for a person.
 *
 * Theory. A tool that changes something comes here when its arguments are good and policy allows
 * it, before it takes or changes anything. Three ways on:
 *   - nobody is to be asked: the tool goes on at once;
 *   - the call is one that was held and granted (mcp/approval_run made it): the hold is marked as
 *     started, durably, and the tool goes on;
 *   - a person is to be asked: the call becomes a hold in the ledger and is answered
 *     APPROVAL_REQUIRED with its id. If the client declared that it can ask a person (elicitation)
 *     it is asked first, in its era's way; when that person allows it, the held call is run like
 *     any other and its answer is the answer.
 * The same call made again meets the same hold. What decides is the operator's side alone: nothing
 * in the arguments is looked at but what the tool itself reads. The answer of a person counts for
 * the hold that was shown and no other: it is found by the question's own id (legacy), or by a
 * sealed state whose hold must be for this very call (modern).
 *
 * declined means denied, for good: a person said no. A question that was dismissed, or answered
 * with anything else, leaves the hold pending.
 *
 * Must not: run anything itself, or ask the ledger on the loop.
 */
#ifndef CODESPACE_MCP_APPROVAL_GATE_H
#define CODESPACE_MCP_APPROVAL_GATE_H

#include "core/approvals.h"
#include "mcp/request.h"

/* How long a call waits for a person's answer before it is answered APPROVAL_REQUIRED. */
#define APPROVAL_ASK_MS (30u * 60 * 1000)

/* `go` runs when the call may go on; else it has been answered, or will be. Once a call. */
void approval_gate(struct request *rq, const struct workspace *ws, enum approval_tool tool,
                   request_fn go);

/* The hold by which this call was granted, for its record in the ledger; NULL = none. Any thread,
 * while the call lives. */
const char *approval_of(const struct request *rq);

/* For mcp/request: the call ends. */
void approval_gate_end(struct request *rq);

/* ---- for mcp/tool_approvals ---- */

/* Hold the call of `tool` with these arguments: only what the tool reads of them is kept. Blocks on
 * the ledger. As approvals_create(). */
struct tool;
int approval_hold(struct ledger *l, const struct tool *t, enum approval_tool tool,
                  const char *workspace_id, struct json_object *args, struct approval *ret,
                  struct err *e);

/* Answer with an error that names the hold. */
void approval_fail(struct request *rq, const struct err *e, const char *approval_id);

#endif
