/* wire/codex: see codex.h. */
#include "wire/codex.h"

#include "base/mem.h"
#include "base/str.h"
#include "wire/json.h"

#include <limits.h>

static const char *const profile_names[] = {"managed", "disabled", "external", NULL};
static const char *const policy_names[] = {"restricted", "unrestricted", "external-sandbox", NULL};
static const char *const network_names[] = {"restricted", "enabled", NULL};
static const char *const path_names[] = {"path", "glob_pattern", "special", NULL};
/* "none" is the older spelling of "deny". */
static const char *const access_names[] = {"read", "write", "deny", "none", NULL};

static const struct {
    const char *name;
    enum codex_path kind;
} special[] = {
    {"root", CODEX_ROOT},
    {"minimal", CODEX_MINIMAL},
    {"project_roots", CODEX_PROJECT},
    {"current_working_directory", CODEX_PROJECT},
    {"tmpdir", CODEX_TMPDIR},
    {"slash_tmp", CODEX_SLASH_TMP},
};

struct profile {
    int type;
    struct json_object *file_system;
    int network;
};

static const struct json_field profile_fields[] = {
    {"type", JSON_ENUM, JSON_REQUIRED, offsetof(struct profile, type), .names = profile_names},
    {"file_system", JSON_OBJECT, 0, offsetof(struct profile, file_system)},
    {"network", JSON_ENUM, 0, offsetof(struct profile, network), .names = network_names},
};

struct policy {
    int type;
    struct json_object *entries;
    uint64_t depth;
};

static const struct json_field policy_fields[] = {
    {"type", JSON_ENUM, JSON_REQUIRED, offsetof(struct policy, type), .names = policy_names},
    {"entries", JSON_ARRAY, 0, offsetof(struct policy, entries), 0, CODEX_ENTRIES_MAX},
    {"glob_scan_max_depth", JSON_U64, 0, offsetof(struct policy, depth), 0},
};

struct entry {
    struct json_object *path;
    int access;
    const char *missing;
};

static const struct json_field entry_fields[] = {
    {"path", JSON_OBJECT, JSON_REQUIRED, offsetof(struct entry, path)},
    {"access", JSON_ENUM, JSON_REQUIRED, offsetof(struct entry, access), .names = access_names},
    {"missing_path_behavior", JSON_STR, 0, offsetof(struct entry, missing)},
};

struct place {
    int type;
    const char *path;
    const char *pattern;
    struct json_object *value;
};

static const struct json_field place_fields[] = {
    {"type", JSON_ENUM, JSON_REQUIRED, offsetof(struct place, type), .names = path_names},
    {"path", JSON_STR, 0, offsetof(struct place, path), 1, PATH_MAX - 1},
    {"pattern", JSON_STR, 0, offsetof(struct place, pattern), 1, PATH_MAX - 1},
    {"value", JSON_OBJECT, 0, offsetof(struct place, value)},
};

#define READ(obj, where, fields, out, e)                                                           \
    json_read(obj, where, fields, ARRAY_LEN(fields), out, ERR_INVALID_ARGUMENT, e)

static void take_special(struct json_object *value, struct codex_entry *ret)
{
    const char *kind = json_str(json_get(value, "kind"));
    const char *subpath = json_str(json_get(value, "subpath"));
    ret->kind = CODEX_UNKNOWN;
    ret->text = mem_strdup(subpath);
    for (size_t i = 0; i < ARRAY_LEN(special); i++) {
        if (str_eq(kind, special[i].name))
            ret->kind = special[i].kind;
    }
}

static int take_entry(struct json_object *obj, struct codex_entry *ret, struct err *e)
{
    struct entry in = {0};
    struct place place = {0};
    if (READ(obj, "entries", entry_fields, &in, e) < 0 ||
        READ(in.path, "entries.path", place_fields, &place, e) < 0)
        return -1;
    ret->access = in.access == 3 ? CODEX_DENY : (enum codex_access)in.access;
    if (place.type == 2) {
        take_special(place.value, ret);
        return 0;
    }
    const char *text = place.type == 0 ? place.path : place.pattern;
    ret->kind = place.type == 0 ? CODEX_PATH : CODEX_GLOB;
    ret->text = mem_strdup(text);
    if (text == NULL)
        return err_set(e, ERR_INVALID_ARGUMENT, "entries.path: the %s is missing",
                       place.type == 0 ? "path" : "pattern");
    if (ret->kind == CODEX_GLOB && ret->access != CODEX_DENY)
        return err_set(e, ERR_INVALID_ARGUMENT, "entries.path: a pattern can only deny");
    return 0;
}

static int take_policy(struct json_object *obj, struct codex_profile *p, struct err *e)
{
    struct policy in = {0};
    if (READ(obj, "file_system", policy_fields, &in, e) < 0)
        return -1;
    p->unrestricted = in.type != 0;
    size_t n = in.entries == NULL ? 0 : json_object_array_length(in.entries);
    p->entries = n == 0 ? NULL : mem_zalloc(n, sizeof(*p->entries));
    while (p->n < n) {
        struct codex_entry *to = &p->entries[p->n++];
        if (take_entry(json_object_array_get_idx(in.entries, p->n - 1), to, e) < 0)
            return -1;
    }
    return 0;
}

static int take_profile(struct json_object *obj, struct codex_profile *p, struct err *e)
{
    struct profile in = {0};
    if (READ(obj, "", profile_fields, &in, e) < 0)
        return -1;
    p->network = in.network == 1;
    if (in.type == 0 && in.file_system == NULL)
        return err_set(e, ERR_INVALID_ARGUMENT, "file_system is missing");
    if (in.type == 0)
        return take_policy(in.file_system, p, e);
    p->unrestricted = true;
    p->network |= in.type == 1;
    return 0;
}

int codex_profile_read(const char *text, size_t n, struct codex_profile *ret, struct err *e)
{
    struct codex_profile p = {0};
    autojson *obj = NULL;
    if (json_parse(text, n, &obj, e) < 0 || take_profile(obj, &p, e) < 0) {
        codex_profile_fini(&p);
        if (e != NULL)
            e->code = ERR_INVALID_ARGUMENT;
        return -1;
    }
    *ret = p;
    return 0;
}

void codex_profile_fini(struct codex_profile *p)
{
    for (size_t i = 0; i < p->n; i++)
        free(p->entries[i].text);
    free(p->entries);
    *p = (struct codex_profile){0};
}
