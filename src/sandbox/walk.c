/* sandbox/walk: see walk.h. */
#include "sandbox/walk.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"
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
    void *arg;
    struct strv queue; /* directories to enter, relative */
    struct buf path;   /* of the entry that is looked at */
    char *entries;     /* ENTRIES_BYTES */
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

/* `prefix`: of w->path, the directory with its slash. */
static void look_at(struct walk *w, int fd, const struct entry *it, size_t prefix)
{
    bool directory = is_directory(fd, it);
    buf_truncate(&w->path, prefix);
    buf_puts(&w->path, it->name);
    const char *path = buf_cstr(&w->path);
    if (w->visit(w->arg, path, directory) && directory)
        strv_add(&w->queue, path);
}

/* False when the limit is reached. */
static bool read_directory(struct walk *w, const char *dir)
{
    autofd int fd = path_open_beneath(w->root_fd, dir, O_RDONLY | O_DIRECTORY, 0);
    buf_truncate(&w->path, 0);
    buf_puts(&w->path, dir);
    if (dir[0] != '\0')
        buf_putc(&w->path, '/');
    size_t prefix = w->path.len;
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
    return true;
}

int walk_tree(const char *root, size_t max, walk_visit visit, void *arg)
{
    autofd int root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    struct walk w = {.root_fd = root_fd, .left = max, .visit = visit, .arg = arg};
    if (root_fd < 0)
        return -errno;
    w.entries = mem_zalloc(ENTRIES_BYTES, 1);
    bool more = read_directory(&w, "");
    for (size_t i = 0; more && i < w.queue.len; i++)
        more = read_directory(&w, w.queue.items[i]);
    strv_fini(&w.queue);
    buf_fini(&w.path);
    free(w.entries);
    return more ? 0 : 1;
}
