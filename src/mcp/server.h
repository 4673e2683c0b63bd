/* mcp/server: what all sessions of one gateway share.
 *
 * Theory. The registry, the runner, the facts about this machine, the operations that were run and
 * the lanes that keep patches of one root apart. One loop thread owns it all. The probe of the
 * sandbox runs beside the first messages: `initialize` never waits for it, what speaks about the
 * sandbox does (request_when_probed), so nothing is claimed before it is known.
 *
 * Must not: know a transport, or a tool.
 */
#ifndef CODESPACE_MCP_SERVER_H
#define CODESPACE_MCP_SERVER_H

#include "base/list.h"
#include "core/facts.h"
#include "core/registry.h"
#include "mcp/lane.h"
#include "run/runner.h"
#include "wire/json.h"

#include <uv.h>

/* Storage that a finished answer leaves for the next one; above it goes back to the system, so one
 * large answer does not stay resident. */
#define SERVER_SPARE_MAX 65536u

/* Bytes of the key that seals what a client keeps for us (mcp/inputs). */
#define SERVER_KEY_BYTES 32

struct aside;
struct command_records;
struct journal_roots;
struct ledger;
struct provider;
struct recorder;

struct server {
    uv_loop_t *loop;
    const struct registry *registry;
    const struct provider *provider; /* what is served; the product's unless it is set */
    struct runner *runner;
    struct ledger *ledger;            /* never NULL; its functions block: on the pool only */
    struct journal_roots *journals;   /* of patches; NULL = none, set after server_init() */
    struct recorder *recorder;        /* what the ledger learns later */
    struct aside *aside;              /* for patches */
    struct command_records *commands; /* that run */
    bool commands_outlive;            /* this server: a durable worker has them */
    struct facts facts;               /* `probed` turns true once */
    struct map lanes;                 /* workspace id -> struct lane */
    struct map egress_states;         /* workspace id -> its last change, mcp/egress_change */
    struct list egress_changes;       /* on their way */
    struct map searchers;             /* workspace id -> struct workspace, see server_searcher() */
    struct map slow_searches;         /* workspace id -> not NULL where the last one took long */
    struct list sessions;             /* all there are */
    struct list listeners;            /* mcp/listen */
    uint64_t session_serial;
    struct list tasks;            /* mcp/task */
    struct resource_watch *watch; /* of what is subscribed to; NULL while nothing is */
    unsigned char state_key[SERVER_KEY_BYTES];
    struct list waiting;            /* calls until the probe has answered */
    struct buf tools_list;          /* the answer of tools/list once it is known for good */
    struct buf spare;               /* storage between two calls */
    struct json_parser parser;      /* of the loop's thread */
    struct version_cache *versions; /* of files that were read */
};

/* Everything is borrowed; `limits` are the facts that do not come from the probe. */
void server_init(struct server *s, uv_loop_t *loop, const struct registry *registry,
                 struct runner *runner, struct ledger *ledger, const struct facts *limits);

/* After all sessions are gone, the runner is freed and the loop has run empty. */
void server_fini(struct server *s);

/* Ask the runner once what the sandbox can do here. */
void server_start_probe(struct server *s);

/* The workspace as the search program sees it, for the runner: the same root and the same hidden
 * places, but all of it read-only, without a network, never without the sandbox. So a workspace
 * whose profile runs no commands can be searched, and a start needs no look for what would have to
 * be kept from being written. Lives as long as the server. */
const struct workspace *server_searcher(struct server *s, const struct workspace *ws);

/* The lane of a workspace's root (the registry lets no two workspaces share one). */
struct lane *server_lane(struct server *s, const struct workspace *ws);

#endif
