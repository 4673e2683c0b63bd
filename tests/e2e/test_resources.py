"""What the server offers besides tools: resources and their subscriptions, prompts, completion and
log messages; the same under the same policy as the tools."""

import base64
import json
import os

import mcp_client
from mcp_client import RpcError
from support import FileCase, needs_sandbox


class ResourceCase(FileCase):
    def read(self, uri, client=None):
        contents = (client or self.client).request("resources/read", {"uri": uri})["contents"]
        self.assertEqual(len(contents), 1)
        self.assertEqual(contents[0]["uri"], uri)
        return contents[0]

    def file_uri(self, path, workspace="ws"):
        return "codespace://workspaces/%s/files/%s" % (workspace, path)

    def refused(self, uri, code=None, client=None):
        with self.assertRaises(RpcError) as caught:
            (client or self.client).request("resources/read", {"uri": uri})
        self.assertEqual(caught.exception.code, -32002)
        self.assertEqual(caught.exception.data["uri"], uri)
        if code is not None:
            self.assertEqual(caught.exception.data["code"], code)
        return caught.exception.message


class Files(ResourceCase):
    def test_text_and_blob(self):
        self.write("src/a b.txt", "héllo\n")
        self.write("bin", b"\xff\x00\x01")
        text = self.read(self.file_uri("src/a%20b.txt"))
        self.assertEqual((text["text"], text["mimeType"]), ("héllo\n", "text/plain"))
        blob = self.read(self.file_uri("bin"))
        self.assertEqual(base64.b64decode(blob["blob"]), b"\xff\x00\x01")
        self.assertEqual(blob["mimeType"], "application/octet-stream")

    def test_what_a_tool_refuses_is_refused(self):
        os.symlink("/etc/passwd", self.path("link"))
        self.write("big", b"x" * (1 << 20) + b"y")
        for path, code in (
            ("none", "FILE_NOT_FOUND"),
            ("../out", "PATH_ESCAPE"),
            ("%2e%2e/out", "PATH_ESCAPE"),
            ("/etc/passwd", "PATH_ESCAPE"),
            ("link", "SYMLINK_REJECTED"),
            ("big", "LIMIT_EXCEEDED"),
        ):
            with self.subTest(path=path):
                self.refused(self.file_uri(path), code)
        self.refused(self.file_uri("x", workspace="other"), "WORKSPACE_NOT_FOUND")
        self.assertIn("FILES_READ_MAX", self.refused(self.file_uri("big")))

    def test_uris_that_are_none(self):
        for uri in (
            "codespace://none",
            "codespace://workspaces/ws/files/",
            "codespace://workspaces//files/x",
            "file:///etc/passwd",
            self.file_uri("a%00b"),
            self.file_uri("a%0"),
            self.file_uri("a%zz"),
            self.file_uri("a%1\x13"),
            "",
        ):
            with self.subTest(uri=uri):
                self.refused(uri)

    def test_hidden_files(self):
        self.write("secret/key", "k")
        config = self.config(
            {"workspaces": {"w": {"root": self.ws, "profile": "read-only",
                                  "deny_read": ["secret/**"]}}}
        )
        client = self.start("--config", config)
        self.refused(self.file_uri("secret/key", "w"), "PATH_PROTECTED", client)
        found = client.request(
            "completion/complete",
            {"ref": {"type": "ref/resource", "uri": TEMPLATE},
             "argument": {"name": "path", "value": "secret/"}},
        )
        self.assertEqual(found["completion"]["values"], [])


TEMPLATE = "codespace://workspaces/{workspace_id}/files/{+path}"


class Lists(ResourceCase):
    def test_lists(self):
        listed = self.client.request("resources/list")["resources"]
        self.assertEqual([r["uri"] for r in listed], ["codespace://doctor"])
        templates = self.client.request("resources/templates/list")["resourceTemplates"]
        self.assertIn(TEMPLATE, [t["uriTemplate"] for t in templates])
        for entry in listed + templates:
            self.assertTrue(entry["name"] and entry["description"] and entry["mimeType"])

    def test_doctor_says_what_the_tool_says(self):
        text = self.read("codespace://doctor")["text"]
        execution = self.client.call("workspace_info", workspace_id="ws")["execution"]
        off = [n for n, on in execution["isolation"]["layers"].items() if not on]
        self.assertEqual(bool(off), "off" in text, (off, text))

    def test_operations(self):
        done = self.client.call("apply_patch", workspace_id="ws", patch=(
            "*** Begin Patch\n*** Add File: n.txt\n+n\n*** End Patch\n"))
        uri = "codespace://operations/" + done["operation_id"]
        record = json.loads(self.read(uri)["text"])
        self.assertEqual(record["status"], "applied")
        told = self.client.call("operation_status", operation_id=done["operation_id"])
        self.assertEqual(record, {name: told[name] for name in record})
        self.refused("codespace://operations/op-none", "OPERATION_NOT_FOUND")


class Processes(ResourceCase):
    @needs_sandbox
    def test_log_and_its_subscription(self):
        started = self.client.call("exec_command", workspace_id="ws",
                                   command=["/bin/sh", "-c", "echo one; read x; echo two $x"])
        uri = "codespace://processes/%s/log" % started["process_id"]
        self.ready(self.client, started["process_id"], "one")
        self.assertEqual(self.read(uri)["text"], "one\n")
        self.assertEqual(self.client.request("resources/subscribe", {"uri": uri}), {})
        self.client.call("write_stdin", process_id=started["process_id"], data="more\n")
        self.updated(uri)
        self.ended(self.client, started["process_id"])
        self.assertEqual(self.read(uri)["text"], "one\ntwo more\n")
        self.refused("codespace://processes/proc-none/log", "PROCESS_NOT_FOUND")

    def updated(self, uri):
        def told():
            return next((n for n in self.client.notifications
                         if n["method"] == "notifications/resources/updated"
                         and n["params"]["uri"] == uri), None)

        return self.client._wait(told, mcp_client.ANSWER_S, "waiting for an update of " + uri)


