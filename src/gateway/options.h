/* gateway/options: the command line and the environment of codespace-mcp, by table.
 *
 * One row is an option: its name, its variable, its words for --help, and what it sets. A value
 * that is not acceptable is refused with the option's or the variable's name, never replaced by a
 * default. Must not: read a file (but see options_registry), or act.
 */
#ifndef CODESPACE_GATEWAY_OPTIONS_H
#define CODESPACE_GATEWAY_OPTIONS_H

#include "base/buf.h"
#include "base/err.h"
#include "base/log.h"
#include "base/str.h"
#include "core/oauth.h"
#include "core/registry.h"

#include <stdbool.h>
#include <stdint.h>

enum options_runner { OPTIONS_RUNNER_IN_PROCESS, OPTIONS_RUNNER_UDS };

/* How HTTP is served; `on` is false for stdio. */
struct options_http {
    bool on;
    bool flag; /* --http was given, which wins over --transport */
    const char *host;
    uint64_t port;
    char *token;            /* owned; NULL = none */
    const char *token_file; /* read by options_token() */
    char *operator_token;   /* the same of the operator */
    const char *operator_token_file;
    struct strv allow_hosts, allow_origins;
    const char *unix_socket;
    bool activated;
    struct oauth_options oauth; /* borrowed; see options_has_oauth() */
};

enum options_action { OPTIONS_SERVE, OPTIONS_DOCTOR, OPTIONS_VERSION, OPTIONS_HELP };

struct options {
    enum options_action action;
    struct strv workspaces; /* [ID=]DIR */
    const char *config;     /* borrowed; NULL = none */
    bool require_sandbox;
    const char *ledger; /* borrowed; NULL = in memory */
    struct options_http http;
    enum log_level log_level;
    uint64_t timeout_ms;              /* 0 = the runner's default */
    uint64_t max_processes;           /* 0 = the runner's default */
    uint64_t max_workspace_processes; /* 0 = no limit but the runner's */
    enum options_runner runner;
    const char *runtime_bin, *runner_socket, *runner_dir; /* borrowed; NULL = not named */
    const char *runner_durable;                           /* the same */
};

/* Environment first, then the arguments, so that an argument wins. Errors: INVALID_ARGUMENT. */
int options_read(struct options *o, int argc, char *const *argv, struct err *e);
void options_fini(struct options *o);

/* Load everything the options name into an empty registry. Errors: CONFIG_INVALID. */
int options_registry(const struct options *o, struct registry *r, struct err *e);

/* Make http.token and http.operator_token what their files say, when they are named. Errors:
 * CONFIG_INVALID. */
int options_token(struct options *o, struct err *e);

/* The text of --help. */
void options_help(struct buf *out);

#endif
