/* base/buf: see buf.h. */
#include "base/buf.h"

#include "base/mem.h"

#include <stdio.h>
#include <string.h>

void buf_fini(struct buf *b)
{
    free(b->data);
    *b = (struct buf)BUF_INIT;
}

const char *buf_bytes(const struct buf *b)
{
    return b->data == NULL ? "" : b->data + b->start;
}

char *buf_reserve(struct buf *b, size_t n)
{
    if (b->data != NULL && b->cap - b->start - b->len >= n)
        return b->data + b->start + b->len;
    if (b->start > 0) {
        memmove(b->data, b->data + b->start, b->len);
        b->start = 0;
    }
    size_t want = 0;
    ensure(!__builtin_add_overflow(b->len, n, &want));
    void *data = b->data;
    mem_grow(&data, &b->cap, want < 64 ? 64 : want, 1);
    b->data = data;
    return b->data + b->len;
}

void buf_commit(struct buf *b, size_t n)
{
    ensure(b->cap - b->start - b->len >= n);
    b->len += n;
}

const char *buf_cstr(struct buf *b)
{
    *buf_reserve(b, 1) = '\0';
    return b->data + b->start;
}

void buf_put(struct buf *b, const void *data, size_t n)
{
    if (n == 0)
        return;
    memcpy(buf_reserve(b, n), data, n);
    b->len += n;
}

void buf_puts(struct buf *b, const char *s)
{
    buf_put(b, s, strlen(s));
}

void buf_putc(struct buf *b, char c)
{
    *buf_reserve(b, 1) = c;
    b->len++;
}

void buf_printf(struct buf *b, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    int n = vsnprintf(NULL, 0, format, ap);
    va_end(ap);
    ensure(n >= 0);
    char *at = buf_reserve(b, (size_t)n + 1);
    va_start(ap, format);
    vsnprintf(at, (size_t)n + 1, format, ap);
    va_end(ap);
    b->len += (size_t)n;
}

void buf_consume(struct buf *b, size_t n)
{
    ensure(n <= b->len);
    b->len -= n;
    b->start = b->len == 0 ? 0 : b->start + n;
}

void buf_truncate(struct buf *b, size_t n)
{
    ensure(n <= b->len);
    b->len = n;
}

void buf_reset(struct buf *b, size_t keep_max)
{
    if (b->cap > keep_max) {
        buf_fini(b);
        return;
    }
    b->start = 0;
    b->len = 0;
}

char *buf_steal(struct buf *b)
{
    char *out = mem_dup(buf_bytes(b), b->len);
    buf_fini(b);
    return out;
}
