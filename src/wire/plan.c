/* wire/plan: see plan.h. The sections are a table, for writing and reading alike. */
#include "wire/plan.h"

#include "base/mem.h"

#include <string.h>

enum section_kind { SECTION_TEXT, SECTION_LIST, SECTION_NUMBERS, SECTION_BYTES };

static const struct section {
    const char *name;
    enum section_kind kind;
    size_t offset;
    uint32_t max;
} sections[] = {
    {"bwrap", SECTION_TEXT, offsetof(struct plan, bwrap), 4096},
    {"workspace", SECTION_TEXT, offsetof(struct plan, workspace), 4096},
    {"cwd", SECTION_TEXT, offsetof(struct plan, cwd), 4096},
    {"argv", SECTION_LIST, offsetof(struct plan, argv), PLAN_MAX},
    {"env", SECTION_LIST, offsetof(struct plan, env), PLAN_MAX},
    {"sources", SECTION_LIST, offsetof(struct plan, sources), PLAN_MAX},
    {"guards", SECTION_LIST, offsetof(struct plan, guards), 1u << 20},
    {"masks", SECTION_LIST, offsetof(struct plan, masks), PLAN_MAX},
    {"repositories", SECTION_LIST, offsetof(struct plan, repositories), PLAN_MAX},
    {"groups", SECTION_LIST, offsetof(struct plan, groups), 1u << 16},
    {"proxy", SECTION_TEXT, offsetof(struct plan, proxy), 4096},
    {"publish", SECTION_LIST, offsetof(struct plan, publish), 4096},
    {"egress", SECTION_BYTES, offsetof(struct plan, egress), PLAN_EGRESS_MAX},
    {"limits", SECTION_NUMBERS, offsetof(struct plan, limits), PLAN_LIMIT_MAX * 8},
    {"filter", SECTION_BYTES, offsetof(struct plan, filter), PLAN_FILTER_MAX * 8},
    {"args", SECTION_BYTES, offsetof(struct plan, args), PLAN_MAX},
};
#define SECTIONS ARRAY_LEN(sections)

/* magic, version, flags, a length for each section */
#define MAGIC 0x4c505343u /* "CSPL" */
#define HEAD_WORDS (3 + SECTIONS)
#define HEAD_BYTES (HEAD_WORDS * 4)
#define FLAG_TTY 1u
#define FLAG_REPORT 2u
#define FLAG_SEARCH 4u
#define FLAG_ZYGOTE 8u
#define FLAG_KEEP 16u
#define FLAG_OWN_NETWORK 32u
#define FLAG_NAMESPACES 64u
#define FLAGS_ALL                                                                                  \
    (FLAG_TTY | FLAG_REPORT | FLAG_SEARCH | FLAG_ZYGOTE | FLAG_KEEP | FLAG_OWN_NETWORK |           \
     FLAG_NAMESPACES)

void plan_fini(struct plan *p)
{
    free(p->bwrap);
    free(p->workspace);
    free(p->cwd);
    strv_fini(&p->argv);
    strv_fini(&p->env);
    strv_fini(&p->sources);
    strv_fini(&p->guards);
    strv_fini(&p->masks);
    strv_fini(&p->repositories);
    strv_fini(&p->groups);
    free(p->proxy);
    strv_fini(&p->publish);
    buf_fini(&p->egress);
    buf_fini(&p->filter);
    buf_fini(&p->args);
    *p = (struct plan){0};
}

/* ---- writing ---- */

static void put_u32(struct buf *out, uint32_t v)
{
    const unsigned char bytes[4] = {v & 255, (v >> 8) & 255, (v >> 16) & 255, v >> 24};
    buf_put(out, bytes, sizeof(bytes));
}

