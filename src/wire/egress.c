/* wire/egress: see egress.h. */
#include "wire/egress.h"

#include "base/mem.h"

#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

static void rules_fini(struct egress_rules *r)
{
    for (size_t i = 0; i < r->len; i++)
        free(r->items[i].host);
    free(r->items);
}

void egress_policy_fini(struct egress_policy *p)
{
    rules_fini(&p->allow);
    rules_fini(&p->deny);
    strv_fini(&p->methods);
    strv_fini(&p->unix_sockets);
    free(p->local_ports);
    free(p->private);
    inject_fini(&p->inject);
    *p = (struct egress_policy){0};
}

/* The document as it is written; json_read() fills it. */
struct document {
    struct json_object *allow;
    struct json_object *deny;
    struct json_object *methods;
    struct json_object *local_ports;
    struct json_object *unix_sockets;
    struct json_object *private;
    int fronting;
    const char *upstream;
    struct json_object *inject;
};

static const char *const fronting_names[] = {"log", "refuse", NULL};

#define AT(member) offsetof(struct document, member)
static const struct json_field fields[] = {
    {"allow", JSON_STRV, 0, AT(allow), 0, EGRESS_RULES_MAX, NULL,
     "Destinations that may be reached: host, *.host, **.host or *, each with an optional :port. "
     "Empty allows nothing.",
     "[]"},
    {"deny", JSON_STRV, 0, AT(deny), 0, EGRESS_RULES_MAX, NULL,
     "Destinations that may not be reached, whatever allow says.", "[]"},
    {"methods", JSON_STRV, 0, AT(methods), 0, EGRESS_METHODS_MAX, NULL,
     "HTTP methods that are allowed; tunnels of any kind need CONNECT. Empty allows all.", "[]"},
    {"local_ports", JSON_ARRAY, 0, AT(local_ports), 0, EGRESS_PORTS_MAX, NULL,
     "Ports of the host's own loopback that may be reached as localhost.", "[]"},
    {"unix_sockets", JSON_STRV, 0, AT(unix_sockets), 0, EGRESS_SOCKETS_MAX, NULL,
     "Absolute paths of Unix sockets that are shown inside.", "[]"},
    {"private", JSON_STRV, 0, AT(private), 0, EGRESS_PREFIXES_MAX, NULL,
     "Addresses or prefixes that are not public and may be dialled all the same.", "[]"},
    {"fronting", JSON_ENUM, 0, AT(fronting), 0, 0, fronting_names,
     "What happens when the name in a tunnel's TLS hello or Host is not the destination's.",
     "\"log\""},
    {"upstream", JSON_STR, 0, AT(upstream), 1, HOST_AUTHORITY_MAX, NULL,
     "host:port of an HTTP proxy through which everything goes.", NULL},
    {"inject", JSON_ARRAY, 0, AT(inject), 0, INJECT_RULES_MAX, NULL,
     "Credentials that the proxy adds to requests: {host, header, file or command, tls}.", "[]"},
};
#undef AT

/* Split off the wildcard; what is left must be a host with an optional port. */
static const char *rule_kind(const char *text, enum egress_rule_kind *ret)
{
    static const struct {
        const char *prefix;
        enum egress_rule_kind kind;
    } rows[] = {{"**.", EGRESS_TREE}, {"*.", EGRESS_BELOW}, {"", EGRESS_EXACT}};
    for (size_t i = 0;; i++) {
        if (str_starts(text, rows[i].prefix)) {
            *ret = rows[i].kind;
            return text + strlen(rows[i].prefix);
        }
    }
}

/* A rule's port 0 means every port, and the grammar knows no port 0: 0 stays when none is written.
 */
static int parse_rule_host(const char *text, struct host *ret, uint16_t *ret_port, struct err *e)
{
    size_t n = strlen(text);
    if (host_parse(text, n, ret, NULL) == 0) /* no port; also a bare IPv6 address */
        return 0;
    uint16_t port = 0;
    bool no_port = n > 0 && text[n - 1] == ']';
    if (host_parse_authority(text, n, no_port ? 1 : 0, ret, &port, e) < 0)
        return -1;
    *ret_port = no_port ? 0 : port;
    return 0;
}

