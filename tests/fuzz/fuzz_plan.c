/* Fuzz target for wire/plan: any bytes give a plan or an error, and a plan that is accepted is
 * written again as the same bytes, so nothing in a file goes unread. */
#include "base/mem.h"
#include "wire/plan.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n);

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n)
{
    struct err e = {0};
    struct plan p;
    autobuf again = BUF_INIT;
    if (plan_read((const char *)data, n, &p, &e) < 0) {
        ensure(e.code == ERR_PARSE_ERROR && e.message[0] != '\0');
        return 0;
    }
    plan_write(&p, &again);
    ensure(again.len == n && memcmp(buf_bytes(&again), data, n) == 0);
    ensure(p.argv.len > 0 && n - p.args_at == p.args.len);
    plan_fini(&p);
    return 0;
}
