/* sys/landlock: see landlock.h. Numbers are the kernel's; its headers may be older than it is. */
#include "sys/landlock.h"

#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule 445
#define SYS_landlock_restrict_self 446
#endif

#define CREATE_VERSION 1u
#define RULE_PATH 1

/* Rights, as bits. */
enum {
    WRITE_FILE = 1,
    REMOVE_DIR = 4,
    REMOVE_FILE,
    MAKE_CHAR,
    MAKE_DIR,
    MAKE_REG,
    MAKE_SOCK,
    MAKE_FIFO,
    MAKE_BLOCK,
    MAKE_SYM,
    REFER,
    TRUNCATE,
};
#define BIT(n) (1ull << (n))
#define NET_BIND BIT(0)
#define NET_CONNECT BIT(1)
#define SCOPE_ABSTRACT BIT(0)
#define SCOPE_SIGNAL BIT(1)

struct path_attr {
    uint64_t allowed;
    int32_t fd;
} __attribute__((packed));

int landlock_version(void)
{
    long version = syscall(SYS_landlock_create_ruleset, NULL, 0, CREATE_VERSION);
    return version < 0 ? 0 : (int)version;
}

/* Every right that changes something and that this version knows. */
static uint64_t changing(int version)
{
    uint64_t rights = BIT(WRITE_FILE);
    for (int i = REMOVE_DIR; i <= MAKE_SYM; i++)
        rights |= BIT(i);
    if (version >= LANDLOCK_REFER)
        rights |= BIT(REFER);
    if (version >= LANDLOCK_TRUNCATE)
        rights |= BIT(TRUNCATE);
    return rights;
}

/* A file has only rights of files. */
static int allow(int set, const char *path, uint64_t rights)
{
    struct stat st;
    autofd int fd = open(path, O_PATH | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? 0 : -errno;
    if (fstat(fd, &st) < 0)
        return -errno;
    if (!S_ISDIR(st.st_mode))
        rights &= BIT(WRITE_FILE) | BIT(TRUNCATE);
    const struct path_attr rule = {rights, fd};
    return syscall(SYS_landlock_add_rule, set, RULE_PATH, &rule, 0) < 0 ? -errno : 0;
}

/* The kernel's struct has the same members. It takes a shorter one as one whose rest is 0, and so
 * does an older kernel. */
static int make_set(const struct landlock_rights *attr, int version)
{
    size_t size = version >= LANDLOCK_SCOPES ? sizeof(*attr)
                  : version >= LANDLOCK_TCP  ? 2 * sizeof(uint64_t)
                                             : sizeof(uint64_t);
    long set = syscall(SYS_landlock_create_ruleset, attr, size, 0);
    return set < 0 ? -errno : (int)set;
}

struct landlock_rights landlock_rights_of(int version, const struct landlock_ask *ask)
{
    struct landlock_rights r = {0};
    if (ask->writable != NULL && version >= LANDLOCK_FILES)
        r.files = changing(version);
    if (ask->no_tcp && version >= LANDLOCK_TCP)
        r.net = NET_BIND | NET_CONNECT;
    if (version >= LANDLOCK_SCOPES)
        r.scopes = SCOPE_ABSTRACT | SCOPE_SIGNAL;
    return r;
}

int landlock_apply_version(int version, const struct landlock_ask *ask)
{
    const struct landlock_rights r = landlock_rights_of(version, ask);
    if ((ask->writable != NULL && r.files == 0) || (r.files | r.net | r.scopes) == 0)
        return -EOPNOTSUPP;
    autofd int set = make_set(&r, version);
    int rc = set < 0 ? set : 0;
    for (size_t i = 0; rc == 0 && ask->writable != NULL && ask->writable[i] != NULL; i++)
        rc = allow(set, ask->writable[i], r.files);
    if (rc == 0 && syscall(SYS_landlock_restrict_self, set, 0) < 0)
        rc = -errno;
    return rc;
}

int landlock_apply(const struct landlock_ask *ask)
{
    return landlock_apply_version(landlock_version(), ask);
}
