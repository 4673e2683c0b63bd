/* sandbox/gitconfig: the settings in a file of git's, one after another.
 *
 * Theory. Only what decides what has to be protected is asked for, so this reads more than git
 * would rather than less: of sections it tells only those that include other files, and a setting
 * counts wherever it stands. A file is data of the workspace: it is read once, up to a bound,
 * without following a link and without waiting for it.
 *
 * Must not: run git, or follow what an included file includes (sandbox/gitdir does, to a depth).
 */
#ifndef CODESPACE_SANDBOX_GITCONFIG_H
#define CODESPACE_SANDBOX_GITCONFIG_H

#include <stdbool.h>
#include <stddef.h>

/* A file larger than this is looked into as far. */
#define GITCONFIG_MAX 65536

struct gitconfig {
    char *text;
    char *at;
    bool including; /* in a section "include" or "includeIf" */
    const char *key;
    const char *value; /* without quotes; both valid until the next step */
};

/* At most cap - 1 bytes of a regular file, or "". */
void gitconfig_read_text(const char *path, char *ret, size_t cap);

void gitconfig_open(struct gitconfig *c, const char *path);
/* The next setting that has a value. False at the end. */
bool gitconfig_next(struct gitconfig *c);
void gitconfig_close(struct gitconfig *c);

#define autogitconfig __attribute__((cleanup(gitconfig_close))) struct gitconfig

#endif
