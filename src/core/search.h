/* core/search: the tool `search`: contents by regular expression, through ripgrep.
 *
 * Theory. Ripgrep runs inside the workspace's own sandbox like any command, so it sees what
 * commands see and no more; this module never starts it. It makes the arguments, is fed what the
 * program writes on both outputs, piece by piece, and gives a page. Files come in any order, since
 * ripgrep searches in parallel; they are sorted by path at the end, so pages follow each other.
 * What was found is held up to SEARCH_HELD_MAX; what does not fit is counted, and the page says
 * `incomplete`.
 *
 * Nothing is hidden silently: by default hidden and ignored files are searched (only the stores of
 * version control systems are not), and what was passed over is counted by reason (F17). Long lines
 * are cut around the first hit (F18). Names and lines are bytes; the caller decides how to write
 * them.
 *
 * Files above a size are not searched. Told so, ripgrep asks the size of every file, which over
 * 100,000 of them is a tenth of the whole search. So a first try may be `quick`: ripgrep is not
 * told, and the hits of a file that turns out to be larger are dropped and counted here. The answer
 * is the same but for larger files without a hit, which were searched and are not counted. Such a
 * try may read a huge file for long and hold one line of it, so it gets a short time only, and
 * whatever is odd about it (search_again) is a reason to ask once more in the ordinary way.
 *
 * Must not: take ripgrep's output for more than a hint to show: nothing is opened by these names.
 */
#ifndef CODESPACE_CORE_SEARCH_H
#define CODESPACE_CORE_SEARCH_H

#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of a pattern, globs of a request, lines of context, matches of a page. */
#define SEARCH_PATTERN_MAX 4096u
#define SEARCH_GLOBS_MAX 64u
#define SEARCH_CONTEXT_MAX 100u
#define SEARCH_PAGE_MAX 2000u
/* Bytes of a line that are shown; of one line of ripgrep's output; of all that is held. */
#define SEARCH_COLUMNS_MAX 400u
#define SEARCH_RECORD_MAX (16u << 20)
#define SEARCH_HELD_MAX (32u << 20)
/* Bytes of data that ripgrep may have (RLIMIT_DATA): twice a line of SEARCH_FILE_MAX, in a few of
 * its threads. A quick try knows no size of a file, and a request may allow larger ones. */
#define SEARCH_DATA_MAX (512u << 20)
/* Larger files are not searched, unless the request says so. */
#define SEARCH_FILE_MAX (64u << 20)

enum search_case { SEARCH_CASE_SENSITIVE, SEARCH_CASE_IGNORE, SEARCH_CASE_SMART };

struct search_request {
    const char *pattern;
    const char *path;         /* a directory or file below the root; NULL = all */
    const char *const *globs; /* ripgrep's; "!" before one excludes */
    size_t n_globs;
    bool literal;
    bool whole_words;
    bool multiline;    /* a match may span lines */
    bool ignore_files; /* leave out what .gitignore and .ignore say, and hidden files */
    bool binary;       /* show hits in binary files */
    enum search_case letter_case;
    unsigned before; /* lines of context */
    unsigned after;
    uint64_t offset;         /* matches before this page */
    uint64_t limit;          /* 1..SEARCH_PAGE_MAX */
    uint64_t max_bytes;      /* of the lines of a page, about; 0 = no bound */
    uint64_t max_file_bytes; /* 0 = SEARCH_FILE_MAX */
    bool quick;              /* see above */
};

struct search_line {
    uint64_t number; /* from 1; 0 = not known */
    bool match;      /* else context */
    uint64_t column; /* byte of the first hit, from 1 */
    size_t hits;
    char *text; /* without its ending */
    size_t len;
    bool cut_front;
    bool cut_back;
};

struct search_file {
    char *path; /* relative to the root; no NUL, else any bytes */
    struct search_line *lines;
    size_t n;
};

/* Files and directories that were passed over, by reason; an ignored directory counts once. */
struct search_skipped {
    uint64_t binary; /* held hits that are not shown */
    uint64_t too_large;
    uint64_t ignored;
    uint64_t hidden;
    uint64_t
        special; /* symbolic links to files, devices; of links to directories nothing is told */
    uint64_t unreadable;
};

struct search_page {
    struct search_file *files; /* sorted by path */
    size_t n;
    uint64_t offset;
    uint64_t matches; /* in this page: lines with hits */
    uint64_t total;   /* in all, as far as ripgrep came */
    uint64_t total_files;
    bool truncated; /* more follow */
    bool incomplete;
    char reason[160];
    struct search_skipped skipped;
};

void search_page_fini(struct search_page *p);

/* May it be tried `quick`? Not where a file is held as a whole, nor with a size of the caller's. */
bool search_may_be_quick(const struct search_request *q);

/* The arguments, "rg" first. Errors: INVALID_ARGUMENT, PATH_ESCAPE, LIMIT_EXCEEDED, OUTPUT_LIMIT.
 */
int search_argv(const struct search_request *q, struct strv *ret, struct err *e);

struct search;

struct search *search_new(const struct search_request *q);
void search_free(struct search *s);

/* Bytes of ripgrep's standard output and error, in whatever pieces. -1: INTERNAL, the output is not
 * ripgrep's; the search should be stopped. */
int search_feed_output(struct search *s, const char *bytes, size_t n, struct err *e);
void search_feed_errors(struct search *s, const char *bytes, size_t n);

/* Is all held that can be? What comes now is only counted, so whoever runs ripgrep may end it. */
bool search_is_full(const struct search *s);

/* Did a quick try that ended with this status (as search_finish) come to less than everything? Then
 * it is to be thrown away and asked again. */
bool search_again(const struct search *s, int exit_status);

/* Output got lost here: the line that goes on is not a whole one. */
void search_lost(struct search *s);

/* Ripgrep was ended before it was done, for that reason: then search_finish() gives what there is,
 * `incomplete`, whatever the exit status. */
void search_stopped(struct search *s, const char *reason);

/* Ripgrep ended with that status (-1: killed or lost). Errors: INVALID_ARGUMENT with what ripgrep
 * said of the pattern or a glob; FILE_OPERATION_FAILED. */
int search_finish(struct search *s, int exit_status, struct search_page *ret, struct err *e);

#endif
