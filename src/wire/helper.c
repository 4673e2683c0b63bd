/* wire/helper: see helper.h.
 *
 * The request is read by one table and then checked as a whole: every path absolute and normal,
 * every name a plain name, every count under its limit. What passes here can be put into an
 * argument list without a second thought about its form; whether it exists, and whether it is
 * allowed, is the builder's question.
 */
#include "wire/helper.h"

#include "base/jsonw.h"
#include "base/mem.h"
#include "wire/json.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

static const char *const network_names[] = {"restricted", "enabled", NULL};
static const char *const read_names[] = {"minimal", "all", NULL};
static const char *const git_names[] = {"read-only", "commit", NULL};
static const char *const tmp_names[] = {"private", "shared", NULL};
static const char *const proc_names[] = {"fresh", "inherited", NULL};
static const char *const background_names[] = {"kill", "keep", NULL};
static const char *const scope_names[] = {"workspace", "command", NULL};

#define AT(member) offsetof(struct helper_limits, member)
static const struct json_field limit_fields[] = {
    {"memory", JSON_U64, 0, AT(memory), 1},
    {"pids", JSON_U64, 0, AT(pids), 1},
    {"cpu_percent", JSON_U64, 0, AT(cpu_percent), 1},
    {"cpu_seconds", JSON_U64, 0, AT(cpu_seconds), 1},
    {"file_size", JSON_U64, 0, AT(file_size), 1},
    {"open_files", JSON_U64, 0, AT(open_files), 1},
    {"data", JSON_U64, 0, AT(data), 1},
};
#undef AT

void helper_request_fini(struct helper_request *r)
{
    view_fini(&r->view);
    free(r->cwd);
    free(r->cgroup_parent);
    egress_policy_fini(&r->egress);
    strv_fini(&r->argv);
    strv_fini(&r->env);
    *r = (struct helper_request){0};
}

/* ---- writing a request ---- */

static void write_strv(struct jsonw *w, const char *key, const struct strv *v)
{
    jsonw_key(w, key);
    jsonw_array(w);
    for (size_t i = 0; i < v->len; i++)
        jsonw_str(w, v->items[i]);
    jsonw_array_end(w);
}

static void write_mounts(struct jsonw *w, const struct view *v)
{
    jsonw_key(w, "mounts");
    jsonw_array(w);
    for (size_t i = 0; i < v->n_mounts; i++) {
        jsonw_object(w);
        jsonw_kstr(w, "path", v->mounts[i].path);
        jsonw_kbool(w, "writable", v->mounts[i].writable);
        jsonw_object_end(w);
    }
    jsonw_array_end(w);
}

static void write_limits(struct jsonw *w, const struct helper_limits *l)
{
    jsonw_key(w, "limits");
    jsonw_object(w);
    for (size_t i = 0; i < ARRAY_LEN(limit_fields); i++) {
        const char *at = (const char *)l + limit_fields[i].offset;
        uint64_t value = *(const uint64_t *)(const void *)at;
        if (value > 0)
            jsonw_kuint(w, limit_fields[i].name, value);
    }
    jsonw_object_end(w);
}

static void write_door(struct jsonw *w, const struct helper_request *r)
{
    jsonw_key(w, "egress");
    egress_policy_write(&r->egress, w);
    jsonw_key(w, "publish");
    jsonw_array(w);
    for (size_t i = 0; i < r->n_publish; i++)
        jsonw_uint(w, r->publish[i]);
    jsonw_array_end(w);
}

