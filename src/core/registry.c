/* core/registry: looking up what was registered, see registry.h. Adding is in registry_add.c, the
 * configuration file in registry_load.c. */
#include "core/registry.h"

#include "base/buf.h"
#include "base/mem.h"

#include <string.h>
#include <unistd.h>

/* Ids that an error names before it says how many more there are. */
#define IDS_SHOWN 20

void workspace_free(struct workspace *ws)
{
    if (ws == NULL)
        return;
    if (ws->root_fd >= 0)
        close(ws->root_fd);
    for (size_t i = 0; i < ws->n_mounts; i++)
        free(ws->mounts[i].path);
    free(ws->mounts);
    strv_fini(&ws->hide);
    strv_fini(&ws->hidden);
    strv_fini(&ws->env);
    strv_fini(&ws->protect);
    for (size_t i = 0; i < ws->deny_read.len; i++)
        glob_fini(&ws->deny[i]);
    free(ws->deny);
    strv_fini(&ws->deny_read);
    strv_fini(&ws->devices);
    free(ws->cgroup_parent);
    egress_policy_fini(&ws->egress);
    free(ws->root);
    free(ws->id);
    free(ws);
}

void registry_fini(struct registry *r)
{
    for (size_t i = 0; i < r->n; i++)
        workspace_free(r->items[i]);
    free(r->items);
    free(r->config_path);
    map_fini(&r->by_id);
    *r = (struct registry){0};
}

void registry_require_sandbox(struct registry *r)
{
    for (size_t i = 0; i < r->n; i++)
        r->items[i]->sandbox = SANDBOX_REQUIRED;
}

static void list_ids(const struct registry *r, struct buf *out)
{
    for (size_t i = 0; i < r->n && i < IDS_SHOWN; i++)
        buf_printf(out, "%s%s", i > 0 ? ", " : "", r->items[i]->id);
    if (r->n > IDS_SHOWN)
        buf_printf(out, " and %zu more", r->n - IDS_SHOWN);
}

const struct workspace *registry_get(const struct registry *r, const char *id, struct err *e)
{
    const struct workspace *ws = map_get(&r->by_id, id);
    if (ws != NULL)
        return ws;
    if (r->n == 0) {
        err_set(e, ERR_WORKSPACE_NOT_FOUND,
                "no workspace \"%.64s\": none is registered; an operator starts the server with "
                "--workspace DIR or --config FILE",
                id);
        return NULL;
    }
    autobuf ids = BUF_INIT;
    list_ids(r, &ids);
    err_set(e, ERR_WORKSPACE_NOT_FOUND, "no workspace \"%.64s\" is registered; there are: %s", id,
            buf_cstr(&ids));
    return NULL;
}

bool registry_id_valid(const char *id)
{
    static const char allowed[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    size_t n = strlen(id);
    return n >= 1 && n <= REGISTRY_ID_MAX && strspn(id, allowed) == n && id[0] != '.' &&
           id[0] != '-';
}

const char *profile_name(enum profile p)
{
    return p == PROFILE_READ_ONLY ? "read-only" : "workspace-write";
}

const char *network_name(enum network_policy n)
{
    return n == NETWORK_RESTRICTED ? "restricted" : "enabled";
}

const char *network_scope_name(enum network_scope s)
{
    return s == NETWORK_SCOPE_COMMAND ? "command" : "workspace";
}

const char *environment_name(enum environment_kind k)
{
    return k == ENVIRONMENT_HOST ? "host" : "linux-container";
}

const char *approvals_name(enum approvals a)
{
    return a == APPROVALS_OFF ? "off" : "confirm";
}
