/* sys/tighten and sys/caps: a filter that is loaded holds, in a child, for good. */
#include "../../helpers/unit.h"
#include "sys/caps.h"
#include "sys/tighten.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int in_child(int (*run)(void))
{
    int status = 0;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        _exit(run());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* getppid answers EXDEV, everything else is allowed. */
static int load_filter(void)
{
    const struct sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EXDEV),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    if (tighten_no_new_privs() != 0 || prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
        return 1;
    if (tighten_load_filter(program, sizeof(program)) != 0)
        return 2;
    return syscall(SYS_getppid) == -1 && errno == EXDEV ? 0 : 3;
}

static void test_filter(void **state)
{
    (void)state;
    assert_int_equal(in_child(load_filter), 0);
}

static void test_refuses(void **state)
{
    (void)state;
    const struct sock_filter nonsense[] = {BPF_STMT(0xff, 0)};
    assert_int_equal(tighten_load_filter("", 0), -EINVAL);
    assert_int_equal(tighten_load_filter("1234567", 7), -EINVAL);
    assert_int_equal(tighten_load_filter("12345678", 65536ul * 8), -EINVAL);
    assert_true(tighten_load_filter(nonsense, sizeof(nonsense)) < 0);
}

/* The same that /proc says. */
static void test_caps(void **state)
{
    (void)state;
    uint64_t caps = 0;
    unsigned long long permitted = 0, effective = 0;
    char line[256];
    FILE *f = fopen("/proc/self/status", "re");
    assert_non_null(f);
    while (fgets(line, sizeof(line), f) != NULL) {
        sscanf(line, "CapPrm: %llx", &permitted);
        sscanf(line, "CapEff: %llx", &effective);
    }
    fclose(f);
    assert_int_equal(caps_get(&caps), 0);
    assert_true(caps == (permitted | effective));
}

UNIT_MAIN(cmocka_unit_test(test_filter), cmocka_unit_test(test_refuses),
          cmocka_unit_test(test_caps))
