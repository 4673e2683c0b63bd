/* codespace-patch: the patch engine as a program; entered as `apply_patch`, what agents' shells
 * know by that name.
 *
 * It reads a patch as an argument or on standard input and applies it below a root, all of it or
 * nothing, with the engine's own checks of every path. It is as trusted as whoever starts it:
 * inside a sandbox it can do what a command there can do, and no more.
 *
 * As apply_patch it takes one argument or standard input, the root is the working directory, the
 * success is told as "A", "M" and "D" lines, a failure is a plain text and exit status 1, a wrong
 * call 2. Names may be absolute when they are below the working directory. Where that program and
 * this one differ, docs/peers-apply-patch.md says why.
 *
 * Must not: write anything outside the root; start a program; read configuration.
 */
#include "base/jsonw.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "core/patch.h"
#include "core/udiff.h"
#include "sys/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Exit statuses besides those of the table of errors; in the manual. */
enum { EXIT_APPLIED = 0, EXIT_USAGE = 64, EXIT_PARTIAL = 70, EXIT_ROLLED_BACK = 74 };
/* Of apply_patch. */
enum { EXIT_FAILED = 1, EXIT_CALL = 2 };

static const char help[] =
    "usage: codespace-patch [--root DIRECTORY] [--check] [--diff] [--json] [--no-sync]\n"
    "         [--format auto|v4a|unified] [--strip N] [PATCH]\n"
    "       codespace-patch --version | --help\n"
    "Applies a patch, the argument or standard input, to the files below the directory.\n"
    "See codespace-patch(1).\n";

static const char short_help[] = "usage: apply_patch 'PATCH'\n"
                                 "       apply_patch < PATCH\n";

struct options {
    bool as_apply_patch;
    bool json;
    const char *root;
    const char *text; /* NULL = standard input */
    struct patch_request request;
};

/* ---- arguments ---- */

static int set_format(struct options *o, const char *value)
{
    static const char *const names[] = {"auto", "v4a", "unified"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (strcmp(value, names[i]) == 0) {
            o->request.format = (enum patch_format)i;
            return 0;
        }
    }
    log_error("--format: auto, v4a or unified is accepted, not %.80s", value);
    return -1;
}

static int set_strip(struct options *o, const char *value)
{
    uint64_t n = 0;
    if (num_parse_u64(value, 0, UDIFF_STRIP_MAX, &n) < 0) {
        log_error("--strip: a number from 0 to %d is accepted", UDIFF_STRIP_MAX);
        return -1;
    }
    o->request.strip_plus_one = (unsigned)n + 1;
    return 0;
}

static int set_root(struct options *o, const char *value)
{
    o->root = value;
    return 0;
}

static const struct {
    const char *name;
    int (*set)(struct options *o, const char *value);
} with_value[] = {{"--format", set_format}, {"--strip", set_strip}, {"--root", set_root}};

#define AT(member) offsetof(struct options, member)
static const struct {
    const char *name;
    size_t offset;
} flags[] = {
    {"--check", AT(request.check_only)},
    {"--diff", AT(request.want_diff)},
    {"--json", AT(json)},
    {"--no-sync", AT(request.lax)},
};
#undef AT

static bool take_flag(struct options *o, const char *arg)
{
    for (size_t i = 0; i < ARRAY_LEN(flags); i++) {
        if (strcmp(arg, flags[i].name) == 0) {
            *(bool *)((char *)o + flags[i].offset) = true;
            return true;
        }
    }
    return false;
}

/* How many arguments were taken, or -1. */
static int take_option(struct options *o, char **argv)
{
    for (size_t i = 0; i < ARRAY_LEN(with_value); i++) {
        if (strcmp(argv[0], with_value[i].name) != 0)
            continue;
        if (argv[1] == NULL) {
            log_error("%s: a value is missing", argv[0]);
            return -1;
        }
        return with_value[i].set(o, argv[1]) < 0 ? -1 : 2;
    }
    if (take_flag(o, argv[0]))
        return 1;
    log_error("%.80s: no such option; see --help", argv[0]);
    return -1;
}

static int parse_arguments(struct options *o, char **argv)
{
    bool only_text = false;
    for (char **at = argv + 1; *at != NULL;) {
        int n = 1;
        if (!only_text && strcmp(*at, "--") == 0)
            only_text = true;
        /* A unified diff begins with "--- ". */
        else if (!only_text && str_starts(*at, "--") && !str_starts(*at, "--- "))
            n = take_option(o, at);
        else if (o->text == NULL)
            o->text = *at;
        else {
            log_error("more than one patch was given");
            n = -1;
        }
        if (n < 0)
            return -1;
        at += n;
    }
    return 0;
}

/* ---- the patch text ---- */

/* The name in a line such as "*** Add File: /work/a/b", when it lies below `root`: what is left of
 * it, else NULL. */
