/* run/ends: see ends.h. */
#include "run/ends.h"

#include "base/mem.h"
#include "run/managed.h"
#include "sys/fd.h"

void ends_fini(struct ends *e)
{
    int *const ours[] = {&e->in, &e->out, &e->err, &e->control};
    for (size_t i = 0; i < ARRAY_LEN(e->theirs); i++)
        fd_close(&e->theirs[i]);
    for (size_t i = 0; i < ARRAY_LEN(ours); i++)
        fd_close(ours[i]);
}

static int open_pipe(int *ret_read, int *ret_write)
{
    int pair[2];
    int rc = fd_pipe(pair);
    if (rc < 0)
        return rc;
    *ret_read = pair[0];
    *ret_write = pair[1];
    return 0;
}

int ends_open_pipes(struct ends *e)
{
    int rc = open_pipe(&e->theirs[0], &e->in);
    if (rc == 0)
        rc = open_pipe(&e->out, &e->theirs[1]);
    if (rc == 0)
        rc = open_pipe(&e->err, &e->theirs[2]);
    if (rc == 0) /* best effort: a pipe of the default size is only slower */
        (void)fd_set_pipe_size(e->out, MANAGED_PIPE_BYTES);
    return rc;
}

int ends_open_control(struct ends *e)
{
    int pair[2];
    int rc = fd_socketpair(pair);
    if (rc < 0)
        return rc;
    e->control = pair[0];
    e->theirs[ENDS_CONTROL] = pair[1];
    return 0;
}
