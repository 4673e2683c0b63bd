/* sandbox/walk and what stands on it: order, limits, links, patterns, pointers of repositories. */
#include "../../helpers/unit.h"
#include "base/mem.h"
#include "sandbox/codex_face.h"
#include "sandbox/deny.h"
#include "sandbox/gitdir.h"
#include "sandbox/walk.h"
#include "sys/rmtree.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static char base[64];

static int make_base(void **state)
{
    (void)state;
    snprintf(base, sizeof(base), "/tmp/cs-test-walk-XXXXXX");
    return mkdtemp(base) == NULL || chdir(base) < 0 ? -1 : 0;
}

static int remove_base(void **state)
{
    (void)state;
    return chdir("/") < 0 ? -1 : rmtree(AT_FDCWD, base, 1000);
}

static void put(const char *path, const char *text)
{
    autofree char *dirs = mem_strdup(path);
    for (char *slash = strchr(dirs, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(dirs, 0755);
        *slash = '/';
    }
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

struct seen {
    struct strv paths;
    const char *skip;
};

static bool note(void *arg, const char *path, bool is_directory)
{
    struct seen *s = arg;
    strv_addf(&s->paths, "%s%s", path, is_directory ? "/" : "");
    return !str_eq(path, s->skip);
}

static void test_shallow_first(void **state)
{
    (void)state;
    struct seen s = {.skip = "skip"};
    put("a/b/c/file", "");
    put("skip/file", "");
    assert_int_equal(symlink("/", "link"), 0);
    assert_int_equal(walk_tree(base, 100, note, &s), 0);
    assert_int_equal(s.paths.len, 6);
    assert_true(strv_has(&s.paths, "link") && strv_has(&s.paths, "skip/"));
    assert_string_equal(s.paths.items[3], "a/b/");
    assert_string_equal(s.paths.items[5], "a/b/c/file");
    strv_fini(&s.paths);
    assert_int_equal(walk_tree(base, 4, note, &s), 1);
    assert_int_equal(s.paths.len, 4);
    strv_fini(&s.paths);
    assert_true(walk_tree("/nonexistent", 4, note, &s) < 0);
}

static const struct layout_item *find(const struct layout *l, const char *path)
{
    const struct layout_item *best = NULL;
    autofree char *full = mem_printf("%s/%s", base, path);
    for (size_t i = 0; i < l->n; i++) {
        if (str_eq(l->items[i].path, full) && (best == NULL || l->items[i].rank >= best->rank))
            best = &l->items[i];
    }
    return best;
}

static void make_view(struct view *v, struct layout *l)
{
    *v = (struct view){.workspace_writable = true};
    v->workspace = mem_strdup(base);
    layout_add(l, LAYOUT_BIND_RW, LAYOUT_RANK_WORKSPACE, base, NULL);
}

static void test_patterns(void **state)
{
    (void)state;
    struct view v;
    struct layout l = {0};
    struct err e = {0};
    put("a/x.pem", "");
    put("keys/deep/file", "");
    put("s/keys/file", "");
    put("d/e/secret", "");
    make_view(&v, &l);
    strv_add(&v.deny, "*.pem");
    strv_add(&v.deny, "keys/**");
    strv_add(&v.deny, "d/*/secret");
    assert_int_equal(deny_add(&v, &l, &e), 0);
    assert_int_equal(find(&l, "a/x.pem")->kind, LAYOUT_HIDE_FILE);
    assert_null(find(&l, "a")); /* at any depth, so moving it is no way out */
    assert_int_equal(find(&l, "keys")->kind, LAYOUT_HIDE_DIR);
    assert_null(find(&l, "keys/deep"));
    assert_null(find(&l, "s/keys"));
    assert_int_equal(find(&l, "d")->rank, LAYOUT_RANK_FENCE);
    assert_int_equal(find(&l, "d/e")->rank, LAYOUT_RANK_FENCE);
    assert_int_equal(find(&l, "d/e/secret")->kind, LAYOUT_HIDE_FILE);
    strv_add(&v.deny, "**");
    assert_int_equal(deny_add(&v, &l, &e), -1);
    assert_int_equal(e.code, ERR_INVALID_COMMAND);
    view_fini(&v);
    layout_fini(&l);
}

static void test_repositories(void **state)
{
    (void)state;
    struct view v;
    struct layout l = {0};
    struct plan p = {0};
    autostrv found = {0};
    put("sub/.git/HEAD", "");
    put("sub/.git/config", "");
    put("sub/.git/modules/m/HEAD", "");
    put("sub/.git/modules/m/config", "");
    put("tree/.git", "gitdir: ../sub/.git\n");
    make_view(&v, &l);
    v.git = VIEW_GIT_COMMIT;
    gitdir_protect_nested(&v, &l, &p);
    assert_int_equal(p.repositories.len, 2);
    assert_int_equal(find(&l, "sub")->rank, LAYOUT_RANK_FENCE);
    assert_int_equal(find(&l, "sub/.git")->kind, LAYOUT_BIND_RW);
    assert_int_equal(find(&l, "sub/.git/config")->kind, LAYOUT_BIND);
    assert_int_equal(find(&l, "sub/.git/modules/m/config")->kind, LAYOUT_BIND);
    assert_int_equal(find(&l, "tree/.git")->kind, LAYOUT_BIND);
    autofree char *missing = mem_printf("%s/sub/.git/hooks", base);
    assert_true(strv_has(&p.guards, missing));
    put("new/.git/HEAD", "");
    assert_int_equal(gitdir_find_new(base, &p.repositories, NULL, &found), 0);
    assert_int_equal(found.len, 1);
    assert_string_equal(found.items[0], "new/.git");
    view_fini(&v);
    layout_fini(&l);
    plan_fini(&p);
}

/* H11 */
static void test_wsl(void **state)
{
    (void)state;
    assert_true(
        codex_face_is_wsl1("Linux version 4.4.0-19041-Microsoft (Microsoft@Microsoft.com)"));
    assert_false(codex_face_is_wsl1("Linux version 5.15.90.1-microsoft-standard-WSL2 (root@x)"));
    assert_false(
        codex_face_is_wsl1("Linux version 6.1.0-13-amd64 (debian-kernel@lists.debian.org)"));
}

UNIT_MAIN(cmocka_unit_test_setup_teardown(test_shallow_first, make_base, remove_base),
          cmocka_unit_test_setup_teardown(test_patterns, make_base, remove_base),
          cmocka_unit_test_setup_teardown(test_repositories, make_base, remove_base),
          cmocka_unit_test(test_wsl))
