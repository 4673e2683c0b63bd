/* wire/runmsg: see runmsg.h. The envelope. */
#include "wire/runmsg.h"

#include "base/mem.h"
#include "wire/json.h"
#include "wire/runmsg_fields.h"

#include <string.h>

static const char *const kind_names[] = {"request", "response", "event"};
static const char exited[] = "process_exited";

struct op_row {
    const char *name;
    const struct runmsg_shape *request, *result;
};

#define ROW(id, name, request, result)                                                             \
    [RUNMSG_##id] = {#name, &runmsg_shape_##request, &runmsg_shape_##result},

static const struct op_row ops[RUNMSG_OP_MAX] = {RUNMSG_OPS(ROW)};

const char *runmsg_op_name(enum runmsg_op op)
{
    return op < RUNMSG_OP_MAX ? ops[op].name : "none";
}

static const struct runmsg_shape *shape_of(enum runmsg_kind kind, enum runmsg_op op)
{
    if (kind == RUNMSG_EVENT)
        return &runmsg_shape_status;
    ensure(op < RUNMSG_OP_MAX);
    return kind == RUNMSG_REQUEST ? ops[op].request : ops[op].result;
}

void *runmsg_new_data(struct runmsg *m, enum runmsg_kind kind, enum runmsg_op op)
{
    m->kind = kind;
    m->op = op;
    m->data = mem_zalloc(1, shape_of(kind, op)->size);
    return m->data;
}

void runmsg_fini(struct runmsg *m)
{
    if (m->data != NULL)
        runmsg_fields_fini(shape_of(m->kind, m->op), m->data);
    free(m->data);
    free(m->request_id);
    *m = (struct runmsg){0};
}

/* ---- writing ---- */

static void write_payload(struct jsonw *w, const char *key, const char *word, const char *name,
                          const struct runmsg_shape *shape, const void *data)
{
    jsonw_key(w, key);
    jsonw_object(w);
    jsonw_kstr(w, word, name);
    jsonw_key(w, "data");
    runmsg_fields_write(w, shape, data);
    jsonw_object_end(w);
}

static void write_failure(struct jsonw *w, const struct err *failure)
{
    jsonw_kbool(w, "ok", false);
    jsonw_key(w, "error");
    jsonw_object(w);
    jsonw_kstr(w, "code", err_info(failure->code)->name);
    jsonw_kuint(w, "sys", failure->sys > 0 ? (uint64_t)failure->sys : 0);
    jsonw_kstr(w, "message", failure->message);
    jsonw_object_end(w);
}

static void write_body(struct jsonw *w, const struct runmsg *m)
{
    if (m->kind == RUNMSG_EVENT) {
        write_payload(w, "event", "type", exited, &runmsg_shape_status, m->data);
    } else if (m->kind == RUNMSG_REQUEST) {
        write_payload(w, "op", "op", ops[m->op].name, ops[m->op].request, m->data);
    } else if (m->failed) {
        write_failure(w, &m->failure);
    } else {
        jsonw_kbool(w, "ok", true);
        write_payload(w, "result", "type", ops[m->op].name, ops[m->op].result, m->data);
    }
}

/* What follows the text. */
static struct runmsg_page *page_of(const struct runmsg *m)
{
    if (m->kind != RUNMSG_RESPONSE || m->failed)
        return NULL;
    if (m->op == RUNMSG_READ)
        return m->data;
    struct runmsg_started *s = m->op == RUNMSG_EXEC ? m->data : NULL;
    return s != NULL && s->has_page ? &s->page : NULL;
}

void runmsg_write(const struct runmsg *m, struct buf *out)
{
    struct jsonw w;
    jsonw_init(&w, out);
    jsonw_object(&w);
    jsonw_kuint(&w, "protocol", RUNMSG_PROTOCOL);
    jsonw_kstr(&w, "kind", kind_names[m->kind]);
    if (m->kind != RUNMSG_EVENT)
        jsonw_kstr(&w, "request_id", m->request_id);
    write_body(&w, m);
    jsonw_object_end(&w);
    const struct runmsg_page *page = page_of(m);
    if (page == NULL || page->bytes.len == 0)
        return;
    ensure(page->n_bytes == page->bytes.len);
    buf_putc(out, '\0');
    buf_put(out, buf_bytes(&page->bytes), page->bytes.len);
}

/* ---- reading ---- */

static int bad(struct err *e, const char *what)
{
    return err_set(e, ERR_INVALID_REQUEST, "runner protocol: %s", what);
}

static int index_of(const char *name, const char *const *names, size_t n)
{
    for (size_t i = 0; name != NULL && i < n; i++) {
        if (strcmp(name, names[i]) == 0)
            return (int)i;
    }
    return -1;
}

/* The answer to something that had no id has an empty one. */
static bool is_request_id(const char *s, enum runmsg_kind kind)
{
    size_t n = s == NULL ? RUNMSG_ID_MAX + 1 : strlen(s);
    return n <= RUNMSG_ID_MAX && (n > 0 || kind == RUNMSG_RESPONSE);
}

/* Only these two members, both there. */
static int read_payload(struct json_object *obj, const char *word, const char **ret_name,
                        struct json_object **ret_data, struct err *e)
{
    if (obj == NULL || !json_object_is_type(obj, json_type_object) ||
        json_object_object_length(obj) != 2)
        return bad(e, "a payload is an object of a name and its data");
    *ret_name = json_str(json_get(obj, word));
    *ret_data = json_get(obj, "data");
    if (*ret_name == NULL || *ret_data == NULL)
        return bad(e, "a payload lacks its name or its data");
    return 0;
}

static int read_data(struct runmsg *m, enum runmsg_op op, struct json_object *data, struct err *e)
{
    void *to = runmsg_new_data(m, m->kind, op);
    return runmsg_fields_read(shape_of(m->kind, op), data, to, e);
}

static int read_op(struct runmsg *m, struct json_object *obj, const char *word, struct err *e)
{
    const char *name = NULL;
    struct json_object *data = NULL;
    if (read_payload(obj, word, &name, &data, e) < 0)
        return -1;
    for (int op = 0; op < RUNMSG_OP_MAX; op++) {
        if (strcmp(name, ops[op].name) == 0)
            return read_data(m, (enum runmsg_op)op, data, e);
    }
    return err_set(e, ERR_METHOD_NOT_FOUND, "runner protocol: there is no op \"%.40s\"", name);
}

static int read_event(struct runmsg *m, struct json_object *obj, struct err *e)
{
    const char *name = NULL;
    struct json_object *data = NULL;
    if (read_payload(obj, "type", &name, &data, e) < 0)
        return -1;
    if (strcmp(name, exited) != 0)
        return bad(e, "the only event is process_exited");
    return read_data(m, RUNMSG_OP_MAX, data, e);
}

static int read_failure(struct runmsg *m, struct json_object *obj, struct err *e)
{
    const char *code = json_str(json_get(obj, "code"));
    const char *message = json_str(json_get(obj, "message"));
    struct json_object *sys = json_get(obj, "sys");
    if (code == NULL || message == NULL || json_object_object_length(obj) != 3 ||
        !json_object_is_type(sys, json_type_int))
        return bad(e, "an error has code, sys and message");
    enum err_code known = err_code_of(code);
    int64_t number = json_object_get_int64(sys);
    err_set(&m->failure, known == ERR_NONE ? ERR_INTERNAL : known, "%s", message);
    m->failure.sys = number > 0 && number < 4096 ? (int)number : 0;
    m->failed = true;
    m->op = RUNMSG_OP_MAX;
    return 0;
}

static int read_response(struct runmsg *m, struct json_object *obj, struct err *e)
{
    struct json_object *ok = json_get(obj, "ok");
    if (!json_object_is_type(ok, json_type_boolean))
        return bad(e, "a response says ok");
    if (!json_object_get_boolean(ok))
        return read_failure(m, json_get(obj, "error"), e);
    return read_op(m, json_get(obj, "result"), "type", e);
}

/* Members of each kind besides protocol and kind. */
static int read_body(struct runmsg *m, struct json_object *obj, struct err *e)
{
    static const int members[] = {4, 5, 3};
    if (m->kind != RUNMSG_EVENT && m->request_id == NULL)
        return bad(e, "request_id is missing, or no word of 1 to 64 bytes");
    if (json_object_object_length(obj) != members[m->kind])
        return bad(e, "a member is missing or unknown");
    switch (m->kind) {
    case RUNMSG_REQUEST:
        return read_op(m, json_get(obj, "op"), "op", e);
    case RUNMSG_RESPONSE:
        return read_response(m, obj, e);
    case RUNMSG_EVENT:
        break;
    }
    return read_event(m, json_get(obj, "event"), e);
}

static int read_message(const char *text, size_t n, struct runmsg *ret, struct err *e)
{
    autojson *obj = NULL;
    if (json_parse(text, n, &obj, e) < 0)
        return -1;
    if (!json_object_is_type(obj, json_type_object))
        return bad(e, "a message is an object");
    int kind = index_of(json_str(json_get(obj, "kind")), kind_names, ARRAY_LEN(kind_names));
    if (kind >= 0)
        ret->kind = (enum runmsg_kind)kind;
    const char *id = json_str(json_get(obj, "request_id"));
    if (is_request_id(id, ret->kind))
        ret->request_id = mem_strdup(id);
    struct json_object *protocol = json_get(obj, "protocol");
    if (!json_object_is_type(protocol, json_type_int))
        return bad(e, "protocol is a number");
    if (json_object_get_int64(protocol) != RUNMSG_PROTOCOL)
        return 1;
    if (kind < 0)
        return bad(e, "kind is request, response or event");
    return read_body(ret, obj, e);
}

/* ---- a page's bytes ---- */

/* `bytes` NULL: nothing follows. A page that came with base64 as a member gets its number. */
static int take_behind(struct runmsg *m, const char *bytes, size_t n, struct err *e)
{
    struct runmsg_page *page = page_of(m);
    if (page == NULL)
        return bytes == NULL ? 0 : bad(e, "only a page has bytes behind it");
    if (page->n_bytes != n || (bytes != NULL && (n == 0 || page->bytes.len > 0)))
        return bad(e, "the bytes behind a page are not as many as it says");
    if (bytes != NULL)
        buf_put(&page->bytes, bytes, n);
    page->n_bytes = page->bytes.len;
    return 0;
}

int runmsg_read(const char *text, size_t n, struct runmsg *ret, struct err *e)
{
    const char *end = n == 0 ? NULL : memchr(text, '\0', n);
    size_t len = end == NULL ? n : (size_t)(end - text);
    *ret = (struct runmsg){.op = RUNMSG_OP_MAX};
    int rc = read_message(text, len, ret, e);
    if (rc != 0)
        return rc;
    return end == NULL ? take_behind(ret, NULL, 0, e) : take_behind(ret, end + 1, n - len - 1, e);
}
