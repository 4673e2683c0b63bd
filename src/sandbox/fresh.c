/* sandbox/fresh: see fresh.h. */
#include "sandbox/fresh.h"

#include "base/mem.h"
#include "sandbox/layout.h"
#include "sandbox/paths.h"
#include "sandbox/scope.h"
#include "sys/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Of <linux/mount.h>, which does not go together with <sys/mount.h>, which lacks them in musl. */
#ifndef OPEN_TREE_CLONE
#define OPEN_TREE_CLONE 1
#define OPEN_TREE_CLOEXEC O_CLOEXEC
#define MOVE_MOUNT_F_EMPTY_PATH 4
#endif

#define NO_SURPRISES (MS_NOSUID | MS_NODEV | MS_NOEXEC)

static int unavailable(struct err *e, const char *what)
{
    return err_sys(e, ERR_SANDBOX_UNAVAILABLE, errno, "%s", what);
}

/* ---- what the view consists of ---- */

/* The kernel writes space, tab, newline and backslash of a path as \ooo. */
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

/* The fifth word of a line of mountinfo. */
static char *mount_point(char *line)
{
    for (int i = 0; i < 4 && line != NULL; i++) {
        line = strchr(line, ' ');
        if (line != NULL)
            line++;
    }
    if (line != NULL) {
        line[strcspn(line, " ")] = '\0';
        unescape(line);
    }
    return line;
}

/* 1 when a mount begins at `path`, 0 when not, -EOPNOTSUPP when this kernel cannot tell. */
static int begins_mount(const char *path)
{
    struct statx st;
    if (statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, 0, &st) < 0)
        return 0;
    if ((st.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT) == 0)
        return -EOPNOTSUPP;
    return (st.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
}

static bool is_replaced(const char *path)
{
    return paths_within(path, "/proc") || paths_within(path, "/dev/shm") ||
           paths_within(path, "/dev/pts");
}

/* Are both of one file system? */
static bool is_same_device(const char *a, const char *b)
{
    struct stat of_a, of_b;
    return stat(a, &of_a) == 0 && stat(b, &of_b) == 0 && of_a.st_dev == of_b.st_dev;
}

/* Does the mount point lie on a file system that bubblewrap made for this view: its root, /dev, or
 * the private /tmp? (zygote_plan() takes only views whose root is bubblewrap's own.) */
static bool lies_on_ours(const struct fresh *f, const char *path)
{
    autofree char *around = mem_strdup(path);
    char *slash = strrchr(around, '/');
    slash[slash == around] = '\0';
    return is_same_device(around, "/") || is_same_device(around, "/dev") ||
           (f->tmp_bytes != NULL && is_same_device(around, "/tmp"));
}

/* One that lies under another mount is not part of what is seen. */
static void note_mount(struct fresh *f, const char *path)
{
    if (is_replaced(path) || begins_mount(path) != 1)
        return;
    f->n_mounts++;
    if (path[1] != '\0' && !lies_on_ours(f, path) && !strv_has(&f->mounts, path))
        strv_add(&f->mounts, path);
    if (f->tmp_bytes == NULL || !paths_within(path, "/tmp") || str_eq(path, "/tmp"))
        return;
    for (size_t i = 0; i < f->carried.len; i++) {
        if (paths_within(path, f->carried.items[i]))
            return;
    }
    strv_add(&f->carried, path);
}

static int note_mounts(struct fresh *f, struct err *e)
{
    FILE *table = fopen("/proc/self/mountinfo", "re");
    char *line = NULL;
    size_t cap = 0;
    if (table == NULL)
        return unavailable(e, "the table of mounts");
    while (getline(&line, &cap, table) > 0) {
        const char *path = mount_point(line);
        if (path != NULL)
            note_mount(f, path);
    }
    free(line);
    fclose(table);
    if (f->n_mounts > FRESH_MOUNTS_MAX || f->carried.len > FRESH_CARRIED_MAX)
        return err_set(
            e, ERR_LIMIT_EXCEEDED,
            "a view of %zu mounts is not kept warm (FRESH_MOUNTS_MAX is %u, and %u below "
            "/tmp)",
            f->n_mounts, FRESH_MOUNTS_MAX, FRESH_CARRIED_MAX);
    return 0;
}

