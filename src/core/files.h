/* core/files: reading files and finding them, for the tools `read` and `find`.
 *
 * Theory. Everything is reached through sys/path from the workspace's root descriptor; policy is
 * asked before the first system call. Functions block, keep no state and may run on any thread.
 * Names of errors are the public contract (codes by the errno met, see files_error()).
 *
 * Must not: hold a file in memory that is larger than the window asked for (hashing streams).
 */
#ifndef CODESPACE_CORE_FILES_H
#define CODESPACE_CORE_FILES_H

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "core/registry.h"
#include "core/version.h"
#include "sys/path.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* The window of one read, default and largest. */
#define FILES_READ_MAX (1u << 20)
/* Paths of one find page, default and largest. */
#define FILES_FIND_MAX 10000u
/* Bounds of a walk: directories within directories, and names looked at. A walk that meets one says
 * `incomplete`. */
#define FILES_WALK_DEPTH_MAX 64u
#define FILES_WALK_ENTRIES_MAX 2000000u

struct file_page {
    char path[4097]; /* normalised */
    struct buf content;
    char version[FILES_VERSION_LEN]; /* of the whole file */
    uint64_t offset;
    uint64_t size;  /* of the whole file when it was read */
    bool truncated; /* more bytes follow the window */
    bool lossy;     /* the window is not valid UTF-8 */
};

void file_page_fini(struct file_page *p);

/* Read a window. limit 1..FILES_READ_MAX or OUTPUT_LIMIT. A page never cuts a UTF-8 character in
 * two when the file is UTF-8 there: it ends before it and next_offset = offset + content.len.
 * Errors: OUTPUT_LIMIT, UNAUTHORIZED, PATH_ESCAPE, FILE_NOT_FOUND, PATH_NOT_DIRECTORY,
 * SYMLINK_REJECTED, SPECIAL_FILE_REJECTED, FILE_OPERATION_FAILED, PATH_PROTECTED. */
int files_read(const struct workspace *ws, const char *path, uint64_t offset, uint64_t limit,
               struct file_page *ret, struct err *e);

struct find_page {
    struct strv paths; /* sorted by bytes, relative, '/' between components */
    uint64_t offset;
    uint64_t total;  /* matching paths in all */
    bool truncated;  /* more matching paths follow this page */
    bool incomplete; /* the walk met a bound; `reason` says which */
    char reason[160];
    uint64_t vcs_skipped; /* directories such as .git that were not entered, see files_find() */
    char listing_version[FILES_VERSION_LEN];
};

void find_page_fini(struct find_page *p);

/* Walk and match. `glob` NULL or "" matches everything; see core/glob for the language. `cancel`
 * may be NULL; when it turns true the walk stops with CANCELLED. Only regular files are listed;
 * symbolic links are neither followed nor listed. Hidden directories are entered; the stores of
 * version control systems (.git, .hg, .svn, .jj) only when the pattern names them, since they
 * would flood every answer; vcs_skipped counts them. What policy hides is not listed. */
int files_find(const struct workspace *ws, const char *glob, uint64_t offset, uint64_t limit,
               const atomic_bool *cancel, struct find_page *ret, struct err *e);

/* "sha256:<hex>" of n bytes. */
void files_version(const void *bytes, size_t n, char ret[FILES_VERSION_LEN]);

/* Steps that the other file operations share. */

/* Normalise what a client wrote. Errors: INVALID_ARGUMENT (empty), PATH_ESCAPE, LIMIT_EXCEEDED. */
int files_resolve(const struct workspace *ws, const char *path, char ret[PATH_LEN_MAX],
                  struct err *e);

/* Was the root directory itself deleted? Then ENOENT says nothing about a file. */
bool files_root_gone(const struct workspace *ws);
int files_root_error(const struct workspace *ws, struct err *e);

/* 1..max or OUTPUT_LIMIT with the limit's name. */
int files_check_limit(uint64_t limit, uint64_t max, const char *name, struct err *e);

/* The tool error for an errno met on `path`. Returns -1. */
int files_error(struct err *e, int errnum, const char *path, const char *doing);

#endif
