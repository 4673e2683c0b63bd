/* wire/rpc: the JSON-RPC 2.0 envelope.
 *
 * Theory. A message is told apart by its members: a method and an id is a request, a method alone
 * a notification, an id with a result or an error a response. The id is kept as the JSON text that
 * the answer echoes ("1" and 1 differ by their quotes), so type and 64-bit value survive and one
 * comparison of bytes tells whether two ids are the same. Pure; borrows from the parsed document.
 *
 * Must not: accept an id that cannot be echoed exactly (null, fractions, huge strings), or look
 * into params.
 */
#ifndef CODESPACE_WIRE_RPC_H
#define CODESPACE_WIRE_RPC_H

#include "base/buf.h"
#include "base/err.h"

#include <json-c/json_object.h>
#include <stdbool.h>

/* Longest id as JSON text. UUIDs and counters need 40; every call in flight keeps its own. */
#define RPC_ID_MAX 255

struct rpc_id {
    unsigned len;              /* 0 = there is none */
    char text[RPC_ID_MAX + 1]; /* JSON text, NUL-terminated */
};

enum rpc_kind { RPC_REQUEST, RPC_NOTIFICATION, RPC_RESPONSE };

struct rpc_message {
    enum rpc_kind kind;
    struct rpc_id id;           /* of a request or a response */
    const char *method;         /* of a request or a notification */
    struct json_object *params; /* an object, or NULL when absent */
};

/* Read one parsed message. On failure ret->id alone is filled, as far as the id could be read, so
 * that the error goes to whoever asked. Errors: INVALID_REQUEST, or INVALID_PARAMS when params is
 * no object (the specification of MCP knows no others). */
int rpc_read(struct json_object *obj, struct rpc_message *ret, struct err *e);

bool rpc_id_equal(const struct rpc_id *a, const struct rpc_id *b);

/* Read an id that stands elsewhere (params.requestId). Errors: INVALID_REQUEST. */
int rpc_id_read(struct json_object *value, struct rpc_id *ret, struct err *e);

/* Append {"jsonrpc":"2.0","id":ID,"result": ; the caller appends the result and '}'. */
void rpc_write_result_head(struct buf *out, const struct rpc_id *id);

/* Append a whole error response; an empty id is written as null. */
void rpc_write_error(struct buf *out, const struct rpc_id *id, const struct err *e);

/* The same with a member `data`: n bytes of JSON text; none when n is 0. */
void rpc_write_error_data(struct buf *out, const struct rpc_id *id, const struct err *e,
                          const char *data, size_t n);

#endif
