/* wire/inject: credentials of the operator's that the egress proxy adds and no command reads.
 *
 * Theory. A rule says: plain HTTP requests to exactly this host and port get this header, with what
 * a file of the operator's holds. The rule travels with the policy (wire/egress) through every
 * program; the value does not. It is read by the last program of the host's side
 * (sandbox/netinject) right before the proxy starts, and handed to it in memory as a list of its
 * own. So one struct has two lives: with `file` in a policy, with `value` in the proxy.
 *
 * The loopback is refused as a host: what listens there may be a command's own server.
 * Must not: read a file, or put a value into a message.
 */
#ifndef CODESPACE_WIRE_INJECT_H
#define CODESPACE_WIRE_INJECT_H

#include "base/jsonw.h"
#include "wire/host.h"
#include "wire/json.h"

#define INJECT_RULES_MAX 64
#define INJECT_HEADER_MAX 64
/* Bytes of a value: room for a signed token. */
#define INJECT_VALUE_MAX 8192u
/* The whole list of values as text. */
#define INJECT_TEXT_MAX (2u << 20)

struct inject_rule {
    struct host host;
    uint16_t port;
    char *header;
    char *file;  /* absolute; NULL in the proxy */
    char *value; /* NULL in a policy */
};

struct inject_rules {
    struct inject_rule *items;
    size_t len;
};

void inject_fini(struct inject_rules *r);

/* The array of a policy. Errors: CONFIG_INVALID; `where` names the array in them. *ret must be
 * zeroed; on failure it holds what was read before. `list` NULL: none. */
int inject_read(struct json_object *list, const char *where, struct inject_rules *ret,
                struct err *e);

/* A copy of rules. *ret must be zeroed. */
void inject_dup(const struct inject_rules *from, struct inject_rules *ret);

/* The array again. `files` false: what a model may know, hosts and names of headers. */
void inject_write(const struct inject_rules *r, bool files, struct jsonw *w);

/* May n bytes be a header's value? Errors: CONFIG_INVALID with the rule, never with the value. */
int inject_check_value(const char *value, size_t n, struct err *e);

/* One rule with its value for the proxy, into an array; and the whole array there. */
void inject_write_value(const struct inject_rule *r, const char *value, struct jsonw *w);
int inject_read_values(const char *text, size_t n, struct inject_rules *ret, struct err *e);

#endif