class Subscriptions(Processes):
    test_log_and_its_subscription = None

    def test_files_that_come_change_and_go(self):
        uri = self.file_uri("later")
        self.client.request("resources/subscribe", {"uri": uri})
        for change in (
            lambda: self.write("later", "1"),
            lambda: self.write("later", "22"),
            lambda: os.rename(self.write("new", "333"), self.path("later")),
            lambda: os.unlink(self.path("later")),
        ):
            self.client.notifications.clear()
            change()
            self.updated(uri)
        self.assertEqual(self.client.request("resources/unsubscribe", {"uri": uri}), {})

    def test_each_is_told_its_own(self):
        mine, other = self.file_uri("mine"), self.file_uri("other")
        for uri in (mine, other):
            self.client.request("resources/subscribe", {"uri": uri})
        self.client.request("resources/unsubscribe", {"uri": other})
        self.write("other", "x")
        self.write("mine", "x")
        self.updated(mine)
        uris = [n["params"]["uri"] for n in self.client.notifications
                if n["method"] == "notifications/resources/updated"]
        self.assertNotIn(other, uris)

    def test_there_are_limits(self):
        for i in range(256):
            self.client.request("resources/subscribe", {"uri": self.file_uri("f%d" % i)})
        with self.assertRaises(RpcError) as caught:
            self.client.request("resources/subscribe", {"uri": self.file_uri("more")})
        self.assertIn("RESOURCES_SUBSCRIBED_MAX (256)", caught.exception.message)

    def test_a_modern_client_listens(self):
        uri = self.file_uri("seen")
        meta = {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        ident = self.client.begin(
            "subscriptions/listen",
            {"_meta": meta, "notifications": {"resourceSubscriptions": [uri]}},
        )
        acknowledged = self.client._wait(
            lambda: next((n for n in self.client.notifications
                          if n["method"].endswith("/acknowledged")), None),
            mcp_client.ANSWER_S, "waiting to be acknowledged")
        self.assertEqual(acknowledged["params"]["notifications"]["resourceSubscriptions"], [uri])
        self.write("seen", "x")
        told = self.updated(uri)
        self.assertEqual(
            told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], ident)


class Prompts(ResourceCase):
    def get(self, name, **arguments):
        got = self.client.request("prompts/get", {"name": name, "arguments": arguments})
        self.assertEqual(got["messages"][0]["role"], "user")
        return got["messages"][0]["content"]["text"]

    def test_prompts(self):
        listed = {p["name"]: p for p in self.client.request("prompts/list")["prompts"]}
        self.assertEqual(sorted(listed), ["make_pass", "work"])
        text = self.get("work", workspace_id="ws")
        for word in ('"ws"', "apply_patch", "exec_command", "expected_versions"):
            self.assertIn(word, text)
        self.assertIn("make test", self.get("make_pass", command="make test"))
        with self.assertRaises(RpcError) as caught:
            self.get("make_pass")
        self.assertEqual(caught.exception.code, -32602)
        self.assertIn("command", caught.exception.message)

    def complete(self, ref, name, value, **context):
        params = {"ref": ref, "argument": {"name": name, "value": value}}
        if context:
            params["context"] = {"arguments": context}
        return self.client.request("completion/complete", params)["completion"]

    def test_completion(self):
        for name in ("src/main.c", "src/map.c", "src/sub/x.c", "README", "we{ird}[*].c"):
            self.write(name, "")
        prompt = {"type": "ref/prompt", "name": "work"}
        template = {"type": "ref/resource", "uri": TEMPLATE}
        self.assertEqual(self.complete(prompt, "workspace_id", "w")["values"], ["ws"])
        self.assertEqual(self.complete(prompt, "workspace_id", "x")["values"], [])
        for value, expected in (
            ("", ["README", "src/", "we{ird}[*].c"]),
            ("s", ["src/"]),
            ("src/", ["src/main.c", "src/map.c", "src/sub/"]),
            ("src/ma", ["src/main.c", "src/map.c"]),
            ("we{ird}[*", ["we{ird}[*].c"]),
            ("*", []),
            ("../", []),
        ):
            with self.subTest(value=value):
                got = self.complete(template, "path", value, workspace_id="ws")
                self.assertEqual(got["values"], expected)
                self.assertEqual(got["total"], len(expected))
        self.assertEqual(self.complete(template, "path", "", workspace_id="no")["values"], [])
        with self.assertRaises(RpcError):
            self.complete({"type": "ref/resource", "uri": "codespace://none"}, "path", "")

    def test_a_page_is_bounded(self):
        for i in range(150):
            self.write("many/f%03d" % i, "")
        got = self.complete({"type": "ref/resource", "uri": TEMPLATE}, "path", "many/f")
        self.assertEqual((len(got["values"]), got["total"], got["hasMore"]), (100, 150, True))


class Logging(ResourceCase):
    def test_refusals_are_logged_on_request(self):
        def told():
            return [n["params"] for n in self.client.notifications
                    if n["method"] == "notifications/message"]

        self.fails("FILE_NOT_FOUND", self.client, "read", workspace_id="ws", path="none")
        self.assertEqual(told(), [])
        self.assertEqual(self.client.request("logging/setLevel", {"level": "debug"}), {})
        self.fails("FILE_NOT_FOUND", self.client, "read", workspace_id="ws", path="none")
        (message,) = told()
        self.assertEqual(message["level"], "debug")
        self.assertIn("read: FILE_NOT_FOUND", message["data"])
