/* core/facts_text: the same facts in sentences, for models (instructions, exec summary) and for a
 * terminal (report), see facts.h.
 *
 * Every sentence about a wall is behind the flag that the probe set for it. Sentences about rules
 * are constants; the numbers in them are the constants that the code obeys.
 */
#include "base/mem.h"
#include "base/utf8.h"
#include "core/facts.h"
#include "core/files.h"
#include "core/policy.h"

#include <inttypes.h>
#include <string.h>

/* Bytes that a list of ids may take before it says how many more there are. */
#define LIST_BYTES 300u
/* And bubblewrap's own words, in a sentence. */
#define DETAIL_BYTES 160u

/* Text from outside (bubblewrap's words) on one line, without terminal controls, at most max bytes.
 */
static void put_plain(struct buf *out, const char *text, size_t max)
{
    size_t n = strlen(text);
    bool cut = n > max;
    if (cut)
        n = utf8_whole_prefix(text, max);
    for (size_t i = 0; i < n; i++)
        buf_putc(out, (unsigned char)text[i] < 0x20 || text[i] == 0x7f ? ' ' : text[i]);
    if (cut)
        buf_puts(out, "...");
}

static bool runs_commands(const struct workspace *ws)
{
    return policy_check(ws, POLICY_EXEC, NULL) == 0;
}

typedef bool (*select_fn)(const struct facts *f, const struct workspace *ws);

static bool by_host(const struct facts *f, const struct workspace *ws)
{
    return runs_commands(ws) && facts_mode(f, ws) == FACTS_HOST;
}

static bool by_network(const struct facts *f, const struct workspace *ws)
{
    return runs_commands(ws) && ws->network == NETWORK_ENABLED &&
           facts_mode(f, ws) == FACTS_REFUSED;
}

static bool by_proxy(const struct facts *f, const struct workspace *ws)
{
    return runs_commands(ws) && ws->network == NETWORK_ENABLED &&
           facts_mode(f, ws) == FACTS_SANDBOXED;
}

static bool by_demand(const struct facts *f, const struct workspace *ws)
{
    return runs_commands(ws) && ws->network != NETWORK_ENABLED &&
           facts_mode(f, ws) == FACTS_REFUSED;
}

static bool by_wide_view(const struct facts *f, const struct workspace *ws)
{
    return runs_commands(ws) && facts_mode(f, ws) == FACTS_SANDBOXED &&
           (ws->read == VIEW_READ_ALL || ws->n_mounts > 0);
}

/* "a, b and 3 more"; how many were selected. */
static size_t list_selected(const struct facts *f, const struct registry *r, select_fn select,
                            struct buf *out)
{
    size_t n = 0;
    size_t shown = 0;
    size_t start = out->len;
    for (size_t i = 0; i < r->n; i++) {
        if (!select(f, r->items[i]))
            continue;
        n++;
        if (out->len - start >= LIST_BYTES / 2)
            continue;
        buf_printf(out, "%s%s", shown++ > 0 ? ", " : "", r->items[i]->id);
    }
    if (n > shown)
        buf_printf(out, " and %zu more", n - shown);
    return n;
}

/* `before` ids `after`, when there are any. */
static void sentence_about(const struct facts *f, const struct registry *r, select_fn select,
                           const char *before, const char *after, struct buf *out)
{
    autobuf ids = BUF_INIT;
    if (list_selected(f, r, select, &ids) > 0)
        buf_printf(out, " %s%s%s", before, buf_cstr(&ids), after);
}

/* ---- the sandbox in words ---- */

static void put_walls(const struct probe_result *p, struct buf *out)
{
    const struct {
        bool stands;
        const char *text;
    } walls[] = {
        {p->network_namespace, "no network"},
        {p->mount_namespace,
         "of the host's files only its programs (read-only), and the workspace"},
        {p->mount_namespace, "an empty /tmp of its own, gone with the command"},
        {p->pid_namespace, "no other processes to see or to signal"},
        {p->no_new_privs, "no way to more privileges"},
        {p->seccomp, "a filter over system calls"},
    };
    const char *separator = ": ";
    for (size_t i = 0; i < ARRAY_LEN(walls); i++) {
        if (!walls[i].stands)
            continue;
        buf_printf(out, "%s%s", separator, walls[i].text);
        separator = "; ";
    }
}

