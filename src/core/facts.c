/* core/facts: the mode of a workspace and the object workspace_info.execution, see facts.h. The
 * texts made from the same struct are in facts_text.c. */
#include "core/facts.h"

#include "base/mem.h"
#include "core/exec_limits.h"
#include "core/files.h"
#include "core/patch.h"
#include "core/policy.h"

#include <string.h>

/* The layers of the sandbox as the probe saw them; also the order of the report. */
const struct facts_layer facts_layers[] = {
    {"user_namespace", "user namespace", offsetof(struct probe_result, user_namespace)},
    {"mount_namespace", "mount namespace", offsetof(struct probe_result, mount_namespace)},
    {"pid_namespace", "pid namespace", offsetof(struct probe_result, pid_namespace)},
    {"network_namespace", "network namespace", offsetof(struct probe_result, network_namespace)},
    {"ipc_namespace", "ipc namespace", offsetof(struct probe_result, ipc_namespace)},
    {"uts_namespace", "uts namespace", offsetof(struct probe_result, uts_namespace)},
    {"cgroup_namespace", "cgroup namespace", offsetof(struct probe_result, cgroup_namespace)},
    {"fresh_proc", "fresh /proc", offsetof(struct probe_result, fresh_proc)},
    {"no_new_privs", "no new privileges", offsetof(struct probe_result, no_new_privs)},
    {"seccomp", "seccomp filter", offsetof(struct probe_result, seccomp)},
    {"pid1", "own process 1", offsetof(struct probe_result, pid1)},
    {NULL, NULL, 0},
};

bool facts_layer_on(const struct facts *f, const struct facts_layer *layer)
{
    return f->probed && f->probe.works && *(const bool *)((const char *)&f->probe + layer->offset);
}

/* Whether it can be built for this workspace, which may do without a fresh /proc. */
static bool works_for(const struct facts *f, const struct workspace *ws)
{
    return f->probed && (f->probe.works || (ws->inherited_proc && f->probe.inherited_proc));
}

enum facts_mode facts_mode(const struct facts *f, const struct workspace *ws)
{
    bool enabled = ws->network == NETWORK_ENABLED;
    if (ws->environment != ENVIRONMENT_HOST)
        return FACTS_REFUSED;
    if (!f->probed)
        return FACTS_PROBING;
    if (works_for(f, ws))
        return enabled && !f->probe.egress ? FACTS_REFUSED : FACTS_SANDBOXED;
    return enabled || ws->sandbox == SANDBOX_REQUIRED ? FACTS_REFUSED : FACTS_HOST;
}

const char *facts_mode_name(enum facts_mode mode)
{
    static const char *const names[] = {
        [FACTS_SANDBOXED] = "sandboxed",
        [FACTS_HOST] = "host",
        [FACTS_REFUSED] = "refused",
        [FACTS_PROBING] = "probing",
    };
    return names[mode];
}

static int refuse_demanded(const struct facts *f, const struct workspace *ws, struct err *e)
{
    const struct probe_result *p = &f->probe;
    return err_set(e, ERR_SANDBOX_UNAVAILABLE,
                   "the workspace \"%s\" demands the sandbox, and it cannot be built here: %s%s%s; "
                   "nothing was started; for the operator: %s",
                   ws->id, probe_cause_what(p->cause), p->detail[0] == '\0' ? "" : ": ", p->detail,
                   probe_cause_remedy(p->cause));
}

/* Never a direct network, and never a run without the one that was configured (R17). */
static int refuse_network(const struct facts *f, const struct workspace *ws, struct err *e)
{
    const struct probe_result *p = &f->probe;
    return err_set(e, ERR_PROCESS_SPAWN_FAILED,
                   "the workspace \"%s\" has \"network\": \"enabled\", which commands get in the "
                   "sandbox by the egress proxy only, and that cannot be set up here: %s%s%s; "
                   "nothing was started; for the operator: %s",
                   ws->id, p->works ? p->egress_detail : probe_cause_what(p->cause),
                   p->works || p->detail[0] == '\0' ? "" : ": ", p->works ? "" : p->detail,
                   p->works ? "see codespace-egress-proxy(1), or set \"network\": \"restricted\""
                            : probe_cause_remedy(p->cause));
}

