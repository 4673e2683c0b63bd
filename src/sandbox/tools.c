/* sandbox/tools: see tools.h. */
#include "sandbox/tools.h"

#include "base/mem.h"
#include "base/str.h"
#include "sandbox/layout.h"
#include "sandbox/paths.h"
#include "sys/beside.h"

#include <stdlib.h>
#include <string.h>

#define PROGRAM "codespace-patch"
#define NAME "apply_patch"

static bool in_platform(const char *path)
{
    for (size_t i = 0; view_platform[i] != NULL; i++) {
        if (paths_within(path, view_platform[i]))
            return true;
    }
    return false;
}

/* What a command can write it can run by its path, and exchange. */
static bool is_writable(const struct view *v, const char *path)
{
    bool writable = v->workspace_writable && paths_within(path, v->workspace);
    for (size_t i = 0; i < v->n_mounts && !writable; i++)
        writable = v->mounts[i].writable && paths_within(path, v->mounts[i].path);
    return writable || (v->shared_tmp && paths_within(path, "/tmp"));
}

/* The program's real path when it has to be shown (caller frees), or NULL. */
static char *program(const struct view *v)
{
    autofree char *found = beside_find(PROGRAM);
    autofree char *real = found == NULL ? NULL : realpath(found, NULL);
    if (real == NULL || in_platform(real) || is_writable(v, real))
        return NULL;
    return steal(real);
}

/* The entry of the plan's environment that is our default PATH, or NULL. */
static char **default_path(struct plan *p)
{
    for (size_t i = 0; view_environment[i] != NULL; i++) {
        for (size_t k = 0; str_starts(view_environment[i], "PATH=") && k < p->env.len; k++) {
            if (strcmp(p->env.items[k], view_environment[i]) == 0)
                return &p->env.items[k];
        }
    }
    return NULL;
}

void tools_plan(const struct helper_request *r, struct plan *p)
{
    char **path = default_path(p);
    autofree char *source = path == NULL ? NULL : program(&r->view);
    if (source == NULL)
        return;
    strv_add(&p->sources, source);
    autofree char *fd = mem_printf("%zu", PLAN_FD_SOURCE + p->sources.len - 1);
    layout_args(p, "--perms", "0555", "--tmpfs", TOOLS_DIR, "--ro-bind-fd", fd, TOOLS_DIR "/" NAME,
                "--remount-ro", TOOLS_DIR, NULL);
    autofree char *before = *path;
    *path = mem_printf("%s:%s", before, TOOLS_DIR);
}
