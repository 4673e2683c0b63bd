/* wire/glob: patterns over workspace-relative paths.
 *
 * The language:
 *   *          any run of characters within one component (hidden names too)
 *   ?          one character (a whole UTF-8 character, or one byte that is not UTF-8)
 *   [a-z] [!x] one character of a set, or not of it ([^x] too); ']' first in it is literal
 *   {a,b}      either; may be nested and hold '/'
 *   **         as a whole component: any number of components, none included (at the end: at least
 *              one, so that "src/" followed by ** is every file below src); elsewhere as *
 *   \x         x itself
 * A pattern without '/' matches the last component at any depth ("*.c"); with '/' it matches the
 * whole path ("src/x.c"). "", "*" and "**" match everything; "src/" is all below src.
 *
 * Theory. Compiled once into alternatives of components; braces are multiplied out under a named
 * limit. Matching is bounded: one star per component and one ** per path need to be reconsidered
 * (the last one seen; an earlier one can never help), so the time is at most the product of both
 * lengths. may_enter() answers for a directory whether anything below it can match, which keeps
 * "src" patterns out of the rest of the tree.
 *
 * Must not: touch the file system; take exponential time for any pattern and path.
 */
#ifndef CODESPACE_WIRE_GLOB_H
#define CODESPACE_WIRE_GLOB_H

#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>

/* Bytes of a pattern, and of all its alternatives after braces are multiplied out. */
#define GLOB_LEN_MAX 4096u
#define GLOB_EXPANDED_MAX (64u << 10)
/* Alternatives that the braces of one pattern may give. */
#define GLOB_ALTERNATIVES_MAX 256u

struct glob_alternative {
    struct strv parts; /* components of the pattern */
};

struct glob {
    bool everything;
    struct glob_alternative *items;
    size_t n;
};

/* Compile; NULL is "". Errors: INVALID_ARGUMENT with the byte position and the rule,
 * LIMIT_EXCEEDED. On failure *ret is untouched. */
int glob_compile(const char *pattern, struct glob *ret, struct err *e);
void glob_fini(struct glob *g);

/* Does the path (relative, normalised) match? */
bool glob_match(const struct glob *g, const char *path);

/* Can a path below this directory match? "" is the root. */
bool glob_may_enter(const struct glob *g, const char *dir);

/* Does an alternative name this component literally? */
bool glob_names(const struct glob *g, const char *component);

#endif
