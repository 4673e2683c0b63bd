/* Fuzz target for wire/jwt: any text is a token or refused; what is a token has an algorithm of
 * ours, a signature and two objects, and its claims can be judged. */
#include "base/mem.h"
#include "wire/jwt.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n);

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n)
{
    const struct jwt_demands demands = {.issuer = "I", .audience = "A", .now_s = 1800000000};
    const char *text = (const char *)data;
    struct jwt t;
    struct err e = {0};
    int64_t until = 0;
    if (jwt_read(text, n, &t, &e) < 0) {
        ensure(e.code == ERR_UNAUTHORIZED && e.message[0] != '\0');
        return 0;
    }
    ensure(t.alg == JWT_RS256 || t.alg == JWT_ES256 || t.alg == JWT_EDDSA);
    ensure(t.signature.len > 0 && t.signed_len < n && text[t.signed_len] == '.');
    ensure(json_object_is_type(t.header, json_type_object));
    ensure(json_object_is_type(t.claims, json_type_object));
    if (jwt_check(&t, &demands, &until, &e) == 0)
        ensure(until > demands.now_s);
    jwt_has_scope(&t, "code:run", strlen("code:run"));
    jwt_fini(&t);
    return 0;
}
