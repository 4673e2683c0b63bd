/* wire/tlshello: see tlshello.h. */
#include "wire/tlshello.h"

#include <string.h>
#include <sys/types.h>

enum { RECORD_HANDSHAKE = 22, CLIENT_HELLO = 1, EXTENSION_SERVER_NAME = 0, NAME_TYPE_HOST = 0 };

/* A reader over bytes: taking more than there is makes it empty and `short_` true for good. */
struct reader {
    const unsigned char *at;
    size_t left;
    bool failed;
};

static struct reader take(struct reader *r, size_t n)
{
    struct reader part = {r->at, n, false};
    if (r->failed || n > r->left) {
        r->failed = true;
        r->left = 0;
        return (struct reader){r->at, 0, true};
    }
    r->at += n;
    r->left -= n;
    return part;
}

static size_t take_number(struct reader *r, size_t bytes)
{
    struct reader part = take(r, bytes);
    size_t v = 0;
    for (size_t i = 0; i < part.left; i++)
        v = v << 8 | part.at[i];
    return v;
}

/* A vector whose length stands before it in `bytes` bytes. */
static struct reader take_vector(struct reader *r, size_t bytes)
{
    return take(r, take_number(r, bytes));
}

/* Put the handshake bytes of the records together. The number of bytes, or -1 when a record is not
 * of a handshake. */
static ssize_t join_records(const unsigned char *d, size_t n, unsigned char *out, size_t cap)
{
    size_t len = 0;
    for (size_t at = 0; at < n;) {
        if (d[at] != RECORD_HANDSHAKE || (at + 1 < n && d[at + 1] != 3))
            return len >= 4 ? (ssize_t)len : -1;
        if (n - at < 5)
            break;
        size_t record = (size_t)d[at + 3] << 8 | d[at + 4];
        size_t here = n - at - 5 < record ? n - at - 5 : record;
        if (record == 0 || record > TLSHELLO_MAX + 256 || len + here > cap)
            return -1;
        memcpy(out + len, d + at + 5, here);
        len += here;
        at += 5 + here;
        if (here < record)
            break;
    }
    return (ssize_t)len;
}

static void read_names(struct reader list, struct tlshello *ret)
{
    struct reader names = take_vector(&list, 2);
    ret->name = TLSHELLO_BAD;
    if (take_number(&names, 1) != NAME_TYPE_HOST)
        return;
    struct reader name = take_vector(&names, 2);
    if (names.failed || list.left != 0 || names.left != 0 ||
        host_parse((const char *)name.at, name.left, &ret->host, NULL) < 0)
        return;
    ret->name = TLSHELLO_NAME;
}

/* The body of the hello, whole. 1 or -1. */
static int read_hello(struct reader body, struct tlshello *ret)
{
    take(&body, 2 + 32);   /* version, random */
    take_vector(&body, 1); /* session */
    take_vector(&body, 2); /* ciphers */
    take_vector(&body, 1); /* compression */
    if (body.failed)
        return -1;
    struct reader extensions = body.left > 0 ? take_vector(&body, 2) : body;
    while (!extensions.failed && extensions.left > 0) {
        size_t type = take_number(&extensions, 2);
        struct reader value = take_vector(&extensions, 2);
        if (extensions.failed)
            break;
        if (type != EXTENSION_SERVER_NAME)
            continue;
        if (ret->name != TLSHELLO_NONE) /* twice: which one would the server take? */
            ret->name = TLSHELLO_BAD;
        else
            read_names(value, ret);
    }
    return extensions.failed ? -1 : 1;
}

int tlshello_parse(const void *data, size_t n, struct tlshello *ret)
{
    unsigned char joined[TLSHELLO_MAX];
    struct tlshello out = {0};
    ssize_t len = join_records(data, n, joined, sizeof(joined));
    if (len < 0 || (len > 0 && joined[0] != CLIENT_HELLO))
        return -1;
    if (len < 4)
        return n > TLSHELLO_MAX ? -1 : 0;
    size_t body = (size_t)joined[1] << 16 | (size_t)joined[2] << 8 | joined[3];
    if (body + 4 > TLSHELLO_MAX)
        return -1;
    if ((size_t)len < body + 4)
        return n > TLSHELLO_MAX ? -1 : 0;
    if (read_hello((struct reader){joined + 4, body, false}, &out) < 0)
        return -1;
    *ret = out;
    return 1;
}
