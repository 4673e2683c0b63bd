/* bench/spawn: start a program, wait for its end, many times: the cost of a command's walls.
 *
 *   spawn [--runs N] [--warm N] [--samples FILE] [--argv0 NAME] -- PROGRAM ARGS...
 *
 * The child is made by posix_spawn (vfork-like) with standard input and output on /dev/null and
 * standard error kept, so that a failing contender says why. An exit status other than 0 ends the
 * run: a wrapper that fails fast must not look fast.
 */
#include "sample.h"

#include <fcntl.h>
#include <getopt.h>
#include <spawn.h>
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
};

static void parse(int argc, char **argv, struct options *o)
{
    static const struct option table[] = {
        {"runs", required_argument, NULL, 'n'},
        {"warm", required_argument, NULL, 'w'},
        {"samples", required_argument, NULL, 's'},
        {"argv0", required_argument, NULL, 'a'},
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
        else
            exit(2);
    }
    if (optind == argc)
        die("no program given");
}

static uint64_t run_once(const char *program, char **argv, posix_spawn_file_actions_t *actions)
{
    pid_t pid;
    int status;
    uint64_t start = now_ns();
    int r = posix_spawn(&pid, program, actions, NULL, argv, environ);
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
