/* Fuzz target for wire/icmp: any packet is read within its bounds, and what is one stays one with
 * more bytes behind it. */
#include "base/mem.h"
#include "wire/icmp.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n);

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n)
{
    struct icmp_unreached found;
    if (icmp_unreached_read(data, n, &found) < 0)
        return 0;
    ensure(found.to.family == 4);
    for (size_t cut = n < ICMP_PACKET_MAX ? n : ICMP_PACKET_MAX; cut > 0; cut--) {
        autofree char *part = mem_dup(data, cut); /* its end is watched */
        struct icmp_unreached again;
        if (icmp_unreached_read(part, cut, &again) == 0)
            ensure(again.to_port == found.to_port);
    }
    return 0;
}
