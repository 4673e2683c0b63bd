/* core/registry: what a good configuration and a good --workspace give, and what is looked up. What
 * is refused is in test_registry_load.c. */
#include "../../helpers/base_dir.h"
#include "../../helpers/unit.h"
#include "base/mem.h"
#include "core/registry.h"
#include <stdio.h>
#include <sys/stat.h>

#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

/* ---- accepted ---- */

static void test_defaults(void **state)
{
    (void)state;
    struct registry r = {0};
    struct err e = {0};
    autofree char *root = base_dir_fill("@/a");
    assert_int_equal(base_dir_load(&r, "{\"workspaces\":{\"demo\":{\"root\":\"@/link/\"}}}", &e),
                     0);
    const struct workspace *ws = registry_get(&r, "demo", &e);
    assert_non_null(ws);
    assert_string_equal(ws->root, root);
    assert_true(ws->root_fd >= 0);
    assert_true(fcntl(ws->root_fd, F_GETFD) & FD_CLOEXEC);
    assert_int_equal(ws->profile, PROFILE_READ_ONLY);
    assert_int_equal(ws->network, NETWORK_RESTRICTED);
    assert_int_equal(ws->environment, ENVIRONMENT_HOST);
    assert_int_equal(ws->approvals, APPROVALS_OFF);
    assert_int_equal(ws->sandbox, SANDBOX_PREFERRED);
    assert_int_equal(ws->read, VIEW_READ_MINIMAL);
    assert_int_equal(ws->hidden.len, 0);
    registry_require_sandbox(&r);
    assert_int_equal(ws->sandbox, SANDBOX_REQUIRED);
    registry_fini(&r);
}

static void test_everything(void **state)
{
    (void)state;
    struct registry r = {0};
    struct err e = {0};
    autofree char *mount = base_dir_fill("@/data");
    autofree char *hide = base_dir_fill("@/a/in/key");
    int status = base_dir_load(
        &r,
        "{\"environments\":{\"box\":{\"kind\":\"linux-container\"},\"local\":{\"kind\":\"host\"}},"
        "\"workspaces\":{\"demo\":{\"root\":\"@/a\",\"profile\":\"workspace-write\","
        "\"environment\":\"local\",\"network\":\"enabled\",\"approvals\":\"confirm\","
        "\"sandbox\":\"required\",\"read\":\"minimal\",\"mounts\":[{\"path\":\"@/data\","
        "\"writable\":true},{\"path\":\"@/file\"}],\"hide\":[\"@/a/in/key\"],"
        "\"env\":{\"A\":\"b=c\",\"E\":\"\"}},\"boxed\":{\"root\":\"@/"
        "b\",\"environment\":\"box\"}}}",
        &e);
    if (status < 0)
        fail_msg("%s", e.message);
    const struct workspace *ws = registry_get(&r, "demo", &e);
    assert_int_equal(ws->profile, PROFILE_WORKSPACE_WRITE);
    assert_int_equal(ws->network, NETWORK_ENABLED);
    assert_int_equal(ws->approvals, APPROVALS_CONFIRM);
    assert_int_equal(ws->sandbox, SANDBOX_REQUIRED);
    assert_int_equal(ws->n_mounts, 2);
    assert_string_equal(ws->mounts[0].path, mount);
    assert_true(ws->mounts[0].writable);
    assert_false(ws->mounts[1].writable);
    assert_string_equal(ws->hide.items[0], hide);
    assert_true(strv_has(&ws->hidden, hide));
    assert_string_equal(ws->env.items[0], "A=b=c");
    assert_string_equal(ws->env.items[1], "E=");
    assert_int_equal(registry_get(&r, "boxed", &e)->environment, ENVIRONMENT_LINUX_CONTAINER);
    assert_string_equal(r.items[0]->id, "demo");
    assert_string_equal(r.items[1]->id, "boxed");
    registry_fini(&r);
}

