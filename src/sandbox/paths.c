/* sandbox/paths: see paths.h. */
#include "sandbox/paths.h"

#include <string.h>

bool paths_within(const char *path, const char *dir)
{
    size_t n = strlen(dir);
    if (n == 1)
        return true;
    return strncmp(path, dir, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

/* The separator counts as the smallest character but the end, so "/a/b" comes before "/a-b". */
int paths_compare(const char *a, const char *b)
{
    while (*a != '\0' && *a == *b) {
        a++;
        b++;
    }
    int x = *a == '/' ? 1 : (unsigned char)*a * 2;
    int y = *b == '/' ? 1 : (unsigned char)*b * 2;
    return x - y;
}
