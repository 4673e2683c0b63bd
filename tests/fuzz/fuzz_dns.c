/* Fuzz target for wire/dns: a query that is understood can be answered and the answer read back;
 * any bytes as an answer end, with addresses only within the bound. */
#include "base/mem.h"
#include "wire/dns.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n);

static void answer_back(const struct dns_query *q)
{
    const struct net_addr addr = {4, {198, 18, 0, 1}};
    struct dns_answer answer = {0};
    autobuf out = BUF_INIT;
    dns_answer_write(q, DNS_NOERROR, &addr, 30, &out);
    ensure(out.len <= DNS_UDP_MAX);
    if (!q->has_host || q->type != DNS_A)
        return;
    ensure(dns_answer_parse(buf_bytes(&out), out.len, q->id, &q->host, DNS_A, &answer) == 0);
    ensure(answer.n_addrs == 1 && memcmp(&answer.addrs[0], &addr, sizeof(addr)) == 0);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n)
{
    struct dns_query q = {0};
    struct dns_answer answer = {0};
    struct host host = {0};
    if (dns_query_parse(data, n, &q) == 0)
        answer_back(&q);
    ensure(host_parse("a.test", 6, &host, NULL) == 0);
    uint16_t id = n < 2 ? 0 : (uint16_t)(data[0] << 8 | data[1]);
    if (dns_answer_parse(data, n, id, &host, DNS_A, &answer) == 0)
        ensure(answer.n_addrs <= DNS_ADDRS_MAX);
    if (dns_answer_parse(data, n, id, &host, DNS_AAAA, &answer) == 0)
        ensure(answer.n_addrs <= DNS_ADDRS_MAX);
    return 0;
}
