/* core/registry_load: what is refused and in which words, which files are not read, and that the
 * examples, the manual and the schema say the same as the loader. */
#include "../../helpers/base_dir.h"
#include "../../helpers/unit.h"
#include "base/buf.h"
#include "base/mem.h"
#include "core/registry.h"
#include "wire/json.h"

#include <dirent.h>
#include <fcntl.h>
#include <json-c/linkhash.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- refused ---- */

/* A '*' ends the part of a message that is compared: the rest is the parser's or the host's. */

static const struct {
    const char *text;
    const char *message;
} refused[] = {
    {"", "c.json: JSON: *"},
    {"{\"workspaces\":{}", "c.json: JSON: *"},
    {"{} x", "c.json: JSON: *"},
    {"{\"workspaces\":{\"a\":{},\"a\":{}}}",
     "c.json: JSON: two members of one object have the same name"},
    {"[]", "c.json: must be an object"},
    {"{\"workspace\":{}}", "c.json: workspace: no such name here; did you mean \"workspaces\"?"},
    {"{\"workspaces\":[]}", "c.json: workspaces: must be an object, not array"},
    {"{\"workspaces\":{\"demo\":[]}}", "c.json: workspaces.demo: must be an object"},
    {"{\"workspaces\":{\"\":{}}}",
     "c.json: workspaces: \"\" is not an id: 1 to 64 letters, digits, '.', '_' or '-', not "
     "beginning with '.' or '-'"},
    {"{\"workspaces\":{\".x\":{}}}",
     "c.json: workspaces: \".x\" is not an id: 1 to 64 letters, digits, '.', '_' or '-', not "
     "beginning with '.' or '-'"},
    {"{\"workspaces\":{\"a/b\":{}}}",
     "c.json: workspaces: \"a/b\" is not an id: 1 to 64 letters, digits, '.', '_' or '-', not "
     "beginning with '.' or '-'"},
    {WS(""), "c.json: workspaces.demo.root: is required (a string)"},
    {WS("\"root\":7"), "c.json: workspaces.demo.root: must be a string, not int"},
    {WS("\"root\":\"\""),
     "c.json: workspaces.demo.root: a length of 0 is out of range; 1 to 4095 is accepted"},
    {WS("\"root\":\"a\""), "c.json: workspaces.demo.root: \"a\" is not an absolute path"},
    {WS("\"root\":\"/a\\u0000b\""), "c.json: workspaces.demo.root: must not hold a NUL character"},
    {WS("\"root\":\"@/none\""),
     "c.json: workspaces.demo.root: the directory \"@/none\" does not exist"},
    {WS("\"root\":\"@/file\""), "c.json: workspaces.demo.root: \"@/file\" is not a directory"},
    {WS("\"root\":\"@/file/x\""), "c.json: workspaces.demo.root: \"@/file/x\" is not a directory"},
    {WS("\"root\":\"/\""), "c.json: workspaces.demo.root: \"/\" cannot be used: it is the whole "
                           "machine; name a directory "
                           "of your own"},
    {WS("\"root\":\"/proc/self\""), "c.json: workspaces.demo.root: \"/proc/*"},
    {WS("\"root\":\"/etc\",\"profile\":\"workspace-write\""),
     "c.json: workspaces.demo.root: commands must not write in \"/etc\": it belongs to the system; "
     "name a directory of your own"},
    {WS("\"root\":\"/etc/../usr/lib\",\"profile\":\"workspace-write\""),
     "c.json: workspaces.demo.root: commands must not write in \"/usr/lib\": it belongs to the "
     "system; name a directory of your own"},
    {WS("\"root\":\"/tmp\",\"profile\":\"workspace-write\""),
     "c.json: workspaces.demo.root: commands must not write in \"/tmp\": everybody's temporary "
     "files lie in it; name a directory of your own"},
    {WS(ROOT ",\"profle\":\"read-only\""),
     "c.json: workspaces.demo.profle: no such name here; did you mean \"profile\"?"},
    {WS(ROOT ",\"writable\":true"),
     "c.json: workspaces.demo.writable: no such name here; accepted: root, profile, environment, "
     "network, network_scope, approvals, sandbox, read, mounts, hide, env, protect, deny_read, "
     "git, tmp, proc, devices, debug, user_namespaces, limits, cgroup_parent, egress, publish"},
    {WS(ROOT ",\"user_namespaces\":1"), "c.json: workspaces.demo.user_namespaces: *"},
    {WS(ROOT ",\"user_namespaces\":true,\"proc\":\"inherited\""),
     "c.json: workspaces.demo.user_namespaces: they need a /proc that can be written; leave "
     "\"proc\": \"inherited\" out, or do without them"},
    {WS(ROOT ",\"protect\":[\"/abs\"]"),
     "c.json: workspaces.demo.protect[0]: \"/abs\" is not a path relative to the workspace, "
     "without empty, \".\" and \"..\" components"},
    {WS(ROOT ",\"protect\":[\"a\",\"a/../b\"]"),
     "c.json: workspaces.demo.protect[1]: \"a/../b\" is not a path relative to the workspace, "
     "without empty, \".\" and \"..\" components"},
    {WS(ROOT ",\"deny_read\":[\"**\"]"),
     "c.json: workspaces.demo.deny_read[0]: \"**\" would hide the whole workspace"},
    {WS(ROOT ",\"devices\":[\"/etc/passwd\"]"),
     "c.json: workspaces.demo.devices[0]: \"/etc/passwd\" does not lie in /dev"},
    {WS(ROOT ",\"limits\":{\"memory\":0}"), "c.json: workspaces.demo.limits.memory: the value 0 is "
                                            "out of range; 1 to 18446744073709551615 is "
                                            "accepted"},
    {WS(ROOT ",\"limits\":{\"memory\":1}"),
     "c.json: workspaces.demo.limits: memory, pids and cpu_percent need a control group; name a "
     "directory that this server may make groups in (\"cgroup_parent\")"},
    {WS(ROOT ",\"egress\":{}"),
     "c.json: workspaces.demo.egress: has no effect while \"network\" is \"restricted\"; write "
     "\"network\": \"enabled\" beside it, or take it out"},
    {WS(ROOT ",\"publish\":[3000]"),
     "c.json: workspaces.demo.publish: has no effect while \"network\" is \"restricted\"; write "
     "\"network\": \"enabled\" beside it, or take it out"},
    {WS(ROOT ",\"network\":\"enabled\",\"egress\":{\"allow\":[\"0x7f.1\"]}"),
     "c.json: workspaces.demo.egress.allow[0]: \"0x7f.1\": *"},
    {WS(ROOT ",\"network\":\"enabled\",\"egress\":{\"private\":[\"10.0.0.1/8\"]}"),
     "c.json: workspaces.demo.egress.private[0]: *"},
    {WS(ROOT ",\"network\":\"enabled\",\"egress\":{\"local_ports\":[0]}"),
     "c.json: workspaces.demo.egress.local_ports[0]: must be a port number from 1 to 65535"},
    {WS(ROOT ",\"network\":\"enabled\",\"egress\":{\"unix_sockets\":[\"/run/../x\"]}"),
     "c.json: workspaces.demo.egress.unix_sockets[0]: \"/run/../x\" *"},
    {WS(ROOT ",\"network\":\"enabled\",\"egress\":{\"unix_sockets\":[\"@/a/s\"]}"),
     "c.json: workspaces.demo.egress.unix_sockets[0]: \"@/a/s\" lies in the workspace*"},
    {WS(ROOT ",\"network\":\"enabled\",\"publish\":[80]"),
     "c.json: workspaces.demo.publish[0]: must be a port number from 1024 to 65535; a command "
     "cannot listen on a lower one"},
    {WS(ROOT ",\"network\":\"enabled\",\"publish\":[3000,3000]"),
     "c.json: workspaces.demo.publish[1]: the port is there twice"},
    {WS(ROOT ",\"profile\":\"host-admin\""),
     "c.json: workspaces.demo.profile: \"host-admin\" is not one of \"read-only\", "
     "\"workspace-write\""},
    {WS(ROOT ",\"profile\":true"),
     "c.json: workspaces.demo.profile: must be a string, not boolean"},
    {WS(ROOT ",\"network\":\"on\""),
     "c.json: workspaces.demo.network: \"on\" is not one of \"restricted\", \"enabled\""},
    {WS(ROOT ",\"approvals\":\"ask\""),
     "c.json: workspaces.demo.approvals: \"ask\" is not one of \"off\", \"confirm\""},
    {WS(ROOT ",\"sandbox\":\"off\""),
     "c.json: workspaces.demo.sandbox: \"off\" is not one of \"preferred\", \"required\""},
    {WS(ROOT ",\"read\":\"everything\""),
     "c.json: workspaces.demo.read: \"everything\" is not one of \"minimal\", \"all\""},
    {WS(ROOT ",\"environment\":\"box\""),
     "c.json: workspaces.demo.environment: unknown environment \"box\"; register it under "
     "\"environments\" (\"local\" always exists)"},
    {"{\"environments\":{\"box\":{}}}", "c.json: environments.box.kind: is required (a string)"},
    {"{\"environments\":{\"box\":{\"kind\":\"vm\"}}}",
     "c.json: environments.box.kind: \"vm\" is not one of \"host\", \"linux-container\""},
    {"{\"environments\":{\"box\":{\"kind\":\"host\",\"image\":\"x\"}}}",
     "c.json: environments.box.image: no such name here; accepted: kind"},
    {"{\"environments\":{\"local\":{\"kind\":\"linux-container\"}}}",
     "c.json: environments.local: \"local\" always is this host; give another kind another id"},
    {"{\"environments\":{\"b x\":{\"kind\":\"host\"}}}",
     "c.json: environments: \"b x\" is not an id: 1 to 64 letters, digits, '.', '_' or '-', not "
     "beginning with '.' or '-'"},
    {WS(ROOT ",\"mounts\":[\"@/data\"]"), "c.json: workspaces.demo.mounts[0]: must be an object"},
    {WS(ROOT ",\"mounts\":[{\"writable\":true}]"),
     "c.json: workspaces.demo.mounts[0].path: is required (a string)"},
    {WS(ROOT ",\"mounts\":[{\"path\":\"data\"}]"),
     "c.json: workspaces.demo.mounts[0].path: \"data\" is not an absolute path"},
    {WS(ROOT ",\"mounts\":[{\"path\":\"@/data\",\"write\":true}]"),
     "c.json: workspaces.demo.mounts[0].write: no such name here; did you mean \"writable\"?"},
    {WS(ROOT ",\"mounts\":[{\"path\":\"@/data/../b\"}]"),
     "c.json: workspaces.demo.mounts[0].path: \"@/data/../b\" must be written without empty, \".\" "
     "and \"..\" components and without a slash at its end"},
    {WS(ROOT ",\"mounts\":[{\"path\":\"@/data/\"}]"),
     "c.json: workspaces.demo.mounts[0].path: \"@/data/\" must be written without empty, \".\" and "
     "\"..\" components and without a slash at its end"},
    {WS(ROOT ",\"mounts\":[{\"path\":\"@/none\"}]"),
     "c.json: workspaces.demo.mounts[0].path: cannot look at \"@/none\": No such file or "
     "directory"},
    {WS("\"root\":\"@/b\",\"mounts\":[{\"path\":\"@/link/in\"}]"),
     "c.json: workspaces.demo.mounts[0].path: \"@/link/in\" goes through a symbolic link; write "
     "the "
     "real path (\"@/a/in\")"},
    {WS(ROOT ",\"mounts\":[{\"path\":\"/proc/1\"}]"),
     "c.json: workspaces.demo.mounts[0].path: \"/proc/1\" cannot be used: it shows every process, "
     "this server included; name a directory of your own"},
    {WS(ROOT ",\"mounts\":[{\"path\":\"/tmp\"}]"),
     "c.json: workspaces.demo.mounts[0].path: a command has a /tmp of its own; mount a directory "
     "in "
     "it instead"},
    {WS(ROOT ",\"mounts\":[{\"path\":\"/usr/local/bin\",\"writable\":true}]"),
     "c.json: workspaces.demo.mounts[0].path: commands must not write in \"/usr/local/bin\": it is "
     "on everybody's PATH; name a directory of your own"},
    {WS(ROOT ",\"mounts\":[{\"path\":\"@/a/in\"}]"),
     "c.json: workspaces.demo: mounts[0].path: \"@/a/in\" lies in the workspace, where the profile "
     "decides; leave it out"},
    {WS("\"root\":\"@/a/in\",\"mounts\":[{\"path\":\"@/a\",\"writable\":true}]"),
     "c.json: workspaces.demo: mounts[0].path: \"@/a\" contains the workspace; writable, it would "
     "undo the protection of names in it"},
    {WS(ROOT ",\"mounts\":[{\"path\":\"@/b\"},{\"path\":\"@/b\"}]"),
     "c.json: workspaces.demo.mounts[1].path: \"@/b\" is mounted twice"},
    {WS(ROOT ",\"hide\":\"@/a/in\""),
     "c.json: workspaces.demo.hide: must be an array of strings, not string"},
    {WS(ROOT ",\"hide\":[1]"),
     "c.json: workspaces.demo.hide: item 0 must be a string without NUL characters"},
    {WS(ROOT ",\"hide\":[\"in\"]"),
     "c.json: workspaces.demo.hide[0]: \"in\" is not an absolute path"},
    {WS(ROOT ",\"hide\":[\"@/a//in\"]"),
     "c.json: workspaces.demo.hide[0]: \"@/a//in\" must be written without empty, \".\" and \"..\" "
     "components and without a slash at its end"},
    {WS(ROOT ",\"hide\":[\"@/link/in/none\"]"),
     "c.json: workspaces.demo.hide[0]: \"@/link/in/none\" goes through a symbolic link; write the "
     "real path (\"@/a/in/none\")"},
    {WS(ROOT ",\"hide\":[\"@/b\",\"@\"]"),
     "c.json: workspaces.demo: hide[1]: \"@\" would hide the workspace itself"},
    {WS(ROOT ",\"env\":[\"A=b\"]"),
     "c.json: workspaces.demo.env: must be an object whose values are strings, not array"},
    {WS(ROOT ",\"env\":{\"A\":1}"),
     "c.json: workspaces.demo.env: \"A\" must be a string without NUL characters"},
    {WS(ROOT ",\"env\":{\"1A\":\"b\"}"),
     "c.json: workspaces.demo.env: \"1A\" is not a variable's name: letters, digits and '_', not "
     "beginning with a digit"},
    {WS(ROOT ",\"env\":{\"\":\"b\"}"),
     "c.json: workspaces.demo.env: \"\" is not a variable's name: letters, digits and '_', not "
     "beginning with a digit"},
    {WS(ROOT ",\"env\":{\"A=B\":\"b\"}"),
     "c.json: workspaces.demo.env: \"A=B\" is not a variable's name: letters, digits and '_', not "
     "beginning with a digit"},
    {WS(ROOT ",\"env\":{\"LD_PRELOAD\":\"/x.so\"}"),
     "c.json: workspaces.demo.env: \"LD_PRELOAD\" cannot be set: names that begin with \"LD_\" are "
     "reserved"},
    {WS(ROOT ",\"env\":{\"CODESPACE_X\":\"1\"}"),
     "c.json: workspaces.demo.env: \"CODESPACE_X\" cannot be set: names that begin with "
     "\"CODESPACE_\" are reserved"},
    /* two workspaces */
    {"{\"workspaces\":{\"one\":{" ROOT "},\"two\":{" ROOT "}}}",
     "c.json: workspaces.two: \"one\" and \"two\" are the same directory (@/a); register it once"},
    {"{\"workspaces\":{\"one\":{" ROOT "},\"two\":{\"root\":\"@/link\"}}}",
     "c.json: workspaces.two: \"one\" and \"two\" are the same directory (@/a); register it once"},
    {"{\"workspaces\":{\"out\":{" ROOT ",\"profile\":\"workspace-write\"},\"in\":{\"root\":\"@/a/"
     "in\"}}}",
     "c.json: workspaces.in: \"in\" (@/a/in) lies inside \"out\" (@/a), which is workspace-write, "
     "so "
     "the rules of \"in\" could be passed by; only a read-only workspace may contain another one"},
    {"{\"workspaces\":{\"in\":{\"root\":\"@/a/in\"},\"out\":{" ROOT
     ",\"profile\":\"workspace-write\"}}}",
     "c.json: workspaces.out: \"in\" (@/a/in) lies inside \"out\" (@/a), which is workspace-write, "
     "so the rules of \"in\" could be passed by; only a read-only workspace may contain another "
     "one"},
    {"{\"workspaces\":{\"out\":{" ROOT "},\"in\":{\"root\":\"@/a/in\",\"hide\":[\"@/a/in/k\"]}}}",
     "c.json: workspaces.in: \"in\" hides \"@/a/in/k\", but \"out\" contains it and shows it; add "
     "the path to the list \"hide\" of \"out\""},
    {"{\"workspaces\":{\"two\":{\"root\":\"@/b\",\"mounts\":[{\"path\":\"@/a/"
     "in\",\"writable\":true}]},"
     "\"one\":{" ROOT "}}}",
     "c.json: workspaces.one: the writable mount \"@/a/in\" of \"two\" and the workspace \"one\" "
     "(@/a) have files in common, so the rules of \"one\" could be passed by"},
    {"{\"workspaces\":{\"one\":{" ROOT "},\"two\":{\"root\":\"@/b\",\"mounts\":[{\"path\":\"@/a/"
     "in\",\"writable\":true}]}}}",
     "c.json: workspaces.two: the writable mount \"@/a/in\" of \"two\" and the workspace \"one\" "
     "(@/a) have files in common, so the rules of \"one\" could be passed by"},
};

