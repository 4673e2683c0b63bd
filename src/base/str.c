/* base/str: see str.h. */
#include "base/str.h"

#include "base/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

bool str_eq(const char *a, const char *b)
{
    if (a == NULL || b == NULL)
        return a == b;
    return strcmp(a, b) == 0;
}

bool str_starts(const char *s, const char *prefix)
{
    return strncmp(s, prefix, strlen(prefix)) == 0;
}

bool str_ends(const char *s, const char *suffix)
{
    size_t n = strlen(s);
    size_t m = strlen(suffix);
    return n >= m && memcmp(s + n - m, suffix, m) == 0;
}

void strv_fini(struct strv *v)
{
    for (size_t i = 0; i < v->len; i++)
        free(v->items[i]);
    free(v->items);
    *v = (struct strv){0};
}

void strv_add_take(struct strv *v, char *s)
{
    void *items = v->items;
    mem_grow(&items, &v->cap, v->len + 2, sizeof(char *));
    v->items = items;
    v->items[v->len++] = s;
    v->items[v->len] = NULL;
}

void strv_add(struct strv *v, const char *s)
{
    strv_add_take(v, mem_dup(s, strlen(s)));
}

void strv_addf(struct strv *v, const char *format, ...)
{
    char *out = NULL;
    va_list ap;
    va_start(ap, format);
    int n = vasprintf(&out, format, ap);
    va_end(ap);
    ensure(n >= 0);
    strv_add_take(v, out);
}

bool strv_has(const struct strv *v, const char *s)
{
    for (size_t i = 0; i < v->len; i++) {
        if (strcmp(v->items[i], s) == 0)
            return true;
    }
    return false;
}

char **strv_array(struct strv *v)
{
    if (v->items == NULL) {
        void *items = NULL;
        mem_grow(&items, &v->cap, 2, sizeof(char *));
        v->items = items;
        v->items[0] = NULL;
    }
    return v->items;
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

void strv_sort(struct strv *v)
{
    if (v->len > 1)
        qsort(v->items, v->len, sizeof(char *), compare);
}

char *str_new_id(const char *prefix)
{
    unsigned char r[16];
    ensure(getrandom(r, sizeof(r), 0) == (ssize_t)sizeof(r));
    r[6] = (unsigned char)((r[6] & 0x0f) | 0x40);
    r[8] = (unsigned char)((r[8] & 0x3f) | 0x80);
    return mem_printf("%s%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
                      prefix, r[0], r[1], r[2], r[3], r[4], r[5], r[6], r[7], r[8], r[9], r[10],
                      r[11], r[12], r[13], r[14], r[15]);
}
