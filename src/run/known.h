/* run/known: what the gateway's side knows of the processes of a worker, for the case that the
 * worker is lost: which there were, and how they ended if that was told in time.
 *
 * Must not: be asked while the worker can be; it knows no output and no state of what runs.
 */
#ifndef CODESPACE_RUN_KNOWN_H
#define CODESPACE_RUN_KNOWN_H

#include "base/list.h"
#include "base/map.h"
#include "run/runner.h"
#include "wire/runmsg.h"

struct known {
    struct list link;
    struct runmsg_status status;
    bool ended;
};

struct known_table {
    struct map by_id;
    struct list live, ended;
    size_t n_ended;
    size_t max_ended;
    uint64_t next_serial;
};

void known_init(struct known_table *t, size_t max_ended);
void known_fini(struct known_table *t);

void known_add(struct known_table *t, const struct run_exec *x);
/* One that a durable worker had before we came: nothing when its id is known. Copies. */
void known_adopt(struct known_table *t, const struct run_status *s);
/* The worker that was thought lost is there: what was lost with it is not. */
void known_forget_lost(struct known_table *t);
void known_drop(struct known_table *t, const char *id);
/* What the worker told of one, running or ended; takes the status. Told again after its end it
 * counts when its sequence is higher: what the command left has ended, too. */
void known_learn(struct known_table *t, struct runmsg_status *status);
/* Those that had not ended are lost, for that reason. */
void known_lose_all(struct known_table *t, const char *why);

struct known *known_get(const struct known_table *t, const char *id);

/* Answer a list from here. Items are fresh (caller frees) and borrow. */
struct run_status *known_list(const struct known_table *t, const struct run_list *x,
                              struct run_listing *ret);

#endif