static void test_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        struct registry r = {0};
        struct err e = {0};
        autofree char *message = base_dir_fill(refused[i].message);
        if (base_dir_load(&r, refused[i].text, &e) == 0)
            fail_msg("row %zu was accepted: %s", i, refused[i].text);
        assert_int_equal(e.code, ERR_CONFIG_INVALID);
        char *star = strchr(message, '*');
        if (star != NULL) {
            *star = '\0';
            assert_true(str_starts(e.message, message));
        } else {
            assert_string_equal(e.message, message);
        }
        registry_fini(&r);
    }
}

/* ---- credentials ---- */

#define INJECT(host, header, file)                                                                 \
    "{\"host\":\"" host "\",\"header\":\"" header "\",\"file\":\"" file "\"}"
#define EGRESS(inject) "\"network\":\"enabled\",\"egress\":{\"inject\":[" inject "]}"

static void refuse_credential(const char *text, const char *message)
{
    struct registry r = {0};
    struct err e = {0};
    autofree char *expected = base_dir_fill(message);
    if (base_dir_load(&r, text, &e) == 0)
        fail_msg("accepted: %s", text);
    assert_int_equal(e.code, ERR_CONFIG_INVALID);
    assert_string_equal(e.message, expected);
    registry_fini(&r);
}

