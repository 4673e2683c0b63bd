/* sys/trusted: see trusted.h. */
#include "sys/trusted.h"

#include "base/mem.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *fault_of_file(const char *path, const struct stat *st)
{
    if (!S_ISREG(st->st_mode))
        return "is not a regular file";
    if (st->st_uid != 0 && st->st_uid != geteuid())
        return "belongs to another user, who could exchange it";
    if ((st->st_mode & (S_IWGRP | S_IWOTH)) != 0)
        return "can be written by others; chmod go-w";
    return access(path, X_OK) < 0 ? "is not executable" : NULL;
}

/* In a directory with the sticky bit only the owner of a file exchanges it. */
static const char *fault_of_dir(const struct stat *st)
{
    if (st->st_uid != 0 && st->st_uid != geteuid())
        return "lies in a directory of another user, who could exchange it";
    if ((st->st_mode & S_IWOTH) != 0 && (st->st_mode & S_ISVTX) == 0)
        return "lies in a directory that everybody can write";
    return NULL;
}

static int check_dirs(const char *real, const char **ret_why)
{
    struct stat st;
    autofree char *dir = mem_strdup(real);
    for (char *slash = strrchr(dir, '/'); slash != NULL; slash = strrchr(dir, '/')) {
        *slash = '\0';
        if (stat(dir[0] == '\0' ? "/" : dir, &st) < 0)
            return -errno;
        *ret_why = fault_of_dir(&st);
        if (*ret_why != NULL)
            return -EPERM;
    }
    return 0;
}

int trusted_program(const char *path, char **ret_real, const char **ret_why)
{
    struct stat st;
    *ret_why = "";
    autofree char *real = realpath(path, NULL);
    if (real == NULL || stat(real, &st) < 0)
        return -errno;
    *ret_why = fault_of_file(real, &st);
    if (*ret_why != NULL)
        return -EPERM;
    int rc = check_dirs(real, ret_why);
    if (rc == 0)
        *ret_real = steal(real);
    return rc;
}
