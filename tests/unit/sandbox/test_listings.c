/* sandbox/listings: a walk that remembers tells what a walk that reads everything tells. */
#include "../../helpers/unit.h"
#include "base/mem.h"
#include "base/str.h"
#include "sandbox/listings.h"
#include "sandbox/walk.h"
#include "sys/rmtree.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WALK_MAX 5000

static char base[64];

static int make_base(void **state)
{
    (void)state;
    snprintf(base, sizeof(base), "/tmp/cs-test-list-XXXXXX");
    return mkdtemp(base) == NULL || chdir(base) < 0 ? -1 : 0;
}

static int remove_base(void **state)
{
    (void)state;
    return chdir("/") < 0 ? -1 : rmtree(AT_FDCWD, base, 1000000);
}

static void put(const char *path)
{
    int fd = open(path, O_CREAT | O_WRONLY, 0644);
    assert_true(fd >= 0);
    close(fd);
}

/* Until what was changed before is old enough to be listed, by the clock that decides it. */
static void settle(void)
{
    struct timespec now, then;
    clock_gettime(CLOCK_REALTIME, &then);
    do {
        clock_gettime(CLOCK_REALTIME_COARSE, &now);
        poll(NULL, 0, 1);
    } while (!listing_settled(&now, &then));
}

/* What of a walk is asked for: see walk_known(). */
static bool note(void *arg, const char *path, bool is_directory)
{
    const char *slash = strrchr(path, '/');
    bool named = str_eq(slash == NULL ? path : slash + 1, LISTINGS_NAME);
    if (is_directory || named)
        strv_addf(arg, "%s%s", path, is_directory ? "/" : "");
    return is_directory && !named;
}

/* Both walks, of a tree at rest. */
static void compare(struct listings *l, size_t max)
{
    autostrv plain = {0}, known = {0};
    int rc = walk_tree(base, max, note, &plain);
    assert_int_equal(walk_known(base, max, l, note, &known), rc);
    assert_int_equal(known.len, plain.len);
    for (size_t i = 0; i < plain.len; i++)
        assert_string_equal(known.items[i], plain.items[i]);
}

static const struct listing *find(const struct listings *l, const char *path)
{
    struct stat st;
    struct listings_use use = {0};
    assert_int_equal(stat(path, &st), 0);
    return listings_find(l, &st, &use);
}

/* ---- one thing at a time ---- */

static void make_some(void)
{
    assert_int_equal(mkdir("a", 0755) | mkdir("a/b", 0755) | mkdir("a/b/c", 0755), 0);
    assert_int_equal(mkdir("a/b/.git", 0755) | mkdir("d", 0755) | mkdir("e", 0755), 0);
    put("d/.git");
    put("d/file");
    put("a/file");
}

static void test_what_is_listed(void **state)
{
    (void)state;
    struct listing_entry entry;
    size_t at = 0;
    struct listings *l = listings_new();
    make_some();
    compare(l, WALK_MAX);
    settle();
    compare(l, WALK_MAX);
    const struct listing *it = find(l, "d");
    assert_non_null(it);
    assert_int_equal(it->count, 2);
    assert_true(listing_next(it, &at, &entry));
    assert_string_equal(entry.name, ".git");
    assert_false(entry.directory);
    assert_false(listing_next(it, &at, &entry));
    assert_int_equal(find(l, "e")->count, 0);
    assert_null(find(l, "a/b/.git")); /* never entered */
    for (size_t max = 0; max < 12; max++)
        compare(l, max);
    listings_free(l);
}

/* Only the listing is asked: the walk has no other way to find what the tree does not hold. */
static void test_it_is_not_read_again(void **state)
{
    (void)state;
    autostrv known = {0};
    struct listings *l = listings_new();
    make_some();
    settle();
    compare(l, WALK_MAX);
    struct listing *it = (struct listing *)find(l, "d");
    memcpy(it->entries + sizeof(uint32_t) + 1, "GIT", 3);
    assert_int_equal(walk_known(base, WALK_MAX, l, note, &known), 0);
    assert_false(strv_has(&known, "d/.git"));
    put("d/new");
    compare(l, WALK_MAX);
    listings_free(l);
}

