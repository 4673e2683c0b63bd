/* wire/inject: credentials of the operator's that the egress proxy adds and no command reads.
 *
 * Theory. A rule says: HTTP requests to exactly this host and port get this header, with what a
 * file of the operator's holds or a command of his prints. The rule travels with the policy
 * (wire/egress) through every program; the value does not. It is read by the last program of the
 * host's side (sandbox/netinject) right before the proxy starts, and handed to it in memory as a
 * list of its own. So one struct has two lives: with `file` or `command` in a policy, with `value`
 * in the proxy.
 *
 * A rule is for plain HTTP, or, with "tls": "intercept", for HTTPS: then the proxy ends the
 * client's TLS for this host and port, and for no other (proxy/intercept).
 *
 * The loopback is refused as a host: what listens there may be a command's own server. So is an
 * address for interception: its certificates are made for a name.
 * Must not: read a file, run a program, or put a value into a message.
 */
#ifndef CODESPACE_WIRE_INJECT_H
#define CODESPACE_WIRE_INJECT_H

#include "base/jsonw.h"
#include "base/str.h"
#include "wire/host.h"
#include "wire/json.h"

#define INJECT_RULES_MAX 64
#define INJECT_HEADER_MAX 64
/* Words of a command, and bytes of one. */
#define INJECT_COMMAND_WORDS_MAX 64
#define INJECT_COMMAND_WORD_MAX 4096
/* Bytes of a value: room for a signed token. */
#define INJECT_VALUE_MAX 8192u
/* The whole list of values as text. */
#define INJECT_TEXT_MAX (2u << 20)

struct inject_rule {
    struct host host;
    uint16_t port;
    bool intercept; /* requests in HTTPS, which the proxy ends; else plain HTTP */
    char *header;
    char *file;          /* absolute; or NULL */
    struct strv command; /* argv, the program absolute; or empty. Of both the proxy has none */
    char *value;         /* NULL in a policy */
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

/* Is TLS to this place ended by the proxy? inject_has_intercept(): to any place? */
bool inject_intercepts(const struct inject_rules *r, const struct host *host, uint16_t port);
bool inject_has_intercept(const struct inject_rules *r);

/* The places whose TLS is ended, each once, as an array of host:port. */
void inject_write_intercepted(const struct inject_rules *r, struct jsonw *w);

/* The array again. `files` false: what a model may know, hosts and names of headers. */
void inject_write(const struct inject_rules *r, bool files, struct jsonw *w);

/* May n bytes be a header's value? Errors: CONFIG_INVALID with the rule, never with the value. */
int inject_check_value(const char *value, size_t n, struct err *e);

/* One rule with its value for the proxy, into an array; and the whole array there. */
void inject_write_value(const struct inject_rule *r, const char *value, struct jsonw *w);
int inject_read_values(const char *text, size_t n, struct inject_rules *ret, struct err *e);

#endif
