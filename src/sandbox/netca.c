/* sandbox/netca: see netca.h. */
#include "sandbox/netca.h"

#include "base/mem.h"
#include "sandbox/layout.h"
#include "sys/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* Where the systems keep all of their store in one file. */
static const char *const stores[] = {
    "/etc/ssl/certs/ca-certificates.crt",                /* Debian, Arch, Alpine */
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", /* Fedora and its relatives */
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem", /* SUSE */
    "/etc/ssl/cert.pem",
};

void netca_plan(const struct helper_request *r, struct plan *p)
{
    if (r->network != HELPER_NETWORK_ENABLED || !inject_has_intercept(&r->egress.inject))
        return;
    strv_add(&p->sources, NETCA_FILE);
    autofree char *fd = mem_printf("%zu", PLAN_FD_SOURCE + p->sources.len - 1);
    layout_args(p, "--perms", "0444", "--ro-bind-data", fd, NETCA_FILE, NULL);
}

bool netca_is_source(const char *source)
{
    return str_eq(source, NETCA_FILE);
}

static int open_store(void)
{
    int fd = -1;
    for (size_t i = 0; i < ARRAY_LEN(stores) && fd < 0; i++)
        fd = open(stores[i], O_RDONLY | O_NOCTTY | O_CLOEXEC);
    return fd;
}

int netca_open(const struct plan *p, struct netca *ret, struct err *e)
{
    int ends[2];
    *ret = (struct netca){-1, -1, -1};
    if (!strv_has(&p->sources, NETCA_FILE))
        return 0;
    autofd int store = open_store();
    if (store < 0)
        return err_set(
            e, ERR_SANDBOX_UNAVAILABLE,
            "egress.inject with \"tls\": \"intercept\" needs the system's trust store in "
            "one file, such as %s; install the package ca-certificates",
            stores[0]);
    int rc = fd_pipe(ends);
    if (rc < 0)
        return err_sys(e, ERR_SANDBOX_UNAVAILABLE, rc, "a pipe for the trust store");
    *ret = (struct netca){steal_fd(&store), ends[1], ends[0]};
    return 0;
}