static void test_too_young(void **state)
{
    (void)state;
    struct listings *l = listings_new();
    assert_int_equal(mkdir("a", 0755), 0);
    for (int i = 0; i < 200; i++) {
        autofree char *name = mem_printf("a/%d", i);
        compare(l, WALK_MAX);
        assert_int_equal(i % 3 == 2 ? rename("a/0", name) : mkdir(i ? name : "a/0", 0755), 0);
        if (i % 3 == 2)
            assert_int_equal(mkdir("a/0", 0755), 0);
        compare(l, WALK_MAX);
    }
    listings_free(l);
}

/* The time that whoever owns a directory may set is not the one that counts. */
static void test_times_that_are_set(void **state)
{
    (void)state;
    struct listings *l = listings_new();
    const struct timespec old[2] = {{1000, 0}, {1000, 0}};
    make_some();
    assert_int_equal(utimensat(AT_FDCWD, "e", old, 0), 0);
    settle();
    compare(l, WALK_MAX);
    assert_non_null(find(l, "e"));
    put("e/.git"); /* neither size nor links of a directory tell it */
    assert_int_equal(utimensat(AT_FDCWD, "e", old, 0), 0);
    assert_null(find(l, "e"));
    compare(l, WALK_MAX);
    listings_free(l);
}

