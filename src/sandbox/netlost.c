/* sandbox/netlost: see netlost.h. */
#include "sandbox/netlost.h"

#include "base/mem.h"
#include "base/num.h"
#include "sys/fd.h"

#include <fcntl.h>
#include <string.h>

#define COUNTERS "/proc/self/net/snmp6"
#define COUNTER "\nIp6OutNoRoutes"

int64_t netlost_count(void)
{
    char text[4096]; /* it stands among the first */
    autofd int fd = open(COUNTERS, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : fd_read(fd, text, sizeof(text) - 1);
    text[n > 0 ? n : 0] = '\0';
    const char *at = strstr(text, COUNTER);
    uint64_t count = 0;
    if (at == NULL)
        return -1;
    at += strlen(COUNTER);
    at += strspn(at, " \t");
    autofree char *digits = mem_dup(at, strspn(at, "0123456789"));
    return num_parse_u64(digits, 0, INT64_MAX, &count) < 0 ? -1 : (int64_t)count;
}

int64_t netlost_tell(int64_t before, struct denial *list)
{
    int64_t now = netlost_count();
    int64_t more = before < 0 ? 0 : now - before;
    if (more <= 0)
        return now;
    struct denial *d = denial_count(list, "network.ipv6", "");
    uint64_t count = d->count + (uint64_t)more - 1;
    d->count = count < DENIAL_COUNT_MAX ? count : DENIAL_COUNT_MAX;
    return now;
}
