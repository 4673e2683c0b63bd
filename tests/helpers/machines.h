/* tests/helpers/machines: hosts with and without a sandbox, for tests of what is said about them.
 */
#ifndef CODESPACE_TESTS_MACHINES_H
#define CODESPACE_TESTS_MACHINES_H

#include "base/mem.h"
#include "core/facts.h"

#include <string.h>

static const enum probe_cause machines[] = {
    PROBE_NONE,      PROBE_NO_HELPER,    PROBE_NO_BWRAP,       PROBE_OLD_BWRAP,
    PROBE_NO_USERNS, PROBE_USERNS_CLONE, PROBE_MAX_NAMESPACES, PROBE_APPARMOR,
    PROBE_NO_PROC,   PROBE_PROC_MISSING, PROBE_SETUID,         PROBE_OTHER};

static inline struct facts machine(enum probe_cause cause)
{
    struct facts f = {.probed = true,
                      .timeout_ms = 600000,
                      .timeout_max_ms = 86400000,
                      .max_processes = 64,
                      .output_ring = 262144};
    f.probe.cause = cause;
    f.probe.works = cause == PROBE_NONE;
    strcpy(f.probe.bwrap_path, "/usr/bin/bwrap");
    strcpy(f.probe.bwrap_version, "0.8.0");
    /* A probe that failed in a late step saw some layers; none of them may be claimed. */
    for (const struct facts_layer *l = facts_layers; l->name != NULL; l++)
        *(bool *)((char *)&f.probe + l->offset) = true;
    if (!f.probe.works)
        strcpy(f.probe.detail, "bwrap:\x1b[31m own\nwords");
    return f;
}

static inline struct workspace make(const char *id)
{
    return (struct workspace){
        .id = (char *)id, .root = (char *)"/ws", .root_fd = -1, .profile = PROFILE_WORKSPACE_WRITE};
}

#endif
