/* sandbox/layout: the order of mounts does not depend on the order of adding, deeper wins, what
 * hides is written only where something shows, and limits are told. */
#include "../../helpers/unit.h"
#include "base/mem.h"
#include "sandbox/layout.h"

#include <stdio.h>

/* The arguments as one line. */
static char *words(struct layout *l, struct plan *p)
{
    struct err e = {0};
    assert_int_equal(layout_write(l, p, &e), 0);
    for (size_t i = 0; i < p->args.len; i++) {
        char *at = p->args.data + p->args.start + i;
        *at = *at == '\0' ? ' ' : *at;
    }
    return buf_steal(&p->args);
}

#define BASE "--proc /proc --ro-bind /proc/sys /proc/sys --dev /dev "

static void expect(struct layout *l, const char *want)
{
    struct plan p = {0};
    autofree char *got = words(l, &p);
    assert_string_equal(got, want);
    plan_fini(&p);
    layout_fini(l);
}

static void test_order(void **state)
{
    (void)state;
    static const struct {
        enum layout_kind kind;
        enum layout_rank rank;
        const char *path;
    } items[] = {
        {LAYOUT_BIND, LAYOUT_RANK_PROTECTED, "/w/.git"},
        {LAYOUT_BIND_RW, LAYOUT_RANK_WORKSPACE, "/w"},
        {LAYOUT_HIDE_FILE, LAYOUT_RANK_HIDDEN, "/w/secret"},
        {LAYOUT_TMPFS, LAYOUT_RANK_PRIVATE, "/tmp"},
    };
    for (size_t first = 0; first < 4; first++) {
        struct layout l = {0};
        for (size_t i = 0; i < 4; i++)
            layout_add(&l, items[(first + i) % 4].kind, items[(first + i) % 4].rank,
                       items[(first + i) % 4].path, NULL);
        expect(&l, BASE "--perms 1777 --tmpfs /tmp --bind-fd 9 /w --ro-bind-fd 10 /w/.git "
                        "--perms 0444 --ro-bind-data 11 /w/secret --remount-ro / ");
    }
}

/* What process 1 lays covers something that bubblewrap has mounted. */
static void test_place_of_a_mount_that_is_overruled(void **state)
{
    (void)state;
    struct layout l = {.masks = 1};
    layout_add(&l, LAYOUT_BIND_RW, LAYOUT_RANK_WORKSPACE, "/w", NULL);
    layout_add(&l, LAYOUT_BIND, LAYOUT_RANK_PROTECTED, "/w", NULL);
    layout_add(&l, LAYOUT_BIND_RW, LAYOUT_RANK_FENCE, "/w/a", NULL);
    layout_add(&l, LAYOUT_BIND, LAYOUT_RANK_PROTECTED, "/w/a", NULL);
    expect(&l, "--proc /proc --dev /dev --ro-bind-fd 9 /w --remount-ro / ");
}

static void test_higher_rank_stands(void **state)
{
    (void)state;
    struct layout l = {0};
    layout_add(&l, LAYOUT_BIND_RW, LAYOUT_RANK_WORKSPACE, "/w", NULL);
    layout_add(&l, LAYOUT_BIND, LAYOUT_RANK_MOUNT, "/w", NULL);
    layout_add(&l, LAYOUT_BIND, LAYOUT_RANK_PROTECTED, "/w/x", NULL);
    layout_add(&l, LAYOUT_BIND_RW, LAYOUT_RANK_FENCE, "/w/x", NULL);
    expect(&l, BASE "--bind-fd 9 /w --ro-bind-fd 10 /w/x --remount-ro / ");
}

/* Hidden where it shows; not in our own tmpfs, nor below what is hidden already. */
static void test_hides_what_shows(void **state)
{
    (void)state;
    struct layout l = {0};
    layout_add(&l, LAYOUT_HIDE_DIR, LAYOUT_RANK_SECRET, "/root/.ssh", NULL);
    layout_add(&l, LAYOUT_HOST, LAYOUT_RANK_PLATFORM, "/etc", "/etc");
    layout_add(&l, LAYOUT_HIDE_DIR, LAYOUT_RANK_SECRET, "/etc/s", NULL);
    layout_add(&l, LAYOUT_HIDE_FILE, LAYOUT_RANK_SECRET, "/etc/s/key", NULL);
    layout_add(&l, LAYOUT_BIND, LAYOUT_RANK_MOUNT, "/etc/s/open", NULL);
    expect(&l, BASE "--ro-bind /etc /etc --perms 0555 --tmpfs /etc/s --ro-bind-fd 9 /etc/s/open "
                    "--remount-ro /etc/s --remount-ro / ");
}

