/* mcp/listen: subscriptions/listen of the modern era, and telling every client what has changed.
 *
 * Theory. A listening request is a call that does not end by itself: it is acknowledged with what
 * will be honoured, then each change it asked for goes to its peer, marked with its id, until the
 * client goes away or cancels. When the server ends it, it gets its result. Legacy clients are told
 * the same changes without having asked, through their session's peer; of a task only the session
 * that made it is told.
 *
 * Must not: tell a client what it did not ask for.
 */
#ifndef CODESPACE_MCP_LISTEN_H
#define CODESPACE_MCP_LISTEN_H

#include "mcp/request.h"

enum listen_topic { LISTEN_TOOLS, LISTEN_PROMPTS, LISTEN_RESOURCES, LISTEN_TOPICS };

/* Resources that one subscription may name. */
#define LISTEN_URIS_MAX 256u
/* Tasks that one subscription may name. */
#define LISTEN_TASKS_MAX 256u

/* The method. */
void listen_run(const struct inbound *in);

/* A list has changed. */
void listen_changed(struct server *server, enum listen_topic topic);

/* The content of a resource has changed. */
void listen_updated(struct server *server, const char *uri);

/* A task has another state. */
struct task;
void listen_task_changed(const struct task *t);

/* Every URI that a listener named; for mcp/resource_watch. */
void listen_each_uri(struct server *server, void (*visit)(const char *uri, void *user), void *user);

/* The request ends; for mcp/request. */
void listen_end(struct request *rq);

/* Give every listener its result: the server ends. */
void listen_finish_all(struct server *server);

#endif
