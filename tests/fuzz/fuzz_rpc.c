/* Fuzz target for wire/rpc: any JSON gives a message or an error; an id that was accepted is JSON
 * again, of the same type and value; and what is written for it is one well-formed line. */
#include "base/mem.h"
#include "wire/json.h"
#include "wire/rpc.h"

#include <json-c/json.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n);

static void check_id(const struct rpc_id *id, struct json_object *sent)
{
    struct err e = {0};
    autojson *again = NULL;
    ensure(id->len <= RPC_ID_MAX && strlen(id->text) == id->len);
    ensure(json_parse(id->text, id->len, &again, &e) == 0);
    ensure(json_object_equal(again, sent));
}

static void check_line(const struct buf *line)
{
    struct err e = {0};
    autojson *obj = NULL;
    ensure(memchr(buf_bytes(line), '\n', line->len) == NULL);
    ensure(json_parse(buf_bytes(line), line->len, &obj, &e) == 0);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n)
{
    struct err e = {0};
    struct rpc_message m;
    autojson *obj = NULL;
    autobuf line = BUF_INIT;
    if (json_parse((const char *)data, n, &obj, &e) < 0)
        return 0;
    int status = rpc_read(obj, &m, &e);
    if (m.id.len > 0)
        check_id(&m.id, json_get(obj, "id"));
    if (status < 0) {
        ensure(e.code == ERR_INVALID_REQUEST || e.code == ERR_INVALID_PARAMS);
        rpc_write_error(&line, &m.id, &e);
    } else {
        ensure(m.kind == RPC_RESPONSE || m.method != NULL);
        rpc_write_result_head(&line, &m.id);
        buf_puts(&line, "{}}");
    }
    check_line(&line);
    return 0;
}
