/* mcp/command_record: commands in the ledger, and the operation_key of exec_command.
 *
 * Theory. A command is an operation: it gets an id, and the id of its process, before it starts.
 * Without a key the record is written beside the command (mcp/recorder) and costs it nothing. With
 * a key the ledger is asked first, on the pool: a key that is new is recorded with the process id
 * that the command will have, so a repeated call finds that id, whether the command is about to
 * start, runs or is long gone, and nothing runs twice. The end is seen by a wait of our own at the
 * runner, so it is recorded whoever has hung up.
 *
 * The ledger keeps a hash of argv, never its text.
 * Must not: decide whether a command may run; hold up one without a key.
 */
#ifndef CODESPACE_MCP_COMMAND_RECORD_H
#define CODESPACE_MCP_COMMAND_RECORD_H

#include "mcp/request.h"

struct command_records;
struct command_record;

struct command_records *command_records_new(struct server *s);
/* With a durable worker: the commands whose end the last gateway did not see are asked for. What
 * runs is followed, what has ended is recorded, what the worker does not know is lost; when it
 * cannot be asked the records stay as they are. Blocks on the ledger; before the loop runs. -1 with
 * LEDGER_FAILED. */
int command_records_adopt(struct command_records *c, struct err *e);
/* The runner is gone, the loop is empty: what still ran is recorded as lost with it, unless it
 * outlives us (server.commands_outlive). NULL is fine.
 */
void command_records_free(struct command_records *c);

struct command_claim {
    const struct workspace *ws;
    char *const *argv;         /* NULL-terminated */
    const char *operation_key; /* NULL = none */
    /* The command is to be started, under command_record_process(). Now, or later on the loop. */
    void (*start)(struct request *rq, struct command_record *record);
    /* An earlier call with this key started it (or nobody knows whether it did: then `unknown`
     * says so). */
    void (*known)(struct request *rq, const char *process_id, const char *unknown);
};

/* The way to the start: the key, the approval gate, the record. Exactly one of the two is called,
 * or the request is answered by the gate or with an error: OPERATION_KEY_CONFLICT, what the earlier
 * call was refused with, LEDGER_FAILED. The claim's argv is borrowed until then. */
void command_claim(struct request *rq, const struct command_claim *claim);

/* For mcp/request: the call ends. */
void command_claim_end(struct request *rq);

const char *command_record_process(const struct command_record *r);
const char *command_record_operation(const struct command_record *r);

/* One of these follows `start`, once; the record is not the caller's afterwards. */

/* It runs; its end is waited for. */
void command_record_started(struct command_record *r);
/* It ran, and has ended like this: for a caller who has waited for that. */
void command_record_ended(struct command_record *r, const struct run_status *s);
/* It did not start. */
void command_record_refused(struct command_record *r, const struct err *why);
/* Nobody knows whether it started; `why` is a sentence. */
void command_record_unknown(struct command_record *r, const char *why);

#endif
