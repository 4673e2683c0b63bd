/* core/root: see root.h. */
#include "core/root.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/utf8.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

/* Places that are not for commands. `always`: not even to read, because what is there is not files
 * but the running system, this server's own secrets included. `below`: what lies in it, too. */
static const struct {
    const char *path;
    bool below;
    bool always;
    const char *why;
} places[] = {
    {"/", false, true, "it is the whole machine"},
    {"/proc", true, true, "it shows every process, this server included"},
    {"/sys", true, true, "it is the kernel's"},
    {"/dev", true, true, "it is the devices'"},
    {"/bin", true, false, "it belongs to the system"},
    {"/sbin", true, false, "it belongs to the system"},
    {"/lib", true, false, "it belongs to the system"},
    {"/lib32", true, false, "it belongs to the system"},
    {"/lib64", true, false, "it belongs to the system"},
    {"/libx32", true, false, "it belongs to the system"},
    {"/boot", true, false, "it belongs to the system"},
    {"/etc", true, false, "it belongs to the system"},
    {"/run", true, false, "it holds the sockets of services"},
    {"/usr", false, false, "it belongs to the system"},
    {"/usr/bin", true, false, "it belongs to the system"},
    {"/usr/sbin", true, false, "it belongs to the system"},
    {"/usr/lib", true, false, "it belongs to the system"},
    {"/usr/lib32", true, false, "it belongs to the system"},
    {"/usr/lib64", true, false, "it belongs to the system"},
    {"/usr/libx32", true, false, "it belongs to the system"},
    {"/usr/libexec", true, false, "it belongs to the system"},
    {"/usr/share", true, false, "it belongs to the system"},
    {"/usr/include", true, false, "it belongs to the system"},
    {"/usr/local", false, false, "programs on everybody's PATH lie in it"},
    {"/usr/local/bin", true, false, "it is on everybody's PATH"},
    {"/usr/local/sbin", true, false, "it is on everybody's PATH"},
    {"/usr/local/lib", true, false, "it belongs to the system"},
    {"/nix/store", true, false, "it belongs to the system"},
    {"/gnu/store", true, false, "it belongs to the system"},
    {"/opt", false, false, "programs lie in it"},
    {"/var", false, false, "it holds the state of services"},
    {"/home", false, false, "it holds every user's files"},
    {"/tmp", false, false, "everybody's temporary files lie in it"},
    {"/var/tmp", false, false, "everybody's temporary files lie in it"},
};

bool root_within(const char *path, const char *dir)
{
    size_t n = strlen(dir);
    if (n == 1)
        return path[0] == '/';
    return strncmp(path, dir, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

static bool is_normal(const char *path)
{
    if (path[0] != '/')
        return false;
    if (path[1] == '\0')
        return true;
    for (const char *at = path; *at != '\0';) {
        size_t n = strcspn(++at, "/");
        if (n == 0 || (n == 1 && at[0] == '.') || (n == 2 && at[0] == '.' && at[1] == '.'))
            return false;
        at += n;
    }
    return true;
}

int root_check_normal(const char *path, struct err *e)
{
    if (path[0] != '/')
        return err_set(e, ERR_CONFIG_INVALID, "\"%.256s\" is not an absolute path", path);
    if (strlen(path) >= PATH_MAX)
        return err_set(e, ERR_CONFIG_INVALID, "the path is longer than PATH_MAX (%d bytes)",
                       PATH_MAX);
    if (!is_normal(path))
        return err_set(e, ERR_CONFIG_INVALID,
                       "\"%.256s\" must be written without empty, \".\" and \"..\" components and "
                       "without a slash at its end",
                       path);
    return 0;
}

int root_check_canonical(const char *path, struct err *e)
{
    char at[PATH_MAX];
    char real[PATH_MAX];
    if (root_check_normal(path, e) < 0)
        return -1;
    strcpy(at, path);
    /* Up to the deepest component that exists; "/" always does. */
    while (realpath(at, real) == NULL) {
        if (errno != ENOENT)
            return err_sys(e, ERR_CONFIG_INVALID, errno, "cannot look at \"%.256s\"", at);
        char *slash = strrchr(at, '/');
        slash[slash == at ? 1 : 0] = '\0';
    }
    if (strcmp(at, real) != 0)
        return err_set(
            e, ERR_CONFIG_INVALID,
            "\"%.256s\" goes through a symbolic link; write the real path (\"%.256s%s\")", path,
            real, path + strlen(at));
    return 0;
}

/* Plans of the sandbox lie in the temporary directory; a command that can write there could change
 * what the next command is allowed to do. */
static int check_plans(const char *path, struct err *e)
{
    const char *tmp = getenv("TMPDIR");
    char real[PATH_MAX];
    if (realpath(tmp != NULL && tmp[0] == '/' ? tmp : "/tmp", real) == NULL ||
        !root_within(real, path))
        return 0;
    return err_set(e, ERR_CONFIG_INVALID,
                   "commands must not write in \"%.256s\": the server's temporary directory "
                   "\"%.256s\" lies in it (set TMPDIR, or use another directory)",
                   path, real);
}

int root_check_place(const char *path, bool writable, struct err *e)
{
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        bool hit =
            places[i].below ? root_within(path, places[i].path) : strcmp(path, places[i].path) == 0;
        if (hit && places[i].always)
            return err_set(e, ERR_CONFIG_INVALID,
                           "\"%.256s\" cannot be used: %s; name a directory of your own", path,
                           places[i].why);
        if (hit && writable)
            return err_set(e, ERR_CONFIG_INVALID,
                           "commands must not write in \"%.256s\": %s; name a directory of your "
                           "own",
                           path, places[i].why);
    }
    return writable ? check_plans(path, e) : 0;
}

static int canonicalise(int fd, const char *path, char real[PATH_MAX], struct stat *ret,
                        struct err *e)
{
    struct stat named;
    if (fstat(fd, ret) < 0 || realpath(path, real) == NULL || stat(real, &named) < 0)
        return err_sys(e, ERR_CONFIG_INVALID, errno, "cannot open the directory \"%.256s\"", path);
    if (ret->st_dev != named.st_dev || ret->st_ino != named.st_ino)
        return err_set(e, ERR_CONFIG_INVALID, "\"%.256s\" changed while it was opened", path);
    if (!utf8_valid(real, strlen(real)))
        return err_set(e, ERR_CONFIG_INVALID, "the real name of \"%.256s\" is not UTF-8", path);
    return 0;
}

int root_open(const char *path, bool writable, struct root *ret, struct err *e)
{
    char real[PATH_MAX];
    struct stat st;
    autofd int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 && errno == ENOTDIR)
        return err_set(e, ERR_CONFIG_INVALID, "\"%.256s\" is not a directory", path);
    if (fd < 0 && errno == ENOENT)
        return err_set(e, ERR_CONFIG_INVALID, "the directory \"%.256s\" does not exist", path);
    if (fd < 0)
        return err_sys(e, ERR_CONFIG_INVALID, errno, "cannot open the directory \"%.256s\"", path);
    if (canonicalise(fd, path, real, &st, e) < 0 || root_check_place(real, writable, e) < 0)
        return -1;
    *ret = (struct root){mem_strdup(real), steal_fd(&fd), st.st_dev, st.st_ino};
    return 0;
}
