/* sandbox/codex_view: see codex_view.h. */
#include "sandbox/codex_view.h"

#include "base/mem.h"
#include "base/str.h"
#include "sandbox/paths.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool codex_view_full_write(const struct codex_profile *p)
{
    bool write = p->unrestricted;
    for (size_t i = 0; i < p->n; i++)
        write |= p->entries[i].kind == CODEX_ROOT && p->entries[i].access == CODEX_WRITE;
    for (size_t i = 0; i < p->n; i++)
        write &= p->entries[i].access == CODEX_WRITE || p->entries[i].kind == CODEX_ROOT;
    return write;
}

bool codex_view_plain_read(const struct codex_profile *p)
{
    bool root = false;
    for (size_t i = 0; i < p->n; i++) {
        if (p->entries[i].access != CODEX_READ)
            return false;
        root |= p->entries[i].kind == CODEX_ROOT;
    }
    return root && !p->unrestricted;
}

char *codex_view_cwd(const char *command_cwd, const char *policy_cwd)
{
    char *real = realpath(command_cwd != NULL ? command_cwd : ".", NULL);
    return real != NULL ? real : mem_strdup(policy_cwd);
}

/* The path an entry names, canonical; NULL when it is not there or names no place of its own. */
static char *place_of(const struct codex_entry *it, const char *cwd)
{
    const char *tmp = getenv("TMPDIR");
    autofree char *path = NULL;
    switch (it->kind) {
    case CODEX_PATH:
        path = it->text[0] == '/' ? mem_strdup(it->text) : mem_printf("%s/%s", cwd, it->text);
        break;
    case CODEX_PROJECT:
        path = it->text == NULL ? mem_strdup(cwd) : mem_printf("%s/%s", cwd, it->text);
        break;
    case CODEX_TMPDIR:
        path = mem_strdup(tmp != NULL && tmp[0] == '/' ? tmp : NULL);
        break;
    case CODEX_SLASH_TMP:
        path = mem_strdup("/tmp");
        break;
    default:
        break;
    }
    return path == NULL ? NULL : realpath(path, NULL);
}

/* Of the entries for one place: deny before write before read. */
static void add_mount(struct view *v, const char *path, bool writable)
{
    for (size_t i = 0; i < v->n_mounts; i++) {
        if (str_eq(v->mounts[i].path, path)) {
            v->mounts[i].writable |= writable;
            return;
        }
    }
    v->mounts = mem_realloc(v->mounts, v->n_mounts + 1, sizeof(*v->mounts));
    v->mounts[v->n_mounts++] = (struct view_mount){mem_strdup(path), writable, writable};
}

static int take_pattern(const struct codex_entry *it, struct view *v, struct err *e)
{
    size_t n = strlen(v->workspace);
    const char *text = it->text;
    if (text[0] == '/' && strncmp(text, v->workspace, n) == 0 && text[n] == '/')
        text += n + 1;
    if (text[0] == '/')
        return err_set(e, ERR_INVALID_COMMAND,
                       "the pattern %.200s leaves the policy's directory, which is all that is "
                       "searched",
                       it->text);
    /* There a pattern is taken from the policy's directory, here a plain name is one at any depth.
     */
    if (strchr(text, '/') == NULL)
        strv_addf(&v->deny, "./%s", text);
    else
        strv_add(&v->deny, text);
    return 0;
}

static int take_entry(const struct codex_entry *it, struct view *v, struct err *e)
{
    if (it->kind == CODEX_ROOT && it->access == CODEX_WRITE)
        return err_set(e, ERR_INVALID_COMMAND,
                       "the whole disk writable but for some places is not offered; name the "
                       "directories that are to be writable");
    if (it->kind == CODEX_ROOT)
        v->read = it->access == CODEX_READ ? VIEW_READ_ALL : v->read;
    if (it->kind == CODEX_GLOB)
        return take_pattern(it, v, e);
    autofree char *path = place_of(it, v->workspace);
    if (path == NULL)
        return 0;
    if (it->access == CODEX_DENY) {
        strv_add(&v->hidden, path);
        return 0;
    }
    if (str_eq(path, "/tmp"))
        v->shared_tmp |= it->access == CODEX_WRITE;
    else if (str_eq(path, v->workspace))
        v->workspace_writable |= it->access == CODEX_WRITE;
    else
        add_mount(v, path, it->access == CODEX_WRITE);
    return 0;
}

/* A mount that is denied, too, is hidden; our own /tmp needs no hiding. */
static void settle_denials(struct view *v)
{
    struct strv kept = {0};
    for (size_t i = 0; i < v->hidden.len; i++) {
        const char *path = v->hidden.items[i];
        if (!str_eq(path, "/tmp") || v->shared_tmp)
            strv_add(&kept, path);
    }
    strv_fini(&v->hidden);
    v->hidden = kept;
}

int codex_view_make(const struct codex_profile *p, const char *policy_cwd, struct view *ret,
                    struct err *e)
{
    if (p->network)
        return err_set(e, ERR_INVALID_COMMAND,
                       "the network of the host beside a restricted file system is not offered; "
                       "use network \"restricted\"");
    ret->workspace = realpath(policy_cwd, NULL);
    if (ret->workspace == NULL)
        return err_set(e, ERR_INVALID_COMMAND, "--sandbox-policy-cwd %.200s is not there",
                       policy_cwd);
    for (size_t i = 0; i < p->n; i++) {
        if (take_entry(&p->entries[i], ret, e) < 0)
            return -1;
    }
    settle_denials(ret);
    for (size_t i = 0; view_protected[i] != NULL; i++)
        strv_add(&ret->protect, view_protected[i]);
    strv_add(&ret->protect, ".aws");
    return 0;
}
