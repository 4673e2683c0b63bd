/* core/policy: the decision table, names that are protected, and what a command is given. */
#include "../../helpers/unit.h"
#include "base/buf.h"
#include "base/mem.h"
#include "core/policy.h"

#include <stdio.h>

static struct workspace make(void)
{
    return (struct workspace){.id = (char *)"demo",
                              .root = (char *)"/ws",
                              .root_fd = -1,
                              .profile = PROFILE_WORKSPACE_WRITE};
}

/* ---- the decision table: every axis against every other (A26) ---- */

static bool expected(const struct workspace *ws, enum policy_action action)
{
    if (ws->environment != ENVIRONMENT_HOST)
        return false;
    return action == POLICY_READ || ws->profile == PROFILE_WORKSPACE_WRITE;
}

static void check_row(unsigned bits, enum policy_action action)
{
    struct workspace ws = make();
    struct err e = {0};
    ws.profile = bits & 1 ? PROFILE_WORKSPACE_WRITE : PROFILE_READ_ONLY;
    ws.environment = bits & 2 ? ENVIRONMENT_LINUX_CONTAINER : ENVIRONMENT_HOST;
    ws.network = bits & 4 ? NETWORK_ENABLED : NETWORK_RESTRICTED;
    ws.approvals = bits & 8 ? APPROVALS_CONFIRM : APPROVALS_OFF;
    ws.read = bits & 16 ? VIEW_READ_ALL : VIEW_READ_MINIMAL;
    ws.sandbox = bits & 32 ? SANDBOX_REQUIRED : SANDBOX_PREFERRED;
    int status = policy_check(&ws, action, &e);
    assert_int_equal(status, expected(&ws, action) ? 0 : -1);
    if (status < 0)
        assert_int_equal(e.code, ERR_UNAUTHORIZED);
    bool asks = action != POLICY_READ && ws.approvals == APPROVALS_CONFIRM;
    assert_int_equal(policy_asks(&ws, action), asks);
    bool writes = ws.profile == PROFILE_WORKSPACE_WRITE;
    assert_int_equal(policy_permits(&ws, action), action == POLICY_READ || writes);
}

static void test_table(void **state)
{
    (void)state;
    for (unsigned bits = 0; bits < 64; bits++) {
        check_row(bits, POLICY_READ);
        check_row(bits, POLICY_WRITE);
        check_row(bits, POLICY_EXEC);
    }
}

static void test_texts(void **state)
{
    (void)state;
    struct workspace ws = make();
    struct err e = {0};
    ws.environment = ENVIRONMENT_LINUX_CONTAINER;
    policy_check(&ws, POLICY_READ, &e);
    assert_string_equal(e.message,
                        "the workspace \"demo\" is registered for an environment of the kind "
                        "linux-container, which this server has no backend for, so reading its "
                        "files is not possible; only an operator can change that "
                        "(\"environment\": \"local\")");
    /* The profile is asked before the environment. */
    ws.profile = PROFILE_READ_ONLY;
    policy_check(&ws, POLICY_WRITE, &e);
    assert_string_equal(e.message,
                        "the workspace \"demo\" has the profile read-only, which does not allow "
                        "changing its files; only an operator can change that (\"profile\": "
                        "\"workspace-write\")");
}

/* ---- paths ---- */

static const struct {
    const char *path;
    bool read;
    bool write;
} paths[] = {
    {"", true, true},
    {"a", true, true},
    {".git", true, false},
    {".git/config", true, false},
    {".git/hooks/post-checkout", true, false},
    {".agents/x", true, false},
    {".codex", true, false},
    {".gitignore", true, true},
    {".github/workflows/x.yml", true, true},
    {".GIT/config", true, true},
    {"sub/.git/config", true, false},
    {"sub/.git", true, false},
    {"sub/.github", true, true},
    {"sub/.agents/x", true, true},
    {"ci/deploy.sh", true, false},
    {"ci/deploy.sh/x", true, false},
    {"ci/deploy.sh2", true, true},
    {"ci", true, true},
    {"a/key.pem", false, false},
    {"a/key.pem/x", false, false},
    {"a/key.pem.txt", true, true},
    {"keys", true, true},
    {"keys/a/b", false, false},
    {"sub/keys/a", true, true},
    {"secret", false, false},
    {"secret/key", false, false},
    {"secrets", true, true},
    {"sub/secret", true, true},
    {"sub/.env", false, false},
    {"sub/.env.example", true, true},
    {"sub", true, true},
};

