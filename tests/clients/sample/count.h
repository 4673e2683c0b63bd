/* Counts of a text. */
#ifndef COUNT_H
#define COUNT_H

#include <stddef.h>

size_t count_lines(const char *text);
size_t count_words(const char *text);

#endif
