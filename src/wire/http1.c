/* wire/http1: see http1.h. Heads; bodies are in http1_chunked.c. */
#include "wire/http1.h"

#include "base/mem.h"

#include <string.h>
#include <strings.h>

enum { TOKEN = 1, VALUE = 2, TARGET = 4 };

/* RFC 9110 5.6.2 token; field values are visible bytes, blanks and bytes from 0x80 on; a target has
 * no blanks. Built once at compile time: every byte of every head is looked up here. */
#define V VALUE
#define VT (VALUE | TARGET)
#define ALL (VALUE | TARGET | TOKEN)
static const unsigned char class_of[256] = {
    ['\t'] = V,           [' '] = V,           ['!'] = ALL,          ['"'] = VT,
    ['#' ... '\''] = ALL, ['('] = VT,          [')'] = VT,           ['*'] = ALL,
    ['+'] = ALL,          [','] = VT,          ['-'] = ALL,          ['.'] = ALL,
    ['/'] = VT,           ['0' ... '9'] = ALL, [':' ... '@'] = VT,   ['A' ... 'Z'] = ALL,
    ['[' ... ']'] = VT,   ['^' ... 'z'] = ALL, ['{'] = VT,           ['|'] = ALL,
    ['}'] = VT,           ['~'] = ALL,         [0x80 ... 0xff] = VT,
};
#undef V
#undef VT
#undef ALL

static const struct {
    const char *text;
    size_t len;
} known_names[] = {{"", 0},
#define HTTP1_KNOWN_TEXT(name, text) {text, sizeof(text) - 1},
                   HTTP1_KNOWN_TABLE(HTTP1_KNOWN_TEXT)
#undef HTTP1_KNOWN_TEXT
};

void http1_head_init(struct http1_head *h, enum http1_kind kind)
{
    /* The header slots need no zeroes: n_headers says which are filled. */
    memset(h, 0, offsetof(struct http1_head, headers));
    memset((char *)h + offsetof(struct http1_head, n_headers), 0,
           sizeof(*h) - offsetof(struct http1_head, n_headers));
    h->kind = kind;
    h->host = -1;
    h->upgrade = -1;
}

static int refuse(struct err *e, const char *why)
{
    return err_set(e, ERR_PARSE_ERROR, "HTTP: %s", why);
}

static size_t run_of(const char *at, size_t n, unsigned class)
{
    size_t i = 0;
    while (i < n && (class_of[(unsigned char)at[i]] & class))
        i++;
    return i;
}

/* "HTTP/1.0" or "HTTP/1.1". */
static int parse_version(const char *at, size_t n, unsigned *ret_minor, struct err *e)
{
    if (n < 8 || memcmp(at, "HTTP/1.", 7) != 0 || (at[7] != '0' && at[7] != '1'))
        return refuse(e, "the version must be HTTP/1.0 or HTTP/1.1");
    *ret_minor = (unsigned)(at[7] - '0');
    return 0;
}

static int parse_request_line(struct http1_head *h, size_t at, size_t end, struct err *e)
{
    const char *d = h->data;
    size_t method = run_of(d + at, end - at, TOKEN);
    if (method == 0 || method > HTTP1_METHOD_MAX || at + method == end || d[at + method] != ' ')
        return refuse(e, "the request line must be a method, one blank, a target, one blank, a "
                         "version");
    size_t target_at = at + method + 1;
    size_t target = run_of(d + target_at, end - target_at, TARGET);
    size_t version_at = target_at + target + 1;
    if (target == 0 || version_at >= end || d[version_at - 1] != ' ' || end - version_at != 8)
        return refuse(e, "the request line must be a method, one blank, a target, one blank, a "
                         "version");
    h->method = (struct http1_slice){(uint32_t)at, (uint32_t)method};
    h->target = (struct http1_slice){(uint32_t)target_at, (uint32_t)target};
    return parse_version(d + version_at, 8, &h->minor, e);
}

