/* core/facts_text: no text claims a wall that is not there (R13, H14), and the instructions have
 * what a client needs (M-1) in few words. */
#include "../../helpers/machines.h"
#include "../../helpers/unit.h"

#include <stdio.h>

static struct registry registry_of(struct workspace **items, size_t n)
{
    return (struct registry){.items = items, .n = n};
}

/* ---- texts ---- */

static char *summary(const struct facts *f, const struct registry *r)
{
    autobuf out = BUF_INIT;
    facts_exec_summary(f, r, &out);
    return buf_steal(&out);
}

static char *instructions(const struct facts *f, const struct registry *r)
{
    autobuf out = BUF_INIT;
    facts_instructions(f, r, &out);
    return buf_steal(&out);
}

static char *report(const struct facts *f)
{
    autobuf out = BUF_INIT;
    facts_report(f, &out);
    return buf_steal(&out);
}

#define HAS(text, part)                                                                            \
    do {                                                                                           \
        if (strstr((text), (part)) == NULL)                                                        \
            fail_msg("no \"%s\" in: %s", (part), (text));                                          \
    } while (0)
#define HAS_NOT(text, part)                                                                        \
    do {                                                                                           \
        if (strstr((text), (part)) != NULL)                                                        \
            fail_msg("\"%s\" in: %s", (part), (text));                                             \
    } while (0)

static void test_texts_when_it_works(void **state)
{
    (void)state;
    struct facts f = machine(PROBE_NONE);
    struct workspace ws = make("demo");
    struct workspace wide = make("wide");
    struct workspace net = make("net");
    struct workspace *items[] = {&ws, &wide, &net};
    struct registry r = registry_of(items, 3);
    wide.read = VIEW_READ_ALL;
    net.network = NETWORK_ENABLED;
    autofree char *text = summary(&f, &r);
    HAS(text, "Commands run in a sandbox (bubblewrap 0.8.0)");
    HAS(text, "no network");
    HAS(text, "More of the host shows in: wide (workspace_info");
    HAS(text, "refused (PROCESS_SPAWN_FAILED), because network \"enabled\" cannot be set up here, "
              "in: net.");
    HAS_NOT(text, "Network by a proxy");
    HAS_NOT(text, "UNSANDBOXED");
    HAS_NOT(text, "NO SANDBOX");
    autofree char *full = instructions(&f, &r);
    HAS(full, text);
    HAS(full, "demo (workspace-write), wide (workspace-write), net (workspace-write)");
    HAS(full, "read-only for patches and commands");
    autofree char *shown = report(&f);
    HAS(shown, "sandbox: on (bubblewrap 0.8.0, /usr/bin/bwrap)\n  user namespace     on\n");
    HAS_NOT(shown, "off");
    f.probe.egress = true;
    autofree char *with_proxy = summary(&f, &r);
    HAS(with_proxy, "Network by a proxy, to the destinations of workspace_info "
                    "(execution.network.egress) only, in: net.");
    HAS_NOT(with_proxy, "PROCESS_SPAWN_FAILED");
}

/* A wall that the probe did not see is not named, although the sandbox as a whole works. */
static void test_texts_follow_the_layers(void **state)
{
    (void)state;
    struct facts f = machine(PROBE_NONE);
    struct workspace ws = make("demo");
    struct workspace *items[] = {&ws};
    struct registry r = registry_of(items, 1);
    f.probe.network_namespace = false;
    f.probe.seccomp = false;
    autofree char *text = summary(&f, &r);
    HAS_NOT(text, "no network");
    HAS_NOT(text, "a filter");
    HAS(text, "an empty /tmp");
    autofree char *shown = report(&f);
    HAS(shown, "  network namespace  off\n");
}

static void test_texts_when_it_does_not_work(void **state)
{
    (void)state;
    for (size_t m = 1; m < ARRAY_LEN(machines); m++) {
        struct facts f = machine(machines[m]);
        struct workspace ws = make("demo");
        struct workspace strict = make("strict");
        struct workspace *items[] = {&ws, &strict};
        struct registry r = registry_of(items, 2);
        strict.sandbox = SANDBOX_REQUIRED;
        autofree char *text = summary(&f, &r);
        HAS(text, "NO SANDBOX on this machine");
        HAS(text, probe_cause_what(machines[m]));
        HAS(text, probe_cause_remedy(machines[m]));
        HAS(text, "bwrap: [31m own words");
        HAS(text, "UNSANDBOXED");
        HAS(text, "refused (SANDBOX_UNAVAILABLE), because the sandbox is demanded, in: strict.");
        HAS_NOT(text, "Commands run in a sandbox");
        HAS_NOT(text, "no network");
        HAS_NOT(text, "\x1b");
        autofree char *full = instructions(&f, &r);
        HAS(full, text);
        HAS(full, "read-only for patches.");
        autofree char *shown = report(&f);
        HAS(shown, "sandbox: OFF");
        HAS(shown, probe_cause_name(machines[m]));
        HAS(shown, probe_cause_remedy(machines[m]));
        HAS_NOT(shown, " on\n");
        HAS_NOT(shown, "\x1b");
    }
}

