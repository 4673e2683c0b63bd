/* mcp/http_param: see http_param.h. */
#include "mcp/http_param.h"

#include "base/mem.h"
#include "mcp/http_modern.h"
#include "wire/json.h"

#include <json-c/linkhash.h>
#include <string.h>

#define ANNOTATION "x-mcp-header"
#define HEADER "Mcp-Param-"

/* What the header must say for it; NULL: nothing, as for values that are not told in headers. */
static const char *text_of(struct json_object *value)
{
    switch (json_object_get_type(value)) {
    case json_type_string:
        return json_str(value);
    case json_type_int:
    case json_type_boolean:
        return json_object_to_json_string_ext(value, JSON_C_TO_STRING_PLAIN);
    default:
        return NULL;
    }
}

static int check_value(const struct http1_head *h, const char *name, struct json_object *value,
                       struct err *e)
{
    autofree char *header = mem_printf(HEADER "%.64s", name);
    const char *want = text_of(value);
    if (want != NULL)
        return http_modern_says(h, header, want, true, e);
    if (http1_find(h, header, NULL) != NULL)
        return err_set(e, ERR_HEADER_MISMATCH,
                       "%s: is sent, but the message has no such argument; both must say the same",
                       header);
    return 0;
}

/* As deep as the parser lets a schema be. */
static int check_properties(const struct http1_head *h, struct json_object *schema,
                            struct json_object *arguments, struct err *e)
{
    struct json_object *properties = json_get(schema, "properties");
    if (!json_object_is_type(properties, json_type_object))
        return 0;
    json_object_object_foreach(properties, key, property)
    {
        const char *name = json_str(json_get(property, ANNOTATION));
        struct json_object *value = json_get(arguments, key);
        if (name != NULL && check_value(h, name, value, e) < 0)
            return -1;
        if (check_properties(h, property, value, e) < 0)
            return -1;
    }
    return 0;
}

int http_param_check(const struct http1_head *h, const struct tool *tool,
                     struct json_object *arguments, struct err *e)
{
    autojson *schema = NULL;
    if (tool == NULL || tool->schema == NULL || strstr(tool->schema, ANNOTATION) == NULL)
        return 0;
    if (json_parse(tool->schema, strlen(tool->schema), &schema, e) < 0)
        return -1;
    return check_properties(h, schema, arguments, e);
}
