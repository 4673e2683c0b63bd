/* tests/fuzz/fuzz_v4a: a patch text from outside against a file from outside.
 *
 * Input: the file's bytes, "\n====\n", the patch text. Without the separator all is patch text.
 * What must hold: no fault; a patch that only has context lines changes nothing; applying twice
 * gives the same as applying once (the result depends on nothing else).
 */
#include "base/mem.h"
#include "core/v4a.h"

#include <stdint.h>
#include <string.h>

#define SEPARATOR "\n====\n"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool only_context(const struct patch_section *s)
{
    for (size_t i = 0; i < s->n; i++) {
        for (size_t k = 0; k < s->hunks[i].n; k++) {
            if (s->hunks[i].lines[k].op != ' ')
                return false;
        }
    }
    return true;
}

static int apply(const struct patch_section *s, const char *file, size_t n, struct buf *out)
{
    uint64_t work = 0;
    bool fuzzy = false;
    struct err e = {0};
    return hunks_apply("f", file, n, s->hunks, s->n, out, &work, &fuzzy, &e);
}

static void try_section(const struct patch_section *s, const char *file, size_t n)
{
    autobuf once = BUF_INIT;
    autobuf again = BUF_INIT;
    if (apply(s, file, n, &once) < 0)
        return;
    ensure(apply(s, file, n, &again) == 0);
    ensure(once.len == again.len && memcmp(buf_bytes(&once), buf_bytes(&again), once.len) == 0);
    if (only_context(s))
        ensure(once.len == n && memcmp(buf_bytes(&once), file, n) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *file = (const char *)data;
    const char *cut = memmem(data, size, SEPARATOR, strlen(SEPARATOR));
    const char *patch = cut != NULL ? cut + strlen(SEPARATOR) : file;
    size_t n_file = cut != NULL ? (size_t)(cut - file) : 0;
    struct patch_doc d = {0};
    struct err e = {0};
    if (v4a_parse(patch, size - (size_t)(patch - file), &d, &e) < 0) {
        ensure(e.code != ERR_NONE && e.message[0] != '\0');
        return 0;
    }
    for (size_t i = 0; i < d.n; i++) {
        if (d.sections[i].kind == PATCH_UPDATE || d.sections[i].kind == PATCH_MOVE)
            try_section(&d.sections[i], file, n_file);
    }
    patch_doc_fini(&d);
    return 0;
}
