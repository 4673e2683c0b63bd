/* proxy/ask: one question to the name servers in turn, until one gives a usable answer.
 *
 * Each try has a fresh socket, connected to the server, and a fresh random id. A cut answer is
 * asked for again over TCP from the same server. A server that fails (SERVFAIL, REFUSED, nothing in
 * LOOP_LOOKUP) is followed by the next one.
 */
#ifndef CODESPACE_PROXY_ASK_H
#define CODESPACE_PROXY_ASK_H

#include "proxy/resolve.h"

struct ask;
/* May be called before ask_start() returns only by way of the loop: never. */
typedef void (*ask_done)(struct ask *a, enum resolve_result result,
                         const struct dns_answer *answer);

struct ask {
    struct resolver *resolver;
    const struct host *host;
    enum dns_type type;
    ask_done done;
    void *user;
    struct source source;
    struct timer timer;
    struct deferred again; /* a try that failed at once is repeated from the loop */
    unsigned tries;
    uint16_t id;
    bool tcp;
    struct buf message; /* the question, then over TCP the answer */
    bool sent;
};

void ask_init(struct ask *a, struct resolver *r, enum dns_type type, ask_done done, void *user);
/* `host` must outlive the question. */
void ask_start(struct ask *a, const struct host *host);
/* Harmless at any time. */
void ask_stop(struct ask *a);

#endif
