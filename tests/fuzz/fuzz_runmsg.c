/* Fuzz target for wire/frame and wire/runmsg: a stream of frames from any bytes. A message that is
 * accepted is written, read and written again as the same.
 */
#include "base/mem.h"
#include "wire/frame.h"
#include "wire/runmsg.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n);

static void try_message(const char *text, size_t n)
{
    struct runmsg m, again;
    struct err e = {0};
    autobuf first = BUF_INIT;
    autobuf second = BUF_INIT;
    int rc = runmsg_read(text, n, &m, &e);
    ensure(rc >= 0 || (e.code != ERR_NONE && e.message[0] != '\0'));
    if (rc == 0) {
        runmsg_write(&m, &first);
        ensure(runmsg_read(buf_bytes(&first), first.len, &again, &e) == 0);
        runmsg_write(&again, &second);
        ensure(first.len == second.len);
        ensure(memcmp(buf_bytes(&first), buf_bytes(&second), first.len) == 0);
        runmsg_fini(&again);
    }
    runmsg_fini(&m);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n)
{
    autobuf in = BUF_INIT;
    size_t len = 0;
    try_message((const char *)data, n);
    buf_put(&in, data, n);
    while (frame_look(&in, &len) == 1) {
        try_message(buf_bytes(&in) + FRAME_HEAD, len);
        frame_consume(&in, len);
    }
    return 0;
}