void helper_request_write(const struct helper_request *r, struct buf *out)
{
    struct jsonw w;
    jsonw_init(&w, out);
    jsonw_object(&w);
    jsonw_kuint(&w, "protocol", HELPER_PROTOCOL);
    jsonw_kstr(&w, "workspace_root", r->view.workspace);
    jsonw_kstr(&w, "command_cwd", r->cwd);
    jsonw_kbool(&w, "writable_workspace", r->view.workspace_writable);
    jsonw_kstr(&w, "network", network_names[r->network]);
    write_strv(&w, "argv", &r->argv);
    jsonw_kbool(&w, "tty", r->tty);
    if (r->zygote)
        jsonw_kbool(&w, "zygote", true);
    if (r->keep)
        jsonw_kstr(&w, "background", background_names[1]);
    if (r->own_network)
        jsonw_kstr(&w, "network_scope", scope_names[1]);
    write_strv(&w, "env", &r->env);
    jsonw_kstr(&w, "read", read_names[r->view.read]);
    write_mounts(&w, &r->view);
    write_strv(&w, "hidden", &r->view.hidden);
    write_strv(&w, "protect", &r->view.protect);
    write_strv(&w, "deny", &r->view.deny);
    jsonw_kstr(&w, "git", git_names[r->view.git]);
    jsonw_kstr(&w, "tmp", tmp_names[r->view.shared_tmp]);
    jsonw_kstr(&w, "proc", proc_names[r->view.inherited_proc]);
    write_strv(&w, "devices", &r->view.devices);
    jsonw_kbool(&w, "debug", r->debug);
    if (r->user_namespaces)
        jsonw_kbool(&w, "user_namespaces", true);
    write_limits(&w, &r->limits);
    if (r->cgroup_parent != NULL)
        jsonw_kstr(&w, "cgroup_parent", r->cgroup_parent);
    if (r->network == HELPER_NETWORK_ENABLED)
        write_door(&w, r);
    jsonw_object_end(&w);
}

/* ---- reading a request ---- */

struct reading {
    uint64_t protocol;
    const char *root;
    const char *cwd;
    bool writable;
    int network;
    struct json_object *argv;
    bool tty;
    bool zygote;
    int background;
    int scope;
    struct json_object *env;
    int read;
    struct json_object *mounts;
    struct json_object *hidden;
    struct json_object *protect;
    struct json_object *deny;
    int git;
    int tmp;
    int proc;
    struct json_object *devices;
    bool debug;
    bool user_namespaces;
    struct json_object *limits;
    const char *cgroup_parent;
    struct json_object *egress;
    struct json_object *publish;
};

#define AT(member) offsetof(struct reading, member)
static const struct json_field request_fields[] = {
    {"protocol", JSON_U64, JSON_REQUIRED, AT(protocol), HELPER_PROTOCOL, HELPER_PROTOCOL},
    {"workspace_root", JSON_STR, JSON_REQUIRED, AT(root), 1, PATH_MAX - 1},
    {"command_cwd", JSON_STR, JSON_REQUIRED, AT(cwd), 1, PATH_MAX - 1},
    {"writable_workspace", JSON_BOOL, JSON_REQUIRED, AT(writable)},
    {"network", JSON_ENUM, JSON_REQUIRED, AT(network), .names = network_names},
    {"argv", JSON_STRV, JSON_REQUIRED, AT(argv), 1, HELPER_ARGV_MAX},
    {"tty", JSON_BOOL, 0, AT(tty)},
    {"zygote", JSON_BOOL, 0, AT(zygote)},
    {"background", JSON_ENUM, 0, AT(background), .names = background_names},
    {"network_scope", JSON_ENUM, 0, AT(scope), .names = scope_names},
    {"env", JSON_STRV, 0, AT(env), 0, HELPER_ENV_MAX},
    {"read", JSON_ENUM, 0, AT(read), .names = read_names},
    {"mounts", JSON_ARRAY, 0, AT(mounts), 0, VIEW_MOUNTS_MAX},
    {"hidden", JSON_STRV, 0, AT(hidden), 0, VIEW_PATHS_MAX},
    {"protect", JSON_STRV, 0, AT(protect), 0, VIEW_PROTECT_MAX},
    {"deny", JSON_STRV, 0, AT(deny), 0, VIEW_DENY_MAX},
    {"git", JSON_ENUM, 0, AT(git), .names = git_names},
    {"tmp", JSON_ENUM, 0, AT(tmp), .names = tmp_names},
    {"proc", JSON_ENUM, 0, AT(proc), .names = proc_names},
    {"devices", JSON_STRV, 0, AT(devices), 0, VIEW_DEVICES_MAX},
    {"debug", JSON_BOOL, 0, AT(debug)},
    {"user_namespaces", JSON_BOOL, 0, AT(user_namespaces)},
    {"limits", JSON_OBJECT, 0, AT(limits)},
    {"cgroup_parent", JSON_STR, 0, AT(cgroup_parent), 1, PATH_MAX - 1},
    {"egress", JSON_OBJECT, 0, AT(egress)},
    {"publish", JSON_ARRAY, 0, AT(publish), 0, HANDOVER_PUBLISH_MAX},
};
#undef AT