static void test_settled(void **state)
{
    (void)state;
    const struct {
        struct timespec now, then;
        bool settled;
    } rows[] = {
        {{100, 500000000}, {100, 480000000}, false},
        {{100, 500000000}, {100, 479999999}, true},
        {{100, 5000000}, {99, 990000000}, false},
        {{100, 500000000}, {100, 0}, false},
        {{102, 0}, {100, 0}, false},
        {{102, 1}, {100, 0}, true},
        {{100, 0}, {100, 1}, false},
        {{100, 0}, {101, 1}, false},
        {{100, 0}, {5000000000, 1}, false},
        {{5000000000, 0}, {-5, 1}, true},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_int_equal(listing_settled(&rows[i].now, &rows[i].then), rows[i].settled);
}

/* Too much to tell, and a file system that promises nothing. */
static void test_not_worth_it(void **state)
{
    (void)state;
    struct listing_draft d = {0};
    autofd int fd = open(base, O_RDONLY | O_DIRECTORY);
    settle();
    listing_begin(&d, fd);
    assert_true(d.keep);
    for (unsigned i = 0; d.keep; i++) {
        char name[200];
        snprintf(name, sizeof(name), "%0190u", i);
        listing_add(&d, name, true);
        assert_true(d.entries.len <= LISTINGS_ONE_MAX + 200);
    }
    autofd int other = open("/proc", O_RDONLY | O_DIRECTORY);
    listing_begin(&d, other);
    assert_false(d.keep);
    listing_fini(&d);
}

static void test_links(void **state)
{
    (void)state;
    struct listings *l = listings_new();
    make_some();
    settle();
    compare(l, WALK_MAX);
    assert_int_equal(rename("a/b", "x") | symlink("../x", "a/b"), 0);
    compare(l, WALK_MAX);
    assert_int_equal(rename("d", "y") | symlink("y", "d"), 0);
    compare(l, WALK_MAX);
    assert_int_equal(unlink("d") | rename("x", "d"), 0);
    compare(l, WALK_MAX);
    listings_free(l);
}

/* A directory whose path cannot be opened any more is passed over, known or not. */
static void test_long_paths(void **state)
{
    (void)state;
    struct listings *l = listings_new();
    char name[201];
    memset(name, 'n', 200);
    name[200] = '\0';
    assert_int_equal(mkdir("top", 0755) | chdir("top"), 0);
    for (int i = 0; i < 22; i++)
        assert_int_equal(mkdir(name, 0755) | chdir(name), 0);
    assert_int_equal(chdir(base), 0);
    settle();
    compare(l, WALK_MAX);
    compare(l, WALK_MAX);
    /* What was shorter by one name is longer now, and still the same. */
    autofree char *longer = mem_printf("%s/top", name);
    assert_int_equal(mkdir(name, 0755) | rename("top", longer), 0);
    compare(l, WALK_MAX);
    listings_free(l);
}

/* ---- room ---- */

static struct listing_draft draft_of(uint64_t inode, size_t names)
{
    struct listing_draft d = {.keep = true, .st = {.st_ino = inode, .st_nlink = 2}};
    for (size_t i = 0; i < names; i++)
        listing_add(&d, "a directory with a name of some length", true);
    return d;
}

static void fill(struct listings *l, uint64_t first, size_t n, size_t names,
                 struct listings_use *use)
{
    for (size_t i = 0; i < n; i++) {
        struct listing_draft d = draft_of(first + i, names);
        listings_put(l, &d, use);
        listing_fini(&d);
    }
}

static void test_full(void **state)
{
    (void)state;
    struct listings *l = listings_new();
    struct listings *first = l;
    struct listings_use use = {0};
    struct stat st = {.st_ino = 1, .st_nlink = 2};
    fill(l, 1, 200, 1000, &use);
    assert_true(use.known < use.all && use.known <= LISTINGS_BYTES);
    listings_judge(l, &use); /* all of it is of use: a new one would not hold more */
    listings_renew(&l);
    assert_ptr_equal(l, first);
    assert_non_null(listings_find(l, &st, &use));
    use = (struct listings_use){0};
    assert_non_null(listings_find(l, &st, &use));
    fill(l, 1000, 3, 1000, &use);
    listings_judge(l, &use); /* one of four that were wanted */
    listings_renew(&l);
    assert_null(listings_find(l, &st, &use));
    use = (struct listings_use){0};
    fill(l, 1000, 3, 1000, &use);
    assert_int_equal(use.known, use.all);
    listings_free(l);
}

/* What others have put meanwhile takes no room again. */
static void test_put_again(void **state)
{
    (void)state;
    struct listings *l = listings_new();
    struct listings_use use = {0};
    for (int i = 0; i < 100; i++)
        fill(l, 1, 3, 1000, &use);
    assert_true(use.all > LISTINGS_BYTES);
    fill(l, 4, 50, 1000, &use);
    assert_int_equal(use.known, use.all);
    listings_free(l);
}

/* A newer one takes the place of an older one. */
static void test_replaced(void **state)
{
    (void)state;
    struct listings *l = listings_new();
    struct listings_use use = {0};
    struct listing_draft d = draft_of(7, 1);
    listings_put(l, &d, &use);
    struct stat old = d.st;
    d.st.st_ctim.tv_nsec = 1;
    listings_put(l, &d, &use);
    assert_null(listings_find(l, &old, &use));
    assert_non_null(listings_find(l, &d.st, &use));
    d.st.st_dev = 1;
    assert_null(listings_find(l, &d.st, &use));
    listing_fini(&d);
    listings_free(l);
}

/* ---- anything, at random ---- */

static unsigned seed;

static unsigned any(unsigned n)
{
    seed = seed * 1103515245u + 12345u;
    return (seed >> 16) % n;
}

/* A path of one to three parts out of few names, so that most of what is tried means something. */
static const char *any_path(char *ret, size_t cap)
{
    static const char *const names[] = {"a", "b", "c", ".git", "d"};
    size_t n = 0;
    unsigned parts = 1 + any(4);
    for (unsigned i = 0; i < parts; i++)
        n += (size_t)snprintf(ret + n, cap - n, "%s%s", i ? "/" : "", names[any(5)]);
    return ret;
}

/* Most of it fails, which is as good. */
static void change_something(void)
{
    char one[64], two[64];
    any_path(one, sizeof(one));
    any_path(two, sizeof(two));
    int fd = -1;
    switch (any(9)) {
    case 0:
    case 1:
    case 2:
        (void)!mkdir(one, 0755);
        break;
    case 3:
        fd = open(one, O_CREAT | O_WRONLY | O_NOFOLLOW, 0644);
        break;
    case 4:
        (void)!rename(one, two);
        break;
    case 5:
        (void)!renameat2(AT_FDCWD, one, AT_FDCWD, two, RENAME_EXCHANGE);
        break;
    case 6:
        (void)!symlink(two, one);
        break;
    case 7:
        (void)!unlink(one);
        break;
    default:
        if (any(4) == 0)
            rmtree(AT_FDCWD, one, 1000);
    }
    if (fd >= 0)
        close(fd);
}

static void test_random_changes(void **state)
{
    (void)state;
    struct listings *l = listings_new();
    seed = 20240917;
    for (int round = 0; round < 1200; round++) {
        for (unsigned i = any(4); i > 0; i--)
            change_something();
        if (round % 16 == 0)
            settle();
        compare(l, any(10) == 0 ? any(30) : WALK_MAX);
    }
    listings_free(l);
}

/* ---- others at the same time ---- */

static pid_t start(void (*work)(struct listings *l), struct listings *l, unsigned with)
{
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* a failed test leaves nobody behind */
        for (seed = with;;)
            work(l);
    }
    assert_true(pid > 0);
    return pid;
}

