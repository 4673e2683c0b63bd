/* sandbox/scope: see scope.h. */
#include "sandbox/scope.h"

#include "base/mem.h"
#include "base/str.h"
#include "sandbox/deny.h"
#include "sandbox/layout.h"
#include "sandbox/masks.h"
#include "sandbox/paths.h"
#include "sandbox/protect.h"
#include "sandbox/secrets.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <unistd.h>

/* The private /tmp takes at most this much memory, and never more than half of the machine's. */
#define TMP_BYTES_MAX (4ull << 30)

#define autolayout __attribute__((cleanup(layout_fini))) struct layout

/* ---- what may be a workspace or a mount ---- */

/* Directories that are ours inside, whatever the host has there. */
static const char *const ours[] = {"/proc", "/sys", "/dev", "/tmp"};

static int check_place(const char *what, const char *path, bool writable, struct err *e)
{
    if (path[1] == '\0')
        return err_set(e, ERR_INVALID_COMMAND,
                       "%s: the root directory itself cannot be one; to show the whole file "
                       "system read-only ask for read \"all\"",
                       what);
    for (size_t i = 0; i < ARRAY_LEN(ours); i++) {
        bool kernel = i < 2 && paths_within(path, ours[i]);
        if (kernel || strcmp(path, ours[i]) == 0)
            return err_set(e, ERR_INVALID_COMMAND,
                           "%s: %s is private inside the sandbox; choose another directory", what,
                           path);
    }
    for (size_t i = 0; writable && view_platform[i] != NULL; i++) {
        if (paths_within(view_platform[i], path))
            return err_set(e, ERR_INVALID_COMMAND,
                           "%s: %s is or holds a directory of the platform (%s) and cannot be "
                           "writable; choose a directory of its own",
                           what, path, view_platform[i]);
    }
    return 0;
}

/* Through a link somebody could choose afterwards what is mounted. */
static int check_canonical(const char *what, const char *path, struct err *e)
{
    autofree char *real = realpath(path, NULL);
    if (real == NULL)
        return err_sys(e, ERR_INVALID_COMMAND, errno, "%s: %s", what, path);
    if (strcmp(real, path) != 0)
        return err_set(e, ERR_INVALID_COMMAND,
                       "%s: %s leads through a symbolic link; give the real path %s", what, path,
                       real);
    return 0;
}

static int check_view(const struct view *v, struct err *e)
{
    struct stat st;
    if (check_place("workspace_root", v->workspace, v->workspace_writable, e) < 0 ||
        check_canonical("workspace_root", v->workspace, e) < 0)
        return -1;
    if (stat(v->workspace, &st) < 0 || !S_ISDIR(st.st_mode))
        return err_set(e, ERR_INVALID_COMMAND, "workspace_root: %s is not a directory",
                       v->workspace);
    for (size_t i = 0; i < v->n_mounts; i++) {
        const struct view_mount *m = &v->mounts[i];
        if (check_place("mounts", m->path, m->writable, e) < 0 ||
            check_canonical("mounts", m->path, e) < 0)
            return -1;
    }
    for (size_t i = 0; i < v->hidden.len; i++) {
        if (strcmp(v->hidden.items[i], v->workspace) == 0)
            return err_set(e, ERR_INVALID_COMMAND, "hidden: %s is the workspace itself",
                           v->workspace);
    }
    return 0;
}

/* ---- the items ---- */

static bool in_platform(const char *path)
{
    for (size_t i = 0; view_platform[i] != NULL; i++) {
        if (paths_within(path, view_platform[i]))
            return true;
    }
    return false;
}

/* A link stays a link when it leads to another part of the platform; else its target is shown in
 * its place. The whole view shows all that already, but for rows below a directory that may be
 * hidden (/run). */