static void put_section(const struct plan *p, const struct section *s, struct buf *out)
{
    const char *at = (const char *)p + s->offset;
    if (s->kind == SECTION_TEXT) {
        const char *text = *(char *const *)(const void *)at;
        buf_put(out, text != NULL ? text : "", text != NULL ? strlen(text) + 1 : 1);
    } else if (s->kind == SECTION_LIST) {
        const struct strv *list = (const void *)at;
        for (size_t i = 0; i < list->len; i++)
            buf_put(out, list->items[i], strlen(list->items[i]) + 1);
    } else if (s->kind == SECTION_NUMBERS) {
        const uint64_t *numbers = (const void *)at;
        for (uint32_t i = 0; i < s->max / 8; i++) {
            put_u32(out, (uint32_t)numbers[i]);
            put_u32(out, (uint32_t)(numbers[i] >> 32));
        }
    } else {
        const struct buf *bytes = (const void *)at;
        buf_put(out, buf_bytes(bytes), bytes->len);
    }
}

void plan_write(const struct plan *p, struct buf *out)
{
    autobuf body = BUF_INIT;
    put_u32(out, MAGIC);
    put_u32(out, PLAN_VERSION);
    put_u32(out, (p->tty ? FLAG_TTY : 0) | (p->report ? FLAG_REPORT : 0) |
                     (p->search ? FLAG_SEARCH : 0) | (p->zygote ? FLAG_ZYGOTE : 0) |
                     (p->keep ? FLAG_KEEP : 0) | (p->own_network ? FLAG_OWN_NETWORK : 0) |
                     (p->namespaces ? FLAG_NAMESPACES : 0));
    for (size_t i = 0; i < SECTIONS; i++) {
        size_t before = body.len;
        put_section(p, &sections[i], &body);
        put_u32(out, (uint32_t)(body.len - before));
    }
    buf_put(out, buf_bytes(&body), body.len);
}

/* ---- reading ---- */

