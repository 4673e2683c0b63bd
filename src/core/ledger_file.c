/* core/ledger_file: see ledger_file.h. */
#include "core/ledger_file.h"

#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What SQLite may put beside the file in WAL mode, and a rollback journal of an older mode. */
static const char *const side_files[] = {"-wal", "-shm", "-journal"};

/* mkdir -p, 0700 from birth; what exists is not touched. */
static int make_parents(const char *dir, struct err *e)
{
    autofree char *path = mem_strdup(dir);
    for (char *p = path + 1; *p != '\0'; p++) {
        if (*p != '/')
            continue;
        *p = '\0';
        if (mkdir(path, 0700) < 0 && errno != EEXIST)
            return err_sys(e, ERR_LEDGER_FAILED, errno, "cannot create %s for the ledger", path);
        *p = '/';
    }
    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        return err_sys(e, ERR_LEDGER_FAILED, errno, "cannot create %s for the ledger", path);
    return 0;
}

/* Whoever may rename a directory on the way, or the file in it, may give us another database. */
static int check_not_everybodys(const char *dir, struct err *e)
{
    struct stat st = {0};
    if (stat(dir, &st) < 0)
        return err_sys(e, ERR_LEDGER_FAILED, errno, "cannot use the ledger's directory %s", dir);
    if ((st.st_mode & S_IWOTH) != 0 && (st.st_mode & S_ISVTX) == 0)
        return err_set(e, ERR_LEDGER_FAILED,
                       "everybody may write to %s, which the ledger's path goes through; choose "
                       "another path, or chmod o-w it",
                       dir);
    return 0;
}

static int check_ancestors(const char *dir, struct err *e)
{
    autofree char *path = mem_strdup(dir);
    for (char *slash = path + strlen(path); slash > path; slash = strrchr(path, '/')) {
        *slash = '\0';
        if (*path != '\0' && check_not_everybodys(path, e) < 0)
            return -1;
    }
    return 0;
}

static int check_parent(const char *dir, struct err *e)
{
    struct stat st = {0};
    if (stat(dir, &st) < 0)
        return err_sys(e, ERR_LEDGER_FAILED, errno, "cannot use the ledger's directory %s", dir);
    if (!S_ISDIR(st.st_mode))
        return err_set(e, ERR_LEDGER_FAILED, "%s is not a directory; the ledger goes into one",
                       dir);
    if (st.st_uid != geteuid() && st.st_uid != 0)
        return err_set(e, ERR_LEDGER_FAILED,
                       "the ledger's directory %s belongs to another user (uid %u); choose one of "
                       "your own",
                       dir, (unsigned)st.st_uid);
    return check_ancestors(dir, e);
}

int ledger_file_resolve(const char *path, bool create, char **ret, struct err *e)
{
    const char *slash = strrchr(path, '/');
    const char *leaf = slash == NULL ? path : slash + 1;
    if (*leaf == '\0' || str_eq(leaf, ".") || str_eq(leaf, ".."))
        return err_set(e, ERR_LEDGER_FAILED,
                       "\"%s\" does not name a file; the ledger's path ends in a file name", path);
    autofree char *dir = NULL;
    if (slash == NULL)
        dir = mem_strdup(".");
    else
        dir = slash == path ? mem_strdup("/") : mem_dup(path, (size_t)(slash - path));
    if (create && make_parents(dir, e) < 0)
        return -1;
    char real[PATH_MAX];
    if (realpath(dir, real) == NULL)
        return err_sys(e, ERR_LEDGER_FAILED, errno, "cannot use the ledger's directory %s", dir);
    if (check_parent(real, e) < 0)
        return -1;
    *ret = mem_printf("%s/%s", str_eq(real, "/") ? "" : real, leaf);
    return 0;
}

