/* core/policy: who may do what in a workspace. The one place that answers it.
 *
 * Theory. The order of checks is fixed: workspace look-up (registry), profile, environment, then
 * the path. The same workspace record compiles into the view of a sandboxed command and into the
 * verdict for the file tools, so both say the same about one path: ws->hidden is not shown by
 * either, a protected name is not written by either. Network and approvals grant nothing. Pure: no
 * file system access.
 *
 * Must not: look at anything the client claims about itself.
 */
#ifndef CODESPACE_CORE_POLICY_H
#define CODESPACE_CORE_POLICY_H

#include "core/registry.h"
#include "wire/helper.h"

enum policy_action { POLICY_READ, POLICY_WRITE, POLICY_EXEC };

/* What the profile alone grants (permissions.* of workspace_info). */
bool policy_permits(const struct workspace *ws, enum policy_action action);

/* Profile, then environment. Errors: UNAUTHORIZED with the rule and what an operator would
 * change. */
int policy_check(const struct workspace *ws, enum policy_action action, struct err *e);

/* Does the operator want a person asked before each of these ("approvals": "confirm")? Who can hold
 * a call asks this after policy_check() (mcp/approval_gate). */
bool policy_asks(const struct workspace *ws, enum policy_action action);

/* May the file tools write `path` (relative, already normalised by path_normalise)? Not below a
 * hidden path, and neither the protected names directly under the root nor what lies in them.
 * Names are compared as bytes, as the file system does. Errors: PATH_PROTECTED with the rule. */
int policy_check_write_path(const struct workspace *ws, const char *path, struct err *e);

/* May the file tools read, list or enter `path`? Errors: PATH_PROTECTED. A walk asks for each
 * directory and file; without hidden paths the question costs nothing. */
int policy_check_read_path(const struct workspace *ws, const char *path, struct err *e);

/* A variable's name as clients may send it: [A-Za-z_][A-Za-z0-9_]*. What a client sets reaches the
 * command only, never the sandbox around it, so no name is reserved. Errors: INVALID_COMMAND. */
int policy_check_env_name(const char *name, struct err *e);

/* What one command asks for, next to what the workspace says. All borrowed. */
struct policy_command {
    char *const *argv; /* NULL-terminated, argv[0] not empty */
    const char *cwd;   /* relative to the root, normalised; "" or NULL = the root */
    char *const *env;  /* K=V or NULL */
    bool tty;
};

/* Compile into a request for the helper. The caller runs helper_request_fini(). Cannot fail: the
 * registry and the tool's argument checks came before. The environment is what the helper lays over
 * the defaults of wire/view: ours (PWD, TERM=xterm on a terminal, git's safe.directory for the
 * root, since its owner may look like another user inside), then the operator's, then the
 * command's; later wins. */
void policy_compile(const struct workspace *ws, const struct policy_command *command,
                    struct helper_request *ret);

/* The whole environment of a command that runs without the sandbox (R13): the same defaults, but
 * PATH is this program's (the host's own tools are what such a command runs with), and HOME is the
 * workspace's root, because the private home of the sandbox does not exist. Nothing else of this
 * program's environment is passed on. Each name is there once. */
void policy_host_environment(const struct workspace *ws, char *const *env, bool tty,
                             struct strv *ret);

#endif
