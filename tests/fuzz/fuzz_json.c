/* Fuzz target for wire/json: any bytes give a tree or an error, and what is accepted can be written
 * again by json-c and parsed to the same text (so nothing was accepted that we would not send). */
#include "base/mem.h"
#include "wire/json.h"

#include <json-c/json.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n);

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n)
{
    struct err e = {0};
    autojson *obj = NULL;
    if (json_parse((const char *)data, n, &obj, &e) < 0) {
        ensure(e.code != ERR_NONE && e.message[0] != '\0');
        return 0;
    }
    const char *text = json_object_to_json_string_ext(obj, JSON_C_TO_STRING_PLAIN);
    autofree char *first = mem_strdup(text);
    autojson *again = NULL;
    ensure(json_parse(first, strlen(first), &again, &e) == 0);
    ensure(strcmp(json_object_to_json_string_ext(again, JSON_C_TO_STRING_PLAIN), first) == 0);
    return 0;
}
