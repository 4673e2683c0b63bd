/* worker/harden: see harden.h. */
#include "worker/harden.h"

#include "base/mem.h"
#include "base/str.h"
#include "sys/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

extern char **environ;

static int fill_standard_fds(void)
{
    for (int fd = 0; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) != fd)
            return -EMFILE;
    }
    return 0;
}

/* unsetenv moves the rest up, so the same place is looked at again. */
static void drop_loader_variables(void)
{
    char **at = environ;
    while (at != NULL && *at != NULL) {
        const char *variable = *at;
        const char *equals = strchr(variable, '=');
        if (!str_starts(variable, "LD_") || equals == NULL) {
            at++;
            continue;
        }
        autofree char *name = mem_dup(variable, (size_t)(equals - variable));
        unsetenv(name);
    }
}

int harden_self(void)
{
    const struct rlimit none = {0, 0};
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || setrlimit(RLIMIT_CORE, &none) < 0)
        return -errno;
    drop_loader_variables();
    int rc = fill_standard_fds();
    return rc < 0 ? rc : fd_close_from(STDERR_FILENO + 1);
}
