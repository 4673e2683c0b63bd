/* base/utf8: which bytes are characters (RFC 3629: no overlong forms, no surrogates, at most
 * U+10FFFF). Pure functions. Must not: normalise or change case.
 */
#ifndef CODESPACE_BASE_UTF8_H
#define CODESPACE_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* Length 1..4 of the character that starts at p, or 0 when the n bytes there are not a whole valid
 * one. n == 0 gives 0. */
size_t utf8_char_len(const unsigned char *p, size_t n);

/* True when all n bytes are whole valid characters. */
bool utf8_valid(const void *bytes, size_t n);

/* The length of the longest prefix of the n bytes that does not cut a character in two. Bytes that
 * are not UTF-8 count as characters of their own, so at most 3 bytes are held back, and only when
 * they are the beginning of a valid character. */
size_t utf8_whole_prefix(const void *bytes, size_t n);

#endif
