/* worker: its socket, its directory, its hardening (R3, R4). */
#include "peer.h"

#include "sys/leaf.h"

#include <dirent.h>
#include <sys/socket.h>
#include <sys/un.h>

static int run(char *const *argv)
{
    int status = 0;
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    pid_t pid = peer_spawn(argv, null, null);
    close(null);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int run_on(const char *path)
{
    char *const argv[] = {(char *)peer_bin(), (char *)path, NULL};
    return run(argv);
}

static mode_t mode_of(const char *path)
{
    struct stat st;
    assert_int_equal(lstat(path, &st), 0);
    return st.st_mode & 07777;
}

static void test_usage(void **state)
{
    (void)state;
    static const char *const words[] = {NULL, "--bad", "--stdio more", "--help", "--version"};
    static const int codes[] = {64, 64, 64, 0, 0};
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        char *first = words[i] == NULL ? NULL : mem_strdup(words[i]);
        char *space = first == NULL ? NULL : strchr(first, ' ');
        if (space != NULL)
            *space = '\0';
        char *const argv[] = {(char *)peer_bin(), first, space == NULL ? NULL : space + 1, NULL};
        assert_int_equal(run(argv), codes[i]);
        free(first);
    }
}

/* The socket is ours alone, the directory's mode is as it was, and at the end both are as before.
 */
static void test_socket_is_private(void **state)
{
    (void)state;
    struct peer p;
    peer_listen(&p, NULL);
    assert_int_equal(mode_of(p.path), 0600);
    assert_int_equal(mode_of(p.dir), 0700);
    peer_connect(&p);
    peer_hello(&p);
    assert_int_equal(access(p.path, F_OK), -1); /* one connection: nobody needs to find it now */
    assert_int_equal(access(p.dir, F_OK), 0);   /* not its own */
    assert_int_equal(peer_end(&p), 0);
}

static void test_own_directory_goes(void **state)
{
    (void)state;
    struct peer p;
    peer_listen(&p, "--own-dir");
    peer_connect(&p);
    peer_hello(&p);
    assert_int_equal(access(p.path, F_OK), -1);
    autofree char *dir = mem_strdup(p.dir);
    assert_int_equal(peer_end(&p), 0);
    assert_int_equal(access(dir, F_OK), -1);
}

/* Whoever started it is gone before it connected. */
static void test_starter_is_gone(void **state)
{
    (void)state;
    struct peer p;
    int status = 0;
    peer_listen(&p, "--own-dir");
    close(p.words);
    p.words = -1;
    assert_int_equal(waitpid(p.pid, &status, 0), p.pid);
    assert_int_equal(WEXITSTATUS(status), 69);
    assert_int_equal(access(p.dir, F_OK), -1);
    free(p.path);
    free(p.dir);
}

static void test_live_socket_is_kept(void **state)
{
    (void)state;
    struct peer p;
    peer_listen(&p, NULL);
    assert_int_equal(run_on(p.path), 69);
    assert_int_equal(access(p.path, F_OK), 0);
    peer_connect(&p); /* and the look at it did the live one no harm */
    peer_hello(&p);
    assert_int_equal(peer_end(&p), 0);
}

static void test_leftover_and_strangers(void **state)
{
    (void)state;
    char dir[] = "/tmp/codespace-worker-XXXXXX";
    assert_non_null(mkdtemp(dir));
    autofree char *path = mem_printf("%s/s", dir);
    /* a leftover is replaced */
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    snprintf(a.sun_path, sizeof(a.sun_path), "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
    close(fd);
    int listener = unixsock_listen(path);
    assert_true(listener >= 0);
    assert_int_equal(unixsock_listen(path), -EADDRINUSE);
    close(listener);
    assert_int_equal(unlink(path), 0);
    /* a file and a link are not */
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    close(fd);
    assert_int_equal(unixsock_listen(path), -EEXIST);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink("/etc/passwd", path), 0);
    assert_int_equal(unixsock_listen(path), -EEXIST);
    assert_int_equal(unlink(path), 0);
    /* a directory that others can write is refused and not changed */
    assert_int_equal(chmod(dir, 0777), 0);
    assert_int_equal(run_on(path), 69);
    assert_int_equal(mode_of(dir), 0777);
    assert_int_equal(chmod(dir, 0755), 0);
    listener = unixsock_listen(path);
    assert_true(listener >= 0);
    assert_int_equal(mode_of(dir), 0755);
    close(listener);
    unlink(path);
    assert_int_equal(rmdir(dir), 0);
    assert_int_equal(unixsock_listen("/tmp/codespace-test-socket"), -EPERM);
    char longest[200];
    memset(longest, 'x', sizeof(longest));
    longest[0] = '/';
    longest[199] = '\0';
    assert_int_equal(unixsock_listen(longest), -ENAMETOOLONG);
}