static void test_whole(void **state)
{
    (void)state;
    struct layout l = {.whole = true};
    layout_add(&l, LAYOUT_HIDE_FILE, LAYOUT_RANK_SECRET, "/root/.netrc", NULL);
    expect(&l, "--ro-bind / / " BASE "--perms 0444 --ro-bind-data 9 /root/.netrc ");
}

/* A fence inside something read-only would open it again. */
static void test_fence_is_not_a_hole(void **state)
{
    (void)state;
    struct layout l = {0};
    layout_add(&l, LAYOUT_BIND_RW, LAYOUT_RANK_WORKSPACE, "/w", NULL);
    layout_add(&l, LAYOUT_BIND_RW, LAYOUT_RANK_FENCE, "/w/a", NULL);
    layout_add(&l, LAYOUT_BIND, LAYOUT_RANK_PROTECTED, "/w/a/b", NULL);
    layout_add(&l, LAYOUT_BIND_RW, LAYOUT_RANK_FENCE, "/w/a/b/c", NULL);
    layout_add(&l, LAYOUT_BIND, LAYOUT_RANK_PROTECTED, "/w/a/b/c/d", NULL);
    expect(&l, BASE "--bind-fd 9 /w --bind-fd 10 /w/a --ro-bind-fd 11 /w/a/b "
                    "--ro-bind-fd 12 /w/a/b/c/d --remount-ro / ");
}

static void test_writable(void **state)
{
    (void)state;
    struct layout l = {0};
    layout_add(&l, LAYOUT_BIND_RW, LAYOUT_RANK_WORKSPACE, "/w", NULL);
    layout_add(&l, LAYOUT_BIND, LAYOUT_RANK_MOUNT, "/w/ro", NULL);
    layout_add(&l, LAYOUT_BIND_RW, LAYOUT_RANK_MOUNT, "/w/ro/rw", NULL);
    assert_string_equal(layout_writable(&l, "/w/x")->path, "/w");
    assert_string_equal(layout_writable(&l, "/w")->path, "/w");
    assert_string_equal(layout_writable(&l, "/w/ro/rw/x")->path, "/w/ro/rw");
    assert_null(layout_writable(&l, "/w/ro/x"));
    assert_null(layout_writable(&l, "/other"));
    layout_fini(&l);
}

static void test_limits(void **state)
{
    (void)state;
    struct plan p = {0};
    struct err e = {0};
    struct layout l = {.whole = true};
    char path[32];
    for (unsigned i = 0; i <= PLAN_SOURCES_MAX; i++) {
        snprintf(path, sizeof(path), "/d/%05u", i);
        layout_add(&l, LAYOUT_HIDE_FILE, LAYOUT_RANK_HIDDEN, path, NULL);
    }
    assert_int_equal(layout_write(&l, &p, &e), -1);
    assert_int_equal(e.code, ERR_LIMIT_EXCEEDED);
    assert_non_null(strstr(e.message, "PLAN_SOURCES_MAX"));
    plan_fini(&p);
    layout_fini(&l);
    l.whole = true;
    for (unsigned i = 0; i < 1500; i++) {
        snprintf(path, sizeof(path), "/d/%05u", i);
        layout_add(&l, LAYOUT_HIDE_DIR, LAYOUT_RANK_HIDDEN, path, NULL);
    }
    assert_int_equal(layout_write(&l, &p, &e), -1);
    assert_non_null(strstr(e.message, "arguments"));
    plan_fini(&p);
    layout_fini(&l);
}

UNIT_MAIN(cmocka_unit_test(test_order), cmocka_unit_test(test_place_of_a_mount_that_is_overruled),
          cmocka_unit_test(test_higher_rank_stands), cmocka_unit_test(test_hides_what_shows),
          cmocka_unit_test(test_whole), cmocka_unit_test(test_fence_is_not_a_hole),
          cmocka_unit_test(test_writable), cmocka_unit_test(test_limits))
