/* wire/jwt: the form of a token, and what its claims must say. */
#include "../../helpers/unit.h"
#include "base/mem.h"
#include "wire/jwt.h"

#include <string.h>

#define NOW 1800000000

/* base64url without padding; caller frees. */
static char *encode(const char *text)
{
    static const char alphabet[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    autobuf out = BUF_INIT;
    size_t n = strlen(text);
    for (size_t i = 0; i < n; i += 3) {
        unsigned bits = 0;
        for (size_t k = 0; k < 3; k++)
            bits = bits << 8 | (i + k < n ? (unsigned char)text[i + k] : 0);
        for (size_t k = 0; k < 4 && i + k < n + 1; k++)
            buf_putc(&out, alphabet[bits >> (18 - 6 * k) & 63]);
    }
    return buf_steal(&out);
}

static char *token(const char *header, const char *claims, const char *signature)
{
    autofree char *h = encode(header);
    autofree char *c = encode(claims);
    return mem_printf("%s.%s.%s", h, c, signature);
}

static void test_form(void **state)
{
    (void)state;
    static const struct {
        const char *header, *claims, *signature;
        bool fine;
    } rows[] = {
        {"{\"alg\":\"RS256\"}", "{}", "AAAA", true},
        {"{\"alg\":\"ES256\",\"typ\":\"JWT\"}", "{}", "AAAA", true},
        {"{\"alg\":\"EdDSA\",\"typ\":\"at+jwt\"}", "{}", "AAAA", true},
        {"{\"alg\":\"RS256\",\"kid\":\"a\"}", "{}", "AA", true},
        {"{\"alg\":\"none\"}", "{}", "AAAA", false},
        {"{\"alg\":\"none\"}", "{}", "", false},
        {"{\"alg\":\"None\"}", "{}", "AAAA", false},
        {"{\"alg\":\"HS256\"}", "{}", "AAAA", false},
        {"{\"alg\":\"RS512\"}", "{}", "AAAA", false},
        {"{\"alg\":\"rs256\"}", "{}", "AAAA", false},
        {"{\"alg\":[\"RS256\"]}", "{}", "AAAA", false},
        {"{\"alg\":\"RS256\",\"alg\":\"none\"}", "{}", "AAAA", false},
        {"{}", "{}", "AAAA", false},
        {"{\"alg\":\"RS256\",\"crit\":[\"x\"]}", "{}", "AAAA", false},
        {"{\"alg\":\"RS256\",\"crit\":null}", "{}", "AAAA", false},
        {"{\"alg\":\"RS256\",\"b64\":false}", "{}", "AAAA", false},
        {"{\"alg\":\"RS256\",\"typ\":\"dpop+jwt\"}", "{}", "AAAA", false},
        {"{\"alg\":\"RS256\",\"kid\":1}", "{}", "AAAA", false},
        {"{\"alg\":\"RS256\"}", "[]", "AAAA", false},
        {"{\"alg\":\"RS256\"}", "{} x", "AAAA", false},
        {"{\"alg\":\"RS256\"}", "{}", "", false},
        {"{\"alg\":\"RS256\"}", "{}", "A", false},
        {"{\"alg\":\"RS256\"}", "{}", "AA==", false},
        {"{\"alg\":\"RS256\"}", "{}", "AB", false},
        {"{\"alg\":\"RS256\"}", "{}", "AA+A", false},
        {"{\"alg\":\"RS256\"}", "{}", "AAAA.AAAA", false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct jwt t = {0};
        struct err e = {0};
        autofree char *text = token(rows[i].header, rows[i].claims, rows[i].signature);
        int r = jwt_read(text, strlen(text), &t, &e);
        if ((r == 0) != rows[i].fine)
            fail_msg("%s %s %s: %s", rows[i].header, rows[i].claims, rows[i].signature, e.message);
        assert_int_equal(r < 0 ? e.code : ERR_UNAUTHORIZED, ERR_UNAUTHORIZED);
        jwt_fini(&t);
    }
}

static void test_no_token(void **state)
{
    (void)state;
    static const char *const all[] = {"",      ".",   "..",      "...",
                                      "a.b.c", "e30", "e30.e30", "e30.e30.e30"};
    struct jwt t;
    struct err e;
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        assert_int_equal(jwt_read(all[i], strlen(all[i]), &t, &e), -1);
    autofree char *big = mem_zalloc(JWT_MAX + 2, 1);
    memset(big, 'A', JWT_MAX + 1);
    assert_int_equal(jwt_read(big, JWT_MAX + 1, &t, &e), -1);
}

static void test_claims(void **state)
{
    (void)state;
    static const struct {
        const char *claims;
        bool fine;
    } rows[] = {
        {"{\"iss\":\"I\",\"aud\":\"A\",\"exp\":1800000001}", true},
        {"{\"iss\":\"I\",\"aud\":[\"B\",\"A\"],\"exp\":1800000001.5}", true},
        {"{\"iss\":\"I\",\"aud\":\"A\",\"exp\":1799999941}", true},
        {"{\"iss\":\"I\",\"aud\":\"A\",\"exp\":1799999940}", false},
        {"{\"iss\":\"I\",\"aud\":\"A\",\"exp\":1800000001,\"nbf\":1800000060}", true},
        {"{\"iss\":\"I\",\"aud\":\"A\",\"exp\":1800000001,\"nbf\":1800000061}", false},
        {"{\"iss\":\"I\",\"aud\":\"A\",\"exp\":1800000001,\"nbf\":\"1\"}", false},
        {"{\"iss\":\"I\",\"aud\":\"A\"}", false},
        {"{\"iss\":\"I\",\"aud\":\"A\",\"exp\":null}", false},
        {"{\"iss\":\"I\",\"aud\":\"A\",\"exp\":\"1800000001\"}", false},
        {"{\"iss\":\"I\",\"aud\":\"A\",\"exp\":-1}", false},
        {"{\"iss\":\"I\",\"aud\":\"A\",\"exp\":1e300}", false},
        {"{\"iss\":\"I\",\"aud\":\"B\",\"exp\":1800000001}", false},
        {"{\"iss\":\"I\",\"aud\":[],\"exp\":1800000001}", false},
        {"{\"iss\":\"I\",\"aud\":[[\"A\"]],\"exp\":1800000001}", false},
        {"{\"iss\":\"I\",\"aud\":{\"A\":1},\"exp\":1800000001}", false},
        {"{\"iss\":\"I\",\"exp\":1800000001}", false},
        {"{\"iss\":\"I/\",\"aud\":\"A\",\"exp\":1800000001}", false},
        {"{\"iss\":[\"I\"],\"aud\":\"A\",\"exp\":1800000001}", false},
        {"{\"aud\":\"A\",\"exp\":1800000001}", false},
    };
    const struct jwt_demands demands = {.issuer = "I", .audience = "A", .now_s = NOW};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct jwt t = {0};
        struct err e = {0};
        int64_t until = 0;
        autofree char *text = token("{\"alg\":\"RS256\"}", rows[i].claims, "AAAA");
        assert_int_equal(jwt_read(text, strlen(text), &t, &e), 0);
        if ((jwt_check(&t, &demands, &until, &e) == 0) != rows[i].fine)
            fail_msg("%s: %s", rows[i].claims, e.message);
        assert_true(!rows[i].fine || until > NOW);
        jwt_fini(&t);
    }
}

static void test_scopes(void **state)
{
    (void)state;
    static const struct {
        const char *claims, *scope;
        bool has;
    } rows[] = {
        {"{\"scope\":\"a b c\"}", "a", true}, {"{\"scope\":\"a b c\"}", "c", true},
        {"{\"scope\":\"ab\"}", "a", false},   {"{\"scope\":\"a b\"}", "a b", false},
        {"{\"scp\":\"a b\"}", "b", true},     {"{\"scp\":[\"a\",\"b\"]}", "b", true},
        {"{\"scp\":[\"a b\"]}", "b", false},  {"{\"scope\":[\"a\"]}", "a", false},
        {"{\"scope\":\"\"}", "a", false},     {"{}", "a", false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct jwt t = {0};
        autofree char *text = token("{\"alg\":\"RS256\"}", rows[i].claims, "AAAA");
        assert_int_equal(jwt_read(text, strlen(text), &t, NULL), 0);
        if (jwt_has_scope(&t, rows[i].scope, strlen(rows[i].scope)) != rows[i].has)
            fail_msg("%s in %s", rows[i].scope, rows[i].claims);
        jwt_fini(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_form),
        cmocka_unit_test(test_no_token),
        cmocka_unit_test(test_claims),
        cmocka_unit_test(test_scopes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
