/* wire/jwt: see jwt.h. */
#include "wire/jwt.h"

#include "base/mem.h"
#include "base/str.h"
#include "wire/base64.h"
#include "wire/json.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <strings.h>

/* Of what one claim may list. */
#define LIST_MAX 64u
/* Year 9999; larger ones are no times. */
#define TIME_MAX 253402300800.0

static int refuse(struct err *e, const char *why)
{
    return err_set(e, ERR_UNAUTHORIZED, "%s", why);
}

int jwt_alg_of(const char *name)
{
    static const char *const names[] = {"RS256", "ES256", "EdDSA"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (str_eq(name, names[i]))
            return (int)i;
    }
    return -1;
}

int jwt_base64url(const char *text, size_t n, struct buf *out)
{
    autobuf standard = BUF_INIT;
    char *to = buf_reserve(&standard, n + 2);
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '+' || text[i] == '/' || text[i] == '=')
            return -EINVAL;
        to[i] = (char)(text[i] == '-' ? '+' : text[i] == '_' ? '/' : text[i]);
    }
    buf_commit(&standard, n);
    if (n % 4 == 1)
        return -EINVAL;
    for (; n % 4 != 0; n++)
        buf_putc(&standard, '=');
    return base64_read(buf_bytes(&standard), standard.len, out);
}

static int read_object(const char *text, size_t n, struct json_object **ret, struct err *e)
{
    autobuf json = BUF_INIT;
    autojson *object = NULL;
    if (jwt_base64url(text, n, &json) < 0)
        return refuse(e, "the token is not well-formed base64url");
    if (json_parse(buf_bytes(&json), json.len, &object, NULL) < 0 ||
        !json_object_is_type(object, json_type_object))
        return refuse(e, "a part of the token is not one JSON object");
    *ret = steal(object);
    return 0;
}

/* Others than access tokens (proofs, logout notices) say so in their type. */
static bool type_is_fine(struct json_object *type)
{
    static const char *const all[] = {"JWT", "at+jwt", "application/at+jwt"};
    const char *name = json_str(type);
    for (size_t i = 0; name != NULL && i < ARRAY_LEN(all); i++) {
        if (strcasecmp(name, all[i]) == 0)
            return true;
    }
    return type == NULL;
}

static int read_header(struct jwt *t, struct err *e)
{
    struct json_object *kid = json_get(t->header, "kid");
    int alg = jwt_alg_of(json_str(json_get(t->header, "alg")));
    if (alg < 0)
        return refuse(e, "the token's algorithm is not accepted; RS256, ES256 and EdDSA are");
    if (json_object_object_get_ex(t->header, "crit", NULL) ||
        json_object_object_get_ex(t->header, "b64", NULL))
        return refuse(e, "the token demands extensions that are not known here");
    if (!type_is_fine(json_get(t->header, "typ")))
        return refuse(e, "the token is of another type than an access token");
    t->alg = (enum jwt_alg)alg;
    t->kid = json_str(kid);
    return kid == NULL || t->kid != NULL ? 0 : refuse(e, "the token's key id is no text");
}

static int read_parts(const char *text, size_t n, struct jwt *t, struct err *e)
{
    const char *dot = memchr(text, '.', n);
    const char *second = dot != NULL ? memchr(dot + 1, '.', n - (size_t)(dot + 1 - text)) : NULL;
    if (n > JWT_MAX || second == NULL)
        return refuse(e, "the token has not the form of a signed JWT");
    const char *signature = second + 1;
    t->signed_len = (size_t)(second - text);
    if (read_object(text, (size_t)(dot - text), &t->header, e) < 0 || read_header(t, e) < 0 ||
        read_object(dot + 1, (size_t)(second - dot - 1), &t->claims, e) < 0)
        return -1;
    if (jwt_base64url(signature, n - t->signed_len - 1, &t->signature) < 0 || t->signature.len == 0)
        return refuse(e, "the token's signature is not well-formed");
    return 0;
}

int jwt_read(const char *text, size_t n, struct jwt *ret, struct err *e)
{
    struct jwt t = {0};
    if (read_parts(text, n, &t, e) < 0) {
        jwt_fini(&t);
        return -1;
    }
    *ret = t;
    return 0;
}

void jwt_fini(struct jwt *t)
{
    json_object_put(t->header);
    json_object_put(t->claims);
    buf_fini(&t->signature);
    *t = (struct jwt){0};
}

/* ---- claims ---- */

/* 1: it is there. Fractions are dropped. */
static int time_of(struct json_object *claims, const char *name, int64_t *ret)
{
    struct json_object *value = json_get(claims, name);
    if (value == NULL)
        return json_object_object_get_ex(claims, name, NULL) ? -1 : 0;
    if (!json_object_is_type(value, json_type_int) && !json_object_is_type(value, json_type_double))
        return -1;
    double seconds = json_object_get_double(value);
    if (isnan(seconds) || seconds < 0 || seconds > TIME_MAX)
        return -1;
    *ret = (int64_t)seconds;
    return 1;
}

static bool names_audience(struct json_object *aud, const char *audience)
{
    if (!json_object_is_type(aud, json_type_array))
        return str_eq(json_str(aud), audience) && audience != NULL;
    size_t n = json_object_array_length(aud);
    for (size_t i = 0; i < n && i < LIST_MAX; i++) {
        const char *one = json_str(json_object_array_get_idx(aud, i));
        if (one != NULL && str_eq(one, audience))
            return true;
    }
    return false;
}

int jwt_check(const struct jwt *t, const struct jwt_demands *d, int64_t *ret_until, struct err *e)
{
    int64_t until = 0;
    int64_t from = 0;
    if (d->issuer == NULL || !str_eq(json_str(json_get(t->claims, "iss")), d->issuer))
        return refuse(e, "the token is from another issuer");
    if (!names_audience(json_get(t->claims, "aud"), d->audience))
        return refuse(e, "the token is for another audience");
    if (time_of(t->claims, "exp", &until) <= 0)
        return refuse(e, "the token does not say when it expires");
    if (until + JWT_LEEWAY_S <= d->now_s)
        return refuse(e, "the token has expired");
    if (time_of(t->claims, "nbf", &from) < 0 || from - JWT_LEEWAY_S > d->now_s)
        return refuse(e, "the token is not valid yet");
    *ret_until = until + JWT_LEEWAY_S;
    return 0;
}

static bool list_has(const char *list, const char *word, size_t n)
{
    while (list != NULL && *list != '\0') {
        size_t len = strcspn(list, " ");
        if (len == n && memcmp(list, word, n) == 0)
            return true;
        list += len + strspn(list + len, " ");
    }
    return false;
}

bool jwt_has_scope(const struct jwt *t, const char *scope, size_t n)
{
    struct json_object *scp = json_get(t->claims, "scp");
    if (list_has(json_str(json_get(t->claims, "scope")), scope, n))
        return true;
    if (!json_object_is_type(scp, json_type_array))
        return list_has(json_str(scp), scope, n);
    size_t items = json_object_array_length(scp);
    for (size_t i = 0; i < items && i < LIST_MAX; i++) {
        const char *one = json_str(json_object_array_get_idx(scp, i));
        if (one != NULL && strlen(one) == n && memcmp(one, scope, n) == 0)
            return true;
    }
    return false;
}
