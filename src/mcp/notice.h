/* mcp/notice: what is told to a client while its call runs: progress and log messages.
 *
 * Theory. Both belong to one request and go where its answer will go. Progress exists only for a
 * request that named a token; a log message only for a level that the client asked for (legacy:
 * logging/setLevel, modern: in the request itself). Where nothing can be sent nothing is.
 *
 * Ticks: a call that waits for a process tells from time to time that it still waits, because some
 * clients give a call up after a minute of silence (G3).
 *
 * Must not: be sent after the answer.
 */
#ifndef CODESPACE_MCP_NOTICE_H
#define CODESPACE_MCP_NOTICE_H

#include "base/buf.h"

#include <json-c/json_object.h>
#include <stdbool.h>

struct request;

/* Between two ticks. Well below the ten seconds that the strictest client allows. */
#define NOTICE_TICK_MS 5000u

/* Syslog's levels, the least important first, as the protocol names them. */
enum notice_level {
    NOTICE_DEBUG,
    NOTICE_INFO,
    NOTICE_NOTICE,
    NOTICE_WARNING,
    NOTICE_ERROR,
    NOTICE_CRITICAL,
    NOTICE_ALERT,
    NOTICE_EMERGENCY,
};

/* The level of that name, or -1. NULL is none. */
int notice_level_of(const char *name);

/* The progress token of a request (a string or a whole number), or NULL. */
struct json_object *notice_token(const struct request *rq);

/* notifications/progress; `message` may be NULL. Nothing happens without a token. */
void notice_progress(struct request *rq, double progress, double total, const char *message);

/* notifications/message with a text. */
void notice_log(struct request *rq, enum notice_level level, const char *text);

/* Tick until the request ends, when it has a token. */
void notice_tick(struct request *rq);

/* The request ends. */
void notice_stop(struct request *rq);

#endif
