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

void helper_request_fini(struct helper_request *r)
{
    view_fini(&r->view);
    free(r->cwd);
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
    write_strv(&w, "env", &r->env);
    jsonw_kstr(&w, "read", read_names[r->view.read]);
    write_mounts(&w, &r->view);
    write_strv(&w, "hidden", &r->view.hidden);
    write_strv(&w, "protect", &r->view.protect);
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
    struct json_object *env;
    int read;
    struct json_object *mounts;
    struct json_object *hidden;
    struct json_object *protect;
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
    {"env", JSON_STRV, 0, AT(env), 0, HELPER_ENV_MAX},
    {"read", JSON_ENUM, 0, AT(read), .names = read_names},
    {"mounts", JSON_ARRAY, 0, AT(mounts), 0, VIEW_MOUNTS_MAX},
    {"hidden", JSON_STRV, 0, AT(hidden), 0, VIEW_PATHS_MAX},
    {"protect", JSON_STRV, 0, AT(protect), 0, HELPER_REMOVED_MAX},
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

static int check_name(const char *name, struct err *e)
{
    size_t n = strlen(name);
    if (n > 0 && n < sizeof(((struct helper_verdict *)0)->removed[0]) && !strchr(name, '/') &&
        strcmp(name, ".") != 0 && strcmp(name, "..") != 0)
        return 0;
    return err_set(e, ERR_INVALID_COMMAND,
                   "protect: \"%.80s\" is not a plain name of 1 to 63 bytes without a slash", name);
}

static void take_strv(struct json_object *array, struct strv *out)
{
    size_t n = array == NULL ? 0 : json_object_array_length(array);
    for (size_t i = 0; i < n; i++)
        strv_add(out, json_str(json_object_array_get_idx(array, i)));
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
    for (size_t i = 0; i < r->view.hidden.len; i++) {
        if (check_path("hidden", r->view.hidden.items[i], e) < 0)
            return -1;
    }
    for (size_t i = 0; i < r->view.protect.len; i++) {
        if (check_name(r->view.protect.items[i], e) < 0)
            return -1;
    }
    for (size_t i = 0; i < r->env.len; i++) {
        const char *equals = strchr(r->env.items[i], '=');
        if (equals == NULL || equals == r->env.items[i])
            return err_set(e, ERR_INVALID_COMMAND, "env: item %zu is not of the form NAME=VALUE",
                           i);
    }
    return 0;
}

static int fill_request(const struct reading *in, struct helper_request *r, struct err *e)
{
    r->view.workspace = mem_strdup(in->root);
    r->view.workspace_writable = in->writable;
    r->view.read = (enum view_read)in->read;
    r->cwd = mem_strdup(in->cwd);
    r->network = (enum helper_network)in->network;
    r->tty = in->tty;
    take_strv(in->argv, &r->argv);
    take_strv(in->env, &r->env);
    take_strv(in->hidden, &r->view.hidden);
    take_strv(in->protect, &r->view.protect);
    for (size_t i = 0; in->protect == NULL && view_protected[i] != NULL; i++)
        strv_add(&r->view.protect, view_protected[i]);
    if (take_mounts(in->mounts, &r->view, e) < 0)
        return -1;
    return check_request(r, e);
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

void helper_answer_write_plan(const char *plan_path, struct buf *out)
{
    struct jsonw w;
    jsonw_init(&w, out);
    jsonw_object(&w);
    jsonw_kstr(&w, "type", "prepared");
    jsonw_kstr(&w, "plan_path", plan_path);
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

int helper_answer_read(const char *text, size_t n, char **ret_plan, struct err *e)
{
    autojson *obj = NULL;
    if (n > HELPER_LINE_MAX || json_parse(text, n, &obj, NULL) < 0)
        return err_set(e, ERR_PROCESS_SPAWN_FAILED,
                       "the sandbox helper's answer is not one JSON line");
    const char *type = json_str(json_get(obj, "type"));
    const char *plan = json_str(json_get(obj, "plan_path"));
    const char *message = json_str(json_get(obj, "message"));
    if (str_eq(type, "error") && message != NULL)
        return err_set(e, ERR_PROCESS_SPAWN_FAILED, "the sandbox refused: %s", message);
    if (!str_eq(type, "prepared") || plan == NULL || !path_is_normal(plan))
        return err_set(e, ERR_PROCESS_SPAWN_FAILED,
                       "the sandbox helper's answer was not understood (is it another version?)");
    *ret_plan = mem_strdup(plan);
    return 0;
}

/* ---- control lines ---- */

static const char *const event_names[] = {
    [HELPER_STARTED] = "started", [HELPER_EXEC_FAILED] = "exec_failed", [HELPER_FAILED] = "failed",
    [HELPER_EXIT] = "exit",       [HELPER_SIGNAL] = "signal",
};

/* The member that carries `value`. */
static const char *const value_names[] = {
    [HELPER_STARTED] = NULL, [HELPER_EXEC_FAILED] = "errno", [HELPER_FAILED] = "code",
    [HELPER_EXIT] = "code",  [HELPER_SIGNAL] = "signal",
};

static bool is_end(enum helper_event event)
{
    return event == HELPER_EXIT || event == HELPER_SIGNAL;
}

/* A small non-negative number, or `none`. */
static uint64_t get_number(struct json_object *obj, const char *name, uint64_t max, uint64_t none)
{
    struct json_object *v = json_get(obj, name);
    if (!json_object_is_type(v, json_type_int) || json_object_get_int64(v) < 0)
        return none;
    uint64_t number = json_object_get_uint64(v);
    return number <= max ? number : none;
}

static void read_removed(struct json_object *obj, struct helper_verdict *v)
{
    struct json_object *array = json_get(obj, "removed");
    if (!json_object_is_type(array, json_type_array))
        return;
    size_t n = json_object_array_length(array);
    for (size_t i = 0, to = 0; i < n && to < HELPER_REMOVED_MAX; i++) {
        const char *name = json_str(json_object_array_get_idx(array, i));
        if (name != NULL && name[0] != '\0')
            snprintf(v->removed[to++], sizeof(v->removed[0]), "%s", name);
    }
}

/* Whether `obj` is an event in full. */
static bool read_event(struct json_object *obj, struct helper_verdict *v)
{
    const char *event = json_str(json_get(obj, "event"));
    size_t i = 0;
    while (i < ARRAY_LEN(event_names) && !str_eq(event, event_names[i]))
        i++;
    if (i == ARRAY_LEN(event_names))
        return false;
    v->event = (enum helper_event)i;
    if (value_names[i] != NULL) {
        uint64_t value = get_number(obj, value_names[i], 4095, UINT64_MAX);
        if (value == UINT64_MAX)
            return false;
        v->value = (int)value;
    }
    const char *message = json_str(json_get(obj, "message"));
    snprintf(v->message, sizeof(v->message), "%s", message == NULL ? "" : message);
    v->background = (uint32_t)get_number(obj, "background", UINT32_MAX, 0);
    v->cpu_us = get_number(obj, "cpu_us", INT64_MAX, 0);
    v->max_rss_kib = get_number(obj, "max_rss_kib", INT64_MAX, 0);
    read_removed(obj, v);
    return true;
}

static void read_text(const char *line, size_t n, struct helper_verdict *v)
{
    *v = (struct helper_verdict){.event = HELPER_TEXT};
    if (n >= sizeof(v->message))
        n = sizeof(v->message) - 1;
    memcpy(v->message, line, n);
    for (size_t i = 0; i < n; i++) {
        if (v->message[i] == '\0')
            v->message[i] = ' ';
    }
}

void helper_verdict_read(const char *line, size_t n, struct helper_verdict *ret)
{
    struct helper_verdict v = {0};
    autojson *obj = NULL;
    bool ok = n > 0 && n <= HELPER_LINE_MAX && line[0] == '{' &&
              json_parse(line, n, &obj, NULL) == 0 && read_event(obj, &v);
    if (!ok)
        read_text(line, n, &v);
    *ret = v;
}

static void write_end(struct jsonw *w, const struct helper_verdict *v)
{
    jsonw_kuint(w, "background", v->background);
    jsonw_kuint(w, "cpu_us", v->cpu_us);
    jsonw_kuint(w, "max_rss_kib", v->max_rss_kib);
    jsonw_key(w, "removed");
    jsonw_array(w);
    for (size_t i = 0; i < HELPER_REMOVED_MAX && v->removed[i][0] != '\0'; i++)
        jsonw_str(w, v->removed[i]);
    jsonw_array_end(w);
}

void helper_verdict_write(const struct helper_verdict *v, struct buf *out)
{
    struct jsonw w;
    if (v->event == HELPER_TEXT) {
        buf_puts(out, v->message);
        buf_putc(out, '\n');
        return;
    }
    jsonw_init(&w, out);
    jsonw_object(&w);
    jsonw_kstr(&w, "event", event_names[v->event]);
    if (value_names[v->event] != NULL)
        jsonw_kint(&w, value_names[v->event], v->value);
    if (v->message[0] != '\0')
        jsonw_kstr(&w, "message", v->message);
    if (is_end(v->event))
        write_end(&w, v);
    jsonw_object_end(&w);
    buf_putc(out, '\n');
}

struct signal_reading {
    const char *op;
    uint64_t signal;
};

static const struct json_field signal_fields[] = {
    {"op", JSON_STR, JSON_REQUIRED, offsetof(struct signal_reading, op)},
    {"signal", JSON_U64, JSON_REQUIRED, offsetof(struct signal_reading, signal), 1, 64},
};

int helper_signal_read(const char *line, size_t n)
{
    struct signal_reading in = {0};
    autojson *obj = NULL;
    if (n > HELPER_LINE_MAX || json_parse(line, n, &obj, NULL) < 0 ||
        json_read(obj, "", signal_fields, ARRAY_LEN(signal_fields), &in, ERR_INVALID_ARGUMENT,
                  NULL) < 0 ||
        !str_eq(in.op, "signal"))
        return -EINVAL;
    return (int)in.signal;
}

void helper_signal_write(int signal, struct buf *out)
{
    struct jsonw w;
    jsonw_init(&w, out);
    jsonw_object(&w);
    jsonw_kstr(&w, "op", "signal");
    jsonw_kint(&w, "signal", signal);
    jsonw_object_end(&w);
    buf_putc(out, '\n');
}
