/* Fuzz target for run/clean: the cleaned text holds no control characters but tab and newline, has
 * the lines of the input, and is not larger than the columns that were asked for allow.
 */
#include "base/mem.h"
#include "run/clean.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n);

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n)
{
    autobuf out = BUF_INIT;
    autobuf again = BUF_INIT;
    size_t lines = 0;
    clean_text((const char *)data, n, &out);
    for (size_t i = 0; i < out.len; i++) {
        unsigned char c = (unsigned char)buf_bytes(&out)[i];
        ensure(c >= 0x20 ? c != 0x7f : c == '\n' || c == '\t');
        lines += c == '\n';
    }
    ensure(out.len <= 4 * n + (lines + n / 3 + 1) * CLEAN_LINE_MAX);
    clean_text(buf_bytes(&out), out.len, &again);
    ensure(again.len == out.len); /* clean text stays as it is */
    return 0;
}
