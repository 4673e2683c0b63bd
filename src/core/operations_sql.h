/* core/operations_sql: what the files of core/operations_store share. Included by them only. */
#ifndef CODESPACE_CORE_OPERATIONS_SQL_H
#define CODESPACE_CORE_OPERATIONS_SQL_H

#include "core/ledger_sql.h"
#include "core/operations_store.h"

/* In an open transaction: the seq of an operation (0 = none). 0 or -1. */
int opstore_seq(struct ledger *l, const char *operation_id, int64_t *ret, struct err *e);

/* In an open transaction: the whole record. 1: *ret is filled, 0: no such seq, -1. */
int opstore_load(struct ledger *l, int64_t seq, struct op_record *ret, struct err *e);

/* In an open transaction: may `operation_id` be undone? 0 and its seq, or -1 with
 * OPERATION_NOT_FOUND or OPERATION_NOT_REVERTIBLE. */
int opstore_check_revertible(struct ledger *l, const char *workspace_id, const char *operation_id,
                             int64_t *ret_seq, struct err *e);

int opstore_not_found(const char *operation_id, struct err *e);

/* In an open transaction: record an outcome; `recovered` when it was found out after a crash. */
int opstore_settle(struct ledger *l, const char *operation_id, const struct op_outcome *outcome,
                   bool recovered, int64_t *ret_seq, struct err *e);

/* Append an event to a record in memory. */
void op_record_add_event(struct op_record *r, uint64_t at_ms, const char *name, const char *status,
                         const char *reason);

/* Change kinds as they are stored, by enum patch_kind. */
extern const char *const opstore_change_kinds[4];

#endif
