/* base/num: see num.h. */
#include "base/num.h"

#include <errno.h>

int num_parse_u64(const char *text, uint64_t min, uint64_t max, uint64_t *ret)
{
    uint64_t v = 0;
    if (*text == '\0')
        return -EINVAL;
    for (; *text != '\0'; text++) {
        if (*text < '0' || *text > '9')
            return -EINVAL;
        if (__builtin_mul_overflow(v, (uint64_t)10, &v) ||
            __builtin_add_overflow(v, (uint64_t)(*text - '0'), &v))
            return -ERANGE;
    }
    if (v < min || v > max)
        return -ERANGE;
    *ret = v;
    return 0;
}
