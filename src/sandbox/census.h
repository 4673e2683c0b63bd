/* sandbox/census: how many processes live in our PID namespace. */
#ifndef CODESPACE_SANDBOX_CENSUS_H
#define CODESPACE_SANDBOX_CENSUS_H

#include <stdint.h>

/* Without us and without zombies, for process 1 of a namespace. Where /proc shows another namespace
 * the number cannot be told: then 1, the least there is when it is asked for. */
uint32_t census_take(void);

#endif
