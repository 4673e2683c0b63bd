/* tests/sandbox/hostile_calls: refused calls are questions to process 1, which answers each with
 * its error. Here they are asked by many, by the dying, and with memory that changes meanwhile:
 * none may ever be permitted, and process 1 must go on.
 */
#include "hostile.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define DENIALS 10000
#define VICTIMS 200
#define ROUNDS 2000
#define FAILURES 500

/* args: none. Numbers with arguments in all ways, in four processes at once. */
void ten_thousand_denials(char **args)
{
    static const long numbers[] = {SYS_ptrace, SYS_keyctl, SYS_bpf, SYS_mount, SYS_setns};
    (void)args;
    for (int p = 0; p < 4; p++) {
        if (fork() != 0)
            continue;
        for (long i = 0; i < DENIALS / 4; i++) {
            if (syscall(numbers[i % 5], -1L, i, ~i, 0, 0) != -1 || errno != EPERM)
                _exit(1);
        }
        _exit(0);
    }
    for (int p = 0, status; p < 4; p++) {
        wait(&status);
        check(status == 0, "a call was not refused with EPERM");
    }
}

/* The caller is killed while it waits for its answer, or just before or after. */
void killed_in_calls(char **args)
{
    (void)args;
    for (int i = 0; i < VICTIMS; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            for (;;)
                syscall(SYS_keyctl, 0, 0);
        }
        for (volatile int spin = 0; spin < i * 200; spin++)
            continue;
        kill(pid, SIGKILL);
        check(waitpid(pid, NULL, 0) == pid, "a victim is lost");
    }
    refused(syscall(SYS_keyctl, 0, 0), EPERM, "keyctl after all that");
}

/* Of all processes of the bomb. */
struct bomb {
    atomic_long made, failed;
};

/* Every child goes on here, too. */
static void explode(struct bomb *b)
{
    for (;;) {
        pid_t pid = fork();
        if (pid != 0)
            atomic_fetch_add(pid < 0 ? &b->failed : &b->made, 1);
        if (pid < 0)
            sched_yield();
    }
}

/* args: how many processes there may be. They double until that is reached, and then try on. */
void fork_bomb(char **args)
{
    struct bomb *b =
        mmap(NULL, sizeof(*b), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (fork() == 0)
        explode(b);
    while (atomic_load(&b->failed) < FAILURES)
        sched_yield();
    check(fork() == -1 && errno == EAGAIN, "there is room for more");
    check(atomic_load(&b->made) <= atol(args[0]), "%ld processes", atomic_load(&b->made));
}

static char target[2 * PATH_MAX + 2];
static atomic_bool over;

/* What the call's pointer leads to is now this, now that. */
static void *rewrite(void *arg)
{
    (void)arg;
    while (!atomic_load(&over)) {
        memcpy(target, "/tmp/a", 7);
        memset(target, 'x', sizeof(target) - 1);
        memcpy(target, "/proc", 6);
    }
    return NULL;
}

/* args: none. No answer depends on memory: not on what changes, is too long or is not there. */
void calls_with_pointers(char **args)
{
    pthread_t thread;
    struct stat before, after;
    char *const nowhere = (char *)8;
    (void)args;
    mkdir("/tmp/a", 0700);
    stat("/tmp/a", &before);
    check(pthread_create(&thread, NULL, rewrite, NULL) == 0, "a thread");
    for (int i = 0; i < ROUNDS; i++) {
        refused(mount("none", target, "tmpfs", 0, NULL), EPERM, "mount");
        refused(umount2(target, MNT_DETACH), EPERM, "umount2");
        refused(syscall(SYS_pivot_root, target, target), EPERM, "pivot_root");
    }
    atomic_store(&over, true);
    pthread_join(thread, NULL);
    memset(target, 'x', sizeof(target) - 1);
    refused(mount(target, target, target, 0, NULL), EPERM, "a path longer than PATH_MAX");
    refused(mount(nowhere, nowhere, nowhere, ~0UL, nowhere), EPERM, "a pointer to nothing");
    refused(syscall(SYS_bpf, 0, nowhere, ~0u), EPERM, "a pointer to nothing");
    stat("/tmp/a", &after);
    check(before.st_dev == after.st_dev && before.st_ino == after.st_ino, "something was mounted");
}
