/* sandbox/secrets: see secrets.h. */
#include "sandbox/secrets.h"

#include "base/mem.h"
#include "base/str.h"
#include "sandbox/paths.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Whether hiding `path` would take a directory of the platform, or everything, with it. The rows
 * deeper in the tree are shown again by sandbox/scope, so what holds them may be hidden. */
static bool holds_platform(const char *path)
{
    for (size_t i = 0; view_platform[i] != NULL; i++) {
        if (strchr(view_platform[i] + 1, '/') == NULL && paths_within(view_platform[i], path))
            return true;
    }
    return false;
}

/* `real` is the path that realpath(3) gives: asking for it costs a system call a directory. */
static void hide_real(struct layout *l, enum layout_rank rank, const char *real)
{
    struct stat st;
    if (stat(real, &st) < 0 || holds_platform(real))
        return;
    /* What is somebody else's and we may not read the command may not either: it has our rights,
     * and capabilities at most over what is its own. */
    if (rank == LAYOUT_RANK_SECRET && st.st_uid != geteuid() && geteuid() != 0 &&
        access(real, R_OK) < 0 && (!S_ISDIR(st.st_mode) || access(real, X_OK) < 0))
        return;
    layout_add(l, S_ISDIR(st.st_mode) ? LAYOUT_HIDE_DIR : LAYOUT_HIDE_FILE, rank, real, NULL);
}

static void hide(struct layout *l, enum layout_rank rank, const char *path)
{
    struct stat st;
    if (lstat(path, &st) < 0) /* most rows of a table: realpath(3) would ask for each directory */
        return;
    autofree char *real = realpath(path, NULL);
    if (real != NULL)
        hide_real(l, rank, real);
}

static void hide_table(struct layout *l, const char *const *table)
{
    for (; *table != NULL; table++)
        hide(l, LAYOUT_RANK_SECRET, *table);
}

static void hide_home(struct layout *l, const char *home)
{
    if (home == NULL || home[0] != '/' || home[1] == '\0' || access(home, X_OK) < 0)
        return;
    for (size_t i = 0; view_home_secrets[i] != NULL; i++) {
        autofree char *path = mem_printf("%s/%s", home, view_home_secrets[i]);
        if (access(path, F_OK) == 0)
            hide(l, LAYOUT_RANK_SECRET, path);
    }
}

/* The sixth field of every line: name:password:uid:gid:comment:home:shell */
static void add_homes_of_users(struct strv *homes)
{
    FILE *f = fopen("/etc/passwd", "re");
    char *line = NULL;
    size_t cap = 0;
    while (f != NULL && getline(&line, &cap, f) > 0) {
        char *field = line;
        for (int i = 0; i < 5 && field != NULL; i++) {
            field = strchr(field, ':');
            field = field == NULL ? NULL : field + 1;
        }
        if (field == NULL)
            continue;
        field[strcspn(field, ":\n")] = '\0';
        if (!strv_has(homes, field))
            strv_add(homes, field);
    }
    free(line);
    if (f != NULL)
        fclose(f);
}

static void add_homes_of_directory(struct strv *homes, const char *dir)
{
    DIR *d = opendir(dir);
    for (struct dirent *it = d == NULL ? NULL : readdir(d); it != NULL; it = readdir(d)) {
        autofree char *home = mem_printf("%s/%s", dir, it->d_name);
        if (it->d_name[0] != '.' && !strv_has(homes, home))
            strv_add(homes, home);
    }
    if (d != NULL)
        closedir(d);
}

static void hide_homes(struct layout *l)
{
    autostrv homes = {0};
    strv_add(&homes, "/root");
    if (getenv("HOME") != NULL)
        strv_add(&homes, getenv("HOME"));
    add_homes_of_users(&homes);
    add_homes_of_directory(&homes, "/home");
    for (size_t i = 0; i < homes.len; i++)
        hide_home(l, homes.items[i]);
}

/* The paths of every socket that listens in our network namespace (C15): a path socket does not
 * care for the one that a command has. Sockets of other namespaces, those bound by a relative path,
 * and what comes after the plan are not in the list. */
static void hide_sockets(struct layout *l)
{
    FILE *f = fopen("/proc/net/unix", "re");
    char *line = NULL;
    size_t cap = 0;
    struct stat st;
    while (f != NULL && getline(&line, &cap, f) > 0) {
        char *path = strstr(line, " /");
        if (path == NULL)
            continue;
        path++;
        path[strcspn(path, "\n")] = '\0';
        if (lstat(path, &st) == 0 && S_ISSOCK(st.st_mode) && access(path, W_OK) == 0)
            hide(l, LAYOUT_RANK_SECRET, path);
    }
    free(line);
    if (f != NULL)
        fclose(f);
}

/* The operator's: where a command can write it must not be moved to another name either. */
static void hide_named(struct layout *l, const char *path)
{
    autofree char *real = realpath(path, NULL);
    if (real == NULL)
        return;
    layout_fence(l, real);
    hide_real(l, LAYOUT_RANK_HIDDEN, real);
}

void secrets_add(const struct view *v, struct layout *l)
{
    hide_table(l, view_etc_secrets);
    if (v->read == VIEW_READ_ALL) {
        hide_table(l, view_host_secrets);
        hide_homes(l);
        hide_sockets(l);
    }
    for (size_t i = 0; i < v->hidden.len; i++)
        hide_named(l, v->hidden.items[i]);
}