/* Absolute, and spelled in the one normal way: no empty, "." or ".." component. */
static bool path_is_normal(const char *path)
{
    if (path[0] != '/' || strlen(path) >= PATH_MAX)
        return false;
    if (path[1] == '\0')
        return true;
    for (const char *at = path; *at != '\0';) {
        size_t n = strcspn(++at, "/");
        if (n == 0 || (n == 1 && at[0] == '.') || (n == 2 && at[0] == '.' && at[1] == '.'))
            return false;
        at += n;
    }
    return true;
}

static int check_path(const char *where, const char *path, struct err *e)
{
    if (path_is_normal(path))
        return 0;
    return err_set(e, ERR_INVALID_COMMAND,
                   "%s: \"%.128s\" is not an absolute path without empty, . and .. components",
                   where, path);
}

/* Relative to the workspace, spelled in the one normal way. */
static int check_relative(const char *where, const char *path, struct err *e)
{
    autofree char *absolute = mem_printf("/%s", path);
    if (path[0] != '\0' && path_is_normal(absolute))
        return 0;
    return err_set(e, ERR_INVALID_COMMAND,
                   "%s: \"%.128s\" is not a path relative to the workspace without empty, . and .. "
                   "components",
                   where, path);
}

static int check_paths(const char *where, const struct strv *paths,
                       int (*check)(const char *, const char *, struct err *), struct err *e)
{
    for (size_t i = 0; i < paths->len; i++) {
        if (check(where, paths->items[i], e) < 0)
            return -1;
    }
    return 0;
}

static void take_strv(struct json_object *array, struct strv *out)
{
    size_t n = array == NULL ? 0 : json_object_array_length(array);
    for (size_t i = 0; i < n; i++)
        strv_add(out, json_str(json_object_array_get_idx(array, i)));
}

int helper_limits_read(struct json_object *obj, const char *where, struct helper_limits *ret,
                       enum err_code code, struct err *e)
{
    return json_read(obj, where, limit_fields, ARRAY_LEN(limit_fields), ret, code, e);
}

int helper_publish_read(struct json_object *array, const char *where, uint16_t *ret_ports,
                        size_t *ret_n, enum err_code code, struct err *e)
{
    size_t n = json_object_array_length(array);
    for (size_t i = 0; i < n; i++) {
        struct json_object *item = json_object_array_get_idx(array, i);
        int64_t port = json_object_is_type(item, json_type_int) ? json_object_get_int64(item) : 0;
        if (port < 1024 || port > UINT16_MAX)
            return err_set(e, code,
                           "%s%spublish[%zu]: must be a port number from 1024 to 65535; a command "
                           "cannot listen on a lower one",
                           where, *where ? "." : "", i);
        for (size_t k = 0; k < i; k++) {
            if (ret_ports[k] == port)
                return err_set(e, code, "%s%spublish[%zu]: the port is there twice", where,
                               *where ? "." : "", i);
        }
        ret_ports[i] = (uint16_t)port;
    }
    *ret_n = n;
    return 0;
}

struct mount_reading {
    const char *path;
    bool writable;
};

static const struct json_field mount_fields[] = {
    {"path", JSON_STR, JSON_REQUIRED, offsetof(struct mount_reading, path), 1, PATH_MAX - 1},
    {"writable", JSON_BOOL, 0, offsetof(struct mount_reading, writable)},
};

static int take_mount(struct json_object *item, size_t i, struct view_mount *ret, struct err *e)
{
    struct mount_reading m = {0};
    char where[32];
    snprintf(where, sizeof(where), "mounts[%zu]", i);
    if (json_read(item, where, mount_fields, ARRAY_LEN(mount_fields), &m, ERR_INVALID_COMMAND, e) <
            0 ||
        check_path(where, m.path, e) < 0)
        return -1;
    *ret = (struct view_mount){mem_strdup(m.path), m.writable};
    return 0;
}

