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
        strv_fini(&r->items[i].command);
    }
    free(r->items);
    *r = (struct inject_rules){0};
}

struct document {
    const char *host;
    const char *header;
    int tls;
    const char *file;
    struct json_object *command;
    const char *value;
};

enum tls { TLS_TUNNEL, TLS_INTERCEPT };
static const char *const tls_names[] = {"tunnel", "intercept", NULL};

#define AT(member) offsetof(struct document, member)
#define PLACE_ROWS                                                                                 \
    {"host", JSON_STR, JSON_REQUIRED, AT(host), 1, HOST_AUTHORITY_MAX},                            \
        {"header", JSON_STR, JSON_REQUIRED, AT(header), 1, INJECT_HEADER_MAX},                     \
    {                                                                                              \
        "tls", JSON_ENUM, 0, AT(tls), 0, 0, tls_names                                              \
    }
static const struct json_field rule_fields[] = {
    PLACE_ROWS,
    {"file", JSON_STR, 0, AT(file), 1, PATH_MAX - 1},
    {"command", JSON_STRV, 0, AT(command), 1, INJECT_COMMAND_WORDS_MAX}};
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
    uint16_t usual = r->intercept ? 443 : 80;
    if (host_parse_authority(text, strlen(text), usual, &r->host, &r->port, e) < 0) {
        if (e != NULL)
            e->code = ERR_CONFIG_INVALID;
        return err_wrap(e, "%s.host: \"%.256s\"", where, text);
    }
    if (is_here(&r->host))
        return refuse(e, where, "host", text,
                      "is the loopback, where a command's own server could listen and read the "
                      "credential; name the host by its own name");
    if (r->intercept && r->host.kind != HOST_NAME)
        return refuse(
            e, where, "host", text,
            "is an address; with \"tls\": \"intercept\" name the host by its name, which is "
            "what certificates are made for");
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
        if (!host_eq(&r->host, &last->host) || r->port != last->port)
            continue;
        if (strcasecmp(r->header, last->header) == 0)
            return refuse(e, where, "header", last->header, "is given twice for this host");
        if (r->intercept != last->intercept)
            return refuse(e, where, "tls", tls_names[last->intercept],
                          "contradicts an earlier rule for this host and port");
    }
    return 0;
}

/* One more at the end of `all`, which has room. */
static int take(const struct document *d, const char *where, struct inject_rules *all,
                struct err *e)
{
    struct inject_rule *r = &all->items[all->len++];
    r->intercept = d->tls == TLS_INTERCEPT;
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

static int take_command(struct json_object *words, const char *where, struct inject_rule *r,
                        struct err *e)
{
    size_t n = json_object_array_length(words);
    for (size_t i = 0; i < n; i++) {
        const char *word = json_str(json_object_array_get_idx(words, i));
        if (strlen(word) > INJECT_COMMAND_WORD_MAX)
            return err_set(e, ERR_CONFIG_INVALID,
                           "%s.command[%zu]: more than INJECT_COMMAND_WORD_MAX (%d) bytes", where,
                           i, INJECT_COMMAND_WORD_MAX);
        strv_add(&r->command, word);
    }
    if (n == 0)
        return err_set(e, ERR_CONFIG_INVALID, "%s.command: needs at least the program", where);
    if (r->command.items[0][0] != '/')
        return refuse(e, where, "command[0]", r->command.items[0],
                      "is not an absolute path; no PATH is searched");
    return 0;
}

static int take_source(const struct document *d, const char *where, struct inject_rule *r,
                       struct err *e)
{
    if ((d->file == NULL) == (d->command == NULL))
        return err_set(
            e, ERR_CONFIG_INVALID,
            "%s: needs \"file\" or \"command\", and not both: where the value comes from", where);
    if (d->command != NULL)
        return take_command(d->command, where, r, e);
    if (d->file[0] != '/')
        return refuse(e, where, "file", d->file, "is not an absolute path");
    r->file = mem_strdup(d->file);
    return 0;
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
            take(&d, key, ret, e) < 0 || take_source(&d, key, &ret->items[i], e) < 0)
            return -1;
    }
    return n < 0 ? -1 : 0;
}