static void test_credentials_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *message;
    } rows[] = {
        {WS(ROOT "," EGRESS("{\"host\":\"a.test\",\"header\":\"A\"}")),
         ": needs \"file\" or \"command\", and not both: where the value comes from"},
        {WS(ROOT "," EGRESS("{\"host\":\"a.test\",\"header\":\"A\",\"command\":[\"@/open\"]}")),
         ".command[0]: \"@/open\" can be written by others; chmod go-w"},
        {WS(ROOT "," EGRESS("{\"host\":\"a.test\",\"header\":\"A\",\"command\":[\"@/token\"]}")),
         ".command[0]: \"@/token\" is not executable"},
        {WS(ROOT "," EGRESS(INJECT("*.test", "A", "@/token"))),
         ".host: \"*.test\": byte 0x2a is not possible in a host name (letters, digits, '-', '_' "
         "and '.'; other alphabets in their xn-- form)"},
        {WS(ROOT "," EGRESS(INJECT("localhost:8080", "A", "@/token"))),
         ".host: \"localhost:8080\" is the loopback, where a command's own server could listen and "
         "read the credential; name the host by its own name"},
        {WS(ROOT "," EGRESS(INJECT("a.test", "Content-Length", "@/token"))),
         ".header: \"Content-Length\" is written by the proxy itself; name another header, such as "
         "\"Authorization\""},
        {WS(ROOT "," EGRESS(INJECT("a.test", "A:", "@/token"))),
         ".header: \"A:\" is not a header's name (letters, digits, '-')"},
        {WS(ROOT "," EGRESS(INJECT("a.test", "A", "token"))),
         ".file: \"token\" is not an absolute path"},
        {WS(ROOT "," EGRESS(INJECT("a.test", "A", "@/none"))),
         ".file: cannot look at \"@/none\": No such file or directory"},
        {WS(ROOT "," EGRESS(INJECT("a.test", "A", "@/b"))), ".file: \"@/b\" is not a regular file"},
        {WS(ROOT "," EGRESS(INJECT("a.test", "A", "@/link/in"))),
         ".file: \"@/link/in\" goes through a symbolic link; write the real path (\"@/a/in\")"},
        {WS(ROOT "," EGRESS(INJECT("a.test", "A", "@/open"))),
         ".file: others may read or write \"@/open\" (mode 0660), so it is no secret; chmod 600"},
    };
    autofree char *token = base_dir_fill("@/token");
    autofree char *open = base_dir_fill("@/open");
    base_dir_write(token, "x\n", 0600);
    base_dir_write(open, "x\n", 0660);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        autofree char *message =
            mem_printf("c.json: workspaces.demo.egress.inject[0]%s", rows[i].message);
        refuse_credential(rows[i].text, message);
    }
    refuse_credential(
        WS(ROOT
           "," EGRESS(INJECT("a.test", "A", "@/token") "," INJECT("A.test:80", "a", "@/token"))),
        "c.json: workspaces.demo.egress.inject[1].header: \"a\" is given twice for this host");
}

