/* sandbox/netdoor: the one way out of a sandbox whose network is enabled (R17).
 *
 * Theory. At prepare the request's egress policy and the proxy's path go into the plan. At run the
 * proxy is started first, in the host's network; then the helper moves into a network namespace of
 * its own (sandbox/netns), makes the listeners there, as the only one who still may, and hands them
 * over by descriptor (wire/handover). bubblewrap is started inside that namespace. Process 1 holds
 * the other end of the proxy's socket: it lets no command start before the proxy has said that it
 * is ready, hears what it refuses, and ends it by ending. While bubblewrap builds the view the
 * proxy starts beside it, so a command hardly waits for it.
 *
 * A proxy that dies leaves a namespace without a way out; nothing is ever tried without it.
 *
 * Must not: give a command a descriptor of any of this.
 */
#ifndef CODESPACE_SANDBOX_NETDOOR_H
#define CODESPACE_SANDBOX_NETDOOR_H

#include "base/err.h"
#include "wire/denial.h"
#include "wire/helper.h"
#include "wire/plan.h"

#include <stdbool.h>

/* How long the proxy may take to be ready, after the view stands. */
#define NETDOOR_READY_MS 5000

/* At prepare: the proxy's path and the policy into the plan. Errors: SANDBOX_UNAVAILABLE,
 * INVALID_COMMAND. */
int netdoor_plan(const struct helper_request *r, struct plan *p, struct err *e);

struct netdoor {
    int fd;       /* for process 1; -1 = the network is restricted */
    int ca_fd;    /* what commands trust (sandbox/netca), for the view; -1 = nothing of ours */
    int rules_fd; /* by which the proxy takes new rules, borrowed; -1 = it takes none */
    int published[HANDOVER_PUBLISH_MAX];
    uint32_t ports[HANDOVER_PUBLISH_MAX];
    uint32_t n_published;
};

/* At run: start the proxy. Then, when nothing of the host's network is needed any more, enter the
 * command's and hand it over. Both do nothing for a restricted network. Errors:
 * SANDBOX_UNAVAILABLE. */
int netdoor_start(const struct plan *p, struct netdoor *d, struct err *e);
int netdoor_enter(const struct plan *p, struct netdoor *d, struct err *e);
void netdoor_fini(struct netdoor *d);

/* In process 1: wait until the proxy is ready. Errors: SANDBOX_UNAVAILABLE with what it said. */
int netdoor_wait(int fd, struct err *e);

/* In process 1: `fd` is readable; take in one event and count what was refused in `list`
 * (DENIAL_MAX items). False when the proxy has ended. */
bool netdoor_on_event(int fd, struct denial *list);

/* In a zygote: the same, passed on to `n` commands as it is. */
bool netdoor_relay(int fd, const int *to, size_t n);

/* For the probe: is all of this possible here? Tried in a process of its own. */
int netdoor_try(struct err *e);

#endif
