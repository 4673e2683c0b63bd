/* wire/json: strict JSON from untrusted bytes, and objects read by table.
 *
 * Theory. json-c does the parsing (strict, UTF-8 checked, depth limited). What it lets through is
 * refused here: two members of one name (one reader would take the first, another the last), a
 * member name with a NUL in it (json-c would cut it), anything after the document. A record is
 * then read by a table of fields: the same table gives validation with the argument's name and the
 * reason, the JSON Schema that clients see, and a struct filled by offset. One source of truth.
 *
 * Strings that the struct receives are borrowed from the json_object, which must outlive them.
 * Must not: coerce ("5" is not 5), or accept a member that no table names.
 */
#ifndef CODESPACE_WIRE_JSON_H
#define CODESPACE_WIRE_JSON_H

#include "base/err.h"
#include "base/jsonw.h"

#include <json-c/json_object.h>
#include <json-c/json_tokener.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Containers inside containers; ours need 6. */
#define JSON_DEPTH_MAX 32
/* Values of one document. In memory each takes a hundred bytes and more, of text two: without a
 * limit a message of 16 MiB would take most of a gigabyte. */
#define JSON_VALUES_MAX (1u << 18)

#define autojson __attribute__((cleanup(json_cleanup))) struct json_object
void json_cleanup(struct json_object **obj);

/* Parse n bytes into *ret (caller puts it). Errors: PARSE_ERROR with the offset and the reason;
 * LIMIT_EXCEEDED. */
int json_parse(const char *text, size_t n, struct json_object **ret, struct err *e);

/* The same for whoever parses one message after another: making json-c's parser took as long as
 * parsing a small one. Zeroed at first; one thread's. */
struct json_parser {
    struct json_tokener *tok;
};
int json_parse_with(struct json_parser *p, const char *text, size_t n, struct json_object **ret,
                    struct err *e);
void json_parser_fini(struct json_parser *p);

/* Bytes that may hold NULs. */
struct json_bytes {
    const char *data;
    size_t len;
};

enum json_kind {
    JSON_STR,    /* const char *: no NUL inside; min/max are its length in bytes */
    JSON_BYTES,  /* struct json_bytes; min/max are its length */
    JSON_BOOL,   /* bool */
    JSON_U64,    /* uint64_t within min..max */
    JSON_ENUM,   /* int: index into `names` */
    JSON_STRV,   /* struct json_object *: array of strings without NULs; max is the count */
    JSON_STRMAP, /* struct json_object *: object of strings without NULs; max is the count */
    JSON_OBJECT, /* struct json_object *: any object, read by a table of its own */
    JSON_ARRAY,  /* struct json_object *: any array; max is the count */
};

#define JSON_REQUIRED 1u
/* Accepted and dropped: names that older clients send and that never decide anything. */
#define JSON_IGNORED 2u

struct json_field {
    const char *name;
    enum json_kind kind;
    unsigned flags;
    size_t offset; /* of the member in the struct; untouched when the field is absent */
    uint64_t min;
    uint64_t max;             /* 0 = no upper bound other than the document's size */
    const char *const *names; /* JSON_ENUM: NULL-terminated */
    const char *about;        /* one sentence for the schema */
    const char *fallback;     /* JSON text of the default, for the schema; NULL = none */
    const char *items;        /* JSON_ARRAY: JSON text of the items' schema; NULL = any */
};

/* Read `obj` by the table into the struct at `out`. `where` is put before names in messages
 * ("workspaces.demo" gives "workspaces.demo.root: ..."; "" gives "root: ..."). Errors carry `code`:
 * which member, what was wrong with it, what is accepted; an unknown member is answered with the
 * nearest name there is. A JSON null for an optional field counts as absent. */
int json_read(struct json_object *obj, const char *where, const struct json_field *fields, size_t n,
              void *out, enum err_code code, struct err *e);

/* The table as a JSON Schema object: type, properties, required, additionalProperties false. */
void json_schema(struct jsonw *w, const struct json_field *fields, size_t n);

/* Member of an object or NULL; no error when obj is NULL or not an object. */
struct json_object *json_get(struct json_object *obj, const char *name);

/* The string without copying; NULL when obj is not a string or holds a NUL. */
const char *json_str(struct json_object *obj);

#endif
