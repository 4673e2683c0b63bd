/* tests/sandbox/hostile_names: ways by which a protected name that is missing may come to be there.
 *
 * Nothing refuses the making; it must be gone when the sandbox has ended, and nothing else with it.
 */
#include "hostile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* Levels of the deep tree; its path is longer than PATH_MAX many times over. */
#define LEVELS 1500
#define CHURNERS 4

static void put_file(const char *name)
{
    int fd = open(name, O_WRONLY | O_CREAT | O_EXCL, 0600);
    allowed(fd, name);
    close(fd);
}

static void by_socket(const char *name)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    strncpy(a.sun_path, name, sizeof(a.sun_path) - 1);
    allowed(bind(fd, (struct sockaddr *)&a, sizeof(a)), "bind");
}

static void by_link(const char *name)
{
    put_file("source");
    allowed(link("source", name), "link");
}

/* A file that never had a name. */
static void by_nameless_file(const char *name)
{
    char path[64];
    int fd = open(".", O_TMPFILE | O_RDWR, 0600);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (fd >= 0)
        allowed(linkat(AT_FDCWD, path, AT_FDCWD, name, AT_SYMLINK_FOLLOW), "linkat");
    else
        put_file(name);
}

/* A device that an ordinary user may make: overlayfs' mark of nothing. */
static void by_whiteout(const char *name)
{
    if (mknod(name, S_IFCHR, 0) < 0)
        put_file(name);
}

static void by_exchange(const char *name)
{
    allowed(mkdir("other", 0700), "mkdir");
    put_file(name);
    if (renameat2(AT_FDCWD, "other", AT_FDCWD, name, RENAME_EXCHANGE) < 0)
        check(errno == ENOENT || errno == EINVAL, "RENAME_EXCHANGE: %s", strerror(errno));
}

/* Each level has a newline in its name and no permissions left behind it. */
static void by_deep_tree(const char *name)
{
    allowed(mkdir(name, 0700), name);
    int dir = open(name, O_RDONLY | O_DIRECTORY);
    for (int i = 0; dir >= 0 && i < LEVELS; i++) {
        if (mkdirat(dir, "a\nb", 0700) < 0)
            break; /* process 1 was quicker */
        int next = openat(dir, "a\nb", O_RDONLY | O_DIRECTORY);
        fchmod(dir, i % 7 == 0 ? 0 : 0700);
        close(dir);
        dir = next;
    }
    if (dir >= 0)
        close(dir);
}

static void by_rename(const char *name)
{
    allowed(mkdir("made", 0700), "mkdir");
    put_file("made/\n");
    allowed(rename("made", name), "rename");
}

static void by_symlink_loop(const char *name)
{
    allowed(symlink(name, name), "symlink");
}

static const struct {
    const char *kind;
    void (*make)(const char *name);
} kinds[] = {
    {"socket", by_socket},     {"link", by_link},         {"nameless", by_nameless_file},
    {"whiteout", by_whiteout}, {"exchange", by_exchange}, {"deep", by_deep_tree},
    {"rename", by_rename},     {"loop", by_symlink_loop},
};

/* args: the kind, the name. */
void make_name(char **args)
{
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        if (strcmp(kinds[i].kind, args[0]) == 0) {
            kinds[i].make(args[1]);
            return;
        }
    }
    check(false, "no such kind");
}

/* One way after another, for ever; that it fails at times is the race. */
static void churn(const char *name, int seed)
{
    char mine[32];
    snprintf(mine, sizeof(mine), "mine%d", seed);
    for (int i = seed;; i++) {
        switch (i % 4) {
        case 0:
            mkdir(name, 0700);
            break;
        case 1:
            mkdir(mine, 0700);
            rename(mine, name);
            break;
        case 2:
            if (symlink("/", mine) == 0)
                rename(mine, name);
            break;
        default:
            close(open(mine, O_WRONLY | O_CREAT, 0600));
            rename(mine, name);
        }
    }
}

/* args: the name, a file to make when all are at it. Never ends. */
void churn_names(char **args)
{
    for (int i = 1; i < CHURNERS; i++) {
        if (fork() == 0) {
            setsid();
            churn(args[0], i);
        }
    }
    put_file(args[1]);
    churn(args[0], 0);
}
