/* run/clean: what a terminal would show of some output, as plain text (E20).
 *
 * Theory. One line is held as cells, a character each. A carriage return goes back to the first
 * cell and what follows overwrites, so of a progress bar only its last state is left; backspace and
 * the cursor's left and right moves do the same within the line; erase-in-line erases. All other
 * escape sequences (colours, titles, cursor positions) and control characters are taken out. Lines
 * that scrolled away on a real terminal stay: this is a text, not a screen.
 *
 * Must not: keep more than one line of CLEAN_LINE_MAX cells (a longer one is written out in parts),
 * or change a byte of text that holds no control characters.
 */
#ifndef CODESPACE_RUN_CLEAN_H
#define CODESPACE_RUN_CLEAN_H

#include "base/buf.h"

#define CLEAN_LINE_MAX 4096u

/* Append the cleaned form of the n bytes. They are taken as a whole: an escape sequence that is cut
 * at their end is dropped. */
void clean_text(const char *bytes, size_t n, struct buf *out);

#endif
