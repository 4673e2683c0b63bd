/* proxy/status: what the proxy tells the program that started it, one JSON object a line.
 *
 *   {"event":"ready","filter":true}
 *   {"event":"refused","via":"http|connect|socks|transparent|dns","host":H,"port":N,"method":M,
 *    "reason":R,"rule":"deny[0]","class":"private","client":P}    the last three only when known
 *   {"event":"refused","via":"udp","host":H,"port":N,"method":"UDP","reason":"udp","client":P}
 *   {"event":"name_mismatch","via":...,"host":H,"port":N,"method":M,"layer":"tls|http","named":S,
 *    "refused":false}                        S is the name inside the tunnel, "" when there is none
 *   {"event":"policy","generation":N}       a new policy is in force
 *   {"event":"policy_refused","message":M}  it was not acceptable; the old one stays
 *   {"event":"limit","name":"PROXY_CONNECTIONS_MAX","value":N}
 *   {"event":"dropped","count":N}           events that did not fit while nobody read
 *
 * Must not: carry paths, queries, headers or credentials, or wait for the reader.
 */
#ifndef CODESPACE_PROXY_STATUS_H
#define CODESPACE_PROXY_STATUS_H

#include "base/buf.h"
#include "base/jsonw.h"
#include "wire/egress.h"

struct status {
    int fd;
    uint64_t dropped;
    uint16_t client; /* the port inside that what is told next came from; 0 = not known */
    struct buf line;
};

void status_init(struct status *s, int fd);

void status_ready(struct status *s, bool filter);
void status_refused(struct status *s, const char *via, const struct egress_target *t,
                    const struct egress_verdict *v);
/* A datagram that no socket inside takes. */
void status_udp(struct status *s, const char *host, uint16_t port);
/* A host that is none: `text` is shown as far as it is printable. */
void status_bad_host(struct status *s, const char *via, const char *text, size_t n);
void status_fronting(struct status *s, const char *via, const struct egress_target *t,
                     const char *layer, const char *named, bool refused);
/* `other_fd` gets it too (-1 = nobody): whoever asked for it. */
void status_policy(struct status *s, uint64_t generation, int other_fd);
void status_policy_refused(struct status *s, const char *message, int other_fd);
void status_limit(struct status *s, const char *name, uint64_t value);

#endif
