/* sandbox/census: which processes live in our PID namespace.
 *
 * For process 1: whoever else lives there is a descendant of the command. Names are what the
 * processes call themselves.
 */
#ifndef CODESPACE_SANDBOX_CENSUS_H
#define CODESPACE_SANDBOX_CENSUS_H

#include "wire/helper.h"

#include <stdbool.h>
#include <stdint.h>

/* How many there are without us and without zombies; the first of them are named in `named` (pid 0
 * after the last). Where /proc shows another namespace the number cannot be told: then 1, the least
 * there is when it is asked for, and no name. */
uint32_t census_take(struct helper_left named[HELPER_LEFT_MAX]);

/* The names alone, of no more than that: there may be thousands. With `all` the others are counted
 * as well. How many that makes; 0 where it cannot be told. */
uint32_t census_name(bool all, struct helper_left named[HELPER_LEFT_MAX]);

#endif
