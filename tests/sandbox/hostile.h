/* tests/sandbox/hostile: what the modules of the hostile program share; see hostile.c. */
#ifndef CODESPACE_TESTS_HOSTILE_H
#define CODESPACE_TESTS_HOSTILE_H

#include <stdbool.h>

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

/* Counts a failure and says what is wrong when it is not ok. */
__attribute__((format(printf, 2, 3))) void check(bool ok, const char *format, ...);

/* The call must fail with this errno (or that, when `or` is not 0). */
void refused_or(long rc, int want, int or, const char *what);
void refused(long rc, int want, const char *what);
void allowed(long rc, const char *what);

/* hostile_names.c: a protected name that is to come into being. */
void make_name(char **args);
void churn_names(char **args);

/* hostile_calls.c: the questions that refused calls become. */
void ten_thousand_denials(char **args);
void killed_in_calls(char **args);
void calls_with_pointers(char **args);
void fork_bomb(char **args);

/* hostile_doors.c: what is open to every process. */
void limits_of_process_one(char **args);
void forged_signals(char **args);
void pidfd_of_process_one(char **args);
void stop_everything(char **args);
void by_descriptor(char **args);
void nameless_programs(char **args);
void proc_is_read_only(char **args);
void subvolumes(char **args);
void memory_files(char **args);
void watching(char **args);

/* hostile_spaces.c: user namespaces, where they are allowed. */
void allowed_namespaces(char **args);
void nested_namespaces(char **args);
void fences_from_inside(char **args);
void files_of_others(char **args);
void capabilities_of_the_machine(char **args);
void file_capabilities(char **args);
void no_capabilities(char **args);
void second_listener(char **args);
void process_one_from_inside(char **args);
void left_in_namespaces(char **args);
void network_from_inside(char **args);
void foreign_ids(char **args);

/* Go on as root of a new user namespace, and with new ones of other kinds that the words name. */
void enter(const char *names);

/* hostile.c */
void proc_one(char **args);
/* 1 when something was not as it should be. */
int failed(void);

#endif
