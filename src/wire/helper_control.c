/* wire/helper_control: the control lines of wire/helper.h, both ways. */
#include "wire/helper.h"

#include "base/jsonw.h"
#include "base/mem.h"
#include "wire/json.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* ---- verdicts ---- */

static const char *const event_names[] = {
    [HELPER_STARTED] = "started", [HELPER_EXEC_FAILED] = "exec_failed", [HELPER_FAILED] = "failed",
    [HELPER_EXIT] = "exit",       [HELPER_SIGNAL] = "signal",           [HELPER_OVER] = "over",
};

/* The member that carries `value`. */
static const char *const value_names[] = {
    [HELPER_STARTED] = NULL, [HELPER_EXEC_FAILED] = "errno", [HELPER_FAILED] = "code",
    [HELPER_EXIT] = "code",  [HELPER_SIGNAL] = "signal",     [HELPER_OVER] = NULL,
};

static bool is_end(enum helper_event event)
{
    return event == HELPER_EXIT || event == HELPER_SIGNAL || event == HELPER_OVER;
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

static void read_names_of(struct json_object *obj, const char *name,
                          char out[HELPER_REMOVED_MAX][HELPER_NAME_MAX])
{
    struct json_object *array = json_get(obj, name);
    if (!json_object_is_type(array, json_type_array))
        return;
    size_t n = json_object_array_length(array);
    for (size_t i = 0, to = 0; i < n && to < HELPER_REMOVED_MAX; i++) {
        const char *text = json_str(json_object_array_get_idx(array, i));
        if (text != NULL && text[0] != '\0')
            snprintf(out[to++], HELPER_NAME_MAX, "%s", text);
    }
}

static void read_denials(struct json_object *obj, struct denial out[DENIAL_MAX])
{
    struct json_object *array = json_get(obj, "denials");
    if (!json_object_is_type(array, json_type_array))
        return;
    size_t n = json_object_array_length(array);
    for (size_t i = 0, to = 0; i < n && to < DENIAL_MAX; i++) {
        struct json_object *item = json_object_array_get_idx(array, i);
        const char *rule = json_str(json_get(item, "rule"));
        const char *what = json_str(json_get(item, "what"));
        if (rule == NULL || rule[0] == '\0' || strlen(rule) >= DENIAL_RULE_MAX)
            continue;
        snprintf(out[to].rule, DENIAL_RULE_MAX, "%s", rule);
        snprintf(out[to].what, DENIAL_WHAT_MAX, "%s", what == NULL ? "" : what);
        uint64_t pid = get_number(item, "pid", INT32_MAX, 0);
        const char *process = json_str(json_get(item, "process"));
        if (pid != 0 && process != NULL)
            denial_by(&out[to], (uint32_t)pid, process);
        struct json_object *others = json_get(item, "others");
        out[to].others = pid != 0 && json_object_is_type(others, json_type_boolean) &&
                         json_object_get_boolean(others);
        out[to++].count = get_number(item, "count", DENIAL_COUNT_MAX, 0);
    }
}

static void read_left(struct json_object *obj, struct helper_left out[HELPER_LEFT_MAX])
{
    struct json_object *array = json_get(obj, "background_pids");
    if (!json_object_is_type(array, json_type_array))
        return;
    size_t n = json_object_array_length(array);
    for (size_t i = 0, to = 0; i < n && to < HELPER_LEFT_MAX; i++) {
        struct json_object *item = json_object_array_get_idx(array, i);
        uint64_t pid = get_number(item, "pid", INT32_MAX, 0);
        const char *name = json_str(json_get(item, "name"));
        if (pid == 0)
            continue;
        out[to].pid = (uint32_t)pid;
        snprintf(out[to++].name, HELPER_COMM_MAX, "%s", name == NULL ? "" : name);
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
    struct json_object *kept = json_get(obj, "kept");
    v->kept = (v->event == HELPER_EXIT || v->event == HELPER_SIGNAL) &&
              json_object_is_type(kept, json_type_boolean) && json_object_get_boolean(kept);
    v->at_us = get_number(obj, "at_us", INT64_MAX, 0);
    v->background = (uint32_t)get_number(obj, "background", UINT32_MAX, 0);
    read_left(obj, v->left);
    v->cpu_us = get_number(obj, "cpu_us", INT64_MAX, 0);
    v->max_rss_kib = get_number(obj, "max_rss_kib", INT64_MAX, 0);
    read_names_of(obj, "removed", v->removed);
    read_names_of(obj, "created_repositories", v->created);
    v->oom_kills = (uint32_t)get_number(obj, "oom_kills", UINT32_MAX, 0);
    read_denials(obj, v->denials);
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

static void write_names(struct jsonw *w, const char *key,
                        const char names[HELPER_REMOVED_MAX][HELPER_NAME_MAX])
{
    jsonw_key(w, key);
    jsonw_array(w);
    for (size_t i = 0; i < HELPER_REMOVED_MAX && names[i][0] != '\0'; i++)
        jsonw_str(w, names[i]);
    jsonw_array_end(w);
}

static void write_denials(struct jsonw *w, const struct denial list[DENIAL_MAX])
{
    jsonw_key(w, "denials");
    jsonw_array(w);
    for (size_t i = 0; i < DENIAL_MAX && list[i].rule[0] != '\0'; i++) {
        jsonw_object(w);
        jsonw_kstr(w, "rule", list[i].rule);
        jsonw_kstr(w, "what", list[i].what);
        jsonw_kuint(w, "count", list[i].count);
        if (list[i].pid != 0) {
            jsonw_kuint(w, "pid", list[i].pid);
            jsonw_kstr(w, "process", list[i].process);
        }
        if (list[i].others)
            jsonw_kbool(w, "others", true);
        jsonw_object_end(w);
    }
    jsonw_array_end(w);
}

static void write_left(struct jsonw *w, const struct helper_left list[HELPER_LEFT_MAX])
{
    jsonw_key(w, "background_pids");
    jsonw_array(w);
    for (size_t i = 0; i < HELPER_LEFT_MAX && list[i].pid != 0; i++) {
        jsonw_object(w);
        jsonw_kuint(w, "pid", list[i].pid);
        jsonw_kstr(w, "name", list[i].name);
        jsonw_object_end(w);
    }
    jsonw_array_end(w);
}

static void write_end(struct jsonw *w, const struct helper_verdict *v)
{
    if (v->kept)
        jsonw_kbool(w, "kept", true);
    jsonw_kuint(w, "background", v->background);
    if (v->left[0].pid != 0)
        write_left(w, v->left);
    jsonw_kuint(w, "cpu_us", v->cpu_us);
    jsonw_kuint(w, "max_rss_kib", v->max_rss_kib);
    write_names(w, "removed", v->removed);
    write_names(w, "created_repositories", v->created);
    if (v->oom_kills > 0)
        jsonw_kuint(w, "oom_kills", v->oom_kills);
    if (v->denials[0].rule[0] != '\0')
        write_denials(w, v->denials);
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
    if (v->at_us > 0)
        jsonw_kuint(&w, "at_us", v->at_us);
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
