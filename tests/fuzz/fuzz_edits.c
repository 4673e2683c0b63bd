/* tests/fuzz/fuzz_edits: an exact edit from outside against a file from outside.
 *
 * Input: a byte for the count, then file, old and new with "\n====\n" between. What must hold: no
 * fault; a refusal says why; what applies has the length that the counts say, and the reverse edit
 * of a replacement that does not occur in the file gives the file back.
 */
#include "base/mem.h"
#include "core/edits.h"

#include <stdint.h>
#include <string.h>

#define SEPARATOR "\n====\n"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct piece {
    const char *at;
    size_t len;
};

static struct piece take(const char **at, const char *end)
{
    const char *cut = memmem(*at, (size_t)(end - *at), SEPARATOR, strlen(SEPARATOR));
    struct piece p = {*at, (size_t)((cut != NULL ? cut : end) - *at)};
    *at = cut != NULL ? cut + strlen(SEPARATOR) : end;
    return p;
}

static void try_reverse(const struct patch_edit *edit, struct piece file, const struct buf *out)
{
    struct patch_edit back = {.path = "f",
                              .old = edit->replacement,
                              .old_len = edit->replacement_len,
                              .replacement = edit->old,
                              .replacement_len = edit->old_len,
                              .count = edit->count};
    autobuf again = BUF_INIT;
    struct err e = {0};
    /* Neighbours may make up further places, so the reverse may be refused; when it applies to
     * one place that was made, it is the way back. */
    if (edit->count != 1 || back.old_len == 0 || memmem(file.at, file.len, back.old, back.old_len))
        return;
    if (edit_apply("f", buf_bytes(out), out->len, &back, &again, &e) == 0 &&
        again.len == file.len && out->len == back.old_len)
        ensure(memcmp(buf_bytes(&again), file.at, file.len) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    const char *at = (const char *)data + 1;
    const char *end = (const char *)data + size;
    struct piece file = take(&at, end);
    struct piece old = take(&at, end);
    struct patch_edit edit = {.path = "f",
                              .old = old.at,
                              .old_len = old.len,
                              .replacement = at,
                              .replacement_len = (size_t)(end - at),
                              .count = data[0] % 4u};
    autobuf out = BUF_INIT;
    struct err e = {0};
    if (edit_apply("f", file.at, file.len, &edit, &out, &e) < 0) {
        ensure(e.code != ERR_NONE && e.message[0] != '\0' && out.len == 0);
        return 0;
    }
    size_t count = edit.count == 0 ? 1 : edit.count;
    ensure(out.len == file.len - count * edit.old_len + count * edit.replacement_len);
    try_reverse(&edit, file, &out);
    return 0;
}