static const char *name_below(const char *line, size_t n, const char *root)
{
    static const char *const heads[] = {
        "*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "};
    size_t root_len = strlen(root);
    for (size_t i = 0; i < ARRAY_LEN(heads); i++) {
        size_t head = strlen(heads[i]);
        if (n > head + root_len + 1 && memcmp(line, heads[i], head) == 0 &&
            memcmp(line + head, root, root_len) == 0 && line[head + root_len] == '/')
            return line + head + root_len + 1;
    }
    return NULL;
}

/* Absolute names below the working directory as relative ones. Lines of a file begin with a blank,
 * "+" or "-", so no other line looks like one of these. */
static void make_relative(struct options *o, struct buf *ret)
{
    autofree char *root = getcwd(NULL, 0);
    const char *end = o->request.text + o->request.text_len;
    if (root == NULL || root[0] != '/' || root[1] == '\0')
        return;
    for (const char *at = o->request.text; at < end;) {
        const char *lf = memchr(at, '\n', (size_t)(end - at));
        const char *next = lf != NULL ? lf + 1 : end;
        const char *name = name_below(at, (size_t)(next - at), root);
        const char *head_end = name != NULL ? memchr(at, ':', (size_t)(next - at)) : NULL;
        if (head_end != NULL) {
            buf_put(ret, at, (size_t)(head_end - at) + 2);
            at = name;
        }
        buf_put(ret, at, (size_t)(next - at));
        at = next;
    }
    o->request.text = buf_bytes(ret);
    o->request.text_len = ret->len;
}

static int read_text(struct options *o, struct buf *b, struct err *e)
{
    if (o->text != NULL) {
        o->request.text = o->text;
        o->request.text_len = strlen(o->text);
        return 0;
    }
    ssize_t n = 0;
    while (b->len <= PATCH_TEXT_MAX && (n = fd_read(0, buf_reserve(b, 65536), 65536)) > 0)
        buf_commit(b, (size_t)n);
    if (n < 0)
        return err_sys(e, ERR_FILE_OPERATION_FAILED, (int)n, "read standard input");
    o->request.text = buf_bytes(b);
    o->request.text_len = b->len;
    return 0;
}

/* ---- the answer ---- */

static void write_out(const struct buf *b)
{
    (void)fd_write_all(1, buf_bytes(b), b->len);
}

/* A log's line is for those who run services; a shell is told the text. */
static void complain(const struct options *o, const char *message)
{
    if (o->as_apply_patch)
        fprintf(stderr, "%s\n", message);
    else
        log_error("%s", message);
}

static int failed(const struct options *o, const struct err *e)
{
    autobuf b = BUF_INIT;
    struct jsonw w;
    if (o->json) {
        jsonw_init(&w, &b);
        jsonw_object(&w);
        jsonw_key(&w, "error");
        jsonw_object(&w);
        jsonw_kstr(&w, "code", err_info(e->code)->name);
        jsonw_kstr(&w, "message", e->message);
        jsonw_object_end(&w);
        jsonw_object_end(&w);
        buf_putc(&b, '\n');
        write_out(&b);
    } else {
        complain(o, e->message);
    }
    return o->as_apply_patch ? EXIT_FAILED : err_info(e->code)->exit_status;
}

static void write_change(struct jsonw *w, const struct patch_change *c)
{
    jsonw_object(w);
    jsonw_kstr(w, "path", c->path);
    jsonw_kstr(w, "kind", patch_kind_name(c->kind));
    if (c->before[0] != '\0')
        jsonw_kstr(w, "before_version", c->before);
    if (c->after[0] != '\0')
        jsonw_kstr(w, "after_version", c->after);
    jsonw_kbool(w, "fuzzy", c->fuzzy);
    jsonw_object_end(w);
}

static void write_json(const struct options *o, const struct patch_result *r, struct buf *b)
{
    struct jsonw w;
    jsonw_init(&w, b);
    jsonw_object(&w);
    jsonw_kstr(&w, "status", patch_status_name(r->status));
    jsonw_key(&w, "changes");
    jsonw_array(&w);
    for (size_t i = 0; i < r->n_changes; i++)
        write_change(&w, &r->changes[i]);
    jsonw_array_end(&w);
    if (r->failure[0] != '\0')
        jsonw_kstr(&w, "failure", r->failure);
    if (o->request.want_diff && !r->diff_omitted) {
        jsonw_key(&w, "diff");
        jsonw_strn(&w, buf_bytes(&r->diff), r->diff.len);
    }
    jsonw_object_end(&w);
    buf_putc(b, '\n');
}

