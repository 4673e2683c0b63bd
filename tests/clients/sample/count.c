/* Counts of a text. See count.h. */
#include "count.h"

size_t count_lines(const char *text)
{
    size_t lines = 0;
    for (; *text; text++)
        if (*text == '\n')
            lines++;
    return lines;
}

size_t count_words(const char *text)
{
    size_t words = 0;
    for (; *text; text++)
        if (*text == ' ' && text[1] && text[1] != ' ')
            words++;
    return words + 1;
}
