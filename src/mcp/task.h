/* mcp/task: a tool's call that goes on while its client does something else.
 *
 * Theory. A client that asks for it (revision 2025-11-25), or that says that it understands it
 * (2026-07-28, the extension io.modelcontextprotocol/tasks), gets a task instead of waiting: an id,
 * under which state and result are found later, from any connection. The call itself goes the way
 * of every call: a session of our own is handed a tools/call, its peer keeps the answer. A command
 * that is run so waits for its end, however long its client would have waited.
 *
 * That session declares what the client declared, so a call that would ask a person asks here too.
 * The question is kept: the task is input_required until it is answered, by tasks/update (newer) or
 * through tasks/result (older revision). So no approval is lost because a call became a task.
 *
 * Progress. The older revision keeps the token of a call good while its task works: what the call
 * tells goes to whoever waits in tasks/result in the session that made it, else to that session's
 * own stream, marked with the task. The newer one has no progress of tasks, so none is sent there.
 *
 * Tasks belong to the server: whoever knows the id (122 random bits) may ask, if it is the same
 * client where clients are told from each other (OAuth). They live as long as their client wanted
 * (ttl, from the creation), and longer while they work. tasks/list shows a session its own, and a
 * client that is known all of its own. Ending a task ends its command's tree.
 *
 * Must not: run a call twice, or hold more than TASKS_MAX.
 */
#ifndef CODESPACE_MCP_TASK_H
#define CODESPACE_MCP_TASK_H

#include "mcp/session.h"

/* Tasks of a server; ended ones make room, the oldest first. */
#define TASKS_MAX 256u
#define TASK_TTL_DEFAULT_MS 900000u
#define TASK_TTL_MAX_MS 86400000u
/* How often to ask, as clients are told. */
#define TASK_POLL_MS 1000u
/* A call of a modern client that ends within this time is answered, not made a task. */
#define TASK_GRACE_MS 1000u
/* Largest result that is kept. */
#define TASK_RESULT_MAX (16u << 20)
/* Bytes of all results that are kept. Above it those of the task that ended first are dropped, and
 * whoever asks for it then is told so. */
#define TASK_RESULTS_MAX (64u << 20)

/* The one legacy revision that has tasks. */
#define TASK_LEGACY_VERSION "2025-11-25"
#define TASK_EXTENSION "io.modelcontextprotocol/tasks"
#define TASK_RELATED "io.modelcontextprotocol/related-task"

enum task_status {
    TASK_WORKING,
    TASK_INPUT_REQUIRED,
    TASK_COMPLETED,
    TASK_FAILED, /* answered with a JSON-RPC error */
    TASK_CANCELLED
};
const char *task_status_name(enum task_status s);

struct task {
    struct list node; /* in server->tasks, oldest first */
    struct peer peer;
    struct session session;
    struct server *server;
    char *id;
    uint64_t owner; /* serial of the session that made it; its client is `session.principal` */
    bool modern;    /* made in the newer revision */
    bool told;      /* a client knows of it; until then nobody finds it */
    enum task_status status;
    bool handling;    /* its call is being handed in */
    bool over;        /* it has ended, and so has the session */
    bool tool_failed; /* the result is flagged isError */
    bool too_large;   /* the answer was above TASK_RESULT_MAX, and is not kept */
    bool evicted;     /* what it ended with made room for newer ones (TASK_RESULTS_MAX) */
    uint64_t created_ms, updated_ms, ttl_ms;
    uint64_t until_ms;   /* of a clock that nobody sets: kept so long once it is over */
    struct buf answer;   /* the message that the call was answered with */
    struct buf result;   /* its member `result`, JSON text; empty when there was none */
    struct buf failure;  /* its member `error`, of one that failed */
    struct list inputs;  /* struct task_input: questions without an answer */
    struct list waiting; /* struct task_wait */
};

/* A question of the call to the client. */
struct task_input {
    struct list node;
    char *key; /* unique in the task, never used again */
    char *method;
    char *params; /* JSON text */
    bool shown;   /* a client has it before it (tasks/result) */
};

/* Somebody waits for the end. */
struct task_wait {
    struct list node;
    void (*ended)(struct task_wait *w, struct task *t);
    struct request *rq; /* whose session and peer may be told of progress; NULL: none */
    /* A question came up; NULL: it does not matter. */
    void (*asked)(struct task_wait *w, struct task *t);
};

/* Start the tools/call `in` as a task. ttl_ms 0 = the default. NULL with `e`:
 * RESOURCE_QUEUE_FULL, or what the call was refused with before it began (INVALID_PARAMS). */
struct task *task_start(const struct inbound *in, uint64_t ttl_ms, struct err *e);

struct task *task_find(struct server *s, const char *id);
/* The same for a client: NULL too when it is another's, or no client was told of it yet. */
struct task *task_find_for(const struct session *who, const char *id);

/* Free those that ended and whose time is over. */
void task_forget_expired(struct server *s);

/* False, and `w` is not linked, when it has ended already. */
bool task_await(struct task *t, struct task_wait *w);

/* End what works; waiters are told. */
void task_cancel(struct task *t);

/* The first question that no client has before it, or NULL. */
struct task_input *task_unshown(struct task *t);

/* Nobody has it before them any more. */
void task_unshow(struct task *t, const char *key);

/* Take the question of that key out; the task works again when it was the last. NULL: there is
 * none. The caller owns it. */
struct task_input *task_take_input(struct task *t, const char *key);

/* Answer a question that was taken; `result` NULL = the client could not. Frees the question. The
 * task may have ended, and be gone, when this returns. */
void task_answer(struct task *t, struct task_input *question, struct json_object *result);

void task_free(struct task *t);
void task_free_all(struct server *s);

/* The members taskId to pollInterval in the words of the revision: a result that the tool flags
 * isError is a failure for the older one and a completed task for the newer. */
void task_write(struct jsonw *w, const struct task *t, bool modern);

/* The same of the newer revision, and the member that goes with the state: inputRequests, result or
 * error. */
void task_write_detail(struct jsonw *w, const struct task *t);

#endif
