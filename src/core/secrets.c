/* core/secrets: see secrets.h. */
#include "core/secrets.h"

#include "base/mem.h"
#include "core/root.h"

#include <dirent.h>
#include <limits.h>
#include <pwd.h>
#include <string.h>
#include <unistd.h>

/* Whether the root or a mount of `ws` shows `path`. */
static bool shows(const struct workspace *ws, const char *path)
{
    if (root_within(path, ws->root))
        return true;
    for (size_t i = 0; i < ws->n_mounts; i++) {
        if (root_within(path, ws->mounts[i].path))
            return true;
    }
    return false;
}

/* Whether the operator named `path` or something in it. */
static bool named(const struct workspace *ws, const char *path)
{
    if (root_within(ws->root, path))
        return true;
    for (size_t i = 0; i < ws->n_mounts; i++) {
        if (root_within(ws->mounts[i].path, path))
            return true;
    }
    return false;
}

static bool covered(const struct strv *hidden, const char *path)
{
    for (size_t i = 0; i < hidden->len; i++) {
        if (root_within(path, hidden->items[i]))
            return true;
    }
    return false;
}

static void consider(struct workspace *ws, const char *path)
{
    if (shows(ws, path) && !named(ws, path) && !covered(&ws->hidden, path))
        strv_add(&ws->hidden, path);
}

/* A place below a home that is a symbolic link is hidden at both its ends. Most places are not
 * there, which access() tells with one system call. */
static void consider_home(struct workspace *ws, const char *home)
{
    char real[PATH_MAX];
    for (size_t i = 0; view_home_secrets[i] != NULL; i++) {
        autofree char *path = mem_printf("%s/%s", home, view_home_secrets[i]);
        consider(ws, path);
        if (access(path, F_OK) == 0 && realpath(path, real) != NULL)
            consider(ws, real);
    }
}

static void add_home(struct strv *homes, const char *path)
{
    char real[PATH_MAX];
    if (path == NULL || path[0] != '/' || realpath(path, real) == NULL || str_eq(real, "/") ||
        strv_has(homes, real))
        return;
    strv_add(homes, real);
}

/* Who is root can read everybody's home; anybody else is stopped by the modes of the secrets. */
static void add_all_homes(struct strv *homes)
{
    add_home(homes, "/root");
    DIR *dir = opendir("/home");
    if (dir == NULL)
        return;
    for (struct dirent *d = readdir(dir); d != NULL; d = readdir(dir)) {
        autofree char *path = mem_printf("/home/%s", d->d_name);
        if (d->d_name[0] != '.')
            add_home(homes, path);
    }
    closedir(dir);
}

static void find_homes(struct strv *homes)
{
    const struct passwd *pw = getpwuid(geteuid());
    add_home(homes, getenv("HOME"));
    if (pw != NULL)
        add_home(homes, pw->pw_dir);
    if (geteuid() == 0)
        add_all_homes(homes);
}

int secrets_find(struct workspace *ws, struct err *e)
{
    autostrv homes = {0};
    for (size_t i = 0; i < ws->hide.len; i++) {
        if (!covered(&ws->hidden, ws->hide.items[i]))
            strv_add(&ws->hidden, ws->hide.items[i]);
    }
    find_homes(&homes);
    for (size_t i = 0; i < homes.len; i++)
        consider_home(ws, homes.items[i]);
    for (size_t i = 0; view_host_secrets[i] != NULL; i++)
        consider(ws, view_host_secrets[i]);
    for (size_t i = 0; view_etc_secrets[i] != NULL; i++)
        consider(ws, view_etc_secrets[i]);
    if (ws->hidden.len > VIEW_PATHS_MAX)
        return err_set(e, ERR_CONFIG_INVALID,
                       "hide: %zu places would have to be hidden, more than VIEW_PATHS_MAX (%d); "
                       "hide a directory that contains many of them (such as \"/home\")",
                       ws->hidden.len, VIEW_PATHS_MAX);
    return 0;
}
