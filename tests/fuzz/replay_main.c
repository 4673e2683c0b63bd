/* tests/fuzz/replay_main: run a fuzz target over its corpus as an ordinary test.
 *
 * The target is the libFuzzer entry point that is linked with this file. Every regular file of the
 * directories in argv is given to it once, in order of name; a directory without files is an error,
 * so that a corpus that was not found cannot pass.
 */
#include "base/buf.h"
#include "base/mem.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* 1 when the file was run, 0 when it is not a regular file, -1 when it cannot be read. */
static int run_file(int dir, const char *name)
{
    autofd int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0)
        return -1;
    if (!S_ISREG(st.st_mode))
        return 0;
    autobuf b = BUF_INIT;
    ssize_t n = 0;
    while ((n = read(fd, buf_reserve(&b, 65536), 65536)) > 0)
        buf_commit(&b, (size_t)n);
    if (n < 0)
        return -1;
    fprintf(stderr, "%s\n", name);
    LLVMFuzzerTestOneInput((const uint8_t *)buf_bytes(&b), b.len);
    return 1;
}

static long run_directory(const char *path)
{
    struct dirent **names = NULL;
    int n = scandir(path, &names, NULL, alphasort);
    autofd int dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    long count = 0;
    for (int i = 0; i < n; i++) {
        int rc = names[i]->d_name[0] == '.' ? 0 : run_file(dir, names[i]->d_name);
        if (rc < 0)
            fprintf(stderr, "%s/%s cannot be read\n", path, names[i]->d_name);
        count = rc < 0 || count < 0 ? -1 : count + rc;
        free(names[i]);
    }
    free(names);
    return count;
}

int main(int argc, char **argv)
{
    long total = 0;
    for (int i = 1; i < argc; i++) {
        long n = run_directory(argv[i]);
        if (n <= 0) {
            fprintf(stderr, "%s: no corpus there\n", argv[i]);
            return 1;
        }
        total += n;
    }
    printf("%ld inputs\n", total);
    return argc > 1 ? 0 : 1;
}
