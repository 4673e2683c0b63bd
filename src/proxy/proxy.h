/* proxy/proxy: the one object of the program: loop, policy, tables, connections.
 *
 * It lives in main's static storage and is handed down; nothing else is global.
 */
#ifndef CODESPACE_PROXY_PROXY_H
#define CODESPACE_PROXY_PROXY_H

#include "proxy/end.h"
#include "proxy/flow.h"
#include "proxy/inside.h"
#include "proxy/resolve.h"
#include "proxy/standin.h"
#include "proxy/status.h"
#include "wire/egress.h"

/* Connections from inside at one time, two descriptors each; lower when the process may not have
 * that many descriptors. Beyond it a client is told and closed. */
#define PROXY_CONNECTIONS_MAX 10000
/* Descriptors for everything else: listeners, pipes, look-ups. */
#define PROXY_SPARE_DESCRIPTORS (64 + 2 * FLOW_PIPES_MAX + 2 * RESOLVE_LOOKUPS_MAX)

struct proxy {
    struct loop loop;
    struct egress_policy policy;
    struct inject_rules credentials; /* with their values; those of the start */
    struct tls *tls;                 /* NULL: nothing is intercepted */
    struct deferred trusting;        /* goes on with tls_trust_some() */
    uint64_t generation;             /* of the policy; the first is 1 */
    struct status status;
    struct resolver resolver;
    struct standins standins;
    struct inside inside;
    struct flow_pool pipes;
    struct list conns;
    unsigned n_conns;
    unsigned n_intercepted;
    unsigned conns_max;
    bool at_limit; /* told once each time the limit is reached */
    bool holds;    /* whoever hears of a refusal looks whose it is: give it LOOP_HOLD */
    int rules_fd;  /* the packet filter inside (sys/netrules); -1 = none */
    char client_block[END_BLOCK];
    char server_block[END_BLOCK];
};

#endif
