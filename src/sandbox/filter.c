/* sandbox/filter: see filter.h. */
#include "sandbox/filter.h"

#include "base/mem.h"
#include "sandbox/filter_program.h"

#define PROGRAM(array)                                                                             \
    {                                                                                              \
        array, sizeof(array)                                                                       \
    }

/* By the set of flags. */
static const struct {
    const unsigned char *bytes;
    size_t n;
} programs[FILTER_FLAGS_ALL + 1] = {
    [0] = PROGRAM(filter_program),
    [FILTER_DEBUG] = PROGRAM(filter_program_debug),
    [FILTER_NAMESPACES] = PROGRAM(filter_program_namespaces),
    [FILTER_DEBUG | FILTER_NAMESPACES] = PROGRAM(filter_program_debug_namespaces),
};

void filter_add(unsigned flags, struct buf *out)
{
    ensure(flags <= FILTER_FLAGS_ALL);
    buf_put(out, programs[flags].bytes, programs[flags].n);
}

void filter_add_alone(bool network, struct buf *out)
{
    if (network)
        filter_add(0, out);
    else
        buf_put(out, filter_program_alone, sizeof(filter_program_alone));
}
