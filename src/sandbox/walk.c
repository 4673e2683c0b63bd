/* sandbox/walk: see walk.h. */
#include "sandbox/walk.h"

#include "base/buf.h"
#include "base/mem.h"
#include "sys/path.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Entries of a directory that are read at once: nearly always all. */
#define ENTRIES_BYTES 32768

/* As the kernel gives them. readdir(3) costs a tree of many small directories half of its time. */
struct entry {
    uint64_t inode;
    int64_t next;
    uint16_t length;
    uint8_t type;
    char name[];
};

struct walk {
    int root_fd;
    size_t left;
    walk_visit visit;
    walk_closed closed; /* or NULL */
    void *arg;
    struct buf queue; /* directories to enter, relative, each with its NUL */
    struct buf path;  /* of the entry that is looked at */
    char *entries;    /* ENTRIES_BYTES; NULL until a directory is read */
    /* Only with listings: */
    struct listings *known;
    struct listings_use use;
    struct listing_draft draft;
    int parent_fd;     /* of the directories that come now; -1 = none */
    struct buf parent; /* its path */
};

static bool is_directory(int dir_fd, const struct entry *it)
{
    struct stat st;
    if (it->type != DT_UNKNOWN)
        return it->type == DT_DIR;
    return fstatat(dir_fd, it->name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

static bool is_dots(const char *name)
{
    return name[0] == '.' && (name[1] == '\0' || (name[1] == '.' && name[2] == '\0'));
}

/* The path of the directory with its slash, to which names are added; its length. */
static size_t set_prefix(struct walk *w, const char *dir)
{
    buf_truncate(&w->path, 0);
    buf_puts(&w->path, dir);
    if (dir[0] != '\0')
        buf_putc(&w->path, '/');
    return w->path.len;
}

static void tell(struct walk *w, size_t prefix, const char *name, bool directory)
{
    buf_truncate(&w->path, prefix);
    buf_puts(&w->path, name);
    const char *path = buf_cstr(&w->path);
    if (w->visit(w->arg, path, directory) && directory)
        buf_put(&w->queue, path, strlen(path) + 1);
}

static void look_at(struct walk *w, int fd, const struct entry *it, size_t prefix)
{
    bool directory = is_directory(fd, it);
    tell(w, prefix, it->name, directory);
    if (w->known == NULL)
        return;
    listing_add(&w->draft, it->name, directory);
    /* What had to be looked at may not have been there any more. */
    if (it->type == DT_UNKNOWN)
        w->draft.keep = false;
}

/* False when the limit is reached. */
static bool read_directory(struct walk *w, const char *dir)
{
    autofd int fd = path_open_beneath(w->root_fd, dir, O_RDONLY | O_DIRECTORY, 0);
    size_t prefix = set_prefix(w, dir);
    /* Not before it is needed: where all is known, getting it would take longer than the walk. */
    if (w->entries == NULL)
        w->entries = mem_zalloc(ENTRIES_BYTES, 1);
    if (fd == -EACCES && w->closed != NULL)
        w->closed(w->arg, dir);
    if (fd >= 0 && w->known != NULL)
        listing_begin(&w->draft, fd);
    long n = fd < 0 ? 0 : syscall(SYS_getdents64, fd, w->entries, ENTRIES_BYTES);
    for (; n > 0; n = syscall(SYS_getdents64, fd, w->entries, ENTRIES_BYTES)) {
        for (const struct entry *it = (const void *)w->entries; (const char *)it < w->entries + n;
             it = (const void *)((const char *)it + it->length)) {
            if (is_dots(it->name))
                continue;
            if (w->left == 0)
                return false;
            w->left--;
            look_at(w, fd, it, prefix);
        }
    }
    if (fd >= 0 && n == 0 && w->known != NULL)
        listings_put(w->known, &w->draft, &w->use);
    return true;
}

/* ---- with listings ---- */

/* The descriptor of the directory that holds `dir`, and its name there. Those of one parent come
 * together. Negative when there is none. */
static int parent_of(struct walk *w, const char *dir, const char **ret_leaf)
{
    const char *slash = strrchr(dir, '/');
    *ret_leaf = slash == NULL ? dir : slash + 1;
    if (slash == NULL)
        return w->root_fd;
    size_t n = (size_t)(slash - dir);
    if (w->parent_fd >= 0 && w->parent.len == n && memcmp(buf_bytes(&w->parent), dir, n) == 0)
        return w->parent_fd;
    mem_cleanup_fd(&w->parent_fd);
    buf_truncate(&w->parent, 0);
    buf_put(&w->parent, dir, n);
    w->parent_fd = path_open_beneath(w->root_fd, buf_cstr(&w->parent), O_PATH | O_DIRECTORY, 0);
    return w->parent_fd;
}

/* What is known of it, or NULL. A path that is too long to be opened is passed over as ever. */
static const struct listing *recall(struct walk *w, const char *dir)
{
    struct stat st;
    const char *leaf;
    if (w->known == NULL || strlen(dir) >= PATH_LEN_MAX)
        return NULL;
    int fd = parent_of(w, dir, &leaf);
    if (fd < 0 || fstatat(fd, leaf, &st, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH) < 0 ||
        !S_ISDIR(st.st_mode))
        return NULL;
    return listings_find(w->known, &st, &w->use);
}

/* As read_directory(). */
static bool tell_listing(struct walk *w, const char *dir, const struct listing *it)
{
    struct listing_entry entry;
    size_t at = 0;
    size_t prefix = set_prefix(w, dir);
    while (listing_next(it, &at, &entry) && entry.place < w->left)
        tell(w, prefix, entry.name, entry.directory);
    bool all = it->count <= w->left;
    w->left -= all ? it->count : w->left;
    return all;
}

/* `dir` may lie in the queue, which moves as it grows: it is not looked at any more once the first
 * entry is told. */
static bool enter(struct walk *w, const char *dir)
{
    const struct listing *it = recall(w, dir);
    return it != NULL ? tell_listing(w, dir, it) : read_directory(w, dir);
}

/* What `w` begins with says how. */
static int walk_all(struct walk *w, const char *root)
{
    autofd int root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root_fd < 0)
        return -errno;
    w->root_fd = root_fd;
    w->parent_fd = -1;
    bool more = enter(w, "");
    for (size_t at = 0; more && at < w->queue.len;) {
        const char *dir = buf_bytes(&w->queue) + at;
        at += strlen(dir) + 1;
        more = enter(w, dir);
    }
    if (w->known != NULL)
        listings_judge(w->known, &w->use);
    mem_cleanup_fd(&w->parent_fd);
    listing_fini(&w->draft);
    buf_fini(&w->parent);
    buf_fini(&w->queue);
    buf_fini(&w->path);
    free(w->entries);
    return more ? 0 : 1;
}

int walk_known(const char *root, size_t max, struct listings *known, walk_visit visit, void *arg)
{
    struct walk w = {.left = max, .visit = visit, .arg = arg, .known = known};
    return walk_all(&w, root);
}

int walk_tree_closed(const char *root, size_t max, walk_visit visit, walk_closed closed, void *arg)
{
    struct walk w = {.left = max, .visit = visit, .closed = closed, .arg = arg};
    return walk_all(&w, root);
}

int walk_tree(const char *root, size_t max, walk_visit visit, void *arg)
{
    return walk_tree_closed(root, max, visit, NULL, arg);
}
