/* sandbox/secondline: see secondline.h. */
#include "sandbox/secondline.h"

#include "base/mem.h"
#include "sandbox/exits.h"
#include "sandbox/planfile.h"
#include "sys/fd.h"
#include "sys/guarded.h"
#include "sys/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>

/* What the kernel needs to take down what was killed; then it is swept all the same. */
#define SWEEP_WAIT_MS 5000

/* Nobody fills the trees any more; only their depth counts. */
#define PASSES 100000u

void secondline_arm(struct secondline *s, int *init_fd, int plan_fd)
{
    struct err e = {0};
    struct plan p = {0};
    if (s->init_fd >= 0 || planfile_read(plan_fd, &p, &e) < 0)
        return;
    s->init_fd = steal_fd(init_fd);
    s->guards = p.guards;
    p.guards = (struct strv){0};
    plan_fini(&p);
}

static void put_right(int root_fd, const char *path, const char *link)
{
    bool touched = false;
    int rc = guarded_put_right(root_fd, path + 1, link, PASSES, true, &touched);
    if (rc < 0)
        sandbox_say("%s was created by a command whose sandbox was killed, and cannot be taken "
                    "away: %s",
                    path, strerror(-rc));
    else if (touched)
        sandbox_say("%s is protected; what the command made of it was taken away", path);
}

void secondline_sweep(const struct secondline *s)
{
    struct pollfd p = {.fd = s->init_fd, .events = POLLIN};
    if (s->init_fd < 0)
        return;
    (void)spawn_signal(s->init_fd, SIGKILL);
    while (poll(&p, 1, SWEEP_WAIT_MS) < 0 && errno == EINTR)
        continue;
    autofd int root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    for (size_t i = 0; root_fd >= 0 && i + 1 < s->guards.len; i += 2)
        put_right(root_fd, s->guards.items[i], s->guards.items[i + 1]);
}

void secondline_fini(struct secondline *s)
{
    fd_close(&s->init_fd);
    strv_fini(&s->guards);
}
