/* base/mem: allocation that cannot fail, and owners that clean up after themselves.
 *
 * Theory. Out of memory aborts: no allocation size is chosen by input, since every queue and
 * parser has a named limit, so running out means the machine is lost, and half-handled ENOMEM
 * paths are where bugs live. An owner is a local variable with a cleanup attribute, initialised
 * where it is declared; steal() passes ownership on. Destructors accept NULL and half-built values.
 *
 * Must not: be used with a size that an outsider chose and nobody checked.
 */
#ifndef CODESPACE_BASE_MEM_H
#define CODESPACE_BASE_MEM_H

#include <stddef.h>
#include <stdlib.h>

/* Zeroed memory of n items of `size` bytes; aborts when n * size overflows or memory is out. */
void *mem_zalloc(size_t n, size_t size) __attribute__((malloc, returns_nonnull));

/* Resize to n items of `size` bytes; new bytes are undefined. Aborts as above. */
void *mem_realloc(void *old, size_t n, size_t size) __attribute__((returns_nonnull));

/* Copy of n bytes plus a terminating NUL. */
char *mem_dup(const void *data, size_t n) __attribute__((malloc, returns_nonnull));

/* Copy of a string; NULL gives NULL. */
char *mem_strdup(const char *s);

/* printf into fresh memory. */
char *mem_printf(const char *format, ...) __attribute__((format(printf, 1, 2), returns_nonnull));

/* Grow *items (of `size` bytes each) so that it holds at least `want`; *cap is the capacity in
 * items. Doubles, so a loop of appends is linear. */
void mem_grow(void **items, size_t *cap, size_t want, size_t size);

/* A zeroed T. */
#define mem_new(T) ((T *)mem_zalloc(1, sizeof(T)))

/* Take the value out of an owner and leave NULL behind. */
#define steal(p)                                                                                   \
    ({                                                                                             \
        __typeof__(p) steal_value_ = (p);                                                          \
        (p) = NULL;                                                                                \
        steal_value_;                                                                              \
    })

/* autofree char *s = mem_strdup(x); frees at the end of the block. */
#define autofree __attribute__((cleanup(mem_cleanup_free)))
void mem_cleanup_free(void *pointer_to_pointer);

/* autofd int fd = -1; closes at the end of the block when it is >= 0. */
#define autofd __attribute__((cleanup(mem_cleanup_fd)))
void mem_cleanup_fd(int *fd);

/* Take the descriptor out of an owner and leave -1 behind. */
int steal_fd(int *fd);

/* Our own bugs only; compiled in always. Prints the expression and aborts. */
#define ensure(expr) ((expr) ? (void)0 : mem_ensure_failed(#expr, __FILE__, __LINE__))
void mem_ensure_failed(const char *expr, const char *file, int line) __attribute__((noreturn));

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

/* The struct that holds `ptr` as its member. */
#define container_of(ptr, T, member) ((T *)(void *)((char *)(ptr)-offsetof(T, member)))

#endif
