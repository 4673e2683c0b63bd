/* core/registry_add: taking a workspace in, and what two workspaces must not be to each other.
 *
 * Theory. A rule of one workspace is worth nothing when the same files can be reached by another
 * workspace without it. So:
 *   - one directory (device and inode) is one workspace;
 *   - a workspace may lie inside another one only when the outer one is read-only and hides, too,
 *     what the inner one hides;
 *   - a writable extra mount has no part in common with another workspace, nor with its own.
 * Reading across (read "all", a read-only mount) is the operator's word: `hide` counts for the
 * workspace that it is written in.
 */
#include "base/mem.h"
#include "core/registry.h"
#include "core/registry_egress.h"
#include "core/root.h"
#include "core/secrets.h"

#include <ctype.h>
#include <limits.h>
#include <string.h>

static bool is_hidden(const struct strv *hide, const char *path)
{
    for (size_t i = 0; i < hide->len; i++) {
        if (root_within(path, hide->items[i]))
            return true;
    }
    return false;
}

/* `inner` lies inside `outer`. */
static int check_nested(const struct workspace *outer, const struct workspace *inner, struct err *e)
{
    if (outer->profile == PROFILE_WORKSPACE_WRITE)
        return err_set(e, ERR_CONFIG_INVALID,
                       "\"%s\" (%.200s) lies inside \"%s\" (%.200s), which is workspace-write, so "
                       "the rules of \"%s\" could be passed by; only a read-only workspace may "
                       "contain another one",
                       inner->id, inner->root, outer->id, outer->root, inner->id);
    for (size_t i = 0; i < inner->hide.len; i++) {
        const char *path = inner->hide.items[i];
        if (root_within(path, outer->root) && !is_hidden(&outer->hide, path))
            return err_set(e, ERR_CONFIG_INVALID,
                           "\"%s\" hides \"%.256s\", but \"%s\" contains it and shows it; add the "
                           "path to the list \"hide\" of \"%s\"",
                           inner->id, path, outer->id, outer->id);
    }
    return 0;
}

static int check_mounts(const struct workspace *a, const struct workspace *b, struct err *e)
{
    for (size_t i = 0; i < a->n_mounts; i++) {
        const char *path = a->mounts[i].path;
        if (a->mounts[i].writable && (root_within(path, b->root) || root_within(b->root, path)))
            return err_set(e, ERR_CONFIG_INVALID,
                           "the writable mount \"%.256s\" of \"%s\" and the workspace \"%s\" "
                           "(%.200s) have files in common, so the rules of \"%s\" could be passed "
                           "by",
                           path, a->id, b->id, b->root, b->id);
    }
    return 0;
}

static int check_pair(const struct workspace *a, const struct workspace *b, struct err *e)
{
    if (a->dev == b->dev && a->ino == b->ino)
        return err_set(e, ERR_CONFIG_INVALID,
                       "\"%s\" and \"%s\" are the same directory (%.256s); register it once", a->id,
                       b->id, b->root);
    if (root_within(b->root, a->root) && check_nested(a, b, e) < 0)
        return -1;
    if (root_within(a->root, b->root) && check_nested(b, a, e) < 0)
        return -1;
    if (check_mounts(a, b, e) < 0 || check_mounts(b, a, e) < 0)
        return -1;
    return 0;
}

static int check_own_mount(const struct workspace *ws, size_t i, struct err *e)
{
    const char *path = ws->mounts[i].path;
    if (root_within(path, ws->root))
        return err_set(e, ERR_CONFIG_INVALID,
                       "mounts[%zu].path: \"%.256s\" lies in the workspace, where the profile "
                       "decides; leave it out",
                       i, path);
    if (ws->mounts[i].writable && root_within(ws->root, path))
        return err_set(e, ERR_CONFIG_INVALID,
                       "mounts[%zu].path: \"%.256s\" contains the workspace; writable, it would "
                       "undo the protection of names in it",
                       i, path);
    return 0;
}

static int check_own(const struct workspace *ws, struct err *e)
{
    for (size_t i = 0; i < ws->n_mounts; i++) {
        if (check_own_mount(ws, i, e) < 0)
            return -1;
    }
    for (size_t i = 0; i < ws->hide.len; i++) {
        if (root_within(ws->root, ws->hide.items[i]))
            return err_set(e, ERR_CONFIG_INVALID,
                           "hide[%zu]: \"%.256s\" would hide the workspace itself", i,
                           ws->hide.items[i]);
    }
    return 0;
}

/* Whether commands of the workspace can write `path`. */
static bool reaches(const struct workspace *ws, const char *path)
{
    bool reached = ws->profile == PROFILE_WORKSPACE_WRITE && root_within(path, ws->root);
    for (size_t i = 0; i < ws->n_mounts; i++)
        reached |= ws->mounts[i].writable && root_within(path, ws->mounts[i].path);
    return reached;
}

/* A command must not be able to write the rules of the next start. */
static int check_config_file(const struct registry *r, const struct workspace *ws, struct err *e)
{
    if (r->config_path == NULL || !reaches(ws, r->config_path))
        return 0;
    return err_set(e, ERR_CONFIG_INVALID,
                   "the configuration file (%.256s) lies where commands of this workspace can "
                   "write, so they could change its rules; move the file elsewhere",
                   r->config_path);
}

