/* core/facts: the contract's shape and types of `execution` for every kind of workspace on every
 * kind of machine (R18, M-2 to M-7), and who is refused. The texts are in test_facts_text.c. */
#include "../../helpers/machines.h"
#include "../../helpers/unit.h"
#include "wire/json.h"

/* ---- execution ---- */

static struct json_object *execution(const struct facts *f, const struct workspace *ws)
{
    autobuf out = BUF_INIT;
    struct jsonw w;
    struct json_object *obj = NULL;
    struct err e = {0};
    jsonw_init(&w, &out);
    facts_write_execution(f, ws, &w);
    if (json_parse(buf_bytes(&out), out.len, &obj, &e) < 0)
        fail_msg("%s", e.message);
    /* R18 and the contract: no such key anywhere. */
    assert_null(strstr(buf_cstr(&out), "environment_id"));
    return obj;
}

/* The value at "a.b.c", or NULL. */
static struct json_object *at(struct json_object *obj, const char *path)
{
    autofree char *copy = mem_strdup(path);
    char *rest = copy;
    for (char *name; obj != NULL && (name = strsep(&rest, ".")) != NULL;)
        obj = json_get(obj, name);
    return obj;
}

static bool is_true(struct json_object *obj, const char *path)
{
    struct json_object *value = at(obj, path);
    if (!json_object_is_type(value, json_type_boolean))
        fail_msg("%s is not a boolean", path);
    return json_object_get_boolean(value);
}

static void assert_text(struct json_object *obj, const char *path, const char *expected)
{
    const char *s = json_str(at(obj, path));
    if (s == NULL)
        fail_msg("%s is not a string", path);
    assert_string_equal(s, expected);
}

/* The public contract: b = boolean, s = string, i = integer, c = only when process.available. */
static const struct {
    const char *path;
    const char *kind;
} contract[] = {
    {"environment.kind", "s"},
    {"environment.client_selectable", "b"},
    {"environment.exec_supported", "b"},
    {"environment.file_read_supported", "b"},
    {"environment.file_write_supported", "b"},
    {"permissions.read", "b"},
    {"permissions.write", "b"},
    {"permissions.exec", "b"},
    {"files.read.available", "b"},
    {"files.find.available", "b"},
    {"files.patch.available", "b"},
    {"files.capabilities.read_range", "b"},
    {"files.capabilities.find_pagination", "b"},
    {"files.capabilities.read_max_bytes", "i"},
    {"files.capabilities.find_max_paths", "i"},
    {"process.available", "b"},
    {"process.capabilities.handles", "cb"},
    {"process.capabilities.survives_request_end", "cb"},
    {"process.capabilities.write_stdin", "cb"},
    {"process.capabilities.incremental_read", "cb"},
    {"process.capabilities.terminate", "cb"},
    {"process.capabilities.output_combined", "cb"},
    {"process.capabilities.tty.supported", "cb"},
    {"process.capabilities.tty.default", "cb"},
    {"process.capabilities.tty.initial_rows", "ci"},
    {"process.capabilities.tty.initial_cols", "ci"},
    {"process.capabilities.tty.resize_supported", "cb"},
    {"process.capabilities.lifetime.owner", "cs"},
    {"process.capabilities.lifetime.client_disconnect", "cs"},
    {"process.capabilities.lifetime.runner_disconnect", "cs"},
    {"process.capabilities.lifetime.gateway_shutdown", "cs"},
    {"process.capabilities.lifetime.restart_recovery", "cs"},
    {"serialization.scope", "s"},
    {"serialization.request_conflict", "s"},
    {"serialization.process_conflict", "s"},
    {"serialization.queue_durable", "b"},
    {"serialization.max_waiters_per_resource", "i"},
    {"serialization.live_process_holds_mutation_lease", "b"},
    {"serialization.parallel_exec", "b"},
    {"serialization.read_while_process_live", "b"},
    {"serialization.find_while_process_live", "b"},
    {"serialization.patch_while_process_live", "b"},
    {"serialization.conflict_error", "s"},
    {"serialization.queue_full_error", "s"},
    {"isolation.file_tools_workspace_scoped", "b"},
    {"isolation.command_sandbox", "s"},
    {"network.policy", "s"},
    {"network.enforcement", "s"},
    {"network.client_may_escalate", "b"},
    {"approvals", "s"},
    /* ours */
    {"isolation.mode", "s"},
    {"isolation.demanded", "b"},
    {"isolation.cause", "s"},
    {"isolation.layers.user_namespace", "b"},
    {"isolation.layers.seccomp", "b"},
    {"isolation.layers.pid1", "b"},
    {"view.enforced_for_commands", "b"},
    {"view.read", "s"},
    {"view.tmp", "s"},
    {"view.home", "s"},
    {"view.hidden_count", "i"},
    {"limits.read_max_bytes", "i"},
    {"limits.patch_max_bytes", "i"},
    {"limits.timeout_default_ms", "i"},
    {"limits.processes_max", "i"},
};

