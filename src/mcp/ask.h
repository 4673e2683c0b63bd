/* mcp/ask: our questions to a legacy client: sampling/createMessage, elicitation/create,
 * roots/list.
 *
 * Theory. A question belongs to a call and goes where its answer will go; the client's response
 * comes in as a message of its own and is found by the id. Modern clients are never asked this way:
 * a call answers input_required instead (mcp/inputs).
 *
 * Must not: ask what the client did not declare that it can do.
 */
#ifndef CODESPACE_MCP_ASK_H
#define CODESPACE_MCP_ASK_H

#include "mcp/session.h"

/* Questions that one session may have open. */
#define ASK_MAX 64u

/* `result` is NULL when the client answered with an error. The call must be ended from there on. */
typedef void (*ask_fn)(struct request *rq, struct json_object *result);

/* Does the client have that capability ("sampling", "elicitation", "roots")? Of both eras. */
bool ask_client_has(const struct request *rq, const char *capability);

/* What it said of it: an object, or NULL. */
struct json_object *ask_client_capability(const struct request *rq, const char *capability);

/* Answer that the client did not declare what the call needs. Frees the request. */
void ask_refuse(struct request *rq, const char *capability);

/* Send the question. False: it cannot be sent, `done` will not be called. `params` is JSON text. */
bool ask_client(struct request *rq, const char *method, const char *params, ask_fn done);

/* A response came in. Unknown ones are ignored. */
void ask_answered(struct session *s, const struct rpc_message *m, struct json_object *message);

/* Does the call wait for the client's answer? */
bool ask_waits(struct session *s, const struct request *rq);

/* The call ends: nobody waits for its questions any more. */
void ask_drop(struct session *s, const struct request *rq);

#endif