static int parse_status_line(struct http1_head *h, size_t at, size_t end, struct err *e)
{
    const char *d = h->data + at;
    size_t n = end - at;
    if (parse_version(d, n, &h->minor, e) < 0)
        return -1;
    /* The blank after the status may be missing with the reason: common, and harmless. */
    if (n < 12 || d[8] != ' ' || d[9] < '1' || d[9] > '5' || d[10] < '0' || d[10] > '9' ||
        d[11] < '0' || d[11] > '9' || (n > 12 && d[12] != ' '))
        return refuse(e, "the status line must be a version, one blank, three digits and a reason");
    h->status = (unsigned)((d[9] - '0') * 100 + (d[10] - '0') * 10 + (d[11] - '0'));
    size_t reason = n > 13 ? n - 13 : 0;
    if (run_of(d + 13, reason, VALUE) != reason)
        return refuse(e, "the reason of the status line holds a control character");
    h->reason = (struct http1_slice){(uint32_t)(reason ? at + 13 : at + n), (uint32_t)reason};
    return 0;
}

static enum http1_known known_of(const char *name, size_t n)
{
    for (size_t i = 1; i < ARRAY_LEN(known_names); i++) {
        if (known_names[i].len == n && strncasecmp(known_names[i].text, name, n) == 0)
            return (enum http1_known)i;
    }
    return HTTP1_OTHER;
}

static struct http1_slice trim(const char *d, size_t at, size_t end)
{
    while (at < end && (d[at] == ' ' || d[at] == '\t'))
        at++;
    while (end > at && (d[end - 1] == ' ' || d[end - 1] == '\t'))
        end--;
    return (struct http1_slice){(uint32_t)at, (uint32_t)(end - at)};
}

static int parse_length(struct http1_head *h, struct http1_slice value, struct err *e)
{
    uint64_t length = 0;
    if (h->body != HTTP1_BODY_NONE)
        return refuse(e, "more than one of Content-Length and Transfer-Encoding");
    if (value.len == 0 || value.len > 18)
        return refuse(e, "Content-Length must be a decimal number of at most 18 digits");
    for (uint32_t i = 0; i < value.len; i++) {
        char c = h->data[value.at + i];
        if (c < '0' || c > '9')
            return refuse(e, "Content-Length must be a decimal number of at most 18 digits");
        length = length * 10 + (uint64_t)(c - '0');
    }
    h->body = HTTP1_BODY_LENGTH;
    h->length = length;
    return 0;
}

static int parse_coding(struct http1_head *h, struct http1_slice value, struct err *e)
{
    if (h->body != HTTP1_BODY_NONE)
        return refuse(e, "more than one of Content-Length and Transfer-Encoding");
    if (!http1_is_ci(h, value, "chunked"))
        return refuse(e, "the only transfer coding is \"chunked\"");
    h->body = HTTP1_BODY_CHUNKED;
    return 0;
}

/* Visit the tokens of a list; false from the visitor ends the walk. */
static struct http1_slice next_token(const struct http1_head *h, struct http1_slice list,
                                     uint32_t *pos)
{
    while (*pos < list.len) {
        const char *start = h->data + list.at + *pos;
        const char *comma = memchr(start, ',', list.len - *pos);
        size_t len = comma == NULL ? list.len - *pos : (size_t)(comma - start);
        size_t at = list.at + *pos;
        *pos += (uint32_t)len + 1;
        struct http1_slice token = trim(h->data, at, at + len);
        if (token.len > 0)
            return token;
    }
    return (struct http1_slice){0, 0};
}

bool http1_list_has(const struct http1_head *h, struct http1_slice list, const char *token)
{
    uint32_t pos = 0;
    for (struct http1_slice t; (t = next_token(h, list, &pos)).len > 0;) {
        if (http1_is_ci(h, t, token))
            return true;
    }
    return false;
}

enum { SAYS_CLOSE = 1, SAYS_KEEP = 2, SAYS_UPGRADE = 4, SAYS_NAMES = 8 };

static unsigned connection_options(const struct http1_head *h)
{
    unsigned said = 0;
    for (uint32_t i = 0; i < h->n_headers; i++) {
        const struct http1_header *header = &h->headers[i];
        if (header->known != HTTP1_CONNECTION && header->known != HTTP1_PROXY_CONNECTION)
            continue;
        uint32_t pos = 0;
        for (struct http1_slice t; (t = next_token(h, header->value, &pos)).len > 0;) {
            said |= http1_is_ci(h, t, "close")        ? SAYS_CLOSE
                    : http1_is_ci(h, t, "keep-alive") ? SAYS_KEEP
                    : http1_is_ci(h, t, "upgrade")    ? SAYS_UPGRADE
                                                      : SAYS_NAMES;
        }
    }
    return said;
}

