/* sandbox/planfile: see planfile.h. */
#include "sandbox/planfile.h"

#include "base/mem.h"
#include "sandbox/prepare.h"
#include "sys/fd.h"
#include "sys/privdir.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int planfile_take(const char *path, struct err *e)
{
    size_t size;
    int fd = privdir_take(path, PREPARE_DIR_PREFIX, PLAN_MAX, &size);
    if (fd == -EINVAL)
        return err_set(e, ERR_PROCESS_SPAWN_FAILED, "the plan's path must be absolute: %.512s",
                       path);
    if (fd == -EPERM)
        return err_set(e, ERR_PROCESS_SPAWN_FAILED,
                       "%.512s is not a private file: it must be a regular file of mode 0600 in a "
                       "directory of mode 0700, both ours",
                       path);
    if (fd < 0)
        return err_sys(e, ERR_PROCESS_SPAWN_FAILED, fd, "%.512s", path);
    return fd;
}

int planfile_in_memory(struct plan *p)
{
    autobuf bytes = BUF_INIT;
    autofd int fd = memfd_create("plan", MFD_CLOEXEC);
    if (fd < 0)
        return -errno;
    plan_write(p, &bytes);
    p->args_at = bytes.len - p->args.len; /* the last section */
    int rc = fd_write_all(fd, buf_bytes(&bytes), bytes.len);
    return rc < 0 ? rc : steal_fd(&fd);
}

int planfile_read(int fd, struct plan *ret, struct err *e)
{
    struct stat st;
    autobuf bytes = BUF_INIT;
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return err_set(e, ERR_PARSE_ERROR, "descriptor %d is not a plan file", fd);
    if ((size_t)st.st_size > PLAN_MAX)
        return err_set(e, ERR_PARSE_ERROR, "the plan is larger than PLAN_MAX (%u bytes)", PLAN_MAX);
    char *to = buf_reserve(&bytes, (size_t)st.st_size + 1);
    ssize_t n = pread(fd, to, (size_t)st.st_size, 0);
    if (n != st.st_size)
        return err_set(e, ERR_PARSE_ERROR, "the plan cannot be read");
    buf_commit(&bytes, (size_t)n);
    return plan_read(buf_bytes(&bytes), bytes.len, ret, e);
}
