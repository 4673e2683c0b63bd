/* core/registry_egress: see registry_egress.h. */
#include "core/registry_egress.h"

#include "base/mem.h"
#include "base/num.h"
#include "core/root.h"
#include "sys/trusted.h"
#include "wire/json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A socket in the workspace could be exchanged for another by a command. */
static int check_sockets(const struct workspace *ws, const struct egress_policy *policy,
                         const char *where, struct err *e)
{
    for (size_t i = 0; i < policy->unix_sockets.len; i++) {
        const char *path = policy->unix_sockets.items[i];
        if (root_check_normal(path, e) < 0)
            return err_wrap(e, "%s.unix_sockets[%zu]", where, i);
        if (root_within(path, ws->root))
            return err_set(e, ERR_CONFIG_INVALID,
                           "%s.unix_sockets[%zu]: \"%.256s\" lies in the workspace and is reached "
                           "without a grant",
                           where, i, path);
    }
    return 0;
}

/* As the helper will demand it at each start; here the operator is told. */
static int check_credential(const char *path, struct err *e)
{
    struct stat st;
    if (root_check_canonical(path, e) < 0)
        return -1;
    if (lstat(path, &st) < 0)
        return err_sys(e, ERR_CONFIG_INVALID, errno, "cannot look at \"%.256s\"", path);
    if (!S_ISREG(st.st_mode))
        return err_set(e, ERR_CONFIG_INVALID, "\"%.256s\" is not a regular file", path);
    if (st.st_uid != geteuid() && st.st_uid != 0)
        return err_set(e, ERR_CONFIG_INVALID, "\"%.256s\" belongs to another user", path);
    if ((st.st_mode & 0077) != 0)
        return err_set(e, ERR_CONFIG_INVALID,
                       "others may read or write \"%.256s\" (mode %04o), so it is no secret; chmod "
                       "600",
                       path, (unsigned)(st.st_mode & 07777));
    return 0;
}

static int check_program(const char *path, struct err *e)
{
    autofree char *real = NULL;
    const char *why = "";
    int rc = trusted_program(path, &real, &why);
    if (rc == -EPERM && *why != '\0')
        return err_set(e, ERR_CONFIG_INVALID, "\"%.256s\" %s", path, why);
    return rc < 0 ? err_sys(e, ERR_CONFIG_INVALID, rc, "cannot look at \"%.256s\"", path) : 0;
}

static int check_credentials(const struct workspace *ws, const char *where, struct err *e)
{
    const struct inject_rules *all = &ws->egress.inject;
    for (size_t i = 0; i < all->len; i++) {
        const struct inject_rule *r = &all->items[i];
        if (r->file != NULL && check_credential(r->file, e) < 0)
            return err_wrap(e, "%s.inject[%zu].file", where, i);
        if (r->command.len > 0 && check_program(r->command.items[0], e) < 0)
            return err_wrap(e, "%s.inject[%zu].command[0]", where, i);
    }
    return 0;
}

static bool is_reached(const struct workspace *ws, const char *path)
{
    bool reached = root_within(path, ws->root);
    for (size_t i = 0; i < ws->n_mounts; i++)
        reached |= ws->mounts[i].writable && root_within(path, ws->mounts[i].path);
    return reached;
}

/* The program and what it is given: a script in a workspace is a program that a command writes. */
static int keep_command(const struct workspace *other, const struct workspace *ws, size_t rule,
                        struct err *e)
{
    const struct strv *words = &other->egress.inject.items[rule].command;
    for (size_t i = 0; i < words->len; i++) {
        const char *word = words->items[i];
        autofree char *real = word[0] == '/' ? realpath(word, NULL) : NULL;
        if (word[0] == '/' && (is_reached(ws, word) || (real != NULL && is_reached(ws, real))))
            return err_set(e, ERR_CONFIG_INVALID,
                           "egress.inject[%zu].command[%zu] of \"%s\": \"%.256s\" lies where "
                           "commands or tools of \"%s\" could write it; keep it outside of every "
                           "workspace",
                           rule, i, other->id, word, ws->id);
    }
    return 0;
}

