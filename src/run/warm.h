/* run/warm: the sandboxes that stay, one for each workspace, and handing commands to them.
 *
 * Theory. The first command of a workspace starts cold; meanwhile its zygote is made (wire/warm,
 * sandbox/zygote). Later ones are handed to it, if it still is what a cold start would build: the
 * same request but for the command, and the same places on the host (a print of what the view is
 * built from is compared each time; the zygote's child compares the rest). If anything differs, the
 * zygote is given up and made again, and the command starts cold; but new egress rules are brought
 * to one that runs (run/rules). Commands that run in a zygote
 * that was given up go on; it ends after the last one.
 *
 * Nothing here makes a command fail: whatever is wrong, the answer is "start it cold".
 *
 * Must not: hand a command over twice, or read what the view hides.
 */
#ifndef CODESPACE_RUN_WARM_H
#define CODESPACE_RUN_WARM_H

#include "core/registry.h"
#include "run/ends.h"
#include "run/managed.h"
#include "wire/helper.h"
#include "wire/warm.h"

/* A zygote that got no command for so long ends. */
#define WARM_IDLE_MS 300000u
/* With credentials (egress.inject): their values are those of its start, so one that is older takes
 * no more commands and another one is made. CODESPACE_WARM_CREDENTIALS_SECS (0 to this) makes it
 * sooner. */
#define WARM_CREDENTIALS_MS 600000u
/* After one could not be made, or broke: no other one for so long. */
#define WARM_RETRY_MS 30000u
/* Zygotes of a runner at once; other workspaces start cold. */
#define WARM_MAX 16u

struct warm;

struct warm *warm_new(struct home *home);
/* All zygotes and what runs in them end. NULL is fine. */
void warm_free(struct warm *w);

/* Is one of this workspace being made? It is ready, or given up, within MANAGED_START_MS and the
 * time that a plan takes. */
bool warm_is_coming(const struct warm *w, const char *workspace_id);

/* Would warm_send() have somewhere to send this? When not, see to it that a later one has. */
bool warm_ready(struct warm *w, const struct workspace *ws, const struct helper_request *r);

/* Hand it over, right after warm_ready() said so; the descriptors stay the caller's. What its
 * process 1 guards is added to ret_guards. False: nothing was handed over. */
bool warm_send(struct warm *w, const struct workspace *ws, const struct helper_request *r,
               const int fds[WARM_FDS], struct strv *ret_guards);

/* Pipes and a control socket for a command, if there are some: false when not. */
bool warm_take_ends(struct warm *w, struct ends *ret);
/* See to it that there are for the next one. What cannot be made now is made when it is needed. */
void warm_make_ends(struct warm *w);

/* Which zygote warm_send() has just handed a command to; 0 = none. */
uint64_t warm_serial(const struct warm *w, const char *workspace_id);

/* The way to the egress proxy of each zygote of a workspace, those included that take no commands
 * any more and have some. One that refuses new rules takes no more. */
void warm_each_rules(struct warm *w, const char *workspace_id,
                     void (*one)(void *user, struct rules *rules, uint64_t serial), void *user);

/* It did not take a command, or died: make another one. */
void warm_give_up(struct warm *w, const struct workspace *ws);

/* Is there one that takes commands? */
bool warm_is_on(const struct warm *w, const char *workspace_id);

#endif
