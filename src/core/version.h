/* core/version: the version of a file, "sha256:" and the hex digest of its bytes.
 *
 * Theory. A version names content, not time: a client that read a file can say "only if it is still
 * that" (expected_versions), and two readers agree without sharing anything. nettle does the
 * hashing with the CPU's instructions, and needs nothing made ready first.
 *
 * Must not: be used for secrets or as a signature.
 */
#ifndef CODESPACE_CORE_VERSION_H
#define CODESPACE_CORE_VERSION_H

#include <stdbool.h>
#include <stddef.h>

/* "sha256:" and 64 hex digits and a NUL. */
#define FILES_VERSION_LEN 72

/* A hash that is fed piece by piece. */
struct version_hash {
    void *ctx;
};

/* Start; every start needs one end. */
void version_begin(struct version_hash *h);
void version_add(struct version_hash *h, const void *bytes, size_t n);
void version_end(struct version_hash *h, char ret[FILES_VERSION_LEN]);

/* All in one call; the fast way for bytes in memory. */
void version_of(const void *bytes, size_t n, char ret[FILES_VERSION_LEN]);

/* The version of what fd still gives, in flat memory. 0 or -errno. */
int version_of_fd(int fd, char ret[FILES_VERSION_LEN]);

/* True for text that this module could have written. */
bool version_valid(const char *version);

#endif
