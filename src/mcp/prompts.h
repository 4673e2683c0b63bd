/* mcp/prompts: prompts/list, prompts/get and what completion knows about them, from a table.
 *
 * Must not: run a prompt whose required arguments are missing.
 */
#ifndef CODESPACE_MCP_PROMPTS_H
#define CODESPACE_MCP_PROMPTS_H

#include "mcp/request.h"

struct prompt_argument {
    const char *name;
    const char *about;
    bool required;
};

struct prompt {
    const char *name;
    const char *title;
    const char *description;
    const struct prompt_argument *arguments;
    size_t n_arguments;
    /* Writes the result's members (messages) and finishes the request. */
    void (*get)(struct request *rq);
};

void prompts_list_run(const struct inbound *in);
void prompts_get_run(const struct inbound *in);

/* An argument of the prompt that is asked for; "" when it was not given. */
const char *prompts_argument(const struct request *rq, const char *name);

/* completion/complete: that what is asked about exists is checked; the provider proposes. */
void prompts_complete_run(const struct inbound *in);

#endif
