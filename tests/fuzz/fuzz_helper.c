/* Fuzz target for wire/helper: requests, answers and control lines from any bytes. What is accepted
 * is written and read again as the same. */
#include "base/mem.h"
#include "wire/helper.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n);

static void try_request(const char *text, size_t n)
{
    struct err e = {0};
    struct helper_request r, s;
    autobuf first = BUF_INIT;
    autobuf second = BUF_INIT;
    if (helper_request_read(text, n, &r, &e) < 0) {
        ensure(e.code != ERR_NONE && e.message[0] != '\0');
        return;
    }
    helper_request_write(&r, &first);
    ensure(helper_request_read(buf_bytes(&first), first.len, &s, &e) == 0);
    helper_request_write(&s, &second);
    ensure(strcmp(buf_cstr(&first), buf_cstr(&second)) == 0);
    helper_request_fini(&r);
    helper_request_fini(&s);
}

static void try_verdict(const char *text, size_t n)
{
    struct helper_verdict v, w;
    autobuf line = BUF_INIT;
    helper_verdict_read(text, n, &v);
    if (v.event == HELPER_TEXT)
        return;
    helper_verdict_write(&v, &line);
    helper_verdict_read(buf_bytes(&line), line.len - 1, &w);
    ensure(w.event == v.event && w.value == v.value && w.background == v.background);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n)
{
    const char *text = (const char *)data;
    struct err e = {0};
    autofree char *plan = NULL;
    try_request(text, n);
    try_verdict(text, n);
    if (helper_answer_read(text, n, &plan, NULL, &e) == 0)
        ensure(plan[0] == '/');
    int signal = helper_signal_read(text, n);
    ensure(signal < 0 || (signal >= 1 && signal <= 64));
    return 0;
}
