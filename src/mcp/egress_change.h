/* mcp/egress_change: the operator's new egress rules for a workspace, and what is known about them.
 *
 * Theory. Rules come from the operator's side only: over HTTP with the operator's token, or from
 * the configuration file when he says that it be read again. They are checked whole, by the reader
 * that the configuration has; what is refused changes nothing. Then they count for every start, and
 * are brought to what runs (run/rules). Until all that runs has them, and when some of it has not,
 * workspace_info says so (core/facts).
 *
 * Each change is told in the log, with the channel that it came by and how many rules there are,
 * and in the ledger, as an operation of its own kind, with the keys that are others now and how
 * many running commands have it; never with what the operator's files hold.
 *
 * Must not: be reached by a call of a client.
 */
#ifndef CODESPACE_MCP_EGRESS_CHANGE_H
#define CODESPACE_MCP_EGRESS_CHANGE_H

#include "mcp/server.h"

/* A channel of the operator's. */
#define EGRESS_BY_TOKEN "the operator's token"
#define EGRESS_BY_FILE "the configuration file, read again"
#define EGRESS_BY_START "the configuration file, at the start"

/* `outcome` is NULL with a failure: the rules count for starts, and who of what runs has them is
 * not known. */
typedef void (*egress_change_fn)(void *user, const struct run_rules *outcome,
                                 const struct err *failure);

/* Replace the rules by `egress` (as in the configuration) for every start from now on. Errors:
 * CONFIG_INVALID, and nothing has changed. egress_change_bring() is to follow. On the loop. */
int egress_change_take(struct server *s, struct workspace *ws, struct json_object *egress,
                       const char *by, struct err *e);

/* Bring the rules that there are to what runs. `done` may be NULL. The ticket for runner_cancel(),
 * 0 = it was answered already. */
run_ticket egress_change_bring(struct server *s, const struct workspace *ws, const char *by,
                               egress_change_fn done, void *user);

/* Read the configuration file again and take the egress rules of the workspaces that are there:
 * nothing else of it. Everything is checked before anything changes. `r` is the server's registry.
 * The number of workspaces whose rules are others now, or -1 (CONFIG_INVALID). */
int egress_change_reload(struct server *s, struct registry *r, const char *path, struct err *e);

/* What workspace_info says; false when the rules are those of the start. */
bool egress_change_facts(const struct server *s, const char *workspace_id, struct facts_rules *ret);

/* When the runner is gone and the recorder is there: what is on its way is recorded as it is. */
void egress_change_forget(struct server *s);

#endif
