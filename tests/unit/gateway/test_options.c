/* gateway/options: the table of options, the environment under it, and what is refused by name. */
#include "../../helpers/unit.h"
#include "base/mem.h"
#include "gateway/options.h"

static void clear(void)
{
    static const char *const names[] = {
        "CODESPACE_CONFIG",        "CODESPACE_OPERATIONS_DB",
        "CODESPACE_LOG",           "CODESPACE_PROCESS_TIMEOUT_SECS",
        "CODESPACE_MAX_PROCESSES", "CODESPACE_MAX_WORKSPACE_PROCESSES",
        "CODESPACE_RUNNER",        "CODESPACE_RUNNER_DIR",
        "CODESPACE_RUNNER_SOCKET", "CODESPACE_RUNTIME_BIN"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        unsetenv(names[i]);
}

/* Arguments after the program's name, NULL-terminated. */
static int read_args(struct options *o, const char *const *args, struct err *e)
{
    char *argv[10] = {(char[]){"codespace-mcp"}};
    int argc = 1;
    for (; *args != NULL; args++)
        argv[argc++] = (char *)*args;
    return options_read(o, argc, argv, e);
}

#define ARGS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void test_defaults(void **state)
{
    (void)state;
    struct options o;
    struct err e;
    clear();
    assert_int_equal(read_args(&o, (const char *const[]){NULL}, &e), 0);
    assert_int_equal(o.action, OPTIONS_SERVE);
    assert_int_equal(o.log_level, LOG_WARN);
    assert_null(o.config);
    assert_false(o.require_sandbox);
    assert_int_equal(o.workspaces.len, 0);
    options_fini(&o);
}

static void test_reads(void **state)
{
    (void)state;
    struct options o;
    struct err e;
    clear();
    assert_int_equal(read_args(&o,
                               ARGS("--workspace", "a=/x", "--workspace=b=/y", "--config=c.json",
                                    "--require-sandbox", "--transport", "stdio", "--doctor"),
                               &e),
                     0);
    assert_int_equal(o.workspaces.len, 2);
    assert_string_equal(o.workspaces.items[0], "a=/x");
    assert_string_equal(o.workspaces.items[1], "b=/y");
    assert_string_equal(o.config, "c.json");
    assert_true(o.require_sandbox);
    assert_int_equal(o.action, OPTIONS_DOCTOR);
    options_fini(&o);
}

static void test_environment(void **state)
{
    (void)state;
    struct options o;
    struct err e;
    clear();
    setenv("CODESPACE_CONFIG", "env.json", 1);
    setenv("CODESPACE_LOG", "debug", 1);
    setenv("CODESPACE_PROCESS_TIMEOUT_SECS", "30", 1);
    setenv("CODESPACE_MAX_PROCESSES", "8", 1);
    assert_int_equal(read_args(&o, ARGS("--log-level", "error"), &e), 0);
    assert_string_equal(o.config, "env.json");
    assert_int_equal(o.log_level, LOG_ERROR);
    assert_int_equal(o.timeout_ms, 30000);
    assert_int_equal(o.max_processes, 8);
    options_fini(&o);
    clear();
}

static void test_refuses_arguments(void **state)
{
    (void)state;
    static const struct {
        const char *first, *second, *says;
    } rows[] = {
        {"--nothing", NULL, "--nothing"},
        {"--http=1", NULL, "--http takes no value"},
        {"--token", "secretsecretsecret", "--token-file"},
        {"--port", "65536", "--port"},
        {"--host", "", "--host"},
        {"DIR", NULL, "DIR"},
        {"", NULL, "unknown"},
        {"--workspace", NULL, "--workspace needs a value"},
        {"--config=", NULL, "--config"},
        {"--doctor=1", NULL, "--doctor takes no value"},
        {"--transport", "carrier-pigeon", "stdio and http"},
        {"--log-level", "loud", "--log-level"},
    };
    clear();
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct options o;
        struct err e;
        autofree char *first = mem_strdup(rows[i].first);
        autofree char *second = mem_strdup(rows[i].second);
        if (read_args(&o, ARGS(first, second), &e) == 0)
            fail_msg("%s was accepted", rows[i].first);
        assert_int_equal(e.code, ERR_INVALID_ARGUMENT);
        if (strstr(e.message, rows[i].says) == NULL)
            fail_msg("\"%s\" does not say %s", e.message, rows[i].says);
        options_fini(&o);
    }
}

static void test_refuses_variables(void **state)
{
    (void)state;
    static const struct {
        const char *name, *value;
    } rows[] = {
        {"CODESPACE_PROCESS_TIMEOUT_SECS", "0"},
        {"CODESPACE_PROCESS_TIMEOUT_SECS", "86401"},
        {"CODESPACE_PROCESS_TIMEOUT_SECS", "ten"},
        {"CODESPACE_MAX_PROCESSES", "-1"},
        {"CODESPACE_MAX_PROCESSES", "4097"},
        {"CODESPACE_LOG", ""},
        {"CODESPACE_CONFIG", ""},
        {"CODESPACE_MAX_PROCESSES", "8 "},
        {"CODESPACE_MAX_WORKSPACE_PROCESSES", "0"},
        {"CODESPACE_RUNNER", "tcp"},
        {"CODESPACE_RUNNER_DIR", "relative"},
        {"CODESPACE_RUNNER_SOCKET", ""},
        {"CODESPACE_RUNTIME_BIN", "worker"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct options o;
        struct err e;
        clear();
        setenv(rows[i].name, rows[i].value, 1);
        if (read_args(&o, (const char *const[]){NULL}, &e) == 0)
            fail_msg("%s=%s was accepted", rows[i].name, rows[i].value);
        if (strstr(e.message, rows[i].name) == NULL)
            fail_msg("\"%s\" does not name %s", e.message, rows[i].name);
        options_fini(&o);
    }
    clear();
}

static void test_help_names_all(void **state)
{
    (void)state;
    autobuf text = BUF_INIT;
    options_help(&text);
    static const char *const names[] = {
        "--workspace",
        "--config",
        "--require-sandbox",
        "--transport",
        "--http",
        "--host",
        "--port",
        "--token-file",
        "--operator-token-file",
        "CODESPACE_OPERATOR_TOKEN",
        "approvals list|show|grant|deny",
        "--allow-host",
        "--allow-origin",
        "--unix-socket",
        "--socket-activation",
        "CODESPACE_HTTP_TOKEN",
        "--runner",
        "--runtime-bin",
        "--runner-socket",
        "--runner-dir",
        "CODESPACE_MAX_WORKSPACE_PROCESSES",
        "--log-level",
        "--doctor",
        "--version",
        "--help",
        "CODESPACE_CONFIG",
        "CODESPACE_LOG",
        "CODESPACE_PROCESS_TIMEOUT_SECS",
        "CODESPACE_MAX_PROCESSES",
        "CODESPACE_LINUX_SANDBOX_BIN",
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        assert_non_null(strstr(buf_cstr(&text), names[i]));
}

UNIT_MAIN(cmocka_unit_test(test_defaults), cmocka_unit_test(test_reads),
          cmocka_unit_test(test_environment), cmocka_unit_test(test_refuses_arguments),
          cmocka_unit_test(test_refuses_variables), cmocka_unit_test(test_help_names_all))
