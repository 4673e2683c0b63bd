/* core/ignore: ignore files (.gitignore, .ignore) of the directories on the way to a path.
 *
 * Theory. The walk of `find` goes down one path at a time, so the rules in force are a stack: those
 * of the root, of the directory below, and so on. The last rule that fits decides, deeper files
 * over higher ones, and within a directory .ignore over .gitignore. What is below an ignored
 * directory is never looked at, so nothing in it can be taken back.
 *
 * Patterns are git's: "#" comments, "!" takes back, "/" at the end only directories, "/" elsewhere
 * ties the pattern to its directory, "*", "?", "[...]", "**", "\" escapes. They are matched by
 * wire/glob, with the braces that git does not know escaped. A pattern that is not well formed
 * ignores nothing.
 * Source: gitignore(5).
 *
 * Must not: read outside the root, or through a symbolic link.
 */
#ifndef CODESPACE_CORE_IGNORE_H
#define CODESPACE_CORE_IGNORE_H

#include "wire/glob.h"

#include <stdbool.h>
#include <stddef.h>

/* Bytes of one ignore file and rules in force together; more is not read, and told. */
#define IGNORE_FILE_MAX (256u << 10)
#define IGNORE_RULES_MAX 8192u

struct ignore_rule {
    struct glob glob;
    bool take_back;
    bool only_directories;
    bool one_level; /* the name itself, in this directory only */
};

struct ignore_level {
    size_t base_len; /* bytes of the directory's path, with its '/' */
    struct ignore_rule *rules;
    size_t n;
    size_t cap;
};

struct ignore {
    struct ignore_level *levels;
    size_t n;
    size_t cap;
    size_t rules;
    char base[4097]; /* directory of the last level */
    bool cut;        /* a limit was met */
};

void ignore_fini(struct ignore *g);

/* The walk enters the open directory `base` ("" or ending in '/'): forget the rules of directories
 * that are not above it, and read its own. */
void ignore_enter(struct ignore *g, int dir_fd, const char *base);

/* Is that path, of something in the last directory entered, ignored? */
bool ignore_match(const struct ignore *g, const char *path, bool is_directory);

#endif
