/* Fuzz target for wire/tlshello: what is a whole hello stays one with more bytes behind it, and its
 * prefixes are never refused. */
#include "base/mem.h"
#include "wire/tlshello.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n);

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n)
{
    struct tlshello hello = {0};
    if (tlshello_parse(data, n, &hello) != 1)
        return 0;
    ensure(hello.name != TLSHELLO_NAME || hello.host.len > 0);
    if (n > 600)
        return 0;
    for (size_t cut = 0; cut < n; cut++) {
        struct tlshello part = {0};
        ensure(tlshello_parse(data, cut, &part) >= 0);
    }
    return 0;
}
