/* wire/inject: see inject.h. */
#include "wire/inject.h"

#include "base/mem.h"
#include "base/str.h"
#include "wire/http1.h"

#include <json-c/json.h>
#include <limits.h>
#include <string.h>
#include <strings.h>

void inject_fini(struct inject_rules *r)
{
    for (size_t i = 0; i < r->len; i++) {
        if (r->items[i].value != NULL)
            explicit_bzero(r->items[i].value, strlen(r->items[i].value));
        free(r->items[i].value);
        free(r->items[i].header);
        free(r->items[i].file);
    }
    free(r->items);
    *r = (struct inject_rules){0};
}

struct document {
    const char *host;
    const char *header;
    const char *file;
    const char *value;
};

#define AT(member) offsetof(struct document, member)
#define PLACE_ROWS                                                                                 \
    {"host", JSON_STR, JSON_REQUIRED, AT(host), 1, HOST_AUTHORITY_MAX},                            \
    {                                                                                              \
        "header", JSON_STR, JSON_REQUIRED, AT(header), 1, INJECT_HEADER_MAX                        \
    }
static const struct json_field rule_fields[] = {
    PLACE_ROWS, {"file", JSON_STR, JSON_REQUIRED, AT(file), 1, PATH_MAX - 1}};
static const struct json_field value_fields[] = {
    PLACE_ROWS, {"value", JSON_STR, JSON_REQUIRED, AT(value), 1, INJECT_VALUE_MAX}};
#undef PLACE_ROWS
#undef AT

static int refuse(struct err *e, const char *where, const char *member, const char *text,
                  const char *why)
{
    return err_set(e, ERR_CONFIG_INVALID, "%s.%s: \"%.256s\" %s", where, member, text, why);
}

/* An address that a connection to this machine can have. */
static bool is_here(const struct host *h)
{
    if (h->kind == HOST_NAME)
        return host_is_localhost(h);
    enum addr_class class = host_addr_class(&h->addr);
    return class == ADDR_LOOPBACK || class == ADDR_MAPPED || class == ADDR_UNSPECIFIED;
}

static int take_host(const char *text, const char *where, struct inject_rule *r, struct err *e)
{
    if (host_parse_authority(text, strlen(text), 80, &r->host, &r->port, e) < 0) {
        if (e != NULL)
            e->code = ERR_CONFIG_INVALID;
        return err_wrap(e, "%s.host: \"%.256s\"", where, text);
    }
    if (is_here(&r->host))
        return refuse(e, where, "host", text,
                      "is the loopback, where a command's own server could listen and read the "
                      "credential; name the host by its own name");
    return 0;
}

/* What the proxy writes itself: framing, Host, what belongs to one connection. */
static bool is_the_proxys(const char *name)
{
#define KNOWN(id, text) text,
    static const char *const known[] = {HTTP1_KNOWN_TABLE(KNOWN)};
#undef KNOWN
    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        if (strcasecmp(name, known[i]) == 0)
            return true;
    }
    return false;
}

static int take_header(const char *name, const char *where, struct inject_rule *r, struct err *e)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-";
    if (strspn(name, letters) != strlen(name))
        return refuse(e, where, "header", name, "is not a header's name (letters, digits, '-')");
    if (is_the_proxys(name))
        return refuse(e, where, "header", name,
                      "is written by the proxy itself; name another header, such as "
                      "\"Authorization\"");
    r->header = mem_strdup(name);
    return 0;
}

static int check_twin(const struct inject_rules *all, const char *where, struct err *e)
{
    const struct inject_rule *last = &all->items[all->len - 1];
    for (size_t i = 0; i + 1 < all->len; i++) {
        const struct inject_rule *r = &all->items[i];
        if (host_eq(&r->host, &last->host) && r->port == last->port &&
            strcasecmp(r->header, last->header) == 0)
            return refuse(e, where, "header", last->header, "is given twice for this host");
    }
    return 0;
}

/* One more at the end of `all`, which has room. */
static int take(const struct document *d, const char *where, struct inject_rules *all,
                struct err *e)
{
    struct inject_rule *r = &all->items[all->len++];
    if (take_host(d->host, where, r, e) < 0 || take_header(d->header, where, r, e) < 0)
        return -1;
    return check_twin(all, where, e);
}

