/* gateway/store: see store.h. */
#include "gateway/store.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "core/approvals.h"
#include "core/operations_store.h"
#include "core/root.h"
#include "mcp/operation_answer.h"
#include "sys/path.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#define LEDGER "the ledger"

/* ---- where it lies ---- */

/* The canonical name that `path` has or would have: what exists of it is resolved, the rest is
 * appended. */
static int resolve(const char *what, const char *path, char **ret, struct err *e)
{
    char real[PATH_MAX];
    autofree char *here = path[0] == '/' ? mem_strdup("") : getcwd(NULL, 0);
    autofree char *whole = mem_printf("%s/%s", here == NULL ? "" : here, path);
    autofree char *head = mem_strdup(whole);
    while (realpath(head, real) == NULL) {
        char *slash = strrchr(head, '/');
        if ((errno != ENOENT && errno != ENOTDIR) || slash == NULL)
            return err_sys(e, ERR_CONFIG_INVALID, errno, "%s \"%.256s\"", what, path);
        *slash = '\0';
        if (head[0] == '\0')
            strcpy(real, "/");
        if (head[0] == '\0')
            break;
    }
    const char *rest = whole + strlen(head);
    if (strstr(rest, "/../") != NULL || str_ends(rest, "/.."))
        return err_set(
            e, ERR_CONFIG_INVALID,
            "%s \"%.256s\" goes through \"..\" where no directory is yet; write its path "
            "without",
            what, path);
    *ret = mem_printf("%s%s", str_eq(real, "/") ? "" : real, rest);
    return 0;
}

/* What holds `path` of a workspace, or NULL. */
static const char *shown_by(const struct workspace *ws, const char *path)
{
    if (root_within(path, ws->root))
        return ws->root;
    if (ws->shared_tmp && root_within(path, "/tmp"))
        return "/tmp";
    for (size_t i = 0; i < ws->n_mounts; i++) {
        if (root_within(path, ws->mounts[i].path))
            return ws->mounts[i].path;
    }
    return NULL;
}

static int check_place(const struct registry *r, const char *what, const char *path, struct err *e)
{
    for (size_t i = 0; i < r->n; i++) {
        const char *place = shown_by(r->items[i], path);
        if (place != NULL)
            return err_set(e, ERR_CONFIG_INVALID,
                           "%s (%.256s) would lie in %.256s, which workspace %s shows to its "
                           "commands; it is about what they and others may do, so put it outside "
                           "of every workspace and mount",
                           what, path, place, r->items[i]->id);
    }
    return 0;
}

/* /etc, above all: commands have our user's rights, so that a file is ours alone keeps nothing. */
static bool in_platform(const char *path)
{
    for (size_t i = 0; view_platform[i] != NULL; i++) {
        if (root_within(path, view_platform[i]))
            return true;
    }
    return false;
}

/* Who reads the whole file system would read it, too, and everybody what the platform has. */
static void hide(struct registry *r, const char *path, const char *suffix)
{
    for (size_t i = 0; i < r->n; i++) {
        struct workspace *ws = r->items[i];
        if ((ws->read == VIEW_READ_ALL || in_platform(path)) && !root_within(ws->root, path))
            strv_addf(&ws->hidden, "%s%s", path, suffix);
    }
}

int store_keep_from_commands(struct registry *r, const char *what, const char *path, struct err *e)
{
    autofree char *place = NULL;
    if (path == NULL || path[0] == '\0')
        return 0;
    if (resolve(what, path, &place, e) < 0)
        return e->sys == EACCES ? 0 : -1; /* where we may not go commands may not either */
    if (check_place(r, what, place, e) < 0)
        return -1;
    hide(r, place, "");
    return 0;
}

static const char *const ledger_files[] = {"", "-wal", "-shm", "-gateway"};

/* ---- recovery ---- */

static int observe(void *user, const char *workspace_id, const char *path,
                   char ret_version[FILES_VERSION_LEN])
{
    const struct registry *r = user;
    struct stat st;
    const struct workspace *ws = registry_get(r, workspace_id, NULL);
    if (ws == NULL)
        return -1;
    autofd int fd = path_open_regular(ws->root_fd, path, &st);
    if (fd == -ENOENT || fd == -ENOTDIR) {
        ret_version[0] = '\0';
        return 0;
    }
    return fd < 0 || version_of_fd(fd, ret_version) < 0 ? -1 : 0;
}

