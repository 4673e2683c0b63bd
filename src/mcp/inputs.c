/* mcp/inputs: see inputs.h. The form of a sealed state:
 *
 *     hex(HMAC-SHA256(key, purpose '.' expiry '.' text)) '.' expiry '.' text
 *
 * where expiry is in milliseconds and purpose is who called (mcp/session), the method and the name
 * of what was called, which is not sent since the same call says it again. */
#include "mcp/inputs.h"

#include "base/num.h"
#include "core/seal.h"
#include "mcp/session.h"
#include "wire/json.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

static uint64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_BOOTTIME, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void sign(const struct request *rq, const char *rest, char hex[SEAL_HEX + 1])
{
    struct json_object *params = request_params(rq);
    const char *name = json_str(json_get(params, "name"));
    const char *uri = json_str(json_get(params, "uri"));
    autobuf who = BUF_INIT;
    for (size_t i = 0; rq->session != NULL && i < sizeof(rq->session->principal.digest); i++)
        buf_printf(&who, "%02x", rq->session->principal.digest[i]);
    autofree char *text =
        mem_printf("%s\n%s\n%s\n%s\n%s", buf_cstr(&who), json_str(json_get(rq->message, "method")),
                   name != NULL ? name : "", uri != NULL ? uri : "", rest);
    seal_sign(rq->server->state_key, SERVER_KEY_BYTES, text, hex);
}

struct json_object *inputs_get(const struct request *rq, const char *key)
{
    struct json_object *all = json_get(request_params(rq), "inputResponses");
    struct json_object *one = json_get(all, key);
    return json_object_is_type(one, json_type_object) ? one : NULL;
}

static void write_state(struct request *rq, struct jsonw *w, const char *state)
{
    char hex[SEAL_HEX + 1];
    autofree char *rest = mem_printf("%" PRIu64 ".%s", now_ms() + INPUTS_STATE_MS, state);
    sign(rq, rest, hex);
    autofree char *sealed = mem_printf("%s.%s", hex, rest);
    ensure(strlen(sealed) <= INPUTS_STATE_MAX);
    jsonw_kstr(w, "requestState", sealed);
}

void inputs_require(struct request *rq, const char *requests, const char *state)
{
    ensure(rq->modern && (requests != NULL || state != NULL));
    rq->bare = true;
    struct jsonw *w = request_answer(rq);
    if (requests != NULL) {
        jsonw_key(w, "inputRequests");
        jsonw_raw(w, requests, strlen(requests));
    }
    if (state != NULL)
        write_state(rq, w, state);
    request_finish_as(rq, "input_required");
}

static int refuse(struct err *e)
{
    return err_set(e, ERR_INVALID_PARAMS,
                   "params.requestState: is not what this call gave, or too old; send the call "
                   "again without it");
}

int inputs_state(const struct request *rq, char **ret, struct err *e)
{
    char hex[SEAL_HEX + 1];
    uint64_t expiry = 0;
    struct json_object *value = json_get(request_params(rq), "requestState");
    *ret = NULL;
    if (value == NULL)
        return 0;
    const char *sealed = json_str(value);
    if (sealed == NULL || strlen(sealed) > INPUTS_STATE_MAX || strlen(sealed) <= SEAL_HEX ||
        sealed[SEAL_HEX] != '.')
        return refuse(e);
    const char *rest = sealed + SEAL_HEX + 1;
    const char *dot = strchr(rest, '.');
    sign(rq, rest, hex);
    if (dot == NULL || !seal_equal(hex, sealed, SEAL_HEX))
        return refuse(e);
    autofree char *number = mem_dup(rest, (size_t)(dot - rest));
    if (num_parse_u64(number, 0, UINT64_MAX, &expiry) < 0 || expiry < now_ms())
        return refuse(e);
    *ret = mem_strdup(dot + 1);
    return 0;
}
