/* base/escape: bytes as the inside of a JSON string.
 *
 * Theory. Every answer is escaped twice: content becomes a string of a JSON text, and that text
 * becomes a string again, since clients read either form. Source code holds something to escape
 * every dozen bytes, in no order that a processor could foresee, so a loop that branches at each of
 * them spends its time on wrong guesses: half of a 1 MiB read. Where the processor can shuffle
 * bytes (SSSE3, asked for at run time) four bytes become their up to eight by a table, without a
 * branch; where it can close gaps in a vector (AVX-512 VBMI2) thirty-two bytes, each with a
 * backslash before it, lose those backslashes that nobody needs; elsewhere runs of plain bytes are
 * copied (base/scan) and the rest is done byte by byte. All give the same bytes.
 *
 * Must not: allocate. The caller gives the room.
 */
#ifndef CODESPACE_BASE_ESCAPE_H
#define CODESPACE_BASE_ESCAPE_H

#include <stdbool.h>
#include <stddef.h>

/* Room that n bytes may need: \u00XX for each, and what is written beyond the end and not kept. */
#define ESCAPE_ROOM(n) (6 * (n) + 16)
/* The same for JSON text of ours. */
#define ESCAPE_JSON_ROOM(n) (2 * (n) + 16)

/* Write the n bytes to `to` as the inside of a JSON string; the end of what was written. What is
 * not UTF-8 becomes U+FFFD, a byte at a time; 0x7f and control characters are escaped. */
char *escape_bytes(char *to, const void *bytes, size_t n);

/* The same for JSON text that we wrote: valid UTF-8 without control characters, so only quotes and
 * backslashes need a backslash. */
char *escape_json(char *to, const void *json, size_t n);

enum escape_way { ESCAPE_PLAIN, ESCAPE_SSSE3, ESCAPE_VBMI2 };

/* For tests: no better way than that in this process from now on. False: this processor cannot go
 * that way, so what is used is a lesser one. */
bool escape_force(enum escape_way most);

#endif