/* "*" and "*:port". */
static int parse_any(const char *text, struct egress_rule *ret, struct err *e)
{
    struct host host;
    *ret = (struct egress_rule){.kind = EGRESS_ANY};
    if (text[1] == '\0')
        return 0;
    autofree char *with_host = mem_printf("any%s", text + 1);
    if (host_parse_authority(with_host, strlen(with_host), 0, &host, &ret->port, e) < 0)
        return err_wrap(e, "\"%s\"", text);
    return 0;
}

static int parse_rule(const char *text, struct egress_rule *ret, struct err *e)
{
    struct egress_rule out = {0};
    struct host host = {0};
    if (text[0] == '*' && (text[1] == '\0' || text[1] == ':'))
        return parse_any(text, ret, e);
    const char *rest = rule_kind(text, &out.kind);
    if (parse_rule_host(rest, &host, &out.port, e) < 0)
        return err_wrap(e, "\"%s\"", text);
    if (out.kind != EGRESS_EXACT && host.kind != HOST_NAME)
        return err_set(e, ERR_INVALID_ARGUMENT, "\"%s\": an address has no names below it", text);
    out.host = mem_dup(host.text, host.len);
    out.len = host.len;
    *ret = out;
    return 0;
}

/* An error of a list's item, as a configuration error that names it. */
static int bad_item(const char *where, const char *list, size_t i, struct err *e)
{
    if (e != NULL)
        e->code = ERR_CONFIG_INVALID;
    return err_wrap(e, "%s%s%s[%zu]", where, *where ? "." : "", list, i);
}

static const char *item_at(struct json_object *list, size_t i)
{
    return json_str(json_object_array_get_idx(list, i));
}

static int read_rules(struct json_object *list, const char *where, const char *name,
                      struct egress_rules *ret, struct err *e)
{
    size_t n = list == NULL ? 0 : json_object_array_length(list);
    ret->items = mem_zalloc(n, sizeof(*ret->items));
    for (size_t i = 0; i < n; i++) {
        if (parse_rule(item_at(list, i), &ret->items[i], e) < 0)
            return bad_item(where, name, i, e);
        ret->len++;
    }
    return 0;
}

static int read_methods(struct json_object *list, const char *where, struct strv *ret,
                        struct err *e)
{
    for (size_t i = 0; list != NULL && i < json_object_array_length(list); i++) {
        const char *s = item_at(list, i);
        if (*s == '\0' || strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ-") != strlen(s)) {
            err_set(e, ERR_CONFIG_INVALID, "\"%s\" is not a method in capital letters", s);
            return bad_item(where, "methods", i, e);
        }
        strv_add(ret, s);
    }
    return 0;
}

static int read_ports(struct json_object *list, const char *where, struct egress_policy *ret,
                      struct err *e)
{
    size_t n = list == NULL ? 0 : json_object_array_length(list);
    ret->local_ports = mem_zalloc(n, sizeof(*ret->local_ports));
    for (size_t i = 0; i < n; i++) {
        struct json_object *item = json_object_array_get_idx(list, i);
        int64_t port = json_object_is_type(item, json_type_int) ? json_object_get_int64(item) : 0;
        if (port < 1 || port > UINT16_MAX) {
            err_set(e, ERR_CONFIG_INVALID, "must be a port number from 1 to 65535");
            return bad_item(where, "local_ports", i, e);
        }
        ret->local_ports[ret->n_local_ports++] = (uint16_t)port;
    }
    return 0;
}

static int read_prefixes(struct json_object *list, const char *where, struct egress_policy *ret,
                         struct err *e)
{
    size_t n = list == NULL ? 0 : json_object_array_length(list);
    ret->private = mem_zalloc(n, sizeof(*ret->private));
    for (size_t i = 0; i < n; i++) {
        if (host_parse_prefix(item_at(list, i), &ret->private[i], e) < 0)
            return bad_item(where, "private", i, e);
        ret->n_private++;
    }
    return 0;
}

static int read_sockets(struct json_object *list, const char *where, struct strv *ret,
                        struct err *e)
{
    for (size_t i = 0; list != NULL && i < json_object_array_length(list); i++) {
        const char *s = item_at(list, i);
        if (*s != '/') {
            err_set(e, ERR_CONFIG_INVALID, "\"%s\" is not an absolute path", s);
            return bad_item(where, "unix_sockets", i, e);
        }
        strv_add(ret, s);
    }
    return 0;
}

