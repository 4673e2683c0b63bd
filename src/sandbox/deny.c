/* sandbox/deny: see deny.h. */
#include "sandbox/deny.h"

#include "base/mem.h"
#include "sandbox/walk.h"
#include "wire/glob.h"

#include <string.h>

struct rule {
    struct glob match;
    struct glob whole; /* directories of which it takes everything; n = 0: none */
    bool deep;         /* depends on the names of directories */
};

struct deny {
    const struct view *v;
    struct layout *l;
    struct rule *rules;
    size_t n;
    char *fenced; /* the directory whose way was fixed last; matches of one come together */
};

static void deny_fini(struct deny *d)
{
    for (size_t i = 0; i < d->n; i++) {
        glob_fini(&d->rules[i].match);
        glob_fini(&d->rules[i].whole);
    }
    free(d->rules);
    free(d->fenced);
}

/* "dir/" and "dir/" with one or two stars after it take all of "dir". */
static char *whole_of(const char *pattern)
{
    size_t n = strlen(pattern);
    while (n > 0 && pattern[n - 1] == '*')
        n--;
    if (n < 2 || pattern[n - 1] != '/' || pattern[n - 2] == '\\')
        return NULL;
    /* A name without a slash would match at any depth, which "dir/" does not. */
    return mem_printf("./%.*s", (int)(n - 1), pattern);
}

static int compile(const char *pattern, struct rule *ret, struct err *e)
{
    if (glob_compile(pattern, &ret->match, e) < 0) {
        if (e != NULL && e->code == ERR_INVALID_ARGUMENT)
            e->code = ERR_INVALID_COMMAND;
        return err_wrap(e, "deny");
    }
    if (ret->match.everything)
        return err_set(e, ERR_INVALID_COMMAND, "deny: \"%.128s\" would hide the whole workspace",
                       pattern);
    autofree char *whole = whole_of(pattern);
    ret->deep = strchr(pattern, '/') != NULL;
    return whole == NULL ? 0 : glob_compile(whole, &ret->whole, e);
}

static void fence(struct deny *d, const char *path)
{
    size_t n = (size_t)(strrchr(path, '/') - path);
    if (d->fenced != NULL && strlen(d->fenced) == n && strncmp(d->fenced, path, n) == 0)
        return;
    free(d->fenced);
    d->fenced = mem_dup(path, n);
    layout_fence(d->l, path);
}

static bool visit_entry(void *arg, const char *path, bool is_directory)
{
    struct deny *d = arg;
    for (size_t i = 0; i < d->n; i++) {
        const struct rule *r = &d->rules[i];
        bool whole = is_directory && r->whole.n > 0 && glob_match(&r->whole, path);
        if (!whole && !glob_match(&r->match, path))
            continue;
        autofree char *full = mem_printf("%s/%s", d->v->workspace, path);
        if (r->deep)
            fence(d, full);
        layout_add(d->l, is_directory ? LAYOUT_HIDE_DIR : LAYOUT_HIDE_FILE, LAYOUT_RANK_HIDDEN,
                   full, NULL);
        return false;
    }
    return is_directory;
}

/* Nobody can say what is in it, and its owner, whom the command is, can open it later. */
static void hide_closed(void *arg, const char *path)
{
    struct deny *d = arg;
    autofree char *full = mem_printf("%s/%s", d->v->workspace, path);
    if (path[0] != '\0')
        layout_add(d->l, LAYOUT_HIDE_DIR, LAYOUT_RANK_HIDDEN, full, NULL);
}

int deny_add(const struct view *v, struct layout *l, struct err *e)
{
    __attribute__((cleanup(deny_fini))) struct deny d = {.v = v, .l = l};
    if (v->deny.len == 0)
        return 0;
    d.rules = mem_zalloc(v->deny.len, sizeof(*d.rules));
    for (size_t i = 0; i < v->deny.len; i++) {
        d.n++;
        if (compile(v->deny.items[i], &d.rules[i], e) < 0)
            return -1;
    }
    int rc = walk_tree_closed(v->workspace, DENY_SCAN_MAX, visit_entry, hide_closed, &d);
    if (rc == 1)
        return err_set(e, ERR_LIMIT_EXCEEDED,
                       "deny: the workspace has more than DENY_SCAN_MAX (%u) entries, so not every "
                       "match could be found; hide directories by their paths instead",
                       DENY_SCAN_MAX);
    return rc < 0 ? err_sys(e, ERR_INVALID_COMMAND, rc, "deny: %s", v->workspace) : 0;
}
