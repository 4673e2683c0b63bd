/* A permission profile: whatever the bytes are, it is read or refused. */
#include "base/mem.h"
#include "wire/codex.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct codex_profile p = {0};
    struct err e = {0};
    if (codex_profile_read((const char *)data, size, &p, &e) == 0) {
        for (size_t i = 0; i < p.n; i++)
            ensure(p.entries[i].kind != CODEX_PATH || p.entries[i].text != NULL);
    }
    codex_profile_fini(&p);
    return 0;
}
