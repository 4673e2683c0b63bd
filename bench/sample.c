/* bench/sample: see sample.h. */
#include "sample.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void die(const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    fprintf(stderr, "%s: ", program_invocation_short_name);
    vfprintf(stderr, format, ap);
    fputc('\n', stderr);
    va_end(ap);
    exit(1);
}

uint64_t number_or_die(const char *text)
{
    char *end;
    errno = 0;
    uint64_t value = strtoull(text, &end, 10);
    if (errno != 0 || *end != 0 || end == text)
        die("not a number: %s", text);
    return value;
}

void samples_add(struct samples *s, uint64_t ns)
{
    if (s->n == s->cap) {
        s->cap = s->cap ? s->cap * 2 : 1024;
        s->ns = reallocarray(s->ns, s->cap, sizeof(*s->ns));
        if (!s->ns)
            die("out of memory");
    }
    s->ns[s->n++] = ns;
}

void samples_save(const struct samples *s, const char *path)
{
    if (!path)
        return;
    FILE *f = fopen(path, "we");
    if (!f || fwrite(s->ns, sizeof(*s->ns), s->n, f) != s->n || fclose(f) != 0)
        die("cannot write %s: %m", path);
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

void samples_print(struct samples *s)
{
    if (s->n == 0)
        die("no samples");
    qsort(s->ns, s->n, sizeof(*s->ns), compare);
    printf("\"n\":%zu,\"min_ns\":%ju,\"p50_ns\":%ju,\"p99_ns\":%ju,\"max_ns\":%ju", s->n,
           (uintmax_t)s->ns[0], (uintmax_t)s->ns[s->n / 2], (uintmax_t)s->ns[s->n * 99 / 100],
           (uintmax_t)s->ns[s->n - 1]);
}
