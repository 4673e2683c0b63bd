/* core/v4a: the patch format of Codex's apply_patch tool, as text.
 *
 *   *** Begin Patch
 *   *** Add File: path          lines that begin with '+'
 *   *** Delete File: path
 *   *** Update File: path
 *   *** Move to: path           directly behind Update File; optional
 *   @@ a line of the file       anchors, none or several; a bare @@ only begins a hunk
 *   lines ' ' (context), '-' and '+'; an empty line is an empty context line
 *   *** End of File             the old lines before it are the last of the file
 *   *** End Patch
 *
 * Source: the grammar that OpenAI publishes with the tool. Taken as its own reader takes it: blank
 * lines around the envelope and between sections, a here-document around it (<<'EOF' ... EOF), CR
 * LF throughout. Ours besides: several anchors in a row, "@@ -1,2 +1,2 @@" as a bare @@, and an
 * update that only moves.
 *
 * Must not: look at files, or decide what a path may be. Whatever is not in the grammar is refused
 * with the line, never skipped.
 */
#ifndef CODESPACE_CORE_V4A_H
#define CODESPACE_CORE_V4A_H

#include "core/hunk.h"

/* Parse n bytes into *ret, which borrows from them; the caller runs patch_doc_fini(). Errors:
 * INVALID_PATCH, LIMIT_EXCEEDED; then *ret is untouched. */
int v4a_parse(const char *text, size_t n, struct patch_doc *ret, struct err *e);

#endif
