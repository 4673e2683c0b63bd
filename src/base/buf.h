/* base/buf: a growing run of bytes with one owner.
 *
 * Theory. Everything that is built up (an answer, a frame, a file in memory) is a buf. Bytes live
 * in [start, start + len): consuming from the front moves `start` and costs nothing until the
 * space is wanted back. The data is not NUL-terminated unless buf_cstr() is called.
 *
 * Must not: grow with what an outsider sends unless the caller holds a named limit over it.
 */
#ifndef CODESPACE_BASE_BUF_H
#define CODESPACE_BASE_BUF_H

#include <stdarg.h>
#include <stddef.h>

struct buf {
    char *data;   /* allocation, NULL when nothing was stored yet */
    size_t start; /* offset of the first byte */
    size_t len;   /* bytes held */
    size_t cap;   /* size of the allocation */
};

#define BUF_INIT                                                                                   \
    {                                                                                              \
        NULL, 0, 0, 0                                                                              \
    }
#define autobuf __attribute__((cleanup(buf_fini))) struct buf

/* Free the storage and leave an empty buf. Accepts a zeroed one. */
void buf_fini(struct buf *b);

/* The bytes; valid until the next call that changes the buf. Never NULL. */
const char *buf_bytes(const struct buf *b);

/* The bytes with a NUL after them (not counted in len). */
const char *buf_cstr(struct buf *b);

/* Room for n more bytes at the end; returns where they go. Follow with buf_commit(). */
char *buf_reserve(struct buf *b, size_t n) __attribute__((returns_nonnull));
void buf_commit(struct buf *b, size_t n);

void buf_put(struct buf *b, const void *data, size_t n);
void buf_puts(struct buf *b, const char *s);
void buf_putc(struct buf *b, char c);
void buf_printf(struct buf *b, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Drop n bytes from the front, or everything after the first n. */
void buf_consume(struct buf *b, size_t n);
void buf_truncate(struct buf *b, size_t n);

/* Forget the content and keep the storage; gives storage above keep_max back to the system, so
 * one large answer does not stay resident for ever. */
void buf_reset(struct buf *b, size_t keep_max);

/* Take the content as a NUL-terminated string that the caller frees; leaves an empty buf. */
char *buf_steal(struct buf *b);

#endif