static void test_neighbours_and_nesting_that_are_fine(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "{}",
        "{\"workspaces\":{},\"environments\":{}}",
        /* A17: a common beginning of names is not containment */
        "{\"workspaces\":{\"a\":{\"root\":\"@/a\",\"profile\":\"workspace-write\"},"
        "\"s\":{\"root\":\"@/a_secret\"}}}",
        "{\"workspaces\":{\"out\":{\"root\":\"@/a\"},\"in\":{\"root\":\"@/a/in\",\"profile\":"
        "\"workspace-write\"}}}",
        "{\"workspaces\":{\"out\":{\"root\":\"@/a\",\"hide\":[\"@/a/in/k\"]},\"in\":{\"root\":\"@/"
        "a/"
        "in\",\"hide\":[\"@/a/in/k/x\",\"@/b\"]}}}",
        "{\"workspaces\":{\"a\":{\"root\":\"@/a\"},\"b\":{\"root\":\"@/b\",\"mounts\":[{\"path\":"
        "\"@/a\"}]}}}",
        "{\"workspaces\":{\"etc\":{\"root\":\"/etc\"}}}",
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct registry r = {0};
        struct err e = {0};
        if (base_dir_load(&r, rows[i], &e) < 0)
            fail_msg("%s: %s", rows[i], e.message);
        registry_fini(&r);
    }
}

static void test_secret_places_are_hidden_where_they_would_show(void **state)
{
    (void)state;
    struct registry r = {0};
    struct err e = {0};
    autofree char *saved = mem_strdup(getenv("HOME"));
    autofree char *home = base_dir_fill("@/a");
    autofree char *ssh = base_dir_fill("@/a/.ssh");
    setenv("HOME", home, 1);
    assert_int_equal(base_dir_load(&r,
                                   "{\"workspaces\":{\"home\":{\"root\":\"@/a\"},"
                                   "\"mount\":{\"root\":\"@/b\",\"mounts\":[{\"path\":\"@/a\"}]},"
                                   "\"none\":{\"root\":\"@/a_secret\"},"
                                   "\"all\":{\"root\":\"@/data\",\"read\":\"all\"},"
                                   "\"etc\":{\"root\":\"/etc\"}}}",
                                   &e),
                     0);
    assert_true(strv_has(&registry_get(&r, "home", &e)->hidden, ssh));
    assert_true(strv_has(&registry_get(&r, "mount", &e)->hidden, ssh));
    assert_int_equal(registry_get(&r, "none", &e)->hidden.len, 0);
    /* What only "read": "all" shows, the helper hides; the file tools do not get there. */
    assert_int_equal(registry_get(&r, "all", &e)->hidden.len, 0);
    assert_true(strv_has(&registry_get(&r, "etc", &e)->hidden, "/etc/shadow"));
    assert_false(strv_has(&registry_get(&r, "etc", &e)->hidden, "/run"));
    registry_fini(&r);
    /* A link in the home leads into a workspace: what it names is hidden there (dotfiles). */
    autofree char *link_path = base_dir_fill("@/a/.netrc");
    autofree char *target = base_dir_fill("@/b/netrc");
    base_dir_write(target, "", 0600);
    assert_int_equal(symlink(target, link_path), 0);
    assert_int_equal(base_dir_load(&r, "{\"workspaces\":{\"b\":{\"root\":\"@/b\"}}}", &e), 0);
    assert_true(strv_has(&registry_get(&r, "b", &e)->hidden, target));
    registry_fini(&r);
    unlink(link_path);
    unlink(target);
    /* A secret place that the operator names is what he wants to show. */
    base_dir_mkdirs(ssh);
    assert_int_equal(
        base_dir_load(&r,
                      "{\"workspaces\":{\"b\":{\"root\":\"@/b\",\"mounts\":[{\"path\":\"@/a/"
                      ".ssh\"}]}}}",
                      &e),
        0);
    assert_int_equal(registry_get(&r, "b", &e)->hidden.len, 0);
    registry_fini(&r);
    rmdir(ssh);
    if (saved != NULL)
        setenv("HOME", saved, 1);
    else
        unsetenv("HOME");
}

