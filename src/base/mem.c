/* base/mem: see mem.h. The only file that calls malloc's family for the rest of the tree. */
#include "base/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void die(const char *what)
{
    (void)!write(STDERR_FILENO, what, strlen(what));
    abort();
}

void mem_ensure_failed(const char *expr, const char *file, int line)
{
    char text[512];
    snprintf(text, sizeof(text), "codespace: internal check failed: %s (%s:%d)\n", expr, file,
             line);
    die(text);
    __builtin_unreachable();
}

void *mem_zalloc(size_t n, size_t size)
{
    void *p = calloc(n ? n : 1, size ? size : 1);
    if (p == NULL)
        die("codespace: out of memory\n");
    return p;
}

void *mem_realloc(void *old, size_t n, size_t size)
{
    size_t bytes = 0;
    if (__builtin_mul_overflow(n, size, &bytes))
        die("codespace: allocation size overflows\n");
    void *p = realloc(old, bytes ? bytes : 1);
    if (p == NULL)
        die("codespace: out of memory\n");
    return p;
}

char *mem_dup(const void *data, size_t n)
{
    char *p = mem_realloc(NULL, n + 1, 1);
    if (n > 0)
        memcpy(p, data, n);
    p[n] = '\0';
    return p;
}

char *mem_strdup(const char *s)
{
    return s == NULL ? NULL : mem_dup(s, strlen(s));
}

char *mem_printf(const char *format, ...)
{
    char *out = NULL;
    va_list ap;
    va_start(ap, format);
    int n = vasprintf(&out, format, ap);
    va_end(ap);
    if (n < 0)
        die("codespace: out of memory\n");
    return out;
}

void mem_grow(void **items, size_t *cap, size_t want, size_t size)
{
    if (want <= *cap)
        return;
    size_t next = *cap ? *cap : 8;
    while (next < want) {
        if (__builtin_mul_overflow(next, (size_t)2, &next))
            die("codespace: allocation size overflows\n");
    }
    *items = mem_realloc(*items, next, size);
    *cap = next;
}

void mem_cleanup_free(void *pointer_to_pointer)
{
    free(*(void **)pointer_to_pointer);
}

void mem_cleanup_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
}

int steal_fd(int *fd)
{
    int value = *fd;
    *fd = -1;
    return value;
}