/* Nor the programs that the next command, or the next start, runs outside the sandbox. */
static int check_program(const struct workspace *ws, const char *name, struct err *e)
{
    char path[PATH_MAX];
    if (name == NULL || realpath(name, path) == NULL || !reaches(ws, path))
        return 0;
    return err_set(e, ERR_CONFIG_INVALID,
                   "the program %.256s lies where commands of this workspace can write, so they "
                   "could replace it and leave the sandbox; install the programs elsewhere "
                   "(./dev install PREFIX)",
                   path);
}

static int check_programs(const struct workspace *ws, struct err *e)
{
    if (check_program(ws, "/proc/self/exe", e) < 0)
        return -1;
    return check_program(ws, getenv("CODESPACE_LINUX_SANDBOX_BIN"), e);
}

static int open_root(struct workspace *ws, const char *where, struct err *e)
{
    struct root root;
    if (root_open(ws->root, ws->profile == PROFILE_WORKSPACE_WRITE, &root, e) < 0)
        return err_wrap(e, "%s", where);
    free(ws->root);
    ws->root = root.path;
    ws->root_fd = root.fd;
    ws->dev = root.dev;
    ws->ino = root.ino;
    return 0;
}

static int check_new(const struct registry *r, struct workspace *ws, const char *where,
                     struct err *e)
{
    if (r->n >= REGISTRY_WORKSPACES_MAX)
        return err_set(e, ERR_CONFIG_INVALID,
                       "%s: more than REGISTRY_WORKSPACES_MAX (%d) workspaces", where,
                       REGISTRY_WORKSPACES_MAX);
    if (check_own(ws, e) < 0 || check_config_file(r, ws, e) < 0 || check_programs(ws, e) < 0 ||
        secrets_find(ws, e) < 0 || registry_egress_keep(ws, ws, e) < 0)
        return err_wrap(e, "%s", where);
    for (size_t i = 0; i < r->n; i++) {
        if (check_pair(r->items[i], ws, e) < 0 || registry_egress_keep(r->items[i], ws, e) < 0 ||
            registry_egress_keep(ws, r->items[i], e) < 0)
            return err_wrap(e, "%s", where);
    }
    return 0;
}

int registry_add_take(struct registry *r, struct workspace *ws, const char *where, struct err *e)
{
    autofree char *root_key = mem_printf("%s.root", where);
    const struct workspace *twin = map_get(&r->by_id, ws->id);
    ws->root_fd = -1;
    if (twin != NULL) {
        err_set(e, ERR_CONFIG_INVALID, "%s: the id \"%s\" is taken by %.256s", where, ws->id,
                twin->root);
        workspace_free(ws);
        return -1;
    }
    if (open_root(ws, root_key, e) < 0 || check_new(r, ws, where, e) < 0) {
        workspace_free(ws);
        return -1;
    }
    void *items = r->items;
    mem_grow(&items, &r->cap, r->n + 1, sizeof(*r->items));
    r->items = items;
    r->items[r->n++] = ws;
    map_set(&r->by_id, ws->id, ws);
    return 0;
}

/* ---- --workspace [ID=]DIR ---- */

/* An id from a directory's name. */
static char *make_id(const char *root)
{
    autofree char *name = mem_strdup(strrchr(root, '/') + 1);
    for (char *c = name; *c != '\0'; c++) {
        if (!isalnum((unsigned char)*c) && strchr("._-", *c) == NULL)
            *c = '-';
    }
    const char *id = name + strspn(name, ".-");
    return id[0] == '\0' ? mem_strdup("workspace") : mem_dup(id, strnlen(id, REGISTRY_ID_MAX));
}

static struct workspace *workspace_of_option(char *id, const char *dir)
{
    struct workspace *ws = mem_new(struct workspace);
    ws->id = id;
    ws->root = mem_strdup(dir);
    ws->root_fd = -1;
    ws->profile = PROFILE_WORKSPACE_WRITE;
    return ws;
}

/* "my id=/srv/x": the '=' was meant to split. */
static int refuse_option(const char *option, bool named, const char *where, struct err *e)
{
    if (!named && option[strcspn(option, "=/")] == '=')
        return err_wrap(e,
                        "%s: taken as a directory, because what stands before '=' is not an id (1 "
                        "to %d letters, digits, '.', '_', '-')",
                        where, REGISTRY_ID_MAX);
    return err_wrap(e, "%s", where);
}

int registry_add_option(struct registry *r, const char *option, struct err *e)
{
    const char *equals = strchr(option, '=');
    autofree char *left = mem_dup(option, equals == NULL ? 0 : (size_t)(equals - option));
    autofree char *where = mem_printf("--workspace %.256s", option);
    struct root root;
    bool named = registry_id_valid(left);
    const char *dir = named ? equals + 1 : option;
    if (dir[0] == '\0')
        return err_set(e, ERR_CONFIG_INVALID, "%s: the directory is missing; write ID=DIR or DIR",
                       where);
    if (root_open(dir, true, &root, e) < 0)
        return refuse_option(option, named, where, e);
    autofree char *path = root.path;
    mem_cleanup_fd(&root.fd);
    char *id = named ? steal(left) : make_id(path);
    const struct workspace *twin = map_get(&r->by_id, id);
    if (twin != NULL) {
        err_set(e, ERR_CONFIG_INVALID,
                "%s: the id \"%s\" is taken by %.256s; give this one an id of its own: --workspace "
                "ID=%.256s",
                where, id, twin->root, dir);
        free(id);
        return -1;
    }
    return registry_add_take(r, workspace_of_option(id, path), where, e);
}
