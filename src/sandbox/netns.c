/* sandbox/netns: see netns.h. */
#include "sandbox/netns.h"

#include "base/mem.h"
#include "sandbox/netlink.h"
#include "sys/fd.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define NAME "codespace"
#define PRIORITY_DSTNAT (-100)

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

static void begin(struct netlink *nl, uint8_t family, uint16_t type, uint16_t flags)
{
    const struct nfgenmsg fixed = {
        .nfgen_family = family,
        .res_id = type < NFNL_SUBSYS_NFTABLES << 8 ? htons(NFNL_SUBSYS_NFTABLES) : 0,
    };
    netlink_begin(nl, type, NLM_F_REQUEST | flags, &fixed, sizeof(fixed));
}

static void begin_nft(struct netlink *nl, uint16_t message, uint16_t flags)
{
    begin(nl, NFPROTO_IPV4, NFNL_SUBSYS_NFTABLES << 8 | message, NLM_F_ACK | NLM_F_CREATE | flags);
}

struct expression {
    size_t item, data;
};

static struct expression open_expression(struct netlink *nl, const char *name)
{
    struct expression x = {.item = netlink_open(nl, NFTA_LIST_ELEM)};
    netlink_put_text(nl, NFTA_EXPR_NAME, name);
    x.data = netlink_open(nl, NFTA_EXPR_DATA);
    return x;
}

static void close_expression(struct netlink *nl, struct expression x)
{
    netlink_close(nl, x.data);
    netlink_close(nl, x.item);
}

static void put_value(struct netlink *nl, uint16_t type, const void *value, size_t n)
{
    size_t nest = netlink_open(nl, type);
    netlink_put(nl, NFTA_DATA_VALUE, value, n);
    netlink_close(nl, nest);
}

static void compare(struct netlink *nl, enum nft_cmp_ops op, const void *value, size_t n)
{
    struct expression x = open_expression(nl, "cmp");
    netlink_put_be32(nl, NFTA_CMP_SREG, NFT_REG_1);
    netlink_put_be32(nl, NFTA_CMP_OP, op);
    put_value(nl, NFTA_CMP_DATA, value, n);
    close_expression(nl, x);
}

static void when_protocol(struct netlink *nl, uint8_t protocol)
{
    struct expression x = open_expression(nl, "meta");
    netlink_put_be32(nl, NFTA_META_DREG, NFT_REG_1);
    netlink_put_be32(nl, NFTA_META_KEY, NFT_META_L4PROTO);
    close_expression(nl, x);
    compare(nl, NFT_CMP_EQ, &protocol, 1);
}

static void load(struct netlink *nl, enum nft_payload_bases base, uint32_t offset, uint32_t n)
{
    struct expression x = open_expression(nl, "payload");
    netlink_put_be32(nl, NFTA_PAYLOAD_DREG, NFT_REG_1);
    netlink_put_be32(nl, NFTA_PAYLOAD_BASE, base);
    netlink_put_be32(nl, NFTA_PAYLOAD_OFFSET, offset);
    netlink_put_be32(nl, NFTA_PAYLOAD_LEN, n);
    close_expression(nl, x);
}

/* Whether the destination is one of 127.0.0.0/8. */
static void when_loopback(struct netlink *nl, bool loopback)
{
    const uint8_t first = 127;
    load(nl, NFT_PAYLOAD_NETWORK_HEADER, 16, 1);
    compare(nl, loopback ? NFT_CMP_EQ : NFT_CMP_NEQ, &first, 1);
}

static void when_port(struct netlink *nl, uint16_t port)
{
    port = htons(port);
    load(nl, NFT_PAYLOAD_TRANSPORT_HEADER, 2, 2);
    compare(nl, NFT_CMP_EQ, &port, sizeof(port));
}

