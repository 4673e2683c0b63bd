/* sandbox/gitdir: see gitdir.h. */
#include "sandbox/gitdir.h"

#include "base/mem.h"
#include "base/str.h"
#include "sandbox/gitconfig.h"
#include "sandbox/paths.h"
#include "sandbox/protect.h"
#include "sandbox/walk.h"
#include "sys/path.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

/* Files that include files: as far as git goes. */
#define INCLUDE_DEPTH 10

/* Linked worktrees and submodules of one repository. */
#define CHILDREN_SCAN_MAX 20000u

/* In every git directory; "info" as a whole, since its attributes name filters. */
static const char *const pieces[] = {"hooks", "config",    "config.worktree",
                                     "info",  "commondir", "gitdir"};

struct git {
    const struct view *v;
    struct layout *l;
    struct plan *p;
};

/* ---- reading what git wrote ---- */

/* The first line, or NULL. */
static char *read_line(const char *path)
{
    char text[PATH_MAX + 16];
    gitconfig_read_text(path, text, sizeof(text));
    text[strcspn(text, "\r\n")] = '\0';
    return text[0] == '\0' ? NULL : mem_strdup(text);
}

/* `path` as git reads it from a file in `dir`; canonical, or NULL when it is not there. */
static char *resolve(const char *dir, const char *path)
{
    autofree char *full = path[0] == '/' ? mem_strdup(path) : mem_printf("%s/%s", dir, path);
    return realpath(full, NULL);
}

static char *parent_of(const char *path)
{
    return mem_dup(path, (size_t)(strrchr(path, '/') - path));
}

/* Where the pointer file leads, or NULL. */
static char *read_pointer(const char *dot_git)
{
    autofree char *line = read_line(dot_git);
    if (line == NULL || !str_starts(line, "gitdir:"))
        return NULL;
    const char *target = line + strlen("gitdir:");
    autofree char *dir = parent_of(dot_git);
    return resolve(dir, target + strspn(target, " \t"));
}

/* The directory that `git_dir` shares with others; itself when it shares none. */
static char *common_of(const char *git_dir)
{
    autofree char *file = mem_printf("%s/commondir", git_dir);
    autofree char *line = read_line(file);
    char *common = line == NULL ? NULL : resolve(git_dir, line);
    return common != NULL ? common : mem_strdup(git_dir);
}

/* The value of the last `key` in any section of git_dir's config, or NULL. Which section does not
 * matter: one too many is compared. */
static char *config_value(const char *git_dir, const char *key)
{
    autofree char *path = mem_printf("%s/config", git_dir);
    char *value = NULL;
    autogitconfig c;
    gitconfig_open(&c, path);
    while (gitconfig_next(&c)) {
        if (strcasecmp(c.key, key) != 0)
            continue;
        free(value);
        value = mem_strdup(c.value);
    }
    return value;
}

/* Whether a submodule's config says core.worktree = `work_tree`. */
static bool config_names(const char *git_dir, const char *work_tree)
{
    autofree char *value = config_value(git_dir, "worktree");
    autofree char *named = value == NULL ? NULL : resolve(git_dir, value);
    return str_eq(named, work_tree);
}

/* Whether the git directory belongs to the work tree whose pointer leads to it, by its own word. */
static bool is_answered(const char *git_dir, const char *common, const char *dot_git)
{
    autofree char *work_tree = parent_of(dot_git);
    autofree char *file = mem_printf("%s/gitdir", git_dir);
    autofree char *line = read_line(file);
    if (line == NULL)
        return config_names(git_dir, work_tree);
    autofree char *back = resolve(git_dir, line);
    autofree char *worktrees = mem_printf("%s/worktrees", common);
    return str_eq(back, dot_git) && paths_within(git_dir, worktrees);
}

/* ---- one git directory ---- */

static void protect_pieces(const struct git *g, const char *git_dir)
{
    for (size_t i = 0; i < ARRAY_LEN(pieces); i++) {
        autofree char *path = mem_printf("%s/%s", git_dir, pieces[i]);
        protect_path(path, g->l, g->p);
    }
}

struct children {
    const struct git *g;
    const char *dir;
};

/* A directory with a file HEAD is a git directory; in it only its own submodules matter, which lie
 * in "modules", and its worktrees. */
static bool visit_child(void *arg, const char *path, bool is_directory)
{
    const struct children *c = arg;
    if (!is_directory)
        return false;
    autofree char *child = mem_printf("%s/%s", c->dir, path);
    autofree char *head = mem_printf("%s/HEAD", child);
    const char *leaf = strrchr(child, '/') + 1;
    autofree char *around = parent_of(child);
    autofree char *around_head = mem_printf("%s/HEAD", around);
    if (access(around_head, F_OK) == 0)
        return str_eq(leaf, "modules") || str_eq(leaf, "worktrees");
    if (access(head, F_OK) == 0)
        protect_pieces(c->g, child);
    return true;
}

