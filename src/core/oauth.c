/* core/oauth: see oauth.h. */
#include "core/oauth.h"

#include "base/jsonw.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "core/oauth_keys.h"
#include "sys/fd.h"
#include "wire/host.h"

#include <errno.h>
#include <fcntl.h>
#include <nettle/sha2.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

/* Tokens that are remembered as verified; a power of two. */
#define SEEN 64u
#define DIGEST 32u

struct seen {
    unsigned char digest[DIGEST];
    struct oauth_principal whose;
    int64_t until_s; /* 0: unused */
};

struct oauth {
    char *issuer, *resource, *keys_file, *authority, *metadata_url;
    const char *path; /* of `resource`: "" or "/..." */
    struct strv scopes;
    char *scope_text;
    struct oauth_keys keys;
    struct stat stamp; /* of the key file as it was read */
    int64_t looked_s;  /* when the key file was looked at last */
    struct seen seen[SEEN];
};

/* ---- the start ---- */

static int not_a_uri(const char *what, const char *uri, struct err *e)
{
    return err_set(e, ERR_INVALID_ARGUMENT,
                   "%s \"%.128s\" is not acceptable: an https:// URI without a query, a fragment "
                   "or a user is wanted (http:// for loopback only)",
                   what, uri);
}

/* *ret_rest: its path; *ret_authority (caller frees): as it stands there. */
static int check_uri(const char *what, const char *uri, char **ret_authority, const char **ret_path,
                     struct err *e)
{
    bool secure = str_starts(uri, "https://");
    struct host host;
    uint16_t port = 0;
    if (!secure && !str_starts(uri, "http://"))
        return not_a_uri(what, uri, e);
    const char *at = uri + strlen(secure ? "https://" : "http://");
    size_t n = strcspn(at, "/");
    bool plain = strlen(uri) <= OAUTH_URI_MAX && strpbrk(uri, "?#\"\\<> \t\r\n") == NULL;
    for (const char *p = uri; *p != '\0'; p++)
        plain = plain && *p > ' ' && *p < 0x7f;
    if (!plain || host_parse_authority(at, n, secure ? 443 : 80, &host, &port, NULL) < 0)
        return not_a_uri(what, uri, e);
    bool loopback = host.kind == HOST_NAME ? strcmp(host.text, "localhost") == 0
                                           : host_addr_class(&host.addr) == ADDR_LOOPBACK;
    if (!secure && !loopback)
        return not_a_uri(what, uri, e);
    *ret_authority = mem_dup(at, n);
    *ret_path = at + n;
    return 0;
}

static int take_resource(struct oauth *o, const char *uri, struct err *e)
{
    o->resource = mem_strdup(uri);
    if (check_uri("--oauth-resource", o->resource, &o->authority, &o->path, e) < 0)
        return -1;
    if (strcmp(o->path, "/") == 0)
        o->path = "";
    int head = (int)(strstr(uri, "://") + 3 - uri) + (int)strlen(o->authority);
    o->metadata_url = mem_printf("%.*s" OAUTH_WELL_KNOWN "%s", head, uri, o->path);
    return 0;
}

static int take_issuer(struct oauth *o, const char *uri, struct err *e)
{
    autofree char *authority = NULL;
    const char *path = NULL;
    o->issuer = mem_strdup(uri);
    return check_uri("--oauth-issuer", o->issuer, &authority, &path, e);
}