/* What nobody holds goes, what somebody holds or what is young stays. */
static void test_sweep(void **state)
{
    (void)state;
    char dir[] = "/tmp/codespace-sweep-XXXXXX";
    char *held = NULL, *left = NULL;
    assert_non_null(mkdtemp(dir));
    assert_int_equal(leaf_make(dir, &held), 0);
    assert_int_equal(leaf_make(dir, &left), 0);
    autofree char *inside = mem_printf("%s/plan", left);
    assert_int_equal(mkdir(inside, 0700), 0);
    int hold = leaf_hold(held);
    assert_true(hold >= 0);
    leaf_sweep(dir, 3600);
    assert_int_equal(access(left, F_OK), 0);
    leaf_sweep(dir, 0);
    assert_int_equal(access(left, F_OK), -1);
    assert_int_equal(access(held, F_OK), 0);
    close(hold);
    leaf_sweep(dir, 0);
    assert_int_equal(rmdir(dir), 0);
    free(held);
    free(left);
}

static void test_leaf(void **state)
{
    (void)state;
    char home[] = "/tmp/codespace-home-XXXXXX";
    assert_non_null(mkdtemp(home));
    autofree char *old = mem_strdup(getenv("HOME"));
    setenv("HOME", home, 1);
    autofree char *with_slash = mem_printf("%s/", home);
    autofree char *below = mem_printf("%s/sub", home);
    const char *const refused[] = {"/",           "/tmp", "/tmp/",   "/var/tmp",
                                   "/var/../tmp", home,   with_slash};
    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        char *path = NULL;
        assert_int_equal(leaf_make(refused[i], &path), -EPERM);
        assert_null(path);
    }
    char *path = NULL;
    assert_int_equal(leaf_make("relative", &path), -EINVAL);
    assert_int_equal(leaf_make(below, &path), 0);
    assert_int_equal(mode_of(below), 0700);
    assert_int_equal(mode_of(path), 0700);
    assert_int_equal(rmdir(path), 0);
    free(path);
    assert_int_equal(chmod(below, 0755), 0);
    assert_int_equal(leaf_make(below, &path), 0);
    assert_int_equal(mode_of(below), 0755); /* a parent is never chmodded */
    assert_int_equal(rmdir(path), 0);
    free(path);
    assert_int_equal(rmdir(below), 0);
    assert_int_equal(rmdir(home), 0);
    setenv("HOME", old == NULL ? "/" : old, 1);
}

/* R3: not dumpable (its /proc belongs to root and its limits say no core), no LD_ variable, no
 * descriptor but its own. */
static void test_hardening(void **state)
{
    (void)state;
    struct peer p;
    struct runmsg m;
    int leak = open("/etc/passwd", O_RDONLY); /* inheritable on purpose */
    peer_listen(&p, NULL);
    close(leak);
    peer_connect(&p);
    peer_hello(&p);
    autofree char *limits = mem_printf("/proc/%d/limits", (int)p.pid);
    autofree char *dir = mem_printf("/proc/%d/fd", (int)p.pid);
    char text[4096] = "";
    int fd = open(limits, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0 && read(fd, text, sizeof(text) - 1) > 0);
    close(fd);
    char *core = strstr(text, "Max core file size");
    assert_non_null(core);
    assert_memory_equal(core + 26, "0   ", 4);
    DIR *d = opendir(dir);
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        char target[256] = "";
        if (readlinkat(dirfd(d), e->d_name, target, sizeof(target) - 1) > 0)
            assert_string_not_equal(target, "/etc/passwd");
    }
    closedir(d);
    peer_ask(&p, "1", "exec",
             "{\"workspace\":{\"id\":\"w\",\"root\":\"/tmp\"},\"argv\":[\"/bin/sh\",\"-c\","
             "\"env | grep -c ^LD_\"]}");
    while (peer_next(&p, &m) && m.kind != RUNMSG_EVENT)
        runmsg_fini(&m);
    assert_int_equal(((struct runmsg_status *)m.data)->exit_code, 1);
    runmsg_fini(&m);
    assert_int_equal(peer_end(&p), 0);
}

UNIT_MAIN(cmocka_unit_test(test_usage), cmocka_unit_test(test_socket_is_private),
          cmocka_unit_test(test_own_directory_goes), cmocka_unit_test(test_starter_is_gone),
          cmocka_unit_test(test_live_socket_is_kept), cmocka_unit_test(test_leftover_and_strangers),
          cmocka_unit_test(test_sweep), cmocka_unit_test(test_leaf),
          cmocka_unit_test(test_hardening))
