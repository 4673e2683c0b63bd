/* sandbox/netinject: see netinject.h. */
#include "sandbox/netinject.h"

#include "base/mem.h"
#include "sandbox/netcommand.h"
#include "sandbox/paths.h"
#include "sys/fd.h"
#include "wire/egress.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* `e` says what is wrong with the file; say which rule, too. */
static int rule_failed(const struct inject_rule *r, size_t i, struct err *e)
{
    char host[HOST_AUTHORITY_MAX];
    host_format_authority(&r->host, r->port, host);
    e->code = ERR_SANDBOX_UNAVAILABLE;
    return err_wrap(e, "egress.inject[%zu] (%s for %s)", i, r->header, host);
}

/* ---- at prepare ---- */

static bool is_writable_place(const struct view *v, const char *file)
{
    if (paths_within(file, v->workspace))
        return true;
    for (size_t i = 0; i < v->n_mounts; i++) {
        if (v->mounts[i].writable && paths_within(file, v->mounts[i].path))
            return true;
    }
    return false;
}

/* Of a command: the program, and files that it is given. */
static int check_words(const struct view *v, const struct strv *words, size_t rule, struct err *e)
{
    for (size_t i = 0; i < words->len; i++) {
        autofree char *real = words->items[i][0] == '/' ? realpath(words->items[i], NULL) : NULL;
        if (words->items[i][0] == '/' &&
            (is_writable_place(v, words->items[i]) || (real != NULL && is_writable_place(v, real))))
            return err_set(e, ERR_INVALID_COMMAND,
                           "egress.inject[%zu].command[%zu] lies where the command could exchange "
                           "it; keep it elsewhere",
                           rule, i);
    }
    return 0;
}

int netinject_check(const struct helper_request *r, struct err *e)
{
    const struct inject_rules *all = &r->egress.inject;
    for (size_t i = 0; i < all->len; i++) {
        if (check_words(&r->view, &all->items[i].command, i, e) < 0)
            return -1;
        if (all->items[i].file != NULL && is_writable_place(&r->view, all->items[i].file))
            return err_set(e, ERR_INVALID_COMMAND,
                           "egress.inject[%zu].file lies where the command could read or exchange "
                           "it; keep it elsewhere",
                           i);
    }
    return 0;
}

/* ---- at run ---- */

static int check_owner(int fd, struct err *e)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return err_sys(e, ERR_SANDBOX_UNAVAILABLE, errno, "cannot look at the file");
    if (!S_ISREG(st.st_mode))
        return err_set(e, ERR_SANDBOX_UNAVAILABLE, "it is not a regular file");
    if (st.st_uid != geteuid() && st.st_uid != 0)
        return err_set(e, ERR_SANDBOX_UNAVAILABLE, "the file belongs to another user");
    if ((st.st_mode & 0077) != 0)
        return err_set(e, ERR_SANDBOX_UNAVAILABLE,
                       "others may read or write the file (mode %04o); chmod 600",
                       (unsigned)(st.st_mode & 07777));
    return 0;
}

static int read_file(const char *file, char *value, size_t *ret_len, struct err *e)
{
    autofd int fd = open(file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return err_sys(e, ERR_SANDBOX_UNAVAILABLE, errno, "cannot open the file");
    if (check_owner(fd, e) < 0)
        return -1;
    ssize_t n = fd_read(fd, value, NETCOMMAND_ROOM - 1);
    if (n < 0)
        return err_sys(e, ERR_SANDBOX_UNAVAILABLE, (int)n, "cannot read the file");
    *ret_len = (size_t)n;
    return 0;
}

/* One line without its end, terminated, at `value`; a longer one is refused by the check. */
static int read_value(const struct inject_rule *r, uint64_t deadline_ms,
                      char value[NETCOMMAND_ROOM], struct err *e)
{
    size_t n = 0;
    int rc = r->file != NULL ? read_file(r->file, value, &n, e)
                             : netcommand_run(&r->command, deadline_ms, value, &n, e);
    if (rc < 0)
        return -1;
    if (n > 0 && value[n - 1] == '\n')
        n--;
    if (n > 0 && value[n - 1] == '\r')
        n--;
    value[n] = '\0';
    return inject_check_value(value, n, e);
}

static int write_values(const struct inject_rules *all, struct buf *out, struct err *e)
{
    char value[NETCOMMAND_ROOM];
    uint64_t deadline_ms = netcommand_deadline();
    struct jsonw w;
    int status = 0;
    jsonw_init(&w, out);
    jsonw_array(&w);
    for (size_t i = 0; i < all->len && status == 0; i++) {
        if (read_value(&all->items[i], deadline_ms, value, e) < 0)
            status = rule_failed(&all->items[i], i, e);
        else
            inject_write_value(&all->items[i], value, &w);
    }
    explicit_bzero(value, sizeof(value));
    jsonw_array_end(&w);
    return status;
}

static int in_memory(const struct buf *text, int *ret_fd)
{
    autofd int fd = memfd_create("credentials", MFD_CLOEXEC);
    int rc = fd < 0 ? -errno : fd_write_all(fd, buf_bytes(text), text->len);
    if (rc == 0 && lseek(fd, 0, SEEK_SET) < 0)
        rc = -errno;
    if (rc == 0)
        *ret_fd = steal_fd(&fd);
    return rc;
}

int netinject_values(const struct plan *p, int *ret_fd, struct err *e)
{
    autoegress policy = {0};
    autobuf text = BUF_INIT;
    if (egress_policy_parse(buf_bytes(&p->egress), p->egress.len, &policy, e) < 0)
        return -1;
    if (policy.inject.len == 0)
        return 0;
    if (write_values(&policy.inject, &text, e) < 0)
        return -1;
    int rc = in_memory(&text, ret_fd);
    return rc == 0 ? 0 : err_sys(e, ERR_SANDBOX_UNAVAILABLE, rc, "credentials in memory");
}
