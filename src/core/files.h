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
#include "core/version_cache.h"
#include "sys/path.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* The window of one read: largest, and when none is named. The latter is about 20,000 tokens of
 * code, below what clients let one answer have. */
#define FILES_READ_MAX (1u << 20)
#define FILES_READ_DEFAULT (64u << 10)
/* Paths of one find page, the largest. Where no limit is named, a page ends at so many bytes. */
#define FILES_FIND_MAX 10000u
#define FILES_FIND_DEFAULT_BYTES (48u << 10)
/* Bounds of a walk: directories within directories, and names looked at. A walk that meets one says
 * `incomplete`. */
#define FILES_WALK_DEPTH_MAX 64u
#define FILES_WALK_ENTRIES_MAX 2000000u

struct file_page {
    char path[4097]; /* normalised */
    struct buf content;
    char version[FILES_VERSION_LEN]; /* of the whole file */
    uint64_t offset;
    uint64_t size;        /* of the whole file when it was read */
    bool truncated;       /* more bytes follow the window */
    bool lossy;           /* the window is not valid UTF-8 */
    bool binary;          /* the window holds a NUL byte and is not UTF-16 */
    const char *encoding; /* static: "utf-8", "utf-16le", "utf-16be", "binary" or "unknown", by the
                             window and the file's first bytes; decides nothing */
    /* Where the window begins and how many lines it holds, the last one whole or not; 0 when lines
     * were not asked for, or for `first_line` when they were counted from the end. */
    uint64_t first_line;
    uint64_t n_lines;
};

void file_page_fini(struct file_page *p);

/* Read a window. limit 1..FILES_READ_MAX or OUTPUT_LIMIT. A page never cuts a UTF-8 character in
 * two when the file is UTF-8 there: it ends before it and next_offset = offset + content.len.
 * Errors: OUTPUT_LIMIT, UNAUTHORIZED, PATH_ESCAPE, FILE_NOT_FOUND, PATH_NOT_DIRECTORY,
 * SYMLINK_REJECTED, SPECIAL_FILE_REJECTED, FILE_OPERATION_FAILED, PATH_PROTECTED. */
int files_read(const struct workspace *ws, const char *path, uint64_t offset, uint64_t limit,
               struct file_page *ret, struct err *e);

/* A read in all its forms. By bytes: offset and limit. By lines: first_line (from 1) and n_lines
 * (0 = as many as fit), or tail_lines; the window is then as many whole lines as `limit` bytes
 * hold, or the beginning of a line that is longer. */
struct read_request {
    const char *path;
    uint64_t offset;
    uint64_t limit;
    uint64_t first_line;
    uint64_t n_lines;
    uint64_t tail_lines;
    bool exact;                  /* the window may cut a character */
    uint64_t quick_max;          /* not 0: a larger file is not read; see below */
    struct version_cache *cache; /* or NULL */
    const atomic_bool *cancel;   /* or NULL; CANCELLED when it turns true */
};

/* As files_read(). Besides: INVALID_ARGUMENT for forms that are mixed, CANCELLED. 1: the file is
 * larger than quick_max and was not read; only ret->size is filled, for whoever reads it elsewhere.
 */
int files_read_request(const struct workspace *ws, const struct read_request *q,
                       struct file_page *ret, struct err *e);

enum find_kind { FIND_FILE, FIND_DIRECTORY, FIND_LINK, FIND_OTHER };

/* Kinds to list, as a mask; 0 = files. */
#define FIND_KIND(k) (1u << (k))

/* What is known of one path; in the order of the paths. */
struct find_entry {
    enum find_kind kind;
    bool known; /* it was still there when it was asked about */
    unsigned mode;
    uint64_t size;
    int64_t modified_ns; /* since 1970 */
};

struct find_request {
    const char *glob;
    uint64_t offset;
    uint64_t limit;
    const atomic_bool *cancel;
    unsigned kinds;     /* directories are listed with a '/' at the end */
    unsigned max_depth; /* components of a path; 0 = no bound but FILES_WALK_DEPTH_MAX */
    bool fold_case;     /* ASCII letters match in either case */
    bool ignore_files;  /* leave out what .gitignore and .ignore say; see core/ignore */
    bool details;       /* fill `entries` */
    uint64_t max_bytes; /* of the paths of a page; 0 = no bound. One path is always given */
    const char *listing_version; /* not NULL: VERSION_CONFLICT when the listing is another one */
};

struct find_page {
    struct strv paths;          /* sorted by bytes, relative, '/' between components */
    struct find_entry *entries; /* one a path, or NULL */
    uint64_t offset;
    uint64_t total;  /* matching paths in all */
    bool truncated;  /* more matching paths follow this page */
    bool incomplete; /* the walk met a bound; `reason` says which */
    char reason[160];
    uint64_t vcs_skipped; /* directories such as .git that were not entered, see files_find() */
    uint64_t ignored;     /* files and directories that ignore files left out */
    char listing_version[FILES_VERSION_LEN];
};

void find_page_fini(struct find_page *p);

/* Walk and match. `glob` NULL or "" matches everything; see wire/glob for the language. `cancel`
 * may be NULL; when it turns true the walk stops with CANCELLED. Only regular files are listed;
 * symbolic links are neither followed nor listed. Hidden directories are entered; the stores of
 * version control systems (.git, .hg, .svn, .jj) only when the pattern names them, since they
 * would flood every answer; vcs_skipped counts them. What policy hides is not listed. */
int files_find(const struct workspace *ws, const char *glob, uint64_t offset, uint64_t limit,
               const atomic_bool *cancel, struct find_page *ret, struct err *e);

/* In all its forms. Symbolic links are listed when asked for, never followed. */
int files_find_request(const struct workspace *ws, const struct find_request *q,
                       struct find_page *ret, struct err *e);

/* The same in pieces, so that a long walk does not hold a thread of a pool: begin, step until it no
 * longer says 1, free. What `q` points to is borrowed until then. NULL: refused, as above. */
struct find_walk;
struct find_walk *files_find_begin(const struct workspace *ws, const struct find_request *q,
                                   struct err *e);
/* Walk for about so long. 1: there is more to do. 0: *ret is filled. -1. */
int files_find_step(struct find_walk *w, uint64_t budget_ms, struct find_page *ret, struct err *e);
void files_find_free(struct find_walk *w);

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
