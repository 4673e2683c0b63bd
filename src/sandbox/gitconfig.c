/* sandbox/gitconfig: see gitconfig.h. */
#include "sandbox/gitconfig.h"

#include "base/mem.h"

#include <fcntl.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

void gitconfig_read_text(const char *path, char *ret, size_t cap)
{
    struct stat st;
    autofd int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    ssize_t n = fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ? -1 : read(fd, ret, cap - 1);
    ret[n < 0 ? 0 : n] = '\0';
}

void gitconfig_open(struct gitconfig *c, const char *path)
{
    *c = (struct gitconfig){.text = mem_zalloc(GITCONFIG_MAX, 1)};
    gitconfig_read_text(path, c->text, GITCONFIG_MAX);
    c->at = c->text;
}

void gitconfig_close(struct gitconfig *c)
{
    free(steal(c->text));
}

/* Behind the head of a section, in which a name may hold brackets. */
static char *skip_section(char *p)
{
    bool quoted = false;
    for (; *p != '\0'; p++) {
        if (*p == '\\' && p[1] != '\0')
            p++;
        else if (*p == '"')
            quoted = !quoted;
        else if (*p == ']' && !quoted)
            return p + 1;
    }
    return p;
}

/* In place: quotes and escapes are taken out, and what follows the value. */
static char *take_value(char *p)
{
    char *value = p + strspn(p, " \t");
    char *to = value;
    char *end = value; /* behind the last byte that is not blank */
    bool quoted = false;
    for (char *from = value; *from != '\0' && *from != '\r'; from++) {
        if (*from == '"') {
            quoted = !quoted;
            continue;
        }
        if (!quoted && (*from == '#' || *from == ';'))
            break;
        if (*from == '\\' && from[1] != '\0')
            from++;
        *to++ = *from;
        if (quoted || (*from != ' ' && *from != '\t'))
            end = to;
    }
    *end = '\0';
    return value;
}

static char *next_line(struct gitconfig *c)
{
    char *line = c->at;
    size_t n = strcspn(line, "\n");
    c->at = line + n + (line[n] != '\0');
    line[n] = '\0';
    return line + strspn(line, " \t\r");
}

bool gitconfig_next(struct gitconfig *c)
{
    while (*c->at != '\0') {
        char *line = next_line(c);
        if (*line == '[') {
            line++;
            c->including = strncasecmp(line + strspn(line, " \t"), "include", 7) == 0;
            line = skip_section(line);
            line += strspn(line, " \t");
        }
        size_t n = strcspn(line, " \t\r=#;");
        char *equals = line + n + strspn(line + n, " \t");
        if (n == 0 || *equals != '=')
            continue;
        c->value = take_value(equals + 1);
        line[n] = '\0';
        c->key = line;
        return true;
    }
    return false;
}
