/* tests/fuzz/fuzz_udiff: a unified diff from outside against a file from outside.
 *
 * Input: the file's bytes, "\n====\n", the diff. Without the separator all is diff. What must hold:
 * no fault; a diff that is refused says why; what applies gives the same a second time; and the
 * difference of before and after, written by core/diffout, is read back and gives the same bytes.
 */
#include "base/mem.h"
#include "core/diffout.h"
#include "core/exact.h"
#include "core/linediff.h"
#include "core/udiff.h"

#include <stdint.h>
#include <string.h>

#define SEPARATOR "\n====\n"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int apply(const struct patch_section *s, const char *file, size_t n, struct buf *out)
{
    uint64_t work = 0;
    bool fuzzy = false;
    struct err e = {0};
    int rc = exact_or_tolerant("f", file, n, s->hunks, s->n, out, &work, &fuzzy, &e);
    ensure(rc == 0 || (e.code != ERR_NONE && e.message[0] != '\0'));
    return rc;
}

static void expect_same(const struct buf *a, const struct buf *b)
{
    ensure(a->len == b->len && memcmp(buf_bytes(a), buf_bytes(b), a->len) == 0);
}

static void write_and_read(const char *file, size_t n, const struct buf *after)
{
    struct diff_side old = {"f", {file, n}, 0};
    struct diff_side new = {"f", {buf_bytes(after), after->len}, 0};
    uint64_t budget = LINEDIFF_WORK_MAX;
    autobuf text = BUF_INIT;
    autobuf again = BUF_INIT;
    struct patch_doc d = {0};
    if (diffout_write(&text, &old, &new, PATCH_DIFF_MAX, &budget) < 0 || text.len == 0)
        return;
    ensure(udiff_parse(buf_bytes(&text), text.len, PATCH_STRIP_AUTO, &d, NULL) == 0);
    ensure(apply(&d.sections[0], file, n, &again) == 0);
    expect_same(&again, after);
    patch_doc_fini(&d);
}

static void try_section(const struct patch_section *s, const char *file, size_t n)
{
    autobuf once = BUF_INIT;
    autobuf again = BUF_INIT;
    if (apply(s, file, n, &once) < 0)
        return;
    ensure(apply(s, file, n, &again) == 0);
    expect_same(&once, &again);
    write_and_read(file, n, &once);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *file = (const char *)data;
    const char *cut = memmem(data, size, SEPARATOR, strlen(SEPARATOR));
    const char *patch = cut != NULL ? cut + strlen(SEPARATOR) : file;
    size_t n_file = cut != NULL ? (size_t)(cut - file) : 0;
    struct patch_doc d = {0};
    struct err e = {0};
    if (udiff_parse(patch, size - (size_t)(patch - file), PATCH_STRIP_AUTO, &d, &e) < 0) {
        ensure(e.code != ERR_NONE && e.message[0] != '\0');
        return 0;
    }
    for (size_t i = 0; i < d.n; i++) {
        ensure(d.sections[i].path != NULL && d.sections[i].path[0] != '\0');
        if (d.sections[i].n > 0)
            try_section(&d.sections[i], file, n_file);
    }
    patch_doc_fini(&d);
    return 0;
}
