/* Fuzz target for wire/egress: a policy that is accepted, written and read again, is the same
 * policy. */
#include "base/mem.h"
#include "wire/egress.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n);

static void write_policy(const struct egress_policy *p, struct buf *out)
{
    struct jsonw w;
    jsonw_init(&w, out);
    egress_policy_write(p, &w);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n)
{
    struct err e = {0};
    autoegress p = {0};
    autoegress again = {0};
    autobuf first = BUF_INIT;
    autobuf second = BUF_INIT;
    if (egress_policy_parse((const char *)data, n, &p, &e) < 0) {
        ensure(e.code != ERR_NONE && e.message[0] != '\0');
        return 0;
    }
    write_policy(&p, &first);
    ensure(egress_policy_parse(buf_bytes(&first), first.len, &again, &e) == 0);
    write_policy(&again, &second);
    ensure(first.len == second.len &&
           memcmp(buf_bytes(&first), buf_bytes(&second), first.len) == 0);
    return 0;
}