static void protect_children(const struct git *g, const char *git_dir, const char *name)
{
    autofree char *dir = mem_printf("%s/%s", git_dir, name);
    struct children c = {g, dir};
    walk_tree(dir, CHILDREN_SCAN_MAX, visit_child, &c);
}

/* A directory that git keeps a repository in, canonical, in a writable place. */
static void protect_directory(const struct git *g, const char *git_dir)
{
    /* A pointer to the work tree itself, or around it, is nonsense that git refuses. */
    if (paths_within(g->v->workspace, git_dir))
        return;
    layout_fence(g->l, git_dir);
    if (g->v->git == VIEW_GIT_READ_ONLY) {
        layout_add(g->l, LAYOUT_BIND, LAYOUT_RANK_PROTECTED, git_dir, NULL);
        return;
    }
    layout_add(g->l, LAYOUT_BIND_RW, LAYOUT_RANK_FENCE, git_dir, NULL);
    protect_pieces(g, git_dir);
    protect_children(g, git_dir, "worktrees");
    protect_children(g, git_dir, "modules");
}

/* What a setting in `dir` names, when it is not around the workspace or somewhere else in it; NULL
 * when git would find nothing there. It may be missing. */
static char *place_named(const struct git *g, const char *dir, const char *value)
{
    if (value[0] == '\0' || value[0] == '~')
        return NULL;
    autofree char *full = value[0] == '/' ? mem_strdup(value) : mem_printf("%s/%s", dir, value);
    size_t n = strlen(full);
    while (n > 1 && full[n - 1] == '/')
        full[--n] = '\0';
    autofree char *place = protect_place(full);
    if (place == NULL) /* it ends in a directory's own name, like ".." */
        place = realpath(full, NULL);
    char words[PATH_MAX];
    if (place == NULL && value[0] != '/' && path_normalise(value, words, sizeof(words)) == 0)
        place = mem_printf("%s/%s", dir, words); /* its directories are missing as well */
    return place == NULL || paths_within(g->v->workspace, place) ? NULL : steal(place);
}

static void protect_settings(const struct git *g, const char *file, const char *work_tree,
                             unsigned depth);

/* A file that is included is a part of the settings. */
static void protect_included(const struct git *g, const char *file, const char *value,
                             const char *work_tree, unsigned depth)
{
    struct stat st;
    autofree char *dir = parent_of(file);
    autofree char *place = place_named(g, dir, value);
    if (depth == 0 || place == NULL || (stat(place, &st) == 0 && !S_ISREG(st.st_mode)))
        return;
    protect_path(place, g->l, g->p);
    autofree char *real = realpath(place, NULL);
    if (real != NULL)
        protect_settings(g, real, work_tree, depth - 1);
}

/* Settings, and hooks, may be kept among the files of the work tree (include.path, core.hooksPath).
 */
static void protect_settings(const struct git *g, const char *file, const char *work_tree,
                             unsigned depth)
{
    autogitconfig c;
    gitconfig_open(&c, file);
    while (gitconfig_next(&c)) {
        if (c.including && strcasecmp(c.key, "path") == 0)
            protect_included(g, file, c.value, work_tree, depth);
        if (strcasecmp(c.key, "hooksPath") != 0)
            continue;
        autofree char *hooks = place_named(g, work_tree, c.value);
        if (hooks != NULL)
            protect_path(hooks, g->l, g->p);
    }
}

static void protect_hooks(const struct git *g, const char *git_dir, const char *dot_git)
{
    static const char *const files[] = {"config", "config.worktree"};
    autofree char *work_tree = parent_of(dot_git);
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        autofree char *file = mem_printf("%s/%s", git_dir, files[i]);
        protect_settings(g, file, work_tree, INCLUDE_DEPTH);
    }
}

/* Show a directory that is not in a writable place. */
static void show(const struct git *g, const char *dir)
{
    bool writable = g->v->git == VIEW_GIT_COMMIT;
    if (layout_writable(g->l, dir) == NULL)
        layout_add(g->l, writable ? LAYOUT_BIND_RW : LAYOUT_BIND, LAYOUT_RANK_MOUNT, dir, NULL);
}

static void protect_pointer(const struct git *g, const char *dot_git)
{
    protect_path(dot_git, g->l, g->p);
    autofree char *git_dir = read_pointer(dot_git);
    if (git_dir == NULL)
        return;
    autofree char *common = common_of(git_dir);
    protect_hooks(g, common, dot_git);
    if (!str_eq(git_dir, common))
        protect_hooks(g, git_dir, dot_git);
    bool outside = layout_writable(g->l, git_dir) == NULL || layout_writable(g->l, common) == NULL;
    if (outside && !is_answered(git_dir, common, dot_git))
        return;
    show(g, common);
    show(g, git_dir);
    if (layout_writable(g->l, common) != NULL)
        protect_directory(g, common);
    if (!str_eq(git_dir, common) && layout_writable(g->l, git_dir) != NULL)
        protect_directory(g, git_dir);
}

