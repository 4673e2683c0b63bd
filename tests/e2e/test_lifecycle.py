"""A server from its first byte to its end, as MCP over stdio has it."""

import re
import signal
import subprocess

import mcp_client
from support import SERVER, TOOLS, Case, RpcError, ToolError, poll, running

TOOL_NAME = re.compile(r"^[A-Za-z0-9_.-]{1,64}$")


class Initialize(Case):
    def test_every_version_is_answered_in_kind(self):
        for version in mcp_client.LEGACY_VERSIONS:
            with self.subTest(version=version):
                client = self.launch("--workspace", "ws=" + self.ws)
                result = client.initialize(version)
                self.assertEqual(result["protocolVersion"], version)
                self.assertEqual(result["serverInfo"]["name"], "codespace")
                self.assertTrue(result["serverInfo"]["version"])
                self.assertIn("tools", result["capabilities"])
                self.assertEqual(len(client.request("tools/list")["tools"]), len(TOOLS))

    def test_unknown_version_gets_the_newest_one(self):
        for version in ("1999-01-01", "2099-12-31", "nonsense", ""):
            with self.subTest(version=version):
                client = self.launch("--workspace", "ws=" + self.ws)
                result = client.initialize(version)
                self.assertEqual(result["protocolVersion"], "2025-11-25")

    def test_initialize_without_a_version_is_refused(self):
        client = self.launch("--workspace", "ws=" + self.ws)
        for params in (None, {}, {"protocolVersion": 5}, {"protocolVersion": None}):
            with self.subTest(params=params):
                with self.assertRaises(RpcError) as caught:
                    client.request("initialize", params)
                self.assertEqual(caught.exception.code, -32602)
        self.assertEqual(client.initialize()["protocolVersion"], "2025-11-25")

    def test_unknown_capabilities_are_ignored(self):
        client = self.launch("--workspace", "ws=" + self.ws)
        client.initialize(
            capabilities={
                "roots": {"listChanged": True},
                "sampling": {},
                "extensions": {"x/y": {"deep": [1, {"a": None}]}},
                "unheard-of": True,
            }
        )
        self.assertEqual(client.request("ping"), {})

    def test_ping_before_initialize(self):
        client = self.launch("--workspace", "ws=" + self.ws)
        self.assertEqual(client.request("ping"), {})

    def test_unknown_method_before_initialize_is_not_left_silent(self):
        client = self.launch("--workspace", "ws=" + self.ws)
        with self.assertRaises(RpcError) as caught:
            client.request("server/unheard-of", {"x": 1})
        self.assertEqual(caught.exception.code, -32601)
        client.initialize()

    def test_instructions_and_identity(self):
        client = self.start()
        self.assertGreater(len(client.instructions), 40)
        info = client.call("workspace_info")
        self.assertEqual(info["server"], "codespace")
        self.assertIs(info["internal_model_calls"], False)
        self.assertIs(info["workspace_id_is_credential"], False)


class ToolList(Case):
    def test_the_tools_are_the_documented_ones(self):
        client = self.start()
        tools = client.request("tools/list")["tools"]
        self.assertEqual([t["name"] for t in tools], list(TOOLS))
        self.assertEqual(client.call("workspace_info")["tools_exposed"], list(TOOLS))

    def test_each_tool_is_complete(self):
        for tool in self.start().request("tools/list")["tools"]:
            with self.subTest(tool=tool["name"]):
                self.assertRegex(tool["name"], TOOL_NAME)
                self.assertGreater(len(tool["description"]), 40)
                self.assertTrue(tool["title"])
                self.assertEqual(tool["inputSchema"]["type"], "object")
                self.assertEqual(tool["outputSchema"]["type"], "object")
                for name, schema in tool["inputSchema"]["properties"].items():
                    self.assertTrue(schema.get("description"), name)
                    self.assertNotEqual(name, "environment_id")

    def test_annotations_say_what_a_tool_does(self):
        tools = {t["name"]: t["annotations"] for t in self.start().request("tools/list")["tools"]}
        readers = {"workspace_info", "read", "find", "search", "read_process", "process_status",
                   "operation_status", "list_operations", "list_processes", "steer_status"}
        for name, annotations in tools.items():
            with self.subTest(tool=name):
                self.assertIs(annotations["readOnlyHint"], name in readers)
        for name in ("apply_patch", "exec_command"):
            self.assertIs(tools[name]["destructiveHint"], True)
        self.assertIs(tools["terminate_process"]["idempotentHint"], True)

    def test_unknown_tool_and_malformed_calls(self):
        client = self.start()
        for params in (
            {"name": "no_such_tool", "arguments": {}},
            {"name": "", "arguments": {}},
            {"arguments": {}},
            {"name": 7},
        ):
            with self.subTest(params=params):
                with self.assertRaises(RpcError) as caught:
                    client.request("tools/call", params)
                self.assertEqual(caught.exception.code, -32602)
        with self.assertRaises(RpcError) as caught:
            client.request("tools/call")
        self.assertEqual(caught.exception.code, -32602)

    def test_arguments_that_are_no_object(self):
        client = self.start()
        for arguments in ([], "x", 5, True):
            with self.subTest(arguments=arguments):
                result = client.request("tools/call", {"name": "read", "arguments": arguments})
                with self.assertRaises(ToolError) as caught:
                    mcp_client.tool_answer(result)
                self.assertEqual(caught.exception.code, "INVALID_ARGUMENT")
                self.assertIn("object", caught.exception.message)

    def test_a_call_without_arguments(self):
        client = self.start()
        result = client.request("tools/call", {"name": "workspace_info"})
        self.assertEqual(mcp_client.tool_answer(result)["server"], "codespace")

    def test_lists_are_deterministic(self):
        client = self.start()
        first = client.request("tools/list")
        self.assertEqual(client.request("tools/list", {}), first)


