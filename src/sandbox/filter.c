/* sandbox/filter: see filter.h. */
#include "sandbox/filter.h"

#include "sandbox/filter_program.h"

void filter_add(bool debug, struct buf *out)
{
    if (debug)
        buf_put(out, filter_program_debug, sizeof(filter_program_debug));
    else
        buf_put(out, filter_program, sizeof(filter_program));
}

void filter_add_alone(bool network, struct buf *out)
{
    if (network)
        filter_add(false, out);
    else
        buf_put(out, filter_program_alone, sizeof(filter_program_alone));
}
