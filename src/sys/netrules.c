/* sys/netrules: see netrules.h. */
#include "sys/netrules.h"

#include "base/mem.h"
#include "sys/netlink.h"

#include <arpa/inet.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>

#include <linux/netlink.h>

#define NAME "codespace"
#define PRIORITY_DSTNAT (-100)

/* One batch goes out whole: room for the most ports there may be. */
#define SEND_ROOM (512 << 10)

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
    begin(nl, NFPROTO_IPV4, NFNL_SUBSYS_NFTABLES << 8 | message, flags);
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
    begin_nft(nl, NFT_MSG_NEWTABLE, NLM_F_CREATE);
    netlink_put_text(nl, NFTA_TABLE_NAME, NAME);
    netlink_end(nl);
    begin_nft(nl, NFT_MSG_NEWCHAIN, NLM_F_CREATE);
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

/* `flags`: NLM_F_ACK with the last one. */
static void put_rule(struct netlink *nl, const struct rule *r, uint16_t flags)
{
    begin_nft(nl, NFT_MSG_NEWRULE, (uint16_t)(NLM_F_CREATE | NLM_F_APPEND | flags));
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

/* All rules of the chain; out in any case when one is not there. */
static void put_flush(struct netlink *nl)
{
    begin_nft(nl, NFT_MSG_DELRULE, 0);
    netlink_put_text(nl, NFTA_RULE_TABLE, NAME);
    netlink_put_text(nl, NFTA_RULE_CHAIN, NAME);
    netlink_end(nl);
}

static int put_rules(int fd, bool fresh, const uint16_t *local_ports, size_t n)
{
    static const struct rule outside = {
        .protocol = IPPROTO_TCP, .outside = true, .to = NETRULES_PORT_TRANSPARENT};
    static const struct rule names[] = {
        {.protocol = IPPROTO_UDP, .port = NETRULES_PORT_NAMES, .to = NETRULES_PORT_NAMES},
        {.protocol = IPPROTO_TCP, .port = NETRULES_PORT_NAMES, .to = NETRULES_PORT_NAMES},
    };
    struct netlink nl = {0};
    begin(&nl, AF_UNSPEC, NFNL_MSG_BATCH_BEGIN, 0);
    netlink_end(&nl);
    if (fresh)
        put_chain(&nl);
    else
        put_flush(&nl);
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        put_rule(&nl, &names[i], 0);
    for (size_t i = 0; i < n; i++)
        put_rule(&nl,
                 &(struct rule){.protocol = IPPROTO_TCP,
                                .inside = true,
                                .port = local_ports[i],
                                .to = NETRULES_PORT_TRANSPARENT},
                 0);
    /* A refusal of any message is told; that all is done, by the last one. */
    put_rule(&nl, &outside, NLM_F_ACK);
    begin(&nl, AF_UNSPEC, NFNL_MSG_BATCH_END, 0);
    netlink_end(&nl);
    return netlink_send_over(&nl, fd, 1);
}

int netrules_socket(void)
{
    const int room = SEND_ROOM;
    autofd int fd = netlink_socket(NETLINK_NETFILTER);
    if (fd < 0)
        return fd;
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
    return steal_fd(&fd);
}

int netrules_make(int fd, const uint16_t *local_ports, size_t n)
{
    return put_rules(fd, true, local_ports, n);
}

int netrules_replace(int fd, const uint16_t *local_ports, size_t n)
{
    return put_rules(fd, false, local_ports, n);
}