/* In a workspace, in whichever order the two are read, or in a writable mount. */
static void test_credentials_out_of_reach(void **state)
{
    (void)state;
    autofree char *inside = base_dir_fill("@/b/token");
    autofree char *outside = base_dir_fill("@/token");
    struct registry r = {0};
    struct err e = {0};
    base_dir_write(inside, "x\n", 0600);
    base_dir_write(outside, "x\n", 0600);
    static const char demo[] = "\"demo\":{" ROOT "," EGRESS(INJECT("a.test", "A", "@/b/token")) "}";
    static const char other[] = "\"other\":{\"root\":\"@/b\"}";
    for (int swap = 0; swap < 2; swap++) {
        autofree char *text =
            mem_printf("{\"workspaces\":{%s,%s}}", swap ? other : demo, swap ? demo : other);
        autofree char *message = mem_printf(
            "c.json: workspaces.%s: egress.inject[0].file of \"demo\": \"@/b/token\" lies where "
            "commands or tools of \"other\" reach it; keep it outside of every workspace",
            swap ? "demo" : "other");
        refuse_credential(text, message);
    }
    autofree char *script = base_dir_fill("@/b/print");
    base_dir_write(script, "x\n", 0700);
    refuse_credential(
        "{\"workspaces\":{\"other\":{\"root\":\"@/b\"},\"demo\":{" ROOT "," EGRESS(
            "{\"host\":\"a.test\",\"header\":\"A\",\"command\":[\"/bin/sh\",\"@/b/print\"]}") "}}}",
        "c.json: workspaces.demo: egress.inject[0].command[1] of \"demo\": \"@/b/print\" lies "
        "where commands or tools of \"other\" could write it; keep it outside of every workspace");
    refuse_credential(
        WS(ROOT ",\"mounts\":[{\"path\":\"@/b\",\"writable\":true}]," EGRESS(
            INJECT("a.test", "A", "@/b/token"))),
        "c.json: workspaces.demo: egress.inject[0].file of \"demo\": \"@/b/token\" lies where "
        "commands or tools of \"demo\" reach it; keep it outside of every workspace");
    /* Elsewhere it is hidden from every workspace. */
    if (base_dir_load(&r,
                      "{\"workspaces\":{\"other\":{\"root\":\"@/b\"},\"demo\":{" ROOT
                      "," EGRESS(INJECT("a.test", "A", "@/token")) "}}}",
                      &e) < 0)
        fail_msg("%s", e.message);
    for (size_t i = 0; i < r.n; i++)
        assert_true(strv_has(&r.items[i]->hidden, outside));
    registry_fini(&r);
    unlink(inside);
    unlink(script);
}