int facts_check_exec(const struct facts *f, const struct workspace *ws, struct err *e)
{
    if (ws->environment != ENVIRONMENT_HOST)
        return policy_check(ws, POLICY_EXEC, e);
    if (!f->probed)
        return err_set(e, ERR_SANDBOX_UNAVAILABLE,
                       "whether the sandbox works here is not known yet; nothing was started; try "
                       "again");
    if (facts_mode(f, ws) == FACTS_REFUSED)
        return ws->network == NETWORK_ENABLED ? refuse_network(f, ws, e)
                                              : refuse_demanded(f, ws, e);
    return 0;
}

/* ---- execution ---- */

/* Shorthands: the object `key`, its end, and a row of constants. */
static void open_object(struct jsonw *w, const char *key)
{
    jsonw_key(w, key);
    jsonw_object(w);
}

static void write_trues(struct jsonw *w, const char *const *keys)
{
    for (; *keys != NULL; keys++)
        jsonw_kbool(w, *keys, true);
}

static void write_strings(struct jsonw *w, const char *key, char *const *items)
{
    jsonw_key(w, key);
    jsonw_array(w);
    for (; items != NULL && *items != NULL; items++)
        jsonw_str(w, *items);
    jsonw_array_end(w);
}

static void write_available(struct jsonw *w, const char *key, bool available)
{
    open_object(w, key);
    jsonw_kbool(w, "available", available);
    jsonw_object_end(w);
}

static void write_environment(const struct workspace *ws, struct jsonw *w)
{
    bool host = ws->environment == ENVIRONMENT_HOST;
    open_object(w, "environment");
    jsonw_kstr(w, "kind", environment_name(ws->environment));
    jsonw_kbool(w, "client_selectable", false);
    jsonw_kbool(w, "exec_supported", host);
    jsonw_kbool(w, "file_read_supported", host);
    jsonw_kbool(w, "file_write_supported", host);
    jsonw_object_end(w);
}

static void write_permissions(const struct workspace *ws, struct jsonw *w)
{
    open_object(w, "permissions");
    jsonw_kbool(w, "read", policy_permits(ws, POLICY_READ));
    jsonw_kbool(w, "write", policy_permits(ws, POLICY_WRITE));
    jsonw_kbool(w, "exec", policy_permits(ws, POLICY_EXEC));
    jsonw_object_end(w);
}

static void write_files(const struct workspace *ws, struct jsonw *w)
{
    bool reads = policy_check(ws, POLICY_READ, NULL) == 0;
    open_object(w, "files");
    write_available(w, "read", reads);
    write_available(w, "find", reads);
    write_available(w, "patch", policy_check(ws, POLICY_WRITE, NULL) == 0);
    open_object(w, "capabilities");
    jsonw_kbool(w, "read_range", true);
    jsonw_kbool(w, "find_pagination", true);
    jsonw_kuint(w, "read_max_bytes", FILES_READ_MAX);
    jsonw_kuint(w, "find_max_paths", FILES_FIND_MAX);
    jsonw_object_end(w);
    jsonw_object_end(w);
}

static void write_tty_and_lifetime(struct jsonw *w)
{
    open_object(w, "tty");
    jsonw_kbool(w, "supported", true);
    jsonw_kbool(w, "default", false);
    jsonw_kuint(w, "initial_rows", 24);
    jsonw_kuint(w, "initial_cols", 80);
    jsonw_kbool(w, "resize_supported", true);
    jsonw_object_end(w);
    open_object(w, "lifetime");
    jsonw_kstr(w, "owner", "runner");
    jsonw_kstr(w, "client_disconnect", "keep_running");
    jsonw_kstr(w, "runner_disconnect", "terminate");
    jsonw_kstr(w, "gateway_shutdown", "terminate");
    jsonw_kstr(w, "restart_recovery", "none");
    jsonw_object_end(w);
}

