/* wire/glob_text: see glob_text.h. */
#include "wire/glob_text.h"

#include "base/mem.h"
#include "wire/glob.h"

#include <string.h>

/* ---- the check ---- */

static int refuse(struct err *e, size_t at, const char *why)
{
    return err_set(e, ERR_INVALID_ARGUMENT, "glob: %s (at byte %zu of the pattern)", why, at);
}

/* "z-a": both plain ASCII and the wrong way round. */
static bool reversed_range(const char *s)
{
    return s[0] > 0 && s[1] == '-' && s[2] > 0 && s[2] != ']' && s[2] != '\\' && s[0] > s[2];
}

/* The set that begins at s[i] == '['; *ret_end is the index after its ']'. */
static int check_set(const char *s, size_t i, size_t *ret_end, struct err *e)
{
    size_t at = i++;
    if (s[i] == '!' || s[i] == '^')
        i++;
    for (size_t first = i; s[i] != '\0'; i++) {
        if (s[i] == ']' && i > first) {
            *ret_end = i + 1;
            return 0;
        }
        if (reversed_range(s + i))
            return refuse(e, i, "the range in [ ] ends before it begins");
        if (s[i] == '/')
            return refuse(e, i, "a set never matches '/'; leave it out of [ ]");
        if (s[i] == '[' && strchr(":.=", s[i + 1]) != NULL && s[i + 1] != '\0')
            return refuse(e, i, "named classes are not known; write ranges such as [a-z0-9]");
        if (s[i] == '\\' && s[++i] == '\0')
            break;
    }
    return refuse(e, at, "'[' without ']'; write \\[ for the character itself");
}

static int check_escape(const char *s, size_t i, struct err *e)
{
    if (s[i + 1] == '\0')
        return refuse(e, i, "'\\' at the end; write \\\\ for the character itself");
    if (s[i + 1] == '/')
        return refuse(e, i, "'\\' before '/'; write '/' between components");
    return 0;
}

/* A component "..", "." or an empty first one. */
static int check_component(const char *s, size_t at, struct err *e)
{
    if (at == 0 && s[0] == '/')
        return refuse(e, 0, "patterns are relative to the workspace root; leave out the first '/'");
    if (strncmp(s + at, "..", 2) == 0 && (s[at + 2] == '/' || s[at + 2] == '\0'))
        return refuse(e, at, "'..' matches nothing in a workspace");
    return 0;
}

int glob_text_check(const char *s, struct err *e)
{
    size_t open = 0;
    size_t opened_at = 0;
    if (strlen(s) > GLOB_LEN_MAX)
        return err_set(e, ERR_LIMIT_EXCEEDED,
                       "glob: the pattern has %zu bytes, more than GLOB_LEN_MAX (%u)", strlen(s),
                       GLOB_LEN_MAX);
    for (size_t i = 0; s[i] != '\0';) {
        if ((i == 0 || s[i - 1] == '/') && check_component(s, i, e) < 0)
            return -1;
        size_t next = i + 1;
        if (s[i] == '[' && check_set(s, i, &next, e) < 0)
            return -1;
        if (s[i] == '\\' && check_escape(s, i, e) < 0)
            return -1;
        if (s[i] == '\\')
            next = i + 2;
        if (s[i] == '{' && open++ == 0)
            opened_at = i;
        if (s[i] == '}' && open-- == 0)
            return refuse(e, i, "'}' without '{'; write \\} for the character itself");
        i = next;
    }
    if (open > 0)
        return refuse(e, opened_at, "'{' without '}'; write \\{ for the character itself");
    return 0;
}

/* ---- braces ---- */

size_t glob_text_skip(const char *s, size_t i)
{
    if (s[i] == '\\' && s[i + 1] != '\0')
        return i + 2;
    if (s[i] != '[')
        return i + 1;
    i++;
    if (s[i] == '!' || s[i] == '^')
        i++;
    for (size_t first = i; s[i] != '\0' && (s[i] != ']' || i == first); i++) {
        if (s[i] == '\\' && s[i + 1] != '\0')
            i++;
    }
    return s[i] == ']' ? i + 1 : i;
}

static size_t find_brace(const char *s)
{
    size_t i = 0;
    while (s[i] != '\0' && s[i] != '{')
        i = glob_text_skip(s, i);
    return i;
}

/* The index of the ',' or '}' that ends the choice which begins at s[i]. */
static size_t choice_end(const char *s, size_t i)
{
    for (size_t depth = 0; s[i] != '\0'; i = glob_text_skip(s, i)) {
        if (s[i] == '{')
            depth++;
        else if (depth > 0 && s[i] == '}')
            depth--;
        else if (depth == 0 && (s[i] == ',' || s[i] == '}'))
            break;
    }
    return i;
}

/* Append `s` once for each choice of its first brace. */
static void split_brace(const char *s, size_t open, struct strv *out)
{
    size_t close = open + 1;
    while (s[close = choice_end(s, close)] == ',')
        close++;
    for (size_t from = open + 1; from <= close;) {
        size_t to = choice_end(s, from);
        strv_add_take(
            out, mem_printf("%.*s%.*s%s", (int)open, s, (int)(to - from), s + from, s + close + 1));
        from = to + 1;
    }
}

static int check_expanded(const struct strv *v, struct err *e)
{
    size_t bytes = 0;
    for (size_t i = 0; i < v->len; i++)
        bytes += strlen(v->items[i]);
    if (v->len > GLOB_ALTERNATIVES_MAX)
        return err_set(e, ERR_LIMIT_EXCEEDED,
                       "glob: the braces give more alternatives than GLOB_ALTERNATIVES_MAX (%u); "
                       "use fewer { } or several calls",
                       GLOB_ALTERNATIVES_MAX);
    if (bytes > GLOB_EXPANDED_MAX)
        return err_set(e, ERR_LIMIT_EXCEEDED,
                       "glob: the braces give more bytes than GLOB_EXPANDED_MAX (%u); use fewer "
                       "{ } or several calls",
                       GLOB_EXPANDED_MAX);
    return 0;
}

int glob_text_expand(const char *pattern, struct strv *ret, struct err *e)
{
    autostrv now = {0};
    strv_add(&now, pattern);
    for (bool more = true; more;) {
        autostrv next = {0};
        more = false;
        for (size_t i = 0; i < now.len; i++) {
            size_t open = find_brace(now.items[i]);
            if (now.items[i][open] == '\0') {
                strv_add(&next, now.items[i]);
            } else {
                split_brace(now.items[i], open, &next);
                more = true;
            }
            if (next.len > GLOB_ALTERNATIVES_MAX)
                break;
        }
        if (check_expanded(&next, e) < 0)
            return -1;
        struct strv old = now;
        now = next;
        next = old;
    }
    for (size_t i = 0; i < now.len; i++)
        strv_add(ret, now.items[i]);
    return 0;
}
