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
#include "core/operations.h"
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

struct provider;

struct server {
    uv_loop_t *loop;
    const struct registry *registry;
    const struct provider *provider; /* what is served; the product's unless it is set */
    struct runner *runner;
    struct facts facts; /* `probed` turns true once */
    struct operations operations;
    struct map lanes;      /* workspace id -> struct lane */
    struct list sessions;  /* all there are */
    struct list listeners; /* mcp/listen */
    unsigned char state_key[SERVER_KEY_BYTES];
    struct list waiting;            /* calls until the probe has answered */
    struct buf tools_list;          /* the answer of tools/list once it is known for good */
    struct buf spare;               /* storage between two calls */
    struct json_parser parser;      /* of the loop's thread */
    struct version_cache *versions; /* of files that were read */
};

/* Everything is borrowed; `limits` are the facts that do not come from the probe. */
void server_init(struct server *s, uv_loop_t *loop, const struct registry *registry,
                 struct runner *runner, const struct facts *limits);

/* After all sessions are gone, the runner is freed and the loop has run empty. */
void server_fini(struct server *s);

/* Ask the runner once what the sandbox can do here. */
void server_start_probe(struct server *s);

/* The lane of a workspace's root (the registry lets no two workspaces share one). */
struct lane *server_lane(struct server *s, const struct workspace *ws);

#endif
