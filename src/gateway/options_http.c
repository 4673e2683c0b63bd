/* gateway/options_http: see options_http.h. */
#include "gateway/options_http.h"

#include "base/mem.h"
#include "base/num.h"
#include "mcp/http_check.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int options_set_http(struct options *o, const char *name, const char *value, struct err *e)
{
    o->http.on = true;
    o->http.flag = true;
    return 0;
}

static int not_empty(const char *name, const char *value, struct err *e)
{
    return *value != '\0' ? 0 : err_set(e, ERR_INVALID_ARGUMENT, "%s: is empty", name);
}

int options_set_host(struct options *o, const char *name, const char *value, struct err *e)
{
    o->http.host = value;
    return not_empty(name, value, e);
}

int options_set_port(struct options *o, const char *name, const char *value, struct err *e)
{
    if (num_parse_u64(value, 0, UINT16_MAX, &o->http.port) < 0)
        return err_set(e, ERR_INVALID_ARGUMENT, "%s: \"%.64s\" is not a number from 0 to %u", name,
                       value, UINT16_MAX);
    return 0;
}

/* Blanks around it are dropped; a blank one is none. */
static void take_token(char **token, const char *value)
{
    static const char blanks[] = " \t\r\n";
    value += strspn(value, blanks);
    size_t n = strlen(value);
    while (n > 0 && strchr(blanks, value[n - 1]) != NULL)
        n--;
    free(*token);
    *token = n > 0 ? mem_dup(value, n) : NULL;
}

int options_set_token(struct options *o, const char *name, const char *value, struct err *e)
{
    take_token(&o->http.token, value);
    unsetenv(name);
    return 0;
}

int options_set_operator_token(struct options *o, const char *name, const char *value,
                               struct err *e)
{
    take_token(&o->http.operator_token, value);
    unsetenv(name);
    return 0;
}

int options_set_operator_token_file(struct options *o, const char *name, const char *value,
                                    struct err *e)
{
    o->http.operator_token_file = value;
    return not_empty(name, value, e);
}

int options_set_token_file(struct options *o, const char *name, const char *value, struct err *e)
{
    o->http.token_file = value;
    return not_empty(name, value, e);
}

int options_refuse_token(struct options *o, const char *name, const char *value, struct err *e)
{
    return err_set(e, ERR_INVALID_ARGUMENT,
                   "--token is refused: every user of this machine can read a command line; use "
                   "--token-file FILE or the variable CODESPACE_HTTP_TOKEN");
}

int options_set_allow_host(struct options *o, const char *name, const char *value, struct err *e)
{
    strv_add(&o->http.allow_hosts, value);
    return not_empty(name, value, e);
}

int options_set_allow_origin(struct options *o, const char *name, const char *value, struct err *e)
{
    strv_add(&o->http.allow_origins, value);
    return not_empty(name, value, e);
}

int options_set_unix_socket(struct options *o, const char *name, const char *value, struct err *e)
{
    o->http.on = true;
    o->http.flag = true;
    o->http.unix_socket = value;
    return not_empty(name, value, e);
}

int options_set_activation(struct options *o, const char *name, const char *value, struct err *e)
{
    o->http.on = true;
    o->http.flag = true;
    o->http.activated = true;
    return 0;
}

int options_set_oauth_issuer(struct options *o, const char *name, const char *value, struct err *e)
{
    o->http.oauth.issuer = value;
    return not_empty(name, value, e);
}

int options_set_oauth_resource(struct options *o, const char *name, const char *value,
                               struct err *e)
{
    o->http.oauth.resource = value;
    return not_empty(name, value, e);
}

int options_set_oauth_keys(struct options *o, const char *name, const char *value, struct err *e)
{
    o->http.oauth.keys_file = value;
    return not_empty(name, value, e);
}

int options_set_oauth_scope(struct options *o, const char *name, const char *value, struct err *e)
{
    o->http.oauth.scopes = value;
    return not_empty(name, value, e);
}

bool options_has_oauth(const struct options *o)
{
    const struct oauth_options *a = &o->http.oauth;
    return a->issuer != NULL || a->resource != NULL || a->keys_file != NULL || a->scopes != NULL;
}

static int read_token(const char *flag, const char *file, char **token, struct err *e)
{
    char text[HTTP_TOKEN_MAX + 16];
    if (file == NULL)
        return 0;
    autofd int fd = open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    if (n < 0)
        return err_sys(e, ERR_CONFIG_INVALID, errno, "%s %.256s", flag, file);
    text[n] = '\0';
    take_token(token, text);
    explicit_bzero(text, sizeof(text));
    if (*token == NULL || (size_t)n == sizeof(text) - 1)
        return err_set(e, ERR_CONFIG_INVALID, "%s %.256s: holds no token, or too much", flag, file);
    return 0;
}

int options_token(struct options *o, struct err *e)
{
    struct options_http *h = &o->http;
    if (read_token("--token-file", h->token_file, &h->token, e) < 0)
        return -1;
    return read_token("--operator-token-file", h->operator_token_file, &h->operator_token, e);
}

static void forget(char *token)
{
    if (token != NULL)
        explicit_bzero(token, strlen(token));
    free(token);
}

void options_http_fini(struct options_http *h)
{
    forget(h->token);
    forget(h->operator_token);
    strv_fini(&h->allow_hosts);
    strv_fini(&h->allow_origins);
}
