/* run/start: see start.h. */
#include "run/start.h"

#include "run/ends.h"
#include "sys/fd.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

/* Where they are in the helper, after the control socket. */
#define REQUEST_FD 4
#define RULES_FD 5

/* Written without moving the offset: the helper reads from the beginning. */
static int put_request(const struct buf *text)
{
    autofd int fd = memfd_create("request", MFD_CLOEXEC);
    if (fd < 0)
        return -errno;
    for (size_t at = 0; at < text->len;) {
        ssize_t n = pwrite(fd, buf_bytes(text) + at, text->len - at, (off_t)at);
        if (n < 0 && errno != EINTR)
            return -errno;
        at += n > 0 ? (size_t)n : 0;
    }
    return steal_fd(&fd);
}

int start_sandbox(const struct home *home, const struct buf *request, const int theirs[4],
                  int rules, struct spawned *ret)
{
    autofd int memory = put_request(request);
    if (memory < 0)
        return memory;
    char *const argv[] = {(char *)home->helper,
                          (char *)"start",
                          (char *)"--control-fd",
                          (char *)"3",
                          (char *)"--request-fd",
                          (char *)"4",
                          rules < 0 ? NULL : (char *)"--rules-fd",
                          (char *)"5",
                          NULL};
    const int fds[] = {theirs[0], theirs[1], theirs[2], theirs[ENDS_CONTROL], memory, rules};
    const struct spawn_options o = {
        .path = home->helper,
        .argv = argv,
        .env = home->helper_env,
        .fds = fds,
        .n_fds = rules < 0 ? REQUEST_FD + 1 : RULES_FD + 1,
        .cwd_fd = -1,
        .new_session = true, /* without a terminal: the inner stage takes it (TIOCSCTTY) */
    };
    return spawn_start(&o, ret);
}

int start_read_answer(const char *line, size_t n, struct strv *ret_guards, struct err *e)
{
    return helper_answer_read(line, n, NULL, ret_guards, e);
}
