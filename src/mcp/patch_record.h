/* mcp/patch_record: what the ledger learns of a patch that went as planned, after the answer.
 *
 * Theory. Its outcome is true on the disk already. Its plan was recorded before the first file
 * changed, so that a crash leaves something to judge the disk by; but a ledger in memory is gone
 * with the process, so there the plan of a small patch that nobody can ask for yet (no key, no
 * approval) may wait, too, and both are one transaction that no caller waits for.
 *
 * Must not: hold more than PATCH_RECORDS_MAX plans of PATCH_RECORD_MAX bytes.
 */
#ifndef CODESPACE_MCP_PATCH_RECORD_H
#define CODESPACE_MCP_PATCH_RECORD_H

#include "core/operations_store.h"

/* Bytes of an inverse and changes of a plan that waits, and how many records may wait then. */
#define PATCH_RECORD_MAX 16384u
#define PATCH_RECORD_CHANGES_MAX 16u
#define PATCH_RECORDS_MAX 256u

struct recorder;

/* May the plan of this patch wait until it was carried out? */
bool patch_record_may_wait(const struct ledger *l, struct recorder *recorder,
                           const struct op_request *op, const struct patch_result *plan);

/* Have it recorded that the patch was applied. op: also the plan, which waited; NULL = that is in
 * the ledger. Takes the inverse (with op) and what lingers from the result. Any thread. */
void patch_record_applied(struct recorder *recorder, const char *operation_id,
                          const struct op_request *op, struct patch_result *result);

#endif
