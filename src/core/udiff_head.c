/* core/udiff_head: see udiff_head.h. */
#include "core/udiff_head.h"

#include "base/mem.h"
#include "base/str.h"
#include "core/udiff.h"
#include "sys/path.h"

#include <string.h>

#define REFUSE(h, format, ...)                                                                     \
    err_set(e, ERR_INVALID_PATCH, "line %zu of the patch: " format, (h)->line, ##__VA_ARGS__)

void udiff_head_fini(struct udiff_head *h)
{
    for (int i = 0; i < 2; i++) {
        free(h->both[i]);
        free(h->name[i]);
    }
    free(h->from);
    free(h->to);
}

/* ---- names as text ---- */

static int octal(const char *p)
{
    int v = 0;
    for (int i = 0; i < 3; i++) {
        if (p[i] < '0' || p[i] > '7')
            return -1;
        v = v * 8 + (p[i] - '0');
    }
    return v > 0 && v < 256 ? v : -1;
}

/* Read the escape behind a backslash at p; the bytes it took, or 0. */
static size_t unescape(const char *p, const char *end, struct buf *out)
{
    static const char names[] = "abtnvfr\"\\";
    static const char bytes[] = "\a\b\t\n\v\f\r\"\\";
    const char *known = p < end && *p != '\0' ? strchr(names, *p) : NULL;
    if (known != NULL) {
        buf_putc(out, bytes[known - names]);
        return 1;
    }
    int v = end - p >= 3 ? octal(p) : -1;
    if (v < 0)
        return 0;
    buf_putc(out, (char)v);
    return 3;
}

/* A name in quotes at the beginning of t: the bytes it takes, or 0 when it is malformed. */
static size_t unquote(struct text t, char **ret)
{
    autobuf b = BUF_INIT;
    const char *end = t.at + t.len;
    for (const char *p = t.at + 1; p < end;) {
        if (*p == '"') {
            *ret = buf_steal(&b);
            return (size_t)(p + 1 - t.at);
        }
        if (*p != '\\') {
            buf_putc(&b, *p++);
            continue;
        }
        size_t n = unescape(p + 1, end, &b);
        if (n == 0)
            return 0;
        p += n + 1;
    }
    return 0;
}

/* The whole of t as a name, in quotes or not. */
static int read_name(const struct udiff_head *h, struct text t, char **ret, struct err *e)
{
    free(steal(*ret));
    if (t.len > 0 && t.at[0] == '"') {
        size_t n = unquote(t, ret);
        if (n == 0 || n != t.len)
            return REFUSE(h, "the name %.*s is not quoted as git quotes names",
                          (int)(t.len < 80 ? t.len : 80), t.at);
        return 0;
    }
    if (memchr(t.at, '\0', t.len) != NULL)
        return REFUSE(h, "the name holds a NUL byte");
    *ret = mem_dup(t.at, t.len);
    return 0;
}

/* Behind `levels` components, or NULL when the name has no more than these. */
static const char *behind(const char *name, int levels)
{
    for (int i = 0; i < levels; i++) {
        name = strchr(name, '/');
        if (name == NULL)
            return NULL;
        name++;
    }
    return *name != '\0' ? name : NULL;
}

/* The two differ in their first component only. */
static bool differ_in_first(const char *a, const char *b)
{
    const char *x = behind(a, 1);
    const char *y = behind(b, 1);
    return x != NULL && y != NULL && strcmp(x, y) == 0 && strcmp(a, b) != 0;
}

/* ---- header lines ---- */

/* Are they a pair of names of one file: the same, or different in the first component only? */
static bool is_pair(struct text a, struct text b)
{
    if (a.len == b.len && memcmp(a.at, b.at, a.len) == 0)
        return true;
    const char *x = memchr(a.at, '/', a.len);
    const char *y = memchr(b.at, '/', b.len);
    if (x == NULL || y == NULL)
        return false;
    size_t n = (size_t)(a.at + a.len - x);
    return n > 1 && n == (size_t)(b.at + b.len - y) && memcmp(x, y, n) == 0;
}

/* "a/x b/x" without quotes has no mark between the names; it is certain only where a single place
 * makes them a pair. */
static void split_plain(struct udiff_head *h, struct text t)
{
    size_t found = 0;
    for (size_t i = 1; i + 1 < t.len; i++) {
        if (t.at[i] != ' ' ||
            !is_pair((struct text){t.at, i}, (struct text){t.at + i + 1, t.len - i - 1}))
            continue;
        if (found > 0)
            return;
        found = i;
    }
    if (found == 0)
        return;
    h->both[0] = mem_dup(t.at, found);
    h->both[1] = mem_dup(t.at + found + 1, t.len - found - 1);
}

int udiff_head_git(struct udiff_head *h, struct text rest, struct err *e)
{
    h->git = true;
    if (rest.len > PATH_LEN_MAX * 2u)
        return REFUSE(h, "the names are longer than PATH_LEN_MAX (%d)", PATH_LEN_MAX);
    if (memchr(rest.at, '"', rest.len) == NULL) {
        if (memchr(rest.at, '\0', rest.len) != NULL)
            return REFUSE(h, "a name holds a NUL byte");
        split_plain(h, rest);
        return 0;
    }
    char *first = NULL;
    size_t n = 0;
    if (rest.at[0] == '"') {
        n = unquote(rest, &first);
    } else {
        const char *quote = memchr(rest.at, '"', rest.len);
        n = (size_t)(quote - rest.at) - 1;
        first = mem_dup(rest.at, n);
    }
    h->both[0] = first;
    if (first == NULL || n + 1 >= rest.len || rest.at[n] != ' ')
        return REFUSE(h, "the two names are not written as git writes them");
    return read_name(h, (struct text){rest.at + n + 1, rest.len - n - 1}, &h->both[1], e);
}

/* A time that stands for "no file" (GNU diff -N): the epoch, in whatever zone it was written. */
static bool is_epoch(struct text time)
{
    while (time.len > 0 && (time.at[0] == '\t' || time.at[0] == ' '))
        time = (struct text){time.at + 1, time.len - 1};
    static const char *const dates[] = {"1970-01-01 ", "1969-12-31 "};
    bool day = false;
    for (size_t i = 0; i < ARRAY_LEN(dates); i++)
        day |= time.len >= 19 && memcmp(time.at, dates[i], 11) == 0;
    if (!day || time.len < 25)
        return false;
    const char *zone = time.at + time.len - 5;
    const char *digits = "0123456789";
    for (int i = 1; i < 5; i++) {
        if (strchr(digits, zone[i]) == NULL || zone[i] == '\0')
            return false;
    }
    int offset = ((zone[1] - '0') * 10 + zone[2] - '0') * 60 + (zone[3] - '0') * 10 + zone[4] - '0';
    int clock = ((time.at[11] - '0') * 10 + time.at[12] - '0') * 60 + (time.at[14] - '0') * 10 +
                time.at[15] - '0';
    if (time.at[2] == '6')
        clock -= 24 * 60;
    return memcmp(time.at + 16, ":00", 3) == 0 && clock == (zone[0] == '-' ? -offset : offset);
}

int udiff_head_name(struct udiff_head *h, int side, struct text rest, struct err *e)
{
    if (rest.len == 0)
        return REFUSE(h, "the name is empty");
    const char *tab = memchr(rest.at, '\t', rest.len);
    struct text name = rest;
    if (tab != NULL && rest.at[0] != '"')
        name.len = (size_t)(tab - rest.at);
    else if (rest.at[0] == '"' && (tab = memrchr(rest.at, '\t', rest.len)) != NULL)
        name.len = (size_t)(tab - rest.at);
    if (read_name(h, name, &h->name[side], e) < 0)
        return -1;
    if (h->name[side][0] == '\0')
        return REFUSE(h, "the name is empty");
    bool null = strcmp(h->name[side], "/dev/null") == 0;
    if (null)
        free(steal(h->name[side]));
    h->null[side] = null || (!h->git && tab != NULL &&
                             is_epoch((struct text){name.at + name.len, rest.len - name.len}));
    return 0;
}

/* ---- extended header ---- */

enum extended { OLD_MODE, NEW_MODE, DELETED, CREATED, FROM, TO, COPY_FROM, COPY_TO, IGNORED };

static const struct {
    const char *prefix;
    enum extended what;
} extended_table[] = {
    {"old mode ", OLD_MODE},           {"new mode ", NEW_MODE}, {"deleted file mode ", DELETED},
    {"new file mode ", CREATED},       {"rename from ", FROM},  {"rename to ", TO},
    {"copy from ", COPY_FROM},         {"copy to ", COPY_TO},   {"similarity index ", IGNORED},
    {"dissimilarity index ", IGNORED}, {"index ", IGNORED},
};

static int read_mode(struct udiff_head *h, enum extended what, struct text t, struct err *e)
{
    unsigned mode = 0;
    for (size_t i = 0; i < t.len; i++) {
        if (t.at[i] < '0' || t.at[i] > '7' || t.len != 6)
            return REFUSE(h, "the mode is not six octal digits");
        mode = mode * 8 + (unsigned)(t.at[i] - '0');
    }
    if (mode >> 12 != 8)
        return REFUSE(h,
                      "mode %o is not a regular file's; symbolic links and submodules are not "
                      "made or changed by patches",
                      mode);
    if (what == NEW_MODE || what == CREATED)
        h->mode = mode;
    h->old_mode |= what == OLD_MODE;
    h->new_mode |= what == NEW_MODE;
    h->created |= what == CREATED;
    h->deleted |= what == DELETED;
    return 0;
}

int udiff_head_extended(struct udiff_head *h, struct text line, struct err *e)
{
    for (size_t i = 0; i < ARRAY_LEN(extended_table); i++) {
        size_t n = strlen(extended_table[i].prefix);
        if (line.len <= n || memcmp(line.at, extended_table[i].prefix, n) != 0)
            continue;
        enum extended what = extended_table[i].what;
        struct text rest = {line.at + n, line.len - n};
        int rc = 0;
        if (what <= CREATED)
            rc = read_mode(h, what, rest, e);
        else if (what != IGNORED)
            rc = read_name(h, rest, what == FROM || what == COPY_FROM ? &h->from : &h->to, e);
        h->copy |= what == COPY_FROM || what == COPY_TO;
        return rc < 0 ? -1 : 1;
    }
    return 0;
}

/* ---- how many components to take off ---- */

enum vote { VOTE_NONE, VOTE_KEEP, VOTE_STRIP, VOTE_UNCLEAR };

static bool has_prefix(const char *name)
{
    return name[0] != '\0' && strchr("abciow", name[0]) != NULL && name[1] == '/';
}

static enum vote vote_pair(const char *a, const char *b)
{
    if (strcmp(a, b) == 0)
        return VOTE_KEEP;
    return differ_in_first(a, b) ? VOTE_STRIP : VOTE_UNCLEAR;
}

static enum vote vote_moved(const struct udiff_head *h)
{
    const char *a = h->name[0];
    if (a == NULL || h->from == NULL)
        return VOTE_NONE;
    if (strcmp(a, h->from) == 0)
        return VOTE_KEEP;
    const char *rest = behind(a, 1);
    return rest != NULL && strcmp(rest, h->from) == 0 ? VOTE_STRIP : VOTE_UNCLEAR;
}

static enum vote vote_of(const struct udiff_head *h)
{
    if (h->from != NULL || h->to != NULL)
        return vote_moved(h);
    if (h->both[0] != NULL && h->both[1] != NULL)
        return vote_pair(h->both[0], h->both[1]);
    if (h->name[0] != NULL && h->name[1] != NULL)
        return vote_pair(h->name[0], h->name[1]);
    const char *only = h->name[0] != NULL ? h->name[0] : h->name[1];
    if (only == NULL)
        return VOTE_UNCLEAR;
    return has_prefix(only) ? VOTE_STRIP : VOTE_KEEP;
}

int udiff_heads_strip(const struct udiff_head *heads, size_t n, int *ret, struct err *e)
{
    enum vote all = VOTE_NONE;
    size_t first = 0;
    for (size_t i = 0; i < n; i++) {
        enum vote v = vote_of(&heads[i]);
        if (v == VOTE_UNCLEAR)
            return REFUSE(&heads[i], "the old and the new name do not belong together; name the "
                                     "file alike on both sides, or use git's rename headers");
        if (v == VOTE_NONE)
            continue;
        if (all != VOTE_NONE && all != v)
            return REFUSE(&heads[i],
                          "it is not clear whether names have a prefix such as a/ and b/: here %s, "
                          "on line %zu %s; say with `strip` how many components to take off (0 or "
                          "1)",
                          v == VOTE_STRIP ? "they do" : "they do not", heads[first].line,
                          all == VOTE_STRIP ? "they do" : "they do not");
        if (all == VOTE_NONE)
            first = i;
        all = v;
    }
    /* Renames alone are written without prefixes, so the number says nothing. */
    *ret = all == VOTE_KEEP ? 0 : 1;
    return 0;
}

/* ---- what it means ---- */

static int take_path(const struct udiff_head *h, const char *name, int strip, char **ret,
                     struct err *e)
{
    const char *rest = behind(name, strip);
    if (rest == NULL)
        return REFUSE(h,
                      "the name %.200s has no more than %d component%s, which are to be taken "
                      "off",
                      name, strip, strip == 1 ? "" : "s");
    if (strchr(rest, '\\') != NULL)
        return REFUSE(h,
                      "the name %.200s holds a backslash, which is a separator here; rename the "
                      "file with a command",
                      name);
    *ret = mem_strdup(rest);
    return 0;
}

static int apply_move(const struct udiff_head *h, int strip, struct patch_section *s, struct err *e)
{
    if (h->from == NULL || h->to == NULL)
        return REFUSE(h, "a rename or copy has a line for \"from\" and one for \"to\"");
    int less = strip > 0 ? strip - 1 : 0;
    s->kind = PATCH_MOVE;
    s->copy = h->copy;
    if (take_path(h, h->from, less, &s->path, e) < 0)
        return -1;
    return take_path(h, h->to, less, &s->move_to, e);
}

/* Take the path from the pair of names, of which one may be missing. */
static int apply_pair(const struct udiff_head *h, char *const pair[2], int strip,
                      struct patch_section *s, struct err *e)
{
    autofree char *other = NULL;
    if (pair[0] == NULL || pair[1] == NULL)
        return take_path(h, pair[0] != NULL ? pair[0] : pair[1], strip, &s->path, e);
    if (take_path(h, pair[0], strip, &other, e) < 0 ||
        take_path(h, pair[1], strip, &s->path, e) < 0)
        return -1;
    if (strcmp(other, s->path) != 0)
        return REFUSE(h,
                      "the names are two different ones, %.200s and %.200s, when %d component%s "
                      "are taken off",
                      other, s->path, strip, strip == 1 ? "" : "s");
    return 0;
}

/* What several lines say of one name has to be the same. */
static int check_names(const struct udiff_head *h, int strip, struct err *e)
{
    const char *const moved[2] = {h->from, h->to};
    for (int i = 0; i < 2; i++) {
        const char *name = h->name[i];
        if (name == NULL)
            continue;
        const char *rest = behind(name, strip > 0 ? 1 : 0);
        bool wrong = h->both[i] != NULL && strcmp(name, h->both[i]) != 0;
        wrong |= moved[i] != NULL && (rest == NULL || strcmp(rest, moved[i]) != 0);
        if (wrong)
            return REFUSE(h, "the header lines of one file name different files; one is %.200s",
                          name);
    }
    return 0;
}

static enum patch_mode mode_of(unsigned mode)
{
    if (mode == 0)
        return PATCH_MODE_KEEP;
    return (mode & 0111) != 0 ? PATCH_MODE_EXECUTABLE : PATCH_MODE_PLAIN;
}

int udiff_head_apply(const struct udiff_head *h, int strip, struct patch_section *s, struct err *e)
{
    s->mode = mode_of(h->mode);
    s->exact = true;
    s->patch_line = h->line;
    if (check_names(h, strip, e) < 0)
        return -1;
    if (h->old_mode != h->new_mode)
        return REFUSE(h, "a change of mode has a line for the old and one for the new mode");
    if (h->from != NULL || h->to != NULL)
        return apply_move(h, strip, s, e);
    bool created = h->created || h->null[0];
    bool deleted = h->deleted || h->null[1];
    if (created && deleted)
        return REFUSE(h, "the file is neither on the old nor on the new side");
    s->kind = created ? PATCH_ADD : deleted ? PATCH_DELETE : PATCH_UPDATE;
    if (h->name[0] != NULL || h->name[1] != NULL)
        return apply_pair(h, h->name, strip, s, e);
    if (h->both[0] != NULL && h->both[1] != NULL)
        return apply_pair(h, h->both, strip, s, e);
    return REFUSE(h, "it is not clear where the first name ends and the second begins");
}
