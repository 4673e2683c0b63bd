/* core/seal: see seal.h. */
#include "core/seal.h"

#include <nettle/hmac.h>
#include <nettle/memops.h>
#include <stdio.h>
#include <string.h>

void seal_sign(const void *key, size_t key_len, const char *text, char ret_hex[SEAL_HEX + 1])
{
    unsigned char mac[SHA256_DIGEST_SIZE];
    struct hmac_sha256_ctx ctx;
    hmac_sha256_set_key(&ctx, key_len, key);
    hmac_sha256_update(&ctx, strlen(text), (const uint8_t *)text);
    hmac_sha256_digest(&ctx, sizeof(mac), mac);
    explicit_bzero(&ctx, sizeof(ctx));
    for (unsigned i = 0; i < sizeof(mac); i++)
        snprintf(ret_hex + 2 * i, 3, "%02x", mac[i]);
}

bool seal_equal(const void *a, const void *b, size_t n)
{
    return memeql_sec(a, b, n) != 0;
}
