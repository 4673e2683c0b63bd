/* tests/fuzz/fuzz_glob: a pattern from outside against paths from outside.
 *
 * Input: the pattern, then a path on each further line. What must hold: no fault; whatever matches
 * lies below directories that may be entered.
 */
#include "base/mem.h"
#include "wire/glob.h"

#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_path(const struct glob *g, char *path)
{
    if (!glob_match(g, path))
        return;
    ensure(glob_may_enter(g, ""));
    for (char *slash = strrchr(path, '/'); slash != NULL; slash = strrchr(path, '/')) {
        *slash = '\0';
        ensure(glob_may_enter(g, path));
    }
}

/* What the walk makes: no empty component. */
static bool is_path(const char *path)
{
    return *path != '\0' && *path != '/' && strstr(path, "//") == NULL &&
           path[strlen(path) - 1] != '/';
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct glob g = {0};
    struct err e = {0};
    autofree char *text = mem_dup(data, size);
    char *rest = strchr(text, '\n');
    if (rest != NULL)
        *rest++ = '\0';
    if (glob_compile(text, &g, &e) < 0) {
        ensure(e.code == ERR_INVALID_ARGUMENT || e.code == ERR_LIMIT_EXCEEDED);
        return 0;
    }
    char *save = NULL;
    char *path = rest != NULL ? strtok_r(rest, "\n", &save) : NULL;
    for (; path != NULL; path = strtok_r(NULL, "\n", &save)) {
        if (is_path(path))
            try_path(&g, path);
    }
    glob_fini(&g);
    return 0;
}