static void test_plans_are_out_of_reach(void **state)
{
    (void)state;
    struct registry r = {0};
    struct err e = {0};
    autofree char *saved = mem_strdup(getenv("TMPDIR"));
    autofree char *tmp = base_dir_fill("@/tmp/in");
    autofree char *message = base_dir_fill(
        "c.json: workspaces.demo.root: commands must not write in \"@/tmp\": the server's "
        "temporary directory \"@/tmp/in\" lies in it (set TMPDIR, or use another "
        "directory)");
    setenv("TMPDIR", tmp, 1);
    assert_int_equal(
        base_dir_load(&r, WS("\"root\":\"@/tmp\",\"profile\":\"workspace-write\""), &e), -1);
    assert_string_equal(e.message, message);
    assert_int_equal(base_dir_load(&r, WS("\"root\":\"@/tmp\""), &e), 0);
    registry_fini(&r);
    if (saved != NULL)
        setenv("TMPDIR", saved, 1);
    else
        unsetenv("TMPDIR");
}

/* A command that can replace our programs is outside the sandbox at the next start. */
static void test_our_programs_are_out_of_reach(void **state)
{
    (void)state;
    struct registry r = {0};
    struct err e = {0};
    char exe[PATH_MAX];
    assert_non_null(realpath("/proc/self/exe", exe));
    autofree char *folder = base_dir_fill("@/helper");
    assert_int_equal(mkdir(folder, 0755), 0);
    *strrchr(exe, '/') = '\0';
    assert_int_equal(registry_add_option(&r, exe, &e), -1);
    assert_non_null(strstr(e.message, "could replace it and leave the sandbox"));

    autofree char *saved = mem_strdup(getenv("CODESPACE_LINUX_SANDBOX_BIN"));
    autofree char *beside = base_dir_fill("@/helper/codespace-linux-sandbox");
    FILE *file = fopen(beside, "we");
    assert_non_null(file);
    fclose(file);
    setenv("CODESPACE_LINUX_SANDBOX_BIN", beside, 1);
    assert_int_equal(registry_add_option(&r, folder, &e), -1);
    assert_non_null(strstr(e.message, beside));
    assert_int_equal(base_dir_load(&r, WS("\"root\":\"@/helper\""), &e), 0);
    if (saved != NULL)
        setenv("CODESPACE_LINUX_SANDBOX_BIN", saved, 1);
    else
        unsetenv("CODESPACE_LINUX_SANDBOX_BIN");
    unlink(beside);
    rmdir(folder);
    registry_fini(&r);
}

/* ---- looking up ---- */

static void test_get(void **state)
{
    (void)state;
    struct registry r = {0};
    struct err e = {0};
    assert_null(registry_get(&r, "x", &e));
    assert_int_equal(e.code, ERR_WORKSPACE_NOT_FOUND);
    assert_string_equal(
        e.message, "no workspace \"x\": none is registered; an operator starts the server with "
                   "--workspace DIR or --config FILE");
    assert_int_equal(
        base_dir_load(&r, "{\"workspaces\":{\"b\":{\"root\":\"@/b\"},\"a\":{\"root\":\"@/a\"}}}",
                      &e),
        0);
    assert_null(registry_get(&r, "x", &e));
    assert_string_equal(e.message, "no workspace \"x\" is registered; there are: b, a");
    registry_fini(&r);
}

/* ---- --workspace ---- */

