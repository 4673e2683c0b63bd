/* tests/helpers/base_dir: see base_dir.h. */
#include "base_dir.h"

#include "unit.h"

#include "base/buf.h"
#include "base/mem.h"

#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static char base[PATH_MAX];

const char *base_dir(void)
{
    return base;
}

char *base_dir_fill(const char *text)
{
    autobuf out = BUF_INIT;
    for (; *text != '\0'; text++) {
        if (*text == '@')
            buf_puts(&out, base);
        else
            buf_putc(&out, *text);
    }
    return buf_steal(&out);
}

void base_dir_mkdirs(const char *path)
{
    autofree char *copy = mem_strdup(path);
    for (char *at = strchr(copy + 1, '/'); at != NULL; at = strchr(at + 1, '/')) {
        *at = '\0';
        (void)mkdir(copy, 0755);
        *at = '/';
    }
    (void)mkdir(copy, 0755);
}

void base_dir_write(const char *path, const char *text, mode_t mode)
{
    autofd int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    assert_int_equal(fchmod(fd, mode), 0);
}

int base_dir_up(void **state)
{
    (void)state;
    static const char *const dirs[] = {"@/a/in",   "@/b",    "@/a_secret", "@/data",
                                       "@/x=y",    "@/.dot", "@/...",      "@/\xc3\xa9 t\xc3\xa9",
                                       "@/tmp/in", NULL};
    const char *tmp = getenv("TMPDIR");
    autofree char *template = mem_printf("%s/registry-XXXXXX", tmp == NULL ? "/tmp" : tmp);
    if (mkdtemp(template) == NULL || realpath(template, base) == NULL)
        return -1;
    for (size_t i = 0; dirs[i] != NULL; i++) {
        autofree char *path = base_dir_fill(dirs[i]);
        base_dir_mkdirs(path);
    }
    autofree char *link_path = base_dir_fill("@/link");
    autofree char *target = base_dir_fill("@/a");
    autofree char *file = base_dir_fill("@/file");
    base_dir_write(file, "x", 0644);
    return symlink(target, link_path);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

int base_dir_down(void **state)
{
    (void)state;
    return nftw(base, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

int base_dir_load(struct registry *r, const char *text, struct err *e)
{
    autofree char *real = base_dir_fill(text);
    return registry_load_text(r, "c.json", real, strlen(real), e);
}