static void test_limits(void **state)
{
    (void)state;
    static const struct {
        const char *head;
        const char *item; /* with a %d */
        int n;
        const char *tail;
        const char *message;
    } rows[] = {
        {"{\"workspaces\":{\"demo\":{\"root\":\"@/a\",\"hide\":[\"/x\"", ",\"/h%d\"",
         VIEW_PATHS_MAX, "]}}}",
         "c.json: workspaces.demo.hide: a count of 1025 is out of range; 0 to 1024 is accepted"},
        {"{\"workspaces\":{\"demo\":{\"root\":\"@/a\",\"mounts\":[{\"path\":\"/x\"}",
         ",{\"path\":\"/m%d\"}", VIEW_MOUNTS_MAX, "]}}}",
         "c.json: workspaces.demo.mounts: a count of 257 is out of range; 0 to 256 is accepted"},
        {"{\"workspaces\":{\"demo\":{\"root\":\"@/a\",\"env\":{\"A\":\"\"", ",\"A%d\":\"\"",
         REGISTRY_ENV_MAX, "}}}}",
         "c.json: workspaces.demo.env: a count of 257 is out of range; 0 to 256 is accepted"},
        {"{\"workspaces\":{\"demo\":{\"root\":\"@/a\",\"env\":{\"A\":\"", "x",
         REGISTRY_ENV_VALUE_MAX + 1, "\"}}}}",
         "c.json: workspaces.demo.env: the value of \"A\" is longer than REGISTRY_ENV_VALUE_MAX "
         "(32768 bytes)"},
        {"{\"workspaces\":{\"demo\":{\"root\":\"@/a\",\"hide\":[\"/", "x", 5000, "\"]}}}",
         "c.json: workspaces.demo.hide[0]: the path is longer than PATH_MAX (4096 bytes)"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct registry r = {0};
        struct err e = {0};
        autobuf text = BUF_INIT;
        buf_puts(&text, rows[i].head);
        for (int j = 0; j < rows[i].n; j++) {
            const char *at = strstr(rows[i].item, "%d");
            if (at == NULL)
                buf_puts(&text, rows[i].item);
            else
                buf_printf(&text, "%.*s%d%s", (int)(at - rows[i].item), rows[i].item, j, at + 2);
        }
        buf_puts(&text, rows[i].tail);
        assert_int_equal(base_dir_load(&r, buf_cstr(&text), &e), -1);
        assert_string_equal(e.message, rows[i].message);
        registry_fini(&r);
    }
}

/* ---- the file ---- */

static void refuse_file(const char *path, const char *message)
{
    struct registry r = {0};
    struct err e = {0};
    autofree char *real = base_dir_fill(path);
    autofree char *expected = base_dir_fill(message);
    assert_int_equal(registry_load_file(&r, real, &e), -1);
    assert_int_equal(e.code, ERR_CONFIG_INVALID);
    assert_string_equal(e.message, expected);
    registry_fini(&r);
}

static void test_file(void **state)
{
    (void)state;
    static char big[REGISTRY_FILE_MAX + 2];
    autofree char *path = base_dir_fill("@/c.json");
    autofree char *fifo = base_dir_fill("@/fifo");
    autofree char *text = base_dir_fill(WS(ROOT));
    struct registry r = {0};
    struct err e = {0};
    refuse_file("@/none", "@/none: cannot open it: No such file or directory");
    refuse_file("@", "@: not a regular file");
    assert_int_equal(mkfifo(fifo, 0600), 0);
    refuse_file("@/fifo", "@/fifo: not a regular file");
    base_dir_write(path, text, 0666);
    refuse_file("@/c.json", "@/c.json: everybody may write it (mode 0666), so anybody could "
                            "register a workspace; chmod o-w");
    base_dir_write(path, "{\"workspaces\":{\"x\":1}}", 0644);
    refuse_file("@/c.json", "@/c.json: workspaces.x: must be an object");
    memset(big, ' ', sizeof(big) - 1);
    base_dir_write(path, big, 0644);
    refuse_file("@/c.json",
                "@/c.json: larger than REGISTRY_FILE_MAX (1048576 bytes); this is not a "
                "configuration");
    base_dir_write(path, text, 0644);
    assert_int_equal(registry_load_file(&r, path, &e), 0);
    assert_int_equal(r.n, 1);
    registry_fini(&r);
}

static void test_file_in_reach_of_its_own_commands(void **state)
{
    (void)state;
    autofree char *path = base_dir_fill("@/a/c.json");
    autofree char *text = base_dir_fill(WS(ROOT ",\"profile\":\"workspace-write\""));
    autofree char *by_mount =
        base_dir_fill(WS("\"root\":\"@/b\",\"mounts\":[{\"path\":\"@/a\",\"writable\":true}]"));
    const char *message = "@/a/c.json: workspaces.demo: the configuration file (@/a/c.json) lies "
                          "where commands of this workspace can write, so they could change its "
                          "rules; move the file elsewhere";
    base_dir_write(path, text, 0644);
    refuse_file("@/a/c.json", message);
    base_dir_write(path, by_mount, 0644);
    refuse_file("@/a/c.json", message);
    unlink(path);
}

/* ---- docs/ ---- */

static char *read_doc(const char *name)
{
    autofree char *path = mem_printf("%s/%s", TEST_SOURCE_ROOT, name);
    autofd int fd = open(path, O_RDONLY | O_CLOEXEC);
    autobuf out = BUF_INIT;
    if (fd < 0)
        fail_msg("cannot open %s", path);
    ssize_t n = 0;
    while ((n = read(fd, buf_reserve(&out, 65536), 65536)) > 0)
        buf_commit(&out, (size_t)n);
    return buf_steal(&out);
}

/* The examples name directories below /srv; here they lie in the private directory. */
static char *move_example(const char *text)
{
    autobuf out = BUF_INIT;
    for (const char *at; (at = strstr(text, "\"/srv/")) != NULL; text = at + 1) {
        size_t n = strcspn(at + 1, "\"");
        autofree char *dir = mem_printf("%s%.*s", base_dir(), (int)n, at + 1);
        base_dir_mkdirs(dir);
        buf_printf(&out, "%.*s\"%s", (int)(at - text), text, base_dir());
    }
    buf_puts(&out, text);
    return buf_steal(&out);
}

static void test_examples_load(void **state)
{
    (void)state;
    autofree char *dir_path = mem_printf("%s/docs/examples", TEST_SOURCE_ROOT);
    DIR *dir = opendir(dir_path);
    size_t seen = 0;
    assert_non_null(dir);
    for (struct dirent *d = readdir(dir); d != NULL; d = readdir(dir)) {
        struct registry r = {0};
        struct err e = {0};
        if (!str_ends(d->d_name, ".json"))
            continue;
        autofree char *name = mem_printf("docs/examples/%s", d->d_name);
        autofree char *text = read_doc(name);
        autofree char *moved = move_example(text);
        if (registry_load_text(&r, name, moved, strlen(moved), &e) < 0)
            fail_msg("%s", e.message);
        assert_true(r.n > 0);
        registry_fini(&r);
        seen++;
    }
    closedir(dir);
    assert_true(seen >= 3);
}

static void test_example_of_the_manual_loads(void **state)
{
    (void)state;
    static const char head[] = ".Bd -literal -offset indent\n";
    struct registry r = {0};
    struct err e = {0};
    autofree char *page = read_doc("man/codespace-config.5");
    char *text = strstr(page, head);
    assert_non_null(text);
    text += strlen(head);
    *strstr(text, ".Ed\n") = '\0';
    autofree char *moved = move_example(text);
    if (registry_load_text(&r, "codespace-config.5", moved, strlen(moved), &e) < 0)
        fail_msg("%s", e.message);
    assert_int_equal(r.n, 1);
    registry_fini(&r);
}

/* Nobody but the operator grants by default; a person at the client may. */
static void test_who_grants(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool self_grant, no_elicitation, http_elicitation;
    } rows[] = {
        {"{}", false, false, false},
        {"{\"approvals\":{}}", false, false, false},
        {"{\"approvals\":{\"self_grant\":true}}", true, false, false},
        {"{\"approvals\":{\"elicitation\":false}}", false, true, false},
        {"{\"approvals\":{\"self_grant\":false,\"elicitation\":true}}", false, false, true},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct registry r = {0};
        struct err e = {0};
        assert_int_equal(base_dir_load(&r, rows[i].text, &e), 0);
        assert_int_equal(r.self_grant, rows[i].self_grant);
        assert_int_equal(r.no_elicitation, rows[i].no_elicitation);
        assert_int_equal(r.http_elicitation, rows[i].http_elicitation);
        registry_fini(&r);
    }
    struct registry r = {0};
    struct err e = {0};
    assert_int_equal(base_dir_load(&r, "{\"approvals\":\"confirm\"}", &e), -1);
    assert_int_equal(base_dir_load(&r, "{\"approvals\":{\"self_grant\":1}}", &e), -1);
    registry_fini(&r);
}