/* RFC 6749: of visible ASCII without quotation marks and backslashes. */
static int take_scopes(struct oauth *o, const char *text, struct err *e)
{
    autobuf all = BUF_INIT;
    if (text != NULL && strlen(text) > OAUTH_SCOPES_MAX)
        return err_set(e, ERR_INVALID_ARGUMENT, "OAUTH_SCOPES_MAX: --oauth-scope is longer than %u",
                       OAUTH_SCOPES_MAX);
    for (const char *p = text != NULL ? text : ""; *p != '\0';) {
        size_t n = strcspn(p, " ");
        autofree char *one = mem_dup(p, n);
        for (size_t i = 0; i < n; i++) {
            if (one[i] <= ' ' || one[i] >= 0x7f || one[i] == '"' || one[i] == '\\')
                return err_set(e, ERR_INVALID_ARGUMENT, "--oauth-scope: \"%.64s\" is no scope",
                               one);
        }
        if (n > 0) {
            buf_printf(&all, "%s%s", all.len > 0 ? " " : "", one);
            strv_add(&o->scopes, one);
        }
        p += n + strspn(p + n, " ");
    }
    o->scope_text = buf_steal(&all);
    return 0;
}

static int read_keys(struct oauth *o, struct err *e)
{
    struct oauth_keys keys;
    autobuf text = BUF_INIT;
    autofd int fd = open(o->keys_file, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &o->stamp) < 0)
        return err_sys(e, ERR_CONFIG_INVALID, errno, "--oauth-keys %.256s", o->keys_file);
    if (!S_ISREG(o->stamp.st_mode))
        return err_set(e, ERR_CONFIG_INVALID, "--oauth-keys %.256s: is not a regular file",
                       o->keys_file);
    while (text.len <= OAUTH_KEYS_BYTES_MAX) {
        ssize_t n = fd_read(fd, buf_reserve(&text, 4096), 4096);
        if (n < 0)
            return err_sys(e, ERR_CONFIG_INVALID, (int)n, "--oauth-keys %.256s", o->keys_file);
        if (n == 0)
            break;
        buf_commit(&text, (size_t)n);
    }
    if (text.len > OAUTH_KEYS_BYTES_MAX)
        return err_set(e, ERR_CONFIG_INVALID,
                       "OAUTH_KEYS_BYTES_MAX: --oauth-keys %.256s is larger than %u bytes",
                       o->keys_file, OAUTH_KEYS_BYTES_MAX);
    if (oauth_keys_read(buf_bytes(&text), text.len, &keys, e) < 0)
        return err_wrap(e, "--oauth-keys");
    oauth_keys_fini(&o->keys);
    o->keys = keys;
    memset(o->seen, 0, sizeof(o->seen));
    return 0;
}

static int set_up(struct oauth *o, const struct oauth_options *options, struct err *e)
{
    if (options->issuer == NULL || options->resource == NULL || options->keys_file == NULL)
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "--oauth-issuer URI, --oauth-resource URI and --oauth-keys FILE belong "
                       "together; one of them is missing");
    o->keys_file = mem_strdup(options->keys_file);
    if (take_issuer(o, options->issuer, e) < 0 || take_resource(o, options->resource, e) < 0 ||
        take_scopes(o, options->scopes, e) < 0)
        return -1;
    return read_keys(o, e);
}

struct oauth *oauth_new(const struct oauth_options *options, struct err *e)
{
    struct oauth *o = mem_new(struct oauth);
    if (set_up(o, options, e) == 0)
        return o;
    oauth_free(o);
    return NULL;
}

void oauth_free(struct oauth *o)
{
    if (o == NULL)
        return;
    free(o->issuer);
    free(o->resource);
    free(o->keys_file);
    free(o->authority);
    free(o->metadata_url);
    free(o->scope_text);
    strv_fini(&o->scopes);
    oauth_keys_fini(&o->keys);
    free(o);
}

/* ---- a token ---- */

static bool file_is_new(const struct oauth *o)
{
    struct stat now;
    return stat(o->keys_file, &now) == 0 &&
           (now.st_ino != o->stamp.st_ino || now.st_size != o->stamp.st_size ||
            now.st_mtim.tv_sec != o->stamp.st_mtim.tv_sec ||
            now.st_mtim.tv_nsec != o->stamp.st_mtim.tv_nsec);
}

/* A file that cannot be read leaves the keys as they were; it is not tried again until it
 * changes. */
