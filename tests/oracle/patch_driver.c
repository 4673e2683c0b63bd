/* tests/oracle/patch_driver: apply patches to directories, one job a line, for the comparisons with
 * other programs.
 *
 * Standard input: lines "root TAB patch file TAB options", where options are letters: c check only,
 * u unified, v V4A, i inverse (written to "<patch file>.inverse"), d diff (to "<patch file>.diff"),
 * digits 0-9 the components to take off. Standard output, a line for each: the status, "fuzzy" or
 * "exact", and the message; or the error's name and message.
 */
#include "base/mem.h"
#include "core/patch.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void read_file(const char *path, struct buf *out)
{
    autofd int fd = open(path, O_RDONLY | O_CLOEXEC);
    ensure(fd >= 0);
    ssize_t n = 0;
    while ((n = read(fd, buf_reserve(out, 65536), 65536)) > 0)
        buf_commit(out, (size_t)n);
    ensure(n == 0);
}

static void write_beside(const char *path, const char *suffix, const struct buf *content)
{
    autofree char *name = mem_printf("%s%s", path, suffix);
    autofd int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ensure(fd >= 0);
    ensure(write(fd, buf_bytes(content), content->len) == (ssize_t)content->len);
}

static void fill_request(struct patch_request *q, const char *options)
{
    for (; *options != '\0'; options++) {
        switch (*options) {
        case 'c':
            q->check_only = true;
            break;
        case 'u':
            q->format = PATCH_FORMAT_UNIFIED;
            break;
        case 'v':
            q->format = PATCH_FORMAT_V4A;
            break;
        case 'i':
            q->want_inverse = true;
            break;
        case 'd':
            q->want_diff = true;
            break;
        default:
            ensure(*options >= '0' && *options <= '9');
            q->strip_plus_one = (unsigned)(*options - '0') + 1;
        }
    }
}

static void say(const char *a, const char *b, const char *message)
{
    printf("%s %s ", a, b);
    for (; *message != '\0'; message++)
        putchar(*message == '\n' ? ' ' : *message);
    putchar('\n');
    fflush(stdout);
}

static void run_job(const char *root, const char *path, const char *options)
{
    autobuf text = BUF_INIT;
    autofree char *root_path = mem_strdup(root);
    struct workspace ws = {.id = root_path, .root = root_path, .profile = PROFILE_WORKSPACE_WRITE};
    struct patch_request q = {0};
    struct patch_result r = {0};
    struct err e = {0};
    autofd int fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    ensure(fd >= 0);
    ws.root_fd = fd;
    read_file(path, &text);
    q.text = buf_bytes(&text);
    q.text_len = text.len;
    fill_request(&q, options);
    if (patch_apply(&ws, &q, &r, &e) < 0) {
        say(err_info(e.code)->name, "-", e.message);
        return;
    }
    bool fuzzy = false;
    for (size_t i = 0; i < r.n_changes; i++)
        fuzzy |= r.changes[i].fuzzy;
    if (q.want_inverse)
        write_beside(path, ".inverse", &r.inverse);
    if (q.want_diff)
        write_beside(path, ".diff", &r.diff);
    say(patch_status_name(r.status), fuzzy ? "fuzzy" : "exact", r.failure);
    patch_result_fini(&r);
}

int main(void)
{
    autofree char *line = NULL;
    size_t cap = 0;
    ssize_t n = 0;
    while ((n = getline(&line, &cap, stdin)) > 0) {
        line[n - 1] = '\0';
        char *path = strchr(line, '\t');
        char *options = path != NULL ? strchr(path + 1, '\t') : NULL;
        ensure(options != NULL);
        *path++ = '\0';
        *options++ = '\0';
        run_job(line, path, options);
    }
    return 0;
}