/* The size of the private /tmp, as the plan tells it to bubblewrap; NULL when there is none. */
static char *find_tmp_bytes(const struct plan *p)
{
    const char *words[3] = {"", "", ""};
    const char *at = buf_bytes(&p->args);
    const char *end = at + p->args.len;
    for (; at < end; at += strlen(at) + 1) {
        if (str_eq(at, "/tmp") && str_eq(words[2], "--tmpfs"))
            return mem_strdup(str_eq(words[0], "--size") ? words[1] : "0");
        words[0] = words[1];
        words[1] = words[2];
        words[2] = at;
    }
    return NULL;
}

/* Our id outside, from a map that says "0 OUTSIDE 1". */
static int read_map(const char *path, unsigned *ret)
{
    unsigned inside, count;
    autofree char *line = NULL;
    size_t cap = 0;
    FILE *f = fopen(path, "re");
    ssize_t n = f == NULL ? -1 : getline(&line, &cap, f);
    if (f != NULL)
        fclose(f);
    if (n <= 0 || sscanf(line, "%u %u %u", &inside, ret, &count) != 3 || inside != 0 || count != 1)
        return -1;
    return 0;
}

/* As bubblewrap is told for a cold start. */
static void choose_ids(struct fresh *f, bool namespaces)
{
    if (namespaces && f->uid == 0) {
        f->uid = PLAN_ROOT_SHOWN;
        f->gid = f->gid != 0 ? f->gid : PLAN_ROOT_SHOWN;
    }
    f->map = f->uid != 0 || f->gid != 0;
}

int fresh_init(struct fresh *f, const struct plan *p, struct err *e)
{
    *f = (struct fresh){.tmp_bytes = find_tmp_bytes(p)};
    /* What is mounted on the host from now on is not for us. */
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return unavailable(e, "making the view private");
    if (begins_mount("/") < 0)
        return err_set(e, ERR_SANDBOX_UNAVAILABLE,
                       "this kernel does not tell where mounts begin (Linux 5.8)");
    f->of_root = true;
    if (getuid() == 0 && read_map("/proc/self/uid_map", &f->uid) == 0 &&
        read_map("/proc/self/gid_map", &f->gid) == 0) {
        f->of_root = f->uid == 0;
        choose_ids(f, p->namespaces);
    }
    return note_mounts(f, e);
}

void fresh_fini(struct fresh *f)
{
    strv_fini(&f->mounts);
    strv_fini(&f->carried);
    free(f->tmp_bytes);
    *f = (struct fresh){0};
}

int fresh_check(const struct fresh *f, struct err *e)
{
    for (size_t i = 0; i < f->mounts.len; i++) {
        if (begins_mount(f->mounts.items[i]) != 1)
            return err_set(e, ERR_PATH_PROTECTED,
                           "%.300s changed after the view was built; it has to be built again",
                           f->mounts.items[i]);
    }
    return 0;
}

/* ---- making ---- */

/* What this kernel does not have is no fault. */
static int make_read_only(const char *path)
{
    if (mount(path, path, NULL, MS_BIND | MS_REC, NULL) < 0)
        return errno == ENOENT ? 0 : -1;
    return mount(NULL, path, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | NO_SURPRISES, NULL);
}

/* As bubblewrap and the plan do for a cold start. */
static int make_machine_read_only(const struct fresh *f, struct err *e)
{
    for (size_t i = 0; f->of_root && layout_machine[i] != NULL; i++) {
        if (make_read_only(layout_machine[i]) < 0)
            return unavailable(e, layout_machine[i]);
    }
    return 0;
}

