/* mcp/http_modern: see http_modern.h. */
#include "mcp/http_modern.h"

#include "base/mem.h"
#include "mcp/meta.h"
#include "wire/json.h"

#include <string.h>

#define VERSION_HEADER "mcp-protocol-version"
#define ENCODED_HEAD "=?base64?"
#define ENCODED_TAIL "?="

/* The first revision of the modern era; revisions are dates and sort as text. */
#define FIRST "2026-"

static bool header_is_modern(const struct http1_head *h)
{
    const struct http1_header *v = http1_find(h, VERSION_HEADER, NULL);
    return v != NULL && v->value.len >= strlen(FIRST) &&
           memcmp(http1_at(h, v->value), FIRST, strlen(FIRST)) >= 0;
}

bool http_modern_is(const struct http1_head *h, struct json_object *message)
{
    return header_is_modern(h) || meta_version(json_get(message, "params")) != NULL;
}

static int value_of(int c)
{
    static const char alphabet[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = c != '\0' ? strchr(alphabet, c) : NULL;
    return at != NULL ? (int)(at - alphabet) : -1;
}

/* Padded, canonical base64 only: the bits that are not used must be zero. */
static char *decode_base64(const char *text, size_t n)
{
    autofree char *out = mem_zalloc(n / 4 * 3 + 1, 1);
    size_t len = 0;
    if (n % 4 != 0)
        return NULL;
    for (size_t i = 0; i < n; i += 4) {
        bool last = i + 4 == n;
        int pad = last && text[i + 3] == '=' ? 1 + (text[i + 2] == '=') : 0;
        unsigned bits = 0;
        for (int k = 0; k < 4; k++) {
            int v = k < 4 - pad ? value_of((unsigned char)text[i + (size_t)k]) : 0;
            if (v < 0)
                return NULL;
            bits = bits << 6 | (unsigned)v;
        }
        if ((pad == 1 && bits & 0xff) || (pad == 2 && bits & 0xffff))
            return NULL;
        for (int k = 0; k < 3 - pad; k++)
            out[len++] = (char)(bits >> (16 - 8 * k));
    }
    return strlen(out) == len ? steal(out) : NULL;
}

char *http_modern_decode(const char *text, size_t n)
{
    size_t head = strlen(ENCODED_HEAD);
    size_t tail = strlen(ENCODED_TAIL);
    if (n < head + tail || memcmp(text, ENCODED_HEAD, head) != 0 ||
        memcmp(text + n - tail, ENCODED_TAIL, tail) != 0)
        return mem_dup(text, n);
    return decode_base64(text + head, n - head - tail);
}

int http_modern_says(const struct http1_head *h, const char *name, const char *want, bool encoded,
                     struct err *e)
{
    bool more = false;
    const struct http1_header *header = http1_find(h, name, &more);
    if (header == NULL || more)
        return err_set(e, ERR_HEADER_MISMATCH, "%s: is required once, as \"%.128s\"", name, want);
    const char *at = http1_at(h, header->value);
    autofree char *text =
        encoded ? http_modern_decode(at, header->value.len) : mem_dup(at, header->value.len);
    if (text == NULL)
        return err_set(e, ERR_HEADER_MISMATCH, "%s: is not well-formed base64", name);
    if (strcmp(text, want) != 0)
        return err_set(e, ERR_HEADER_MISMATCH,
                       "%s: says \"%.128s\", and the message \"%.128s\"; both must be the same",
                       name, text, want);
    return 0;
}

static int check_version(const struct http1_head *h, const struct rpc_message *m, struct buf *data,
                         struct err *e)
{
    const char *body = meta_version(m->params);
    const struct http1_header *v = http1_find(h, VERSION_HEADER, NULL);
    if (body != NULL && http_modern_says(h, "MCP-Protocol-Version", body, false, e) < 0)
        return -1;
    autofree char *text = mem_dup(http1_at(h, v->value), v->value.len);
    if (meta_version_served(text))
        return 0;
    meta_write_unsupported(data, text);
    return err_set(e, ERR_VERSION_UNSUPPORTED, "revision \"%.32s\" is not served; %s is", text,
                   meta_versions[0]);
}

/* Which member of params Mcp-Name repeats. */
static const char *name_member(const char *method)
{
    static const struct {
        const char *method, *member;
    } all[] = {
        {"tools/call", "name"},  {"prompts/get", "name"},    {"resources/read", "uri"},
        {"tasks/get", "taskId"}, {"tasks/update", "taskId"}, {"tasks/cancel", "taskId"},
    };
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        if (strcmp(all[i].method, method) == 0)
            return all[i].member;
    }
    return NULL;
}

int http_modern_check(const struct http1_head *h, const struct rpc_message *m, struct buf *data,
                      struct err *e)
{
    if (m->kind != RPC_REQUEST)
        return 0;
    if (check_version(h, m, data, e) < 0 ||
        http_modern_says(h, "Mcp-Method", m->method, false, e) < 0)
        return -1;
    const char *member = name_member(m->method);
    const char *name = member != NULL ? json_str(json_get(m->params, member)) : NULL;
    return name != NULL ? http_modern_says(h, "Mcp-Name", name, true, e) : 0;
}