static int read_upstream(const char *text, const char *where, struct egress_policy *ret,
                         struct err *e)
{
    if (text == NULL)
        return 0;
    if (host_parse_authority(text, strlen(text), 0, &ret->upstream, &ret->upstream_port, e) == 0)
        return 0;
    if (e != NULL)
        e->code = ERR_CONFIG_INVALID;
    return err_wrap(e, "%s%supstream", where, *where ? "." : "");
}

static int read_inject(struct json_object *list, const char *where, struct egress_policy *ret,
                       struct err *e)
{
    autofree char *key = mem_printf("%s%sinject", where, *where ? "." : "");
    return inject_read(list, key, &ret->inject, e);
}

int egress_policy_read(struct json_object *obj, const char *where, struct egress_policy *ret,
                       struct err *e)
{
    struct document d = {0};
    autoegress out = {0};
    if (json_read(obj, where, fields, ARRAY_LEN(fields), &d, ERR_CONFIG_INVALID, e) < 0 ||
        read_rules(d.allow, where, "allow", &out.allow, e) < 0 ||
        read_rules(d.deny, where, "deny", &out.deny, e) < 0 ||
        read_methods(d.methods, where, &out.methods, e) < 0 ||
        read_ports(d.local_ports, where, &out, e) < 0 ||
        read_sockets(d.unix_sockets, where, &out.unix_sockets, e) < 0 ||
        read_prefixes(d.private, where, &out, e) < 0 ||
        read_upstream(d.upstream, where, &out, e) < 0 || read_inject(d.inject, where, &out, e) < 0)
        return -1;
    out.fronting = (enum egress_fronting)d.fronting;
    *ret = out;
    out = (struct egress_policy){0};
    return 0;
}

int egress_policy_parse(const char *text, size_t n, struct egress_policy *ret, struct err *e)
{
    autojson *obj = NULL;
    if (n > EGRESS_POLICY_MAX)
        return err_set(e, ERR_LIMIT_EXCEEDED,
                       "EGRESS_POLICY_MAX: a policy may have at most %u bytes; shorten its lists",
                       EGRESS_POLICY_MAX);
    if (json_parse(text, n, &obj, e) < 0)
        return -1;
    return egress_policy_read(obj, "", ret, e);
}

void egress_policy_schema(struct jsonw *w)
{
    json_schema(w, fields, ARRAY_LEN(fields));
}

static void write_rules(struct jsonw *w, const char *name, const struct egress_rules *r)
{
    static const char *const prefixes[] = {"", "*.", "**.", "*"};
    jsonw_key(w, name);
    jsonw_array(w);
    for (size_t i = 0; i < r->len; i++) {
        const struct egress_rule *rule = &r->items[i];
        bool six = rule->host != NULL && strchr(rule->host, ':') != NULL;
        char port[8] = "";
        if (rule->port != 0)
            snprintf(port, sizeof(port), ":%u", rule->port);
        autofree char *text =
            mem_printf("%s%s%s%s%s", prefixes[rule->kind], six ? "[" : "",
                       rule->host == NULL ? "" : rule->host, six ? "]" : "", port);
        jsonw_str(w, text);
    }
    jsonw_array_end(w);
}

static void write_strv(struct jsonw *w, const char *name, const struct strv *v)
{
    jsonw_key(w, name);
    jsonw_array(w);
    for (size_t i = 0; i < v->len; i++)
        jsonw_str(w, v->items[i]);
    jsonw_array_end(w);
}

static void write_places(struct jsonw *w, const struct egress_policy *p)
{
    jsonw_key(w, "local_ports");
    jsonw_array(w);
    for (size_t i = 0; i < p->n_local_ports; i++)
        jsonw_uint(w, p->local_ports[i]);
    jsonw_array_end(w);
    jsonw_key(w, "private");
    jsonw_array(w);
    for (size_t i = 0; i < p->n_private; i++) {
        struct host h;
        host_of_addr(&p->private[i].addr, &h);
        autofree char *text = mem_printf("%s/%u", h.text, p->private[i].bits);
        jsonw_str(w, text);
    }
    jsonw_array_end(w);
}

static void write_policy(const struct egress_policy *p, bool files, struct jsonw *w)
{
    jsonw_object(w);
    write_rules(w, "allow", &p->allow);
    write_rules(w, "deny", &p->deny);
    write_strv(w, "methods", &p->methods);
    write_strv(w, "unix_sockets", &p->unix_sockets);
    write_places(w, p);
    jsonw_kstr(w, "fronting", fronting_names[p->fronting]);
    if (p->upstream_port != 0) {
        char text[HOST_AUTHORITY_MAX];
        host_format_authority(&p->upstream, p->upstream_port, text);
        jsonw_kstr(w, "upstream", text);
    }
    if (p->inject.len > 0) {
        jsonw_key(w, "inject");
        inject_write(&p->inject, files, w);
    }
    jsonw_object_end(w);
}

