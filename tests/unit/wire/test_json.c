/* wire/json: what is refused, how it is told, and the table as a schema. */
#include "../../helpers/unit.h"
#include "wire/json.h"

#include <stdio.h>

static int parse(const char *text, size_t n, struct err *e)
{
    autojson *obj = NULL;
    return json_parse(text, n, &obj, e);
}

static void test_accepts(void **state)
{
    (void)state;
    static const char *const good[] = {
        "{}",
        " [1,2,{\"a\":null}] \n",
        "\"x\"",
        "12",
        "-0.5e3",
        "true",
        "null",
        "{\"a\":1,\"b\":{\"a\":\":\"}}",
        "{\"a:\":\"\\u0000\"}",
    };
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        struct err e = {0};
        if (parse(good[i], strlen(good[i]), &e) < 0)
            fail_msg("%s: %s", good[i], e.message);
    }
}

static void test_refuses(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t n;
    } bad[] = {
        {"", 0},
        {"{", 1},
        {"{\"a\":1,}", 8},
        {"{'a':1}", 7},
        {"{\"a\":1}x", 8},
        {"{\"a\":1} {}", 10},
        {"{\"a\":1,\"a\":2}", 13},
        {"{\"a\":1,\"\\u0061\":2}", 18},
        {"[{\"a\":{\"b\":1,\"b\":1}}]", 21},
        {"{\"a\\u0000b\":1}", 14},
        {"\"\xff\"", 3},
        {"\"\xed\xa0\x80\"", 5},
        {"[1\0]", 4},
        {"01", 2},
        {"nul", 3},
        {"NaN", 3},
        {"/* c */ 1", 9},
        {"\"a\nb\"", 5},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct err e = {0};
        if (parse(bad[i].text, bad[i].n, &e) == 0)
            fail_msg("row %zu was accepted: %s", i, bad[i].text);
        assert_int_equal(e.code, ERR_PARSE_ERROR);
    }
}

static void test_depth(void **state)
{
    (void)state;
    char text[200];
    struct err e = {0};
    memset(text, '[', 100);
    memset(text + 100, ']', 100);
    assert_int_equal(parse(text, 200, &e), -1);
    assert_non_null(strstr(e.message, "JSON_DEPTH_MAX (32)"));
    assert_int_equal(parse(text + 100 - 30, 60, &e), 0);
}

/* Commas in a string are none, so a long text is fine. */
static void test_values(void **state)
{
    (void)state;
    struct err e = {0};
    autobuf text = BUF_INIT;
    buf_puts(&text, "[[]");
    for (size_t i = 0; i < JSON_VALUES_MAX; i++)
        buf_puts(&text, ",[]");
    buf_putc(&text, ']');
    assert_int_equal(parse(buf_bytes(&text), text.len, &e), -1);
    assert_int_equal(e.code, ERR_LIMIT_EXCEEDED);
    assert_non_null(strstr(e.message, "JSON_VALUES_MAX (262144)"));
    buf_truncate(&text, 0);
    buf_puts(&text, "[\"");
    for (size_t i = 0; i < JSON_VALUES_MAX; i++)
        buf_puts(&text, ",[]");
    buf_puts(&text, "\"]");
    assert_int_equal(parse(buf_bytes(&text), text.len, &e), 0);
    buf_truncate(&text, 0);
    for (size_t i = 0; i < 2 * JSON_VALUES_MAX; i++) /* the nesting is what is wrong with it */
        buf_putc(&text, '[');
    assert_int_equal(parse(buf_bytes(&text), text.len, &e), -1);
    assert_int_equal(e.code, ERR_PARSE_ERROR);
}

struct record {
    const char *name;
    struct json_bytes data;
    bool flag;
    uint64_t count;
    int mode;
    struct json_object *list;
    struct json_object *map;
};

static const char *const modes[] = {"fast", "slow", NULL};
static const struct json_field fields[] = {
    {"name", JSON_STR, JSON_REQUIRED, offsetof(struct record, name), 1, 8, NULL, "The name.", NULL},
    {"data", JSON_BYTES, 0, offsetof(struct record, data), 0, 0, NULL, NULL, NULL},
    {"flag", JSON_BOOL, 0, offsetof(struct record, flag), 0, 0, NULL, NULL, "false"},
    {"count", JSON_U64, 0, offsetof(struct record, count), 2, 9, NULL, NULL, NULL},
    {"mode", JSON_ENUM, 0, offsetof(struct record, mode), 0, 0, modes, NULL, NULL},
    {"list", JSON_STRV, 0, offsetof(struct record, list), 0, 2, NULL, NULL, NULL},
    {"map", JSON_STRMAP, 0, offsetof(struct record, map), 0, 0, NULL, NULL, NULL},
    {"old", JSON_BOOL, JSON_IGNORED, 0, 0, 0, NULL, NULL, NULL},
};