static void assert_contract(struct json_object *obj)
{
    bool process = is_true(obj, "process.available");
    for (size_t i = 0; i < ARRAY_LEN(contract); i++) {
        struct json_object *value = at(obj, contract[i].path);
        const char *kind = contract[i].kind;
        enum json_type type = json_type_boolean;
        if (kind[0] == 'c') {
            kind++;
            if (!process) {
                assert_null(value);
                continue;
            }
        }
        if (kind[0] != 'b')
            type = kind[0] == 's' ? json_type_string : json_type_int;
        if (!json_object_is_type(value, type))
            fail_msg("%s: missing or of another type", contract[i].path);
    }
    assert_int_equal(process, at(obj, "process.capabilities") != NULL);
}

static void test_contract_for_everything(void **state)
{
    (void)state;
    for (size_t m = 0; m < ARRAY_LEN(machines) + 1; m++) {
        struct facts f = machine(machines[m % ARRAY_LEN(machines)]);
        f.probed = m < ARRAY_LEN(machines);
        for (unsigned bits = 0; bits < 64; bits++) {
            struct workspace ws = make("demo");
            struct err e = {0};
            ws.profile = bits & 1 ? PROFILE_WORKSPACE_WRITE : PROFILE_READ_ONLY;
            ws.environment = bits & 2 ? ENVIRONMENT_LINUX_CONTAINER : ENVIRONMENT_HOST;
            ws.network = bits & 4 ? NETWORK_ENABLED : NETWORK_RESTRICTED;
            ws.sandbox = bits & 8 ? SANDBOX_REQUIRED : SANDBOX_PREFERRED;
            ws.approvals = bits & 16 ? APPROVALS_CONFIRM : APPROVALS_OFF;
            ws.read = bits & 32 ? VIEW_READ_ALL : VIEW_READ_MINIMAL;
            autojson *obj = execution(&f, &ws);
            assert_contract(obj);
            bool works = f.probed && f.probe.works;
            assert_text(obj, "isolation.command_sandbox", works ? "linux-sandbox" : "none");
            assert_text(obj, "network.enforcement", works ? "enforced" : "none");
            assert_int_equal(is_true(obj, "isolation.layers.seccomp"), works);
            assert_false(is_true(obj, "network.client_may_escalate"));
            assert_text(obj, "isolation.mode", facts_mode_name(facts_mode(&f, &ws)));
            bool refused = facts_mode(&f, &ws) == FACTS_REFUSED;
            assert_int_equal(refused, at(obj, "isolation.refusal") != NULL);
            if (refused) {
                assert_int_equal(facts_check_exec(&f, &ws, &e), -1);
                assert_false(is_true(obj, "process.available"));
            }
            if (f.probed && !works)
                assert_true(strlen(json_str(at(obj, "isolation.remedy"))) > 0);
            else
                assert_null(at(obj, "isolation.remedy"));
        }
    }
}