static void write_process(const struct facts *f, const struct workspace *ws, struct jsonw *w)
{
    static const char *const capabilities[] = {"handles",
                                               "survives_request_end",
                                               "write_stdin",
                                               "incremental_read",
                                               "terminate",
                                               "output_combined",
                                               "separate_streams",
                                               "wait_for_end",
                                               "list",
                                               "signal",
                                               "read_by_line",
                                               "idle_timeout",
                                               "exclusive",
                                               NULL};
    bool available = policy_check(ws, POLICY_EXEC, NULL) == 0 && facts_mode(f, ws) != FACTS_REFUSED;
    open_object(w, "process");
    jsonw_kbool(w, "available", available);
    if (available) {
        open_object(w, "capabilities");
        write_trues(w, capabilities);
        write_tty_and_lifetime(w);
        jsonw_object_end(w);
    }
    jsonw_object_end(w);
}

/* Patches of one root directory run one after another, in the order in which they came. A live
 * process holds nothing: it runs beside patches, beside reading and beside other processes. */
static void write_serialization(struct jsonw *w)
{
    open_object(w, "serialization");
    jsonw_kstr(w, "scope", "workspace");
    jsonw_kstr(w, "request_conflict", "wait-fifo");
    jsonw_kstr(w, "process_conflict", "none");
    jsonw_kbool(w, "queue_durable", false);
    jsonw_kuint(w, "max_waiters_per_resource", FACTS_PATCH_WAITERS_MAX);
    jsonw_kbool(w, "live_process_holds_mutation_lease", false);
    jsonw_kbool(w, "parallel_exec", true);
    jsonw_kbool(w, "read_while_process_live", true);
    jsonw_kbool(w, "find_while_process_live", true);
    jsonw_kbool(w, "patch_while_process_live", true);
    jsonw_kstr(w, "conflict_error", err_info(ERR_WORKSPACE_BUSY)->name);
    jsonw_kstr(w, "queue_full_error", err_info(ERR_RESOURCE_QUEUE_FULL)->name);
    jsonw_object_end(w);
}

static void write_why_off(const struct facts *f, struct jsonw *w)
{
    if (!f->probed) {
        jsonw_kstr(w, "cause", "not_probed");
        return;
    }
    jsonw_kstr(w, "cause", probe_cause_name(f->probe.cause));
    if (f->probe.works)
        return;
    jsonw_kstr(w, "what", probe_cause_what(f->probe.cause));
    jsonw_kstr(w, "detail", f->probe.detail);
    jsonw_kstr(w, "remedy", probe_cause_remedy(f->probe.cause));
}

/* For commands of this workspace. */
static bool is_on_for(const struct facts *f, const struct workspace *ws,
                      const struct facts_layer *layer)
{
    bool given_up = ws->inherited_proc && str_eq(layer->name, "fresh_proc");
    return works_for(f, ws) && !given_up &&
           *(const bool *)((const char *)&f->probe + layer->offset);
}

static void write_isolation(const struct facts *f, const struct workspace *ws, struct jsonw *w)
{
    enum facts_mode mode = facts_mode(f, ws);
    struct err refusal = {0};
    open_object(w, "isolation");
    jsonw_kbool(w, "file_tools_workspace_scoped", true);
    jsonw_kstr(w, "command_sandbox", works_for(f, ws) ? "linux-sandbox" : "none");
    jsonw_kstr(w, "mode", facts_mode_name(mode));
    if (mode == FACTS_REFUSED && facts_check_exec(f, ws, &refusal) < 0)
        jsonw_kstr(w, "refusal", refusal.message);
    jsonw_kbool(w, "demanded", ws->sandbox == SANDBOX_REQUIRED);
    write_why_off(f, w);
    open_object(w, "layers");
    for (const struct facts_layer *layer = facts_layers; layer->name != NULL; layer++)
        jsonw_kbool(w, layer->name, is_on_for(f, ws, layer));
    jsonw_object_end(w);
    jsonw_object_end(w);
}

