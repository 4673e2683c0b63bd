/* core/facts: what is really on, said in one place for people, models and programs.
 *
 * Theory. One struct holds what was probed and what was configured; workspace_info.execution, the
 * tool descriptions, the server instructions and the report of `dev run` are all generated from it,
 * so none of them can say something else than another (H14, R18).
 *
 * Must not: state a wall that the probe did not see standing.
 */
#ifndef CODESPACE_CORE_FACTS_H
#define CODESPACE_CORE_FACTS_H

#include "base/buf.h"
#include "base/jsonw.h"
#include "core/registry.h"
#include "wire/probe.h"

#include <stdint.h>

/* Patches that may wait for one root directory; one more is RESOURCE_QUEUE_FULL. */
#define FACTS_PATCH_WAITERS_MAX 64u

/* The instructions are short, because every client puts them into a model's context. */
#define FACTS_INSTRUCTIONS_MAX 3500u

/* A named limit that this layer does not know itself. */
struct facts_limit {
    const char *name;
    uint64_t value;
};

/* Do commands of the workspace start warm at this moment? */
enum facts_warm { FACTS_WARM_UNKNOWN, FACTS_WARM_OFF, FACTS_WARM_ON };

/* What became of egress rules that were changed while the server runs. */
struct facts_rules {
    bool changing;             /* they are on their way to what runs */
    uint64_t changed_ms;       /* wall clock */
    const char *by;            /* by which channel of the operator's */
    const char *why;           /* why not all that ran then has them; "" = it has */
    const char *const *others; /* processes of which it is not known; NULL-terminated */
};

struct facts {
    bool probed;               /* false while the probe still runs: nothing is claimed */
    struct probe_result probe; /* as the helper said it */
    uint64_t timeout_ms;       /* default wall-clock limit of a command */
    uint64_t timeout_max_ms;
    uint64_t max_processes;
    enum facts_warm warm;             /* of the workspace that is told about, asked just now */
    uint64_t output_ring;             /* bytes of output kept per process */
    const struct facts_rules *rules;  /* of that workspace; NULL = as they were at the start */
    const struct facts_limit *limits; /* more rows for execution.limits, up to one without a name;
                                         NULL = none */
};

/* A layer of the sandbox: its key in execution.isolation.layers, its name for people, and where the
 * probe says it. The table ends with a row without a name. */
struct facts_layer {
    const char *name;
    const char *title;
    size_t offset; /* of a bool in struct probe_result */
};
extern const struct facts_layer facts_layers[];

/* Whether commands have this layer now: the probe saw it, and the sandbox works as a whole. */
bool facts_layer_on(const struct facts *f, const struct facts_layer *layer);

/* How a command of this workspace would run now. */
enum facts_mode {
    FACTS_SANDBOXED, /* under codespace-linux-sandbox */
    FACTS_HOST,      /* on the host without a sandbox: restricted, preferred, probe failed (R13) */
    FACTS_REFUSED,   /* exec fails: the sandbox is demanded, network "enabled" cannot be set up,
                        or nothing runs in that environment */
    FACTS_PROBING,   /* not known yet */
};

enum facts_mode facts_mode(const struct facts *f, const struct workspace *ws);
const char *facts_mode_name(enum facts_mode mode);

/* Whether commands can run at all, profile aside. Errors: SANDBOX_UNAVAILABLE (demanded; or not
 * probed yet), PROCESS_SPAWN_FAILED (network), UNAUTHORIZED (environment), with the cause and what
 * an operator would change. Nothing was started. */
int facts_check_exec(const struct facts *f, const struct workspace *ws, struct err *e);

/* The object `execution` of workspace_info (all keys of the public contract and ours). */
void facts_write_execution(const struct facts *f, const struct workspace *ws, struct jsonw *w);

/* The server instructions (initialize) and the one-paragraph summary that exec_command's
 * description ends with. `r` tells which workspaces there are. */
void facts_instructions(const struct facts *f, const struct registry *r, struct buf *out);
void facts_exec_summary(const struct facts *f, const struct registry *r, struct buf *out);

/* A report for a terminal: each layer with on/off, the cause and the remedy when it is off. */
void facts_report(const struct facts *f, struct buf *out);

#endif
