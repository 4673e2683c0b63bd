/* mcp/request: one request of a client from its arrival to its answer.
 *
 * Theory. A call is answered exactly once, by request_finish() or request_fail(), which also free
 * it; or it is cancelled, and then nothing is sent. Between the two it may wait for the probe, for
 * the runner (a ticket) or for the thread pool. Whoever ends a call does not need to know whether
 * anybody still waits for it: `session` is NULL when nobody does.
 *
 * A cancelled call ends at once unless it is in the pool; then its state must stay until the
 * thread is through with it, and `after` runs as ever.
 *
 * Must not: be touched after it was answered; be touched by a pool thread other than through
 * request_answer(), request_render() and its own state.
 */
#ifndef CODESPACE_MCP_REQUEST_H
#define CODESPACE_MCP_REQUEST_H

#include "base/jsonw.h"
#include "base/list.h"
#include "mcp/server.h"
#include "wire/rpc.h"

#include <json-c/json_object.h>
#include <stdatomic.h>
#include <uv.h>

struct approval_gate;
struct command_way;
struct inbound;
struct listener;
struct peer;
struct session;
struct ticker;
struct tool;
struct work_hint_state;
struct request;

typedef void (*request_fn)(struct request *rq);

struct request {
    struct list node; /* in the session */
    struct list wait; /* in server->waiting */
    struct server *server;
    struct session *session; /* NULL: cancelled */
    struct peer *peer;       /* where the answer goes */
    bool modern;             /* served statelessly: the result says more about itself */
    bool cached;             /* and how long it may be kept */
    bool changes;            /* which is not at all */
    const struct tool *tool; /* NULL: not a tool's; the answer is the whole result */
    struct rpc_id id;
    struct json_object *message;  /* what the arguments borrow from */
    struct json_object *args;     /* of a tool */
    struct ticker *ticker;        /* mcp/notice */
    struct listener *listener;    /* mcp/listen */
    struct approval_gate *gate;   /* mcp/approval_gate */
    struct command_way *claim;    /* mcp/command_record */
    struct work_hint_state *hint; /* mcp/work_hint */
    bool hinted;                  /* a client's call: the answer may carry a hint */
    bool bare;                    /* the answer is the result itself, though a tool's */
    struct buf out;               /* what is sent, as it is put together */
    size_t body;                  /* where the tool's answer starts in it */
    bool rendered;                /* the message is complete */
    struct jsonw w;
    request_fn resume;
    request_fn work, after;
    uv_work_t job;
    bool in_pool;
    size_t coming;    /* counted in the session */
    atomic_bool stop; /* cancelled; for the thread that works on it */
    void *state;      /* of the tool, zeroed at first: its arguments and what it needs */
};

/* The message is referenced, `tool` may be NULL. The session links it. */
struct request *request_new(const struct inbound *in, const struct tool *tool);

/* params of the request, an object or NULL. */
struct json_object *request_params(const struct request *rq);

/* True when the client gave this argument (a JSON null counts as not given). */
bool request_given(const struct request *rq, const char *argument);

/* Start the answer: an object whose members the caller writes. */
struct jsonw *request_answer(struct request *rq);

/* Put the message together now instead of in request_finish(); for pool threads, so that the
 * escaping of a large answer does not hold the loop. */
void request_render(struct request *rq);

/* Close the object, send it, free the call. */
void request_finish(struct request *rq);

/* The same for an answer that asks the client for input first (mcp/inputs). */
void request_finish_as(struct request *rq, const char *result_type);

/* Answer with a JSON-RPC error; `data` is JSON text or NULL. Frees the request. */
void request_error(struct request *rq, const struct err *e, const struct buf *data);

/* The same as request_answer() and request_finish() for an answer that is JSON text already: one
 * object. */
void request_finish_json(struct request *rq, const struct buf *object);

/* Send `json` (one object) as the whole result, free the request. For those that are no tool's. */
void request_finish_text(struct request *rq, const struct buf *json);

/* Answer with the error as the contract has it: isError, one JSON object {code, message}, and
 * operation_id when it is not NULL. Frees the call. */
void request_fail(struct request *rq, const struct err *e);
void request_fail_operation(struct request *rq, const struct err *e, const char *operation_id);
/* The same with the JSON object written by the caller. */
void request_fail_body(struct request *rq, const struct buf *body);

/* Run `work` on a thread, then `after` on the loop. `coming` is about how large the answer will be
 * (bytes). */
void request_pool(struct request *rq, size_t coming, request_fn work, request_fn after);

/* Run `resume` once it is known what the sandbox can do; at once when it is. */
void request_when_probed(struct request *rq, request_fn resume);
void request_resume(struct request *rq);

/* Nobody waits for the answer any more. */
void request_cancel(struct request *rq);

#endif