static void test_paths(void **state)
{
    (void)state;
    struct workspace ws = make();
    struct err e = {0};
    strv_add(&ws.hidden, "/ws/secret");
    strv_add(&ws.hidden, "/ws/sub/.env");
    strv_add(&ws.hidden, "/ws_other/a"); /* A17: not in /ws */
    strv_add(&ws.hidden, "/etc/shadow");
    strv_add(&ws.protect, "ci/deploy.sh");
    strv_add(&ws.deny_read, "*.pem");
    strv_add(&ws.deny_read, "keys/");
    struct glob deny[2];
    ws.deny = deny;
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(glob_compile(ws.deny_read.items[i], &deny[i], &e), 0);
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        int read = policy_check_read_path(&ws, paths[i].path, &e);
        int write = policy_check_write_path(&ws, paths[i].path, &e);
        if ((read == 0) != paths[i].read || (write == 0) != paths[i].write)
            fail_msg("\"%s\": read %d, write %d", paths[i].path, read, write);
        if (write < 0)
            assert_int_equal(e.code, ERR_PATH_PROTECTED);
    }
    policy_check_read_path(&ws, "secret/key", &e);
    assert_string_equal(e.message,
                        "\"secret/key\" is hidden in the workspace \"demo\" (rule: hide "
                        "\"/ws/secret\"): neither these tools nor sandboxed commands get to see "
                        "it; only an operator can change that");
    policy_check_write_path(&ws, ".git/config", &e);
    assert_non_null(
        strstr(e.message, "\".git/config\" cannot be written: \".git\" directly under"));
    policy_check_read_path(&ws, "keys/a", &e);
    assert_non_null(strstr(e.message, "rule: deny_read \"keys/\""));
    policy_check_write_path(&ws, "ci/deploy.sh", &e);
    assert_non_null(strstr(e.message, "rule: protect \"ci/deploy.sh\""));
    for (size_t i = 0; i < 2; i++)
        glob_fini(&deny[i]);
    strv_fini(&ws.hidden);
    strv_fini(&ws.protect);
    strv_fini(&ws.deny_read);
}

static void test_env_names(void **state)
{
    (void)state;
    static const char *const good[] = {"A", "_", "a1", "LD_PRELOAD", "PATH"};
    static const char *const bad[] = {"", "1", "A=B", "A B", "A-B", "\xc3\xa9", "A\n"};
    struct err e = {0};
    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        assert_int_equal(policy_check_env_name(good[i], &e), 0);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        assert_int_equal(policy_check_env_name(bad[i], &e), -1);
        assert_int_equal(e.code, ERR_INVALID_COMMAND);
    }
}

/* ---- what a command is given ---- */

static const char *value_of(const struct strv *env, const char *name)
{
    const char *value = NULL;
    size_t n = strlen(name);
    for (size_t i = 0; i < env->len; i++) {
        if (str_starts(env->items[i], name) && env->items[i][n] == '=')
            value = env->items[i] + n + 1; /* later wins */
    }
    return value;
}

static void test_compile(void **state)
{
    (void)state;
    struct workspace ws = make();
    struct view_mount mounts[] = {{(char *)"/data", true}, {(char *)"/opt/x", false}};
    char *argv[] = {(char *)"make", (char *)"", (char *)"-j", NULL};
    char *env[] = {(char *)"B=command", (char *)"PWD=/elsewhere", NULL};
    struct policy_command command = {.argv = argv, .cwd = "sub/dir", .env = env, .tty = true};
    struct helper_request r = {0};
    ws.read = VIEW_READ_ALL;
    ws.mounts = mounts;
    ws.n_mounts = 2;
    strv_add(&ws.env, "A=operator");
    strv_add(&ws.env, "B=operator");
    strv_add(&ws.hidden, "/ws/secret");
    policy_compile(&ws, &command, &r);
    assert_int_equal(r.view.read, VIEW_READ_ALL);
    assert_string_equal(r.view.workspace, "/ws");
    assert_true(r.view.workspace_writable);
    assert_int_equal(r.view.n_mounts, 2);
    assert_string_equal(r.view.mounts[0].path, "/data");
    assert_true(r.view.mounts[0].writable);
    assert_false(r.view.mounts[1].writable);
    assert_int_equal(r.view.hidden.len, 1);
    assert_string_equal(r.view.hidden.items[0], "/ws/secret");
    assert_int_equal(r.view.protect.len, 3);
    assert_string_equal(r.view.protect.items[0], ".git");
    assert_string_equal(r.cwd, "/ws/sub/dir");
    assert_int_equal(r.network, HELPER_NETWORK_RESTRICTED);
    assert_true(r.tty);
    assert_int_equal(r.argv.len, 3);
    assert_string_equal(r.argv.items[1], "");
    assert_string_equal(value_of(&r.env, "A"), "operator");
    assert_string_equal(value_of(&r.env, "B"), "command");
    assert_string_equal(value_of(&r.env, "PWD"), "/elsewhere");
    assert_string_equal(value_of(&r.env, "TERM"), "xterm");
    assert_string_equal(value_of(&r.env, "GIT_CONFIG_VALUE_0"), "/ws");
    helper_request_fini(&r);
    strv_fini(&ws.env);
    strv_fini(&ws.hidden);
}

