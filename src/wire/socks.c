/* wire/socks: see socks.h. */
#include "wire/socks.h"

#include <string.h>

int socks_greeting_parse(const char *data, size_t n, size_t *ret_size, bool *ret_no_auth)
{
    if (n > 0 && data[0] != SOCKS_VERSION)
        return -1;
    if (n < 2)
        return 0;
    size_t methods = (unsigned char)data[1];
    if (n < 2 + methods)
        return 0;
    *ret_no_auth = memchr(data + 2, 0, methods) != NULL;
    *ret_size = 2 + methods;
    return 1;
}

enum { TYPE_IPV4 = 1, TYPE_NAME = 3, TYPE_IPV6 = 4, COMMAND_CONNECT = 1 };

static int refuse(struct socks_request *ret, enum socks_reply reply, struct err *e, const char *why)
{
    ret->reply = reply;
    return err_set(e, ERR_PARSE_ERROR, "SOCKS: %s", why);
}

/* The length of the destination address and where it starts; 0 for a type that is not known. */
static size_t address_len(const unsigned char *d, size_t *ret_at)
{
    *ret_at = d[3] == TYPE_NAME ? 5 : 4;
    switch (d[3]) {
    case TYPE_IPV4:
        return 4;
    case TYPE_IPV6:
        return 16;
    case TYPE_NAME:
        return d[4];
    default:
        return 0;
    }
}

static int parse_host(const unsigned char *d, size_t at, size_t len, struct socks_request *ret,
                      struct err *e)
{
    if (d[3] == TYPE_NAME) {
        ret->reply = SOCKS_NOT_ALLOWED;
        return host_parse((const char *)d + at, len, &ret->host, e);
    }
    struct net_addr addr = {.family = d[3] == TYPE_IPV6 ? 6 : 4};
    memcpy(addr.bytes, d + at, len);
    host_of_addr(&addr, &ret->host);
    return 0;
}

int socks_request_parse(const char *data, size_t n, struct socks_request *ret, struct err *e)
{
    const unsigned char *d = (const unsigned char *)data;
    size_t at = 0;
    if (n > 0 && d[0] != SOCKS_VERSION)
        return refuse(ret, SOCKS_FAILED, e, "the request is not of version 5");
    if (n < 5)
        return 0;
    if (d[1] != COMMAND_CONNECT)
        return refuse(ret, SOCKS_NO_COMMAND, e, "only CONNECT is served (no BIND, no UDP)");
    if (d[2] != 0)
        return refuse(ret, SOCKS_FAILED, e, "the reserved byte is not 0");
    size_t len = address_len(d, &at);
    if (len == 0)
        return refuse(ret, d[3] == TYPE_NAME ? SOCKS_FAILED : SOCKS_NO_ADDRESS_TYPE, e,
                      "the destination is neither a name nor an address");
    if (n < at + len + 2)
        return 0;
    ret->port = (uint16_t)(d[at + len] << 8 | d[at + len + 1]);
    if (ret->port == 0)
        return refuse(ret, SOCKS_FAILED, e, "port 0 is no destination");
    if (parse_host(d, at, len, ret, e) < 0)
        return -1;
    ret->size = at + len + 2;
    ret->reply = SOCKS_OK;
    return 1;
}

void socks_greeting_answer(bool accepted, struct buf *out)
{
    buf_putc(out, SOCKS_VERSION);
    buf_putc(out, accepted ? 0 : (char)0xff);
}

void socks_reply_write(enum socks_reply reply, struct buf *out)
{
    const char message[10] = {SOCKS_VERSION, (char)reply, 0, TYPE_IPV4};
    buf_put(out, message, sizeof(message));
}
