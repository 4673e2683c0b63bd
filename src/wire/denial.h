/* wire/denial: what a layer of the sandbox refused, as that layer itself tells it.
 *
 * Theory. A denial is never guessed from words of the output (G9): it is told by the layer that
 * refused, by a rule of this table, with what was asked for and how often. The table says what each
 * rule means and how an operator would grant it, so a sender needs the rule's id only. Ids begin
 * with the layer: "filter.", "protect.", "limit."; a layer that comes later adds its rows. An id
 * that is not in the table is carried on as it is.
 *
 * A denial with a count of 0 says that its layer did not watch this run: it may have refused.
 *
 * Between programs a denial is one line of text, "RULE COUNT WHAT", or of the network, when it is
 * known which process was refused first, "RULE COUNT @PID NAME WHAT" ("@PID+" when others were,
 * too). Must not: be trusted; every
 * length is bounded, and what does not read is dropped.
 */
#ifndef CODESPACE_WIRE_DENIAL_H
#define CODESPACE_WIRE_DENIAL_H

#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Kinds that one run tells; the last counts the kinds that did not fit. */
#define DENIAL_MAX 16
#define DENIAL_RULE_MAX 32
#define DENIAL_WHAT_MAX 96
/* The name of a process is cut off here. */
#define DENIAL_PROCESS_MAX 24
/* Counting ends here. */
#define DENIAL_COUNT_MAX 1000000000u

/* The search for repositories did not see all. */
#define DENIAL_UNSEARCHED "repositories.unsearched"

struct denial {
    char rule[DENIAL_RULE_MAX]; /* "" = none */
    char what[DENIAL_WHAT_MAX]; /* system call, path or host; may be "" */
    uint64_t count;
    uint32_t pid;                     /* as it is numbered inside; 0 = not known */
    char process[DENIAL_PROCESS_MAX]; /* the name of its program, letters, digits and -_.+ */
    bool others;                      /* processes were refused */
};

struct denial_rule {
    const char *id;
    const char *meaning;
    const char *grant; /* what an operator can do; "" = it is not offered */
};

/* NULL when the table has no such id. */
const struct denial_rule *denial_rule_find(const char *id);

/* The layer that an id names: what is before its first dot. Bytes, not a string. */
size_t denial_layer_len(const char *id);

/* Count one more; a kind that is new takes a place, or the last one when all are taken. `list` has
 * DENIAL_MAX items, the unused ones at its end with an empty rule. The item. */
struct denial *denial_count(struct denial *list, const char *rule, const char *what);

/* A layer could not tell: `rule` gets a place with the count 0, in a full list that of the last
 * kind, which counts among the rest. */
void denial_unknown(struct denial *list, const char *rule);

/* It was this process, whose name is somebody else's text. */
void denial_by(struct denial *d, uint32_t pid, const char *name);

/* Append the line to `out`. */
void denial_add_line(const struct denial *d, struct strv *out);

/* 0 or -EINVAL. */
int denial_read_line(const char *line, struct denial *ret);

#endif