/* Whose loopback the next command would have. */
static const char *scope_now(const struct facts *f, const struct workspace *ws)
{
    if (facts_mode(f, ws) == FACTS_HOST)
        return "host";
    if (ws->network_scope == NETWORK_SCOPE_COMMAND || f->warm == FACTS_WARM_OFF)
        return "command";
    return f->warm == FACTS_WARM_ON ? "workspace" : "unknown";
}

static void write_start(const struct facts *f, struct jsonw *w)
{
    static const char *const names[] = {
        [FACTS_WARM_UNKNOWN] = "unknown", [FACTS_WARM_OFF] = "off", [FACTS_WARM_ON] = "on"};
    open_object(w, "start");
    jsonw_kstr(w, "warm", names[f->warm]);
    jsonw_object_end(w);
}

/* The rules above are those of every start; whether what runs has them is told here. */
static void write_rules_change(const struct facts_rules *r, struct jsonw *w)
{
    open_object(w, "egress_change");
    jsonw_kstr(w, "state",
               r->changing         ? "changing"
               : r->why[0] != '\0' ? "incomplete"
                                   : "in_force");
    jsonw_kuint(w, "changed_ms", r->changed_ms);
    jsonw_kstr(w, "by", r->by);
    if (r->why[0] != '\0')
        jsonw_kstr(w, "reason", r->why);
    jsonw_key(w, "processes_with_others");
    jsonw_array(w);
    for (size_t i = 0; r->others[i] != NULL; i++)
        jsonw_str(w, r->others[i]);
    jsonw_array_end(w);
    jsonw_object_end(w);
}

/* What the proxy is told, and what it is not. */
static void write_egress(const struct facts *f, const struct workspace *ws, struct jsonw *w)
{
    if (f->probed && !f->probe.egress)
        jsonw_kstr(w, "proxy_missing", f->probe.egress_detail);
    jsonw_key(w, "egress");
    egress_policy_show(&ws->egress, w);
    if (inject_has_intercept(&ws->egress.inject)) {
        jsonw_key(w, "intercepted");
        inject_write_intercepted(&ws->egress.inject, w);
    }
    if (f->rules != NULL)
        write_rules_change(f->rules, w);
    jsonw_key(w, "publish");
    jsonw_array(w);
    for (size_t i = 0; i < ws->n_publish; i++)
        jsonw_uint(w, ws->publish[i]);
    jsonw_array_end(w);
}

static void write_network(const struct facts *f, const struct workspace *ws, struct jsonw *w)
{
    bool enforced = works_for(f, ws) && f->probe.network_namespace;
    open_object(w, "network");
    jsonw_kstr(w, "policy", network_name(ws->network));
    jsonw_kstr(w, "enforcement", enforced ? "enforced" : "none");
    jsonw_kbool(w, "client_may_escalate", false);
    jsonw_kstr(w, "scope", network_scope_name(ws->network_scope));
    jsonw_kstr(w, "scope_now", scope_now(f, ws));
    jsonw_kbool(w, "proxy", ws->network == NETWORK_ENABLED && enforced && f->probe.egress);
    if (ws->network == NETWORK_ENABLED)
        write_egress(f, ws, w);
    jsonw_object_end(w);
}

static const char *default_home(void)
{
    for (size_t i = 0; view_environment[i] != NULL; i++) {
        if (str_starts(view_environment[i], "HOME="))
            return view_environment[i] + strlen("HOME=");
    }
    return "/tmp";
}

