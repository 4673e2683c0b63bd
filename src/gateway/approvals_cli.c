/* gateway/approvals_cli: see approvals_cli.h. */
#include "gateway/approvals_cli.h"

#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "mcp/approval_show.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct cli {
    const char *verb;
    const char *ledger_path;
    const char *workspace_id; /* NULL = all */
    const char *id;
    bool all; /* the ended ones too */
    uint64_t limit;
    struct ledger *ledger;
    struct buf out;
};

static const char usage[] =
    "Usage: codespace-mcp approvals list [--workspace ID] [--all] [--limit N] --ledger FILE\n"
    "       codespace-mcp approvals show|grant|deny ID --ledger FILE\n"
    "Decides calls that wait for a person, beside a gateway that runs with this ledger (without\n"
    "--ledger: CODESPACE_OPERATIONS_DB). Whoever may write the file may decide.\n";

/* ---- the verbs ---- */

static int list(struct cli *c, struct err *e)
{
    struct approval *items = NULL;
    size_t n = 0;
    const struct approval_filter filter = {c->workspace_id, !c->all, 0, (uint32_t)c->limit};
    if (approvals_list(c->ledger, &filter, &items, &n, e) < 0)
        return -1;
    for (size_t i = 0; i < n; i++)
        approval_show_line(&c->out, &items[i], ledger_now_ms(c->ledger));
    if (n == 0)
        buf_puts(&c->out, c->all ? "no call was ever held\n" : "no call waits\n");
    approvals_free(items, n);
    return 0;
}

static int show(struct cli *c, struct err *e)
{
    autoapproval a = {0};
    if (approvals_get(c->ledger, c->id, &a, e) < 0)
        return -1;
    approval_show(&c->out, &a, true);
    return 0;
}

/* What was decided is shown, so that a slip is seen while the call was not resumed yet. */
static int tell(struct cli *c, struct err *e)
{
    autoapproval a = {0};
    if (approvals_get(c->ledger, c->id, &a, e) < 0)
        return -1;
    approval_show(&c->out, &a, false);
    return 0;
}

static int grant(struct cli *c, struct err *e)
{
    if (approvals_grant(c->ledger, c->id, APPROVAL_BY_COMMAND_LINE, false, e) < 0)
        return -1;
    return tell(c, e);
}

static int deny(struct cli *c, struct err *e)
{
    if (approvals_deny(c->ledger, c->id, APPROVAL_BY_COMMAND_LINE, e) < 0)
        return -1;
    return tell(c, e);
}

static const struct {
    const char *name;
    bool takes_id;
    int (*run)(struct cli *c, struct err *e);
} verbs[] = {
    {"list", false, list}, {"show", true, show}, {"grant", true, grant}, {"deny", true, deny}};

/* ---- the arguments ---- */

static int take_limit(struct cli *c, const char *value, struct err *e)
{
    if (num_parse_u64(value, 1, APPROVALS_PAGE_MAX, &c->limit) < 0)
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "--limit: \"%.64s\" is not a number from 1 to APPROVALS_PAGE_MAX (%u)",
                       value, APPROVALS_PAGE_MAX);
    return 0;
}

static int take_option(struct cli *c, char *const *argv, int *i, struct err *e)
{
    const char *name = argv[*i];
    if (str_eq(name, "--all")) {
        c->all = true;
        return 0;
    }
    if (!str_eq(name, "--ledger") && !str_eq(name, "--operations-db") &&
        !str_eq(name, "--workspace") && !str_eq(name, "--limit"))
        return err_set(e, ERR_INVALID_ARGUMENT, "unknown option \"%.128s\"\n%s", name, usage);
    const char *value = argv[++*i];
    if (value == NULL)
        return err_set(e, ERR_INVALID_ARGUMENT, "%s needs a value", name);
    if (str_eq(name, "--limit"))
        return take_limit(c, value, e);
    if (str_eq(name, "--workspace"))
        c->workspace_id = value;
    else
        c->ledger_path = value;
    return 0;
}

static int read_arguments(struct cli *c, int argc, char *const *argv, struct err *e)
{
    for (int i = 1; i < argc; i++) {
        if (argv[i][0] == '-') {
            if (take_option(c, argv, &i, e) < 0)
                return -1;
        } else if (c->verb == NULL) {
            c->verb = argv[i];
        } else if (c->id == NULL) {
            c->id = argv[i];
        } else {
            return err_set(e, ERR_INVALID_ARGUMENT, "\"%.128s\" is one too many: one ID at a time",
                           argv[i]);
        }
    }
    return 0;
}

/* The ledger of a gateway is there; a mistyped name must not make another one. */
static int open_ledger(struct cli *c, struct err *e)
{
    struct ledger_options options = {.path = c->ledger_path, .role = LEDGER_OPERATOR};
    if (c->ledger_path == NULL || c->ledger_path[0] == '\0')
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "--ledger FILE is needed: the one that the gateway was started with (a "
                       "gateway without one keeps held calls in memory, where only the operator's "
                       "HTTP token and the client's own question reach them)");
    if (access(c->ledger_path, F_OK) < 0)
        return err_sys(e, ERR_LEDGER_FAILED, errno, "--ledger %.256s", c->ledger_path);
    return ledger_open(&options, &c->ledger, e);
}

static int run(struct cli *c, struct err *e)
{
    for (size_t i = 0; i < ARRAY_LEN(verbs); i++) {
        if (!str_eq(verbs[i].name, c->verb))
            continue;
        if (verbs[i].takes_id != (c->id != NULL))
            return err_set(e, ERR_INVALID_ARGUMENT, "%s %s", c->verb,
                           verbs[i].takes_id ? "needs the ID of an approval" : "takes no ID");
        return open_ledger(c, e) < 0 ? -1 : verbs[i].run(c, e);
    }
    return err_set(e, ERR_INVALID_ARGUMENT, "%s%.64s%s\n%s", c->verb != NULL ? "\"" : "",
                   c->verb != NULL ? c->verb : "what is to be done?",
                   c->verb != NULL ? "\" is none; list, show, grant and deny are" : "", usage);
}

int approvals_cli(int argc, char *const *argv)
{
    struct err e;
    struct cli c = {.ledger_path = getenv("CODESPACE_OPERATIONS_DB")};
    if (argc > 1 && str_eq(argv[1], "--help")) {
        fputs(usage, stdout);
        return fflush(stdout) == 0 ? 0 : err_info(ERR_FILE_OPERATION_FAILED)->exit_status;
    }
    int status = read_arguments(&c, argc, argv, &e);
    if (status == 0)
        status = run(&c, &e);
    ledger_free(c.ledger);
    if (status == 0) {
        fwrite(buf_bytes(&c.out), 1, c.out.len, stdout);
        if (fflush(stdout) != 0)
            status = err_sys(&e, ERR_FILE_OPERATION_FAILED, errno, "standard output");
    }
    buf_fini(&c.out);
    if (status < 0)
        fprintf(stderr, "codespace-mcp: %s\n", e.message);
    return status < 0 ? err_info(e.code)->exit_status : 0;
}
