/* codespace-linux-sandbox: puts one command into a sandbox, and tells the truth about it.
 *
 * prepare decides, run carries out, start is both at once, inner is process 1 inside, probe says
 * whether all that works here. The program holds no privilege of its own and refuses to be given
 * any: set-user-ID would make every caller's request an attack on somebody else.
 */
#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "sandbox/check.h"
#include "sandbox/codex_face.h"
#include "sandbox/exits.h"
#include "sandbox/inner.h"
#include "sandbox/outer.h"
#include "sandbox/prepare.h"
#include "sandbox/supervise.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

static const char usage[] =
    "usage: codespace-linux-sandbox COMMAND\n"
    "  probe [--json|--explain]        is there a working sandbox on this machine?\n"
    "  prepare                         request (JSON) on stdin, path of a plan on stdout\n"
    "  run --plan PATH                 run the plan; ends as its command ended\n"
    "      [--control-fd N]            report to that socket instead (for a runner)\n"
    "      [--rules-fd N]              take new egress rules from that one (for a runner)\n"
    "  start --request-fd N --control-fd N [--rules-fd N]\n"
    "                                  prepare the request read there and run it (for a runner)\n"
    "  --version, --help\n"
    "A failure of the sandbox itself ends with a code from 180 to 199; see the manual page.\n";

struct options {
    const char *plan;
    uint64_t control_fd; /* 0 = none */
    uint64_t request_fd; /* the same */
    uint64_t rules_fd;   /* the same */
    uint64_t plan_fd;
    uint64_t files;
    bool quiet;
    bool json;
    bool explain;
};

enum option_kind { OPTION_TEXT, OPTION_NUMBER, OPTION_FLAG };

/* An option of one command. */
static const struct option_row {
    const char *command;
    const char *name;
    enum option_kind kind;
    size_t offset;
} option_rows[] = {
    {"probe", "--json", OPTION_FLAG, offsetof(struct options, json)},
    {"probe", "--explain", OPTION_FLAG, offsetof(struct options, explain)},
    {"run", "--plan", OPTION_TEXT, offsetof(struct options, plan)},
    {"run", "--control-fd", OPTION_NUMBER, offsetof(struct options, control_fd)},
    {"run", "--rules-fd", OPTION_NUMBER, offsetof(struct options, rules_fd)},
    {"start", "--request-fd", OPTION_NUMBER, offsetof(struct options, request_fd)},
    {"start", "--control-fd", OPTION_NUMBER, offsetof(struct options, control_fd)},
    {"start", "--rules-fd", OPTION_NUMBER, offsetof(struct options, rules_fd)},
    {"inner", "--plan-fd", OPTION_NUMBER, offsetof(struct options, plan_fd)},
    {"inner", "--files", OPTION_NUMBER, offsetof(struct options, files)},
    {"inner", "--quiet", OPTION_FLAG, offsetof(struct options, quiet)},
};

static int refuse(const char *what, const char *word)
{
    sandbox_say("%s%s; see codespace-linux-sandbox --help", what, word);
    return -1;
}

/* Words taken, or -1. */
static int read_option(const struct option_row *row, char **words, struct options *o)
{
    char *at = (char *)o + row->offset;
    if (row->kind == OPTION_FLAG) {
        *(bool *)(void *)at = true;
        return 1;
    }
    if (words[1] == NULL)
        return refuse(row->name, " needs a value");
    if (row->kind == OPTION_TEXT)
        *(const char **)(void *)at = words[1];
    else if (num_parse_u64(words[1], 0, INT_MAX, (uint64_t *)(void *)at) < 0)
        return refuse(row->name, " needs a number");
    return 2;
}

static int read_options(const char *command, char **words, struct options *o)
{
    while (*words != NULL) {
        size_t i = 0;
        while (i < ARRAY_LEN(option_rows) &&
               !(str_eq(option_rows[i].command, command) && str_eq(option_rows[i].name, *words)))
            i++;
        if (i == ARRAY_LEN(option_rows))
            return refuse("unknown option ", *words);
        int taken = read_option(&option_rows[i], words, o);
        if (taken < 0)
            return -1;
        words += taken;
    }
    return 0;
}

static int run_probe(const struct options *o)
{
    return check_main(o->json ? CHECK_JSON : o->explain ? CHECK_EXPLAIN : CHECK_QUIET);
}

static int run_prepare(const struct options *o)
{
    (void)o;
    return prepare_main();
}

static int run_run(const struct options *o)
{
    if (o->plan == NULL) {
        refuse("run needs --plan PATH", "");
        return SANDBOX_EXIT_USAGE;
    }
    int rules = o->rules_fd != 0 ? (int)o->rules_fd : -1;
    return o->control_fd != 0 ? outer_main(o->plan, (int)o->control_fd, rules)
                              : supervise_main(o->plan);
}

static int run_start(const struct options *o)
{
    if (o->request_fd == 0 || o->control_fd == 0) {
        refuse("start needs --request-fd N and --control-fd N", "");
        return SANDBOX_EXIT_USAGE;
    }
    int rules = o->rules_fd != 0 ? (int)o->rules_fd : -1;
    return outer_start_main((int)o->request_fd, (int)o->control_fd, rules);
}

static int run_inner(const struct options *o)
{
    return inner_main((int)o->plan_fd, (unsigned long)o->files, o->quiet);
}

static int run_version(const struct options *o)
{
    (void)o;
    puts("codespace-linux-sandbox " CODESPACE_VERSION);
    return 0;
}

static int run_help(const struct options *o)
{
    (void)o;
    fputs(usage, stdout);
    return 0;
}

static const struct {
    const char *name;
    int (*run)(const struct options *o);
} commands[] = {
    {"probe", run_probe}, {"prepare", run_prepare},   {"run", run_run},     {"start", run_start},
    {"inner", run_inner}, {"--version", run_version}, {"--help", run_help},
};

/* A caller may have closed 0, 1 or 2; what we open next must not take their place. */
static int fill_standard_descriptors(void)
{
    for (int fd = 0; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) != fd)
            return -1;
    }
    return 0;
}

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CHECKS_LEAKS
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(CHECKS_LEAKS)
/* Process 1 lets nobody look into it, the leak checker's own thread included. */
int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void)
{
    return getpid() == 1;
}
#endif

int main(int argc, char **argv)
{
    struct options o = {0};
    /* The probe still answers, since it is how one learns of this; it starts nothing then. */
    if (getauxval(AT_SECURE) != 0 && !(argc > 1 && str_eq(argv[1], "probe"))) {
        sandbox_say("%s", sandbox_exit_text(SANDBOX_EXIT_SETUID));
        return SANDBOX_EXIT_SETUID;
    }
    if (fill_standard_descriptors() < 0)
        return SANDBOX_EXIT_DESCRIPTORS;
    const char *slash = argc > 0 ? strrchr(argv[0], '/') : NULL;
    if (argc > 0 && str_eq(slash == NULL ? argv[0] : slash + 1, CODEX_FACE_NAME))
        return codex_face_main(argv);
    for (size_t i = 0; argc > 1 && i < ARRAY_LEN(commands); i++) {
        if (str_eq(argv[1], commands[i].name))
            return read_options(argv[1], argv + 2, &o) < 0 ? SANDBOX_EXIT_USAGE
                                                           : commands[i].run(&o);
    }
    fputs(usage, stderr);
    return SANDBOX_EXIT_USAGE;
}
