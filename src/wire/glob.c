/* wire/glob: see glob.h. */
#include "wire/glob.h"

#include "base/mem.h"
#include "base/utf8.h"
#include "wire/glob_text.h"

#include <stdint.h>
#include <string.h>

/* ---- compiling ---- */

/* One alternative's text into its components; empty ones and "." say nothing. */
static void split_parts(const char *text, struct strv *parts)
{
    for (const char *s = text; *s != '\0';) {
        size_t n = 0;
        while (s[n] != '\0' && s[n] != '/')
            n = glob_text_skip(s, n);
        if (n > 0 && !(n == 1 && s[0] == '.'))
            strv_add_take(parts, mem_dup(s, n));
        s += n;
        while (*s == '/')
            s++;
    }
}

static bool is_deep(const char *part)
{
    return strcmp(part, "**") == 0;
}

static void put_first(struct strv *parts, const char *part)
{
    strv_add(parts, part);
    char *last = parts->items[parts->len - 1];
    memmove(parts->items + 1, parts->items, (parts->len - 1) * sizeof(char *));
    parts->items[0] = last;
}

static void compile_alternative(const char *text, struct glob_alternative *ret)
{
    split_parts(text, &ret->parts);
    size_t len = strlen(text);
    bool anywhere = strchr(text, '/') == NULL;
    if (len > 0 && text[len - 1] == '/')
        strv_add(&ret->parts, "**");
    if (anywhere || ret->parts.len == 0)
        put_first(&ret->parts, "**");
    if (is_deep(ret->parts.items[ret->parts.len - 1]))
        strv_add(&ret->parts, "*");
}

/* Nothing but ** and a final *. */
static bool is_everything(const struct glob_alternative *a)
{
    for (size_t i = 0; i + 1 < a->parts.len; i++) {
        if (!is_deep(a->parts.items[i]))
            return false;
    }
    return a->parts.len > 1 && strcmp(a->parts.items[a->parts.len - 1], "*") == 0;
}

int glob_compile(const char *pattern, struct glob *ret, struct err *e)
{
    autostrv texts = {0};
    const char *text = pattern == NULL || *pattern == '\0' ? "**" : pattern;
    if (glob_text_check(text, e) < 0 || glob_text_expand(text, &texts, e) < 0)
        return -1;
    struct glob g = {.items = mem_zalloc(texts.len, sizeof(*g.items)), .n = texts.len};
    for (size_t i = 0; i < texts.len; i++) {
        compile_alternative(texts.items[i], &g.items[i]);
        g.everything |= is_everything(&g.items[i]);
    }
    *ret = g;
    return 0;
}

void glob_fini(struct glob *g)
{
    for (size_t i = 0; i < g->n; i++)
        strv_fini(&g->items[i].parts);
    free(g->items);
    *g = (struct glob){0};
}

/* ---- one component ---- */

/* A run of bytes that is read one character at a time. */
struct cursor {
    const char *at;
    const char *end;
};

/* The next character; bytes that are not UTF-8 get numbers of their own above Unicode's. */
static unsigned next_char(struct cursor *c)
{
    const unsigned char *p = (const unsigned char *)c->at;
    size_t n = utf8_char_len(p, (size_t)(c->end - c->at));
    if (n <= 1) {
        c->at++;
        return n == 1 ? p[0] : 0x110000u + p[0];
    }
    unsigned v = p[0] & (0x7fu >> n);
    for (size_t i = 1; i < n; i++)
        v = v << 6 | (p[i] & 0x3fu);
    c->at += n;
    return v;
}

static unsigned next_set_char(struct cursor *p)
{
    if (*p->at == '\\' && p->at + 1 < p->end)
        p->at++;
    return next_char(p);
}

/* p is behind '['; leaves it behind ']'. */
static bool match_set(struct cursor *p, unsigned c)
{
    bool negate = p->at < p->end && (*p->at == '!' || *p->at == '^');
    bool found = false;
    p->at += negate;
    for (const char *first = p->at; p->at < p->end && (*p->at != ']' || p->at == first);) {
        unsigned low = next_set_char(p);
        unsigned high = low;
        if (p->end - p->at >= 2 && p->at[0] == '-' && p->at[1] != ']') {
            p->at++;
            high = next_set_char(p);
        }
        found |= low <= c && c <= high;
    }
    p->at += p->at < p->end;
    return found != negate;
}

/* Match one character of the name against one element of the pattern (not a star). */
static bool match_one(struct cursor *p, struct cursor *s)
{
    unsigned c = next_char(s);
    char kind = *p->at;
    if (kind == '?') {
        p->at++;
        return true;
    }
    if (kind == '[') {
        p->at++;
        return match_set(p, c);
    }
    return next_set_char(p) == c;
}

static bool match_part(const char *part, const char *name, size_t len)
{
    struct cursor p = {part, part + strlen(part)};
    struct cursor s = {name, name + len};
    struct cursor star = {NULL, NULL}; /* the pattern behind the last star */
    struct cursor from = s;            /* where that star's match ends so far */
    while (s.at < s.end) {
        if (p.at < p.end && *p.at == '*') {
            p.at++;
            star = p;
            from = s;
            continue;
        }
        if (p.at < p.end && match_one(&p, &s))
            continue;
        if (star.at == NULL)
            return false;
        next_char(&from);
        s = from;
        p = star;
    }
    while (p.at < p.end && *p.at == '*')
        p.at++;
    return p.at == p.end;
}

/* ---- whole paths ---- */

static const char *next_component(const char *path, size_t *ret_len)
{
    size_t n = strcspn(path, "/");
    *ret_len = n;
    return path[n] == '/' ? path + n + 1 : path + n;
}

static bool match_alternative(const struct glob_alternative *a, const char *path)
{
    size_t i = 0;
    size_t deep = SIZE_MAX;  /* the part behind the last ** */
    const char *from = NULL; /* where that **'s match ends so far */
    size_t n = 0;
    while (*path != '\0') {
        if (i < a->parts.len && is_deep(a->parts.items[i])) {
            deep = ++i;
            from = path;
            continue;
        }
        const char *next = next_component(path, &n);
        if (i < a->parts.len && match_part(a->parts.items[i], path, n)) {
            i++;
            path = next;
            continue;
        }
        if (deep == SIZE_MAX)
            return false;
        path = from = next_component(from, &n);
        i = deep;
    }
    return i == a->parts.len;
}

bool glob_match(const struct glob *g, const char *path)
{
    if (g->everything)
        return *path != '\0';
    for (size_t i = 0; i < g->n; i++) {
        if (match_alternative(&g->items[i], path))
            return true;
    }
    return false;
}

static bool alternative_may_enter(const struct glob_alternative *a, const char *dir)
{
    size_t i = 0;
    for (size_t n = 0; *dir != '\0'; i++) {
        if (i + 1 < a->parts.len && is_deep(a->parts.items[i]))
            return true;
        const char *next = next_component(dir, &n);
        if (i + 1 >= a->parts.len || !match_part(a->parts.items[i], dir, n))
            return false;
        dir = next;
    }
    return i < a->parts.len;
}

bool glob_may_enter(const struct glob *g, const char *dir)
{
    if (g->everything)
        return true;
    for (size_t i = 0; i < g->n; i++) {
        if (alternative_may_enter(&g->items[i], dir))
            return true;
    }
    return false;
}

bool glob_names(const struct glob *g, const char *component)
{
    for (size_t i = 0; i < g->n; i++) {
        if (strv_has(&g->items[i].parts, component))
            return true;
    }
    return false;
}
