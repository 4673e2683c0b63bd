/* proxy/credential: see credential.h. */
#include "proxy/credential.h"

#include "base/mem.h"
#include "sys/fd.h"

#include <string.h>
#include <strings.h>

static int read_all(int fd, struct buf *text, struct err *e)
{
    ssize_t n = 1;
    while (n > 0 && text->len <= INJECT_TEXT_MAX) {
        n = fd_read(fd, buf_reserve(text, END_BLOCK), END_BLOCK);
        if (n < 0)
            return err_sys(e, ERR_CONFIG_INVALID, (int)n, "cannot read it");
        buf_commit(text, (size_t)n);
    }
    return 0;
}

int credential_read(int *fd, struct inject_rules *ret, struct err *e)
{
    autobuf text = BUF_INIT;
    int status = read_all(*fd, &text, e);
    fd_close(fd);
    if (status == 0)
        status = inject_read_values(buf_bytes(&text), text.len, ret, e);
    if (text.data != NULL)
        explicit_bzero(text.data, text.cap);
    return status;
}

/* Some servers take methods in any case of letters. */
static bool echoes(const struct http1_head *h)
{
    return http1_is_ci(h, h->method, "trace") || http1_is_ci(h, h->method, "track");
}

static bool is_for(const struct conn *c, const struct inject_rule *r)
{
    return r->intercept == c->intercepted && r->port == c->target.port &&
           host_eq(&r->host, &c->target.host);
}

/* Is the client's header replaced by one of ours? */
static bool is_replaced(const struct conn *c, const struct http1_head *h,
                        const struct http1_header *header)
{
    const struct inject_rules *all = &c->proxy->credentials;
    for (size_t i = 0; i < all->len; i++) {
        if (is_for(c, &all->items[i]) && http1_is_ci(h, header->name, all->items[i].header))
            return true;
    }
    return false;
}

static void put_header(struct buf *out, const char *name, size_t name_len, const char *value,
                       size_t value_len)
{
    buf_put(out, name, name_len);
    buf_puts(out, ": ");
    buf_put(out, value, value_len);
    buf_puts(out, "\r\n");
}

static void put_clients(const struct conn *c, const struct http1_head *h, struct buf *out)
{
    for (uint32_t i = 0; i < h->n_headers; i++) {
        const struct http1_header *header = &h->headers[i];
        if (!http1_is_hop(h, header) && !is_replaced(c, h, header))
            put_header(out, http1_at(h, header->name), header->name.len, http1_at(h, header->value),
                       header->value.len);
    }
}

void credential_put_headers(const struct conn *c, const struct http1_head *h, struct buf *out)
{
    const struct inject_rules *all = &c->proxy->credentials;
    if (all->len == 0 || c->inside || echoes(h)) {
        http1_copy_headers(h, out);
        return;
    }
    put_clients(c, h, out);
    for (size_t i = 0; i < all->len; i++) {
        const struct inject_rule *r = &all->items[i];
        if (is_for(c, r))
            put_header(out, r->header, strlen(r->header), r->value, strlen(r->value));
    }
}
