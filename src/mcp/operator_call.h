/* mcp/operator_call: one request of the operator, from its arrival to its answer.
 *
 * Theory. A route (mcp/http_operator has the table of them) says what a request may carry and who
 * works on it. `work` runs on the pool, since the ledger blocks, or at once where it asks no
 * ledger; what it writes is the answer. A route whose answer needs the runner too has `then`: it
 * runs on the loop after `work`, asks, and ends the call itself, or gives the pool one more step. A
 * call runs to its end though its client has gone, since it may have been told so already.
 *
 * Must not: be answered twice, or touch its connection from the pool.
 */
#ifndef CODESPACE_MCP_OPERATOR_CALL_H
#define CODESPACE_MCP_OPERATOR_CALL_H

#include "base/jsonw.h"
#include "mcp/http.h"
#include "mcp/operator_query.h"

/* An id is ours and short; one that is longer is none. */
#define OPERATOR_ID_MAX 128u
/* Calls that are being worked on. */
#define HTTP_OPERATOR_CALLS_MAX 64u

struct ledger;

/* 0: `out` is the answer. -1: `e` is filled. */
typedef int (*operator_fn)(struct http_operator_call *x);

struct operator_route {
    const char *method;
    const char *path; /* '*' stands for one id */
    const struct json_field *in;
    size_t n_in;
    operator_fn work;
    int status;                                 /* of success */
    bool here;                                  /* `work` asks no ledger: it runs on the loop */
    void (*then)(struct http_operator_call *x); /* NULL: what `work` wrote is the answer */
};

struct http_operator_call {
    struct list node;
    struct http_conn *conn; /* NULL: the client has gone */
    struct http_server *http;
    struct ledger *ledger;
    const struct operator_route *route;
    char id[OPERATOR_ID_MAX + 1]; /* of the path */
    struct operator_query query;
    struct operator_body body;
    uv_work_t job;
    operator_fn step; /* what the pool does */
    run_ticket ticket;
    char *workspace_id; /* whose processes are asked for */
    uint64_t after;     /* the last of them that was seen */
    unsigned killed;
    struct buf out;
    struct jsonw w;
    char *link; /* a header line, or NULL */
    int status; /* of the last step */
    struct err e;
};

/* Begin a request of that route; `query` is what stands behind '?'. */
void operator_call_start(struct http_conn *c, const struct operator_route *route, const char *id,
                         const char *query, size_t query_len, const char *body, size_t n);

/* Send what there is: the answer, or `e` when `status` is below 0. Frees the call. */
void operator_call_answer(struct http_operator_call *x);

/* One more step on the pool; it is answered after it. */
void operator_call_step(struct http_operator_call *x, operator_fn step);

/* The workspace that the query names; NULL = all. */
const char *operator_call_workspace(const struct http_operator_call *x);

/* The header that leads to the next page, which `name`=`value` begins. */
void operator_call_link(struct http_operator_call *x, const char *path, const char *name,
                        uint64_t value, uint64_t limit);

/* A failure as the answer, {code, message}; `more` are header lines or "". */
void operator_say(struct http_conn *c, int status, const char *more, enum err_code code,
                  const char *text);

/* Its connection has closed. */
void operator_call_lost(struct http_operator_call *x);

/* The server ends: give up what waits for the runner. */
void operator_call_drop_all(struct http_server *h);

#endif
