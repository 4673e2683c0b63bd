/* mcp/provider: see provider.h. */
#include "mcp/provider.h"

#include "base/str.h"
#include "mcp/product.h"
#include "mcp/task.h"

const struct provider provider_product = {.provides = PROVIDES_TOOLS | PROVIDES_PROMPTS |
                                                      PROVIDES_RESOURCES | PROVIDES_COMPLETION |
                                                      PROVIDES_LOGGING | PROVIDES_TASKS,
                                          .tools = tools,
                                          .prompts = product_prompts,
                                          .resources = product_resources,
                                          .completer = &product_completer};

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

/* One legacy revision has them, as a capability of its own; the modern era as an extension. */
static void write_tasks(struct jsonw *w, const char *version)
{
    static const char legacy[] =
        "{\"list\":{},\"cancel\":{},\"requests\":{\"tools\":{\"call\":{}}}}";
    static const char extension[] = "{\"" TASK_EXTENSION "\":{}}";
    if (version == NULL) {
        jsonw_key(w, "extensions");
        jsonw_raw(w, extension, sizeof(extension) - 1);
    } else if (str_eq(version, TASK_LEGACY_VERSION)) {
        jsonw_key(w, "tasks");
        jsonw_raw(w, legacy, sizeof(legacy) - 1);
    }
}

void provider_write_capabilities(const struct provider *p, const char *version, struct jsonw *w)
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
    if (p->provides & PROVIDES_TASKS)
        write_tasks(w, version);
    jsonw_object_end(w);
}