static void refresh_keys(struct oauth *o)
{
    struct err e;
    if (!file_is_new(o))
        return;
    if (read_keys(o, &e) < 0)
        log_warn("%s; the keys that were read before stay in use", e.message);
    else
        log_info("the keys of the issuer were read again");
}

/* A key that was taken out of the file, or exchanged under its name, counts no longer: not for what
 * was seen with it either. */
static void look_at_keys(struct oauth *o, int64_t now_s)
{
    if (now_s == o->looked_s)
        return;
    o->looked_s = now_s;
    refresh_keys(o);
}

static struct seen *slot_of(struct oauth *o, const char *token, size_t n, unsigned char *digest)
{
    struct sha256_ctx ctx;
    sha256_init(&ctx);
    sha256_update(&ctx, n, (const uint8_t *)token);
    sha256_digest(&ctx, DIGEST, digest);
    return &o->seen[digest[0] % SEEN];
}

static bool was_seen(const struct seen *s, const unsigned char *digest, int64_t now_s)
{
    return now_s < s->until_s && memcmp(s->digest, digest, DIGEST) == 0;
}

static bool scopes_suffice(const struct oauth *o, const struct jwt *t)
{
    for (size_t i = 0; i < o->scopes.len; i++) {
        if (!jwt_has_scope(t, o->scopes.items[i], strlen(o->scopes.items[i])))
            return false;
    }
    return true;
}

bool oauth_principal_same(const struct oauth_principal *a, const struct oauth_principal *b)
{
    return memcmp(a->digest, b->digest, sizeof(a->digest)) == 0;
}

bool oauth_principal_known(const struct oauth_principal *p)
{
    static const struct oauth_principal nobody;
    return !oauth_principal_same(p, &nobody);
}

/* Which claim it is goes in too, so that no subject is taken for a client of the same name. */
static void name_principal(const struct oauth *o, const struct jwt *t, const char *token, size_t n,
                           struct oauth_principal *ret)
{
    static const char *const claims[] = {"sub", "client_id", "azp"};
    struct sha256_ctx ctx;
    sha256_init(&ctx);
    sha256_update(&ctx, strlen(o->issuer) + 1, (const uint8_t *)o->issuer);
    for (size_t i = 0; i < ARRAY_LEN(claims); i++) {
        struct json_object *value = json_object_object_get(t->claims, claims[i]);
        if (!json_object_is_type(value, json_type_string))
            continue;
        sha256_update(&ctx, strlen(claims[i]) + 1, (const uint8_t *)claims[i]);
        token = json_object_get_string(value);
        n = (size_t)json_object_get_string_len(value);
        break;
    }
    sha256_update(&ctx, n, (const uint8_t *)token);
    sha256_digest(&ctx, sizeof(ret->digest), ret->digest);
}

static enum oauth_verdict judge(struct oauth *o, const char *token, size_t n, int64_t now_s,
                                struct seen *ret, struct err *why)
{
    const struct jwt_demands demands = {
        .issuer = o->issuer, .audience = o->resource, .now_s = now_s};
    struct jwt t;
    enum oauth_verdict verdict = OAUTH_INVALID;
    if (jwt_read(token, n, &t, why) < 0)
        return verdict;
    if (!oauth_keys_has(&o->keys, &t))
        refresh_keys(o);
    if (!oauth_keys_verify(&o->keys, &t, token))
        err_set(why, ERR_UNAUTHORIZED, "the token is not signed by a key of the issuer");
    else if (jwt_check(&t, &demands, &ret->until_s, why) == 0)
        verdict = scopes_suffice(o, &t) ? OAUTH_FINE : OAUTH_SCOPE;
    if (verdict == OAUTH_FINE)
        name_principal(o, &t, token, n, &ret->whose);
    if (verdict == OAUTH_SCOPE)
        err_set(why, ERR_UNAUTHORIZED, "the token lacks a scope; \"%.256s\" is wanted",
                o->scope_text);
    jwt_fini(&t);
    return verdict;
}