/* "A", "M" or "D" and the path, in this order; a move is told as its target. */
static void write_files(const struct patch_result *r, struct buf *b)
{
    static const struct {
        char letter;
        bool kinds[4]; /* by enum patch_kind */
    } rows[] = {{'A', {[PATCH_ADD] = true}},
                {'M', {[PATCH_UPDATE] = true, [PATCH_MOVE] = true}},
                {'D', {[PATCH_DELETE] = true}}};
    for (size_t k = 0; k < ARRAY_LEN(rows); k++) {
        for (size_t i = 0; i < r->n_changes; i++) {
            const struct patch_change *c = &r->changes[i];
            if (rows[k].kinds[c->kind] && !c->moved_away)
                buf_printf(b, "%c %s\n", rows[k].letter, c->path);
        }
    }
}

static void write_text(const struct options *o, const struct patch_result *r, struct buf *b)
{
    if (o->request.want_diff)
        buf_put(b, buf_bytes(&r->diff), r->diff.len);
    else if (r->status == PATCH_APPLIED) {
        buf_puts(b, "Success. Updated the following files:\n");
        write_files(r, b);
    } else if (r->status == PATCH_CHECKED) {
        buf_puts(b, "The patch applies. It would update the following files:\n");
        write_files(r, b);
    }
    for (size_t i = 0; i < r->n_changes; i++) {
        static const char how[] = "the place was found by ignoring white space, look-alike "
                                  "characters or line numbers";
        if (r->changes[i].fuzzy && o->as_apply_patch)
            fprintf(stderr, "%s: %s\n", r->changes[i].path, how);
        else if (r->changes[i].fuzzy)
            log_warn("%s: %s", r->changes[i].path, how);
    }
}

static int exit_status(const struct options *o, const struct patch_result *r)
{
    if (r->status == PATCH_APPLIED || r->status == PATCH_CHECKED)
        return EXIT_APPLIED;
    if (o->as_apply_patch)
        return EXIT_FAILED;
    return r->status == PATCH_FAILED_PARTIAL ? EXIT_PARTIAL : EXIT_ROLLED_BACK;
}

static int answer(const struct options *o, const struct patch_result *r)
{
    autobuf b = BUF_INIT;
    if (o->json)
        write_json(o, r, &b);
    else
        write_text(o, r, &b);
    write_out(&b);
    if (!o->json && r->failure[0] != '\0')
        complain(o, r->failure);
    if (r->diff_omitted)
        log_warn("the diff is larger than PATCH_DIFF_MAX (%u bytes) and is not shown",
                 PATCH_DIFF_MAX);
    return exit_status(o, r);
}

/* ---- */

static int apply(struct options *o, struct err *e)
{
    autobuf text = BUF_INIT;
    autobuf relative = BUF_INIT;
    autofree char *root = mem_strdup(o->root);
    autofree char *id = mem_strdup("here");
    struct workspace ws = {.id = id, .root = root, .profile = PROFILE_WORKSPACE_WRITE};
    struct patch_result r = {0};
    autofd int fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        err_sys(e, ERR_FILE_NOT_FOUND, errno, "open the root %s", root);
        return failed(o, e);
    }
    ws.root_fd = fd;
    if (read_text(o, &text, e) < 0)
        return failed(o, e);
    if (o->as_apply_patch && o->text == NULL && o->request.text_len == 0) {
        fputs(short_help, stderr);
        return EXIT_CALL;
    }
    if (o->as_apply_patch)
        make_relative(o, &relative);
    if (patch_apply(&ws, &o->request, &r, e) < 0)
        return failed(o, e);
    int status = answer(o, &r);
    patch_result_fini(&r);
    return status;
}

static const char *last_component(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

static int apply_patch_main(int argc, char **argv)
{
    struct options o = {.as_apply_patch = true, .root = ".", .text = argc > 1 ? argv[1] : NULL};
    struct err e = {0};
    if (argc > 2 || (argc == 1 && isatty(0))) {
        fputs(short_help, stderr);
        return EXIT_CALL;
    }
    return apply(&o, &e);
}

int main(int argc, char **argv)
{
    const char *name = argc > 0 ? last_component(argv[0]) : "codespace-patch";
    bool as_apply_patch = strcmp(name, "apply_patch") == 0 || strcmp(name, "applypatch") == 0;
    log_setup(as_apply_patch ? name : "codespace-patch", LOG_WARN);
    if (as_apply_patch)
        return apply_patch_main(argc, argv);
    struct options o = {.root = "."};
    struct err e = {0};
    if (argc == 2 && strcmp(argv[1], "--help") == 0)
        return fputs(help, stdout) < 0;
    if (argc == 2 && strcmp(argv[1], "--version") == 0)
        return puts("codespace-patch " CODESPACE_VERSION) < 0;
    if (argc == 0 || parse_arguments(&o, argv) < 0)
        return EXIT_USAGE;
    return apply(&o, &e);
}