static const struct {
    const char *option;
    const char *id; /* NULL: refused with `message` */
    const char *root;
    const char *message;
} options[] = {
    {"@/a", "a", "@/a", NULL},
    {"@/link", "a", "@/a", NULL},
    {"@/a/", "a", "@/a", NULL},
    {"demo=@/a", "demo", "@/a", NULL},
    {"x", NULL, NULL, "--workspace x: the directory \"x\" does not exist"},
    {"a/../a", "a", "@/a", NULL},
    {"one=a", "one", "@/a", NULL},
    {"x=y", NULL, NULL, "--workspace x=y: the directory \"y\" does not exist"},
    {"./x=y", "x-y", "@/x=y", NULL},
    {"@/x=y", "x-y", "@/x=y", NULL},
    {"eq=@/x=y", "eq", "@/x=y", NULL},
    {"@/.dot", "dot", "@/.dot", NULL},
    {"@/...", "workspace", "@/...", NULL},
    {"@/\xc3\xa9 t\xc3\xa9", "t--", "@/\xc3\xa9 t\xc3\xa9", NULL},
    {"", NULL, NULL, "--workspace : the directory is missing; write ID=DIR or DIR"},
    {"id=", NULL, NULL, "--workspace id=: the directory is missing; write ID=DIR or DIR"},
    {"@/file", NULL, NULL, "--workspace @/file: \"@/file\" is not a directory"},
    {"my id=@/a", NULL, NULL,
     "--workspace my id=@/a: taken as a directory, because what stands before '=' is not an id (1 "
     "to 64 letters, digits, '.', '_', '-'): the directory \"my id=@/a\" does not exist"},
    {"/", NULL, NULL,
     "--workspace /: \"/\" cannot be used: it is the whole machine; name a directory of your own"},
    {"/usr", NULL, NULL,
     "--workspace /usr: commands must not write in \"/usr\": it belongs to the system; name a "
     "directory of your own"},
};

static void test_option(void **state)
{
    (void)state;
    char before[PATH_MAX];
    assert_non_null(getcwd(before, sizeof(before)));
    assert_int_equal(chdir(base_dir()), 0);
    for (size_t i = 0; i < ARRAY_LEN(options); i++) {
        struct registry r = {0};
        struct err e = {0};
        autofree char *option = base_dir_fill(options[i].option);
        autofree char *root = base_dir_fill(options[i].root == NULL ? "" : options[i].root);
        autofree char *message =
            base_dir_fill(options[i].message == NULL ? "" : options[i].message);
        int status = registry_add_option(&r, option, &e);
        if (status < 0) {
            assert_string_equal(e.message, message);
        } else {
            assert_non_null(options[i].id);
            assert_string_equal(r.items[0]->id, options[i].id);
            assert_string_equal(r.items[0]->root, root);
            assert_int_equal(r.items[0]->profile, PROFILE_WORKSPACE_WRITE);
        }
        registry_fini(&r);
    }
    assert_int_equal(chdir(before), 0);
}

static void test_options_that_collide(void **state)
{
    (void)state;
    struct registry r = {0};
    struct err e = {0};
    autofree char *a = base_dir_fill("@/a");
    autofree char *b = base_dir_fill("a=@/b");
    autofree char *in = base_dir_fill("@/a/in");
    autofree char *taken =
        base_dir_fill("--workspace a=@/b: the id \"a\" is taken by @/a; give this one "
                      "an id of its own: --workspace ID=@/b");
    assert_int_equal(registry_add_option(&r, a, &e), 0);
    assert_int_equal(registry_add_option(&r, b, &e), -1);
    assert_string_equal(e.message, taken);
    assert_int_equal(registry_add_option(&r, in, &e), -1);
    assert_non_null(strstr(e.message, "which is workspace-write"));
    assert_int_equal(r.n, 1);
    registry_fini(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_everything),
        cmocka_unit_test(test_neighbours_and_nesting_that_are_fine),
        cmocka_unit_test(test_secret_places_are_hidden_where_they_would_show),
        cmocka_unit_test(test_plans_are_out_of_reach),
        cmocka_unit_test(test_our_programs_are_out_of_reach),
        cmocka_unit_test(test_get),
        cmocka_unit_test(test_option),
        cmocka_unit_test(test_options_that_collide),
    };
    return cmocka_run_group_tests(tests, base_dir_up, base_dir_down);
}
