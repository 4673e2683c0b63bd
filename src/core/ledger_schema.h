/* core/ledger_schema: the tables of the ledger, as a list of steps.
 *
 * Theory. PRAGMA user_version counts the steps that were done. A step is SQL that takes the
 * database from one version to the next, is never edited after a release, and runs in one
 * transaction with the new count: a crash leaves the old version or the new one. PRAGMA
 * application_id marks the file as ours.
 */
#ifndef CODESPACE_CORE_LEDGER_SCHEMA_H
#define CODESPACE_CORE_LEDGER_SCHEMA_H

/* "CSLG" */
#define LEDGER_APPLICATION_ID 0x43534c47

/* The newest version: the number of steps. */
int ledger_schema_version(void);

/* The SQL from version - 1 to `version` (1-based). */
const char *ledger_schema_step(int version);

#endif