static void add_platform(struct layout *l)
{
    for (size_t i = 0; view_platform[i] != NULL; i++) {
        const char *path = view_platform[i];
        char target[PATH_MAX];
        autofree char *real = realpath(path, NULL);
        if (real == NULL || (l->whole && strchr(path + 1, '/') == NULL))
            continue;
        ssize_t n = readlink(path, target, sizeof(target) - 1);
        if (n > 0 && in_platform(real)) {
            target[n] = '\0';
            layout_add(l, LAYOUT_LINK, LAYOUT_RANK_PLATFORM, path, target);
        } else {
            layout_add(l, LAYOUT_HOST, LAYOUT_RANK_PLATFORM, path, real);
        }
    }
}

/* Names of /dev that must exist; a disk or the memory of the machine is not among them. */
static int add_devices(const struct view *v, struct layout *l, struct err *e)
{
    struct stat st;
    for (size_t i = 0; i < v->devices.len; i++) {
        const char *path = v->devices.items[i];
        if (!paths_within(path, "/dev") || strlen(path) <= strlen("/dev/"))
            return err_set(e, ERR_INVALID_COMMAND, "devices: %s does not lie in /dev", path);
        if (check_canonical("devices", path, e) < 0)
            return -1;
        if (lstat(path, &st) < 0 || (!S_ISCHR(st.st_mode) && !S_ISDIR(st.st_mode)))
            return err_set(e, ERR_INVALID_COMMAND,
                           "devices: %s is neither a character device nor a directory", path);
        layout_add(l, LAYOUT_DEVICE, LAYOUT_RANK_MOUNT, path, NULL);
    }
    return 0;
}

static void add_private(const struct view *v, struct layout *l)
{
    if (v->shared_tmp) {
        layout_add(l, LAYOUT_BIND_RW, LAYOUT_RANK_PRIVATE, "/tmp", NULL);
        layout_add(l, LAYOUT_DIR, LAYOUT_RANK_PRIVATE, SCOPE_HOME_SHARED_TMP, NULL);
        return;
    }
    struct sysinfo info = {0};
    unsigned long long bytes = TMP_BYTES_MAX;
    if (sysinfo(&info) == 0 && (unsigned long long)info.totalram * info.mem_unit / 2 < bytes)
        bytes = (unsigned long long)info.totalram * info.mem_unit / 2;
    autofree char *size = mem_printf("%llu", bytes);
    layout_add(l, LAYOUT_TMPFS, LAYOUT_RANK_PRIVATE, "/tmp", size);
    layout_add(l, LAYOUT_DIR, LAYOUT_RANK_PRIVATE, SCOPE_HOME, NULL);
}

static void add_binds(const struct view *v, struct layout *l)
{
    for (size_t i = 0; i < v->n_mounts; i++)
        layout_add(l, v->mounts[i].writable ? LAYOUT_BIND_RW : LAYOUT_BIND, LAYOUT_RANK_MOUNT,
                   v->mounts[i].path, NULL);
    layout_add(l, v->workspace_writable ? LAYOUT_BIND_RW : LAYOUT_BIND, LAYOUT_RANK_WORKSPACE,
               v->workspace, NULL);
}

/* For anybody else the modes of these files are in the way. */
static void look_at_machine(struct layout *l)
{
    for (size_t i = 0; layout_machine[i] != NULL && getuid() == 0 && !l->inherited_proc; i++)
        l->machine[i] = access(layout_machine[i], F_OK) == 0;
}

int scope_build(const struct view *v, struct plan *p, struct err *e)
{
    autolayout l = {.whole = v->read == VIEW_READ_ALL,
                    .masks = !masks_possible() ? 0
                             : v->masks_always ? 1
                                               : masks_worth(p->namespaces),
                    .inherited_proc = v->inherited_proc};
    if (check_view(v, e) < 0 || add_devices(v, &l, e) < 0)
        return -1;
    look_at_machine(&l);
    add_platform(&l);
    add_private(v, &l);
    add_binds(v, &l);
    protect_add(v, &l, p);
    secrets_add(v, &l);
    if (deny_add(v, &l, e) < 0)
        return -1;
    return layout_write(&l, p, e);
}
