/* mcp/approval_show: a held call, as a person who decides it sees it.
 *
 * Theory. What is shown was written by a client, which may want to be misread: escape sequences
 * that repaint a terminal, text that runs backwards, blanks that are letters, a line that looks
 * like the next field, an argument that begins where the window ends. So every value stands in
 * quotes on lines of its own, and nothing leaves as it came but visible characters: control,
 * format, private and blank ones, and those that are written from right to left, are written as
 * \x1b or \u{202e}, bytes that are no text as \xff. So the order that is seen is the order that
 * runs. When something is left out it says so, with the number of bytes, and where to see it all.
 *
 * Must not: leave out a member of the call that changes what it does.
 */
#ifndef CODESPACE_MCP_APPROVAL_SHOW_H
#define CODESPACE_MCP_APPROVAL_SHOW_H

#include "core/approvals.h"

/* Bytes of one value, and of all values of a call, in a question to a person. */
#define APPROVAL_SHOW_VALUE_MAX 2048u
#define APPROVAL_SHOW_MAX 12288u

/* Append n bytes in quotes, at most `max` of them (0 = all); what is left out is counted. */
void approval_show_text(struct buf *out, const void *bytes, size_t n, size_t max);

/* Append the call, a line or more a member, each ended by a newline. `whole`: nothing is left
 * out. */
void approval_show_call(struct buf *out, const struct approval *a, bool whole);

/* The same with what the ledger knows of the hold, for the operator. */
void approval_show(struct buf *out, const struct approval *a, bool whole);

/* One line: id, state, age, workspace, tool, the beginning of what it would do. */
void approval_show_line(struct buf *out, const struct approval *a, uint64_t now_ms);

/* The hold as a JSON object, for programs of the operator: `shown` is the text above, `arguments`
 * the call as it came. */
void approval_show_json(struct jsonw *w, const struct approval *a, bool with_arguments);

#endif
