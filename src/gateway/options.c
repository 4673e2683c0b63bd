/* gateway/options: see options.h. */
#include "gateway/options.h"

#include "base/mem.h"
#include "base/num.h"
#include "gateway/options_http.h"
#include "mcp/http_server.h"
#include "run/runner.h"

#include <stdio.h>
#include <string.h>

static int set_workspace(struct options *o, const char *name, const char *value, struct err *e)
{
    strv_add(&o->workspaces, value);
    return 0;
}

static int set_config(struct options *o, const char *name, const char *value, struct err *e)
{
    if (*value == '\0')
        return err_set(e, ERR_INVALID_ARGUMENT, "%s: names no file", name);
    o->config = value;
    return 0;
}

/* Empty, as a variable may be: in memory. */
static int set_ledger(struct options *o, const char *name, const char *value, struct err *e)
{
    o->ledger = value;
    return 0;
}

static int set_require(struct options *o, const char *name, const char *value, struct err *e)
{
    o->require_sandbox = true;
    return 0;
}

static int set_transport(struct options *o, const char *name, const char *value, struct err *e)
{
    bool http = strcmp(value, "http") == 0;
    if (!http && strcmp(value, "stdio") != 0)
        return err_set(e, ERR_INVALID_ARGUMENT, "%s: \"%.64s\" is none; stdio and http are", name,
                       value);
    o->http.on = http || o->http.flag;
    return 0;
}

static int set_log(struct options *o, const char *name, const char *value, struct err *e)
{
    int level = log_level_of(value);
    if (level < 0)
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "%s: \"%.64s\" is no level; error, warn, info and debug are", name, value);
    o->log_level = (enum log_level)level;
    return 0;
}

static int set_number(const char *name, const char *value, uint64_t max, uint64_t *ret,
                      struct err *e)
{
    if (num_parse_u64(value, 1, max, ret) < 0)
        return err_set(e, ERR_INVALID_ARGUMENT, "%s: \"%.64s\" is not a number from 1 to %llu",
                       name, value, (unsigned long long)max);
    return 0;
}

static int set_timeout(struct options *o, const char *name, const char *value, struct err *e)
{
    uint64_t seconds = 0;
    if (set_number(name, value, RUN_TIMEOUT_MAX_MS / 1000, &seconds, e) < 0)
        return -1;
    o->timeout_ms = seconds * 1000;
    return 0;
}

static int set_processes(struct options *o, const char *name, const char *value, struct err *e)
{
    return set_number(name, value, RUN_PROCESSES_MAX, &o->max_processes, e);
}

static int set_workspace_processes(struct options *o, const char *name, const char *value,
                                   struct err *e)
{
    return set_number(name, value, RUN_PROCESSES_MAX, &o->max_workspace_processes, e);
}

static int set_runner(struct options *o, const char *name, const char *value, struct err *e)
{
    if (strcmp(value, "in-process") != 0 && strcmp(value, "uds") != 0)
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "%s: \"%.64s\" is no runner; in-process and uds are", name, value);
    o->runner = strcmp(value, "uds") == 0 ? OPTIONS_RUNNER_UDS : OPTIONS_RUNNER_IN_PROCESS;
    return 0;
}

static int set_path(const char **to, const char *name, const char *value, struct err *e)
{
    if (value[0] != '/')
        return err_set(e, ERR_INVALID_ARGUMENT, "%s: \"%.128s\" is not an absolute path", name,
                       value);
    *to = value;
    return 0;
}

static int set_runtime_bin(struct options *o, const char *name, const char *value, struct err *e)
{
    return set_path(&o->runtime_bin, name, value, e);
}

static int set_runner_socket(struct options *o, const char *name, const char *value, struct err *e)
{
    return set_path(&o->runner_socket, name, value, e);
}

static int set_runner_dir(struct options *o, const char *name, const char *value, struct err *e)
{
    return set_path(&o->runner_dir, name, value, e);
}

static int set_runner_durable(struct options *o, const char *name, const char *value, struct err *e)
{
    return set_path(&o->runner_durable, name, value, e);
}

static int set_doctor(struct options *o, const char *name, const char *value, struct err *e)
{
    o->action = OPTIONS_DOCTOR;
    return 0;
}

static int set_version(struct options *o, const char *name, const char *value, struct err *e)
{
    o->action = OPTIONS_VERSION;
    return 0;
}

static int set_help(struct options *o, const char *name, const char *value, struct err *e)
{
    o->action = OPTIONS_HELP;
    return 0;
}

