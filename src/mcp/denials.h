/* mcp/denials: what the sandbox refused a command, as members of an answer (G9, G10).
 *
 * `denials` lists what a layer told that refused: rule, layer, what, count, and how an operator
 * would grant it. `denials_unknown` names the layers that may have refused without being able to
 * tell, so that an empty list is never read as "nothing was refused". Nothing here comes from the
 * command's output.
 */
#ifndef CODESPACE_MCP_DENIALS_H
#define CODESPACE_MCP_DENIALS_H

#include "base/jsonw.h"
#include "run/runner.h"

/* Rows of an output schema for what status_write_denials() writes. */
#define DENIALS_ROWS                                                                               \
    {"denials", OUTPUT_OBJS, false,                                                                \
     "What the sandbox refused: rule, layer, what, count, meaning, grant (how an operator allows " \
     "it), and of the network the first process that was refused, when it is known (pid inside, "  \
     "program; others: more than one). Told by the layer that refused, never guessed."},           \
        {"denials_unknown", OUTPUT_STRS, false,                                                    \
         "Layers that may have refused without telling: view (read-only or absent places), "       \
         "masks (hidden files read as empty), network (no route out), filter (not observed "       \
         "here); repositories: more entries than are searched for new ones."},                     \
    {                                                                                              \
        "weaker", OUTPUT_STR, false, "Walls that an operator gave up for this workspace."          \
    }

/* `denials` and `denials_unknown`, where they apply: an ended command in the sandbox. */
void status_write_denials(struct jsonw *w, const struct run_status *s);

/* The array of `denials` alone, for the ledger; "[]" when there is none. */
void denials_write_array(struct jsonw *w, const struct run_status *s);

#endif
