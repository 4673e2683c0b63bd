/* sandbox/guard: see guard.h. */
#include "sandbox/guard.h"

#include "base/mem.h"
#include "sys/guarded.h"

#include <fcntl.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

/* Passes over a tree that is being removed: while the command lives it may refill it for ever, so
 * we soon turn to other events; at the end only its depth counts. */
#define PASSES_LIVE 64
#define PASSES_END 1000000

/* Reads of events before we turn to others; what is left is told again. */
#define EVENTS_A_TURN 64

static const char *path_of(const struct guard *g, size_t i)
{
    return g->paths->items[2 * i];
}

static const char *link_of(const struct guard *g, size_t i)
{
    return g->paths->items[2 * i + 1];
}

static size_t count(const struct guard *g)
{
    return g->paths->len / 2;
}

int guard_init(struct guard *g, const struct strv *paths, struct err *e)
{
    *g = (struct guard){.paths = paths, .root_fd = -1, .watch_fd = -1};
    if (paths->len == 0)
        return 0;
    g->touched = mem_zalloc(count(g), sizeof(*g->touched));
    g->root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    size_t wrong = guarded_find_wrong(g->root_fd, paths, 0);
    while (wrong < count(g) && guarded_is_closed(g->root_fd, path_of(g, wrong) + 1))
        wrong = guarded_find_wrong(g->root_fd, paths, wrong + 1);
    if (wrong < count(g))
        return err_set(e, ERR_PATH_PROTECTED,
                       "%s changed after the plan was made; prepare it again", path_of(g, wrong));
    return 0;
}

/* Watch the deepest directory on the way that is there. The same one twice is one watch. */
static void watch_path(struct guard *g, const char *path)
{
    autofree char *dir = mem_strdup(path);
    for (char *slash = strrchr(dir, '/'); slash != NULL && slash != dir;
         slash = strrchr(dir, '/')) {
        *slash = '\0';
        if (inotify_add_watch(g->watch_fd, dir,
                              IN_CREATE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_ONLYDIR |
                                  IN_DONT_FOLLOW) >= 0)
            return;
    }
}

void guard_watch(struct guard *g)
{
    if (g->paths->len == 0)
        return;
    g->watch_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    guard_on_event(g);
}

void guard_fini(struct guard *g)
{
    mem_cleanup_fd(&g->root_fd);
    mem_cleanup_fd(&g->watch_fd);
    g->root_fd = g->watch_fd = -1;
    free(steal(g->touched));
}

static int check(struct guard *g, size_t i, bool end)
{
    return guarded_put_right(g->root_fd, path_of(g, i) + 1, link_of(g, i),
                             end ? PASSES_END : PASSES_LIVE, end, &g->touched[i]);
}

void guard_on_event(struct guard *g)
{
    char events[4096];
    for (int i = 0; i < EVENTS_A_TURN && read(g->watch_fd, events, sizeof(events)) > 0; i++)
        continue;
    for (size_t i = 0; i < count(g); i++) {
        watch_path(g, path_of(g, i));
        check(g, i, false);
    }
}

int guard_sweep(struct guard *g, struct err *e)
{
    for (size_t i = guarded_find_wrong(g->root_fd, g->paths, 0); i < count(g);
         i = guarded_find_wrong(g->root_fd, g->paths, i + 1)) {
        int rc = check(g, i, true);
        if (rc < 0)
            return err_sys(e, ERR_FILE_OPERATION_FAILED, rc,
                           "%s was created by the command and could not be taken away",
                           path_of(g, i));
    }
    return 0;
}
