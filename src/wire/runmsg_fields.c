/* wire/runmsg_fields: see runmsg_fields.h. */
#include "wire/runmsg_fields.h"

#include "base/mem.h"
#include "wire/base64.h"
#include "wire/json.h"

#include <stddef.h>
#include <string.h>

enum field_kind { STR, U64, BOOL, BYTES, STRV, OBJECT, ITEMS };

struct runmsg_field {
    const char *name;
    enum field_kind kind;
    bool required; /* a string that must be there, a number that may be 0 */
    bool behind;   /* written behind the text (wire/runmsg), read there and as a member */
    size_t offset;
    size_t flag;  /* OBJECT: where the bool is that says it is there; 0 = it always is */
    uint64_t max; /* of a number, of a string's length; 0 = the usual */
    const struct runmsg_shape *shape; /* OBJECT, ITEMS */
};

#define F(type, member, kind_, ...)                                                                \
    {                                                                                              \
        .name = #member, .kind = kind_, .offset = offsetof(struct runmsg_##type, member),          \
        __VA_ARGS__                                                                                \
    }
#define SHAPE(type)                                                                                \
    const struct runmsg_shape runmsg_shape_##type = {type##_fields, ARRAY_LEN(type##_fields),      \
                                                     sizeof(struct runmsg_##type)}

const struct runmsg_shape runmsg_shape_nothing = {NULL, 0, sizeof(struct runmsg_nothing)};

static const struct runmsg_field hello_fields[] = {F(hello, program, STR), F(hello, level, U64)};
SHAPE(hello);

static const struct runmsg_field welcome_fields[] = {
    F(welcome, protocol, U64), F(welcome, worker_id, STR, .required = true),
    F(welcome, version, STR),  F(welcome, epoch, U64),
    F(welcome, durable, BOOL), F(welcome, level, U64),
};
SHAPE(welcome);

static const struct runmsg_field mount_fields[] = {
    F(mount, path, STR, .required = true),
    F(mount, writable, BOOL),
};
SHAPE(mount);

static const struct runmsg_field limits_fields[] = {
    F(limits, memory, U64),      F(limits, pids, U64),      F(limits, cpu_percent, U64),
    F(limits, cpu_seconds, U64), F(limits, file_size, U64), F(limits, open_files, U64),
    F(limits, data, U64),
};
SHAPE(limits);

static const struct runmsg_field workspace_fields[] = {
    F(workspace, id, STR, .required = true),
    F(workspace, root, STR, .required = true),
    F(workspace, dev, U64),
    F(workspace, ino, U64),
    F(workspace, profile, U64, .max = 1),
    F(workspace, network, U64, .max = 1),
    F(workspace, sandbox, U64, .max = 1),
    F(workspace, read, U64, .max = 1),
    F(workspace, mounts, ITEMS, .shape = &runmsg_shape_mount),
    F(workspace, hide, STRV),
    F(workspace, hidden, STRV),
    F(workspace, env, STRV),
    F(workspace, protect, STRV),
    F(workspace, deny_read, STRV),
    F(workspace, devices, STRV),
    F(workspace, git, U64, .max = 1),
    F(workspace, network_scope, U64, .max = 1),
    F(workspace, shared_tmp, BOOL),
    F(workspace, inherited_proc, BOOL),
    F(workspace, debug, BOOL),
    F(workspace, user_namespaces, BOOL),
    F(workspace, limits, OBJECT, .shape = &runmsg_shape_limits),
    F(workspace, cgroup_parent, STR),
    F(workspace, egress, STR),
    F(workspace, publish, STRV),
};
SHAPE(workspace);

#define READ_ROWS                                                                                  \
    F(read, cursor, U64), F(read, stream, U64, .max = 2), F(read, max_bytes, U64),                 \
        F(read, wait_ms, U64), F(read, until_exit, BOOL), F(read, whole_chars, BOOL),              \
        F(read, clean, BOOL), F(read, from, U64, .max = 3)

static const struct runmsg_field read_fields[] = {
    F(read, process_id, STR, .required = true, .max = RUNMSG_ID_MAX),
    READ_ROWS,
};
SHAPE(read);

static const struct runmsg_field first_fields[] = {READ_ROWS};
static const struct runmsg_shape shape_first = {first_fields, ARRAY_LEN(first_fields),
                                                sizeof(struct runmsg_read)};

static const struct runmsg_field exec_fields[] = {
    F(exec, workspace, OBJECT, .shape = &runmsg_shape_workspace, .required = true),
    F(exec, process_id, STR, .max = RUNMSG_ID_MAX),
    F(exec, argv, STRV, .required = true),
    F(exec, env, STRV),
    F(exec, cwd, STR),
    F(exec, tty, BOOL),
    F(exec, rows, U64, .max = UINT16_MAX),
    F(exec, cols, U64, .max = UINT16_MAX),
    F(exec, timeout_ms, U64),
    F(exec, idle_timeout_ms, U64),
    F(exec, background, U64, .max = 1),
    F(exec, exclusive, BOOL),
    F(exec, exclusive_wait_ms, U64),
    F(exec, has_stdin, BOOL),
    F(exec, stdin_data, BYTES),
    F(exec, first, OBJECT, .shape = &shape_first, .flag = offsetof(struct runmsg_exec, has_first)),
    F(exec, hold_ms, U64),
};
SHAPE(exec);

static const struct runmsg_field id_fields[] = {
    F(id, process_id, STR, .required = true, .max = RUNMSG_ID_MAX),
};
SHAPE(id);

static const struct runmsg_field status_fields[] = {
    F(status, process_id, STR, .required = true, .max = RUNMSG_ID_MAX),
    F(status, workspace_id, STR),
    F(status, state, U64, .max = 1),
    F(status, termination, U64, .max = 7),
    F(status, exit_code, U64, .max = 255),
    F(status, signal, U64, .max = 64),
    F(status, reason, STR),
    F(status, command, STR),
    F(status, output_failed, STR),
    F(status, sandboxed, BOOL),
    F(status, tty, BOOL),
    F(status, eof, BOOL),
    F(status, stopped, BOOL),
    F(status, output_total, U64),
    F(status, output_retained_from, U64),
    F(status, output_dropped, U64),
    F(status, started_ms, U64),
    F(status, ended_ms, U64),
    F(status, timeout_ms, U64),
    F(status, idle_timeout_ms, U64),
    F(status, cpu_us, U64),
    F(status, max_rss_kib, U64),
    F(status, background, U64, .max = UINT32_MAX),
    F(status, serial, U64),
    F(status, sequence, U64),
    F(status, background_pids, STRV),
    F(status, removed, STRV),
    F(status, created, STRV),
    F(status, background_alive, BOOL),
    F(status, shares_network, BOOL),
    F(status, denials, STRV),
    F(status, weaker, STR),
};
SHAPE(status);

static const struct runmsg_field page_fields[] = {
    F(page, bytes, BYTES, .behind = true),
    F(page, n_bytes, U64),
    F(page, cursor, U64),
    F(page, start, U64),
    F(page, time_ms, U64),
    F(page, retained_from, U64),
    F(page, lost, BOOL),
    F(page, status, OBJECT, .shape = &runmsg_shape_status, .required = true),
};
SHAPE(page);

static const struct runmsg_field started_fields[] = {
    F(started, process_id, STR, .required = true, .max = RUNMSG_ID_MAX),
    F(started, page, OBJECT, .shape = &runmsg_shape_page,
      .flag = offsetof(struct runmsg_started, has_page)),
};
SHAPE(started);

static const struct runmsg_field write_fields[] = {
    F(write, process_id, STR, .required = true, .max = RUNMSG_ID_MAX),
    F(write, data, BYTES),
    F(write, eof, BOOL),
};
SHAPE(write);

static const struct runmsg_field resize_fields[] = {
    F(resize, process_id, STR, .required = true, .max = RUNMSG_ID_MAX),
    F(resize, rows, U64, .max = UINT16_MAX),
    F(resize, cols, U64, .max = UINT16_MAX),
};
SHAPE(resize);

static const struct runmsg_field terminate_fields[] = {
    F(terminate, process_id, STR, .required = true, .max = RUNMSG_ID_MAX),
    F(terminate, signal, U64, .max = 64),
    F(terminate, grace_ms, U64),
    F(terminate, has_grace, BOOL),
};
SHAPE(terminate);

static const struct runmsg_field signal_fields[] = {
    F(signal, process_id, STR, .required = true, .max = RUNMSG_ID_MAX),
    F(signal, signal, U64, .max = 64),
};
SHAPE(signal);

static const struct runmsg_field list_fields[] = {
    F(list, workspace_id, STR),
    F(list, after, U64),
    F(list, max, U64),
    F(list, live_only, BOOL),
};
SHAPE(list);

static const struct runmsg_field listing_fields[] = {
    F(listing, items, ITEMS, .shape = &runmsg_shape_status),
    F(listing, more, BOOL),
};
SHAPE(listing);

static const struct runmsg_field place_fields[] = {
    F(place, workspace_id, STR, .required = true),
};
SHAPE(place);

static const struct runmsg_field warmth_fields[] = {F(warmth, state, U64, .max = 2)};
SHAPE(warmth);

static const struct runmsg_field rules_fields[] = {
    F(rules, workspace_id, STR, .required = true),
    F(rules, egress, STR, .required = true),
};
SHAPE(rules);

static const struct runmsg_field ruled_fields[] = {
    F(ruled, changed, STRV),
    F(ruled, others, STRV),
    F(ruled, why, STR),
};
SHAPE(ruled);

static const struct runmsg_field probe_fields[] = {F(probe, result, STR, .required = true)};
SHAPE(probe);

static const struct runmsg_field replay_fields[] = {
    F(replay, request_id, STR, .required = true, .max = RUNMSG_ID_MAX),
};
SHAPE(replay);

/* ---- freeing ---- */

static void items_fini(const struct runmsg_shape *shape, struct runmsg_items *list)
{
    for (size_t i = 0; i < list->n; i++)
        runmsg_fields_fini(shape, (char *)list->items + i * shape->size);
    free(list->items);
    *list = (struct runmsg_items){0};
}

void runmsg_fields_fini(const struct runmsg_shape *shape, void *data)
{
    for (size_t i = 0; i < shape->n; i++) {
        const struct runmsg_field *f = &shape->fields[i];
        void *at = (char *)data + f->offset;
        if (f->kind == STR)
            free(steal(*(char **)at));
        else if (f->kind == BYTES)
            buf_fini(at);
        else if (f->kind == STRV)
            strv_fini(at);
        else if (f->kind == OBJECT)
            runmsg_fields_fini(f->shape, at);
        else if (f->kind == ITEMS)
            items_fini(f->shape, at);
    }
}

/* ---- writing ---- */

static void write_strings(struct jsonw *w, const char *name, const struct strv *v)
{
    jsonw_key(w, name);
    jsonw_array(w);
    for (size_t i = 0; i < v->len; i++)
        jsonw_str(w, v->items[i]);
    jsonw_array_end(w);
}

static void write_items(struct jsonw *w, const struct runmsg_field *f,
                        const struct runmsg_items *list)
{
    jsonw_key(w, f->name);
    jsonw_array(w);
    for (size_t i = 0; i < list->n; i++)
        runmsg_fields_write(w, f->shape, (const char *)list->items + i * f->shape->size);
    jsonw_array_end(w);
}

static void write_bytes(struct jsonw *w, const char *name, const struct buf *b)
{
    jsonw_key(w, name);
    jsonw_base64(w, buf_bytes(b), b->len);
}

/* Is there anything to write? */
static bool is_set(const struct runmsg_field *f, const void *data)
{
    const void *at = (const char *)data + f->offset;
    switch (f->kind) {
    case STR:
        return *(const char *const *)at != NULL;
    case U64:
        return *(const uint64_t *)at != 0;
    case BOOL:
        return *(const bool *)at;
    case BYTES:
        return ((const struct buf *)at)->len > 0;
    case STRV:
        return ((const struct strv *)at)->len > 0;
    case ITEMS:
        return ((const struct runmsg_items *)at)->n > 0;
    case OBJECT:
        break;
    }
    return f->flag == 0 || *(const bool *)((const char *)data + f->flag);
}

static void write_field(struct jsonw *w, const struct runmsg_field *f, const void *at)
{
    switch (f->kind) {
    case STR:
        jsonw_kstr(w, f->name, *(const char *const *)at);
        return;
    case U64:
        jsonw_kuint(w, f->name, *(const uint64_t *)at);
        return;
    case BOOL:
        jsonw_kbool(w, f->name, true);
        return;
    case BYTES:
        write_bytes(w, f->name, at);
        return;
    case STRV:
        write_strings(w, f->name, at);
        return;
    case ITEMS:
        write_items(w, f, at);
        return;
    case OBJECT:
        break;
    }
    jsonw_key(w, f->name);
    runmsg_fields_write(w, f->shape, at);
}

void runmsg_fields_write(struct jsonw *w, const struct runmsg_shape *shape, const void *data)
{
    jsonw_object(w);
    for (size_t i = 0; i < shape->n; i++) {
        const struct runmsg_field *f = &shape->fields[i];
        const void *at = (const char *)data + f->offset;
        if (f->behind)
            continue;
        if (is_set(f, data) || (f->required && f->kind == STRV))
            write_field(w, f, at);
    }
    jsonw_object_end(w);
}

/* ---- reading ---- */

static int bad(struct err *e, const struct runmsg_field *f, const char *what)
{
    return err_set(e, ERR_INVALID_REQUEST, "runner protocol: %s %s", f->name, what);
}

static int read_string(const struct runmsg_field *f, struct json_object *v, char **ret,
                       struct err *e)
{
    const char *s = json_str(v);
    size_t max = f->max != 0 ? (size_t)f->max : RUNMSG_STRING_MAX;
    if (s == NULL)
        return bad(e, f, "is a string without NUL");
    if (strlen(s) > max)
        return err_set(e, ERR_LIMIT_EXCEEDED, "runner protocol: %s is longer than %zu bytes",
                       f->name, max);
    *ret = mem_strdup(s);
    return 0;
}

static int read_number(const struct runmsg_field *f, struct json_object *v, uint64_t *ret,
                       struct err *e)
{
    if (!json_object_is_type(v, json_type_int))
        return bad(e, f, "is a number");
    if (json_object_get_int64(v) < 0)
        return bad(e, f, "is not negative");
    uint64_t number = json_object_get_uint64(v);
    if (f->max != 0 && number > f->max)
        return bad(e, f, "is out of range");
    *ret = number;
    return 0;
}

static int read_bytes(const struct runmsg_field *f, struct json_object *v, struct buf *ret,
                      struct err *e)
{
    if (!json_object_is_type(v, json_type_string))
        return bad(e, f, "is base64");
    size_t n = (size_t)json_object_get_string_len(v);
    return base64_read(json_object_get_string(v), n, ret) < 0 ? bad(e, f, "is base64") : 0;
}

static int check_array(const struct runmsg_field *f, struct json_object *v, size_t max,
                       struct err *e)
{
    if (!json_object_is_type(v, json_type_array))
        return bad(e, f, "is a list");
    if (json_object_array_length(v) > max)
        return err_set(e, ERR_LIMIT_EXCEEDED, "runner protocol: %s has more than %zu items",
                       f->name, max);
    return 0;
}

static int read_strings(const struct runmsg_field *f, struct json_object *v, struct strv *ret,
                        struct err *e)
{
    if (check_array(f, v, RUNMSG_STRINGS_MAX, e) < 0)
        return -1;
    for (size_t i = 0; i < json_object_array_length(v); i++) {
        char *s = NULL;
        if (read_string(f, json_object_array_get_idx(v, i), &s, e) < 0)
            return -1;
        strv_add_take(ret, s);
    }
    return 0;
}

static int read_items(const struct runmsg_field *f, struct json_object *v, struct runmsg_items *ret,
                      struct err *e)
{
    if (check_array(f, v, RUNMSG_ITEMS_MAX, e) < 0)
        return -1;
    size_t n = json_object_array_length(v);
    ret->items = mem_zalloc(n + 1, f->shape->size);
    for (; ret->n < n; ret->n++) {
        void *item = (char *)ret->items + ret->n * f->shape->size;
        if (runmsg_fields_read(f->shape, json_object_array_get_idx(v, ret->n), item, e) < 0) {
            ret->n++; /* what was read of it is freed with the others */
            return -1;
        }
    }
    return 0;
}

static int read_bool(const struct runmsg_field *f, struct json_object *v, bool *ret, struct err *e)
{
    if (!json_object_is_type(v, json_type_boolean))
        return bad(e, f, "is true or false");
    *ret = json_object_get_boolean(v);
    return 0;
}

static int read_field(const struct runmsg_field *f, struct json_object *v, void *at, struct err *e)
{
    switch (f->kind) {
    case STR:
        return read_string(f, v, at, e);
    case U64:
        return read_number(f, v, at, e);
    case BOOL:
        return read_bool(f, v, at, e);
    case BYTES:
        return read_bytes(f, v, at, e);
    case STRV:
        return read_strings(f, v, at, e);
    case ITEMS:
        return read_items(f, v, at, e);
    case OBJECT:
        break;
    }
    return runmsg_fields_read(f->shape, v, at, e);
}

int runmsg_fields_read(const struct runmsg_shape *shape, struct json_object *obj, void *data,
                       struct err *e)
{
    int known = 0;
    if (!json_object_is_type(obj, json_type_object))
        return err_set(e, ERR_INVALID_REQUEST, "runner protocol: a payload is an object");
    for (size_t i = 0; i < shape->n; i++) {
        const struct runmsg_field *f = &shape->fields[i];
        struct json_object *v = NULL;
        bool there = json_object_object_get_ex(obj, f->name, &v);
        known += there;
        if (!there && f->required)
            return bad(e, f, "is missing");
        if (there && f->flag != 0)
            *(bool *)((char *)data + f->flag) = true;
        if (there && read_field(f, v, (char *)data + f->offset, e) < 0)
            return -1;
    }
    if (json_object_object_length(obj) != known)
        return err_set(e, ERR_INVALID_REQUEST, "runner protocol: a payload has an unknown member");
    return 0;
}