void inject_dup(const struct inject_rules *from, struct inject_rules *ret)
{
    ret->items = mem_zalloc(from->len, sizeof(*ret->items));
    for (; ret->len < from->len; ret->len++) {
        const struct inject_rule *r = &from->items[ret->len];
        struct inject_rule *copy = &ret->items[ret->len];
        *copy = (struct inject_rule){.host = r->host,
                                     .port = r->port,
                                     .intercept = r->intercept,
                                     .header = mem_strdup(r->header),
                                     .file = mem_strdup(r->file)};
        for (size_t i = 0; i < r->command.len; i++)
            strv_add(&copy->command, r->command.items[i]);
    }
}

bool inject_intercepts(const struct inject_rules *r, const struct host *host, uint16_t port)
{
    for (size_t i = 0; i < r->len; i++) {
        const struct inject_rule *one = &r->items[i];
        if (one->intercept && one->port == port && host_eq(&one->host, host))
            return true;
    }
    return false;
}

bool inject_has_intercept(const struct inject_rules *r)
{
    for (size_t i = 0; i < r->len; i++) {
        if (r->items[i].intercept)
            return true;
    }
    return false;
}

static void write_place(const struct inject_rule *r, struct jsonw *w)
{
    char host[HOST_AUTHORITY_MAX];
    host_format_authority(&r->host, r->port, host);
    jsonw_kstr(w, "host", host);
    jsonw_kstr(w, "header", r->header);
    if (r->intercept)
        jsonw_kstr(w, "tls", tls_names[TLS_INTERCEPT]);
}

/* Is rule i the first one of its place? */
static bool is_first(const struct inject_rules *r, size_t i)
{
    for (size_t k = 0; k < i; k++) {
        if (r->items[k].port == r->items[i].port && host_eq(&r->items[k].host, &r->items[i].host))
            return false;
    }
    return true;
}

void inject_write_intercepted(const struct inject_rules *r, struct jsonw *w)
{
    char host[HOST_AUTHORITY_MAX];
    jsonw_array(w);
    for (size_t i = 0; i < r->len; i++) {
        if (!r->items[i].intercept || !is_first(r, i))
            continue;
        host_format_authority(&r->items[i].host, r->items[i].port, host);
        jsonw_str(w, host);
    }
    jsonw_array_end(w);
}

static void write_source(const struct inject_rule *r, struct jsonw *w)
{
    if (r->file != NULL) {
        jsonw_kstr(w, "file", r->file);
        return;
    }
    jsonw_key(w, "command");
    jsonw_array(w);
    for (size_t i = 0; i < r->command.len; i++)
        jsonw_str(w, r->command.items[i]);
    jsonw_array_end(w);
}

void inject_write(const struct inject_rules *r, bool files, struct jsonw *w)
{
    jsonw_array(w);
    for (size_t i = 0; i < r->len; i++) {
        jsonw_object(w);
        write_place(&r->items[i], w);
        if (files)
            write_source(&r->items[i], w);
        jsonw_object_end(w);
    }
    jsonw_array_end(w);
}

int inject_check_value(const char *value, size_t n, struct err *e)
{
    if (n == 0 || n > INJECT_VALUE_MAX)
        return err_set(e, ERR_CONFIG_INVALID,
                       "the value must be one line of 1 to INJECT_VALUE_MAX (%u) bytes",
                       INJECT_VALUE_MAX);
    for (size_t i = 0; i < n; i++) {
        if (value[i] < ' ' || value[i] > '~')
            return err_set(e, ERR_CONFIG_INVALID,
                           "byte %zu of the value is not possible in a header; it must be one line "
                           "of printable ASCII",
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
