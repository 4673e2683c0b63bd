/* tests/fuzz/fuzz_search: what a search program wrote, from outside.
 *
 * Input: a byte for the context, a byte for the piece, then standard output and, behind "\n====\n",
 * standard error. What must hold: no fault; the page is within its limits and sorted.
 */
#include "base/mem.h"
#include "core/search.h"

#include <stdint.h>
#include <string.h>

#define SEPARATOR "\n====\n"
#define LIMIT 5u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_page(const struct search_page *p)
{
    uint64_t matches = 0;
    for (size_t i = 0; i < p->n; i++) {
        ensure(i == 0 || strcmp(p->files[i - 1].path, p->files[i].path) <= 0);
        for (size_t k = 0; k < p->files[i].n; k++) {
            matches += p->files[i].lines[k].match;
            ensure(p->files[i].lines[k].len <= SEARCH_COLUMNS_MAX);
        }
    }
    ensure(matches == p->matches && matches <= LIMIT);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    struct search_request q = {.pattern = "x",
                               .limit = LIMIT,
                               .before = data[0] & 3u,
                               .after = data[0] >> 2 & 3u,
                               .offset = data[0] >> 4 & 3u};
    size_t piece = data[1] + 1u;
    const char *output = (const char *)data + 2;
    const char *end = (const char *)data + size;
    const char *cut = memmem(output, (size_t)(end - output), SEPARATOR, strlen(SEPARATOR));
    const char *errors = cut != NULL ? cut + strlen(SEPARATOR) : end;
    size_t n = (size_t)((cut != NULL ? cut : end) - output);
    struct search *s = search_new(&q);
    struct search_page page = {0};
    struct err e = {0};
    int rc = 0;
    for (size_t i = 0; i < n && rc == 0; i += piece)
        rc = search_feed_output(s, output + i, n - i < piece ? n - i : piece, &e);
    search_feed_errors(s, errors, (size_t)(end - errors));
    if (rc == 0 && search_finish(s, n > 0 ? 0 : 2, &page, &e) == 0)
        check_page(&page);
    else
        ensure(e.code != ERR_NONE && e.message[0] != '\0');
    search_page_fini(&page);
    search_free(s);
    return 0;
}
