/* sandbox/layout: see layout.h. */
#include "sandbox/layout.h"

#include "base/mem.h"
#include "base/str.h"
#include "sandbox/paths.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* bubblewrap 0.8 refuses more than 9000 arguments, its own command line included. */
#define ARGS_MAX 8900u

void layout_fini(struct layout *l)
{
    for (size_t i = 0; i < l->n; i++) {
        free(l->items[i].path);
        free(l->items[i].source);
    }
    free(l->items);
    map_fini(&l->places);
    *l = (struct layout){0};
}

/* The item that stands at exactly `path`, as far as added; NULL when nothing is mounted there. */
static const struct layout_item *standing(const struct layout *l, const char *path)
{
    uintptr_t number = (uintptr_t)map_get(&l->places, path);
    return number == 0 ? NULL : &l->items[number - 1];
}

/* Links and directories of ours are not mounts. */
static void take_place(struct layout *l, const struct layout_item *it)
{
    const struct layout_item *now = standing(l, it->path);
    if (it->kind == LAYOUT_LINK || it->kind == LAYOUT_DIR || (now != NULL && now->rank > it->rank))
        return;
    map_set(&l->places, it->path, (void *)(uintptr_t)(it - l->items + 1));
}

void layout_add(struct layout *l, enum layout_kind kind, enum layout_rank rank, const char *path,
                const char *source)
{
    mem_grow((void **)&l->items, &l->cap, l->n + 1, sizeof(*l->items));
    l->items[l->n++] =
        (struct layout_item){mem_strdup(path), mem_strdup(source), kind, rank, false, false};
    take_place(l, &l->items[l->n - 1]);
}

/* By name from the path upwards, not item by item: a view may hide thousands of paths. */
const struct layout_item *layout_writable(const struct layout *l, const char *path)
{
    autofree char *step = mem_strdup(path);
    const struct layout_item *best = standing(l, step);
    for (char *slash = strrchr(step, '/'); best == NULL && slash != NULL && slash != step;
         slash = strrchr(step, '/')) {
        *slash = '\0';
        best = standing(l, step);
    }
    if (best == NULL)
        best = standing(l, "/");
    return best != NULL && best->kind == LAYOUT_BIND_RW ? best : NULL;
}

