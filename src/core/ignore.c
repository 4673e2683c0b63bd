/* core/ignore: see ignore.h. */
#include "core/ignore.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"
#include "sys/fd.h"
#include "sys/path.h"

#include <string.h>

static void level_fini(struct ignore_level *l)
{
    for (size_t i = 0; i < l->n; i++)
        glob_fini(&l->rules[i].glob);
    free(l->rules);
}

void ignore_fini(struct ignore *g)
{
    for (size_t i = 0; i < g->n; i++)
        level_fini(&g->levels[i]);
    free(g->levels);
    *g = (struct ignore){0};
}

/* ---- one line ---- */

/* Blanks at the end do not count, unless a backslash stands before the last one. */
static size_t without_blanks(const char *line, size_t n)
{
    while (n > 0 && (line[n - 1] == ' ' || line[n - 1] == '\r')) {
        if (n > 1 && line[n - 2] == '\\')
            break;
        n--;
    }
    return n;
}

/* As a glob: braces are plain characters in git's language. */
static char *as_glob(const char *p, size_t n)
{
    struct buf b = BUF_INIT;
    bool in_set = false;
    for (size_t i = 0; i < n; i++) {
        if (p[i] == '\\' && i + 1 < n) {
            buf_putc(&b, p[i++]);
        } else if (!in_set && strchr("{},", p[i]) != NULL) {
            buf_putc(&b, '\\');
        } else {
            in_set = p[i] == '[' || (in_set && p[i] != ']');
        }
        buf_putc(&b, p[i]);
    }
    return buf_steal(&b);
}

static void add_rule(struct ignore *g, struct ignore_level *l, const char *line, size_t n)
{
    struct ignore_rule r = {0};
    n = without_blanks(line, n);
    if (n == 0 || line[0] == '#' || memchr(line, '\0', n) != NULL)
        return;
    if (line[0] == '!') {
        r.take_back = true;
        line++;
        n--;
    }
    if (n > 0 && line[n - 1] == '/') {
        r.only_directories = true;
        n--;
    }
    bool anchored = n > 0 && memchr(line, '/', n) != NULL;
    if (n > 0 && line[0] == '/') {
        line++;
        n--;
    }
    r.one_level = anchored && memchr(line, '/', n) == NULL;
    autofree char *pattern = as_glob(line, n);
    if (n == 0 || glob_compile(pattern, &r.glob, NULL) < 0)
        return;
    if (g->rules == IGNORE_RULES_MAX) {
        glob_fini(&r.glob);
        g->cut = true;
        return;
    }
    void *items = l->rules;
    mem_grow(&items, &l->cap, l->n + 1, sizeof(r));
    l->rules = items;
    l->rules[l->n++] = r;
    g->rules++;
}

/* ---- one file ---- */

static void read_file(struct ignore *g, struct ignore_level *l, int dir_fd, const char *name)
{
    struct stat st;
    autobuf b = BUF_INIT;
    autofd int fd = path_open_regular(dir_fd, name, &st);
    ssize_t n = fd < 0 ? 0 : 1;
    while (n > 0 && b.len <= IGNORE_FILE_MAX) {
        n = fd_read(fd, buf_reserve(&b, 16384), 16384);
        buf_commit(&b, n > 0 ? (size_t)n : 0);
    }
    if (b.len > IGNORE_FILE_MAX) {
        g->cut = true;
        return;
    }
    const char *end = buf_bytes(&b) + b.len;
    for (const char *at = buf_bytes(&b); at < end;) {
        const char *lf = memchr(at, '\n', (size_t)(end - at));
        add_rule(g, l, at, (size_t)((lf != NULL ? lf : end) - at));
        at = lf != NULL ? lf + 1 : end;
    }
}

/* ---- the stack ---- */

void ignore_enter(struct ignore *g, int dir_fd, const char *base)
{
    while (g->n > 0 && strncmp(g->base, base, g->levels[g->n - 1].base_len) != 0) {
        g->n--;
        g->rules -= g->levels[g->n].n;
        level_fini(&g->levels[g->n]);
    }
    struct ignore_level l = {.base_len = strlen(base)};
    static const char *const names[] = {".gitignore", ".ignore"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        read_file(g, &l, dir_fd, names[i]);
    if (l.n == 0) {
        free(l.rules);
        return;
    }
    void *items = g->levels;
    mem_grow(&items, &g->cap, g->n + 1, sizeof(l));
    g->levels = items;
    g->levels[g->n++] = l;
    strcpy(g->base, base);
}

static bool fits(const struct ignore_rule *r, const char *rest, bool is_directory)
{
    if (r->only_directories && !is_directory)
        return false;
    if (r->one_level && strchr(rest, '/') != NULL)
        return false;
    return glob_match(&r->glob, rest);
}

bool ignore_match(const struct ignore *g, const char *path, bool is_directory)
{
    for (size_t i = g->n; i-- > 0;) {
        const struct ignore_level *l = &g->levels[i];
        for (size_t k = l->n; k-- > 0;) {
            if (fits(&l->rules[k], path + l->base_len, is_directory))
                return !l->rules[k].take_back;
        }
    }
    return false;
}
