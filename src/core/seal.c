/* core/seal: see seal.h. */
#include "core/seal.h"

#include "base/mem.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <string.h>

void seal_sign(const void *key, size_t key_len, const char *text, char ret_hex[SEAL_HEX + 1])
{
    unsigned char mac[EVP_MAX_MD_SIZE];
    unsigned n = 0;
    ensure(HMAC(EVP_sha256(), key, (int)key_len, (const unsigned char *)text, strlen(text), mac,
                &n) != NULL);
    ensure(n * 2 == SEAL_HEX);
    for (unsigned i = 0; i < n; i++)
        snprintf(ret_hex + 2 * i, 3, "%02x", mac[i]);
}

bool seal_equal(const void *a, const void *b, size_t n)
{
    return CRYPTO_memcmp(a, b, n) == 0;
}