static int begin(struct json_object *list, const char *where, struct inject_rules *ret,
                 struct err *e)
{
    size_t n = json_object_array_length(list);
    if (n > INJECT_RULES_MAX)
        return err_set(e, ERR_CONFIG_INVALID, "%s: more than INJECT_RULES_MAX (%d)", where,
                       INJECT_RULES_MAX);
    ret->items = mem_zalloc(n, sizeof(*ret->items));
    return (int)n;
}

int inject_read(struct json_object *list, const char *where, struct inject_rules *ret,
                struct err *e)
{
    int n = list == NULL ? 0 : begin(list, where, ret, e);
    for (int i = 0; i < n; i++) {
        struct document d = {0};
        autofree char *key = mem_printf("%s[%d]", where, i);
        if (json_read(json_object_array_get_idx(list, (size_t)i), key, rule_fields,
                      ARRAY_LEN(rule_fields), &d, ERR_CONFIG_INVALID, e) < 0 ||
            take(&d, key, ret, e) < 0)
            return -1;
        if (d.file[0] != '/')
            return refuse(e, key, "file", d.file, "is not an absolute path");
        ret->items[i].file = mem_strdup(d.file);
    }
    return n < 0 ? -1 : 0;
}

void inject_dup(const struct inject_rules *from, struct inject_rules *ret)
{
    ret->items = mem_zalloc(from->len, sizeof(*ret->items));
    for (; ret->len < from->len; ret->len++) {
        const struct inject_rule *r = &from->items[ret->len];
        ret->items[ret->len] = (struct inject_rule){r->host, r->port, mem_strdup(r->header),
                                                    mem_strdup(r->file), NULL};
    }
}

static void write_place(const struct inject_rule *r, struct jsonw *w)
{
    char host[HOST_AUTHORITY_MAX];
    host_format_authority(&r->host, r->port, host);
    jsonw_kstr(w, "host", host);
    jsonw_kstr(w, "header", r->header);
}

void inject_write(const struct inject_rules *r, bool files, struct jsonw *w)
{
    jsonw_array(w);
    for (size_t i = 0; i < r->len; i++) {
        jsonw_object(w);
        write_place(&r->items[i], w);
        if (files)
            jsonw_kstr(w, "file", r->items[i].file);
        jsonw_object_end(w);
    }
    jsonw_array_end(w);
}

int inject_check_value(const char *value, size_t n, struct err *e)
{
    if (n == 0 || n > INJECT_VALUE_MAX)
        return err_set(e, ERR_CONFIG_INVALID,
                       "the file must hold one line of 1 to INJECT_VALUE_MAX (%u) bytes",
                       INJECT_VALUE_MAX);
    for (size_t i = 0; i < n; i++) {
        if (value[i] < ' ' || value[i] > '~')
            return err_set(e, ERR_CONFIG_INVALID,
                           "byte %zu of the file is not possible in a header; it must hold one "
                           "line of printable ASCII",
                           i);
    }
    return 0;
}

void inject_write_value(const struct inject_rule *r, const char *value, struct jsonw *w)
{
    jsonw_object(w);
    write_place(r, w);
    jsonw_kstr(w, "value", value);
    jsonw_object_end(w);
}

static int read_values(struct json_object *list, struct inject_rules *ret, struct err *e)
{
    int n = begin(list, "values", ret, e);
    for (int i = 0; i < n; i++) {
        struct document d = {0};
        autofree char *key = mem_printf("values[%d]", i);
        if (json_read(json_object_array_get_idx(list, (size_t)i), key, value_fields,
                      ARRAY_LEN(value_fields), &d, ERR_CONFIG_INVALID, e) < 0 ||
            take(&d, key, ret, e) < 0 || inject_check_value(d.value, strlen(d.value), e) < 0)
            return -1;
        ret->items[i].value = mem_strdup(d.value);
    }
    return n < 0 ? -1 : 0;
}

int inject_read_values(const char *text, size_t n, struct inject_rules *ret, struct err *e)
{
    autojson *list = NULL;
    if (n > INJECT_TEXT_MAX || json_parse(text, n, &list, NULL) < 0 ||
        !json_object_is_type(list, json_type_array))
        return err_set(e, ERR_CONFIG_INVALID, "the values are not a list");
    if (read_values(list, ret, e) == 0)
        return 0;
    inject_fini(ret);
    return -1;
}