void egress_policy_write(const struct egress_policy *p, struct jsonw *w)
{
    write_policy(p, true, w);
}

void egress_policy_show(const struct egress_policy *p, struct jsonw *w)
{
    write_policy(p, false, w);
}

static void dup_rules(const struct egress_rules *from, struct egress_rules *to)
{
    to->items = mem_zalloc(from->len, sizeof(*to->items));
    for (; to->len < from->len; to->len++) {
        to->items[to->len] = from->items[to->len];
        to->items[to->len].host = mem_strdup(from->items[to->len].host);
    }
}

static void dup_strv(const struct strv *from, struct strv *to)
{
    for (size_t i = 0; i < from->len; i++)
        strv_add(to, from->items[i]);
}

void egress_policy_dup(const struct egress_policy *p, struct egress_policy *ret)
{
    struct egress_policy copy = {
        .n_local_ports = p->n_local_ports,
        .n_private = p->n_private,
        .fronting = p->fronting,
        .upstream = p->upstream,
        .upstream_port = p->upstream_port,
    };
    dup_rules(&p->allow, &copy.allow);
    dup_rules(&p->deny, &copy.deny);
    dup_strv(&p->methods, &copy.methods);
    dup_strv(&p->unix_sockets, &copy.unix_sockets);
    inject_dup(&p->inject, &copy.inject);
    copy.local_ports =
        (uint16_t *)(void *)mem_dup(p->local_ports, p->n_local_ports * sizeof(*p->local_ports));
    copy.private =
        (struct net_prefix *)(void *)mem_dup(p->private, p->n_private * sizeof(*p->private));
    *ret = copy;
}

static bool host_matches(const struct egress_rule *r, const struct host *h)
{
    if (r->kind == EGRESS_ANY)
        return true;
    if (r->kind != EGRESS_BELOW && h->len == r->len && memcmp(h->text, r->host, r->len) == 0)
        return true;
    if (r->kind == EGRESS_EXACT || h->kind != HOST_NAME || h->len <= r->len + 1)
        return false;
    size_t at = (size_t)h->len - r->len;
    return h->text[at - 1] == '.' && memcmp(h->text + at, r->host, r->len) == 0;
}

/* The index of the first rule that matches, or -1. An exact rule is preferred, because it grants
 * more than a wildcard. */
static long find_rule(const struct egress_rules *r, const struct host *h, uint16_t port)
{
    long found = -1;
    for (size_t i = 0; i < r->len; i++) {
        const struct egress_rule *rule = &r->items[i];
        if ((rule->port != 0 && rule->port != port) || !host_matches(rule, h))
            continue;
        if (rule->kind == EGRESS_EXACT)
            return (long)i;
        found = found < 0 ? (long)i : found;
    }
    return found;
}

static void decide(struct egress_verdict *ret, enum egress_reason reason, const char *list, long i)
{
    *ret = (struct egress_verdict){.reason = reason, .list = list, .index = (uint32_t)i};
}

static bool is_loopback(const struct host *h)
{
    if (h->kind == HOST_NAME)
        return host_is_localhost(h);
    return host_addr_class(&h->addr) == ADDR_LOOPBACK;
}

static long find_local_port(const struct egress_policy *p, uint16_t port)
{
    for (size_t i = 0; i < p->n_local_ports; i++) {
        if (p->local_ports[i] == port)
            return (long)i;
    }
    return -1;
}

bool egress_is_inside(const struct egress_policy *p, const struct egress_target *t)
{
    if (!is_loopback(&t->host) || find_local_port(p, t->port) >= 0)
        return false;
    long allow = find_rule(&p->allow, &t->host, t->port);
    return allow < 0 || p->allow.items[allow].kind != EGRESS_EXACT;
}

static bool method_allowed(const struct egress_policy *p, const struct egress_target *t)
{
    for (size_t i = 0; i < p->methods.len; i++) {
        const char *m = p->methods.items[i];
        if (strlen(m) == t->method_len && memcmp(m, t->method, t->method_len) == 0)
            return true;
    }
    return p->methods.len == 0;
}