/* Nothing between was there when the plan was made: what is made later is the guard's. */
void layout_fence(struct layout *l, const char *path)
{
    struct stat st;
    const struct layout_item *root = layout_writable(l, path);
    if (root == NULL || strcmp(root->path, path) == 0)
        return;
    size_t from = strlen(root->path);
    autofree char *step = mem_strdup(path);
    for (char *slash = strchr(step + from, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (strlen(step) > from) {
            if (lstat(step, &st) < 0 || !S_ISDIR(st.st_mode))
                return;
            const struct layout_item *there = standing(l, step);
            if (there == NULL || there->rank != LAYOUT_RANK_FENCE)
                layout_add(l, LAYOUT_BIND_RW, LAYOUT_RANK_FENCE, step, NULL);
        }
        *slash = '/';
    }
}

/* ---- writing ---- */

void layout_args(struct plan *p, ...)
{
    va_list ap;
    va_start(ap, p);
    for (const char *s = va_arg(ap, const char *); s != NULL; s = va_arg(ap, const char *))
        buf_put(&p->args, s, strlen(s) + 1);
    va_end(ap);
}

/* The number, as text, of a new descriptor for `source` (wire/plan). */
static char *new_descriptor(struct plan *p, const char *source)
{
    strv_add(&p->sources, source);
    return mem_printf("%zu", PLAN_FD_SOURCE + p->sources.len - 1);
}

void layout_text(struct plan *p, const char *text, const char *path)
{
    autofree char *source = mem_printf("=%s", text);
    autofree char *fd = new_descriptor(p, source);
    layout_args(p, "--perms", "0444", "--ro-bind-data", fd, path, NULL);
}

static void write_tmpfs(struct plan *p, const struct layout_item *it)
{
    layout_args(p, "--perms", "1777", NULL);
    if (it->source != NULL)
        layout_args(p, "--size", it->source, NULL);
    layout_args(p, "--tmpfs", it->path, NULL);
}

static void write_item(struct plan *p, const struct layout_item *it)
{
    autofree char *fd = NULL;
    switch (it->kind) {
    case LAYOUT_TMPFS:
        write_tmpfs(p, it);
        break;
    case LAYOUT_DIR:
        layout_args(p, "--perms", "0700", "--dir", it->path, NULL);
        break;
    case LAYOUT_LINK:
        layout_args(p, "--symlink", it->source, it->path, NULL);
        break;
    case LAYOUT_HOST:
        layout_args(p, "--ro-bind", it->source, it->path, NULL);
        break;
    case LAYOUT_BIND:
    case LAYOUT_BIND_RW:
        fd = new_descriptor(p, it->path);
        layout_args(p, it->kind == LAYOUT_BIND ? "--ro-bind-fd" : "--bind-fd", fd, it->path, NULL);
        break;
    case LAYOUT_DEVICE:
        layout_args(p, "--dev-bind", it->path, it->path, NULL);
        break;
    case LAYOUT_HIDE_DIR:
        layout_args(p, "--perms", "0555", "--tmpfs", it->path, NULL);
        break;
    case LAYOUT_HIDE_FILE:
        fd = new_descriptor(p, "");
        layout_args(p, "--perms", "0444", "--ro-bind-data", fd, it->path, NULL);
        break;
    }
}

static int compare_items(const void *a, const void *b)
{
    const struct layout_item *x = a;
    const struct layout_item *y = b;
    int order = paths_compare(x->path, y->path);
    return order != 0 ? order : (int)x->rank - (int)y->rank;
}

static bool hides(enum layout_kind kind)
{
    return kind == LAYOUT_HIDE_DIR || kind == LAYOUT_HIDE_FILE;
}

static bool shows_host(enum layout_kind kind)
{
    return kind == LAYOUT_HOST || kind == LAYOUT_BIND || kind == LAYOUT_BIND_RW;
}

/* Process 1 can lay it: it covers or fixes what is there, and nothing below needs its mount point.
 */
static bool can_wait(const struct layout_item *it)
{
    return !it->first && ((hides(it->kind) && !it->holds) || it->rank == LAYOUT_RANK_FENCE ||
                          (it->kind == LAYOUT_BIND && it->rank == LAYOUT_RANK_PROTECTED));
}

/* One that stands instead of a mount of the same path makes that mount's place, too. */
static void mark_first(struct layout *l)
{
    for (size_t i = 1; i < l->n; i++)
        l->items[i].first =
            strcmp(l->items[i].path, l->items[i - 1].path) == 0 && !can_wait(&l->items[i - 1]);
}

static void write_mask(struct plan *p, const struct layout_item *it)
{
    static const char kinds[] = {
        [LAYOUT_HIDE_DIR] = PLAN_MASK_DIR,
        [LAYOUT_HIDE_FILE] = PLAN_MASK_FILE,
        [LAYOUT_BIND] = PLAN_MASK_READ,
        [LAYOUT_BIND_RW] = PLAN_MASK_FIXED,
    };
    strv_addf(&p->masks, "%c%s", kinds[it->kind], it->path);
}

/* Everything below an item follows it directly, so the next one that bubblewrap mounts tells.
 * Returns how many are left to process 1. */
static size_t mark_holders(struct layout *l)
{
    size_t waiting = 0;
    const char *next = NULL;
    for (size_t i = l->n; i-- > 0;) {
        struct layout_item *it = &l->items[i];
        it->holds = next != NULL && paths_within(next, it->path) && strcmp(next, it->path) != 0;
        if (can_wait(it))
            waiting++;
        else
            next = it->path;
    }
    return waiting;
}

/* The items in tree order, with the chain of those that hold the current path. */
struct walk {
    const struct layout_item **open;
    size_t depth;
    bool masks;
    struct strv remount; /* hidden directories, made read-only when all is mounted */
    size_t words;
};

static void visit(struct layout *l, struct walk *w, struct plan *p, const struct layout_item *it)
{
    while (w->depth > 0 && !paths_within(it->path, w->open[w->depth - 1]->path))
        w->depth--;
    const struct layout_item *around = w->depth == 0 ? NULL : w->open[w->depth - 1];
    bool host_shows = around == NULL ? l->whole : shows_host(around->kind);
    if (hides(it->kind) && !host_shows)
        return;
    /* Inside what became read-only a fence is not needed and would be a hole. */
    if (it->rank == LAYOUT_RANK_FENCE && around != NULL && around->kind != LAYOUT_BIND_RW)
        return;
    if (w->masks && can_wait(it)) {
        write_mask(p, it);
    } else {
        write_item(p, it);
        if (it->kind == LAYOUT_HIDE_DIR)
            strv_add(&w->remount, it->path);
    }
    if (it->kind != LAYOUT_LINK && it->kind != LAYOUT_DIR)
        w->open[w->depth++] = it;
}

static size_t count_words(const struct buf *args)
{
    size_t n = 0;
    for (size_t i = 0; i < args->len; i++)
        n += buf_bytes(args)[i] == '\0';
    return n;
}

static int check_limits(const struct plan *p, struct err *e)
{
    if (p->masks.len > PLAN_MASKS_MAX)
        return err_set(
            e, ERR_LIMIT_EXCEEDED,
            "the view hides or protects %zu paths, more than PLAN_MASKS_MAX (%u); hide a "
            "directory that holds many of them (\"dir/**\" does)",
            p->masks.len, PLAN_MASKS_MAX);
    if (p->guards.len / 2 > PLAN_GUARDS_MAX)
        return err_set(e, ERR_LIMIT_EXCEEDED,
                       "%zu protected paths do not exist and would have to be watched, more than "
                       "PLAN_GUARDS_MAX (%u)",
                       p->guards.len / 2, PLAN_GUARDS_MAX);
    if (p->sources.len > PLAN_SOURCES_MAX)
        return err_set(e, ERR_LIMIT_EXCEEDED,
                       "the view needs %zu descriptors, more than PLAN_SOURCES_MAX (%u); hide or "
                       "mount directories instead of single files",
                       p->sources.len, PLAN_SOURCES_MAX);
    if (count_words(&p->args) > ARGS_MAX)
        return err_set(e, ERR_LIMIT_EXCEEDED,
                       "the view needs more mounts than bubblewrap takes (%u arguments); hide or "
                       "mount directories instead of single files",
                       ARGS_MAX);
    return 0;
}

const char *const layout_machine[] = {
    "/proc/acpi", "/proc/asound", "/proc/driver", "/proc/dynamic_debug",
    "/proc/fs",   "/proc/mtrr",   "/proc/scsi",   NULL};

static void write_machine(const struct layout *l, bool masks, struct plan *p)
{
    for (size_t i = 0; layout_machine[i] != NULL; i++) {
        const char *path = layout_machine[i];
        if (l->machine[i] && masks)
            strv_addf(&p->masks, "%c%s", PLAN_MASK_READ, path);
        else if (l->machine[i])
            layout_args(p, "--ro-bind", path, path, NULL);
    }
}

/* The base, then /proc and /dev, since later items may lie below them. bubblewrap leaves
 * /proc/sys writable for a sandbox that runs as the host's root, so it is laid over. */
static void write_base(const struct layout *l, bool masks, struct plan *p)
{
    if (l->whole)
        layout_args(p, "--ro-bind", "/", "/", NULL);
    if (l->inherited_proc)
        layout_args(p, "--ro-bind", "/proc", "/proc", NULL);
    else
        layout_args(p, "--proc", "/proc", NULL);
    if (masks)
        strv_addf(&p->masks, "%c/proc/sys", PLAN_MASK_READ);
    else if (!l->inherited_proc)
        layout_args(p, "--ro-bind", "/proc/sys", "/proc/sys", NULL);
    write_machine(l, masks, p);
    layout_args(p, "--dev", "/dev", NULL);
}

int layout_write(struct layout *l, struct plan *p, struct err *e)
{
    autofree const struct layout_item **open = mem_zalloc(l->n + 1, sizeof(*open));
    struct walk w = {.open = open};
    qsort(l->items, l->n, sizeof(*l->items), compare_items);
    mark_first(l);
    size_t waiting = mark_holders(l);
    w.masks = l->masks > 0 && waiting >= l->masks;
    write_base(l, w.masks, p);
    for (size_t i = 0; i < l->n; i++) {
        bool overruled = i + 1 < l->n && strcmp(l->items[i].path, l->items[i + 1].path) == 0;
        if (!overruled)
            visit(l, &w, p, &l->items[i]);
    }
    for (size_t i = 0; i < w.remount.len; i++)
        layout_args(p, "--remount-ro", w.remount.items[i], NULL);
    if (!l->whole)
        layout_args(p, "--remount-ro", "/", NULL);
    strv_fini(&w.remount);
    return check_limits(p, e);
}
