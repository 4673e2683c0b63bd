/* core/works_sql: what works.c and intents.c share. Included by them only. All in an open
 * transaction.
 */
#ifndef CODESPACE_CORE_WORKS_SQL_H
#define CODESPACE_CORE_WORKS_SQL_H

#include "core/ledger_sql.h"
#include "core/works.h"

/* Errors: WORK_NOT_FOUND. */
int works_load(struct ledger *l, const char *work_id, struct work *ret, struct err *e);

/* Errors: WORK_NOT_FOUND, WORK_CLOSED. */
int works_load_open(struct ledger *l, const char *work_id, struct work *ret, struct err *e);

/* The queue of a work changed; NULL = an unattached instruction, which is on no queue. */
int works_bump(struct ledger *l, const char *work_id, struct err *e);

/* Deliveries that a work hands out now. ?1 is the work's id; its state decides. A stop notice is
 * claimed from birth and still has to be told once. */
#define WORKS_CLAIMABLE                                                                            \
    "work_id=?1 AND ((kind='stop_notice' AND state='claimed' AND delivered_ms IS NULL)"            \
    " OR (state='queued' AND (delivery='next_checkpoint' OR (delivery='after_current_work'"        \
    " AND (SELECT state FROM works WHERE works.work_id=?1)='closing'))))"

#endif