class End(Case):
    def test_eof_ends_it(self):
        client = self.start()
        self.assertEqual(client.close(), 0)

    def test_eof_before_initialize_ends_it(self):
        self.assertEqual(self.launch("--workspace", "ws=" + self.ws).close(), 0)

    def test_termination_signals_end_it(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            with self.subTest(signal=number):
                client = self.start()
                client.signal(number)
                self.assertEqual(client.wait_exit(), 0)
                self.assertEqual(client.junk, [])

    def test_everything_asked_before_eof_is_answered(self):
        client = self.start()
        client.send_bytes(
            b"".join(b'{"jsonrpc":"2.0","id":"p%d","method":"ping"}\n' % i for i in range(500))
        )
        self.write("a.txt", "alpha\n")
        client.send(
            {
                "jsonrpc": "2.0",
                "id": "last",
                "method": "tools/call",
                "params": {
                    "name": "read",
                    "arguments": {"workspace_id": "ws", "path": "a.txt"},
                },
            }
        )
        self.assertEqual(client.close(), 0)
        for i in range(500):
            self.assertEqual(client.message_for("p%d" % i)["result"], {})
        answer = mcp_client.tool_answer(client.message_for("last")["result"])
        self.assertEqual(answer["content"], "alpha\n")

    def test_the_end_takes_every_process_with_it(self):
        """R7: EOF and signals end the processes of the server, grandchildren included."""
        for how in ("eof", "term", "kill"):
            with self.subTest(how=how):
                client, mark = self.start(), self.marker()
                started = client.call(
                    "exec_command",
                    workspace_id="ws",
                    command=["/bin/sh", "-c", "setsid sleep %s & echo up; sleep %s" % (mark, mark)],
                )
                self.ready(client, started["process_id"], "up")
                self.assertTrue(poll(lambda: len(running("sleep " + mark)) >= 2))
                if how == "eof":
                    self.assertEqual(client.close(), 0)
                elif how == "term":
                    client.signal(signal.SIGTERM)
                    self.assertEqual(client.wait_exit(), 0)
                else:
                    client.signal(signal.SIGKILL)
                    self.assertEqual(client.wait_exit(), -signal.SIGKILL)
                self.assert_gone(mark)

    def test_eof_while_a_call_waits(self):
        client, mark = self.start(), self.marker()
        client.begin_call(
            "exec_command", workspace_id="ws", command=["sleep", mark], wait_ms=600000
        )
        self.assertTrue(poll(lambda: running(mark)))
        self.assertEqual(client.close(), 0)
        self.assert_gone(mark)

    def test_a_client_that_stops_reading_and_goes(self):
        """The pipe to the client breaks: the server ends, quietly, and not by SIGPIPE."""
        client = self.start()
        client.process.stdout.close()
        try:
            for _ in range(200):
                client.notify("notifications/unheard-of")
                client.begin("tools/list")
        except BrokenPipeError:
            pass
        client.close_stdin()
        self.assertGreaterEqual(client.process.wait(mcp_client.EXIT_S), 0)
        client.process.returncode = client.process.wait()


class CommandLine(Case):
    def test_version_and_help(self):
        for option, needle in (("--version", "codespace"), ("--help", "--workspace")):
            with self.subTest(option=option):
                done = subprocess.run(
                    [SERVER, option], capture_output=True, stdin=subprocess.DEVNULL, timeout=60
                )
                self.assertEqual(done.returncode, 0)
                self.assertIn(needle, done.stdout.decode())
                self.assertEqual(done.stderr, b"")

    def test_unknown_options_are_refused(self):
        for arguments in (
            ("--no-such-option",),
            ("--workspace",),
            ("stray",),
            ("--workspace", "ws=" + self.ws, "extra"),
        ):
            with self.subTest(arguments=arguments):
                status, stderr = self.refused(*arguments)
                self.assertIn(status, (2, 64, 78))
                self.assertIn(arguments[-1] if arguments[-1] != self.ws else "ws", stderr)


if __name__ == "__main__":
    import unittest

    unittest.main()
