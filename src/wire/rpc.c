/* wire/rpc: see rpc.h. */
#include "wire/rpc.h"

#include "base/jsonw.h"
#include "wire/json.h"

#include <inttypes.h>
#include <json-c/json_util.h>
#include <stdio.h>
#include <string.h>

static int read_string_id(struct json_object *value, struct rpc_id *ret, struct err *e)
{
    size_t n = (size_t)json_object_get_string_len(value);
    autobuf text = BUF_INIT;
    if (n <= RPC_ID_MAX) {
        buf_putc(&text, '"');
        jsonw_escape(&text, json_object_get_string(value), n);
        buf_putc(&text, '"');
    }
    if (n > RPC_ID_MAX || text.len > RPC_ID_MAX)
        return err_set(e, ERR_INVALID_REQUEST,
                       "id: longer than RPC_ID_MAX (%d) bytes of JSON; use a number or a UUID",
                       RPC_ID_MAX);
    memcpy(ret->text, buf_bytes(&text), text.len);
    ret->text[text.len] = '\0';
    ret->len = (unsigned)text.len;
    return 0;
}

int rpc_id_read(struct json_object *value, struct rpc_id *ret, struct err *e)
{
    if (json_object_is_type(value, json_type_string))
        return read_string_id(value, ret, e);
    if (!json_object_is_type(value, json_type_int))
        return err_set(e, ERR_INVALID_REQUEST, "id: must be a string or a whole number, not %s",
                       value == NULL ? "null" : json_type_to_name(json_object_get_type(value)));
    int64_t number = json_object_get_int64(value);
    int n = number < 0
                ? snprintf(ret->text, sizeof(ret->text), "%" PRId64, number)
                : snprintf(ret->text, sizeof(ret->text), "%" PRIu64, json_object_get_uint64(value));
    ret->len = (unsigned)n;
    return 0;
}

bool rpc_id_equal(const struct rpc_id *a, const struct rpc_id *b)
{
    return a->len == b->len && memcmp(a->text, b->text, a->len) == 0;
}

static int check_version(struct json_object *obj, struct err *e)
{
    const char *version = json_str(json_get(obj, "jsonrpc"));
    if (version == NULL || strcmp(version, "2.0") != 0)
        return err_set(e, ERR_INVALID_REQUEST, "jsonrpc: must be \"2.0\"");
    return 0;
}

static int read_params(struct json_object *obj, struct rpc_message *ret, struct err *e)
{
    struct json_object *params = json_get(obj, "params");
    if (params != NULL && !json_object_is_type(params, json_type_object))
        return err_set(e, ERR_INVALID_PARAMS, "params: must be an object, not %s",
                       json_type_to_name(json_object_get_type(params)));
    ret->params = params;
    return 0;
}

static int read_response(struct json_object *obj, struct rpc_message *ret, struct err *e)
{
    struct json_object *value = NULL;
    bool result = json_object_object_get_ex(obj, "result", &value);
    bool error = json_object_object_get_ex(obj, "error", &value);
    if (!result && !error)
        return err_set(e, ERR_INVALID_REQUEST,
                       "the message has neither a method nor a result nor an error");
    ret->kind = RPC_RESPONSE;
    return 0;
}

int rpc_read(struct json_object *obj, struct rpc_message *ret, struct err *e)
{
    struct json_object *id = NULL;
    struct json_object *method = NULL;
    memset(ret, 0, offsetof(struct rpc_message, id.text));
    ret->method = NULL;
    ret->params = NULL;
    if (!json_object_is_type(obj, json_type_object))
        return err_set(e, ERR_INVALID_REQUEST, "a message must be an object, not %s",
                       obj == NULL ? "null" : json_type_to_name(json_object_get_type(obj)));
    bool has_id = json_object_object_get_ex(obj, "id", &id);
    bool has_method = json_object_object_get_ex(obj, "method", &method);
    /* An error response to a message whose id was unreadable carries null. */
    if (has_id && !(id == NULL && !has_method) && rpc_id_read(id, &ret->id, e) < 0)
        return -1;
    if (check_version(obj, e) < 0)
        return -1;
    if (!has_method)
        return read_response(obj, ret, e);
    ret->method = json_str(method);
    if (ret->method == NULL)
        return err_set(e, ERR_INVALID_REQUEST, "method: must be a string without NUL characters");
    ret->kind = has_id ? RPC_REQUEST : RPC_NOTIFICATION;
    return read_params(obj, ret, e);
}

static void write_head(struct buf *out, const struct rpc_id *id)
{
    static const char head[] = "{\"jsonrpc\":\"2.0\",\"id\":";
    buf_put(out, head, sizeof(head) - 1);
    if (id->len == 0)
        buf_puts(out, "null");
    else
        buf_put(out, id->text, id->len);
}

void rpc_write_result_head(struct buf *out, const struct rpc_id *id)
{
    static const char result[] = ",\"result\":";
    write_head(out, id);
    buf_put(out, result, sizeof(result) - 1);
}

void rpc_write_error_data(struct buf *out, const struct rpc_id *id, const struct err *e,
                          const char *data, size_t n)
{
    struct jsonw w;
    write_head(out, id);
    buf_puts(out, ",\"error\":");
    jsonw_init(&w, out);
    jsonw_object(&w);
    jsonw_kint(&w, "code", err_info(e->code)->rpc_code);
    jsonw_kstr(&w, "message", e->message);
    if (n > 0) {
        jsonw_key(&w, "data");
        jsonw_raw(&w, data, n);
    }
    jsonw_object_end(&w);
    buf_putc(out, '}');
}

void rpc_write_error(struct buf *out, const struct rpc_id *id, const struct err *e)
{
    rpc_write_error_data(out, id, e, NULL, 0);
}
