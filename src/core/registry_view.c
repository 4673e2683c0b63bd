/* core/registry_view: see registry_view.h. */
#include "core/registry_view.h"

#include "base/mem.h"
#include "core/root.h"
#include "wire/json.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

const char *const registry_git_names[] = {"read-only", "commit", NULL};
const char *const registry_tmp_names[] = {"private", "shared", NULL};
const char *const registry_proc_names[] = {"fresh", "inherited", NULL};

static size_t count(struct json_object *array)
{
    return array == NULL ? 0 : json_object_array_length(array);
}

static const char *item(struct json_object *array, size_t i)
{
    return json_str(json_object_array_get_idx(array, i));
}

/* Relative, in the one normal spelling. */
static int take_protect(struct json_object *array, const char *where, struct workspace *ws,
                        struct err *e)
{
    for (size_t i = 0; i < count(array); i++) {
        const char *path = item(array, i);
        autofree char *absolute = mem_printf("/%s", path);
        if (path[0] == '\0' || path[0] == '/' || root_check_normal(absolute, NULL) < 0)
            return err_set(e, ERR_CONFIG_INVALID,
                           "%s.protect[%zu]: \"%.256s\" is not a path relative to the workspace, "
                           "without empty, \".\" and \"..\" components",
                           where, i, path);
        strv_add(&ws->protect, path);
    }
    return 0;
}

static int take_deny(struct json_object *array, const char *where, struct workspace *ws,
                     struct err *e)
{
    if (count(array) == 0)
        return 0;
    ws->deny = mem_zalloc(count(array), sizeof(*ws->deny));
    for (size_t i = 0; i < count(array); i++) {
        if (glob_compile(item(array, i), &ws->deny[i], e) < 0)
            return err_wrap(e, "%s.deny_read[%zu]", where, i);
        strv_add(&ws->deny_read, item(array, i));
        if (ws->deny[i].everything)
            return err_set(e, ERR_CONFIG_INVALID,
                           "%s.deny_read[%zu]: \"%.128s\" would hide the whole workspace", where, i,
                           item(array, i));
    }
    return 0;
}

static int take_devices(struct json_object *array, const char *where, struct workspace *ws,
                        struct err *e)
{
    for (size_t i = 0; i < count(array); i++) {
        struct stat st;
        const char *path = item(array, i);
        if (root_check_canonical(path, e) < 0)
            return err_wrap(e, "%s.devices[%zu]", where, i);
        if (!root_within(path, "/dev") || str_eq(path, "/dev"))
            return err_set(e, ERR_CONFIG_INVALID,
                           "%s.devices[%zu]: \"%.256s\" does not lie in /dev", where, i, path);
        if (stat(path, &st) < 0)
            return err_sys(e, ERR_CONFIG_INVALID, errno, "%s.devices[%zu]: \"%.256s\"", where, i,
                           path);
        if (!S_ISCHR(st.st_mode) && !S_ISDIR(st.st_mode))
            return err_set(e, ERR_CONFIG_INVALID,
                           "%s.devices[%zu]: \"%.256s\" is neither a character device nor a "
                           "directory",
                           where, i, path);
        strv_add(&ws->devices, path);
    }
    return 0;
}

/* A plan of the next command must not lie where this one can write. */
static int check_tmp(const struct workspace *ws, const char *where, struct err *e)
{
    char real[PATH_MAX];
    const char *tmp = getenv("TMPDIR");
    if (!ws->shared_tmp || realpath(tmp != NULL && tmp[0] == '/' ? tmp : "/tmp", real) == NULL ||
        !root_within(real, "/tmp"))
        return 0;
    return err_set(e, ERR_CONFIG_INVALID,
                   "%s.tmp: \"shared\" lets commands write where this server keeps what they are "
                   "allowed (%.128s); start it with TMPDIR set to a directory outside of /tmp",
                   where, real);
}

/* The ids of a user namespace are written into /proc. */
static int check_namespaces(const struct workspace *ws, const char *where, struct err *e)
{
    if (!ws->user_namespaces || !ws->inherited_proc)
        return 0;
    return err_set(e, ERR_CONFIG_INVALID,
                   "%s.user_namespaces: they need a /proc that can be written; leave \"proc\": "
                   "\"inherited\" out, or do without them",
                   where);
}

static int take_limits(const struct registry_view *in, const char *where, struct workspace *ws,
                       struct err *e)
{
    autofree char *key = mem_printf("%s.limits", where);
    if (in->limits != NULL &&
        helper_limits_read(in->limits, key, &ws->limits, ERR_CONFIG_INVALID, e) < 0)
        return -1;
    bool group = ws->limits.memory != 0 || ws->limits.pids != 0 || ws->limits.cpu_percent != 0;
    if (group && in->cgroup_parent == NULL)
        return err_set(e, ERR_CONFIG_INVALID,
                       "%s: memory, pids and cpu_percent need a control group; name a directory "
                       "that this server may make groups in (\"cgroup_parent\")",
                       key);
    if (in->cgroup_parent != NULL && root_check_canonical(in->cgroup_parent, e) < 0)
        return err_wrap(e, "%s.cgroup_parent", where);
    ws->cgroup_parent = mem_strdup(in->cgroup_parent);
    return 0;
}

int registry_view_take(const struct registry_view *in, const char *where, struct workspace *ws,
                       struct err *e)
{
    ws->git = (enum view_git)in->git;
    ws->shared_tmp = in->tmp == 1;
    ws->inherited_proc = in->proc == 1;
    ws->debug = in->debug;
    ws->user_namespaces = in->user_namespaces;
    if (take_protect(in->protect, where, ws, e) < 0 || take_deny(in->deny_read, where, ws, e) < 0 ||
        take_devices(in->devices, where, ws, e) < 0 || take_limits(in, where, ws, e) < 0)
        return -1;
    return check_namespaces(ws, where, e) < 0 ? -1 : check_tmp(ws, where, e);
}
