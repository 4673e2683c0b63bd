/* base/jsonw: JSON out, streamed into a buf.
 *
 * Theory. Answers are the hot path, so there is no tree: calls append text, and a stack of bits
 * remembers whether a comma is due. Strings are always valid JSON: bytes that are not UTF-8 become
 * U+FFFD, so a caller that must not lose bytes sends base64 instead. Output is one line: no
 * newline is ever written, because MCP over stdio ends a message with one.
 *
 * Must not: be used to build a document in an order that is not well formed; that is our bug and
 * aborts.
 */
#ifndef CODESPACE_BASE_JSONW_H
#define CODESPACE_BASE_JSONW_H

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

/* Deepest nesting that we write ourselves; a bit each. */
#define JSONW_DEPTH_MAX 60

struct jsonw {
    struct buf *out;
    uint64_t has_item; /* bit d: the container at depth d has an item already */
    unsigned depth;
    bool after_key;
};

/* Write into `out` (borrowed). */
void jsonw_init(struct jsonw *w, struct buf *out);

void jsonw_object(struct jsonw *w);
void jsonw_object_end(struct jsonw *w);
void jsonw_array(struct jsonw *w);
void jsonw_array_end(struct jsonw *w);

/* A key of the current object; the value follows. Keys are ours and need no escaping. */
void jsonw_key(struct jsonw *w, const char *key);

void jsonw_str(struct jsonw *w, const char *s); /* NULL writes null */
void jsonw_strn(struct jsonw *w, const void *bytes, size_t n);
void jsonw_base64(struct jsonw *w, const void *bytes, size_t n);
void jsonw_int(struct jsonw *w, int64_t v);
void jsonw_uint(struct jsonw *w, uint64_t v);
void jsonw_double(struct jsonw *w, double v); /* not finite writes null */
void jsonw_bool(struct jsonw *w, bool v);
void jsonw_null(struct jsonw *w);

/* A value that is JSON text already (ours, or checked by wire/json). No newline inside. */
void jsonw_raw(struct jsonw *w, const char *json, size_t n);

/* key and value in one call. */
void jsonw_kstr(struct jsonw *w, const char *key, const char *s);
void jsonw_kint(struct jsonw *w, const char *key, int64_t v);
void jsonw_kuint(struct jsonw *w, const char *key, uint64_t v);
void jsonw_kbool(struct jsonw *w, const char *key, bool v);

/* Append the escaped form of n bytes, without quotes. For text inside a JSON string. */
void jsonw_escape(struct buf *out, const void *bytes, size_t n);

#endif
