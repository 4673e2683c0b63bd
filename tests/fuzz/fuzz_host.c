/* Fuzz target for wire/host: what is accepted has a canonical form that is accepted again and stays
 * as it is, as a host, as an authority and as a rule's host. */
#include "base/mem.h"
#include "wire/host.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n);

static void check(const struct host *h)
{
    struct host again = {0};
    ensure(h->len > 0 && h->len <= HOST_TEXT_MAX && strlen(h->text) == h->len);
    ensure(host_parse(h->text, h->len, &again, NULL) == 0);
    ensure(again.kind == h->kind && host_eq(&again, h));
    for (uint16_t i = 0; i < h->len; i++)
        ensure(h->text[i] > ' ' && h->text[i] < 0x7f && !(h->text[i] >= 'A' && h->text[i] <= 'Z'));
    if (h->kind == HOST_NAME)
        return;
    struct host of_addr = {0};
    host_of_addr(&h->addr, &of_addr);
    ensure(host_eq(&of_addr, h));
    ensure(host_class_name(host_addr_class(&h->addr)) != NULL);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n)
{
    struct host h = {0};
    struct err e = {0};
    uint16_t port = 0;
    const char *text = (const char *)data;
    if (host_parse(text, n, &h, &e) == 0)
        check(&h);
    else
        ensure(e.code == ERR_INVALID_ARGUMENT);
    if (host_parse_authority(text, n, 80, &h, &port, NULL) == 0) {
        char written[HOST_AUTHORITY_MAX];
        struct host again = {0};
        uint16_t port_again = 0;
        check(&h);
        size_t len = host_format_authority(&h, port, written);
        ensure(host_parse_authority(written, len, 0, &again, &port_again, NULL) == 0);
        ensure(port == port_again && host_eq(&h, &again));
    }
    return 0;
}