static int make_proc(const struct fresh *f, struct err *e)
{
    static const char *const odd[] = {"/proc/sysrq-trigger", "/proc/irq", "/proc/bus"};
    if (mount("proc", "/proc", "proc", NO_SURPRISES, NULL) < 0)
        return unavailable(e, "a fresh /proc");
    if (make_read_only("/proc/sys") < 0)
        return unavailable(e, "/proc/sys");
    for (size_t i = 0; i < ARRAY_LEN(odd); i++) {
        if (make_read_only(odd[i]) < 0)
            return unavailable(e, odd[i]);
    }
    return make_machine_read_only(f, e);
}

static int make_devices(const struct fresh *f, struct err *e)
{
    autofree char *shm = mem_printf("mode=0755,size=%s", f->tmp_bytes ? f->tmp_bytes : "0");
    if (mount("tmpfs", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, shm) < 0)
        return unavailable(e, "a fresh /dev/shm");
    if (mount("devpts", "/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC,
              "newinstance,ptmxmode=0666,mode=620") < 0)
        return unavailable(e, "a fresh /dev/pts");
    return 0;
}

/* The directories above `path`, and a place of its kind to mount on. */
static int make_place(const char *path, bool is_dir)
{
    autofree char *step = mem_strdup(path);
    for (char *slash = strchr(step + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(step, 0755) < 0 && errno != EEXIST)
            return -1;
        *slash = '/';
    }
    if (is_dir)
        return mkdir(path, 0755) < 0 && errno != EEXIST ? -1 : 0;
    autofd int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    return fd < 0 ? -1 : 0;
}

static int carry(int tree, const char *path)
{
    struct stat st;
    if (fstat(tree, &st) < 0 || make_place(path, S_ISDIR(st.st_mode)) < 0)
        return -1;
    return (int)syscall(SYS_move_mount, tree, "", AT_FDCWD, path, MOVE_MOUNT_F_EMPTY_PATH);
}

static int make_tmp(const struct fresh *f, struct err *e)
{
    int trees[FRESH_CARRIED_MAX];
    int rc = 0;
    size_t n = 0;
    if (f->tmp_bytes == NULL)
        return 0;
    for (; n < f->carried.len && rc == 0; n++) {
        trees[n] = (int)syscall(SYS_open_tree, AT_FDCWD, f->carried.items[n],
                                OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
        rc = trees[n] < 0 ? -1 : 0;
    }
    autofree char *options = mem_printf("mode=1777,size=%s", f->tmp_bytes);
    if (rc == 0 && (mount("tmpfs", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, options) < 0 ||
                    mkdir(SCOPE_HOME, 0700) < 0))
        rc = -1;
    for (size_t i = 0; i < f->carried.len && rc == 0; i++)
        rc = carry(trees[i], f->carried.items[i]);
    if (rc < 0)
        unavailable(e, "a fresh /tmp");
    for (size_t i = 0; i < n; i++)
        fd_close(&trees[i]);
    return rc;
}

static int write_file(const char *path, const char *text)
{
    autofd int fd = open(path, O_WRONLY | O_CLOEXEC);
    return fd < 0 || fd_write_all(fd, text, strlen(text)) < 0 ? -1 : 0;
}

/* As many ids as a cold start has: one. */
static int enter_user(const struct fresh *f, struct err *e)
{
    if (!f->map)
        return 0;
    autofree char *uid = mem_printf("%u 0 1", f->uid);
    autofree char *gid = mem_printf("%u 0 1", f->gid);
    if (unshare(CLONE_NEWUSER) < 0 || write_file("/proc/self/setgroups", "deny") < 0 ||
        write_file("/proc/self/uid_map", uid) < 0 || write_file("/proc/self/gid_map", gid) < 0)
        return unavailable(e, "a user namespace for the command");
    return 0;
}

int fresh_make(const struct fresh *f, struct err *e)
{
    umask(0);
    if (make_proc(f, e) < 0 || make_devices(f, e) < 0 || make_tmp(f, e) < 0)
        return -1;
    return enter_user(f, e);
}
