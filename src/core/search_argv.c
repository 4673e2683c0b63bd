/* core/search_argv: a search request as the arguments of ripgrep (search_argv() of core/search). */
#include "core/search.h"
#include "sys/path.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

static int check(const struct search_request *q, struct err *e)
{
    if (q->pattern == NULL || q->pattern[0] == '\0')
        return err_set(e, ERR_INVALID_ARGUMENT, "the pattern is empty; give a regular expression");
    if (strlen(q->pattern) > SEARCH_PATTERN_MAX)
        return err_set(e, ERR_LIMIT_EXCEEDED,
                       "the pattern has more bytes than SEARCH_PATTERN_MAX (%u)",
                       SEARCH_PATTERN_MAX);
    if (q->n_globs > SEARCH_GLOBS_MAX)
        return err_set(e, ERR_LIMIT_EXCEEDED, "more globs than SEARCH_GLOBS_MAX (%u)",
                       SEARCH_GLOBS_MAX);
    if (q->before > SEARCH_CONTEXT_MAX || q->after > SEARCH_CONTEXT_MAX)
        return err_set(e, ERR_LIMIT_EXCEEDED, "more lines of context than SEARCH_CONTEXT_MAX (%u)",
                       SEARCH_CONTEXT_MAX);
    if (q->limit == 0 || q->limit > SEARCH_PAGE_MAX)
        return err_set(e, ERR_OUTPUT_LIMIT,
                       "limit %" PRIu64 " is out of range; 1 to %u (SEARCH_PAGE_MAX) is accepted",
                       q->limit, SEARCH_PAGE_MAX);
    return 0;
}

static int add_path(const struct search_request *q, struct strv *argv, struct err *e)
{
    char normal[PATH_LEN_MAX] = "";
    int rc =
        q->path != NULL && q->path[0] != '\0' ? path_normalise(q->path, normal, sizeof(normal)) : 0;
    if (rc < 0)
        return err_set(e, rc == -ENAMETOOLONG ? ERR_LIMIT_EXCEEDED : ERR_PATH_ESCAPE,
                       "search in %.200s: paths are relative to the workspace root and do not "
                       "leave it",
                       q->path);
    strv_add(argv, "--");
    /* So that no name is taken for an option, and standard input is never searched. */
    strv_addf(argv, "./%s", normal);
    return 0;
}

static void add_case(const struct search_request *q, struct strv *argv)
{
    static const char *const words[] = {"--case-sensitive", "--ignore-case", "--smart-case"};
    strv_add(argv, words[q->letter_case]);
}

static void add_globs(const struct search_request *q, struct strv *argv)
{
    for (size_t i = 0; i < q->n_globs; i++)
        strv_addf(argv, "--glob=%s", q->globs[i]);
    /* One glob: each costs something for every file. */
    strv_add(argv, "--glob=!{.git,.hg,.svn,.jj}");
}

bool search_may_be_quick(const struct search_request *q)
{
    return q->max_file_bytes == 0 && !q->multiline && !q->binary;
}

int search_argv(const struct search_request *q, struct strv *ret, struct err *e)
{
    if (check(q, e) < 0)
        return -1;
    struct strv argv = {0};
    /* --debug tells on standard error what is passed over, and why. */
    static const char *const always[] = {"rg",
                                         "--no-config",
                                         "--json",
                                         "--debug",
                                         "--no-follow",
                                         "--no-ignore-global",
                                         "--no-ignore-parent"};
    for (size_t i = 0; i < sizeof(always) / sizeof(always[0]); i++)
        strv_add(&argv, always[i]);
    strv_add(&argv, q->binary ? "--text" : "--binary");
    if (q->ignore_files)
        strv_add(&argv, "--no-require-git");
    else {
        strv_add(&argv, "--hidden");
        strv_add(&argv, "--no-ignore");
    }
    add_case(q, &argv);
    if (q->literal)
        strv_add(&argv, "--fixed-strings");
    if (q->whole_words)
        strv_add(&argv, "--word-regexp");
    if (q->multiline)
        strv_add(&argv, "--multiline");
    strv_addf(&argv, "--before-context=%u", q->before);
    strv_addf(&argv, "--after-context=%u", q->after);
    if (!q->quick)
        strv_addf(&argv, "--max-filesize=%" PRIu64,
                  q->max_file_bytes > 0 ? q->max_file_bytes : (uint64_t)SEARCH_FILE_MAX);
    add_globs(q, &argv);
    strv_addf(&argv, "--regexp=%s", q->pattern);
    if (add_path(q, &argv, e) < 0) {
        strv_fini(&argv);
        return -1;
    }
    *ret = argv;
    return 0;
}