/* "a, b" of the properties of a schema object, in its order. */
static void name_list(struct json_object *schema, struct buf *out)
{
    json_object_object_foreach(json_get(schema, "properties"), key, value)
    {
        (void)value;
        buf_printf(out, "%s%s", out->len > 0 ? ", " : "", key);
    }
}

/* The loader names what it accepts when it meets a name far from all of them. */
static void assert_same_names(struct json_object *schema, const char *text)
{
    struct registry r = {0};
    struct err e = {0};
    autobuf names = BUF_INIT;
    assert_non_null(schema);
    name_list(schema, &names);
    assert_int_equal(base_dir_load(&r, text, &e), -1);
    const char *accepted = strstr(e.message, "accepted: ");
    assert_non_null(accepted);
    assert_string_equal(accepted + strlen("accepted: "), buf_cstr(&names));
    assert_false(json_object_get_boolean(json_get(schema, "additionalProperties")));
    registry_fini(&r);
}

static void assert_enum_loads(const char *key, struct json_object *values)
{
    for (size_t i = 0; i < json_object_array_length(values); i++) {
        struct registry r = {0};
        struct err e = {0};
        autofree char *text = mem_printf(WS(ROOT ",\"%s\":\"%s\""), key,
                                         json_str(json_object_array_get_idx(values, i)));
        if (base_dir_load(&r, text, &e) < 0)
            fail_msg("%s: %s", text, e.message);
        registry_fini(&r);
    }
}

