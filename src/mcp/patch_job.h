/* mcp/patch_job: one patch or revert from its turn in the lane to its record in the ledger.
 *
 * Theory. Runs on a pool thread while its request holds the lane of the root. The order is: is the
 * key known (then nothing runs); plan in memory; record the plan with its inverse in the ledger;
 * write, with the root's journal; record the outcome. So a crash at any point leaves a record that
 * the next start can judge by the disk, and what was refused before anything was written is
 * recorded as that. The plan of a durable patch, or of one with many files, is recorded while the
 * new files are made and go to the disk (mcp/aside): the renames wait for both. What went as
 * planned is recorded after the caller has its answer (mcp/patch_record), and where the ledger
 * goes with the process a small plan is recorded with it.
 *
 * Must not: touch the session or the loop.
 */
#ifndef CODESPACE_MCP_PATCH_JOB_H
#define CODESPACE_MCP_PATCH_JOB_H

#include "base/jsonw.h"
#include "core/journal_roots.h"
#include "core/operations_store.h"

/* Bytes of a diff that check_only answers with. */
#define PATCH_DIFF_SHOWN_MAX 262144u

struct aside;
struct recorder;

struct patch_job {
    /* Filled by the caller, borrowed; journal, hooks and want_* of the request are filled here. */
    struct ledger *ledger;
    struct journal_roots *journals; /* NULL = none */
    const struct workspace *ws;
    struct recorder *recorder;
    struct aside *aside; /* NULL = the plan is recorded before the files are made */
    struct patch_request request;
    struct op_request op;
    /* Called when the key is not known and nothing was looked at yet; may refuse (e). NULL = none.
     */
    int (*load)(struct patch_job *j);
    /* Say more in e about a refusal. NULL = nothing to say. */
    void (*explain)(struct patch_job *j);
    /* What came of it. */
    int status;              /* 1: `record` is what the key did before; 0: see result; -1: see e */
    struct op_record record; /* operation_id NULL = nothing was recorded */
    struct patch_result result;
    struct err e;
    struct err ledger_e; /* code set: the outcome could not be recorded */
    char *waiting_id; /* the plan is recorded with the outcome, under this id; NULL = it is not */
    bool planning;    /* beside us, between `planned` and `staged` */
    const struct patch_result *plan;
    int plan_status;
    struct err plan_e;
};

void patch_job_fini(struct patch_job *j);

/* Only look whether the key is known: 1, 0, or -1 (status is set, too). */
int patch_job_peek(struct patch_job *j);

void patch_job_run(struct patch_job *j);

/* The members of the answer; not for status -1. */
void patch_job_write(const struct patch_job *j, struct jsonw *w);

#endif
