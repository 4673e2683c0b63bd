/* wire/runmsg_fields: the payloads of the runner protocol as tables of members. For wire/runmsg.
 *
 * A shape is the table of one struct. It writes the struct, reads it and frees it; a member that is
 * 0, false, NULL or empty is not written, and one that is absent stays so.
 */
#ifndef CODESPACE_WIRE_RUNMSG_FIELDS_H
#define CODESPACE_WIRE_RUNMSG_FIELDS_H

#include "base/jsonw.h"
#include "wire/runmsg.h"

#include <json-c/json_object.h>

struct runmsg_shape {
    const struct runmsg_field *fields;
    size_t n;
    size_t size;
};

#define RUNMSG_SHAPES(X)                                                                           \
    X(nothing)                                                                                     \
    X(hello)                                                                                       \
    X(welcome)                                                                                     \
    X(mount)                                                                                       \
    X(limits)                                                                                      \
    X(workspace)                                                                                   \
    X(exec)                                                                                        \
    X(id)                                                                                          \
    X(read)                                                                                        \
    X(status)                                                                                      \
    X(page)                                                                                        \
    X(started)                                                                                     \
    X(write)                                                                                       \
    X(resize)                                                                                      \
    X(terminate)                                                                                   \
    X(signal)                                                                                      \
    X(list)                                                                                        \
    X(listing)                                                                                     \
    X(place)                                                                                       \
    X(warmth)                                                                                      \
    X(rules)                                                                                       \
    X(ruled)                                                                                       \
    X(probe)                                                                                       \
    X(replay)

#define RUNMSG_DECLARE(name) extern const struct runmsg_shape runmsg_shape_##name;
RUNMSG_SHAPES(RUNMSG_DECLARE)
#undef RUNMSG_DECLARE

void runmsg_fields_write(struct jsonw *w, const struct runmsg_shape *shape, const void *data);
/* `data` is zeroed. On failure it holds what was read so far. */
int runmsg_fields_read(const struct runmsg_shape *shape, struct json_object *obj, void *data,
                       struct err *e);
void runmsg_fields_fini(const struct runmsg_shape *shape, void *data);

#endif
