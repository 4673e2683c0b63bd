/* sandbox/walk: see walk.h. */
#include "sandbox/walk.h"

#include "base/mem.h"
#include "base/str.h"
#include "sys/path.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct walk {
    int root_fd;
    size_t left;
    walk_visit visit;
    void *arg;
    struct strv queue; /* directories to enter, relative */
};

static bool is_directory(int dir_fd, const struct dirent *it)
{
    struct stat st;
    if (it->d_type != DT_UNKNOWN)
        return it->d_type == DT_DIR;
    return fstatat(dir_fd, it->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

/* False when the limit is reached. */
static bool read_directory(struct walk *w, const char *dir)
{
    int fd = path_open_beneath(w->root_fd, dir, O_RDONLY | O_DIRECTORY, 0);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    bool more = true;
    if (d == NULL)
        mem_cleanup_fd(&fd);
    for (struct dirent *it = d == NULL ? NULL : readdir(d); it != NULL; it = readdir(d)) {
        if (str_eq(it->d_name, ".") || str_eq(it->d_name, ".."))
            continue;
        more = w->left > 0;
        if (!more)
            break;
        w->left--;
        bool directory = is_directory(fd, it);
        autofree char *path = mem_printf("%s%s%s", dir, dir[0] == '\0' ? "" : "/", it->d_name);
        if (w->visit(w->arg, path, directory) && directory)
            strv_add_take(&w->queue, steal(path));
    }
    if (d != NULL)
        closedir(d);
    return more;
}

int walk_tree(const char *root, size_t max, walk_visit visit, void *arg)
{
    autofd int root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    struct walk w = {.root_fd = root_fd, .left = max, .visit = visit, .arg = arg};
    if (root_fd < 0)
        return -errno;
    bool more = read_directory(&w, "");
    for (size_t i = 0; more && i < w.queue.len; i++)
        more = read_directory(&w, w.queue.items[i]);
    strv_fini(&w.queue);
    return more ? 0 : 1;
}