static int take_mounts(struct json_object *array, struct view *v, struct err *e)
{
    size_t n = array == NULL ? 0 : json_object_array_length(array);
    if (n == 0)
        return 0;
    v->mounts = mem_zalloc(n, sizeof(*v->mounts));
    for (; v->n_mounts < n; v->n_mounts++) {
        struct json_object *item = json_object_array_get_idx(array, v->n_mounts);
        if (take_mount(item, v->n_mounts, &v->mounts[v->n_mounts], e) < 0)
            return -1;
    }
    return 0;
}

static int check_request(const struct helper_request *r, struct err *e)
{
    if (r->argv.items[0][0] == '\0')
        return err_set(e, ERR_INVALID_COMMAND, "argv: the first word must not be empty");
    if (check_path("workspace_root", r->view.workspace, e) < 0 ||
        check_path("command_cwd", r->cwd, e) < 0)
        return -1;
    if (check_paths("hidden", &r->view.hidden, check_path, e) < 0 ||
        check_paths("devices", &r->view.devices, check_path, e) < 0 ||
        check_paths("protect", &r->view.protect, check_relative, e) < 0 ||
        (r->cgroup_parent != NULL && check_path("cgroup_parent", r->cgroup_parent, e) < 0))
        return -1;
    for (size_t i = 0; i < r->env.len; i++) {
        const char *equals = strchr(r->env.items[i], '=');
        if (equals == NULL || equals == r->env.items[i])
            return err_set(e, ERR_INVALID_COMMAND, "env: item %zu is not of the form NAME=VALUE",
                           i);
    }
    return 0;
}

static int take_door(const struct reading *in, struct helper_request *r, struct err *e)
{
    if (in->egress != NULL && egress_policy_read(in->egress, "egress", &r->egress, e) < 0)
        return -1;
    return in->publish == NULL ? 0
                               : helper_publish_read(in->publish, "", r->publish, &r->n_publish,
                                                     ERR_INVALID_COMMAND, e);
}

static int fill_request(const struct reading *in, struct helper_request *r, struct err *e)
{
    r->view.workspace = mem_strdup(in->root);
    r->view.workspace_writable = in->writable;
    r->view.read = (enum view_read)in->read;
    r->cwd = mem_strdup(in->cwd);
    r->network = (enum helper_network)in->network;
    r->tty = in->tty;
    r->zygote = in->zygote;
    r->keep = in->background == 1;
    r->own_network = in->scope == 1;
    take_strv(in->argv, &r->argv);
    take_strv(in->env, &r->env);
    take_strv(in->hidden, &r->view.hidden);
    take_strv(in->protect, &r->view.protect);
    take_strv(in->deny, &r->view.deny);
    take_strv(in->devices, &r->view.devices);
    r->view.git = (enum view_git)in->git;
    r->view.shared_tmp = in->tmp == 1;
    r->view.inherited_proc = in->proc == 1;
    r->debug = in->debug;
    r->user_namespaces = in->user_namespaces;
    r->cgroup_parent = mem_strdup(in->cgroup_parent);
    for (size_t i = 0; in->protect == NULL && view_protected[i] != NULL; i++)
        strv_add(&r->view.protect, view_protected[i]);
    if (take_mounts(in->mounts, &r->view, e) < 0 ||
        (in->limits != NULL &&
         helper_limits_read(in->limits, "limits", &r->limits, ERR_INVALID_COMMAND, e) < 0))
        return -1;
    return take_door(in, r, e) < 0 ? -1 : check_request(r, e);
}