static void end(pid_t pid)
{
    int status;
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void walk_once(struct listings *l)
{
    autostrv known = {0};
    walk_known(base, WALK_MAX, l, note, &known);
}

/* Some listings are new each time, so that room is taken and slots are replaced. */
static void walk_and_change(struct listings *l)
{
    walk_once(l);
    change_something();
}

/* Of listings so large that writing one takes a while; all of them fit. */
#define WHOLE_ROUNDS 80
#define WHOLE_NAMES 1000

static void put_all(struct listings *l)
{
    struct listings_use use = {0};
    fill(l, 1, WHOLE_ROUNDS, WHOLE_NAMES, &use);
    pause();
}

/* What is found at all is found whole, in the moment in which it appears. */
static void test_seen_whole(void **state)
{
    (void)state;
    struct listings *l = listings_new();
    struct stat st = {.st_nlink = 2};
    struct listings_use use = {0};
    pid_t pid = start(put_all, l, 0);
    for (st.st_ino = 1; st.st_ino <= WHOLE_ROUNDS; st.st_ino++) {
        const struct listing *it = NULL;
        struct listing_entry entry;
        size_t at = 0, n = 0;
        while (it == NULL)
            it = listings_find(l, &st, &use);
        while (listing_next(it, &at, &entry))
            n += entry.place == n && entry.directory;
        assert_int_equal(n, WHOLE_NAMES);
        assert_int_equal(it->count, WHOLE_NAMES);
    }
    end(pid);
    listings_free(l);
}

/* Walks and changes by several, each ended anywhere; at rest both walks are the same. */
static void test_killed_anywhere(void **state)
{
    (void)state;
    struct listings *l = listings_new();
    for (unsigned round = 0; round < 40; round++) {
        pid_t pids[] = {start(walk_once, l, round), start(walk_and_change, l, round + 1000),
                        start(walk_and_change, l, round + 2000)};
        seed = round;
        for (int i = 0; i < 20; i++)
            walk_and_change(l);
        if (round % 2 == 0)
            settle();
        for (size_t i = 0; i < ARRAY_LEN(pids); i++)
            end(pids[i]);
        compare(l, WALK_MAX);
        settle();
        compare(l, WALK_MAX);
        compare(l, WALK_MAX);
    }
    listings_free(l);
}

/* Somebody swaps a directory for a link to a place outside, again and again: nothing from there is
 * ever told, also when what is there was listed before. */
static void swap_for_link(struct listings *l)
{
    (void)l;
    (void)!renameat2(AT_FDCWD, "a", AT_FDCWD, "link", RENAME_EXCHANGE);
}

static void test_swaps(void **state)
{
    (void)state;
    struct listings *l = listings_new();
    autofree char *inside = mem_printf("%s/in", base);
    assert_int_equal(mkdir("in", 0755) | mkdir("in/a", 0755) | mkdir("in/a/x", 0755), 0);
    assert_int_equal(mkdir("out", 0755) | mkdir("out/x", 0755) | mkdir("out/x/.git", 0755), 0);
    assert_int_equal(symlink("../out", "in/link"), 0);
    settle();
    walk_once(l); /* of what is outside as well */
    assert_int_equal(chdir("in"), 0);
    pid_t pid = start(swap_for_link, l, 0);
    for (int i = 0; i < 20000; i++) {
        autostrv known = {0};
        walk_known(inside, WALK_MAX, l, note, &known);
        for (size_t k = 0; k < known.len; k++)
            assert_null(strstr(known.items[k], ".git"));
    }
    end(pid);
    listings_free(l);
}

#define LISTINGS_TEST(f) cmocka_unit_test_setup_teardown(f, make_base, remove_base)

UNIT_MAIN(LISTINGS_TEST(test_what_is_listed), LISTINGS_TEST(test_it_is_not_read_again),
          LISTINGS_TEST(test_too_young), LISTINGS_TEST(test_times_that_are_set),
          cmocka_unit_test(test_settled), LISTINGS_TEST(test_not_worth_it),
          LISTINGS_TEST(test_links), LISTINGS_TEST(test_long_paths), LISTINGS_TEST(test_full),
          LISTINGS_TEST(test_put_again), LISTINGS_TEST(test_replaced),
          LISTINGS_TEST(test_random_changes), LISTINGS_TEST(test_seen_whole),
          LISTINGS_TEST(test_killed_anywhere), LISTINGS_TEST(test_swaps))
