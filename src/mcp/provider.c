/* mcp/provider: see provider.h. */
#include "mcp/provider.h"

const struct provider provider_product = {.provides = PROVIDES_TOOLS, .tools = tools};

static void write_part(struct jsonw *w, const char *name, bool changes, bool subscribe)
{
    jsonw_key(w, name);
    jsonw_object(w);
    if (changes)
        jsonw_kbool(w, "listChanged", true);
    if (subscribe)
        jsonw_kbool(w, "subscribe", true);
    jsonw_object_end(w);
}

void provider_write_capabilities(const struct provider *p, bool modern, struct jsonw *w)
{
    bool changes = p->provides & PROVIDES_CHANGES;
    jsonw_object(w);
    if (p->provides & PROVIDES_TOOLS)
        write_part(w, "tools", changes, false);
    if (p->provides & PROVIDES_PROMPTS)
        write_part(w, "prompts", changes, false);
    if (p->provides & PROVIDES_RESOURCES)
        write_part(w, "resources", changes, true);
    if (p->provides & PROVIDES_COMPLETION)
        write_part(w, "completions", false, false);
    if (p->provides & PROVIDES_LOGGING)
        write_part(w, "logging", false, false);
    jsonw_object_end(w);
}