static void write_mounts(const struct workspace *ws, struct jsonw *w)
{
    jsonw_key(w, "mounts");
    jsonw_array(w);
    for (size_t i = 0; i < ws->n_mounts; i++) {
        jsonw_object(w);
        jsonw_kstr(w, "path", ws->mounts[i].path);
        jsonw_kbool(w, "writable", ws->mounts[i].writable);
        jsonw_object_end(w);
    }
    jsonw_array_end(w);
}

/* What commands see. Without the sandbox they see the host, whatever is configured. */
static void write_view(const struct facts *f, const struct workspace *ws, struct jsonw *w)
{
    bool enforced = facts_mode(f, ws) == FACTS_SANDBOXED;
    open_object(w, "view");
    jsonw_kbool(w, "enforced_for_commands", enforced);
    jsonw_kstr(w, "read", ws->read == VIEW_READ_ALL ? "all" : "minimal");
    write_mounts(ws, w);
    jsonw_kstr(w, "tmp", enforced && !ws->shared_tmp ? "private" : "host");
    jsonw_kstr(w, "proc", enforced && !ws->inherited_proc ? "fresh" : "host");
    jsonw_kstr(w, "git", ws->git == VIEW_GIT_COMMIT ? "commit" : "read-only");
    write_strings(w, "protect", ws->protect.items);
    write_strings(w, "deny_read", ws->deny_read.items);
    write_strings(w, "devices", ws->devices.items);
    jsonw_kbool(w, "debug", ws->debug);
    jsonw_kbool(w, "user_namespaces", ws->user_namespaces);
    jsonw_kstr(w, "home", !enforced ? ws->root : ws->shared_tmp ? "/dev/shm/home" : default_home());
    write_strings(w, "protected", (char *const *)view_protected);
    write_strings(w, "hidden", ws->hide.items);
    jsonw_kuint(w, "hidden_count", ws->hidden.len);
    jsonw_object_end(w);
}

static void write_limits(const struct facts *f, struct jsonw *w)
{
    const struct facts_limit own[] = {
        {"read_max_bytes", FILES_READ_MAX},        {"find_max_paths", FILES_FIND_MAX},
        {"find_max_depth", FILES_WALK_DEPTH_MAX},  {"find_max_entries", FILES_WALK_ENTRIES_MAX},
        {"patch_max_bytes", PATCH_TEXT_MAX},       {"patch_max_files", PATCH_FILES_MAX},
        {"patch_max_file_bytes", PATCH_FILE_MAX},  {"argv_max_items", EXEC_ARGV_MAX},
        {"env_max_items", EXEC_ENV_MAX},           {"argument_max_bytes", EXEC_STRING_MAX},
        {"command_max_bytes", EXEC_TOTAL_MAX},     {"timeout_default_ms", f->timeout_ms},
        {"timeout_max_ms", f->timeout_max_ms},     {"processes_max", f->max_processes},
        {"output_retained_bytes", f->output_ring},
    };
    open_object(w, "limits");
    for (size_t i = 0; i < ARRAY_LEN(own); i++)
        jsonw_kuint(w, own[i].name, own[i].value);
    for (const struct facts_limit *l = f->limits; l != NULL && l->name != NULL; l++)
        jsonw_kuint(w, l->name, l->value);
    jsonw_object_end(w);
}

void facts_write_execution(const struct facts *f, const struct workspace *ws, struct jsonw *w)
{
    jsonw_object(w);
    write_environment(ws, w);
    write_permissions(ws, w);
    write_files(ws, w);
    write_process(f, ws, w);
    write_serialization(w);
    write_isolation(f, ws, w);
    write_network(f, ws, w);
    write_start(f, w);
    jsonw_kstr(w, "approvals", approvals_name(ws->approvals));
    write_view(f, ws, w);
    write_limits(f, w);
    jsonw_object_end(w);
}
