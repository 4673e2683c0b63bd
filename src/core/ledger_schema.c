/* core/ledger_schema: see ledger_schema.h. The CHECK constraints repeat the words of the enums in
 * the store headers: a row that our own code could not have written is refused by the database. */
#include "core/ledger_schema.h"

#include "base/mem.h"

/* seq orders operations and is the cursor of pages; retention keeps the newest row, so a number
 * never comes back. One row holds all of an operation but its changes, and there is no index that
 * only a list would use: a command writes two pages at its begin and one at its end. The children
 * of an operation go with it. */
static const char step_operations[] =
    "CREATE TABLE operations("
    " seq INTEGER PRIMARY KEY,"
    " operation_id TEXT NOT NULL UNIQUE,"
    " workspace_id TEXT NOT NULL,"
    " kind TEXT NOT NULL CHECK(kind IN ('patch','command','revert')),"
    " operation_key TEXT,"
    " fingerprint TEXT NOT NULL,"
    " work_id TEXT,"
    " approval_id TEXT,"
    " reverts TEXT,"
    " status TEXT NOT NULL CHECK(status IN ('unknown','running','applied','checked','rejected',"
    "  'failed_rolled_back','failed_partial','ended','lost')),"
    " error_code TEXT NOT NULL DEFAULT '',"
    " reason TEXT NOT NULL DEFAULT '',"
    " recovered INTEGER NOT NULL DEFAULT 0 CHECK(recovered IN (0, 1)),"
    " plan_note TEXT NOT NULL DEFAULT '',"
    " created_ms INTEGER NOT NULL,"
    " planned_ms INTEGER,"
    " finished_ms INTEGER,"
    /* Of a command. */
    " argv_sha256 TEXT,"
    " plan_sha256 TEXT,"
    " process_id TEXT,"
    " termination TEXT,"
    " exit_code INTEGER,"
    " signal INTEGER,"
    " denials TEXT,"
    " started_ms INTEGER,"
    " ended_ms INTEGER,"
    " CHECK(finished_ms IS NOT NULL OR status IN ('unknown','running')),"
    " CHECK((kind = 'revert') = (reverts IS NOT NULL)),"
    " CHECK((kind = 'command') = (argv_sha256 IS NOT NULL))"
    ") STRICT;"
    "CREATE UNIQUE INDEX operations_key ON operations(workspace_id, operation_key)"
    " WHERE operation_key IS NOT NULL;"
    "CREATE INDEX operations_approval ON operations(approval_id) WHERE approval_id IS NOT NULL;"
    "CREATE INDEX operations_reverts ON operations(reverts) WHERE reverts IS NOT NULL;"
    "CREATE TABLE operation_changes("
    " seq INTEGER NOT NULL REFERENCES operations ON DELETE CASCADE,"
    " n INTEGER NOT NULL,"
    " path TEXT NOT NULL,"
    " kind TEXT NOT NULL CHECK(kind IN ('add','update','delete','move')),"
    " before_version TEXT NOT NULL,"
    " after_version TEXT NOT NULL,"
    " fuzzy INTEGER NOT NULL CHECK(fuzzy IN (0, 1)),"
    " PRIMARY KEY(seq, n)"
    ") STRICT, WITHOUT ROWID;"
    "CREATE TABLE operation_inverses("
    " seq INTEGER PRIMARY KEY REFERENCES operations ON DELETE CASCADE,"
    " size INTEGER NOT NULL,"
    " inverse BLOB NOT NULL"
    ") STRICT;"
    "CREATE INDEX operation_inverses_size ON operation_inverses(seq, size);";

/* One active hold per request: the unique index is what makes two identical calls share it. */
static const char step_approvals[] =
    "CREATE TABLE approvals("
    " seq INTEGER PRIMARY KEY AUTOINCREMENT,"
    " approval_id TEXT NOT NULL UNIQUE,"
    " workspace_id TEXT NOT NULL,"
    " tool TEXT NOT NULL CHECK(tool IN ('apply_patch','exec_command')),"
    " fingerprint TEXT NOT NULL,"
    " state TEXT NOT NULL CHECK(state IN ('pending','granted','denied','queued','resuming',"
    "  'consumed')),"
    " arguments TEXT NOT NULL,"
    " resolved_by TEXT NOT NULL DEFAULT '' CHECK(resolved_by IN ('','operator_token',"
    "  'elicitation','command_line','caller')),"
    " result TEXT,"
    " result_is_error INTEGER NOT NULL DEFAULT 0 CHECK(result_is_error IN (0, 1)),"
    " created_ms INTEGER NOT NULL,"
    " resolved_ms INTEGER,"
    " ended_ms INTEGER,"
    " CHECK((state IN ('denied','consumed')) = (ended_ms IS NOT NULL))"
    ") STRICT;"
    "CREATE UNIQUE INDEX approvals_active ON approvals(workspace_id, fingerprint)"
    " WHERE state IN ('pending','granted','queued','resuming');"
    "CREATE INDEX approvals_ended ON approvals(seq) WHERE state IN ('denied','consumed');";

