/* run/places: see places.h. */
#include "run/places.h"

#include "base/buf.h"
#include "base/mem.h"
#include "sys/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define HASH_START 0xcbf29ce484222325ull
#define HASH_STEP 0x100000001b3ull

static void mix(uint64_t *hash, const void *data, size_t n)
{
    const unsigned char *bytes = data;
    for (size_t i = 0; i < n; i++)
        *hash = (*hash ^ bytes[i]) * HASH_STEP;
}

/* lstat, of which the error and the thing itself are mixed in. 0 or an errno. */
static int mix_thing(uint64_t *hash, const char *path, struct stat *ret)
{
    int rc = lstat(path, ret) < 0 ? errno : 0;
    mix(hash, &rc, sizeof(rc));
    if (rc != 0)
        return rc;
    mode_t kind = ret->st_mode & S_IFMT;
    mix(hash, &ret->st_dev, sizeof(ret->st_dev));
    mix(hash, &ret->st_ino, sizeof(ret->st_ino));
    mix(hash, &kind, sizeof(kind));
    return 0;
}

static void mix_place(uint64_t *hash, const char *path)
{
    struct stat st;
    if (mix_thing(hash, path, &st) != 0 || S_ISDIR(st.st_mode))
        return;
    mix(hash, &st.st_size, sizeof(st.st_size));
    mix(hash, &st.st_ctim, sizeof(st.st_ctim));
}

static void mix_places(uint64_t *hash, const struct strv *paths)
{
    for (size_t i = 0; i < paths->len; i++)
        mix_place(hash, paths->items[i]);
}

/* ---- the secrets of /etc, by their directories ---- */

static bool is_settled(const struct timespec *t, const struct timespec *now)
{
    int64_t age_ms = ((int64_t)now->tv_sec - (int64_t)t->tv_sec) * 1000 +
                     ((int64_t)now->tv_nsec - (int64_t)t->tv_nsec) / 1000000;
    return age_ms > (int64_t)PLACES_SETTLED_MS;
}

/* Its entries are as they were when it is the same directory with the same times. False when that
 * cannot be said of it. */
static bool mix_directory(uint64_t *hash, const char *path, const struct timespec *now)
{
    struct stat st;
    if (mix_thing(hash, path, &st) != 0)
        return false;
    mix(hash, &st.st_mtim, sizeof(st.st_mtim));
    mix(hash, &st.st_ctim, sizeof(st.st_ctim));
    return S_ISDIR(st.st_mode) && is_settled(&st.st_mtim, now) && is_settled(&st.st_ctim, now);
}

/* One that is not there is known by the times of the one that it would lie in. */
static void note_directories(struct strv *there, const char *path)
{
    struct stat st;
    for (const char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        autofree char *dir = mem_dup(path, (size_t)(slash - path));
        if (lstat(dir, &st) < 0)
            return;
        if (!strv_has(there, dir))
            strv_add(there, dir);
    }
}

static uint64_t print_directories(const struct strv *there, bool *ret_settled)
{
    uint64_t hash = HASH_START;
    struct timespec now = {0};
    *ret_settled = true;
    clock_gettime(CLOCK_REALTIME_COARSE, &now);
    for (size_t i = 0; i < there->len; i++)
        *ret_settled &= mix_directory(&hash, there->items[i], &now);
    return hash;
}

/* The directories first: what changes between the two looks is seen by the next. */
static void look_at_secrets(struct places *p)
{
    strv_fini(&p->there);
    for (size_t i = 0; view_etc_secrets[i] != NULL; i++)
        note_directories(&p->there, view_etc_secrets[i]);
    p->dirs = print_directories(&p->there, &p->known);
    p->secrets = HASH_START;
    for (size_t i = 0; view_etc_secrets[i] != NULL; i++)
        mix_place(&p->secrets, view_etc_secrets[i]);
}

/* ---- what is mounted in the view ---- */

