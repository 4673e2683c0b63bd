/* mcp/meta: see meta.h. The rules are those of the MCP specification, revision 2026-07-28. */
#include "mcp/meta.h"

#include "wire/json.h"

#include <string.h>

const char *const meta_versions[] = {"2026-07-28", NULL};

struct json_object *meta_get(struct json_object *params, const char *name)
{
    return json_get(json_get(params, "_meta"), name);
}

const char *meta_version(struct json_object *params)
{
    return json_str(meta_get(params, META_VERSION));
}

bool meta_version_served(const char *version)
{
    for (const char *const *v = meta_versions; *v != NULL; v++) {
        if (strcmp(*v, version) == 0)
            return true;
    }
    return false;
}

void meta_write_unsupported(struct buf *data, const char *requested)
{
    struct jsonw w;
    jsonw_init(&w, data);
    jsonw_object(&w);
    jsonw_key(&w, "supported");
    jsonw_array(&w);
    for (const char *const *v = meta_versions; *v != NULL; v++)
        jsonw_str(&w, *v);
    jsonw_array_end(&w);
    jsonw_kstr(&w, "requested", requested);
    jsonw_object_end(&w);
}

int meta_check(struct json_object *params, struct buf *data, struct err *e)
{
    const char *version = meta_version(params);
    if (version == NULL)
        return err_set(e, ERR_INVALID_PARAMS,
                       "params._meta.\"" META_VERSION "\": is required, such as \"%s\"",
                       meta_versions[0]);
    if (!meta_version_served(version)) {
        meta_write_unsupported(data, version);
        return err_set(e, ERR_VERSION_UNSUPPORTED,
                       "revision \"%.32s\" is not served statelessly; %s is, and older ones after "
                       "initialize",
                       version, meta_versions[0]);
    }
    if (!json_object_is_type(meta_get(params, META_CAPABILITIES), json_type_object))
        return err_set(e, ERR_INVALID_PARAMS,
                       "params._meta.\"" META_CAPABILITIES "\": is required (an object; {} for "
                       "none)");
    return 0;
}

void meta_write_server_info(struct jsonw *w)
{
    jsonw_object(w);
    jsonw_kstr(w, "name", "codespace");
    jsonw_kstr(w, "title", "CodeSpace");
    jsonw_kstr(w, "version", CODESPACE_VERSION);
    jsonw_object_end(w);
}

void meta_write_tail(struct buf *out, bool comma, const char *result_type, int ttl_ms)
{
    struct jsonw w;
    if (comma)
        buf_putc(out, ',');
    if (ttl_ms >= 0)
        buf_printf(out, "\"ttlMs\":%d,\"cacheScope\":\"private\",", ttl_ms);
    buf_puts(out, "\"resultType\":\"");
    buf_puts(out, result_type);
    buf_puts(out, "\",\"_meta\":{\"" META_SERVER_INFO "\":");
    jsonw_init(&w, out);
    meta_write_server_info(&w);
    buf_putc(out, '}');
}
