/* base/str: strings and NULL-terminated vectors of them (argv, environments, path lists).
 * A strv owns its strings unless a function says otherwise; NULL is the empty strv.
 */
#ifndef CODESPACE_BASE_STR_H
#define CODESPACE_BASE_STR_H

#include <stdbool.h>
#include <stddef.h>

bool str_eq(const char *a, const char *b); /* NULL equals NULL only */
bool str_starts(const char *s, const char *prefix);
bool str_ends(const char *s, const char *suffix);

struct strv {
    char **items; /* NULL-terminated once it is not NULL */
    size_t len;
    size_t cap;
};

#define autostrv __attribute__((cleanup(strv_fini))) struct strv

void strv_fini(struct strv *v);
void strv_add_take(struct strv *v, char *s);  /* takes s */
void strv_add(struct strv *v, const char *s); /* copies s */
void strv_addf(struct strv *v, const char *format, ...) __attribute__((format(printf, 2, 3)));
bool strv_has(const struct strv *v, const char *s);

/* The array for exec: never NULL, ends with NULL, owned by v. */
char **strv_array(struct strv *v);

/* Sort by bytes. */
void strv_sort(struct strv *v);

/* A random version 4 UUID with `prefix` before it, e.g. "proc-". Aborts when the kernel has no
 * random bytes. Caller frees. */
char *str_new_id(const char *prefix);

#endif