static int check_kind(const char *file, const struct stat *st, struct err *e)
{
    if (S_ISLNK(st->st_mode))
        return err_set(e, ERR_LEDGER_FAILED,
                       "%s is a symbolic link; give the ledger's path without one", file);
    if (!S_ISREG(st->st_mode))
        return err_set(e, ERR_LEDGER_FAILED,
                       "%s is not a regular file; the ledger needs one of its own", file);
    if (st->st_uid != geteuid())
        return err_set(e, ERR_LEDGER_FAILED,
                       "%s belongs to another user (uid %u); the ledger must be a file of the user "
                       "that runs the gateway",
                       file, (unsigned)st->st_uid);
    if (st->st_nlink != 1)
        return err_set(e, ERR_LEDGER_FAILED,
                       "%s has %lu names (hard links); a gateway under another name would not be "
                       "seen, so the ledger must have one name",
                       file, (unsigned long)st->st_nlink);
    return 0;
}

/* 1: there and fine, 0: not there, -1. Tightens the mode of what is there. */
static int check_existing(const char *file, struct err *e)
{
    autofd int fd = open(file, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return 0;
    struct stat st = {0};
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_sys(e, ERR_LEDGER_FAILED, errno, "cannot look at %s", file);
    if (check_kind(file, &st, e) < 0)
        return -1;
    char self[32];
    snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
    if ((st.st_mode & 0077) != 0 && chmod(self, 0600) < 0)
        return err_sys(e, ERR_LEDGER_FAILED, errno,
                       "others may read %s and its mode cannot be set to 0600", file);
    return 1;
}

static int create_file(const char *file, struct err *e)
{
    autofd int fd = open(file, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_sys(e, ERR_LEDGER_FAILED, errno, "cannot create the ledger %s", file);
    return 0;
}

int ledger_file_check(const char *file, bool create, struct err *e)
{
    for (size_t i = 0; i < ARRAY_LEN(side_files); i++) {
        autofree char *side = mem_printf("%s%s", file, side_files[i]);
        if (check_existing(side, e) < 0)
            return -1;
    }
    int there = check_existing(file, e);
    if (there != 0)
        return there < 0 ? -1 : 0;
    if (!create)
        return err_set(e, ERR_LEDGER_FAILED,
                       "there is no ledger %s; it is made when a gateway starts with that path",
                       file);
    return create_file(file, e);
}

bool ledger_file_was_open(const char *file)
{
    autofree char *log = mem_printf("%s-wal", file);
    struct stat st = {0};
    return lstat(log, &st) == 0 && st.st_size > 0;
}

/* The holder's process id as it wrote it, or 0 when it did not. */
static uint64_t read_holder(int fd)
{
    char text[24] = "";
    uint64_t pid = 0;
    ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
    if (n <= 0)
        return 0;
    text[strcspn(text, "\n")] = '\0';
    return num_parse_u64(text, 1, INT_MAX, &pid) < 0 ? 0 : pid;
}

static int refuse_second(int fd, const char *file, struct err *e)
{
    char who[48] = "";
    uint64_t pid = read_holder(fd);
    if (pid != 0)
        snprintf(who, sizeof(who), " (process %llu)", (unsigned long long)pid);
    return err_set(e, ERR_LEDGER_FAILED,
                   "another gateway%s has the ledger %s open; two would answer for each other's "
                   "operations. Stop it, or give this one another ledger",
                   who, file);
}

static int write_holder(int fd, const char *name, struct err *e)
{
    char text[24];
    int n = snprintf(text, sizeof(text), "%d\n", (int)getpid());
    if (ftruncate(fd, 0) < 0 || pwrite(fd, text, (size_t)n, 0) != n)
        return err_sys(e, ERR_LEDGER_FAILED, errno, "cannot write %s", name);
    return 0;
}

int ledger_file_lock(const char *file, struct err *e)
{
    autofree char *name = mem_printf("%s-gateway", file);
    if (check_existing(name, e) < 0)
        return -1;
    autofd int fd = open(name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600);
    struct stat st = {0};
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_sys(e, ERR_LEDGER_FAILED, errno, "cannot open %s", name);
    if (check_kind(name, &st, e) < 0)
        return -1;
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (fcntl(fd, F_OFD_SETLK, &lock) < 0) {
        if (errno == EAGAIN || errno == EACCES)
            return refuse_second(fd, file, e);
        return err_sys(e, ERR_LEDGER_FAILED, errno,
                       "cannot lock %s; the ledger needs a local file system with locks", name);
    }
    if (write_holder(fd, name, e) < 0)
        return -1;
    return steal_fd(&fd);
}
