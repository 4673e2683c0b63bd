/* core/registry_load: the configuration file.
 *
 * Theory. Every level of the document is read by a table (wire/json), so a name that is not in a
 * table is refused with the nearest one there is, and docs/config.schema.json says the same (a
 * test compares them). Messages begin with the file and the path of keys: what a person needs to
 * find the line.
 *
 * Must not: open anything but a regular file, or believe a file that a stranger or a command of one
 * of its own workspaces could have written.
 */
#include "base/mem.h"
#include "core/registry.h"
#include "core/registry_egress.h"
#include "core/registry_view.h"
#include "core/root.h"
#include "wire/json.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <json-c/linkhash.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The environment that exists without being written down: this host. */
#define ENVIRONMENT_DEFAULT "local"

static const char *const kind_names[] = {"host", "linux-container", NULL};
static const char *const profile_names[] = {"read-only", "workspace-write", NULL};
static const char *const network_names[] = {"restricted", "enabled", NULL};
static const char *const scope_names[] = {"workspace", "command", NULL};
static const char *const approvals_names[] = {"off", "confirm", NULL};
static const char *const sandbox_names[] = {"preferred", "required", NULL};
static const char *const read_names[] = {"minimal", "all", NULL};

struct top_level {
    struct json_object *environments;
    struct json_object *workspaces;
    struct json_object *approvals;
};

static const struct json_field top_fields[] = {
    {"environments", JSON_OBJECT, 0, offsetof(struct top_level, environments)},
    {"workspaces", JSON_OBJECT, 0, offsetof(struct top_level, workspaces)},
    {"approvals", JSON_OBJECT, 0, offsetof(struct top_level, approvals)},
};

struct grants {
    bool self_grant;
    bool elicitation;
};

static const struct json_field grants_fields[] = {
    {"self_grant", JSON_BOOL, 0, offsetof(struct grants, self_grant)},
    {"elicitation", JSON_BOOL, 0, offsetof(struct grants, elicitation)},
};

struct environment {
    int kind;
};

static const struct json_field environment_fields[] = {
    {"kind", JSON_ENUM, JSON_REQUIRED, offsetof(struct environment, kind), .names = kind_names},
};

struct entry {
    const char *root;
    int profile;
    const char *environment;
    int network;
    int network_scope;
    int approvals;
    int sandbox;
    int read;
    struct json_object *mounts;
    struct json_object *hide;
    struct json_object *env;
    struct registry_view view;
    struct registry_egress egress;
};

#define AT(member) offsetof(struct entry, member)
static const struct json_field entry_fields[] = {
    {"root", JSON_STR, JSON_REQUIRED, AT(root), 1, PATH_MAX - 1},
    {"profile", JSON_ENUM, 0, AT(profile), .names = profile_names},
    {"environment", JSON_STR, 0, AT(environment), 1, REGISTRY_ID_MAX},
    {"network", JSON_ENUM, 0, AT(network), .names = network_names},
    {"network_scope", JSON_ENUM, 0, AT(network_scope), .names = scope_names},
    {"approvals", JSON_ENUM, 0, AT(approvals), .names = approvals_names},
    {"sandbox", JSON_ENUM, 0, AT(sandbox), .names = sandbox_names},
    {"read", JSON_ENUM, 0, AT(read), .names = read_names},
    {"mounts", JSON_ARRAY, 0, AT(mounts), 0, VIEW_MOUNTS_MAX},
    {"hide", JSON_STRV, 0, AT(hide), 0, VIEW_PATHS_MAX},
    {"env", JSON_STRMAP, 0, AT(env), 0, REGISTRY_ENV_MAX},
    {"protect", JSON_STRV, 0, AT(view.protect), 0, REGISTRY_PROTECT_MAX},
    {"deny_read", JSON_STRV, 0, AT(view.deny_read), 0, VIEW_DENY_MAX},
    {"git", JSON_ENUM, 0, AT(view.git), .names = registry_git_names},
    {"tmp", JSON_ENUM, 0, AT(view.tmp), .names = registry_tmp_names},
    {"proc", JSON_ENUM, 0, AT(view.proc), .names = registry_proc_names},
    {"devices", JSON_STRV, 0, AT(view.devices), 0, VIEW_DEVICES_MAX},
    {"debug", JSON_BOOL, 0, AT(view.debug)},
    {"user_namespaces", JSON_BOOL, 0, AT(view.user_namespaces)},
    {"limits", JSON_OBJECT, 0, AT(view.limits)},
    {"cgroup_parent", JSON_STR, 0, AT(view.cgroup_parent), 1, PATH_MAX - 1},
    {"egress", JSON_OBJECT, 0, AT(egress.egress)},
    {"publish", JSON_ARRAY, 0, AT(egress.publish), 0, HANDOVER_PUBLISH_MAX},
};
#undef AT

