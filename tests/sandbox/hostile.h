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

#endif