enum oauth_verdict oauth_check(struct oauth *o, const char *value, size_t n, int64_t now_s,
                               struct oauth_principal *ret, struct err *why)
{
    static const char scheme[] = "Bearer ";
    size_t skip = sizeof(scheme) - 1;
    struct seen now;
    while (n > skip && value[n - 1] == ' ')
        n--;
    if (n <= skip || strncasecmp(value, scheme, skip) != 0 ||
        memchr(value + skip, ' ', n - skip) != NULL || n - skip > JWT_MAX) {
        err_set(why, ERR_UNAUTHORIZED, "Authorization: must be \"Bearer\" and one token");
        return OAUTH_MALFORMED;
    }
    const char *token = value + skip;
    look_at_keys(o, now_s);
    struct seen *slot = slot_of(o, token, n - skip, now.digest);
    if (!was_seen(slot, now.digest, now_s)) {
        enum oauth_verdict verdict = judge(o, token, n - skip, now_s, &now, why);
        if (verdict != OAUTH_FINE)
            return verdict;
        *slot = now;
    }
    if (ret != NULL)
        *ret = slot->whose;
    return OAUTH_FINE;
}

/* ---- what is told ---- */

int oauth_status(enum oauth_verdict verdict)
{
    static const int all[] = {[OAUTH_FINE] = 200,
                              [OAUTH_NONE] = 401,
                              [OAUTH_MALFORMED] = 400,
                              [OAUTH_INVALID] = 401,
                              [OAUTH_SCOPE] = 403};
    return all[verdict];
}

void oauth_challenge(const struct oauth *o, enum oauth_verdict verdict, struct buf *out)
{
    static const char *const errors[] = {[OAUTH_MALFORMED] = "invalid_request",
                                         [OAUTH_INVALID] = "invalid_token",
                                         [OAUTH_SCOPE] = "insufficient_scope"};
    buf_puts(out, "WWW-Authenticate: Bearer ");
    if (verdict > OAUTH_NONE)
        buf_printf(out, "error=\"%s\", ", errors[verdict]);
    buf_printf(out, "resource_metadata=\"%s\"", o->metadata_url);
    if (o->scopes.len > 0)
        buf_printf(out, ", scope=\"%s\"", o->scope_text);
    buf_puts(out, "\r\n");
}

bool oauth_is_metadata(const struct oauth *o, const char *target, size_t n)
{
    size_t head = strlen(OAUTH_WELL_KNOWN);
    const char *query = memchr(target, '?', n);
    n = query != NULL ? (size_t)(query - target) : n;
    if (n < head || memcmp(target, OAUTH_WELL_KNOWN, head) != 0)
        return false;
    size_t rest = n - head;
    return rest == 0 || (rest == strlen(o->path) && memcmp(target + head, o->path, rest) == 0);
}

void oauth_write_metadata(const struct oauth *o, struct buf *out)
{
    struct jsonw w;
    jsonw_init(&w, out);
    jsonw_object(&w);
    jsonw_kstr(&w, "resource", o->resource);
    jsonw_key(&w, "authorization_servers");
    jsonw_array(&w);
    jsonw_str(&w, o->issuer);
    jsonw_array_end(&w);
    jsonw_key(&w, "bearer_methods_supported");
    jsonw_array(&w);
    jsonw_str(&w, "header");
    jsonw_array_end(&w);
    if (o->scopes.len > 0) {
        jsonw_key(&w, "scopes_supported");
        jsonw_array(&w);
        for (size_t i = 0; i < o->scopes.len; i++)
            jsonw_str(&w, o->scopes.items[i]);
        jsonw_array_end(&w);
    }
    jsonw_kstr(&w, "resource_name", "CodeSpace");
    jsonw_object_end(&w);
}

const char *oauth_authority(const struct oauth *o)
{
    return o->authority;
}