struct mount_entry {
    const char *path;
    bool writable;
};

static const struct json_field mount_fields[] = {
    {"path", JSON_STR, JSON_REQUIRED, offsetof(struct mount_entry, path), 1, PATH_MAX - 1},
    {"writable", JSON_BOOL, 0, offsetof(struct mount_entry, writable)},
};

/* What one load works with: the registry and the object `environments` (NULL = none). */
struct load {
    struct registry *registry;
    struct json_object *environments;
    struct err *e;
};

static int check_id(const char *what, const char *id, struct err *e)
{
    if (registry_id_valid(id))
        return 0;
    return err_set(e, ERR_CONFIG_INVALID,
                   "%s: \"%.80s\" is not an id: 1 to %d letters, digits, '.', '_' or '-', not "
                   "beginning with '.' or '-'",
                   what, id, REGISTRY_ID_MAX);
}

/* ---- environments ---- */

static int check_environments(const struct load *load)
{
    if (load->environments == NULL)
        return 0;
    json_object_object_foreach(load->environments, id, value)
    {
        struct environment environment = {0};
        autofree char *where = mem_printf("environments.%s", id);
        if (check_id("environments", id, load->e) < 0 ||
            json_read(value, where, environment_fields, ARRAY_LEN(environment_fields), &environment,
                      ERR_CONFIG_INVALID, load->e) < 0)
            return -1;
        if (str_eq(id, ENVIRONMENT_DEFAULT) && environment.kind != ENVIRONMENT_HOST)
            return err_set(load->e, ERR_CONFIG_INVALID,
                           "environments.%s: \"%s\" always is this host; give another kind "
                           "another id",
                           id, id);
    }
    return 0;
}

static int take_environment(const struct load *load, const struct entry *in, const char *where,
                            struct workspace *ws)
{
    struct environment environment = {.kind = ENVIRONMENT_HOST};
    ws->environment = ENVIRONMENT_HOST;
    if (in->environment == NULL || str_eq(in->environment, ENVIRONMENT_DEFAULT))
        return 0;
    struct json_object *value = json_get(load->environments, in->environment);
    if (value == NULL)
        return err_set(load->e, ERR_CONFIG_INVALID,
                       "%s.environment: unknown environment \"%.64s\"; register it under "
                       "\"environments\" (\"%s\" always exists)",
                       where, in->environment, ENVIRONMENT_DEFAULT);
    if (json_read(value, in->environment, environment_fields, ARRAY_LEN(environment_fields),
                  &environment, ERR_CONFIG_INVALID, load->e) < 0)
        return -1;
    ws->environment = (enum environment_kind)environment.kind;
    return 0;
}

/* ---- one workspace ---- */

static int check_mount(const struct view_mount *m, const char *where, struct err *e)
{
    struct stat st;
    if (root_check_canonical(m->path, e) < 0 || root_check_place(m->path, m->writable, e) < 0)
        return err_wrap(e, "%s.path", where);
    if (str_eq(m->path, "/tmp"))
        return err_set(e, ERR_CONFIG_INVALID,
                       "%s.path: a command has a /tmp of its own; mount a directory in it instead",
                       where);
    if (lstat(m->path, &st) < 0)
        return err_sys(e, ERR_CONFIG_INVALID, errno, "%s.path: cannot look at \"%.256s\"", where,
                       m->path);
    return 0;
}

