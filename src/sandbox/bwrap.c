/* sandbox/bwrap: see bwrap.h. */
#include "sandbox/bwrap.h"

#include "base/mem.h"
#include "base/str.h"
#include "sandbox/paths.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const places[] = {"/usr/bin/bwrap", "/usr/local/bin/bwrap", "/bin/bwrap"};

/* Whether that file may be run as bubblewrap. The directory counts too: who may replace the file
 * may choose it. */
static bool acceptable(const char *path, const char *workspace)
{
    struct stat st;
    autofree char *real = realpath(path, NULL);
    if (real == NULL || stat(real, &st) < 0 || !S_ISREG(st.st_mode) || access(real, X_OK) < 0)
        return false;
    if (workspace != NULL && paths_within(real, workspace))
        return false;
    autofree char *dir = mem_dup(real, (size_t)(strrchr(real, '/') - real) + 1);
    struct stat dir_st;
    return (st.st_mode & (S_IWGRP | S_IWOTH)) == 0 && stat(dir, &dir_st) == 0 &&
           (dir_st.st_mode & S_IWOTH) == 0;
}

static char *find_in_path(const char *workspace)
{
    const char *list = getenv("PATH");
    while (list != NULL && *list != '\0') {
        size_t n = strcspn(list, ":");
        autofree char *candidate = mem_printf("%.*s/bwrap", (int)n, list);
        if (candidate[0] == '/' && acceptable(candidate, workspace))
            return steal(candidate);
        list += n + (list[n] == ':');
    }
    return NULL;
}

int bwrap_find(const char *workspace, char **ret, struct err *e)
{
    const char *chosen = getenv("CODESPACE_BWRAP_BIN");
    if (chosen != NULL && *chosen != '\0') {
        if (chosen[0] != '/' || access(chosen, X_OK) < 0)
            return err_set(e, ERR_SANDBOX_UNAVAILABLE,
                           "CODESPACE_BWRAP_BIN: %.512s is not an absolute path of an executable "
                           "file",
                           chosen);
        *ret = mem_strdup(chosen);
        return 0;
    }
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        if (acceptable(places[i], workspace)) {
            *ret = mem_strdup(places[i]);
            return 0;
        }
    }
    char *found = find_in_path(workspace);
    if (found == NULL)
        return err_set(e, ERR_SANDBOX_UNAVAILABLE,
                       "bubblewrap is not installed (no usable bwrap in /usr/bin or PATH); install "
                       "the package bubblewrap");
    *ret = found;
    return 0;
}