/* A `.git` that is a link: the link stays, and what it leads to is the repository, in which git may
 * write as in any other. Outside of the writable places nothing is made writable for it. */
static void protect_linked(const struct git *g, const char *dot_git)
{
    struct stat st;
    autofree char *next = protect_link(dot_git, g->l, g->p);
    if (next == NULL)
        return;
    if (paths_within(g->v->workspace, next))
        protect_path(next, g->l, g->p);
    else
        gitdir_protect(g->v, next, g->l, g->p);
    /* Settings of the repository count from the work tree, which is where the link is. */
    if (stat(next, &st) == 0 && S_ISDIR(st.st_mode))
        protect_hooks(g, next, dot_git);
}

void gitdir_protect(const struct view *v, const char *dot_git, struct layout *l, struct plan *p)
{
    struct git g = {v, l, p};
    struct stat st;
    if (lstat(dot_git, &st) < 0 || layout_writable(l, dot_git) == NULL)
        protect_path(dot_git, l, p);
    else if (S_ISLNK(st.st_mode))
        protect_linked(&g, dot_git);
    else if (S_ISREG(st.st_mode))
        protect_pointer(&g, dot_git);
    else if (S_ISDIR(st.st_mode)) {
        protect_hooks(&g, dot_git, dot_git);
        protect_directory(&g, dot_git);
    }
}

/* ---- nested ones ---- */

struct search {
    const char *workspace;
    struct strv *found; /* absolute */
};

static bool is_in(const char *dir, const char *name)
{
    autofree char *path = mem_printf("%s/%s", dir, name);
    return access(path, F_OK) == 0;
}

/* What git takes for a repository when it is started in it, whatever it is called: HEAD, and
 * objects and refs, which may lie where "commondir" says. */
static bool is_repository(const char *dir)
{
    return is_in(dir, "HEAD") &&
           (is_in(dir, "commondir") || (is_in(dir, "objects") && is_in(dir, "refs")));
}

/* Which of a repository's own directories hold nothing to look for. */
static bool is_own_name(const char *leaf)
{
    static const char *const names[] = {"objects", "refs",    "hooks", "info",
                                        "logs",    "modules", "lfs",   "worktrees"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (str_eq(leaf, names[i]))
            return true;
    }
    return false;
}

static bool visit_entry(void *arg, const char *path, bool is_directory)
{
    struct search *s = arg;
    const char *slash = strrchr(path, '/');
    const char *leaf = slash == NULL ? path : slash + 1;
    if (str_eq(leaf, LISTINGS_NAME)) {
        strv_addf(s->found, "%s/%s", s->workspace, path);
        return false;
    }
    bool head = str_eq(leaf, LISTINGS_HEAD);
    if (!head && !(is_directory && is_own_name(leaf)))
        return is_directory;
    autofree char *dir = slash == NULL
                             ? mem_strdup(s->workspace)
                             : mem_printf("%s/%.*s", s->workspace, (int)(slash - path), path);
    bool repository = is_repository(dir);
    if (repository && head)
        strv_addf(s->found, "%s%s", dir, slash == NULL ? "/." : "");
    return is_directory && !repository;
}

/* One without a work tree around it (`git init --bare`). Commands may push to it and fetch into it;
 * its hooks and settings stay in both modes. */
static void protect_bare(const struct git *g, const char *found)
{
    size_t n = strlen(found);
    autofree char *dir = mem_dup(found, str_eq(found + n - 2, "/.") ? n - 2 : n);
    if (layout_writable(g->l, dir) == NULL)
        return;
    layout_fence(g->l, dir);
    protect_pieces(g, dir);
    protect_children(g, dir, "worktrees");
    protect_children(g, dir, "modules");
}

void gitdir_protect_nested(const struct view *v, struct layout *l, struct plan *p)
{
    struct search s = {v->workspace, &p->repositories};
    const struct git g = {v, l, p};
    walk_tree(v->workspace, GITDIR_SCAN_MAX, visit_entry, &s);
    autofree char *own = mem_printf("%s/.git", v->workspace);
    for (size_t i = 0; i < p->repositories.len; i++) {
        const char *found = p->repositories.items[i];
        if (!str_eq(strrchr(found, '/') + 1, LISTINGS_NAME))
            protect_bare(&g, found);
        else if (!str_eq(found, own))
            gitdir_protect(v, found, l, p);
    }
    p->search = true;
}

int gitdir_find_new(const char *workspace, const struct strv *known, struct listings *listings,
                    struct strv *ret)
{
    autostrv found = {0};
    struct search s = {workspace, &found};
    int rc = walk_known(workspace, GITDIR_SCAN_MAX, listings, visit_entry, &s);
    for (size_t i = 0; i < found.len; i++) {
        if (!strv_has(known, found.items[i]))
            strv_add(ret, found.items[i] + strlen(workspace) + 1);
    }
    return rc;
}
