/* sandbox/environ: see environ.h. */
#include "sandbox/environ.h"

#include "base/mem.h"
#include "sandbox/netenv.h"
#include "sandbox/scope.h"
#include "wire/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void set(struct strv *env, const char *entry)
{
    size_t name = strcspn(entry, "=") + 1;
    for (size_t i = 0; i < env->len; i++) {
        if (strncmp(env->items[i], entry, name) == 0) {
            free(env->items[i]);
            env->items[i] = mem_strdup(entry);
            return;
        }
    }
    strv_add(env, entry);
}

__attribute__((format(printf, 2, 3))) static void setf(struct strv *env, const char *format, ...)
{
    char entry[8192];
    va_list ap;
    va_start(ap, format);
    vsnprintf(entry, sizeof(entry), format, ap);
    va_end(ap);
    set(env, entry);
}

/* The name of a user id in /etc/passwd. Read by hand: the library's look-up would load modules
 * into a static program. "user" when there is none. */
static char *user_name(uid_t uid)
{
    FILE *f = fopen("/etc/passwd", "re");
    char *line = NULL;
    char *found = NULL;
    size_t cap = 0;
    while (f != NULL && found == NULL && getline(&line, &cap, f) > 0) {
        char *colon = strchr(line, ':');
        char *id = colon == NULL ? NULL : strchr(colon + 1, ':');
        if (id != NULL && id[1] >= '0' && id[1] <= '9' && strtoul(id + 1, NULL, 10) == uid)
            found = mem_dup(line, (size_t)(colon - line));
    }
    free(line);
    if (f != NULL)
        fclose(f);
    return found != NULL ? found : mem_strdup("user");
}

/* The workspace may belong to somebody else (B10); git then wants to be told. */
static void set_git_trust(struct strv *env, const char *workspace)
{
    set(env, "GIT_CONFIG_COUNT=1");
    set(env, "GIT_CONFIG_KEY_0=safe.directory");
    setf(env, "GIT_CONFIG_VALUE_0=%s", workspace);
}

static void set_entry(void *env, const char *entry)
{
    set(env, entry);
}

void environ_build(const struct helper_request *r, struct strv *ret)
{
    struct strv env = {0};
    bool shown = r->user_namespaces && getuid() == 0;
    autofree char *user = user_name(shown ? PLAN_ROOT_SHOWN : getuid());
    for (size_t i = 0; view_environment[i] != NULL; i++)
        strv_add(&env, view_environment[i]);
    if (r->view.shared_tmp)
        set(&env, "HOME=" SCOPE_HOME_SHARED_TMP);
    if (r->tty)
        set(&env, "TERM=xterm");
    setf(&env, "USER=%s", user);
    setf(&env, "LOGNAME=%s", user);
    setf(&env, "PWD=%s", r->cwd);
    set(&env, "CODESPACE_SANDBOX=linux-sandbox");
    set(&env, "CODESPACE_NETWORK=restricted");
    set_git_trust(&env, r->view.workspace);
    for (size_t i = 0; i < r->env.len; i++)
        set(&env, r->env.items[i]);
    if (r->network == HELPER_NETWORK_ENABLED)
        netenv_each(set_entry, &env);
    if (r->network == HELPER_NETWORK_ENABLED && inject_has_intercept(&r->egress.inject))
        netenv_each_ca(set_entry, &env);
    *ret = env;
}

void environ_copy(const struct strv *base, struct strv *ret)
{
    struct strv env = {0};
    for (size_t i = 0; i < base->len; i++)
        strv_add(&env, base->items[i]);
    *ret = env;
}

void environ_lay(struct strv *env, bool tty, const char *cwd, const struct strv *entries)
{
    /* Before the command's own entries are there, which are not to be asked. */
    bool network = strv_has(env, "CODESPACE_NETWORK=enabled");
    bool intercept = strv_has(env, NETENV_CA_MARK);
    if (tty)
        set(env, "TERM=xterm");
    setf(env, "PWD=%s", cwd);
    for (size_t i = 0; i < entries->len; i++)
        set(env, entries->items[i]);
    if (network)
        netenv_each(set_entry, env);
    if (intercept)
        netenv_each_ca(set_entry, env);
}

void environ_lay_over(const struct strv *base, bool tty, const char *cwd,
                      const struct strv *entries, struct strv *ret)
{
    environ_copy(base, ret);
    environ_lay(ret, tty, cwd, entries);
}
