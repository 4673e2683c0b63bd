/* sys/beside: see beside.h. */
#include "sys/beside.h"

#include "base/mem.h"

#include <limits.h>
#include <string.h>
#include <unistd.h>

char *beside_find(const char *name)
{
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (n <= 0)
        return NULL;
    self[n] = '\0';
    char *slash = strrchr(self, '/');
    if (slash == NULL)
        return NULL;
    *slash = '\0';
    autofree char *path = mem_printf("%s/%s", self, name);
    return access(path, X_OK) == 0 ? steal(path) : NULL;
}