static void redirect(struct netlink *nl, uint16_t port)
{
    port = htons(port);
    struct expression x = open_expression(nl, "immediate");
    netlink_put_be32(nl, NFTA_IMMEDIATE_DREG, NFT_REG_1);
    put_value(nl, NFTA_IMMEDIATE_DATA, &port, sizeof(port));
    close_expression(nl, x);
    x = open_expression(nl, "redir");
    netlink_put_be32(nl, NFTA_REDIR_REG_PROTO_MIN, NFT_REG_1);
    close_expression(nl, x);
}

static void put_chain(struct netlink *nl)
{
    begin_nft(nl, NFT_MSG_NEWTABLE, 0);
    netlink_put_text(nl, NFTA_TABLE_NAME, NAME);
    netlink_end(nl);
    begin_nft(nl, NFT_MSG_NEWCHAIN, 0);
    netlink_put_text(nl, NFTA_CHAIN_TABLE, NAME);
    netlink_put_text(nl, NFTA_CHAIN_NAME, NAME);
    size_t hook = netlink_open(nl, NFTA_CHAIN_HOOK);
    netlink_put_be32(nl, NFTA_HOOK_HOOKNUM, NF_INET_LOCAL_OUT);
    netlink_put_be32(nl, NFTA_HOOK_PRIORITY, (uint32_t)PRIORITY_DSTNAT);
    netlink_close(nl, hook);
    netlink_put_text(nl, NFTA_CHAIN_TYPE, "nat");
    netlink_end(nl);
}

/* port 0: any. */
struct rule {
    uint8_t protocol;
    bool outside; /* not for the loopback; else either */
    bool inside;  /* for the loopback */
    uint16_t port;
    uint16_t to;
};

static void put_rule(struct netlink *nl, const struct rule *r)
{
    begin_nft(nl, NFT_MSG_NEWRULE, NLM_F_APPEND);
    netlink_put_text(nl, NFTA_RULE_TABLE, NAME);
    netlink_put_text(nl, NFTA_RULE_CHAIN, NAME);
    size_t list = netlink_open(nl, NFTA_RULE_EXPRESSIONS);
    when_protocol(nl, r->protocol);
    if (r->outside || r->inside)
        when_loopback(nl, r->inside);
    if (r->port != 0)
        when_port(nl, r->port);
    redirect(nl, r->to);
    netlink_close(nl, list);
    netlink_end(nl);
}

static int put_rules(const uint16_t *local_ports, size_t n, struct err *e)
{
    static const struct rule fixed[] = {
        {.protocol = IPPROTO_UDP, .port = NETNS_PORT_NAMES, .to = NETNS_PORT_NAMES},
        {.protocol = IPPROTO_TCP, .port = NETNS_PORT_NAMES, .to = NETNS_PORT_NAMES},
        {.protocol = IPPROTO_TCP, .outside = true, .to = NETNS_PORT_TRANSPARENT},
    };
    struct netlink nl = {0};
    begin(&nl, AF_UNSPEC, NFNL_MSG_BATCH_BEGIN, 0);
    netlink_end(&nl);
    put_chain(&nl);
    for (size_t i = 0; i < ARRAY_LEN(fixed); i++)
        put_rule(&nl, &fixed[i]);
    for (size_t i = 0; i < n; i++)
        put_rule(&nl, &(struct rule){.protocol = IPPROTO_TCP,
                                     .inside = true,
                                     .port = local_ports[i],
                                     .to = NETNS_PORT_TRANSPARENT});
    begin(&nl, AF_UNSPEC, NFNL_MSG_BATCH_END, 0);
    netlink_end(&nl);
    int rc = netlink_send(&nl, NETLINK_NETFILTER, (unsigned)(2 + ARRAY_LEN(fixed) + n));
    return rc < 0 ? failed(e, rc, "rules that carry connections (nf_tables)") : 0;
}

int netns_enter(const uint16_t *local_ports, size_t n, struct err *e)
{
    if (make_namespaces(e) < 0 || raise_loopback(e) < 0 || route_everything(e) < 0)
        return -1;
    return put_rules(local_ports, n, e);
}
