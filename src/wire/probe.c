/* wire/probe: see probe.h. */
#include "wire/probe.h"

#include "base/jsonw.h"
#include "base/mem.h"
#include "wire/json.h"

#include <stdio.h>
#include <string.h>

/* NULL-terminated, for reading back by table. */
static const char *const names[] = {
#define PROBE_NAME(id, name, what, remedy) name,
    PROBE_CAUSES(PROBE_NAME)
#undef PROBE_NAME
        NULL};

static const char *const whats[] = {
#define PROBE_WHAT(id, name, what, remedy) what,
    PROBE_CAUSES(PROBE_WHAT)
#undef PROBE_WHAT
};

static const char *const remedies[] = {
#define PROBE_REMEDY(id, name, what, remedy) remedy,
    PROBE_CAUSES(PROBE_REMEDY)
#undef PROBE_REMEDY
};

static enum probe_cause known(enum probe_cause cause)
{
    return (unsigned)cause < PROBE_CAUSE_MAX ? cause : PROBE_OTHER;
}

const char *probe_cause_name(enum probe_cause cause)
{
    return names[known(cause)];
}

const char *probe_cause_what(enum probe_cause cause)
{
    return whats[known(cause)];
}

const char *probe_cause_remedy(enum probe_cause cause)
{
    return remedies[known(cause)];
}

/* What was seen inside, one row each. */
static const struct {
    const char *name;
    size_t offset;
} facts[] = {
    {"user_namespace", offsetof(struct probe_result, user_namespace)},
    {"mount_namespace", offsetof(struct probe_result, mount_namespace)},
    {"pid_namespace", offsetof(struct probe_result, pid_namespace)},
    {"network_namespace", offsetof(struct probe_result, network_namespace)},
    {"ipc_namespace", offsetof(struct probe_result, ipc_namespace)},
    {"uts_namespace", offsetof(struct probe_result, uts_namespace)},
    {"cgroup_namespace", offsetof(struct probe_result, cgroup_namespace)},
    {"fresh_proc", offsetof(struct probe_result, fresh_proc)},
    {"no_new_privs", offsetof(struct probe_result, no_new_privs)},
    {"seccomp", offsetof(struct probe_result, seccomp)},
    {"pid1", offsetof(struct probe_result, pid1)},
    {"inherited_proc", offsetof(struct probe_result, inherited_proc)},
    {"egress", offsetof(struct probe_result, egress)},
};

void probe_write(const struct probe_result *p, struct buf *out)
{
    struct jsonw w;
    jsonw_init(&w, out);
    jsonw_object(&w);
    jsonw_kbool(&w, "works", p->works);
    jsonw_kstr(&w, "cause", probe_cause_name(p->cause));
    jsonw_kstr(&w, "what", probe_cause_what(p->cause));
    jsonw_kstr(&w, "remedy", probe_cause_remedy(p->cause));
    jsonw_kstr(&w, "detail", p->detail);
    jsonw_kstr(&w, "bwrap_path", p->bwrap_path);
    jsonw_kstr(&w, "bwrap_version", p->bwrap_version);
    jsonw_kstr(&w, "egress_detail", p->egress_detail);
    for (size_t i = 0; i < ARRAY_LEN(facts); i++)
        jsonw_kbool(&w, facts[i].name, *(const bool *)((const char *)p + facts[i].offset));
    jsonw_object_end(&w);
}

/* The members that are not plain facts, as json_read() leaves them. */
struct head {
    bool works;
    int cause;
    const char *detail;
    const char *bwrap_path;
    const char *bwrap_version;
    const char *egress_detail;
};

static const struct json_field head_fields[] = {
    {"works", JSON_BOOL, JSON_REQUIRED, offsetof(struct head, works)},
    {"cause", JSON_ENUM, JSON_REQUIRED, offsetof(struct head, cause), .names = names},
    {"what", JSON_STR, JSON_IGNORED},
    {"remedy", JSON_STR, JSON_IGNORED},
    {"detail", JSON_STR, 0, offsetof(struct head, detail)},
    {"bwrap_path", JSON_STR, 0, offsetof(struct head, bwrap_path), 0, 255},
    {"bwrap_version", JSON_STR, 0, offsetof(struct head, bwrap_version), 0, 31},
    {"egress_detail", JSON_STR, 0, offsetof(struct head, egress_detail), 0, 255},
};

#define HEAD_FIELDS ARRAY_LEN(head_fields)
#define ALL_FIELDS (HEAD_FIELDS + ARRAY_LEN(facts))

/* One table for json_read(): the head, then the facts with offsets behind it. */
struct reading {
    struct head head;
    struct probe_result result;
};

static void all_fields(struct json_field *all)
{
    memcpy(all, head_fields, sizeof(head_fields));
    for (size_t i = 0; i < ARRAY_LEN(facts); i++) {
        all[HEAD_FIELDS + i] = (struct json_field){
            .name = facts[i].name,
            .kind = JSON_BOOL,
            .offset = offsetof(struct reading, result) + facts[i].offset,
        };
    }
}

int probe_read(const char *text, size_t n, struct probe_result *ret, struct err *e)
{
    struct reading r = {
        .head = {.detail = "", .bwrap_path = "", .bwrap_version = "", .egress_detail = ""}};
    struct json_field all[ALL_FIELDS];
    autojson *obj = NULL;
    if (json_parse(text, n, &obj, e) < 0)
        return err_wrap(e, "the probe's answer");
    all_fields(all);
    if (json_read(obj, "probe", all, ALL_FIELDS, &r, ERR_PARSE_ERROR, e) < 0)
        return -1;
    r.result.works = r.head.works;
    r.result.cause = (enum probe_cause)r.head.cause;
    snprintf(r.result.detail, sizeof(r.result.detail), "%s", r.head.detail);
    snprintf(r.result.bwrap_path, sizeof(r.result.bwrap_path), "%s", r.head.bwrap_path);
    snprintf(r.result.bwrap_version, sizeof(r.result.bwrap_version), "%s", r.head.bwrap_version);
    snprintf(r.result.egress_detail, sizeof(r.result.egress_detail), "%s", r.head.egress_detail);
    *ret = r.result;
    return 0;
}
