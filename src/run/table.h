/* run/table: which processes a runner knows, by id: the live, the ended, the evicted.
 *
 * Theory. A live process has a slot (a limit counts them). An ended one stays readable for
 * RUN_RETAIN_MS and as one of the newest RUN_RETAIN_MAX; then its record goes, and only its id is
 * remembered for a while, so that "it has ended and was dropped" differs from "there never was
 * one" (L52). Must not: keep anything that grows with the number of commands ever run.
 */
#ifndef CODESPACE_RUN_TABLE_H
#define CODESPACE_RUN_TABLE_H

#include "base/err.h"
#include "base/list.h"
#include "base/map.h"
#include "run/runner.h"
#include "run/watch.h"

struct managed;

/* Ids of dropped records that are still told apart from invented ones. */
#define TABLE_EVICTED_MAX 1024u

struct table {
    struct list live, ended; /* ended: oldest first */
    size_t n_live, n_ended;
    size_t n_own; /* of the ended: the gateway's, see RUN_OWN_PREFIX */
    size_t max_live;
    struct map by_id;
    struct map evicted;                   /* of ids, value not NULL */
    char *evicted_ids[TABLE_EVICTED_MAX]; /* a ring in order of eviction; owned */
    size_t evicted_at;
    struct alarm alarm; /* for the oldest ended one */
};

void table_init(struct table *t, uv_loop_t *loop, struct anchor *anchor, size_t max_live);
/* Free all records (killing what is alive). */
void table_fini(struct table *t);

/* Is there a slot? Errors: PROCESS_LIMIT. */
int table_check_room(const struct table *t, struct err *e);
/* The same for one workspace. Errors: WORKSPACE_PROCESS_LIMIT. */
int table_check_workspace(const struct table *t, const char *workspace_id, uint64_t max,
                          struct err *e);
void table_add(struct table *t, struct managed *m);
/* It never ran: take it out and free it. */
void table_drop(struct table *t, struct managed *m);
/* It has ended: keep it by the rule. */
void table_retire(struct table *t, struct managed *m);

/* Is it one of the gateway's own? */
bool table_is_own(const struct managed *m);
/* It has ended and nobody will ask for it again: drop it. */
void table_forget(struct table *t, struct managed *m);

/* The process, or NULL with PROCESS_NOT_FOUND. */
struct managed *table_get(const struct table *t, const char *id, struct err *e);

/* A page of the list, by serial. Items are fresh (caller frees) and borrow from the records. */
struct run_status *table_list(const struct table *t, const struct run_list *x,
                              struct run_listing *ret);

#endif
