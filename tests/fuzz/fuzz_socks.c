/* Fuzz target for wire/socks: no prefix of an accepted message is accepted, and what is accepted
 * names a host in canonical form. */
#include "base/mem.h"
#include "wire/socks.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n);

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n)
{
    const char *text = (const char *)data;
    struct socks_request request = {0};
    struct err e = {0};
    size_t size = 0;
    bool no_auth = false;
    if (socks_greeting_parse(text, n, &size, &no_auth) == 1)
        ensure(size <= n && size <= SOCKS_MESSAGE_MAX);
    int r = socks_request_parse(text, n, &request, &e);
    ensure((r < 0) == (e.code != ERR_NONE));
    ensure(r >= 0 || request.reply != SOCKS_OK);
    if (r != 1)
        return 0;
    ensure(request.size <= n && request.size <= SOCKS_MESSAGE_MAX && request.port != 0);
    struct host again = {0};
    ensure(host_parse(request.host.text, request.host.len, &again, NULL) == 0);
    ensure(host_eq(&again, &request.host));
    for (size_t cut = 0; cut < request.size; cut++) {
        struct socks_request part = {0};
        ensure(socks_request_parse(text, cut, &part, NULL) == 0);
    }
    return 0;
}