/* Everything demands the sandbox: then nobody is told that commands run unsandboxed. */
static void test_texts_when_it_is_demanded(void **state)
{
    (void)state;
    struct facts f = machine(PROBE_APPARMOR);
    struct workspace strict = make("strict");
    struct workspace docs = make("docs");
    struct workspace *items[] = {&strict, &docs};
    struct registry r = registry_of(items, 2);
    strict.sandbox = SANDBOX_REQUIRED;
    docs.profile = PROFILE_READ_ONLY;
    autofree char *text = summary(&f, &r);
    HAS(text, "NO SANDBOX on this machine");
    HAS(text, "in: strict.");
    HAS_NOT(text, "UNSANDBOXED");
}

static void test_texts_before_the_probe(void **state)
{
    (void)state;
    struct facts f = machine(PROBE_NONE);
    struct workspace ws = make("demo");
    struct workspace *items[] = {&ws};
    struct registry r = registry_of(items, 1);
    f.probed = false;
    autofree char *text = instructions(&f, &r);
    HAS(text, "not known yet");
    HAS_NOT(text, "in a sandbox (");
    HAS_NOT(text, "NO SANDBOX");
    autofree char *shown = report(&f);
    assert_string_equal(shown, "sandbox: not probed yet\n");
}

/* M-1: what a client must find in the instructions. */
static void test_instructions_have_the_topics(void **state)
{
    (void)state;
    static const char *const topics[] = {
        "optional offset and limit",
        "next_offset",
        "content_lossy",
        "incomplete",
        "listing_version",
        "OUTPUT_LIMIT",
        "survives the request's end",
        "client's disconnect",
        "24x80",
        "process_resize",
        "belongs to the runner",
        "PROCESS_NOT_TTY",
        "PROCESS_NOT_RUNNING",
        "WORKSPACE_BUSY",
        "RESOURCE_QUEUE_FULL",
        "enforcement is not a permission",
        "unknown means perhaps executed",
        "dispatch_status unknown",
        "process_status",
        "signaled",
        "output_lost",
        "EOF is not success",
        "tty_size is not an argument",
        "approvals=confirm",
        "is no grant",
        "wait_ms",
        "600000 ms",
    };
    struct facts f = machine(PROBE_NONE);
    struct registry r = {0};
    autofree char *text = instructions(&f, &r);
    for (size_t i = 0; i < ARRAY_LEN(topics); i++)
        HAS(text, topics[i]);
    HAS(text, "No workspace is registered");
}

/* The longest there can be: many long ids in every list, and the longest detail. */
static void test_instructions_stay_short(void **state)
{
    (void)state;
    enum { N = 300 };
    static struct workspace all[N];
    static char ids[N][REGISTRY_ID_MAX + 1];
    static struct workspace *items[N];
    for (size_t i = 0; i < N; i++) {
        snprintf(ids[i], sizeof(ids[i]), "%03zu-%060d", i, 0);
        all[i] = make(ids[i]);
        all[i].sandbox = i % 3 == 0 ? SANDBOX_REQUIRED : SANDBOX_PREFERRED;
        all[i].network = i % 3 == 1 ? NETWORK_ENABLED : NETWORK_RESTRICTED;
        all[i].read = VIEW_READ_ALL;
        items[i] = &all[i];
    }
    struct registry r = registry_of(items, N);
    for (size_t m = 0; m < ARRAY_LEN(machines); m++) {
        struct facts f = machine(machines[m]);
        if (!f.probe.works) {
            memset(f.probe.detail, 'x', sizeof(f.probe.detail) - 1);
            f.probe.detail[sizeof(f.probe.detail) - 1] = '\0';
        }
        f.timeout_ms = UINT64_MAX;
        autofree char *text = instructions(&f, &r);
        HAS(text, "more");
        if (strlen(text) > FACTS_INSTRUCTIONS_MAX)
            fail_msg("%zu bytes: %s", strlen(text), text);
    }
}

UNIT_MAIN(cmocka_unit_test(test_texts_when_it_works),
          cmocka_unit_test(test_texts_follow_the_layers),
          cmocka_unit_test(test_texts_when_it_does_not_work),
          cmocka_unit_test(test_texts_when_it_is_demanded),
          cmocka_unit_test(test_texts_before_the_probe),
          cmocka_unit_test(test_instructions_have_the_topics),
          cmocka_unit_test(test_instructions_stay_short))
