/* bench/spawn: start a program, wait for its end, many times: the cost of a command's walls.
 *
 *   spawn [--runs N] [--warm N] [--samples FILE] [--argv0 NAME] [--resident MIB] [--fork]
 *         -- PROGRAM ARGS...
 *
 * The child is made by posix_spawn (vfork-like) with standard input and output on /dev/null and
 * standard error kept, so that a failing contender says why. An exit status other than 0 ends the
 * run: a wrapper that fails fast must not look fast. With --resident the spawner has so much memory
 * that it has written to; with --fork it forks instead, for what that costs then.
 */
#include "sample.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

struct options {
    uint64_t runs, warm;
    const char *samples;
    char *argv0;
    uint64_t resident_mib;
};

static bool by_fork;

static void parse(int argc, char **argv, struct options *o)
{
    static const struct option table[] = {
        {"runs", required_argument, NULL, 'n'},
        {"warm", required_argument, NULL, 'w'},
        {"samples", required_argument, NULL, 's'},
        {"argv0", required_argument, NULL, 'a'},
        {"resident", required_argument, NULL, 'r'},
        {"fork", no_argument, NULL, 'f'},
        {NULL, 0, NULL, 0},
    };
    int c;
    while ((c = getopt_long(argc, argv, "+", table, NULL)) >= 0) {
        if (c == 'n')
            o->runs = number_or_die(optarg);
        else if (c == 'w')
            o->warm = number_or_die(optarg);
        else if (c == 's')
            o->samples = optarg;
        else if (c == 'a')
            o->argv0 = optarg;
        else if (c == 'r')
            o->resident_mib = number_or_die(optarg);
        else if (c == 'f')
            by_fork = true;
        else
            exit(2);
    }
    if (optind == argc)
        die("no program given");
}

static int fork_it(pid_t *ret, const char *program, char **argv)
{
    *ret = fork();
    if (*ret != 0)
        return *ret < 0 ? errno : 0;
    execve(program, argv, environ);
    _exit(127);
}

static void grow(uint64_t mib)
{
    char *memory = mib == 0 ? NULL : malloc(mib << 20);
    for (uint64_t at = 0; memory != NULL && at < mib << 20; at += 4096)
        memory[at] = 1;
    if (mib != 0 && memory == NULL)
        die("malloc: %m");
}

static uint64_t run_once(const char *program, char **argv, posix_spawn_file_actions_t *actions)
{
    pid_t pid;
    int status;
    uint64_t start = now_ns();
    int r = by_fork ? fork_it(&pid, program, argv)
                    : posix_spawn(&pid, program, actions, NULL, argv, environ);
    if (r != 0)
        die("%s: %s", program, strerror(r));
    if (waitpid(pid, &status, 0) != pid)
        die("waitpid: %m");
    uint64_t took = now_ns() - start;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        die("%s ended with status %#x", program, (unsigned)status);
    return took;
}

int main(int argc, char **argv)
{
    struct options o = {.runs = 100, .warm = 3};
    struct samples s = {NULL, 0, 0};
    posix_spawn_file_actions_t actions;
    parse(argc, argv, &o);
    grow(o.resident_mib);
    char **command = argv + optind;
    const char *program = command[0];
    if (o.argv0)
        command[0] = o.argv0;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    for (uint64_t i = 0; i < o.warm; i++)
        run_once(program, command, &actions);
    for (uint64_t i = 0; i < o.runs; i++)
        samples_add(&s, run_once(program, command, &actions));
    samples_save(&s, o.samples);
    printf("{");
    samples_print(&s);
    printf("}\n");
    free(s.ns);
    posix_spawn_file_actions_destroy(&actions);
    return 0;
}