static int note_header(struct http1_head *h, const struct http1_header *header, struct err *e)
{
    switch (header->known) {
    case HTTP1_CONTENT_LENGTH:
        return parse_length(h, header->value, e);
    case HTTP1_TRANSFER_ENCODING:
        return parse_coding(h, header->value, e);
    case HTTP1_HOST:
        if (h->host >= 0)
            return refuse(e, "more than one Host header");
        h->host = (int)h->n_headers;
        return 0;
    case HTTP1_UPGRADE:
        if (h->upgrade >= 0)
            return refuse(e, "more than one Upgrade header");
        h->upgrade = (int)h->n_headers;
        return 0;
    case HTTP1_EXPECT:
        h->expect_continue = http1_is_ci(h, header->value, "100-continue");
        return h->expect_continue ? 0 : refuse(e, "the only expectation is \"100-continue\"");
    default:
        return 0;
    }
}

static int parse_header_line(struct http1_head *h, size_t at, size_t end, struct err *e)
{
    const char *d = h->data;
    if (d[at] == ' ' || d[at] == '\t')
        return refuse(e, "a header line begins with a blank (folded lines are not accepted)");
    size_t name = run_of(d + at, end - at, TOKEN);
    if (name == 0 || at + name == end || d[at + name] != ':')
        return refuse(e, "a header line must be a name, ':' right after it, and a value");
    size_t value_at = at + name + 1;
    if (run_of(d + value_at, end - value_at, VALUE) != end - value_at)
        return refuse(e, "a header's value holds a control character");
    if (h->n_headers == HTTP1_HEADERS_MAX)
        return err_set(e, ERR_LIMIT_EXCEEDED,
                       "HTTP1_HEADERS_MAX: a message may have at most %u headers; send fewer",
                       HTTP1_HEADERS_MAX);
    struct http1_header *header = &h->headers[h->n_headers];
    header->name = (struct http1_slice){(uint32_t)at, (uint32_t)name};
    header->value = trim(d, value_at, end);
    header->known = known_of(d + at, name);
    if (note_header(h, header, e) < 0)
        return -1;
    h->n_headers++;
    return 0;
}

static int finish_request(struct http1_head *h, struct err *e)
{
    if (h->minor == 0 && h->body == HTTP1_BODY_CHUNKED)
        return refuse(e, "Transfer-Encoding in an HTTP/1.0 message");
    if (h->minor == 1 && h->host < 0)
        return refuse(e, "an HTTP/1.1 request needs a Host header");
    return 0;
}

static int finish_response(struct http1_head *h, struct err *e)
{
    bool bodiless = h->status < 200 || h->status == 204 || h->status == 304;
    if (h->minor == 0 && h->body == HTTP1_BODY_CHUNKED)
        return refuse(e, "Transfer-Encoding in an HTTP/1.0 message");
    if (bodiless)
        h->body = HTTP1_BODY_NONE;
    else if (h->body == HTTP1_BODY_NONE)
        h->body = HTTP1_BODY_CLOSE;
    if (h->body == HTTP1_BODY_CLOSE)
        h->keep_alive = false;
    return 0;
}

static int finish(struct http1_head *h, struct err *e)
{
    unsigned said = connection_options(h);
    h->keep_alive =
        h->minor == 1 ? !(said & SAYS_CLOSE) : (said & SAYS_KEEP) && !(said & SAYS_CLOSE);
    h->wants_upgrade = h->upgrade >= 0 && (said & SAYS_UPGRADE);
    h->names_headers = said & SAYS_NAMES;
    return h->kind == HTTP1_REQUEST ? finish_request(h, e) : finish_response(h, e);
}

