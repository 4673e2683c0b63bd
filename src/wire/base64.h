/* wire/base64: bytes from base64 text (RFC 4648, the standard alphabet, padded). The writing side
 * is base/jsonw. Must not: accept blanks, a missing pad or bits that are set behind the end.
 */
#ifndef CODESPACE_WIRE_BASE64_H
#define CODESPACE_WIRE_BASE64_H

#include "base/buf.h"

/* Append what the n characters stand for. 0, or -EINVAL with `out` as it was. */
int base64_read(const char *text, size_t n, struct buf *out);

#endif