void egress_judge(const struct egress_policy *p, const struct egress_target *t,
                  struct egress_verdict *ret)
{
    long deny = find_rule(&p->deny, &t->host, t->port);
    if (deny >= 0) {
        decide(ret, EGRESS_DENIED, "deny", deny);
        return;
    }
    long allow = find_rule(&p->allow, &t->host, t->port);
    long local = is_loopback(&t->host) ? find_local_port(p, t->port) : -1;
    if (allow < 0 && local < 0) {
        decide(ret, EGRESS_NOT_ALLOWED, NULL, 0);
        return;
    }
    if (!method_allowed(p, t)) {
        decide(ret, EGRESS_METHOD, NULL, 0);
        return;
    }
    if (local >= 0)
        decide(ret, EGRESS_ALLOWED, "local_ports", local);
    else
        decide(ret, EGRESS_ALLOWED, "allow", allow);
    ret->exact = local >= 0 || p->allow.items[allow].kind == EGRESS_EXACT;
}

/* A literal address or the loopback that a rule names exactly is granted with it. */
static bool granted_by_rule(const struct egress_target *t, const struct egress_verdict *first,
                            const struct net_addr *addr)
{
    if (!first->exact)
        return false;
    if (t->host.kind == HOST_NAME)
        return host_is_localhost(&t->host) && host_addr_class(addr) == ADDR_LOOPBACK;
    return memcmp(&t->host.addr, addr, sizeof(*addr)) == 0;
}

/* Where credentials are handed out, a wide prefix is not what somebody meant: only the address. */
static bool grants(const struct net_prefix *p, const struct net_addr *addr, enum addr_class class)
{
    unsigned whole = addr->family == 6 ? 128 : 32;
    return host_prefix_has(p, addr) && (class != ADDR_METADATA || p->bits == whole);
}

void egress_judge_addr(const struct egress_policy *p, const struct egress_target *t,
                       const struct egress_verdict *first, const struct net_addr *addr,
                       struct egress_verdict *ret)
{
    struct host literal;
    host_of_addr(addr, &literal);
    long deny = find_rule(&p->deny, &literal, t->port);
    if (deny >= 0) {
        decide(ret, EGRESS_DENIED, "deny", deny);
        return;
    }
    enum addr_class class = host_addr_class(addr);
    if (class == ADDR_PUBLIC || granted_by_rule(t, first, addr)) {
        *ret = *first;
        return;
    }
    for (size_t i = 0; i < p->n_private; i++) {
        if (grants(&p->private[i], addr, class)) {
            decide(ret, EGRESS_ALLOWED, "private", (long)i);
            return;
        }
    }
    decide(ret, EGRESS_ADDRESS, NULL, 0);
    ret->class = class;
}

void egress_judge_name(const struct egress_policy *p, const struct host *host,
                       struct egress_verdict *ret)
{
    for (size_t i = 0; i < p->deny.len; i++) {
        if (p->deny.items[i].port == 0 && host_matches(&p->deny.items[i], host)) {
            decide(ret, EGRESS_DENIED, "deny", (long)i);
            return;
        }
    }
    for (size_t i = 0; i < p->allow.len; i++) {
        if (host_matches(&p->allow.items[i], host)) {
            decide(ret, EGRESS_ALLOWED, "allow", (long)i);
            return;
        }
    }
    decide(ret, EGRESS_NOT_ALLOWED, NULL, 0);
}

const char *egress_rule_name(const struct egress_verdict *v, char *out)
{
    out[0] = '\0';
    if (v->list != NULL)
        snprintf(out, EGRESS_RULE_NAME_MAX, "%.16s[%u]", v->list, v->index);
    return out;
}

const char *egress_reason_name(enum egress_reason reason)
{
    static const char *const names[] = {
#define EGRESS_REASON_TEXT(name, text, sentence) [EGRESS_##name] = text,
        EGRESS_REASON_TABLE(EGRESS_REASON_TEXT)
#undef EGRESS_REASON_TEXT
    };
    return names[reason];
}

const char *egress_reason_sentence(enum egress_reason reason)
{
    static const char *const sentences[] = {
#define EGRESS_REASON_SAY(name, text, sentence) [EGRESS_##name] = sentence,
        EGRESS_REASON_TABLE(EGRESS_REASON_SAY)
#undef EGRESS_REASON_SAY
    };
    return sentences[reason];
}
