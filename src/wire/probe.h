/* wire/probe: what `codespace-linux-sandbox probe --json` says, as a struct.
 *
 * Theory. Each way the sandbox can be missing is one named cause with one remedy (H12, H14, D1,
 * D2), found once by the helper and shown everywhere by whoever asks. The rows are the table
 * PROBE_CAUSES. Must not: guess; a failure that no row fits is `other` with bubblewrap's own words.
 */
#ifndef CODESPACE_WIRE_PROBE_H
#define CODESPACE_WIRE_PROBE_H

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>

/* X(id, name, what is wrong, what to do) */
#define PROBE_CAUSES(X)                                                                            \
    X(NONE, "none", "the sandbox works", "")                                                       \
    X(NO_HELPER, "no_helper", "codespace-linux-sandbox was not found beside the server",           \
      "install all programs into one directory, or set CODESPACE_LINUX_SANDBOX_BIN")               \
    X(NO_BWRAP, "no_bwrap", "bubblewrap is not installed",                                         \
      "install it: apt-get install bubblewrap")                                                    \
    X(OLD_BWRAP, "old_bwrap", "this bubblewrap is too old", "install bubblewrap 0.8 or newer")     \
    X(NO_USERNS, "no_userns", "the kernel does not allow user namespaces here",                    \
      "in a container, allow namespaces in its seccomp profile; else choose a kernel that has "    \
      "them")                                                                                      \
    X(USERNS_CLONE, "userns_clone", "the kernel lets only root make user namespaces",              \
      "sysctl kernel.unprivileged_userns_clone=1")                                                 \
    X(MAX_NAMESPACES, "max_namespaces", "the kernel's limit of namespaces is 0 or used up",        \
      "raise the one that the detail names, else user.max_user_namespaces, to 15000 by sysctl")    \
    X(APPARMOR, "apparmor", "AppArmor restricts user namespaces for this program",                 \
      "load the profile /usr/share/apparmor/extra-profiles/bwrap-userns-restrict for bwrap")       \
    X(NO_PROC, "no_proc", "a fresh /proc cannot be mounted inside this container",                 \
      "run the container with its /proc unmasked (docker: --security-opt "                         \
      "systempaths=unconfined), or choose the weaker \"proc\": \"inherited\" for a workspace")     \
    X(PROC_MISSING, "proc_missing", "no /proc is mounted where the server runs",                   \
      "mount it: mount -t proc proc /proc")                                                        \
    X(SETUID, "setuid", "the helper is installed set-user-ID", "remove the setuid bit")            \
    X(OTHER, "other", "the sandbox could not be built", "see the detail")

enum probe_cause {
#define PROBE_ENUM(id, name, what, remedy) PROBE_##id,
    PROBE_CAUSES(PROBE_ENUM)
#undef PROBE_ENUM
        PROBE_CAUSE_MAX
};

struct probe_result {
    bool works;
    enum probe_cause cause;
    char detail[512];     /* the failing layer's own words; "" when it works */
    char bwrap_path[256]; /* "" when there is none */
    char bwrap_version[32];
    bool user_namespace, mount_namespace, pid_namespace, network_namespace, ipc_namespace,
        uts_namespace, cgroup_namespace;
    bool fresh_proc, no_new_privs, seccomp, pid1;
    bool inherited_proc; /* all but a fresh /proc: it works where an operator chose to do without */
    bool egress;         /* an enabled network can be set up: a namespace, its rules, a proxy */
    char egress_detail[256]; /* why not; "" when it can */
};

const char *probe_cause_name(enum probe_cause cause);
const char *probe_cause_what(enum probe_cause cause);
const char *probe_cause_remedy(enum probe_cause cause);

/* One JSON object. */
void probe_write(const struct probe_result *p, struct buf *out);
int probe_read(const char *text, size_t n, struct probe_result *ret, struct err *e);

#endif
