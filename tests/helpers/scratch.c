/* tests/helpers/scratch: see scratch.h. */
#include "scratch.h"

#include "unit.h"

#include "base/mem.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

int scratch_up(void **state)
{
    return scratch_up_below(state, "/tmp");
}

int scratch_up_below(void **state, const char *parent)
{
    struct scratch *s = mem_new(struct scratch);
    snprintf(s->dir, sizeof(s->dir), "%s/cs-scratch-XXXXXX", parent);
    assert_non_null(mkdtemp(s->dir));
    s->dir_fd = open(s->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(mkdirat(s->dir_fd, "ws", 0755), 0);
    struct stat st;
    s->ws.id = mem_strdup("scratch");
    s->ws.root = mem_printf("%s/ws", s->dir);
    s->ws.root_fd = openat(s->dir_fd, "ws", O_PATH | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(fstat(s->ws.root_fd, &st), 0);
    s->ws.dev = st.st_dev;
    s->ws.ino = st.st_ino;
    s->ws.profile = PROFILE_WORKSPACE_WRITE;
    *state = s;
    return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)type;
    (void)at;
    return remove(path);
}

int scratch_down(void **state)
{
    struct scratch *s = *state;
    int rc = nftw(s->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    close(s->ws.root_fd);
    close(s->dir_fd);
    free(s->ws.id);
    free(s->ws.root);
    free(s);
    return rc;
}

void scratch_mkdir(struct scratch *s, const char *path)
{
    char part[4096];
    for (size_t i = 0; i <= strlen(path); i++) {
        if (path[i] != '/' && path[i] != '\0')
            continue;
        snprintf(part, sizeof(part), "%.*s", (int)i, path);
        (void)mkdirat(s->ws.root_fd, part, 0755);
    }
    assert_true(scratch_has(s, path));
}

void scratch_put_bytes(struct scratch *s, const char *path, const void *bytes, size_t n)
{
    const char *slash = strrchr(path, '/');
    if (slash != NULL) {
        autofree char *dir = mem_dup(path, (size_t)(slash - path));
        scratch_mkdir(s, dir);
    }
    int fd = openat(s->ws.root_fd, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    for (size_t at = 0; at < n;) {
        ssize_t k = write(fd, (const char *)bytes + at, n - at);
        assert_true(k > 0);
        at += (size_t)k;
    }
    close(fd);
}

void scratch_put(struct scratch *s, const char *path, const char *text)
{
    scratch_put_bytes(s, path, text, strlen(text));
}

struct buf scratch_get(struct scratch *s, const char *path)
{
    struct buf b = BUF_INIT;
    int fd = openat(s->ws.root_fd, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        fail_msg("%s does not exist", path);
    ssize_t n = 0;
    while ((n = read(fd, buf_reserve(&b, 65536), 65536)) > 0)
        buf_commit(&b, (size_t)n);
    assert_int_equal(n, 0);
    close(fd);
    return b;
}

bool scratch_has(struct scratch *s, const char *path)
{
    struct stat st;
    return fstatat(s->ws.root_fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

void scratch_expect(struct scratch *s, const char *path, const char *text)
{
    autobuf b = scratch_get(s, path);
    if (b.len != strlen(text) || memcmp(buf_bytes(&b), text, b.len) != 0)
        fail_msg("%s holds \"%s\", not \"%s\"", path, buf_cstr(&b), text);
}

/* nftw has no argument for its callback. */
static size_t leftovers;

static int count_leftover(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)type;
    leftovers += strncmp(path + at->base, ".codespace-", 11) == 0;
    return 0;
}

size_t scratch_leftovers(struct scratch *s)
{
    leftovers = 0;
    assert_int_equal(nftw(s->dir, count_leftover, 16, FTW_PHYS), 0);
    return leftovers;
}