int helper_request_read(const char *text, size_t n, struct helper_request *ret, struct err *e)
{
    struct reading in = {0};
    struct helper_request out = {0};
    autojson *obj = NULL;
    if (n > HELPER_REQUEST_MAX)
        return err_set(e, ERR_INVALID_COMMAND,
                       "the request is larger than HELPER_REQUEST_MAX (%u bytes); pass large data "
                       "in a file or on stdin",
                       HELPER_REQUEST_MAX);
    if (json_parse(text, n, &obj, e) < 0) {
        if (e != NULL)
            e->code = ERR_INVALID_COMMAND;
        return err_wrap(e, "the request");
    }
    if (json_read(obj, "", request_fields, ARRAY_LEN(request_fields), &in, ERR_INVALID_COMMAND, e) <
        0)
        return -1;
    if (fill_request(&in, &out, e) < 0) {
        helper_request_fini(&out);
        return -1;
    }
    *ret = out;
    return 0;
}

/* ---- the answer ---- */

/* A byte takes at most six in JSON; what follows the list is short. */
static bool fits(const struct buf *out, const char *path, const char *link)
{
    return out->len + 6 * (strlen(path) + strlen(link)) + 64 < HELPER_LINE_MAX;
}

static void write_guards(struct jsonw *w, const struct strv *guards, const struct buf *out)
{
    jsonw_key(w, "guards");
    jsonw_array(w);
    for (size_t i = 0; i + 1 < guards->len; i += 2) {
        if (!fits(out, guards->items[i], guards->items[i + 1]))
            break;
        jsonw_str(w, guards->items[i]);
        jsonw_str(w, guards->items[i + 1]);
    }
    jsonw_array_end(w);
}

void helper_answer_write_plan(const char *plan_path, const struct strv *guards, struct buf *out)
{
    struct jsonw w;
    jsonw_init(&w, out);
    jsonw_object(&w);
    jsonw_kstr(&w, "type", "prepared");
    if (plan_path != NULL)
        jsonw_kstr(&w, "plan_path", plan_path);
    if (guards != NULL && guards->len > 0)
        write_guards(&w, guards, out);
    jsonw_object_end(&w);
    buf_putc(out, '\n');
}

void helper_answer_write_error(const char *message, struct buf *out)
{
    struct jsonw w;
    jsonw_init(&w, out);
    jsonw_object(&w);
    jsonw_kstr(&w, "type", "error");
    jsonw_kstr(&w, "message", message);
    jsonw_object_end(&w);
    buf_putc(out, '\n');
}

/* Pairs of an absolute path and a text; -1 when it is anything else. */
static int read_guards(struct json_object *array, struct strv *ret)
{
    size_t n = json_object_is_type(array, json_type_array) ? json_object_array_length(array) : 0;
    if (array != NULL && (n == 0 || n % 2 != 0))
        return -1;
    for (size_t i = 0; i < n; i++) {
        const char *text = json_str(json_object_array_get_idx(array, i));
        if (text == NULL || (i % 2 == 0 && !path_is_normal(text)))
            return -1;
        strv_add(ret, text);
    }
    return 0;
}

int helper_answer_read(const char *text, size_t n, char **ret_plan, struct strv *ret_guards,
                       struct err *e)
{
    autojson *obj = NULL;
    autostrv guards = {0};
    if (n > HELPER_LINE_MAX || json_parse(text, n, &obj, NULL) < 0)
        return err_set(e, ERR_PROCESS_SPAWN_FAILED,
                       "the sandbox helper's answer is not one JSON line");
    const char *type = json_str(json_get(obj, "type"));
    const char *plan = json_str(json_get(obj, "plan_path"));
    const char *message = json_str(json_get(obj, "message"));
    if (str_eq(type, "error") && message != NULL)
        return err_set(e, ERR_PROCESS_SPAWN_FAILED, "the sandbox refused: %s", message);
    bool has_plan = plan != NULL && path_is_normal(plan);
    if (!str_eq(type, "prepared") || (ret_plan != NULL && !has_plan) ||
        read_guards(json_get(obj, "guards"), &guards) < 0)
        return err_set(e, ERR_PROCESS_SPAWN_FAILED,
                       "the sandbox helper's answer was not understood (is it another version?)");
    if (ret_plan != NULL)
        *ret_plan = mem_strdup(plan);
    if (ret_guards != NULL) {
        strv_fini(ret_guards);
        *ret_guards = guards;
        guards = (struct strv){0};
    }
    return 0;
}
