/* core/registry_view: the keys of a workspace that say what its commands may see, change and use
 * besides its root and mounts.
 *
 * Theory. Read once at load, by the tables that the helper reads its request with, and checked as
 * far as that can be done without the command: what was compiled here answers the file tools too
 * (core/policy), so both give one verdict about a path (A27).
 *
 * Must not: accept what the helper would refuse, or drop a limit that cannot be held.
 */
#ifndef CODESPACE_CORE_REGISTRY_VIEW_H
#define CODESPACE_CORE_REGISTRY_VIEW_H

#include "base/err.h"
#include "core/registry.h"

/* The keys as they stand in the file; NULL and 0 = absent. */
struct registry_view {
    struct json_object *protect;
    struct json_object *deny_read;
    int git;
    int tmp;
    int proc;
    struct json_object *devices;
    bool debug;
    bool user_namespaces;
    struct json_object *limits;
    const char *cgroup_parent;
};

extern const char *const registry_git_names[];
extern const char *const registry_tmp_names[];
extern const char *const registry_proc_names[];

/* Into `ws`. Errors: CONFIG_INVALID with the key; `where` begins messages. */
int registry_view_take(const struct registry_view *in, const char *where, struct workspace *ws,
                       struct err *e);

#endif