/* The journals lie beside the ledger, or in the state directory of the user when there is none. */
static char *journals_place(const struct store *s)
{
    const char *state = getenv("XDG_STATE_HOME");
    const char *home = getenv("HOME");
    if (!ledger_in_memory(s->ledger))
        return mem_printf("%s-journals", ledger_path(s->ledger));
    if (state != NULL && state[0] == '/' && access(state, W_OK) == 0)
        return mem_printf("%s/codespace/journals", state);
    if (home != NULL && home[0] == '/' && access(home, W_OK) == 0)
        return mem_printf("%s/.local/state/codespace/journals", home);
    return NULL;
}

/* Without a ledger there may be no place for them (no home, or one that is a workspace): then a
 * crash in the middle of a patch of several files is not undone, and workspace_info says so. */
static int open_journals(struct store *s, struct registry *r, struct err *e)
{
    struct err why;
    autofree char *path = journals_place(s);
    autofree char *place = NULL;
    bool needed = !ledger_in_memory(s->ledger);
    if (path == NULL)
        return 0;
    if (resolve("the journals", path, &place, &why) == 0 &&
        check_place(r, "the journals", place, &why) == 0 &&
        journal_roots_open(place, &s->journals, &why) == 0) {
        hide(r, place, "");
        return 0;
    }
    log_info("patches have no journal: %s", why.message);
    return needed ? err_set(e, why.code, "%s", why.message) : 0;
}

static void settle_journals(struct store *s, const struct registry *r)
{
    for (size_t i = 0; s->journals != NULL && i < r->n; i++)
        journal_roots_settle(s->journals, r->items[i]);
}

static int recover_approvals(struct store *s, struct err *e)
{
    struct approval_recovery found;
    if (approvals_recover(s->ledger, operation_render, NULL, &found, e) < 0)
        return -1;
    if (found.requeued + found.recovered + found.ambiguous > 0)
        log_warn("approved calls that the last gateway did not see the end of: %u to be resumed, "
                 "%u found done, %u of which nobody knows",
                 found.requeued, found.recovered, found.ambiguous);
    return 0;
}

static int recover(struct store *s, bool commands_outlive, struct registry *r, struct err *e)
{
    struct op_recovery found;
    if (ledger_in_memory(s->ledger))
        return 0;
    int lost = commands_outlive ? 0 : opstore_lose_commands(s->ledger, e);
    if (lost < 0 || opstore_recover(s->ledger, observe, r, &found, e) < 0)
        return -1;
    if (lost > 0)
        log_warn("%d commands ran when the last gateway ended: recorded as lost", lost);
    if (found.applied + found.rolled_back + found.left > 0)
        log_warn("patches that the last gateway did not see the end of: %u applied, %u not, %u of "
                 "which the disk does not tell",
                 found.applied, found.rolled_back, found.left);
    return recover_approvals(s, e);
}

int store_open(struct store *s, const char *path, bool commands_outlive, struct registry *r,
               struct err *e)
{
    struct ledger_options options = {.path = path, .role = LEDGER_GATEWAY};
    autofree char *place = NULL;
    bool file = path != NULL && path[0] != '\0';
    if (file && (resolve(LEDGER, path, &place, e) < 0 || check_place(r, LEDGER, place, e) < 0))
        return -1;
    if (ledger_open(&options, &s->ledger, e) < 0)
        return -1;
    if (file && check_place(r, LEDGER, ledger_path(s->ledger), e) < 0)
        return -1;
    for (size_t i = 0; file && i < ARRAY_LEN(ledger_files); i++)
        hide(r, ledger_path(s->ledger), ledger_files[i]);
    if (open_journals(s, r, e) < 0)
        return -1;
    settle_journals(s, r);
    return recover(s, commands_outlive, r, e);
}

void store_close(struct store *s)
{
    journal_roots_free(s->journals);
    ledger_free(s->ledger);
    *s = (struct store){0};
}

/* ---- doctor ---- */

bool store_report(const char *path, struct buf *out)
{
    struct err e;
    struct ledger_options options = {.path = path, .role = LEDGER_OPERATOR};
    autoledger *ledger = NULL;
    if (path == NULL || path[0] == '\0') {
        buf_puts(out, "ledger: in memory; operations, keys and approvals are forgotten at the end "
                      "(--ledger FILE keeps them)\n");
        return true;
    }
    if (access(path, F_OK) < 0 && errno == ENOENT) {
        buf_printf(out, "ledger: %s, made when a gateway starts with it\n", path);
        return true;
    }
    if (ledger_open(&options, &ledger, &e) < 0) {
        buf_printf(out, "ledger: cannot be used: %s\n", e.message);
        return false;
    }
    buf_printf(out, "ledger: on disk, %s\n", ledger_path(ledger));
    return true;
}
