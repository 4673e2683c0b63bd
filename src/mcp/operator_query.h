/* mcp/operator_query: what a request of the operator carries beside its path.
 *
 * Theory. A query of a few names with plain numbers, and a body that is one JSON object read by the
 * route's table. Ids of ours need no decoding, so nothing is decoded. Pure.
 *
 * Must not: take a name that it does not know.
 */
#ifndef CODESPACE_MCP_OPERATOR_QUERY_H
#define CODESPACE_MCP_OPERATOR_QUERY_H

#include "base/err.h"
#include "core/registry.h"
#include "wire/json.h"

#include <stdbool.h>
#include <stdint.h>

/* Bytes of a body: the longest instruction, escaped. */
#define HTTP_OPERATOR_BODY_MAX (1u << 20)

struct operator_query {
    char workspace_id[REGISTRY_ID_MAX + 1]; /* "" = all */
    uint64_t all, limit, before, offset;
};

struct operator_body {
    struct json_object *message; /* what the rest borrows from; NULL = not read yet */
    bool given;                  /* there was one */
    const char *text, *reason;
    int kind, delivery;
    uint64_t revision;
    struct json_object *intent_ids;
};

/* `p` is what stands behind '?'. Errors: INVALID_ARGUMENT. */
int operator_query_read(struct operator_query *q, const char *p, size_t n, struct err *e);

/* By the rows of `in`; NULL = any object, which is kept. Errors: INVALID_ARGUMENT, LIMIT_EXCEEDED,
 * those of json_parse(). */
int operator_body_read(struct operator_body *b, const struct json_field *in, size_t n_in,
                       const char *text, size_t n, struct err *e);
void operator_body_fini(struct operator_body *b);

#endif
