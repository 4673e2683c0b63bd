/* run/places: the print of what a view is built from changes when something else stands there. */
#include "../../helpers/unit.h"
#include "base/mem.h"
#include "run/places.h"

#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct rig {
    char dir[64];
    struct view view;
    struct places places;
};

static int setup(void **state)
{
    struct rig *r = mem_new(struct rig);
    snprintf(r->dir, sizeof(r->dir), "/tmp/codespace-places-XXXXXX");
    assert_non_null(mkdtemp(r->dir));
    r->view.workspace = mem_strdup(r->dir);
    strv_add(&r->view.protect, ".git");
    *state = r;
    return 0;
}

static char *in_rig(const struct rig *r, const char *name)
{
    return mem_printf("%s/%s", r->dir, name);
}

static int teardown(void **state)
{
    struct rig *r = *state;
    autofree char *git = in_rig(r, ".git");
    autofree char *hidden = in_rig(r, "hidden");
    unlink(git);
    rmdir(git);
    unlink(hidden);
    rmdir(r->dir);
    places_fini(&r->places);
    strv_fini(&r->view.protect);
    strv_fini(&r->view.hidden);
    free(r->view.workspace);
    free(r);
    return 0;
}

static uint64_t look(struct rig *r)
{
    return places_print(&r->places, &r->view);
}

static void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "we");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static void test_same(void **state)
{
    struct rig *r = *state;
    uint64_t first = look(r);
    for (int i = 0; i < 3; i++)
        assert_true(look(r) == first);
    struct places fresh = {0};
    assert_true(places_print(&fresh, &r->view) == first);
    places_fini(&fresh);
}

/* A protected name that appears, changes its kind, or points elsewhere. */
static void test_protected(void **state)
{
    struct rig *r = *state;
    autofree char *git = in_rig(r, ".git");
    uint64_t absent = look(r);
    assert_int_equal(mkdir(git, 0700), 0);
    uint64_t directory = look(r);
    assert_true(directory != absent);
    assert_int_equal(rmdir(git), 0);
    assert_true(look(r) == absent);
    write_file(git, "gitdir: /a\n");
    uint64_t file = look(r);
    assert_true(file != absent && file != directory);
    write_file(git, "gitdir: /elsewhere\n");
    assert_true(look(r) != file);
}

static void test_hidden(void **state)
{
    struct rig *r = *state;
    autofree char *hidden = in_rig(r, "hidden");
    strv_add(&r->view.hidden, hidden);
    uint64_t absent = look(r);
    write_file(hidden, "x");
    assert_true(look(r) != absent);
}

/* What is kept of the secrets is by directories that were there; each of them is one of the
 * secrets' own, and none is kept that does not exist. */
static void test_directories(void **state)
{
    struct rig *r = *state;
    struct stat st;
    look(r);
    assert_true(r->places.there.len > 0);
    for (size_t i = 0; i < r->places.there.len; i++) {
        const char *dir = r->places.there.items[i];
        bool of_a_secret = false;
        assert_int_equal(lstat(dir, &st), 0);
        for (size_t k = 0; view_etc_secrets[k] != NULL; k++)
            of_a_secret |= strncmp(view_etc_secrets[k], dir, strlen(dir)) == 0;
        assert_true(of_a_secret);
    }
}

/* A directory whose times differ from those of the last look makes all be looked at again. */
static void test_changed_directory(void **state)
{
    struct rig *r = *state;
    uint64_t first = look(r);
    r->places.known = true;
    uint64_t dirs = r->places.dirs;
    r->places.dirs ^= 1;
    r->places.secrets ^= 1;
    assert_true(look(r) == first);
    assert_true(r->places.dirs == dirs);
}

/* And when they are the same, what was seen then counts. */
static void test_kept(void **state)
{
    struct rig *r = *state;
    uint64_t first = look(r);
    r->places.known = true;
    r->places.secrets ^= 1;
    assert_true(look(r) != first);
    r->places.known = false;
    assert_true(look(r) == first);
}

/* Which comparison failed, or 0. In a child with mounts of its own. */
static int compare_mounts(struct rig *r, const char *inside, const char *outside)
{
    if (unshare(getuid() == 0 ? CLONE_NEWNS : CLONE_NEWUSER | CLONE_NEWNS) < 0 ||
        mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return 1;
    uint64_t first = look(r);
    if (mount("none", outside, "tmpfs", 0, NULL) < 0 || look(r) != first)
        return 2;
    if (mount("none", inside, "tmpfs", 0, NULL) < 0)
        return 3;
    uint64_t mounted = look(r);
    if (mounted == first || look(r) != mounted)
        return 4;
    if (umount(inside) < 0 || mount("none", inside, "tmpfs", 0, NULL) < 0)
        return 5;
    if (umount(inside) < 0 || look(r) != first)
        return 6;
    return 0;
}

/* Whoever mounts something in the workspace sees it in the next command, and not in the old view.
 */
static void test_mounts(void **state)
{
    struct rig *r = *state;
    int status = 0;
    char outside[] = "/tmp/codespace-places-XXXXXX";
    autofree char *inside = in_rig(r, "with space");
    assert_non_null(mkdtemp(outside));
    assert_int_equal(mkdir(inside, 0755), 0);
    pid_t pid = fork();
    if (pid == 0)
        _exit(compare_mounts(r, inside, outside));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    rmdir(inside);
    rmdir(outside);
    assert_int_equal(status, 0);
}

#define IN_RIG(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

UNIT_MAIN(IN_RIG(test_same), IN_RIG(test_protected), IN_RIG(test_hidden), IN_RIG(test_directories),
          IN_RIG(test_changed_directory), IN_RIG(test_kept), IN_RIG(test_mounts))
