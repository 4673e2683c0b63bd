/* core/approvals_sql: what the files of core/approvals share. Included by them only. All in an open
 * transaction.
 */
#ifndef CODESPACE_CORE_APPROVALS_SQL_H
#define CODESPACE_CORE_APPROVALS_SQL_H

#include "core/approvals.h"
#include "core/ledger_sql.h"

/* Errors: APPROVAL_NOT_FOUND. */
int approvals_load(struct ledger *l, const char *id, struct approval *ret, struct err *e);

/* Take one step of the table. Errors: APPROVAL_CONFLICT, with what the state means. */
int approvals_step(struct ledger *l, const struct approval *a, enum approval_event event,
                   struct err *e);

/* Keep the result and overwrite the arguments. */
int approvals_consume(struct ledger *l, const struct approval *a, const char *result, bool is_error,
                      struct err *e);

#endif
