/* core/seal: a text that goes out and comes back must be the one that went out.
 *
 * HMAC-SHA256 as hexadecimal text, and a comparison that does not tell by its time where two
 * strings differ. Must not: hide anything; a signed text can be read by whoever holds it.
 */
#ifndef CODESPACE_CORE_SEAL_H
#define CODESPACE_CORE_SEAL_H

#include <stdbool.h>
#include <stddef.h>

#define SEAL_HEX 64u

/* Write the signature of `text` under the key, NUL-terminated. */
void seal_sign(const void *key, size_t key_len, const char *text, char ret_hex[SEAL_HEX + 1]);

/* Are the n bytes the same? */
bool seal_equal(const void *a, const void *b, size_t n);

#endif
