/* bench/filter-load: what loading the command's system call filter costs a process.
 *
 *   filter-load [--runs N] [--samples FILE] [--floor]
 *
 * A filter cannot be taken off again, so each run is a child that loads one and tells how long the
 * call took. --floor: a filter of one instruction instead, the least that the call costs.
 */
#include "sample.h"

#include "sandbox/filter_program.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct sock_filter allow[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};

static void load(const struct sock_fprog *program, int out)
{
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        _exit(1);
    uint64_t start = now_ns();
    long rc = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, program);
    uint64_t took = now_ns() - start;
    _exit(rc == 0 && write(out, &took, sizeof(took)) == sizeof(took) ? 0 : 1);
}

static uint64_t load_once(const struct sock_fprog *program)
{
    int fds[2], status;
    uint64_t took = 0;
    if (pipe(fds) < 0)
        die("pipe: %m");
    pid_t pid = fork();
    if (pid == 0)
        load(program, fds[1]);
    close(fds[1]);
    ssize_t n = read(fds[0], &took, sizeof(took));
    close(fds[0]);
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0 || n != sizeof(took))
        die("a filter could not be loaded");
    return took;
}

int main(int argc, char **argv)
{
    uint64_t runs = 100;
    const char *file = NULL;
    struct samples s = {NULL, 0, 0};
    static struct sock_filter ours[sizeof(filter_program) / sizeof(struct sock_filter)];
    memcpy(ours, filter_program, sizeof(ours));
    struct sock_fprog program = {sizeof(ours) / sizeof(*ours), ours};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--floor") == 0)
            program = (struct sock_fprog){1, (struct sock_filter *)(void *)allow};
        else if (strcmp(argv[i], "--runs") == 0 && i + 1 < argc)
            runs = number_or_die(argv[++i]);
        else if (strcmp(argv[i], "--samples") == 0 && i + 1 < argc)
            file = argv[++i];
        else if (strcmp(argv[i], "--") != 0)
            die("unknown word %s", argv[i]);
    }
    for (uint64_t i = 0; i < runs; i++)
        samples_add(&s, load_once(&program));
    samples_save(&s, file);
    printf("{\"instructions\":%u,", (unsigned)program.len);
    samples_print(&s);
    printf("}\n");
    free(s.ns);
    return 0;
}