/* M-3 */
static void test_host_write(void **state)
{
    (void)state;
    static const char *const trues[] = {
        "environment.exec_supported",
        "files.read.available",
        "files.find.available",
        "files.patch.available",
        "files.capabilities.read_range",
        "process.available",
        "process.capabilities.handles",
        "process.capabilities.survives_request_end",
        "process.capabilities.tty.supported",
        "process.capabilities.tty.resize_supported",
        "serialization.parallel_exec",
        "serialization.patch_while_process_live",
        "isolation.file_tools_workspace_scoped",
        "view.enforced_for_commands",
    };
    struct facts f = machine(PROBE_NONE);
    struct workspace ws = make("demo");
    struct view_mount mounts[] = {{(char *)"/data", true}};
    ws.mounts = mounts;
    ws.n_mounts = 1;
    strv_add(&ws.hide, "/ws/key");
    strv_add(&ws.hidden, "/ws/key");
    strv_add(&ws.hidden, "/ws/.ssh");
    const struct facts_limit more[] = {{"wait_max_ms", 7}, {NULL, 0}};
    f.limits = more;
    autojson *obj = execution(&f, &ws);
    for (size_t i = 0; i < ARRAY_LEN(trues); i++) {
        if (!is_true(obj, trues[i]))
            fail_msg("%s", trues[i]);
    }
    assert_text(obj, "process.capabilities.lifetime.client_disconnect", "keep_running");
    assert_text(obj, "process.capabilities.lifetime.restart_recovery", "none");
    assert_text(obj, "serialization.request_conflict", "wait-fifo");
    assert_false(is_true(obj, "serialization.live_process_holds_mutation_lease"));
    assert_int_equal(json_object_get_int(at(obj, "files.capabilities.read_max_bytes")), 1048576);
    assert_int_equal(json_object_get_int(at(obj, "files.capabilities.find_max_paths")), 10000);
    assert_int_equal(json_object_get_int(at(obj, "process.capabilities.tty.initial_cols")), 80);
    assert_int_equal(json_object_get_int(at(obj, "limits.wait_max_ms")), 7);
    assert_text(obj, "view.tmp", "private");
    assert_int_equal(json_object_array_length(at(obj, "view.protected")), 3);
    assert_int_equal(json_object_array_length(at(obj, "view.hidden")), 1);
    assert_int_equal(json_object_get_int(at(obj, "view.hidden_count")), 2);
    assert_int_equal(json_object_array_length(at(obj, "view.mounts")), 1);
    assert_text(obj, "isolation.cause", "none");
    strv_fini(&ws.hide);
    strv_fini(&ws.hidden);
}

/* M-5, M-6, M-7 */
static void test_what_the_profile_and_the_environment_leave(void **state)
{
    (void)state;
    struct facts f = machine(PROBE_NONE);
    for (unsigned bits = 0; bits < 4; bits++) {
        struct workspace ws = make("demo");
        bool write = bits & 1;
        bool host = bits & 2;
        ws.profile = write ? PROFILE_WORKSPACE_WRITE : PROFILE_READ_ONLY;
        ws.environment = host ? ENVIRONMENT_HOST : ENVIRONMENT_LINUX_CONTAINER;
        autojson *obj = execution(&f, &ws);
        assert_true(is_true(obj, "permissions.read"));
        assert_int_equal(is_true(obj, "permissions.write"), write);
        assert_int_equal(is_true(obj, "permissions.exec"), write);
        assert_int_equal(is_true(obj, "files.read.available"), host);
        assert_int_equal(is_true(obj, "files.find.available"), host);
        assert_int_equal(is_true(obj, "files.patch.available"), host && write);
        assert_int_equal(is_true(obj, "process.available"), host && write);
        assert_int_equal(is_true(obj, "environment.file_write_supported"), host);
    }
}

/* Without the sandbox nothing of the view is claimed for commands. */
static void test_host_mode_claims_nothing(void **state)
{
    (void)state;
    struct facts f = machine(PROBE_NO_BWRAP);
    struct workspace ws = make("demo");
    autojson *obj = execution(&f, &ws);
    assert_text(obj, "isolation.mode", "host");
    assert_text(obj, "isolation.cause", "no_bwrap");
    assert_text(obj, "isolation.remedy", "install it: apt-get install bubblewrap");
    assert_false(is_true(obj, "view.enforced_for_commands"));
    assert_text(obj, "view.tmp", "host");
    assert_text(obj, "view.home", "/ws");
    assert_true(is_true(obj, "process.available"));
}

