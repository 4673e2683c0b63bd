/* core/edits: see edits.h. */
#include "core/edits.h"

#include "base/mem.h"
#include "core/lines.h"

#include <inttypes.h>
#include <string.h>

/* Bytes of a line that a message shows. */
#define SHOWN 80

static uint64_t wanted(const struct patch_edit *edit)
{
    return edit->count == 0 ? 1 : edit->count;
}

static const char *find(const char *at, const char *end, const struct patch_edit *edit)
{
    return memmem(at, (size_t)(end - at), edit->old, edit->old_len);
}

static uint64_t count_places(const char *bytes, size_t n, const struct patch_edit *edit)
{
    uint64_t count = 0;
    for (const char *at = bytes; (at = find(at, bytes + n, edit)) != NULL; at += edit->old_len)
        count++;
    return count;
}

/* ---- messages ---- */

static size_t line_of(const char *bytes, const char *at)
{
    size_t line = 1;
    while ((bytes = memchr(bytes, '\n', (size_t)(at - bytes))) != NULL) {
        bytes++;
        line++;
    }
    return line;
}

/* Would it occur if its lines ended as the file's do? */
static bool only_endings_differ(const char *bytes, size_t n, const struct patch_edit *edit)
{
    autobuf b = BUF_INIT;
    for (size_t i = 0; i < edit->old_len; i++) {
        char c = edit->old[i];
        bool cr = i > 0 && edit->old[i - 1] == '\r';
        if (c == '\n' && !cr)
            buf_putc(&b, '\r');
        buf_putc(&b, c);
    }
    return b.len != edit->old_len && memmem(bytes, n, buf_bytes(&b), b.len) != NULL;
}

static void quote(struct buf *b, struct text t)
{
    buf_putc(b, '"');
    for (size_t i = 0; i < t.len && i < SHOWN; i++) {
        unsigned char c = (unsigned char)t.at[i];
        if (c >= 0x20 && c < 0x7f)
            buf_putc(b, (char)c);
        else
            buf_printf(b, "\\x%02x", c);
    }
    buf_puts(b, t.len > SHOWN ? "...\"" : "\"");
}

/* Append the first line in which the file at `near` differs from `old`. */
static void describe(struct buf *b, struct lines *file, struct lines *old, size_t near)
{
    for (size_t i = 0; i < old->n; i++) {
        struct text want = lines_text(old, i);
        if (near + i >= file->n) {
            buf_printf(b, "; the file ends where the edit has ");
            quote(b, want);
            return;
        }
        struct text have = lines_text(file, near + i);
        if (have.len == want.len && memcmp(have.at, want.at, want.len) == 0)
            continue;
        buf_printf(b, "; line %zu has ", near + i + 1);
        quote(b, have);
        buf_puts(b, " where the edit has ");
        quote(b, want);
        return;
    }
}

static void say_nearest(struct buf *b, const char *bytes, size_t n, const struct patch_edit *edit)
{
    struct lines file = {0};
    struct lines old = {0};
    if (lines_init(&file, bytes, n) == 0 && lines_init(&old, edit->old, edit->old_len) == 0 &&
        old.n > 0) {
        struct text *run = mem_zalloc(old.n, sizeof(struct text));
        for (size_t i = 0; i < old.n; i++)
            run[i] = lines_text(&old, i);
        size_t near = lines_nearest(&file, run, old.n);
        if (near != LINES_NONE) {
            buf_printf(b, "; the nearest place is line %zu", near + 1);
            describe(b, &file, &old, near);
        }
        free(run);
    }
    lines_fini(&file);
    lines_fini(&old);
}

static int say_missing(const char *path, const char *bytes, size_t n, const struct patch_edit *edit,
                       struct err *e)
{
    autobuf b = BUF_INIT;
    if (only_endings_differ(bytes, n, edit))
        buf_puts(&b, "; it does occur with CR LF for each LF: the file's lines end so");
    else
        say_nearest(&b, bytes, n, edit);
    return err_set(e, ERR_INVALID_PATCH,
                   "%s: `old` does not occur in the file%s. Read the file again and copy its bytes "
                   "exactly.",
                   path, buf_cstr(&b));
}

static int say_count(const char *path, const char *bytes, size_t n, const struct patch_edit *edit,
                     uint64_t count, struct err *e)
{
    const char *first = find(bytes, bytes + n, edit);
    const char *second = find(first + edit->old_len, bytes + n, edit);
    autobuf b = BUF_INIT;
    buf_printf(&b, "line %zu", line_of(bytes, first));
    if (second != NULL)
        buf_printf(&b, " and line %zu", line_of(bytes, second));
    return err_set(e, ERR_INVALID_PATCH,
                   "%s: `old` occurs %" PRIu64 " times (%s%s), not %" PRIu64
                   "; make it longer until it names the places you mean, or set count",
                   path, count, buf_cstr(&b), count > 2 ? ", ..." : "", wanted(edit));
}

/* ---- applying ---- */

static int check_size(const char *path, size_t n, const struct patch_edit *edit, struct err *e)
{
    uint64_t count = wanted(edit);
    uint64_t added = 0;
    if (!__builtin_mul_overflow(count, (uint64_t)edit->replacement_len, &added) &&
        added <= PATCH_FILE_MAX && n - count * edit->old_len + added <= PATCH_FILE_MAX)
        return 0;
    return err_set(e, ERR_LIMIT_EXCEEDED,
                   "%s would have more bytes than PATCH_FILE_MAX (%u); edit it with a command",
                   path, PATCH_FILE_MAX);
}

static int fill_empty(const char *path, size_t n, const struct patch_edit *edit, struct buf *out,
                      struct err *e)
{
    if (n > 0 || wanted(edit) != 1)
        return err_set(e, ERR_INVALID_PATCH,
                       "%s: `old` is empty, which only fits an empty or missing file, once; give "
                       "the bytes to replace",
                       path);
    buf_put(out, edit->replacement, edit->replacement_len);
    return 0;
}

int edit_apply(const char *path, const char *bytes, size_t n, const struct patch_edit *edit,
               struct buf *out, struct err *e)
{
    if (edit->old_len == 0)
        return fill_empty(path, n, edit, out, e);
    uint64_t count = count_places(bytes, n, edit);
    if (count == 0)
        return say_missing(path, bytes, n, edit, e);
    if (count != wanted(edit))
        return say_count(path, bytes, n, edit, count, e);
    if (check_size(path, n, edit, e) < 0)
        return -1;
    const char *from = bytes;
    for (const char *at = bytes; (at = find(at, bytes + n, edit)) != NULL; from = at) {
        buf_put(out, from, (size_t)(at - from));
        buf_put(out, edit->replacement, edit->replacement_len);
        at += edit->old_len;
    }
    buf_put(out, from, (size_t)(bytes + n - from));
    return 0;
}