static int take_mounts(struct json_object *array, const char *where, struct workspace *ws,
                       struct err *e)
{
    size_t n = array == NULL ? 0 : json_object_array_length(array);
    if (n == 0)
        return 0;
    ws->mounts = mem_zalloc(n, sizeof(*ws->mounts));
    for (size_t i = 0; i < n; i++) {
        struct mount_entry in = {0};
        autofree char *key = mem_printf("%s.mounts[%zu]", where, i);
        if (json_read(json_object_array_get_idx(array, i), key, mount_fields,
                      ARRAY_LEN(mount_fields), &in, ERR_CONFIG_INVALID, e) < 0)
            return -1;
        ws->mounts[ws->n_mounts++] = (struct view_mount){mem_strdup(in.path), in.writable};
        if (check_mount(&ws->mounts[i], key, e) < 0)
            return -1;
        for (size_t j = 0; j < i; j++) {
            if (str_eq(ws->mounts[j].path, in.path))
                return err_set(e, ERR_CONFIG_INVALID, "%s.path: \"%.256s\" is mounted twice", key,
                               in.path);
        }
    }
    return 0;
}

static int take_hide(struct json_object *array, const char *where, struct workspace *ws,
                     struct err *e)
{
    size_t n = array == NULL ? 0 : json_object_array_length(array);
    for (size_t i = 0; i < n; i++) {
        const char *path = json_str(json_object_array_get_idx(array, i));
        if (root_check_canonical(path, e) < 0)
            return err_wrap(e, "%s.hide[%zu]", where, i);
        strv_add(&ws->hide, path);
    }
    return 0;
}

/* Variables that would reach into the loader of whatever runs, or that are ours. */
static const char *const env_reserved[] = {"LD_", "CODESPACE_"};

static int check_env(const char *name, const char *value, const char *where, struct err *e)
{
    size_t n = 0;
    while (isalnum((unsigned char)name[n]) || name[n] == '_')
        n++;
    if (n == 0 || name[n] != '\0' || isdigit((unsigned char)name[0]))
        return err_set(e, ERR_CONFIG_INVALID,
                       "%s.env: \"%.64s\" is not a variable's name: letters, digits and '_', not "
                       "beginning with a digit",
                       where, name);
    for (size_t i = 0; i < ARRAY_LEN(env_reserved); i++) {
        if (str_starts(name, env_reserved[i]))
            return err_set(e, ERR_CONFIG_INVALID,
                           "%s.env: \"%.64s\" cannot be set: names that begin with \"%s\" are "
                           "reserved",
                           where, name, env_reserved[i]);
    }
    if (strlen(value) > REGISTRY_ENV_VALUE_MAX)
        return err_set(e, ERR_CONFIG_INVALID,
                       "%s.env: the value of \"%.64s\" is longer than REGISTRY_ENV_VALUE_MAX (%d "
                       "bytes)",
                       where, name, REGISTRY_ENV_VALUE_MAX);
    return 0;
}

static int take_env(struct json_object *map, const char *where, struct workspace *ws, struct err *e)
{
    if (map == NULL)
        return 0;
    json_object_object_foreach(map, name, value)
    {
        if (check_env(name, json_str(value), where, e) < 0)
            return -1;
        strv_addf(&ws->env, "%s=%s", name, json_str(value));
    }
    return 0;
}

static int fill_workspace(const struct load *load, const struct entry *in, const char *where,
                          struct workspace *ws)
{
    if (in->root[0] != '/')
        return err_set(load->e, ERR_CONFIG_INVALID, "%s.root: \"%.256s\" is not an absolute path",
                       where, in->root);
    ws->root = mem_strdup(in->root);
    ws->profile = (enum profile)in->profile;
    ws->network = (enum network_policy)in->network;
    ws->network_scope = (enum network_scope)in->network_scope;
    ws->approvals = (enum approvals)in->approvals;
    ws->sandbox = (enum sandbox_demand)in->sandbox;
    ws->read = (enum view_read)in->read;
    if (take_environment(load, in, where, ws) < 0 ||
        take_mounts(in->mounts, where, ws, load->e) < 0 ||
        take_hide(in->hide, where, ws, load->e) < 0 || take_env(in->env, where, ws, load->e) < 0 ||
        registry_view_take(&in->view, where, ws, load->e) < 0 ||
        registry_egress_take(&in->egress, where, ws, load->e) < 0)
        return -1;
    return 0;
}

