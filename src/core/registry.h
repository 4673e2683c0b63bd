/* core/registry: the workspaces an operator registered, checked once at start.
 *
 * Theory. A workspace is a root directory with an id and a policy; nothing a client says adds or
 * changes one. Every mistake is refused at load with the file, the key path and the reason: a
 * missing root, two workspaces on one directory (compared by device and inode), an unknown key, a
 * wrong value. The root is opened here and held as a descriptor, so no later step trusts the path
 * again. Read-only after load, so any thread may use it; only
 * `egress` may be replaced by the operator (core/registry_egress), and only the loop reads it.
 *
 * Must not: reload, or fall back to a default when the operator wrote something else.
 */
#ifndef CODESPACE_CORE_REGISTRY_H
#define CODESPACE_CORE_REGISTRY_H

#include "base/err.h"
#include "base/map.h"
#include "base/str.h"
#include "wire/glob.h"
#include "wire/helper.h"
#include "wire/view.h"

#include <stdbool.h>
#include <sys/types.h>

/* An id is what clients type: 1..64 of A-Z a-z 0-9 . _ - and not starting with a dot or dash. */
#define REGISTRY_ID_MAX 64
#define REGISTRY_WORKSPACES_MAX 1024
/* A configuration file larger than this is a mistake. */
#define REGISTRY_FILE_MAX (1u << 20)
/* Variables of one workspace, and bytes of one value (the kernel refuses strings over 128 KiB). */
#define REGISTRY_ENV_MAX 256
#define REGISTRY_ENV_VALUE_MAX 32768

/* Together with those of wire/view at most VIEW_PROTECT_MAX. */
#define REGISTRY_PROTECT_MAX (VIEW_PROTECT_MAX - 4)

enum profile { PROFILE_READ_ONLY, PROFILE_WORKSPACE_WRITE };
enum network_policy { NETWORK_RESTRICTED, NETWORK_ENABLED };
enum environment_kind { ENVIRONMENT_HOST, ENVIRONMENT_LINUX_CONTAINER };
enum approvals { APPROVALS_OFF, APPROVALS_CONFIRM };
/* Whose loopback a command has: that of its workspace's commands, as far as they start warm, or one
 * of its own. */
enum network_scope { NETWORK_SCOPE_WORKSPACE, NETWORK_SCOPE_COMMAND };
enum sandbox_demand { SANDBOX_PREFERRED, SANDBOX_REQUIRED };

struct workspace {
    char *id;
    char *root;  /* canonical absolute path at load time, for people and for the sandbox */
    int root_fd; /* O_PATH|O_DIRECTORY: what the file tools work from */
    dev_t dev;
    ino_t ino;
    enum profile profile;
    enum network_policy network;
    enum network_scope network_scope;
    enum environment_kind environment;
    enum approvals approvals;
    enum sandbox_demand sandbox;
    enum view_read read;
    struct view_mount *mounts; /* extra mounts of the operator */
    size_t n_mounts;
    struct strv hide; /* extra secret paths, absolute, as the operator wrote them */
    struct strv
        hidden;      /* hide, and the secret places of this host that root or mounts would show */
    struct strv env; /* K=V for every command */
    struct strv protect;   /* relative paths that stay read-only, besides wire/view's */
    struct strv deny_read; /* patterns of files that are not read, as the operator wrote them */
    struct glob *deny;     /* the same, compiled: deny_read.len of them */
    enum view_git git;
    bool shared_tmp;
    bool inherited_proc;
    bool debug;           /* ptrace works among a command's own processes */
    bool user_namespaces; /* a command may make some */
    struct strv devices;
    struct helper_limits limits;
    char *cgroup_parent;         /* where a group for each command is made; NULL = nowhere */
    struct egress_policy egress; /* with NETWORK_ENABLED; zeroed reaches nothing */
    uint16_t publish[HANDOVER_PUBLISH_MAX]; /* ports of commands that the host can reach */
    size_t n_publish;
};

struct registry {
    struct workspace **items; /* in order of registration */
    size_t n;
    size_t cap;
    struct map by_id;
    char *config_path; /* canonical, of the file that was loaded; NULL = none */
    /* Who may grant what waits for a person, besides the operator's token and command line. */
    bool self_grant;     /* the caller itself: then a hold only slows it down */
    bool no_elicitation; /* not even a person whom the client asks */
    /* That person over HTTP too. Only when it was said: on stdio one program started us and shows
     * the question, over HTTP whoever reaches us and has the token may answer what it asked. */
    bool http_elicitation;
};

/* A zeroed registry is empty and ready. After a failed load it holds what was read before the
 * mistake; a program that goes on with that is wrong. */
void registry_fini(struct registry *r);

/* Load a JSON file (docs/config.schema.json). A file that everybody may write, or that lies where a
 * command of one of its workspaces could rewrite it, is refused. Errors: CONFIG_INVALID. */
int registry_load_file(struct registry *r, const char *path, struct err *e);
/* The same from memory; `name` stands for the file in messages. */
int registry_load_text(struct registry *r, const char *name, const char *text, size_t n,
                       struct err *e);

/* `--workspace [ID=]DIR`: profile workspace-write, everything else default. A relative DIR is
 * taken from the current directory. The first '=' splits when what stands before it is a valid id;
 * else the whole is DIR (so "./a=b" is the directory a=b). The default id is the name of the
 * canonical directory, what is not allowed in an id made '-'. */
int registry_add_option(struct registry *r, const char *option, struct err *e);

/* Demand the sandbox for all (--require-sandbox). */
void registry_require_sandbox(struct registry *r);

/* Open and take over a workspace whose `root` is set and whose other members are filled; `where`
 * begins messages ("workspaces.demo"). On failure it is freed. For the loaders. */
int registry_add_take(struct registry *r, struct workspace *ws, const char *where, struct err *e);
void workspace_free(struct workspace *ws);

bool registry_id_valid(const char *id);

/* The workspace, or NULL with WORKSPACE_NOT_FOUND and the ids there are. */
const struct workspace *registry_get(const struct registry *r, const char *id, struct err *e);

const char *profile_name(enum profile p);
const char *network_name(enum network_policy n);
const char *network_scope_name(enum network_scope s);
const char *environment_name(enum environment_kind k);
const char *approvals_name(enum approvals a);

#endif