static const char step_works[] =
    "CREATE TABLE works("
    " seq INTEGER PRIMARY KEY AUTOINCREMENT,"
    " work_id TEXT NOT NULL UNIQUE,"
    " workspace_id TEXT NOT NULL,"
    " title TEXT,"
    " state TEXT NOT NULL CHECK(state IN ('active','closing','closed')),"
    " queue_revision INTEGER NOT NULL DEFAULT 0,"
    " created_ms INTEGER NOT NULL,"
    " closed_ms INTEGER,"
    " CHECK((state = 'closed') = (closed_ms IS NOT NULL))"
    ") STRICT;"
    "CREATE INDEX works_workspace ON works(workspace_id, seq);"
    "CREATE INDEX works_open ON works(workspace_id) WHERE state <> 'closed';"
    "CREATE INDEX works_closed ON works(seq) WHERE state = 'closed';"
    "CREATE TABLE intents("
    " seq INTEGER PRIMARY KEY AUTOINCREMENT,"
    " intent_id TEXT NOT NULL UNIQUE,"
    " work_id TEXT REFERENCES works(work_id) ON DELETE CASCADE,"
    " workspace_id TEXT NOT NULL,"
    " position INTEGER NOT NULL,"
    " revision INTEGER NOT NULL DEFAULT 1,"
    " kind TEXT NOT NULL CHECK(kind IN ('follow_up','note','stop_notice')),"
    " delivery TEXT NOT NULL CHECK(delivery IN ('next_checkpoint','after_current_work',"
    "  'next_work')),"
    " body TEXT NOT NULL,"
    " state TEXT NOT NULL CHECK(state IN ('draft','queued','claimed','done','blocked',"
    "  'cancelled')),"
    " created_ms INTEGER NOT NULL,"
    " updated_ms INTEGER NOT NULL,"
    " claimed_ms INTEGER,"
    " delivered_ms INTEGER,"
    " completed_ms INTEGER,"
    " CHECK(work_id IS NOT NULL OR state IN ('draft','queued','cancelled'))"
    ") STRICT;"
    "CREATE INDEX intents_work ON intents(work_id, state, position);"
    "CREATE INDEX intents_unattached ON intents(workspace_id, position) WHERE work_id IS NULL;";

/* A CHECK cannot be changed in place: the table is made anew, as SQLite's lang_altertable.html has
 * it in section 7. Foreign keys are off meanwhile, so the children of the old one stay. */
#define OPERATIONS_1_COLUMNS                                                                       \
    " seq, operation_id, workspace_id, kind, operation_key, fingerprint, work_id, approval_id,"    \
    " reverts, status, error_code, reason, recovered, plan_note, created_ms, planned_ms,"          \
    " finished_ms, argv_sha256, plan_sha256, process_id, termination, exit_code, signal,"          \
    " denials, started_ms, ended_ms"

static const char step_egress[] =
    "CREATE TABLE operations_new("
    " seq INTEGER PRIMARY KEY,"
    " operation_id TEXT NOT NULL UNIQUE,"
    " workspace_id TEXT NOT NULL,"
    " kind TEXT NOT NULL CHECK(kind IN ('patch','command','revert','egress')),"
    " operation_key TEXT,"
    " fingerprint TEXT NOT NULL,"
    " work_id TEXT,"
    " approval_id TEXT,"
    " reverts TEXT,"
    " status TEXT NOT NULL CHECK(status IN ('unknown','running','applied','checked','rejected',"
    "  'failed_rolled_back','failed_partial','ended','lost')),"
    " error_code TEXT NOT NULL DEFAULT '',"
    " reason TEXT NOT NULL DEFAULT '',"
    " recovered INTEGER NOT NULL DEFAULT 0 CHECK(recovered IN (0, 1)),"
    " plan_note TEXT NOT NULL DEFAULT '',"
    " created_ms INTEGER NOT NULL,"
    " planned_ms INTEGER,"
    " finished_ms INTEGER,"
    /* Of a command. */
    " argv_sha256 TEXT,"
    " plan_sha256 TEXT,"
    " process_id TEXT,"
    " termination TEXT,"
    " exit_code INTEGER,"
    " signal INTEGER,"
    " denials TEXT,"
    " started_ms INTEGER,"
    " ended_ms INTEGER,"
    /* Of new rules. */
    " rules TEXT,"
    " CHECK(finished_ms IS NOT NULL OR status IN ('unknown','running')),"
    " CHECK((kind = 'revert') = (reverts IS NOT NULL)),"
    " CHECK((kind = 'command') = (argv_sha256 IS NOT NULL)),"
    " CHECK((kind = 'egress') = (rules IS NOT NULL))"
    ") STRICT;"
    "INSERT INTO operations_new(" OPERATIONS_1_COLUMNS ") SELECT " OPERATIONS_1_COLUMNS
    " FROM operations;"
    "DROP TABLE operations;"
    "ALTER TABLE operations_new RENAME TO operations;"
    "CREATE UNIQUE INDEX operations_key ON operations(workspace_id, operation_key)"
    " WHERE operation_key IS NOT NULL;"
    "CREATE INDEX operations_approval ON operations(approval_id) WHERE approval_id IS NOT NULL;"
    "CREATE INDEX operations_reverts ON operations(reverts) WHERE reverts IS NOT NULL;";

static const char *const steps[] = {step_operations, step_approvals, step_works, step_egress};

int ledger_schema_version(void)
{
    return (int)ARRAY_LEN(steps);
}

const char *ledger_schema_step(int version)
{
    ensure(version >= 1 && version <= ledger_schema_version());
    return steps[version - 1];
}