static uint32_t get_u32(const char *bytes)
{
    const unsigned char *b = (const unsigned char *)bytes;
    return b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

static int malformed(struct err *e, const char *where, const char *what)
{
    return err_set(e, ERR_PARSE_ERROR, "plan: %s: %s", where, what);
}

static int read_numbers(const struct section *s, const char *bytes, size_t n, uint64_t *numbers,
                        struct err *e)
{
    if (n != s->max)
        return malformed(e, s->name, "has another number of numbers");
    for (size_t i = 0; i < n / 8; i++)
        numbers[i] = get_u32(bytes + 8 * i) | (uint64_t)get_u32(bytes + 8 * i + 4) << 32;
    return 0;
}

static int read_section(const struct section *s, const char *bytes, size_t n, struct plan *p,
                        struct err *e)
{
    char *at = (char *)p + s->offset;
    if (s->kind == SECTION_BYTES) {
        buf_put((struct buf *)(void *)at, bytes, n);
        return 0;
    }
    if (s->kind == SECTION_NUMBERS)
        return read_numbers(s, bytes, n, (uint64_t *)(void *)at, e);
    if (n > 0 && bytes[n - 1] != '\0')
        return malformed(e, s->name, "the last text has no end");
    if (s->kind == SECTION_TEXT) {
        if (n == 0 || strlen(bytes) + 1 != n)
            return malformed(e, s->name, "is not exactly one text");
        *(char **)(void *)at = mem_dup(bytes, n - 1);
        return 0;
    }
    for (size_t i = 0; i < n; i += strlen(bytes + i) + 1)
        strv_add((struct strv *)(void *)at, bytes + i);
    return 0;
}

static int check_args(const struct buf *args, struct err *e)
{
    if (args->len == 0 || buf_bytes(args)[args->len - 1] != '\0')
        return malformed(e, "args", "the last argument has no end");
    return 0;
}

static int check_guards(const struct strv *guards, struct err *e)
{
    if (guards->len % 2 != 0)
        return malformed(e, "guards", "a path lacks its other half");
    if (guards->len / 2 > PLAN_GUARDS_MAX)
        return malformed(e, "guards", "more than PLAN_GUARDS_MAX");
    for (size_t i = 0; i < guards->len; i += 2) {
        const char *path = guards->items[i];
        if (path[0] != '/' || path[1] == '\0')
            return malformed(e, "guards", "a path is not absolute");
    }
    return 0;
}

static int check_masks(const struct strv *masks, struct err *e)
{
    static const char kinds[] = {PLAN_MASK_FILE, PLAN_MASK_DIR, PLAN_MASK_FIXED, PLAN_MASK_READ};
    if (masks->len > PLAN_MASKS_MAX)
        return malformed(e, "masks", "more than PLAN_MASKS_MAX");
    for (size_t i = 0; i < masks->len; i++) {
        const char *mask = masks->items[i];
        if (memchr(kinds, mask[0], sizeof(kinds)) == NULL || mask[1] != '/')
            return malformed(e, "masks", "one is not a kind and an absolute path");
    }
    return 0;
}

static int check_door(const struct plan *p, struct err *e)
{
    if (p->proxy[0] != '\0' && p->proxy[0] != '/')
        return malformed(e, "proxy", "is not absolute");
    if ((p->proxy[0] != '\0') != (p->egress.len > 0))
        return malformed(e, "egress", "a proxy without a policy, or a policy without a proxy");
    return 0;
}

/* What the sections must be together. */
static int check_plan(const struct plan *p, struct err *e)
{
    if (p->bwrap[0] != '/' || p->workspace[0] != '/' || p->cwd[0] != '/')
        return malformed(e, "paths", "one is not absolute");
    if (p->argv.len == 0 || p->argv.items[0][0] == '\0')
        return malformed(e, "argv", "there is no program");
    if (p->sources.len > PLAN_SOURCES_MAX)
        return malformed(e, "sources", "more than PLAN_SOURCES_MAX");
    for (size_t i = 0; i < p->sources.len; i++) {
        char first = p->sources.items[i][0];
        if (first != '\0' && first != '=' && first != '/')
            return malformed(e, "sources", "a path is not absolute");
    }
    if (p->groups.len % 3 != 0)
        return malformed(e, "groups", "not three texts for each");
    if (check_door(p, e) < 0 || check_guards(&p->guards, e) < 0 || check_masks(&p->masks, e) < 0)
        return -1;
    if (p->filter.len == 0 || p->filter.len % 8 != 0)
        return malformed(e, "filter", "is not a whole number of instructions");
    return check_args(&p->args, e);
}

static int read_head(const char *bytes, size_t n, struct plan *p, struct err *e)
{
    if (n > PLAN_MAX)
        return malformed(e, "size", "larger than PLAN_MAX");
    if (n < HEAD_BYTES || get_u32(bytes) != MAGIC)
        return malformed(e, "head", "this is not a plan");
    if (get_u32(bytes + 4) != PLAN_VERSION)
        return malformed(e, "head", "another version wrote it; prepare again");
    uint32_t flags = get_u32(bytes + 8);
    if ((flags & ~FLAGS_ALL) != 0)
        return malformed(e, "head", "unknown flags");
    if ((flags & FLAG_REPORT) != 0 && (flags & FLAG_ZYGOTE) != 0)
        return malformed(e, "head", "flags that exclude each other");
    p->tty = flags & FLAG_TTY;
    p->report = flags & FLAG_REPORT;
    p->search = flags & FLAG_SEARCH;
    p->zygote = flags & FLAG_ZYGOTE;
    p->keep = flags & FLAG_KEEP;
    p->own_network = flags & FLAG_OWN_NETWORK;
    p->namespaces = flags & FLAG_NAMESPACES;
    return 0;
}

static int read_all(const char *bytes, size_t n, struct plan *p, struct err *e)
{
    if (read_head(bytes, n, p, e) < 0)
        return -1;
    size_t at = HEAD_BYTES;
    for (size_t i = 0; i < SECTIONS; i++) {
        uint32_t len = get_u32(bytes + 12 + 4 * i);
        if (len > n - at || len > sections[i].max)
            return malformed(e, sections[i].name, "longer than the file or its limit");
        p->args_at = at;
        if (read_section(&sections[i], bytes + at, len, p, e) < 0)
            return -1;
        at += len;
    }
    if (at != n)
        return malformed(e, "size", "bytes after the last section");
    return check_plan(p, e);
}

int plan_read(const char *bytes, size_t n, struct plan *ret, struct err *e)
{
    struct plan p = {0};
    if (read_all(bytes, n, &p, e) < 0) {
        plan_fini(&p);
        return -1;
    }
    *ret = p;
    return 0;
}
