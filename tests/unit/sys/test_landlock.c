/* sys/landlock: which rights each version of the interface is asked for, against the kernel's table
 * (Documentation/userspace-api/landlock.rst), and what each set keeps. A newer kernel takes the
 * sets of all older ones, so all of them are applied here and tried from inside.
 */
#include "../../helpers/unit.h"
#include "sys/landlock.h"
#include "sys/tighten.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define VERSIONS 6

/* access_fs: what changes something, by the version that knows it. Reading (bits 0, 2, 3) is not
 * kept, nor ioctl on devices (bit 15, version 5): the devices that are left are harmless. */
static const uint64_t files[VERSIONS + 1] = {0, 0x1ff2, 0x3ff2, 0x7ff2, 0x7ff2, 0x7ff2, 0x7ff2};
static const uint64_t net[VERSIONS + 1] = {0, 0, 0, 0, 3, 3, 3};
static const uint64_t scopes[VERSIONS + 1] = {0, 0, 0, 0, 0, 0, 3};

static const char *const nowhere[] = {NULL};

static void test_rights(void **state)
{
    (void)state;
    const struct landlock_ask all = {.writable = nowhere, .no_tcp = true}, none = {0};
    for (int v = 0; v <= VERSIONS + 3; v++) {
        int known = v < VERSIONS ? v : VERSIONS;
        struct landlock_rights r = landlock_rights_of(v, &all);
        assert_true(r.files == files[known] && r.net == net[known] && r.scopes == scopes[known]);
        r = landlock_rights_of(v, &none);
        assert_true(r.files == 0 && r.net == 0 && r.scopes == scopes[known]);
    }
}

static void test_nothing_to_keep_is_refused(void **state)
{
    (void)state;
    const struct landlock_ask tcp = {.no_tcp = true}, disk = {.writable = nowhere};
    assert_int_equal(landlock_apply_version(0, &disk), -EOPNOTSUPP);
    for (int v = 0; v < LANDLOCK_TCP; v++)
        assert_int_equal(landlock_apply_version(v, &tcp), -EOPNOTSUPP);
}

/* ---- what a set lets through ---- */

enum {
    CREATE_OUTSIDE = 1,
    TRUNCATE_OUTSIDE = 2,
    MOVE_INSIDE = 4, /* from one directory to another one */
    BIND = 8,
    ABSTRACT = 16, /* a socket of somebody outside */
    SIGNAL = 32,   /* to somebody outside */
    CREATE_INSIDE = 64,
};

static const int lets_through[VERSIONS + 1] = {
    [1] = TRUNCATE_OUTSIDE | BIND | ABSTRACT | SIGNAL | CREATE_INSIDE,
    [2] = TRUNCATE_OUTSIDE | MOVE_INSIDE | BIND | ABSTRACT | SIGNAL | CREATE_INSIDE,
    [3] = MOVE_INSIDE | BIND | ABSTRACT | SIGNAL | CREATE_INSIDE,
    [4] = MOVE_INSIDE | ABSTRACT | SIGNAL | CREATE_INSIDE,
    [5] = MOVE_INSIDE | ABSTRACT | SIGNAL | CREATE_INSIDE,
    [6] = MOVE_INSIDE | CREATE_INSIDE,
};

static char base[64], inside[80];
static struct sockaddr_un name;

static socklen_t name_len(void)
{
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name.sun_path + 1));
}

static bool creates(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    close(fd);
    return fd >= 0;
}

static bool binds(void)
{
    const struct sockaddr_in any = {.sin_family = AF_INET,
                                    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    return bind(socket(AF_INET, SOCK_STREAM, 0), (const struct sockaddr *)&any, sizeof(any)) == 0;
}

static bool connects(void)
{
    return connect(socket(AF_UNIX, SOCK_STREAM, 0), (const struct sockaddr *)&name, name_len()) ==
           0;
}

static int attempt_all(int version)
{
    const char *const writable[] = {inside, NULL};
    const struct landlock_ask ask = {.writable = writable, .no_tcp = true};
    if (tighten_no_new_privs() < 0 || landlock_apply_version(version, &ask) < 0)
        return 255;
    int did = 0;
    did |= creates("outside") ? CREATE_OUTSIDE : 0;
    did |= truncate("file", 0) == 0 ? TRUNCATE_OUTSIDE : 0;
    did |= creates("in/new") ? CREATE_INSIDE : 0;
    did |= rename("in/a/file", "in/b/file") == 0 ? MOVE_INSIDE : 0;
    did |= binds() ? BIND : 0;
    did |= connects() ? ABSTRACT : 0;
    did |= kill(getppid(), 0) == 0 ? SIGNAL : 0;
    return did;
}

static int make_place(void **state)
{
    (void)state;
    snprintf(base, sizeof(base), "/tmp/cs-test-landlock-XXXXXX");
    if (mkdtemp(base) == NULL || chdir(base) < 0)
        return -1;
    snprintf(inside, sizeof(inside), "%s/in", base);
    mkdir("in", 0700);
    mkdir("in/a", 0700);
    mkdir("in/b", 0700);
    return creates("file") && creates("in/a/file") ? 0 : -1;
}

static int remove_place(void **state)
{
    static const char *const files_left[] = {"file",      "outside", "in/a/file",
                                             "in/b/file", "in/new",  NULL};
    (void)state;
    for (int i = 0; files_left[i] != NULL; i++)
        unlink(files_left[i]);
    rmdir("in/a");
    rmdir("in/b");
    rmdir("in");
    return chdir("/") < 0 ? -1 : rmdir(base);
}

static void try_version(int version)
{
    int status = 0;
    int server = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    name.sun_family = AF_UNIX;
    snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "%s", base);
    assert_int_equal(bind(server, (struct sockaddr *)&name, name_len()), 0);
    assert_int_equal(listen(server, 8), 0);
    pid_t pid = fork();
    if (pid == 0)
        _exit(attempt_all(version));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), lets_through[version]);
    close(server);
}

/* A kernel that is older cannot show what a newer set keeps. */
#define TRIES(n)                                                                                   \
    static void test_version_##n(void **state)                                                     \
    {                                                                                              \
        (void)state;                                                                               \
        if (landlock_version() < (n))                                                              \
            skip();                                                                                \
        try_version(n);                                                                            \
    }
TRIES(1)
TRIES(2)
TRIES(3)
TRIES(4)
TRIES(5)
TRIES(6)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rights),
        cmocka_unit_test(test_nothing_to_keep_is_refused),
        cmocka_unit_test_setup_teardown(test_version_1, make_place, remove_place),
        cmocka_unit_test_setup_teardown(test_version_2, make_place, remove_place),
        cmocka_unit_test_setup_teardown(test_version_3, make_place, remove_place),
        cmocka_unit_test_setup_teardown(test_version_4, make_place, remove_place),
        cmocka_unit_test_setup_teardown(test_version_5, make_place, remove_place),
        cmocka_unit_test_setup_teardown(test_version_6, make_place, remove_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
