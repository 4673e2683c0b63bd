/* sandbox/netcommand and sys/trusted: a command of the operator's that prints a credential, which
 * program may be one, and how each way of failing is told. */
#include "../../helpers/unit.h"
#include "base/mem.h"
#include "sandbox/netcommand.h"
#include "sys/trusted.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static int run(const char *script, uint64_t deadline_ms, char *out, size_t *n, struct err *e)
{
    autostrv argv = {0};
    strv_add(&argv, "/bin/sh");
    strv_add(&argv, "-c");
    strv_add(&argv, script);
    return netcommand_run(&argv, deadline_ms, out, n, e);
}

static void test_what_it_prints(void **state)
{
    (void)state;
    char out[NETCOMMAND_ROOM];
    size_t n = 0;
    struct err e = {0};
    assert_int_equal(run("pwd; echo aside >&2", netcommand_deadline(), out, &n, &e), 0);
    assert_int_equal(n, 2);
    assert_memory_equal(out, "/\n", 2);
    setenv("SECRET_OF_OURS", "x", 1);
    assert_int_equal(run("echo \"$SECRET_OF_OURS$HOME\"; cat", netcommand_deadline(), out, &n, &e),
                     0);
    assert_true(n > 1);
    assert_int_equal(out[0], '/');
}

/* It has ended: what it left behind is ended, too, though it still holds the pipe. */
static void test_what_it_leaves(void **state)
{
    (void)state;
    char out[NETCOMMAND_ROOM];
    size_t n = 0;
    struct err e = {0};
    assert_int_equal(run("sleep 1000 & echo $!", netcommand_deadline(), out, &n, &e), 0);
    pid_t left = (pid_t)strtol(out, NULL, 10);
    assert_true(left > 1);
    /* Killed, and reaped by whoever takes orphans here; or still a zombie of ours to come. */
    char path[64], line[256] = "";
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)left);
    for (int i = 0; i < 100000; i++) {
        FILE *f = fopen(path, "re");
        if (f == NULL)
            return;
        bool ended = fgets(line, sizeof(line), f) != NULL && strstr(line, ") Z ") != NULL;
        fclose(f);
        if (ended)
            return;
    }
    fail_msg("it still runs: %s", line);
}

static void test_failures(void **state)
{
    (void)state;
    static const struct {
        const char *script;
        const char *message;
    } rows[] = {
        {"echo 4-secret; exit 3", "exit code 3"},
        {"kill -TERM $$", "signal 15"},
        {"head -c 9000 /dev/zero", "INJECT_VALUE_MAX (8192)"},
        {"yes 4-secret", "INJECT_VALUE_MAX (8192)"},
    };
    char out[NETCOMMAND_ROOM];
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        size_t n = 0;
        struct err e = {0};
        assert_int_equal(run(rows[i].script, netcommand_deadline(), out, &n, &e), -1);
        assert_int_equal(e.code, ERR_SANDBOX_UNAVAILABLE);
        assert_non_null(strstr(e.message, rows[i].message));
        assert_null(strstr(e.message, "4-secret"));
    }
}

static void test_the_time_is_for_all(void **state)
{
    (void)state;
    char out[NETCOMMAND_ROOM];
    size_t n = 0;
    struct err e = {0};
    uint64_t soon = netcommand_deadline() - NETCOMMAND_MS + 50;
    assert_int_equal(run("exec sleep 1000", soon, out, &n, &e), -1);
    assert_non_null(strstr(e.message, "NETCOMMAND_MS: 5000 ms"));
    assert_int_equal(run("echo x", soon, out, &n, &e), -1);
    assert_non_null(strstr(e.message, "others took all the time"));
}

/* ---- sys/trusted ---- */

static char dir[] = "/tmp/cs-trusted-XXXXXX";

static char *make(const char *name, mode_t mode)
{
    char *path = mem_printf("%s/%s", dir, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0700);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(chmod(path, mode), 0);
    return path;
}

static void test_trusted(void **state)
{
    (void)state;
    static const struct {
        mode_t mode;
        const char *why;
    } rows[] = {{0755, NULL},
                {0700, NULL},
                {0775, "can be written by others; chmod go-w"},
                {0757, "can be written by others; chmod go-w"}};
    assert_non_null(mkdtemp(dir));
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        autofree char *path = make("x", rows[i].mode);
        autofree char *real = NULL;
        const char *why = NULL;
        assert_int_equal(trusted_program(path, &real, &why), rows[i].why == NULL ? 0 : -EPERM);
        if (rows[i].why == NULL)
            assert_string_equal(real, path);
        else
            assert_string_equal(why, rows[i].why);
    }
    const char *why = NULL;
    char *real = NULL;
    autofree char *link = mem_printf("%s/link", dir);
    autofree char *path = make("x", 0755);
    assert_int_equal(symlink(path, link), 0);
    assert_int_equal(trusted_program(link, &real, &why), 0);
    assert_string_equal(real, path); /* where it leads to is what counts */
    free(real);
    assert_int_equal(trusted_program(dir, &real, &why), -EPERM);
    assert_string_equal(why, "is not a regular file");
    assert_int_equal(trusted_program("/nowhere/x", &real, &why), -ENOENT);
    assert_int_equal(chmod(dir, 0777), 0);
    assert_int_equal(trusted_program(path, &real, &why), -EPERM);
    assert_string_equal(why, "lies in a directory that everybody can write");
    unlink(link);
    unlink(path);
    rmdir(dir);
}

UNIT_MAIN(cmocka_unit_test(test_what_it_prints), cmocka_unit_test(test_what_it_leaves),
          cmocka_unit_test(test_failures), cmocka_unit_test(test_the_time_is_for_all),
          cmocka_unit_test(test_trusted))