int registry_egress_keep(const struct workspace *other, struct workspace *ws, struct err *e)
{
    const struct inject_rules *all = &other->egress.inject;
    for (size_t i = 0; i < all->len; i++) {
        const char *path = all->items[i].file;
        if (keep_command(other, ws, i, e) < 0)
            return -1;
        if (path == NULL)
            continue;
        if (is_reached(ws, path))
            return err_set(e, ERR_CONFIG_INVALID,
                           "egress.inject[%zu].file of \"%s\": \"%.256s\" lies where commands or "
                           "tools of \"%s\" reach it; keep it outside of every workspace",
                           i, other->id, path, ws->id);
        if (!strv_has(&ws->hidden, path))
            strv_add(&ws->hidden, path);
    }
    if (ws->hidden.len > VIEW_PATHS_MAX)
        return err_set(e, ERR_CONFIG_INVALID,
                       "egress.inject: \"%s\" would have to hide more than VIEW_PATHS_MAX (%d) "
                       "places; use fewer files",
                       ws->id, VIEW_PATHS_MAX);
    return 0;
}

static int refuse_restricted(const char *where, const char *key, struct err *e)
{
    return err_set(e, ERR_CONFIG_INVALID,
                   "%s.%s: has no effect while \"network\" is \"restricted\"; write \"network\": "
                   "\"enabled\" beside it, or take it out",
                   where, key);
}

static int take_publish(struct json_object *array, const char *where, struct workspace *ws,
                        struct err *e)
{
    if (array == NULL)
        return 0;
    return helper_publish_read(array, where, ws->publish, &ws->n_publish, ERR_CONFIG_INVALID, e);
}

int registry_egress_take(const struct registry_egress *in, const char *where, struct workspace *ws,
                         struct err *e)
{
    if (ws->network != NETWORK_ENABLED && in->egress != NULL)
        return refuse_restricted(where, "egress", e);
    if (ws->network != NETWORK_ENABLED && in->publish != NULL)
        return refuse_restricted(where, "publish", e);
    autofree char *key = mem_printf("%s.egress", where);
    if (in->egress != NULL && egress_policy_read(in->egress, key, &ws->egress, e) < 0)
        return -1;
    if (check_sockets(ws, &ws->egress, key, e) < 0 || check_credentials(ws, key, e) < 0)
        return -1;
    return take_publish(in->publish, where, ws, e);
}

int registry_egress_replace(struct workspace *ws, struct json_object *egress, struct err *e)
{
    autoegress fresh = {0};
    if (ws->network != NETWORK_ENABLED)
        return err_set(
            e, ERR_CONFIG_INVALID,
            "egress: has no effect while \"network\" of \"%s\" is \"restricted\"; that is "
            "changed in the configuration, with a restart",
            ws->id);
    if (json_get(egress, "inject") != NULL)
        return err_set(e, ERR_CONFIG_INVALID,
                       "egress.inject: is taken from the configuration at the start only; leave it "
                       "out, what is there stays");
    if (egress_policy_read(egress, "egress", &fresh, e) < 0 ||
        check_sockets(ws, &fresh, "egress", e) < 0)
        return -1;
    fresh.inject = ws->egress.inject;
    ws->egress.inject = (struct inject_rules){0};
    egress_policy_fini(&ws->egress);
    ws->egress = fresh;
    fresh = (struct egress_policy){0};
    return 0;
}

void registry_egress_write(const struct workspace *ws, char **ret_policy, struct strv *ret_publish)
{
    struct buf text = BUF_INIT;
    struct jsonw w;
    if (ws->network == NETWORK_ENABLED) {
        jsonw_init(&w, &text);
        egress_policy_write(&ws->egress, &w);
    }
    *ret_policy = buf_steal(&text);
    for (size_t i = 0; i < ws->n_publish; i++)
        strv_addf(ret_publish, "%u", ws->publish[i]);
}

int registry_egress_read(const char *policy, const struct strv *publish, struct workspace *ws,
                         struct err *e)
{
    if (policy[0] != '\0' && egress_policy_parse(policy, strlen(policy), &ws->egress, e) < 0)
        return -1;
    if (publish->len > HANDOVER_PUBLISH_MAX)
        return err_set(e, ERR_PARSE_ERROR, "publish: more than HANDOVER_PUBLISH_MAX");
    for (size_t i = 0; i < publish->len; i++) {
        uint64_t port;
        if (num_parse_u64(publish->items[i], 1, UINT16_MAX, &port) < 0)
            return err_set(e, ERR_PARSE_ERROR, "publish: not a port");
        ws->publish[ws->n_publish++] = (uint16_t)port;
    }
    return 0;
}
