/* base/encode64: bytes as base64 (RFC 4648, section 4, with its padding).
 *
 * Theory. Output that is no text goes through here by the gibibyte. Where the processor can shuffle
 * bytes (SSSE3, asked for at run time) twelve become sixteen without a table; elsewhere three
 * become four. Both give the same.
 *
 * Must not: allocate. The caller gives the room.
 */
#ifndef CODESPACE_BASE_ENCODE64_H
#define CODESPACE_BASE_ENCODE64_H

#include <stddef.h>

/* Characters that n bytes become. */
#define ENCODE64_LEN(n) (((n) + 2) / 3 * 4)

/* Write ENCODE64_LEN(n) characters to `to`; their end. */
char *encode64(char *to, const void *bytes, size_t n);

/* For tests: never use SSSE3 in this process from now on. */
void encode64_force_plain(void);

#endif
