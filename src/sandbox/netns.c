/* sandbox/netns: see netns.h. */
#include "sandbox/netns.h"

#include "base/mem.h"
#include "sys/fd.h"
#include "sys/netlink.h"
#include "sys/netrules.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

static int failed(struct err *e, int rc, const char *step)
{
    return err_sys(e, ERR_SANDBOX_UNAVAILABLE, rc, "%s", step);
}

/* ---- the namespaces ---- */

static int write_file(const char *path, const char *text)
{
    autofd int fd = open(path, O_WRONLY | O_CLOEXEC);
    return fd < 0 ? -errno : fd_write_all(fd, text, strlen(text));
}

/* Our own ids keep their numbers; there are no others. */
static int make_namespaces(struct err *e)
{
    autofree char *uid = mem_printf("%u %u 1", geteuid(), geteuid());
    autofree char *gid = mem_printf("%u %u 1", getegid(), getegid());
    if (unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0)
        return failed(e, errno, "a user and a network namespace");
    int rc = write_file("/proc/self/setgroups", "deny");
    if (rc == 0)
        rc = write_file("/proc/self/uid_map", uid);
    if (rc == 0)
        rc = write_file("/proc/self/gid_map", gid);
    return rc < 0 ? failed(e, rc, "the ids of a user namespace") : 0;
}

static int raise_loopback(struct err *e)
{
    struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP};
    autofd int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request) < 0)
        return failed(e, errno, "the loopback");
    return 0;
}

/* ---- every address is here ---- */

static int route_everything(struct err *e)
{
    struct netlink nl = {0};
    const struct rtmsg route = {
        .rtm_family = AF_INET,
        .rtm_table = RT_TABLE_LOCAL,
        .rtm_protocol = RTPROT_STATIC,
        .rtm_scope = RT_SCOPE_HOST,
        .rtm_type = RTN_LOCAL,
    };
    const uint32_t index = if_nametoindex("lo");
    netlink_begin(&nl, RTM_NEWROUTE, NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE, &route,
                  sizeof(route));
    netlink_put(&nl, RTA_OIF, &index, sizeof(index));
    netlink_end(&nl);
    int rc = netlink_send(&nl, NETLINK_ROUTE, 1);
    return rc < 0 ? failed(e, rc, "a route that makes every address local") : 0;
}

/* ---- the rules ---- */

static int put_rules(const uint16_t *local_ports, size_t n, struct err *e)
{
    autofd int fd = netrules_socket();
    int rc = fd < 0 ? fd : netrules_make(fd, local_ports, n);
    return rc < 0 ? failed(e, rc, "rules that carry connections (nf_tables)") : 0;
}

int netns_enter(const uint16_t *local_ports, size_t n, struct err *e)
{
    if (make_namespaces(e) < 0 || raise_loopback(e) < 0 || route_everything(e) < 0)
        return -1;
    return put_rules(local_ports, n, e);
}
