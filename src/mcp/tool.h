/* mcp/tool: what a tool is, and the one table of them.
 *
 * Theory. A row says everything about a tool: its words for people and models, its arguments (the
 * same table validates them and is their JSON Schema), what it answers, how careful a client must
 * be, and the functions that do it. tools/list, workspace_info and the dispatch all read the table.
 * To add a tool: write its file, declare its row here, put it into the table in tool.c.
 *
 * Must not: decide who may do what; that is core/policy.
 */
#ifndef CODESPACE_MCP_TOOL_H
#define CODESPACE_MCP_TOOL_H

#include "base/buf.h"
#include "mcp/request.h"
#include "wire/json.h"

/* Hints of the protocol; openWorldHint is false for all: nothing here leaves the machine. */
#define TOOL_READS 1u      /* changes nothing */
#define TOOL_DESTROYS 2u   /* may overwrite or end something */
#define TOOL_IDEMPOTENT 4u /* a second time changes nothing more */
/* Not a hint: the call may wait for a process, so it is given up when the client hangs up. */
#define TOOL_WAITS 8u
/* Not a hint: the tool writes the members of the result itself (content, isError), instead of one
 * object that is shown as structure and as text. */
#define TOOL_CONTENT 16u
/* Not a hint: the call may be made a task (mcp/task). */
#define TOOL_TASKS 32u
/* With it: a modern client that knows tasks is given one without a wait for a quick end. */
#define TOOL_TASKS_AT_ONCE 64u
/* With it: the call is served as a task only. */
#define TOOL_TASKS_ONLY 128u

enum output_kind {
    OUTPUT_STR,
    OUTPUT_STR_OR_NULL,
    OUTPUT_INT,
    OUTPUT_BOOL,
    OUTPUT_STRS, /* array of strings */
    OUTPUT_OBJ,
    OUTPUT_OBJS, /* array of objects */
};

struct output_field {
    const char *name;
    enum output_kind kind;
    bool always; /* in every answer */
    const char *about;
};

struct tool {
    const char *name;
    const char *title;
    const char *description;
    /* Appends what depends on this machine; NULL when nothing does. */
    void (*describe)(const struct server *s, struct buf *out);
    unsigned hints;
    const struct json_field *in;
    size_t n_in;
    const char *schema; /* JSON text of the input schema; NULL: made from `in`, which checks */
    const struct output_field *out;
    size_t n_out;
    size_t state_size; /* of the struct that `in` fills, and more */
    void (*run)(
        struct request *rq); /* arguments are read; must end in request_finish/request_fail */
    void (*cancel)(struct request *rq); /* stop what the state waits for; NULL: nothing to stop */
    void (*fini)(struct request *rq);   /* free what the state owns; NULL: nothing */
};

/* Arguments that older clients send. They never decide anything. */
#define TOOL_IGNORED_FIELDS                                                                        \
    {"approved", JSON_BOOL, JSON_IGNORED}, {"user_id", JSON_STR, JSON_IGNORED},                    \
        {"network", JSON_STR, JSON_IGNORED},                                                       \
    {                                                                                              \
        "work_id", JSON_STR, JSON_IGNORED                                                          \
    }

extern const struct tool tool_workspace_info;
extern const struct tool tool_read;
extern const struct tool tool_find;
extern const struct tool tool_search;
extern const struct tool tool_apply_patch;
extern const struct tool tool_operation_status;
extern const struct tool tool_list_operations;
extern const struct tool tool_revert_operation;
extern const struct tool tool_exec_command;
extern const struct tool tool_write_stdin;
extern const struct tool tool_read_process;
extern const struct tool tool_process_status;
extern const struct tool tool_process_resize;
extern const struct tool tool_terminate_process;
extern const struct tool tool_signal_process;
extern const struct tool tool_list_processes;
extern const struct tool tool_approval_create;
extern const struct tool tool_approval_resolve;
extern const struct tool tool_operation_resume;
extern const struct tool tool_work_open;
extern const struct tool tool_steer_status;
extern const struct tool tool_steer_claim_next;
extern const struct tool tool_steer_complete;
extern const struct tool tool_work_finish;

/* All tools in the order of tools/list, NULL-terminated. */
extern const struct tool *const tools[];

/* The tool of that name in such a table, or NULL. */
const struct tool *tool_by_name(const struct tool *const *table, const char *name);

/* Append the member "tools" of tools/list: an array. */
void tool_write_list(const struct server *s, struct jsonw *w);

/* The method tools/call: check the arguments and run. */
void tool_call(const struct inbound *in);

#endif
