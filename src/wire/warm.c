/* wire/warm: see warm.h. */
#include "wire/warm.h"

#include "base/mem.h"

#include <stdint.h>
#include <string.h>

#define MAGIC 0x52575343u /* "CSWR" */
#define FLAG_TTY 1u
#define FLAG_KEEP 2u
#define FLAGS_ALL (FLAG_TTY | FLAG_KEEP)
enum head { HEAD_MAGIC, HEAD_FLAGS, HEAD_CWD, HEAD_ARGV, HEAD_ENV, HEAD_WORDS };
#define HEAD_BYTES (HEAD_WORDS * 4u)

void warm_command_fini(struct warm_command *c)
{
    free(c->cwd);
    strv_fini(&c->argv);
    strv_fini(&c->env);
    *c = (struct warm_command){0};
}

static void put_u32(struct buf *out, size_t v)
{
    const unsigned char bytes[4] = {v & 255, (v >> 8) & 255, (v >> 16) & 255, (v >> 24) & 255};
    buf_put(out, bytes, sizeof(bytes));
}

static uint32_t get_u32(const char *bytes)
{
    const unsigned char *b = (const unsigned char *)bytes;
    return b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

static size_t list_bytes(const struct strv *v)
{
    size_t n = 0;
    for (size_t i = 0; i < v->len; i++)
        n += strlen(v->items[i]) + 1;
    return n;
}

static void put_list(const struct strv *v, struct buf *out)
{
    for (size_t i = 0; i < v->len; i++)
        buf_put(out, v->items[i], strlen(v->items[i]) + 1);
}

void warm_command_write(const struct helper_request *r, struct buf *out)
{
    put_u32(out, MAGIC);
    put_u32(out, (r->tty ? FLAG_TTY : 0) | (r->keep ? FLAG_KEEP : 0));
    put_u32(out, strlen(r->cwd) + 1);
    put_u32(out, list_bytes(&r->argv));
    put_u32(out, list_bytes(&r->env));
    buf_put(out, r->cwd, strlen(r->cwd) + 1);
    put_list(&r->argv, out);
    put_list(&r->env, out);
}

static int malformed(struct err *e, const char *what)
{
    return err_set(e, ERR_PARSE_ERROR, "a message to the warm sandbox: %s", what);
}

static void take_list(const char *bytes, size_t n, struct strv *out)
{
    for (size_t i = 0; i < n; i += strlen(bytes + i) + 1)
        strv_add(out, bytes + i);
}

static int check_lengths(const char *bytes, size_t n, const uint32_t len[3], struct err *e)
{
    size_t at = HEAD_BYTES;
    for (int i = 0; i < 3; i++) {
        if (len[i] > n - at)
            return malformed(e, "a part is longer than the whole");
        at += len[i];
        if (len[i] > 0 && bytes[at - 1] != '\0')
            return malformed(e, "a text has no end");
    }
    return at == n ? 0 : malformed(e, "bytes after the last part");
}

static int check_command(const struct warm_command *c, size_t cwd_len, struct err *e)
{
    if (c->cwd[0] != '/' || strlen(c->cwd) + 1 != cwd_len)
        return malformed(e, "the working directory is not one absolute path");
    if (c->argv.len == 0 || c->argv.items[0][0] == '\0')
        return malformed(e, "there is no program");
    for (size_t i = 0; i < c->env.len; i++) {
        if (c->env.items[i][0] == '=' || strchr(c->env.items[i], '=') == NULL)
            return malformed(e, "a variable is not NAME=VALUE");
    }
    return 0;
}

int warm_command_read(const char *bytes, size_t n, struct warm_command *ret, struct err *e)
{
    if (n < HEAD_BYTES || n > WARM_MESSAGE_MAX || get_u32(bytes) != MAGIC)
        return malformed(e, "this is none");
    uint32_t flags = get_u32(bytes + 4 * HEAD_FLAGS);
    uint32_t len[3];
    for (int i = 0; i < 3; i++)
        len[i] = get_u32(bytes + 4 * (HEAD_CWD + i));
    if ((flags & ~FLAGS_ALL) != 0 || len[0] == 0)
        return malformed(e, "unknown flags or no working directory");
    if (check_lengths(bytes, n, len, e) < 0)
        return -1;
    struct warm_command c = {.tty = flags & FLAG_TTY, .keep = flags & FLAG_KEEP};
    const char *at = bytes + HEAD_BYTES;
    c.cwd = mem_strdup(at);
    take_list(at + len[0], len[1], &c.argv);
    take_list(at + len[0] + len[1], len[2], &c.env);
    if (check_command(&c, len[0], e) < 0) {
        warm_command_fini(&c);
        return -1;
    }
    *ret = c;
    return 0;
}
