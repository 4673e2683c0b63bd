/* The test suite of the sample: one line a case, exit status 1 when one fails. */
#include "count.h"

#include <stdio.h>

static int failures;

static void check(const char *name, size_t got, size_t want)
{
    if (got != want)
        failures++;
    printf("%s: %s (got %zu, want %zu)\n", got == want ? "pass" : "FAIL", name, got, want);
}

int main(void)
{
    check("no lines", count_lines(""), 0);
    check("two lines", count_lines("a\nb\n"), 2);
    check("one word", count_words("one"), 1);
    check("three words", count_words("one two  three"), 3);
    printf("%d failed\n", failures);
    return failures != 0;
}
