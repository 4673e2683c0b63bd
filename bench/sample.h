/* bench/sample: time samples of one run, and how the programs here tell them.
 *
 * Must not: print anything else on stdout; the harness reads one JSON line and, when asked for, a
 * file of raw 64-bit nanosecond samples that it pools over rounds.
 */
#ifndef CODESPACE_BENCH_SAMPLE_H
#define CODESPACE_BENCH_SAMPLE_H

#include <stddef.h>
#include <stdint.h>

struct samples {
    uint64_t *ns;
    size_t n;
    size_t cap;
};

uint64_t now_ns(void);

/* Print "program: message" to stderr and exit 1. */
void die(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

/* A decimal number from the command line, or die. */
uint64_t number_or_die(const char *text);

void samples_add(struct samples *s, uint64_t ns);

/* Write the raw samples to `path` in the order they were taken; NULL does nothing. */
void samples_save(const struct samples *s, const char *path);

/* Print "\"p50_ns\":..,\"p99_ns\":.." without braces; sorts. */
void samples_print(struct samples *s);

#endif
