/* mcp/task_methods: tasks/get, tasks/result, tasks/list, tasks/cancel and tasks/update, and which
 * calls of a tool become a task.
 *
 * The two revisions differ: 2025-11-25 has the client ask for a task (`task` in tools/call), a
 * blocking tasks/result and tasks/list; 2026-07-28 has the server decide, for clients that declared
 * the extension, and gives the result with tasks/get. A command is made a task there when its
 * client would wait for it (wait_ms) and it is not over soon. Where there is no room for a task, a
 * call that need not be one goes on as if its client had not declared the extension.
 *
 * A tool may ask first and become a task then (tasks_escalate); inside a task it sees
 * session->patient.
 *
 * Must not: make a task of a tool that does not say TOOL_TASKS.
 */
#ifndef CODESPACE_MCP_TASK_METHODS_H
#define CODESPACE_MCP_TASK_METHODS_H

#include "mcp/session.h"

void tasks_get_run(const struct inbound *in);
void tasks_result_run(const struct inbound *in);
void tasks_list_run(const struct inbound *in);
void tasks_cancel_run(const struct inbound *in);
void tasks_update_run(const struct inbound *in);

/* For tools/call, before it does anything. True: the call is answered, or will be. */
bool tasks_take_call(const struct inbound *in, const struct tool *tool);

/* Answer a modern call of a client that declared the extension with a task that makes it again,
 * with the same answers to questions. Frees the request. */
void tasks_escalate(struct request *rq);

/* True: the modern client did not declare the extension, and was told so. */
bool tasks_refuse_undeclared(const struct inbound *in);

#endif
