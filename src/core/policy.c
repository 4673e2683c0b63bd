/* core/policy: see policy.h. */
#include "core/policy.h"

#include "base/mem.h"
#include "core/root.h"
#include "wire/view.h"

#include <ctype.h>
#include <string.h>

/* What each action is called in a refusal. */
static const char *const action_texts[] = {
    [POLICY_READ] = "reading its files",
    [POLICY_WRITE] = "changing its files",
    [POLICY_EXEC] = "running commands",
};

bool policy_permits(const struct workspace *ws, enum policy_action action)
{
    return action == POLICY_READ || ws->profile == PROFILE_WORKSPACE_WRITE;
}

int policy_check(const struct workspace *ws, enum policy_action action, struct err *e)
{
    if (!policy_permits(ws, action))
        return err_set(e, ERR_UNAUTHORIZED,
                       "the workspace \"%s\" has the profile %s, which does not allow %s; only an "
                       "operator can change that (\"profile\": \"workspace-write\")",
                       ws->id, profile_name(ws->profile), action_texts[action]);
    if (ws->environment != ENVIRONMENT_HOST)
        return err_set(
            e, ERR_UNAUTHORIZED,
            "the workspace \"%s\" is registered for an environment of the kind %s, which "
            "this server has no backend for, so %s is not possible; only an operator "
            "can change that (\"environment\": \"local\")",
            ws->id, environment_name(ws->environment), action_texts[action]);
    return 0;
}

bool policy_asks(const struct workspace *ws, enum policy_action action)
{
    return action != POLICY_READ && ws->approvals == APPROVALS_CONFIRM;
}

/* The hidden path that `path` is or lies in, or NULL. */
static const char *hidden_by(const struct workspace *ws, const char *path)
{
    size_t root_len = strlen(ws->root);
    for (size_t i = 0; i < ws->hidden.len; i++) {
        const char *hidden = ws->hidden.items[i];
        if (root_within(hidden, ws->root) && hidden[root_len] == '/' &&
            root_within(path, hidden + root_len + 1))
            return hidden;
    }
    return NULL;
}

/* The pattern that takes `path` or a directory on the way to it, or NULL. */
static const char *denied_by(const struct workspace *ws, const char *path)
{
    if (ws->deny_read.len == 0)
        return NULL;
    autofree char *prefix = mem_strdup(path);
    for (char *end = prefix; end != NULL;) {
        end = strchr(end, '/');
        if (end != NULL)
            *end = '\0';
        for (size_t i = 0; i < ws->deny_read.len; i++) {
            if (glob_match(&ws->deny[i], prefix))
                return ws->deny_read.items[i];
        }
        if (end != NULL)
            *end++ = '/';
    }
    return NULL;
}

int policy_check_read_path(const struct workspace *ws, const char *path, struct err *e)
{
    const char *rule = "hide";
    const char *by = hidden_by(ws, path);
    if (by == NULL) {
        rule = "deny_read";
        by = denied_by(ws, path);
    }
    if (by == NULL)
        return 0;
    return err_set(e, ERR_PATH_PROTECTED,
                   "\"%.256s\" is hidden in the workspace \"%s\" (rule: %s \"%.256s\"): neither "
                   "these tools nor sandboxed commands get to see it; only an operator can change "
                   "that",
                   path, ws->id, rule, by);
}

static int refuse_protected(const char *path, const char *what, const char *where, struct err *e)
{
    return err_set(e, ERR_PATH_PROTECTED,
                   "\"%.256s\" cannot be written: \"%.128s\" %s is read-only, for these tools as "
                   "for sandboxed commands, because what is in it makes other programs run code; "
                   "it can be read",
                   path, what, where);
}

/* Every repository counts, wherever it lies (A5). */
static bool in_repository(const char *path)
{
    for (const char *at = path; at != NULL; at = strchr(at, '/')) {
        at += *at == '/';
        if (root_within(at, ".git"))
            return true;
    }
    return false;
}

int policy_check_write_path(const struct workspace *ws, const char *path, struct err *e)
{
    if (policy_check_read_path(ws, path, e) < 0)
        return -1;
    for (size_t i = 0; view_protected[i] != NULL; i++) {
        if (root_within(path, view_protected[i]))
            return refuse_protected(path, view_protected[i], "directly under a workspace's root",
                                    e);
    }
    if (in_repository(path))
        return refuse_protected(path, ".git", "of a repository in a workspace", e);
    for (size_t i = 0; i < ws->protect.len; i++) {
        const char *protect = ws->protect.items[i];
        if (root_within(path, protect))
            return err_set(e, ERR_PATH_PROTECTED,
                           "\"%.256s\" cannot be written in the workspace \"%s\" (rule: protect "
                           "\"%.256s\"): it is read-only, for these tools as for sandboxed "
                           "commands; only an operator can change that",
                           path, ws->id, protect);
    }
    return 0;
}