static int load_workspace(const struct load *load, const char *id, struct json_object *value)
{
    struct entry in = {0};
    autofree char *where = mem_printf("workspaces.%s", id);
    if (check_id("workspaces", id, load->e) < 0 ||
        json_read(value, where, entry_fields, ARRAY_LEN(entry_fields), &in, ERR_CONFIG_INVALID,
                  load->e) < 0)
        return -1;
    struct workspace *ws = mem_new(struct workspace);
    ws->root_fd = -1;
    ws->id = mem_strdup(id);
    if (fill_workspace(load, &in, where, ws) < 0) {
        workspace_free(ws);
        return -1;
    }
    return registry_add_take(load->registry, ws, where, load->e);
}

/* ---- the document ---- */

static int take_grants(const struct load *load, struct json_object *value)
{
    struct grants grants = {.elicitation = true};
    bool told = json_get(value, "elicitation") != NULL;
    if (value == NULL)
        return 0;
    if (json_read(value, "approvals", grants_fields, ARRAY_LEN(grants_fields), &grants,
                  ERR_CONFIG_INVALID, load->e) < 0)
        return -1;
    load->registry->self_grant = grants.self_grant;
    load->registry->no_elicitation = !grants.elicitation;
    load->registry->http_elicitation = told && grants.elicitation;
    return 0;
}

static int load_document(struct load *load, struct json_object *obj)
{
    struct top_level top = {0};
    if (json_read(obj, "", top_fields, ARRAY_LEN(top_fields), &top, ERR_CONFIG_INVALID, load->e) <
        0)
        return -1;
    load->environments = top.environments;
    if (check_environments(load) < 0 || take_grants(load, top.approvals) < 0)
        return -1;
    if (top.workspaces == NULL)
        return 0;
    json_object_object_foreach(top.workspaces, id, value)
    {
        if (load_workspace(load, id, value) < 0)
            return -1;
    }
    return 0;
}

int registry_load_text(struct registry *r, const char *name, const char *text, size_t n,
                       struct err *e)
{
    struct load load = {r, NULL, e};
    autojson *obj = NULL;
    int status = json_parse(text, n, &obj, e);
    if (status == 0)
        status = load_document(&load, obj);
    if (status == 0)
        return 0;
    if (e != NULL)
        e->code = ERR_CONFIG_INVALID;
    return err_wrap(e, "%.256s", name);
}

/* ---- the file ---- */

static int check_file(int fd, const char *path, struct err *e)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return err_sys(e, ERR_CONFIG_INVALID, errno, "%.256s: cannot look at it", path);
    if (!S_ISREG(st.st_mode))
        return err_set(e, ERR_CONFIG_INVALID, "%.256s: not a regular file", path);
    if (st.st_mode & S_IWOTH)
        return err_set(e, ERR_CONFIG_INVALID,
                       "%.256s: everybody may write it (mode %04o), so anybody could register a "
                       "workspace; chmod o-w",
                       path, (unsigned)(st.st_mode & 07777));
    if (st.st_size > (off_t)REGISTRY_FILE_MAX)
        return err_set(e, ERR_CONFIG_INVALID,
                       "%.256s: larger than REGISTRY_FILE_MAX (%u bytes); this is not a "
                       "configuration",
                       path, REGISTRY_FILE_MAX);
    return 0;
}

/* O_NONBLOCK keeps a FIFO from holding us up before its type is known. */
static int read_file(const char *path, struct buf *out, struct err *e)
{
    autofd int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return err_sys(e, ERR_CONFIG_INVALID, errno, "%.256s: cannot open it", path);
    if (check_file(fd, path, e) < 0)
        return -1;
    for (;;) {
        ssize_t n = read(fd, buf_reserve(out, 65536), 65536);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_sys(e, ERR_CONFIG_INVALID, errno, "%.256s: cannot read it", path);
        buf_commit(out, (size_t)n);
        if (n == 0)
            return 0;
        if (out->len > REGISTRY_FILE_MAX)
            return err_set(e, ERR_CONFIG_INVALID, "%.256s: it grew while it was read", path);
    }
}

int registry_load_file(struct registry *r, const char *path, struct err *e)
{
    autobuf text = BUF_INIT;
    char real[PATH_MAX];
    if (read_file(path, &text, e) < 0)
        return -1;
    if (realpath(path, real) == NULL)
        return err_sys(e, ERR_CONFIG_INVALID, errno, "%.256s: cannot look at it", path);
    free(r->config_path);
    r->config_path = mem_strdup(real);
    return registry_load_text(r, path, buf_bytes(&text), text.len, e);
}