/* One line without its CRLF. 1: it was the empty line that ends the head. */
static int parse_line(struct http1_head *h, size_t at, size_t end, struct err *e)
{
    if (at == 0 && end == 0)
        return refuse(e, "the message begins with an empty line");
    if (at == end)
        return finish(h, e) < 0 ? -1 : 1;
    if (at > 0)
        return parse_header_line(h, at, end, e);
    return h->kind == HTTP1_REQUEST ? parse_request_line(h, at, end, e)
                                    : parse_status_line(h, at, end, e);
}

static int too_long(struct err *e)
{
    return err_set(e, ERR_LIMIT_EXCEEDED,
                   "HTTP1_HEAD_MAX: the head of a message may have at most %u bytes; send shorter "
                   "headers",
                   HTTP1_HEAD_MAX);
}

int http1_head_parse(struct http1_head *h, const char *data, size_t n, struct err *e)
{
    h->data = data;
    /* The search for the end of a line that has not come yet starts anew with each call; the
     * callers read at least a few hundred bytes at a time or have little to search. */
    while (h->scanned < n) {
        const char *lf = memchr(data + h->scanned, '\n', n - h->scanned);
        if (lf == NULL)
            break;
        size_t end = (size_t)(lf - data);
        if (end >= HTTP1_HEAD_MAX)
            return too_long(e);
        if (end == h->scanned || data[end - 1] != '\r')
            return refuse(e, "a line ends with LF alone; CRLF is required");
        int r = parse_line(h, h->scanned, end - 1, e);
        if (r < 0)
            return r;
        h->scanned = (uint32_t)end + 1;
        if (r == 1) {
            h->size = h->scanned;
            return 1;
        }
    }
    return n >= HTTP1_HEAD_MAX ? too_long(e) : 0;
}

void http1_head_answers_head(struct http1_head *h)
{
    /* A body that would have lasted until the end of the connection makes it no shorter-lived. */
    h->body = HTTP1_BODY_NONE;
}

bool http1_is(const struct http1_head *h, struct http1_slice s, const char *text)
{
    return strlen(text) == s.len && memcmp(h->data + s.at, text, s.len) == 0;
}

bool http1_is_ci(const struct http1_head *h, struct http1_slice s, const char *text)
{
    return strlen(text) == s.len && strncasecmp(h->data + s.at, text, s.len) == 0;
}

const struct http1_header *http1_find(const struct http1_head *h, const char *name, bool *ret_more)
{
    const struct http1_header *found = NULL;
    bool more = false;
    for (uint32_t i = 0; i < h->n_headers; i++) {
        if (!http1_is_ci(h, h->headers[i].name, name))
            continue;
        more = found != NULL;
        found = found == NULL ? &h->headers[i] : found;
    }
    if (ret_more != NULL)
        *ret_more = more;
    return found;
}

static bool named_by_connection(const struct http1_head *h, struct http1_slice name)
{
    for (uint32_t i = 0; i < h->n_headers; i++) {
        const struct http1_header *header = &h->headers[i];
        if (header->known != HTTP1_CONNECTION)
            continue;
        uint32_t pos = 0;
        for (struct http1_slice t; (t = next_token(h, header->value, &pos)).len > 0;) {
            if (t.len == name.len && strncasecmp(h->data + t.at, h->data + name.at, t.len) == 0)
                return true;
        }
    }
    return false;
}

bool http1_is_hop(const struct http1_head *h, const struct http1_header *header)
{
    if (header->known == HTTP1_EXPECT || header->known == HTTP1_TRAILER)
        return false; /* end to end, or useless without what it announces */
    if (header->known != HTTP1_OTHER)
        return true;
    return h->names_headers && named_by_connection(h, header->name);
}

void http1_copy_headers(const struct http1_head *h, struct buf *out)
{
    for (uint32_t i = 0; i < h->n_headers; i++) {
        const struct http1_header *header = &h->headers[i];
        if (http1_is_hop(h, header))
            continue;
        size_t total = (size_t)header->name.len + header->value.len + 4;
        char *at = buf_reserve(out, total);
        memcpy(at, h->data + header->name.at, header->name.len);
        at += header->name.len;
        *at++ = ':';
        *at++ = ' ';
        memcpy(at, h->data + header->value.at, header->value.len);
        at += header->value.len;
        *at++ = '\r';
        *at = '\n';
        buf_commit(out, total);
    }
}
