/* sandbox/guard: see guard.h. */
#include "sandbox/guard.h"

#include "base/mem.h"
#include "sys/rmtree.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

/* Passes over a tree that is being removed: while the command lives it may refill it for ever, so
 * we soon turn to other events; at the end only its depth counts. */
#define PASSES_LIVE 64
#define PASSES_END 1000000

static const char *name_of(const struct guard *g, size_t i)
{
    return g->names->items[2 * i];
}

static const char *link_of(const struct guard *g, size_t i)
{
    return g->names->items[2 * i + 1];
}

/* Whether pair i is as it was planned: absent, or that very link. */
static bool is_right(const struct guard *g, size_t i)
{
    char target[PATH_MAX];
    ssize_t n = readlinkat(g->dir_fd, name_of(g, i), target, sizeof(target) - 1);
    if (n < 0)
        return errno == ENOENT && link_of(g, i)[0] == '\0';
    target[n] = '\0';
    return link_of(g, i)[0] != '\0' && strcmp(target, link_of(g, i)) == 0;
}

int guard_init(struct guard *g, const char *workspace, const struct strv *names, struct err *e)
{
    *g = (struct guard){.names = names, .workspace = workspace, .dir_fd = -1, .watch_fd = -1};
    if (names->len == 0)
        return 0;
    if (names->len / 2 > GUARD_NAMES_MAX)
        return err_set(e, ERR_PATH_PROTECTED, "more than %d protected names", GUARD_NAMES_MAX);
    g->dir_fd = open(workspace, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (g->dir_fd < 0)
        return err_sys(e, ERR_PATH_PROTECTED, errno, "%s cannot be watched", workspace);
    for (size_t i = 0; i < names->len / 2; i++) {
        if (!is_right(g, i))
            return err_set(e, ERR_PATH_PROTECTED,
                           "%s/%s changed after the plan was made; prepare it again", workspace,
                           name_of(g, i));
    }
    return 0;
}

void guard_watch(struct guard *g)
{
    if (g->names->len == 0)
        return;
    g->watch_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (g->watch_fd >= 0)
        inotify_add_watch(g->watch_fd, g->workspace,
                          IN_CREATE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_ONLYDIR);
    guard_on_event(g);
}

void guard_fini(struct guard *g)
{
    if (g->dir_fd >= 0)
        close(g->dir_fd);
    if (g->watch_fd >= 0)
        close(g->watch_fd);
    g->dir_fd = g->watch_fd = -1;
}

static int put_right(struct guard *g, size_t i, unsigned passes)
{
    int rc = rmtree(g->dir_fd, name_of(g, i), passes);
    if (rc == 0 && link_of(g, i)[0] != '\0' &&
        symlinkat(link_of(g, i), g->dir_fd, name_of(g, i)) < 0)
        rc = -errno;
    return rc;
}

static int check(struct guard *g, size_t i, unsigned passes)
{
    if (is_right(g, i))
        return 0;
    g->touched[i] = true;
    return put_right(g, i, passes);
}

void guard_on_event(struct guard *g)
{
    char events[4096];
    while (read(g->watch_fd, events, sizeof(events)) > 0)
        continue;
    for (size_t i = 0; i < g->names->len / 2; i++)
        check(g, i, PASSES_LIVE);
}

/* A command may have taken our permission to change its own directory. */
static int sweep_with_permission(struct guard *g, size_t i)
{
    struct stat st;
    int rc = check(g, i, PASSES_END);
    if ((rc != -EACCES && rc != -EPERM) || fstat(g->dir_fd, &st) < 0 ||
        fchmod(g->dir_fd, (st.st_mode & 07777) | S_IRWXU) < 0)
        return rc;
    rc = check(g, i, PASSES_END);
    fchmod(g->dir_fd, st.st_mode & 07777);
    return rc;
}

int guard_sweep(struct guard *g, struct err *e)
{
    for (size_t i = 0; i < g->names->len / 2; i++) {
        int rc = sweep_with_permission(g, i);
        if (rc < 0)
            return err_sys(e, ERR_FILE_OPERATION_FAILED, rc,
                           "%s/%s was created by the command and could not be taken away",
                           g->workspace, name_of(g, i));
    }
    return 0;
}
