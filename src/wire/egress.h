/* wire/egress: where a networked command may go, as data, and the verdict.
 *
 * Theory. The operator writes lists; deny wins; an empty allow list allows nothing. A rule is
 *   host        that host only            *.host   names below it, not itself
 *   **.host     it and names below it     *        anything
 * each with an optional ":port" (none = every port). A verdict has two steps, because a name is not
 * yet a place: egress_judge() before anything is looked up, egress_judge_addr() for the very
 * address that is about to be dialled. The second refuses every address that is not public unless
 *   - `private` names it (addresses or prefixes; a metadata service only by its very address),
 *   - the target is that literal address and an allow rule names it exactly (no wildcard), or
 *   - the target is the loopback (localhost or a loopback address) and its port is in `local_ports`
 *     or an allow rule names the host exactly.
 * `methods` limits plain HTTP; what happens inside a tunnel cannot be seen, so tunnels (CONNECT,
 * SOCKS, carried connections, upgrades) then need "CONNECT" in the list.
 *
 * `unix_sockets` is kept here for the builder of the view; the proxy dials no Unix sockets.
 * Must not: resolve, log, or look at a URL's path.
 */
#ifndef CODESPACE_WIRE_EGRESS_H
#define CODESPACE_WIRE_EGRESS_H

#include "base/buf.h"
#include "base/str.h"
#include "wire/host.h"
#include "wire/inject.h"
#include "wire/json.h"

/* Limits of a policy; a longer list is refused with its name. Each request walks the lists. */
#define EGRESS_RULES_MAX 4096
#define EGRESS_METHODS_MAX 64
#define EGRESS_PORTS_MAX 1024
#define EGRESS_PREFIXES_MAX 1024
#define EGRESS_SOCKETS_MAX 256
/* The whole document. */
#define EGRESS_POLICY_MAX (2u << 20)

enum egress_rule_kind { EGRESS_EXACT, EGRESS_BELOW, EGRESS_TREE, EGRESS_ANY };

struct egress_rule {
    enum egress_rule_kind kind;
    uint16_t port; /* 0 = every port */
    uint16_t len;
    char *host; /* canonical; NULL for EGRESS_ANY */
};

struct egress_rules {
    struct egress_rule *items;
    size_t len;
};

enum egress_fronting { EGRESS_FRONTING_LOG, EGRESS_FRONTING_REFUSE };

struct egress_policy {
    struct egress_rules allow;
    struct egress_rules deny;
    struct strv methods; /* empty = every method */
    uint16_t *local_ports;
    size_t n_local_ports;
    struct strv unix_sockets;
    struct net_prefix *private;
    size_t n_private;
    enum egress_fronting fronting; /* a tunnel's inner name is another one */
    struct host upstream;          /* the operator's own HTTP proxy; upstream_port 0 = none */
    uint16_t upstream_port;
    struct inject_rules inject; /* which credentials are added; never what they are */
};

/* X(name, text, sentence). The text is a public contract: it is the value of x-codespace-verdict
 * and of "reason" in events. */
#define EGRESS_REASON_TABLE(X)                                                                     \
    X(ALLOWED, "allowed", "the destination is allowed")                                            \
    X(NOT_ALLOWED, "not_allowed", "no rule of egress.allow names this destination")                \
    X(DENIED, "denied", "a rule of egress.deny names this destination")                            \
    X(METHOD, "method_not_allowed", "egress.methods does not list this method")                    \
    X(ADDRESS, "address_not_public",                                                               \
      "the destination's address is not a public one and is not granted")                          \
    X(BAD_HOST, "bad_host", "the destination is not a well-formed host")                           \
    X(FRONTING, "name_mismatch", "the name inside the tunnel is not the destination's name")       \
    X(CERTIFICATE, "certificate_refused",                                                          \
      "the server's certificate was not accepted, and nothing was sent to it")

enum egress_reason {
#define EGRESS_REASON_ENUM(name, text, sentence) EGRESS_##name,
    EGRESS_REASON_TABLE(EGRESS_REASON_ENUM)
#undef EGRESS_REASON_ENUM
};

struct egress_target {
    struct host host;
    uint16_t port;
    const char *method; /* "CONNECT" for every kind of tunnel; borrowed */
    size_t method_len;
};

struct egress_verdict {
    enum egress_reason reason;
    enum addr_class class; /* of the refused address, with EGRESS_ADDRESS */
    const char *list;      /* of the rule that decided, "allow" or "deny" say; NULL = no rule did */
    uint32_t index;        /* in that list */
    bool exact;            /* the rule names this very host: its own address is granted */
};

#define autoegress __attribute__((cleanup(egress_policy_fini))) struct egress_policy
void egress_policy_fini(struct egress_policy *p);

/* Read a policy. Errors: CONFIG_INVALID with the member and what is accepted. `where` as in
 * json_read(). *ret must be zeroed. */
int egress_policy_read(struct json_object *obj, const char *where, struct egress_policy *ret,
                       struct err *e);
int egress_policy_parse(const char *text, size_t n, struct egress_policy *ret, struct err *e);

/* The JSON Schema of a policy, from the table that reads it. */
void egress_policy_schema(struct jsonw *w);

/* A copy. *ret must be zeroed. */
void egress_policy_dup(const struct egress_policy *p, struct egress_policy *ret);

/* The same policy as one JSON object, for the next program. */
void egress_policy_write(const struct egress_policy *p, struct jsonw *w);
/* The same for a model: without the names of the operator's files. */
void egress_policy_show(const struct egress_policy *p, struct jsonw *w);

/* May this be looked up and dialled at all? */
void egress_judge(const struct egress_policy *p, const struct egress_target *t,
                  struct egress_verdict *ret);

/* May exactly this address be dialled for it? `first` is the verdict of egress_judge(), allowed. */
void egress_judge_addr(const struct egress_policy *p, const struct egress_target *t,
                       const struct egress_verdict *first, const struct net_addr *addr,
                       struct egress_verdict *ret);

/* A target on the loopback that no rule names: not the host's then, but the client's own. */
bool egress_is_inside(const struct egress_policy *p, const struct egress_target *t);

/* Is there a port on which the host is allowed? For answering names, where no port is known. */
void egress_judge_name(const struct egress_policy *p, const struct host *host,
                       struct egress_verdict *ret);

/* The rule as "allow[3]", or "" when no rule decided; EGRESS_RULE_NAME_MAX bytes at `out`. */
#define EGRESS_RULE_NAME_MAX 32
const char *egress_rule_name(const struct egress_verdict *v, char *out);

const char *egress_reason_name(enum egress_reason reason);
const char *egress_reason_sentence(enum egress_reason reason);

#endif
