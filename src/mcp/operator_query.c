/* mcp/operator_query: see operator_query.h. */
#include "mcp/operator_query.h"

#include "base/mem.h"
#include "base/num.h"
#include "core/intents.h"

#include <string.h>

static int take_number(const char *value, size_t n, uint64_t max, uint64_t *ret)
{
    autofree char *text = mem_dup(value, n);
    return strlen(text) == n ? num_parse_u64(text, 0, max, ret) : -1;
}

static int take_pair(struct operator_query *q, const char *name, size_t n, const char *value,
                     size_t len)
{
    const struct {
        const char *name;
        uint64_t max;
        uint64_t *to;
    } numbers[] = {{"all", 1, &q->all},
                   {"limit", UINT32_MAX, &q->limit},
                   {"before", INT64_MAX, &q->before},
                   {"offset", INT32_MAX, &q->offset}};
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        if (strlen(numbers[i].name) == n && memcmp(numbers[i].name, name, n) == 0)
            return take_number(value, len, numbers[i].max, numbers[i].to);
    }
    static const char own[] = "workspace_id";
    if (n != sizeof(own) - 1 || memcmp(own, name, n) != 0 || len > REGISTRY_ID_MAX)
        return -1;
    memcpy(q->workspace_id, value, len);
    q->workspace_id[len] = '\0';
    return registry_id_valid(q->workspace_id) ? 0 : -1;
}

int operator_query_read(struct operator_query *q, const char *p, size_t n, struct err *e)
{
    const char *end = p + n;
    while (p < end) {
        const char *stop = memchr(p, '&', (size_t)(end - p));
        stop = stop != NULL ? stop : end;
        const char *equal = memchr(p, '=', (size_t)(stop - p));
        if (equal == NULL ||
            take_pair(q, p, (size_t)(equal - p), equal + 1, (size_t)(stop - equal - 1)) < 0)
            return err_set(e, ERR_INVALID_ARGUMENT,
                           "the query is not understood; workspace_id=ID, all=1, limit=N, before=N "
                           "and offset=N are, each where it makes sense");
        p = stop + 1;
    }
    return 0;
}

int operator_body_read(struct operator_body *b, const struct json_field *in, size_t n_in,
                       const char *text, size_t n, struct err *e)
{
    b->delivery = INTENT_AFTER_CURRENT_WORK;
    if (n > HTTP_OPERATOR_BODY_MAX)
        return err_set(e, ERR_LIMIT_EXCEEDED,
                       "the body has %zu bytes and HTTP_OPERATOR_BODY_MAX is %u", n,
                       HTTP_OPERATOR_BODY_MAX);
    b->given = n > 0;
    if (n > 0 && json_parse(text, n, &b->message, e) < 0)
        return -1;
    if (b->message == NULL)
        b->message = json_object_new_object();
    ensure(b->message != NULL);
    return in == NULL ? 0 : json_read(b->message, "", in, n_in, b, ERR_INVALID_ARGUMENT, e);
}

void operator_body_fini(struct operator_body *b)
{
    json_object_put(b->message);
}
