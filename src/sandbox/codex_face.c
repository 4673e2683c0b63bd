/* sandbox/codex_face: see codex_face.h. */
#include "sandbox/codex_face.h"

#include "base/mem.h"
#include "base/str.h"
#include "sandbox/codex_view.h"
#include "sandbox/exits.h"
#include "sandbox/filter.h"
#include "sandbox/prepare.h"
#include "sandbox/supervise.h"
#include "sys/caps.h"
#include "sys/landlock.h"
#include "sys/tighten.h"
#include "wire/codex.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* As that program ends when its command line is wrong. */
#define EXIT_ARGUMENTS 2

struct face {
    const char *policy_cwd;
    const char *command_cwd;
    const char *profile;
    const char *managed; /* any of the proxy's options */
    bool landlock;
    bool inner;
    bool no_proc;
    bool inherit_pid;
    char **argv;
};

static const struct option_row {
    const char *name;
    size_t offset;
    bool flag;
} rows[] = {
    {"--sandbox-policy-cwd", offsetof(struct face, policy_cwd), false},
    {"--command-cwd", offsetof(struct face, command_cwd), false},
    {"--permission-profile", offsetof(struct face, profile), false},
    {"--managed-network", offsetof(struct face, managed), false},
    {"--proxy-route-spec", offsetof(struct face, managed), false},
    {"--verify-fd-mount", offsetof(struct face, managed), false},
    {"--use-legacy-landlock", offsetof(struct face, landlock), true},
    {"--apply-seccomp-then-exec", offsetof(struct face, inner), true},
    {"--no-proc", offsetof(struct face, no_proc), true},
    {"--inherit-pid-namespace", offsetof(struct face, inherit_pid), true},
};

static int refuse(const char *what, const char *word)
{
    sandbox_say("%s%s", what, word);
    return EXIT_ARGUMENTS;
}

/* One option at words[0]: how many words it takes, or 0 when it is none of ours. */
static int read_option(struct face *f, char **words)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        size_t n = strlen(rows[i].name);
        char *at = (char *)f + rows[i].offset;
        if (strncmp(words[0], rows[i].name, n) != 0)
            continue;
        if (rows[i].flag && words[0][n] == '\0') {
            *(bool *)(void *)at = true;
            return 1;
        }
        if (!rows[i].flag && words[0][n] == '=') {
            *(const char **)(void *)at = words[0] + n + 1;
            return 1;
        }
        if (!rows[i].flag && words[0][n] == '\0' && words[1] != NULL) {
            *(const char **)(void *)at = words[1];
            return 2;
        }
    }
    return 0;
}

static int read_words(struct face *f, char **words)
{
    for (words++; *words != NULL && words[0][0] == '-';) {
        if (str_eq(*words, "--")) {
            words++;
            break;
        }
        int taken = read_option(f, words);
        if (taken == 0)
            return refuse("unknown option, or one without its value: ", *words);
        words += taken;
    }
    f->argv = words;
    if (f->policy_cwd == NULL || f->policy_cwd[0] != '/')
        return refuse("--sandbox-policy-cwd needs an absolute path", "");
    if (f->profile == NULL)
        return refuse("--permission-profile is missing", "");
    if (*words == NULL)
        return refuse("there is no command", "");
    return 0;
}

static int check_words(const struct face *f, const struct codex_profile *p)
{
    if (f->managed != NULL)
        return refuse("the managed network is not offered: a command gets no network", "");
    if (f->inherit_pid)
        return refuse("--inherit-pid-namespace is not offered: a command sees its own processes "
                      "only",
                      "");
    if (f->inner && f->landlock)
        return refuse("--apply-seccomp-then-exec and --use-legacy-landlock exclude each other", "");
    if (f->landlock && !codex_view_full_write(p) && !codex_view_plain_read(p))
        return refuse("--use-legacy-landlock cannot hide anything, nor keep what lies inside of a "
                      "writable place read-only; it is for profiles that may read the whole disk "
                      "and write either all or nothing of it",
                      "");
    return 0;
}

/* ---- without a view ---- */

static int become_command(const struct face *f)
{
    execvp(f->argv[0], f->argv);
    int error = errno;
    sandbox_say("cannot execute \"%.200s\": %s", f->argv[0], strerror(error));
    return error == ENOENT ? SANDBOX_COMMAND_NOT_FOUND : SANDBOX_COMMAND_NOT_EXECUTABLE;
}