/* In place: the kernel writes space, tab, newline and backslash of a path as \ooo. */
static void unescape(char *path)
{
    char *to = path;
    for (const char *from = path; *from != '\0'; to++) {
        if (from[0] == '\\' && from[1] != '\0' && from[2] != '\0' && from[3] != '\0') {
            *to = (char)((from[1] - '0') << 6 | (from[2] - '0') << 3 | (from[3] - '0'));
            from += 4;
        } else {
            *to = *from++;
        }
    }
    *to = '\0';
}

/* Its number, parent, device and root are which mount it is; the fifth word is where. */
static void note_mount(struct places *p, char *line)
{
    char *at = line;
    for (int i = 0; i < 4 && at != NULL; i++) {
        at = strchr(at, ' ');
        at = at == NULL ? NULL : at + 1;
    }
    if (at == NULL)
        return;
    at[strcspn(at, " ")] = '\0';
    strv_add(&p->mounts, line);
    unescape(at);
    strv_add(&p->mounts, at);
}

static void read_table(struct places *p)
{
    autobuf text = BUF_INIT;
    ssize_t n;
    strv_fini(&p->mounts);
    if (lseek(p->table_fd, 0, SEEK_SET) < 0)
        return;
    while ((n = fd_read(p->table_fd, buf_reserve(&text, 16384), 16384)) > 0)
        buf_commit(&text, (size_t)n);
    char *save = NULL;
    autofree char *all = buf_steal(&text);
    for (char *line = strtok_r(all, "\n", &save); line != NULL; line = strtok_r(NULL, "\n", &save))
        note_mount(p, line);
}

/* The kernel says of an open table whether it has changed, so it is read only then. */
static void look_at_mounts(struct places *p)
{
    struct pollfd table = {.fd = p->table_fd, .events = POLLPRI};
    bool changed = !p->watching;
    if (!p->watching) {
        p->table_fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
        p->watching = true;
    } else if (p->table_fd >= 0) {
        changed = poll(&table, 1, 0) > 0;
    }
    if (changed && p->table_fd >= 0)
        read_table(p);
}

static bool is_within(const char *path, const char *dir)
{
    size_t n = strlen(dir);
    return strncmp(path, dir, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

static bool is_shown(const struct view *v, const char *path)
{
    if (is_within(path, v->workspace) || (v->shared_tmp && is_within(path, "/tmp")))
        return true;
    for (size_t i = 0; i < v->n_mounts; i++) {
        if (is_within(path, v->mounts[i].path))
            return true;
    }
    return false;
}

static void mix_mounts(uint64_t *hash, const struct places *p, const struct view *v)
{
    for (size_t i = 0; i + 1 < p->mounts.len; i += 2) {
        if (is_shown(v, p->mounts.items[i + 1]))
            mix(hash, p->mounts.items[i], strlen(p->mounts.items[i]) + 1);
    }
}

uint64_t places_print(struct places *p, const struct view *v)
{
    uint64_t hash = HASH_START;
    bool settled;
    mix_place(&hash, v->workspace);
    for (size_t i = 0; i < v->protect.len; i++) {
        autofree char *path = mem_printf("%s/%s", v->workspace, v->protect.items[i]);
        mix_place(&hash, path);
    }
    for (size_t i = 0; i < v->n_mounts; i++)
        mix_place(&hash, v->mounts[i].path);
    mix_places(&hash, &v->hidden);
    mix_places(&hash, &v->devices);
    if (!p->known || print_directories(&p->there, &settled) != p->dirs)
        look_at_secrets(p);
    mix(&hash, &p->secrets, sizeof(p->secrets));
    look_at_mounts(p);
    mix_mounts(&hash, p, v);
    return hash;
}

void places_fini(struct places *p)
{
    strv_fini(&p->there);
    strv_fini(&p->mounts);
    if (p->watching)
        fd_close(&p->table_fd);
    *p = (struct places){0};
}
