/* mcp/http_check: see http_check.h. */
#include "mcp/http_check.h"

#include "base/mem.h"
#include "core/seal.h"
#include "wire/host.h"

#include <string.h>
#include <strings.h>

static void forget(char *token)
{
    if (token != NULL)
        explicit_bzero(token, strlen(token));
    free(token);
}

void http_policy_fini(struct http_policy *p)
{
    forget(p->token);
    forget(p->operator_token);
    oauth_free(p->oauth);
    strv_fini(&p->hosts);
    strv_fini(&p->origins);
}

static int check_token(const char *token, struct err *e)
{
    size_t n = strlen(token);
    if (n < HTTP_TOKEN_MIN || n > HTTP_TOKEN_MAX)
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "the token must have %u to %u characters (HTTP_TOKEN_MIN, HTTP_TOKEN_MAX); "
                       "`openssl rand -hex 32` makes a good one",
                       HTTP_TOKEN_MIN, HTTP_TOKEN_MAX);
    for (size_t i = 0; i < n; i++) {
        if (token[i] <= ' ' || token[i] >= 0x7f)
            return err_set(e, ERR_INVALID_ARGUMENT,
                           "the token must be of visible ASCII characters, without blanks");
    }
    return 0;
}

int http_policy_set_token(struct http_policy *p, const char *token, struct err *e)
{
    if (token == NULL)
        return 0;
    if (check_token(token, e) < 0)
        return -1;
    p->token = mem_strdup(token);
    return 0;
}

int http_policy_set_operator_token(struct http_policy *p, const char *token, struct err *e)
{
    if (token == NULL)
        return 0;
    if (check_token(token, e) < 0)
        return err_wrap(e, "the operator's token");
    if (str_eq(token, p->token))
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "the operator's token is the clients' token; who makes calls must not be "
                       "able to grant them, so it must be another one");
    p->operator_token = mem_strdup(token);
    return 0;
}

int http_policy_add_host(struct http_policy *p, const char *text, struct err *e)
{
    struct host host;
    uint16_t port = 0;
    char authority[HOST_AUTHORITY_MAX + 1];
    if (host_parse(text, strlen(text), &host, NULL) == 0) {
        strv_add(&p->hosts, host.text);
        return 0;
    }
    if (host_parse_authority(text, strlen(text), 0, &host, &port, NULL) < 0)
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "\"%.128s\" is no host; a name, an address, or either with :PORT is", text);
    size_t n = host_format_authority(&host, port, authority);
    authority[n] = '\0';
    strv_add(&p->hosts, authority);
    return 0;
}

int http_policy_add_origin(struct http_policy *p, const char *origin, struct err *e)
{
    const char *rest = strstr(origin, "://");
    if (strcmp(origin, "null") != 0 && (rest == NULL || strpbrk(rest + 3, "/?#@ ,") != NULL))
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "\"%.128s\" is no origin; such as https://app.example.com is (without a "
                       "path)",
                       origin);
    strv_add(&p->origins, origin);
    return 0;
}

static bool is_loopback(const struct host *host)
{
    return host->kind == HOST_NAME ? strcmp(host->text, "localhost") == 0
                                   : host_addr_class(&host->addr) == ADDR_LOOPBACK;
}

bool http_policy_host(const struct http_policy *p, const char *value, size_t n)
{
    struct host host;
    uint16_t port = 0;
    char authority[HOST_AUTHORITY_MAX + 1];
    if (host_parse_authority(value, n, 80, &host, &port, NULL) < 0)
        return false;
    if (is_loopback(&host) || strv_has(&p->hosts, host.text))
        return true;
    size_t len = host_format_authority(&host, port, authority);
    authority[len] = '\0';
    return strv_has(&p->hosts, authority);
}

bool http_policy_origin(const struct http_policy *p, const char *value, size_t n)
{
    static const char *const schemes[] = {"http://", "https://"};
    autofree char *text = mem_dup(value, n);
    if (strlen(text) == n && strv_has(&p->origins, text))
        return true;
    for (size_t i = 0; i < ARRAY_LEN(schemes); i++) {
        size_t len = strlen(schemes[i]);
        if (n > len && strncasecmp(value, schemes[i], len) == 0)
            return http_policy_host(p, value + len, n - len);
    }
    return false;
}

static bool is_bearer(const char *token, const char *value, size_t n)
{
    static const char scheme[] = "Bearer ";
    size_t skip = sizeof(scheme) - 1;
    if (n < skip || strncasecmp(value, scheme, skip) != 0)
        return false;
    while (skip < n && value[skip] == ' ')
        skip++;
    /* The length is no secret. */
    return n - skip == strlen(token) && seal_equal(value + skip, token, n - skip);
}

bool http_policy_bearer(const struct http_policy *p, const char *value, size_t n)
{
    return is_bearer(p->token, value, n);
}

bool http_policy_operator(const struct http_policy *p, const char *value, size_t n)
{
    return is_bearer(p->operator_token, value, n);
}