static void put_sandboxed(const struct facts *f, const struct registry *r, struct buf *out)
{
    buf_puts(out, "Commands run in a sandbox (bubblewrap");
    if (f->probe.bwrap_version[0] != '\0') {
        buf_putc(out, ' ');
        put_plain(out, f->probe.bwrap_version, SIZE_MAX);
    }
    buf_puts(out, ") that each command has to itself");
    put_walls(&f->probe, out);
    buf_putc(out, '.');
    sentence_about(f, r, by_wide_view,
                   "More of the host shows in: ", " (workspace_info, execution.view).", out);
}

static void put_cause(const struct facts *f, struct buf *out)
{
    buf_puts(out, probe_cause_what(f->probe.cause));
    if (f->probe.detail[0] != '\0') {
        buf_puts(out, " (");
        put_plain(out, f->probe.detail, DETAIL_BYTES);
        buf_putc(out, ')');
    }
}

static bool any(const struct facts *f, const struct registry *r, select_fn select)
{
    for (size_t i = 0; i < r->n; i++) {
        if (select(f, r->items[i]))
            return true;
    }
    return false;
}

static void put_unsandboxed(const struct facts *f, const struct registry *r, struct buf *out)
{
    buf_puts(out, "NO SANDBOX on this machine: ");
    put_cause(f, out);
    buf_puts(out, ".");
    if (any(f, r, by_host))
        buf_puts(out, " Commands run UNSANDBOXED, directly on the host, with the rights and the "
                      "network of the server's user; nothing confines them to the workspace.");
    sentence_about(f, r, by_demand,
                   "Commands are refused (SANDBOX_UNAVAILABLE), because the sandbox is demanded, "
                   "in: ",
                   ".", out);
    buf_printf(out, " For the operator: %s.", probe_cause_remedy(f->probe.cause));
}

void facts_exec_summary(const struct facts *f, const struct registry *r, struct buf *out)
{
    if (!f->probed)
        buf_puts(out, "Whether commands run in a sandbox here is not known yet; ask workspace_info "
                      "(execution.isolation).");
    else if (f->probe.works)
        put_sandboxed(f, r, out);
    else
        put_unsandboxed(f, r, out);
    sentence_about(
        f, r, by_network,
        "Commands are refused (PROCESS_SPAWN_FAILED), because network \"enabled\" cannot "
        "be set up here, in: ",
        ".", out);
    sentence_about(f, r, by_proxy,
                   "Network by a proxy, to the destinations of workspace_info "
                   "(execution.network.egress) only, in: ",
                   ".", out);
    buf_puts(out, " No argument changes this; enforcement is not a permission.");
}

/* ---- instructions ---- */

static void put_workspaces(const struct registry *r, struct buf *out)
{
    size_t start = out->len;
    if (r->n == 0) {
        buf_puts(out, "No workspace is registered: an operator has to start the server with "
                      "--workspace DIR or --config FILE.\n");
        return;
    }
    buf_puts(out, "Workspaces (workspace_id): ");
    for (size_t i = 0; i < r->n; i++) {
        const struct workspace *ws = r->items[i];
        if (out->len - start >= LIST_BYTES) {
            buf_printf(out, " and %zu more", r->n - i);
            break;
        }
        buf_printf(out, "%s%s (%s%s)", i > 0 ? ", " : "", ws->id, profile_name(ws->profile),
                   ws->environment == ENVIRONMENT_HOST ? "" : ", no backend");
    }
    buf_puts(out, ". An id is no credential; workspace_info tells what is really on.\n");
}