int policy_check_env_name(const char *name, struct err *e)
{
    size_t n = 0;
    while (isalnum((unsigned char)name[n]) || name[n] == '_')
        n++;
    if (n > 0 && name[n] == '\0' && !isdigit((unsigned char)name[0]))
        return 0;
    return err_set(
        e, ERR_INVALID_COMMAND,
        "env: \"%.64s\" is not a variable's name: letters, digits and '_', not beginning "
        "with a digit",
        name);
}

/* ---- the environment ---- */

static void add_all(struct strv *out, char *const *env)
{
    for (size_t i = 0; env != NULL && env[i] != NULL; i++)
        strv_add(out, env[i]);
}

/* Ours, the operator's, the command's: later wins. */
static void layer_environment(const struct workspace *ws, char *const *env, bool tty,
                              struct strv *out)
{
    if (tty)
        strv_add(out, "TERM=xterm");
    strv_add(out, "GIT_CONFIG_COUNT=1");
    strv_add(out, "GIT_CONFIG_KEY_0=safe.directory");
    strv_addf(out, "GIT_CONFIG_VALUE_0=%s", ws->root);
    add_all(out, ws->env.items);
    add_all(out, env);
}

/* Keep the last of each name, in the order in which they stand. */
static void drop_shadowed(const struct strv *all, struct strv *ret)
{
    struct map last = {0};
    for (size_t i = 0; i < all->len; i++) {
        autofree char *name = mem_dup(all->items[i], strcspn(all->items[i], "="));
        map_set(&last, name, all->items[i]);
    }
    for (size_t i = 0; i < all->len; i++) {
        autofree char *name = mem_dup(all->items[i], strcspn(all->items[i], "="));
        if (map_get(&last, name) == all->items[i])
            strv_add(ret, all->items[i]);
    }
    map_fini(&last);
}

void policy_host_environment(const struct workspace *ws, char *const *env, bool tty,
                             struct strv *ret)
{
    autostrv all = {0};
    const char *path = getenv("PATH");
    for (size_t i = 0; view_environment[i] != NULL; i++)
        strv_add(&all, view_environment[i]);
    if (path != NULL && path[0] != '\0')
        strv_addf(&all, "PATH=%s", path);
    strv_addf(&all, "HOME=%s", ws->root);
    layer_environment(ws, env, tty, &all);
    drop_shadowed(&all, ret);
}

/* ---- the request ---- */

/* The sockets that an enabled network reaches by their path, after the operator's mounts. */
static void add_sockets(const struct workspace *ws, struct view *v)
{
    for (size_t i = 0; i < ws->egress.unix_sockets.len; i++)
        v->mounts[v->n_mounts++] =
            (struct view_mount){mem_strdup(ws->egress.unix_sockets.items[i]), false, false};
}

static void compile_view(const struct workspace *ws, struct view *v)
{
    v->read = ws->read;
    v->workspace = mem_strdup(ws->root);
    v->workspace_writable = policy_permits(ws, POLICY_WRITE);
    size_t n = ws->n_mounts + ws->egress.unix_sockets.len;
    if (n > 0)
        v->mounts = mem_zalloc(n, sizeof(*v->mounts));
    for (; v->n_mounts < ws->n_mounts; v->n_mounts++) {
        const struct view_mount *m = &ws->mounts[v->n_mounts];
        v->mounts[v->n_mounts] = (struct view_mount){mem_strdup(m->path), m->writable};
    }
    add_sockets(ws, v);
    add_all(&v->hidden, ws->hidden.items);
    add_all(&v->protect, (char *const *)view_protected);
    add_all(&v->protect, ws->protect.items);
    add_all(&v->deny, ws->deny_read.items);
    add_all(&v->devices, ws->devices.items);
    v->git = ws->git;
    v->shared_tmp = ws->shared_tmp;
    v->inherited_proc = ws->inherited_proc;
}

void policy_compile(const struct workspace *ws, const struct policy_command *command,
                    struct helper_request *ret)
{
    bool below = command->cwd != NULL && command->cwd[0] != '\0';
    *ret = (struct helper_request){.tty = command->tty};
    compile_view(ws, &ret->view);
    ret->cwd = below ? mem_printf("%s/%s", ws->root, command->cwd) : mem_strdup(ws->root);
    ret->network =
        ws->network == NETWORK_ENABLED ? HELPER_NETWORK_ENABLED : HELPER_NETWORK_RESTRICTED;
    ret->debug = ws->debug;
    ret->user_namespaces = ws->user_namespaces;
    ret->own_network = ws->network_scope == NETWORK_SCOPE_COMMAND;
    ret->limits = ws->limits;
    ret->n_publish = ws->n_publish;
    memcpy(ret->publish, ws->publish, sizeof(ret->publish));
    if (ws->network == NETWORK_ENABLED)
        egress_policy_dup(&ws->egress, &ret->egress);
    ret->cgroup_parent = mem_strdup(ws->cgroup_parent);
    add_all(&ret->argv, command->argv);
    strv_addf(&ret->env, "PWD=%s", ret->cwd);
    layer_environment(ws, command->env, command->tty, &ret->env);
}
