/* wire/codex: a permission profile as the helper of Codex takes it on its command line.
 *
 * Theory. An agent that was written for `codex-linux-sandbox` can use ours in its place (H5): this
 * reads the JSON of --permission-profile into plain entries. What they mean on this machine is
 * decided in sandbox/codex_face. The words (kinds of paths, accesses) are that program's.
 *
 * Must not: accept a word that it does not know, but for special paths of a kind that is to come,
 * which are ignored as they are there.
 */
#ifndef CODESPACE_WIRE_CODEX_H
#define CODESPACE_WIRE_CODEX_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

#define CODEX_ENTRIES_MAX 256

enum codex_access { CODEX_READ, CODEX_WRITE, CODEX_DENY };
enum codex_path {
    CODEX_PATH,
    CODEX_GLOB,
    CODEX_ROOT,
    CODEX_MINIMAL,
    CODEX_PROJECT,
    CODEX_TMPDIR,
    CODEX_SLASH_TMP,
    CODEX_UNKNOWN
};

struct codex_entry {
    enum codex_path kind;
    enum codex_access access;
    char *text; /* path, pattern or the project's subpath; may be NULL */
};

struct codex_profile {
    bool unrestricted; /* no file system policy */
    bool network;      /* enabled */
    struct codex_entry *entries;
    size_t n;
};

/* Errors: INVALID_ARGUMENT. */
int codex_profile_read(const char *text, size_t n, struct codex_profile *ret, struct err *e);
void codex_profile_fini(struct codex_profile *p);

#endif