static int read_record(const char *text, struct record *r, struct err *e, struct json_object **keep)
{
    assert_int_equal(json_parse(text, strlen(text), keep, e), 0);
    return json_read(*keep, "args", fields, sizeof(fields) / sizeof(fields[0]), r,
                     ERR_INVALID_ARGUMENT, e);
}

static void test_read_fills_the_struct(void **state)
{
    (void)state;
    struct record r = {.count = 7};
    struct err e = {0};
    autojson *obj = NULL;
    assert_int_equal(read_record("{\"name\":\"n\",\"data\":\"a\\u0000b\",\"flag\":true,\"mode\":"
                                 "\"slow\",\"list\":[\"x\"],\"map\":{\"k\":\"v\"},\"old\":[],"
                                 "\"count\":null}",
                                 &r, &e, &obj),
                     0);
    assert_string_equal(r.name, "n");
    assert_int_equal(r.data.len, 3);
    assert_true(r.flag);
    assert_int_equal(r.mode, 1);
    assert_int_equal(r.count, 7);
    assert_string_equal(json_str(json_get(r.map, "k")), "v");
}

static void test_read_says_what_is_wrong(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *message;
    } rows[] = {
        {"{}", "args.name: is required (a string)"},
        {"{\"name\":1}", "args.name: must be a string, not int"},
        {"{\"name\":null}", "args.name: must be a string, not null"},
        {"{\"name\":\"\"}", "args.name: a length of 0 is out of range; 1 to 8 is accepted"},
        {"{\"name\":\"a\\u0000\"}", "args.name: must not hold a NUL character"},
        {"{\"name\":\"a\",\"flag\":1}", "args.flag: must be true or false, not int"},
        {"{\"name\":\"a\",\"count\":-3}", "args.count: must not be negative"},
        {"{\"name\":\"a\",\"count\":10}",
         "args.count: the value 10 is out of range; 2 to 9 is accepted"},
        {"{\"name\":\"a\",\"count\":18446744073709551616}",
         "args.count: is larger than any number that is accepted here"},
        {"{\"name\":\"a\",\"count\":-99999999999999999999}", "args.count: must not be negative"},
        {"{\"name\":\"a\",\"count\":2.0}", "args.count: must be a whole number, not double"},
        {"{\"name\":\"a\",\"mode\":\"x\"}", "args.mode: \"x\" is not one of \"fast\", \"slow\""},
        {"{\"name\":\"a\",\"list\":[\"a\",1]}",
         "args.list: item 1 must be a string without NUL characters"},
        {"{\"name\":\"a\",\"list\":[\"a\",\"b\",\"c\"]}",
         "args.list: a count of 3 is out of range; 0 to 2 is accepted"},
        {"{\"name\":\"a\",\"map\":{\"k\":1}}",
         "args.map: \"k\" must be a string without NUL characters"},
        {"{\"nam\":\"a\"}", "args.nam: no such name here; did you mean \"name\"?"},
        {"{\"cnt\":1}", "args.cnt: no such name here; did you mean \"count\"?"},
        {"{\"data_b\":1}", "args.data_b: no such name here; did you mean \"data\"?"},
        {"{\"mpa\":1}", "args.mpa: no such name here; did you mean \"map\"?"},
        {"{\"wait\":1}",
         "args.wait: no such name here; accepted: name, data, flag, count, mode, list, map"},
        {"{\"unrelated\":1}",
         "args.unrelated: no such name here; accepted: name, data, flag, count, mode, list, map"},
        {"[]", "args: must be an object"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct record r = {0};
        struct err e = {0};
        autojson *obj = NULL;
        assert_int_equal(read_record(rows[i].text, &r, &e, &obj), -1);
        assert_string_equal(e.message, rows[i].message);
        assert_int_equal(e.code, ERR_INVALID_ARGUMENT);
    }
}

static void test_schema_is_the_same_table(void **state)
{
    (void)state;
    autobuf b = BUF_INIT;
    struct jsonw w;
    jsonw_init(&w, &b);
    json_schema(&w, fields, sizeof(fields) / sizeof(fields[0]));
    autojson *obj = NULL;
    struct err e = {0};
    assert_int_equal(json_parse(buf_bytes(&b), b.len, &obj, &e), 0);
    struct json_object *properties = json_get(obj, "properties");
    assert_int_equal(json_object_object_length(properties), 7);
    assert_null(json_get(properties, "old"));
    assert_string_equal(json_str(json_get(json_get(properties, "name"), "description")),
                        "The name.");
    assert_int_equal(json_object_array_length(json_get(obj, "required")), 1);
}

UNIT_MAIN(cmocka_unit_test(test_accepts), cmocka_unit_test(test_refuses),
          cmocka_unit_test(test_depth), cmocka_unit_test(test_values),
          cmocka_unit_test(test_read_fills_the_struct),
          cmocka_unit_test(test_read_says_what_is_wrong),
          cmocka_unit_test(test_schema_is_the_same_table))