/* A layer that the probe did not see is not claimed, although the sandbox as a whole works. */
static void test_missing_layer_is_not_claimed(void **state)
{
    (void)state;
    struct facts f = machine(PROBE_NONE);
    struct workspace ws = make("demo");
    f.probe.network_namespace = false;
    autojson *obj = execution(&f, &ws);
    assert_text(obj, "network.enforcement", "none");
    assert_false(is_true(obj, "isolation.layers.network_namespace"));
    assert_true(is_true(obj, "isolation.layers.mount_namespace"));
}

/* ---- modes and refusals ---- */

static void test_modes(void **state)
{
    (void)state;
    static const struct {
        bool probed;
        bool works;
        enum sandbox_demand sandbox;
        enum network_policy network;
        enum environment_kind environment;
        enum facts_mode mode;
        enum err_code code;
    } rows[] = {
        {true, true, SANDBOX_PREFERRED, NETWORK_RESTRICTED, ENVIRONMENT_HOST, FACTS_SANDBOXED, 0},
        {true, true, SANDBOX_REQUIRED, NETWORK_RESTRICTED, ENVIRONMENT_HOST, FACTS_SANDBOXED, 0},
        {true, false, SANDBOX_PREFERRED, NETWORK_RESTRICTED, ENVIRONMENT_HOST, FACTS_HOST, 0},
        {true, false, SANDBOX_REQUIRED, NETWORK_RESTRICTED, ENVIRONMENT_HOST, FACTS_REFUSED,
         ERR_SANDBOX_UNAVAILABLE},
        {true, true, SANDBOX_PREFERRED, NETWORK_ENABLED, ENVIRONMENT_HOST, FACTS_REFUSED,
         ERR_PROCESS_SPAWN_FAILED},
        {true, false, SANDBOX_PREFERRED, NETWORK_ENABLED, ENVIRONMENT_HOST, FACTS_REFUSED,
         ERR_PROCESS_SPAWN_FAILED},
        {true, true, SANDBOX_PREFERRED, NETWORK_RESTRICTED, ENVIRONMENT_LINUX_CONTAINER,
         FACTS_REFUSED, ERR_UNAUTHORIZED},
        {false, false, SANDBOX_PREFERRED, NETWORK_RESTRICTED, ENVIRONMENT_HOST, FACTS_PROBING,
         ERR_SANDBOX_UNAVAILABLE},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct facts f = machine(rows[i].works ? PROBE_NONE : PROBE_NO_USERNS);
        struct workspace ws = make("demo");
        struct err e = {0};
        f.probed = rows[i].probed;
        ws.sandbox = rows[i].sandbox;
        ws.network = rows[i].network;
        ws.environment = rows[i].environment;
        assert_int_equal(facts_mode(&f, &ws), rows[i].mode);
        assert_int_equal(facts_check_exec(&f, &ws, &e), rows[i].code == ERR_NONE ? 0 : -1);
        assert_int_equal(e.code, rows[i].code);
    }
}

static void test_refusal_names_cause_and_remedy(void **state)
{
    (void)state;
    struct facts f = machine(PROBE_NO_BWRAP);
    struct workspace ws = make("demo");
    struct err e = {0};
    strcpy(f.probe.detail, "");
    ws.sandbox = SANDBOX_REQUIRED;
    facts_check_exec(&f, &ws, &e);
    assert_string_equal(e.message,
                        "the workspace \"demo\" demands the sandbox, and it cannot be built here: "
                        "bubblewrap is not installed; nothing was started; for the operator: "
                        "install it: apt-get install bubblewrap");
}

UNIT_MAIN(cmocka_unit_test(test_contract_for_everything), cmocka_unit_test(test_host_write),
          cmocka_unit_test(test_what_the_profile_and_the_environment_leave),
          cmocka_unit_test(test_host_mode_claims_nothing),
          cmocka_unit_test(test_missing_layer_is_not_claimed), cmocka_unit_test(test_modes),
          cmocka_unit_test(test_refusal_names_cause_and_remedy))
