/* core/version: see version.h. */
#include "core/version.h"

#include "base/mem.h"

#include <errno.h>
#include <nettle/sha2.h>
#include <string.h>
#include <unistd.h>

#define PREFIX "sha256:"
#define DIGEST_LEN SHA256_DIGEST_SIZE
/* What version_of_fd reads at a time: large enough to hide the system call. */
#define CHUNK (64u << 10)

static void write_version(const unsigned char digest[DIGEST_LEN], char ret[FILES_VERSION_LEN])
{
    static const char hex[] = "0123456789abcdef";
    memcpy(ret, PREFIX, strlen(PREFIX));
    char *at = ret + strlen(PREFIX);
    for (size_t i = 0; i < DIGEST_LEN; i++) {
        *at++ = hex[digest[i] >> 4];
        *at++ = hex[digest[i] & 15];
    }
    *at = '\0';
}

void version_begin(struct version_hash *h)
{
    struct sha256_ctx *ctx = mem_zalloc(1, sizeof(*ctx));
    sha256_init(ctx);
    h->ctx = ctx;
}

void version_add(struct version_hash *h, const void *bytes, size_t n)
{
    sha256_update(h->ctx, n, bytes);
}

void version_end(struct version_hash *h, char ret[FILES_VERSION_LEN])
{
    unsigned char digest[DIGEST_LEN];
    sha256_digest(h->ctx, sizeof(digest), digest);
    free(steal(h->ctx));
    write_version(digest, ret);
}

void version_of(const void *bytes, size_t n, char ret[FILES_VERSION_LEN])
{
    unsigned char digest[DIGEST_LEN];
    struct sha256_ctx ctx;
    sha256_init(&ctx);
    sha256_update(&ctx, n, bytes);
    sha256_digest(&ctx, sizeof(digest), digest);
    write_version(digest, ret);
}

int version_of_fd(int fd, char ret[FILES_VERSION_LEN])
{
    char chunk[CHUNK];
    struct version_hash h;
    version_begin(&h);
    ssize_t n = 0;
    while ((n = read(fd, chunk, sizeof(chunk))) > 0 || (n < 0 && errno == EINTR)) {
        if (n > 0)
            version_add(&h, chunk, (size_t)n);
    }
    int error = n < 0 ? -errno : 0;
    char version[FILES_VERSION_LEN];
    version_end(&h, version);
    if (error == 0)
        memcpy(ret, version, sizeof(version));
    return error;
}

bool version_valid(const char *version)
{
    size_t prefix = strlen(PREFIX);
    return strncmp(version, PREFIX, prefix) == 0 && strlen(version) == FILES_VERSION_LEN - 1 &&
           strspn(version + prefix, "0123456789abcdef") == (size_t)DIGEST_LEN * 2;
}
