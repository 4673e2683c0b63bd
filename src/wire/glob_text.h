/* wire/glob_text: the text of a pattern: is it well formed, and what do its braces stand for.
 *
 * The check runs over the pattern as it was written, so that every error has the position that its
 * author sees. Must not: be used by others than wire/glob.
 */
#ifndef CODESPACE_WIRE_GLOB_TEXT_H
#define CODESPACE_WIRE_GLOB_TEXT_H

#include "base/err.h"
#include "base/str.h"

#include <stddef.h>

/* Errors: INVALID_ARGUMENT, LIMIT_EXCEEDED. */
int glob_text_check(const char *pattern, struct err *e);

/* The index after the element (escaped character, set or plain byte) that begins at s[i]. Only for
 * text that was checked. */
size_t glob_text_skip(const char *s, size_t i);

/* Append the pattern with its braces multiplied out. Only for text that was checked. */
int glob_text_expand(const char *pattern, struct strv *ret, struct err *e);

#endif
