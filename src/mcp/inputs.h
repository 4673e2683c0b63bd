/* mcp/inputs: asking a modern client for input in the middle of a call.
 *
 * Theory. The modern era has no questions of a server: a call ends with "input_required", names
 * what it needs by keys, and the client sends the same call again with the answers. What must be
 * remembered meanwhile goes to the client and back as requestState. That is text from outside when
 * it comes in, so it is sealed: the state, the time it is good for, and what it was given for,
 * under a key that this process made at random. A state that was changed, is old, or belongs to
 * another call is an error and never read.
 *
 * Must not: put a secret into the state (it is signed, not hidden), or ask for what the client did
 * not declare.
 */
#ifndef CODESPACE_MCP_INPUTS_H
#define CODESPACE_MCP_INPUTS_H

#include "mcp/request.h"

/* A person may take a while to answer. */
#define INPUTS_STATE_MS (30u * 60 * 1000)
#define INPUTS_STATE_MAX 4096u

/* The client's answer under that key, an object, or NULL. */
struct json_object *inputs_get(const struct request *rq, const char *key);

/* Answer "input_required". `requests` is a JSON object (key -> {method, params}) or NULL, `state` a
 * text to get back or NULL; one of both at least. Frees the request. */
void inputs_require(struct request *rq, const char *requests, const char *state);

/* The state that came back. 0: *ret is it (caller frees), or NULL when there was none.
 * -1: INVALID_PARAMS. */
int inputs_state(const struct request *rq, char **ret, struct err *e);

#endif