/* What is compiled passes the helper's own checks and comes out the same. */
static void test_compile_is_a_valid_request(void **state)
{
    (void)state;
    struct workspace ws = make();
    char *argv[] = {(char *)"true", NULL};
    struct policy_command command = {.argv = argv};
    struct helper_request r = {0};
    struct helper_request back = {0};
    struct err e = {0};
    autobuf text = BUF_INIT;
    ws.network = NETWORK_ENABLED;
    ws.profile = PROFILE_READ_ONLY;
    policy_compile(&ws, &command, &r);
    assert_string_equal(r.cwd, "/ws");
    assert_null(value_of(&r.env, "TERM"));
    helper_request_write(&r, &text);
    if (helper_request_read(buf_bytes(&text), text.len, &back, &e) < 0)
        fail_msg("%s", e.message);
    assert_false(back.view.workspace_writable);
    assert_int_equal(back.network, HELPER_NETWORK_ENABLED);
    assert_int_equal(back.env.len, r.env.len);
    assert_int_equal(back.view.protect.len, 3);
    helper_request_fini(&r);
    helper_request_fini(&back);
}

static size_t count_of(const struct strv *env, const char *name)
{
    size_t n = 0;
    for (size_t i = 0; i < env->len; i++)
        n += str_starts(env->items[i], name) && env->items[i][strlen(name)] == '=';
    return n;
}

static void test_host_environment(void **state)
{
    (void)state;
    struct workspace ws = make();
    char *env[] = {(char *)"LANG=de", (char *)"X=1", (char *)"X=2", NULL};
    autofree char *saved = mem_strdup(getenv("PATH"));
    autostrv out = {0};
    autostrv plain = {0};
    setenv("PATH", "/runner/bin", 1);
    setenv("SECRET_OF_THE_SERVER", "x", 1);
    strv_add(&ws.env, "LANG=en");
    policy_host_environment(&ws, env, true, &out);
    assert_string_equal(value_of(&out, "PATH"), "/runner/bin");
    assert_string_equal(value_of(&out, "HOME"), "/ws");
    assert_string_equal(value_of(&out, "LANG"), "de");
    assert_string_equal(value_of(&out, "X"), "2");
    assert_string_equal(value_of(&out, "TERM"), "xterm");
    assert_null(value_of(&out, "SECRET_OF_THE_SERVER"));
    static const char *const once[] = {"PATH", "HOME", "LANG", "X", "TERM"};
    for (size_t i = 0; i < ARRAY_LEN(once); i++)
        assert_int_equal(count_of(&out, once[i]), 1);
    unsetenv("PATH");
    policy_host_environment(&ws, NULL, false, &plain);
    assert_string_equal(value_of(&plain, "PATH"),
                        "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin");
    assert_string_equal(value_of(&plain, "TERM"), "dumb");
    unsetenv("SECRET_OF_THE_SERVER");
    if (saved != NULL)
        setenv("PATH", saved, 1);
    strv_fini(&ws.env);
}

UNIT_MAIN(cmocka_unit_test(test_table), cmocka_unit_test(test_texts), cmocka_unit_test(test_paths),
          cmocka_unit_test(test_env_names), cmocka_unit_test(test_compile),
          cmocka_unit_test(test_compile_is_a_valid_request),
          cmocka_unit_test(test_host_environment))
