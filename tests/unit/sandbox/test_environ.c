/* sandbox/environ: defaults, what follows from the request, the request's own; later wins. */
#include "../../helpers/unit.h"
#include "base/mem.h"
#include "sandbox/environ.h"

static const char *get(const struct strv *env, const char *name)
{
    const char *found = NULL;
    size_t n = strlen(name);
    for (size_t i = 0; i < env->len; i++) {
        if (strncmp(env->items[i], name, n) == 0 && env->items[i][n] == '=') {
            assert_null(found);
            found = env->items[i] + n + 1;
        }
    }
    return found;
}

static void test_environment(void **state)
{
    (void)state;
    struct helper_request r = {.tty = true};
    autostrv env = {0};
    r.view.workspace = mem_strdup("/w");
    r.cwd = mem_strdup("/w/sub");
    strv_add(&r.env, "LANG=x=y");
    strv_add(&r.env, "NEW=1");
    strv_add(&r.env, "NEW=2");
    strv_add(&r.env, "LAN=other");
    environ_build(&r, &env);
    assert_string_equal(get(&env, "HOME"), "/tmp/home");
    assert_string_equal(get(&env, "TERM"), "xterm");
    assert_string_equal(get(&env, "PWD"), "/w/sub");
    assert_string_equal(get(&env, "LANG"), "x=y");
    assert_string_equal(get(&env, "LAN"), "other");
    assert_string_equal(get(&env, "NEW"), "2");
    assert_string_equal(get(&env, "GIT_CONFIG_VALUE_0"), "/w");
    assert_string_equal(get(&env, "CODESPACE_SANDBOX"), "linux-sandbox");
    assert_string_equal(get(&env, "USER"), get(&env, "LOGNAME"));
    helper_request_fini(&r);
}

UNIT_MAIN(cmocka_unit_test(test_environment))