static void test_schema_is_what_the_loader_does(void **state)
{
    (void)state;
    autofree char *text = read_doc("docs/config.schema.json");
    autojson *schema = NULL;
    struct err e = {0};
    size_t enums = 0;
    assert_int_equal(json_parse(text, strlen(text), &schema, &e), 0);
    struct json_object *defs = json_get(schema, "$defs");
    struct json_object *workspace = json_get(defs, "workspace");
    assert_same_names(workspace, WS(ROOT ",\"zzzzzzzzzzzz\":1"));
    assert_same_names(json_get(defs, "mount"), WS(ROOT ",\"mounts\":[{\"zzzzzzzzzzzz\":1}]"));
    assert_same_names(json_get(defs, "environment"),
                      "{\"environments\":{\"x\":{\"zzzzzzzzzzzz\":1}}}");
    assert_same_names(schema, "{\"zzzzzzzzzzzz\":1}");
    assert_same_names(json_get(json_get(schema, "properties"), "approvals"),
                      "{\"approvals\":{\"zzzzzzzzzzzz\":1}}");
    json_object_object_foreach(json_get(workspace, "properties"), key, value)
    {
        struct json_object *values = json_get(value, "enum");
        if (str_eq(key, "limits"))
            assert_same_names(value, WS(ROOT ",\"limits\":{\"zzzzzzzzzzzz\":1}"));
        if (str_eq(key, "egress"))
            assert_same_names(value,
                              WS(ROOT ",\"network\":\"enabled\",\"egress\":{\"zzzzzzzzzzzz\":1}"));
        if (values == NULL)
            continue;
        /* tmp "shared" is refused where the server's own is shared with it */
        setenv("TMPDIR", "/var/tmp", 1);
        assert_enum_loads(key, values);
        unsetenv("TMPDIR");
        enums++;
    }
    assert_int_equal(enums, 9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_credentials_refused),
        cmocka_unit_test(test_credentials_out_of_reach),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_file),
        cmocka_unit_test(test_file_in_reach_of_its_own_commands),
        cmocka_unit_test(test_examples_load),
        cmocka_unit_test(test_example_of_the_manual_loads),
        cmocka_unit_test(test_who_grants),
        cmocka_unit_test(test_schema_is_what_the_loader_does),
    };
    return cmocka_run_group_tests(tests, base_dir_up, base_dir_down);
}