/* The caller's explicit choice; it is never taken instead of something else. */
static int apply_landlock(const struct codex_profile *p)
{
    static const char *const devices[] = {"/dev/null", "/dev/zero", "/dev/full", "/dev/tty", NULL};
    const struct landlock_ask ask = {.writable = codex_view_full_write(p) ? NULL : devices,
                                     .no_tcp = !p->network};
    int rc = landlock_apply(&ask);
    if (rc == -EOPNOTSUPP)
        sandbox_say("--use-legacy-landlock: this kernel's Landlock (version %d) cannot keep this "
                    "profile; leave the option out for the sandbox that can",
                    landlock_version());
    else if (rc < 0)
        sandbox_say("--use-legacy-landlock: %s", strerror(-rc));
    return rc;
}

/* The filter alone, as the profile asks for it, and the command. */
static int run_filtered(const struct face *f, const struct codex_profile *p)
{
    autobuf filter = BUF_INIT;
    if (p->network && codex_view_full_write(p))
        return become_command(f);
    filter_add_alone(p->network, &filter);
    int rc = tighten_no_new_privs();
    if (rc == 0 && f->landlock && apply_landlock(p) < 0)
        return SANDBOX_EXIT_FILTER;
    if (rc == 0)
        rc = tighten_load_filter(buf_bytes(&filter), filter.len);
    if (rc < 0) {
        sandbox_say("%s: %s", sandbox_exit_text(SANDBOX_EXIT_FILTER), strerror(-rc));
        return SANDBOX_EXIT_FILTER;
    }
    return become_command(f);
}

/* H7 */
static int run_inner(const struct face *f, const struct codex_profile *p)
{
    uint64_t caps;
    if (caps_get(&caps) == 0 && caps == 0)
        return run_filtered(f, p);
    sandbox_say("%s: the inner stage retained effective or permitted capabilities",
                sandbox_exit_text(SANDBOX_EXIT_CAPABILITIES));
    return SANDBOX_EXIT_CAPABILITIES;
}

/* ---- with one ---- */

bool codex_face_is_wsl1(const char *version)
{
    return strcasestr(version, "microsoft") != NULL && strcasestr(version, "wsl2") == NULL &&
           strcasestr(version, "microsoft-standard") == NULL;
}

static bool is_wsl1(void)
{
    char text[512];
    autofd int fd = open("/proc/version", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
    text[n > 0 ? n : 0] = '\0';
    return codex_face_is_wsl1(text);
}

static void take_environment(struct helper_request *r)
{
    for (char **entry = environ; *entry != NULL; entry++) {
        if (!str_starts(*entry, "LD_") && strchr(*entry, '=') != NULL && **entry != '=')
            strv_add(&r->env, *entry);
    }
    strv_addf(&r->env, "PWD=%s", r->cwd);
}

static int run_in_view(const struct face *f, const struct codex_profile *p)
{
    struct helper_request r = {0};
    struct err e = {0};
    autofree char *plan = NULL;
    if (is_wsl1()) {
        sandbox_say("this is the first version of WSL, which cannot build the sandbox; use WSL 2");
        return SANDBOX_EXIT_BWRAP;
    }
    int rc = codex_view_make(p, f->policy_cwd, &r.view, &e);
    if (rc == 0) {
        r.view.inherited_proc = f->no_proc;
        r.cwd = codex_view_cwd(f->command_cwd, f->policy_cwd);
        take_environment(&r);
        for (char **word = f->argv; *word != NULL; word++)
            strv_add(&r.argv, *word);
        rc = prepare_plan(&r, &plan, NULL, &e);
    }
    helper_request_fini(&r);
    if (rc < 0) {
        sandbox_say("%s", e.message);
        return SANDBOX_EXIT_USAGE;
    }
    return supervise_main(plan);
}

int codex_face_main(char **words)
{
    struct face f = {0};
    struct err e = {0};
    struct codex_profile p = {0};
    int code = read_words(&f, words);
    if (code == 0 && codex_profile_read(f.profile, strlen(f.profile), &p, &e) < 0)
        code = refuse("--permission-profile: ", e.message);
    if (code == 0)
        code = check_words(&f, &p);
    if (code == 0)
        code = f.inner                                   ? run_inner(&f, &p)
               : f.landlock || codex_view_full_write(&p) ? run_filtered(&f, &p)
                                                         : run_in_view(&f, &p);
    codex_profile_fini(&p);
    return code;
}