static const struct option table[] = {
    {"--workspace", "[ID=]DIR", NULL, set_workspace,
     "register DIR as a writable workspace (may be repeated); ID is its name by default"},
    {"--config", "FILE", "CODESPACE_CONFIG", set_config, "register the workspaces of a JSON file"},
    {"--require-sandbox", NULL, NULL, set_require,
     "run no command without the sandbox, in no workspace"},
    {"--ledger", "FILE", "CODESPACE_OPERATIONS_DB", set_ledger,
     "keep operations, approvals and works in this SQLite file (default: in memory)"},
    {"--operations-db", "FILE", NULL, set_ledger, "the same as --ledger"},
    {"--transport", "NAME", NULL, set_transport, "stdio (default) or http"},
    OPTIONS_HTTP_ROWS{"--log-level", "LEVEL", "CODESPACE_LOG", set_log,
                      "error, warn (default), info or debug; logs go to standard error"},
    {NULL, "SECONDS", "CODESPACE_PROCESS_TIMEOUT_SECS", set_timeout,
     "time limit of a command that names none (default 600)"},
    {NULL, "N", "CODESPACE_MAX_PROCESSES", set_processes,
     "commands that may run at once (default 64)"},
    {NULL, "N", "CODESPACE_MAX_WORKSPACE_PROCESSES", set_workspace_processes,
     "the same for one workspace (default: no limit of its own)"},
    {"--runner", "NAME", "CODESPACE_RUNNER", set_runner,
     "in-process (default), or uds: a worker program owns the processes"},
    {"--runtime-bin", "FILE", "CODESPACE_RUNTIME_BIN", set_runtime_bin,
     "uds: the worker to start; by default codespace-codex-runtime beside this program"},
    {"--runner-socket", "PATH", "CODESPACE_RUNNER_SOCKET", set_runner_socket,
     "uds without --runtime-bin: the socket of a worker that runs already"},
    {"--runner-dir", "DIR", "CODESPACE_RUNNER_DIR", set_runner_dir,
     "uds: where the private directory of the socket is made (default TMPDIR)"},
    {"--runner-durable", "DIR", "CODESPACE_RUNNER_DURABLE", set_runner_durable,
     "uds: the worker of DIR outlives this program; started when none is there"},
    {"--doctor", NULL, NULL, set_doctor,
     "tell what the sandbox can do on this machine; exit 0 when it works"},
    {"--version", NULL, NULL, set_version, "print the version"},
    {"--help", NULL, NULL, set_help, "print this"},
};

void options_help(struct buf *out)
{
    buf_puts(out,
             "Usage: codespace-mcp [--workspace [ID=]DIR]... [--config FILE] [OPTION]...\n"
             "       codespace-mcp approvals list|show|grant|deny --ledger FILE [ID]\n"
             "       codespace-mcp egress show|set WORKSPACE [RULES.json] --port N\n"
             "Serves execution tools for AI agents over MCP, on standard input and output or over "
             "HTTP.\n\n");
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        const struct option *o = &table[i];
        char left[64];
        snprintf(left, sizeof(left), "%s%s%s", o->flag != NULL ? o->flag : o->variable,
                 o->value == NULL  ? ""
                 : o->flag != NULL ? " "
                                   : "=",
                 o->value == NULL ? "" : o->value);
        buf_printf(out, "  %-40s %s\n", left, o->about);
        if (o->flag != NULL && o->variable != NULL)
            buf_printf(out, "  %-40s (or the variable %s)\n", "", o->variable);
    }
    buf_puts(out, "  CODESPACE_LINUX_SANDBOX_BIN=FILE         the sandbox helper; by default "
                  "codespace-linux-sandbox beside this program\n");
}

static int read_variables(struct options *o, struct err *e)
{
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        const char *value = table[i].variable == NULL ? NULL : getenv(table[i].variable);
        if (value != NULL && table[i].set(o, table[i].variable, value, e) < 0)
            return -1;
    }
    return 0;
}

/* The row of "--flag" or "--flag=value"; *ret_value is what follows the '=' or NULL. */
static const struct option *find_flag(const char *argument, const char **ret_value)
{
    size_t n = strcspn(argument, "=");
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        const char *flag = table[i].flag;
        if (flag == NULL || strlen(flag) != n || strncmp(flag, argument, n) != 0)
            continue;
        *ret_value = argument[n] == '=' ? argument + n + 1 : NULL;
        return &table[i];
    }
    return NULL;
}

static int read_argument(struct options *o, char *const *argv, int *i, struct err *e)
{
    const char *value = NULL;
    const struct option *row = find_flag(argv[*i], &value);
    if (row == NULL)
        return err_set(e, ERR_INVALID_ARGUMENT, "unknown option \"%.128s\"; see --help", argv[*i]);
    if (row->value == NULL && value != NULL)
        return err_set(e, ERR_INVALID_ARGUMENT, "%s takes no value", row->flag);
    if (row->value != NULL && value == NULL) {
        value = argv[++*i];
        if (value == NULL)
            return err_set(e, ERR_INVALID_ARGUMENT, "%s needs a value: %s", row->flag, row->value);
    }
    return row->set(o, row->flag, value, e);
}

int options_read(struct options *o, int argc, char *const *argv, struct err *e)
{
    *o = (struct options){.http = {.port = HTTP_PORT_DEFAULT}, .log_level = LOG_WARN};
    if (read_variables(o, e) < 0)
        return -1;
    for (int i = 1; i < argc; i++) {
        if (read_argument(o, argv, &i, e) < 0)
            return -1;
    }
    return 0;
}

void options_fini(struct options *o)
{
    strv_fini(&o->workspaces);
    options_http_fini(&o->http);
}

int options_registry(const struct options *o, struct registry *r, struct err *e)
{
    if (o->config != NULL && registry_load_file(r, o->config, e) < 0)
        return -1;
    for (size_t i = 0; i < o->workspaces.len; i++) {
        if (registry_add_option(r, o->workspaces.items[i], e) < 0)
            return -1;
    }
    if (o->require_sandbox)
        registry_require_sandbox(r);
    return 0;
}