static void put_file_rules(const struct facts *f, struct buf *out)
{
    bool sandboxed = f->probed && f->probe.works;
    buf_printf(out,
               "Files: paths are relative to the workspace; absolute ones, ones that leave it and "
               "symbolic links are refused. read, find and search take optional offset and limit "
               "(at most %u bytes, %u paths; else OUTPUT_LIMIT); truncated: go on at "
               "next_offset. "
               "content_lossy: not UTF-8. incomplete: the walk met a bound. "
               "listing_version changes with the list.\n",
               FILES_READ_MAX, FILES_FIND_MAX);
    buf_printf(out,
               "apply_patch takes V4A, all of it or nothing; check_only writes nothing; "
               "expected_versions guards against changes (VERSION_CONFLICT). Status unknown means "
               "perhaps executed: look before you repeat. .git, .agents and .codex are read-only "
               "for %s.\n",
               sandboxed ? "patches and commands" : "patches");
}

static void put_command_rules(const struct facts *f, struct buf *out)
{
    buf_printf(out,
               "Commands: exec_command takes an argv, no shell. With wait_ms one call gives output "
               "and end. The process belongs to the runner: it survives the request's end and a "
               "client's disconnect, and ends with its time limit (%" PRIu64
               " ms unless timeout_ms), terminate_process or the server. ",
               f->timeout_ms);
    buf_puts(out,
             "read_process goes on from a cursor; output_lost: older output was dropped. EOF is "
             "not success: process_status tells state, termination (exited, signaled, timeout, "
             "terminated) and exit_code. dispatch_status unknown: perhaps started; list_processes "
             "shows. tty gives a "
             "24x80 PTY unless rows and cols say else (tty_size is not an argument); "
             "process_resize changes it. PROCESS_NOT_TTY: it runs on pipes. PROCESS_NOT_RUNNING: "
             "it has ended.\n");
}

static void put_conflict_rules(struct buf *out)
{
    buf_puts(out,
             "Patches of a workspace run one after another; commands run beside them and each "
             "other. WORKSPACE_BUSY: held just now, repeat later. RESOURCE_QUEUE_FULL: too many "
             "wait. PROCESS_LIMIT: end a process first. approvals=confirm: patches and "
             "commands answer APPROVAL_REQUIRED with an approval_id and wait for a person, whom "
             "you cannot replace; then operation_resume runs them once. A hold is no grant.");
}

void facts_instructions(const struct facts *f, const struct registry *r, struct buf *out)
{
    buf_puts(out, "CodeSpace gives tools for files and commands on this machine; it calls no model "
                  "and decides nothing by itself.\n");
    put_workspaces(r, out);
    facts_exec_summary(f, r, out);
    buf_putc(out, '\n');
    put_file_rules(f, out);
    put_command_rules(f, out);
    put_conflict_rules(out);
}

/* ---- report ---- */

static void report_off(const struct facts *f, struct buf *out)
{
    buf_puts(out, "sandbox: OFF\n  cause   ");
    buf_printf(out, "%s (%s)\n", probe_cause_what(f->probe.cause),
               probe_cause_name(f->probe.cause));
    if (f->probe.detail[0] != '\0') {
        buf_puts(out, "  detail  ");
        put_plain(out, f->probe.detail, SIZE_MAX);
        buf_putc(out, '\n');
    }
    buf_printf(out, "  remedy  %s\n", probe_cause_remedy(f->probe.cause));
    buf_puts(out, "  Commands run UNSANDBOXED on the host, unless the sandbox is demanded\n"
                  "  (--require-sandbox, or \"sandbox\": \"required\"): then they are refused.\n");
}

void facts_report(const struct facts *f, struct buf *out)
{
    if (!f->probed) {
        buf_puts(out, "sandbox: not probed yet\n");
        return;
    }
    if (!f->probe.works) {
        report_off(f, out);
    } else {
        buf_puts(out, "sandbox: on (bubblewrap ");
        put_plain(out, f->probe.bwrap_version, SIZE_MAX);
        buf_puts(out, ", ");
        put_plain(out, f->probe.bwrap_path, SIZE_MAX);
        buf_puts(out, ")\n");
    }
    for (const struct facts_layer *layer = facts_layers; layer->name != NULL; layer++)
        buf_printf(out, "  %-18s %s\n", layer->title, facts_layer_on(f, layer) ? "on" : "off");
}
