/* base/num: decimal numbers from text, strictly: no sign, no blanks, no overflow, whole string.
 * Must not: guess units.
 */
#ifndef CODESPACE_BASE_NUM_H
#define CODESPACE_BASE_NUM_H

#include <stdint.h>

/* 0 and *ret filled when `text` is a decimal number in [min, max]; -EINVAL or -ERANGE else. */
int num_parse_u64(const char *text, uint64_t min, uint64_t max, uint64_t *ret);

#endif
