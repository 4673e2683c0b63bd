"""Bytes a server should never be sent: each gets its proper error, and the server lives on."""

import json

from support import Case, RpcError, memory_kib, poll

MIB = 1 << 20


class Hostile(Case):
    def setUp(self):
        super().setUp()
        self.client = self.start()

    def lives(self):
        self.assertEqual(self.client.request("ping"), {})
        self.assertEqual(self.client.junk, [])

    def error_for(self, line, ident=None):
        self.client.send_bytes(line if line.endswith(b"\n") else line + b"\n")
        message = self.client.stray() if ident is None else self.client.message_for(ident)
        self.assertNotIn("result", message)
        self.assertTrue(message["error"]["message"])
        return message["error"]["code"]

    def test_malformed_json(self):
        for line in (
            b"{",
            b"}",
            b'{"jsonrpc":"2.0","id":1,"method":"ping"',
            b'{"jsonrpc":"2.0","id":1,"method":"ping"}}',
            b'{"jsonrpc":"2.0","id":1,"method":"ping"} {}',
            b"{'jsonrpc':'2.0','id':1,'method':'ping'}",
            b'{"jsonrpc":"2.0","id":01,"method":"ping"}',
            b'{"jsonrpc":"2.0","id":1,"method":"ping",}',
            b'{"jsonrpc":"2.0","id":1,"method":"pi\tng"}',
            b'{"jsonrpc":"2.0","id":1,"method":"ping"} // c',
            b'{"jsonrpc":"2.0","id":NaN,"method":"ping"}',
            b"nonsense",
            b"Content-Length: 40",
            b'"',
            b"\x00",
            b'{"jsonrpc":"2.0",\x00"id":1,"method":"ping"}',
            b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a\\u0000b":1}}',
        ):
            with self.subTest(line=line):
                self.assertEqual(self.error_for(line), -32700)
                self.lives()

    def test_not_utf8(self):
        for raw in (b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xc0\x80", b"\xf8\x88\x80\x80\x80"):
            with self.subTest(raw=raw):
                line = b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"' + raw + b'"}}'
                self.assertEqual(self.error_for(line), -32700)
                self.lives()

    def test_json_that_is_no_message(self):
        for line in (b"[]", b"1", b"null", b"true", b'"x"', b"{}", b'{"id":null}'):
            with self.subTest(line=line):
                self.assertEqual(self.error_for(line), -32600)
                self.lives()

    def test_batches_are_not_served(self):
        self.assertEqual(
            self.error_for(b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]'), -32600
        )
        self.lives()

    def test_broken_envelopes(self):
        for message, ident in (
            ({"id": 70, "method": "ping"}, 70),
            ({"jsonrpc": "1.0", "id": 71, "method": "ping"}, 71),
            ({"jsonrpc": 2.0, "id": 72, "method": "ping"}, 72),
            ({"jsonrpc": "2.0", "id": 73, "method": 5}, 73),
            ({"jsonrpc": "2.0", "id": 74, "method": None}, 74),
            ({"jsonrpc": "2.0", "id": 75}, 75),
            ({"jsonrpc": "2.0", "id": None, "method": "ping"}, None),
            ({"jsonrpc": "2.0", "id": {}, "method": "ping"}, None),
            ({"jsonrpc": "2.0", "id": [1], "method": "ping"}, None),
            ({"jsonrpc": "2.0", "id": True, "method": "ping"}, None),
            ({"jsonrpc": "2.0", "id": 1.5, "method": "ping"}, None),
        ):
            with self.subTest(message=message):
                self.assertEqual(self.error_for(json.dumps(message).encode(), ident), -32600)
                self.lives()

    def test_params_must_be_an_object(self):
        for params in ("[]", "[1]", '"x"', "5", "true"):
            with self.subTest(params=params):
                line = b'{"jsonrpc":"2.0","id":80,"method":"ping","params":%s}' % params.encode()
                self.assertIn(self.error_for(line, 80), (-32600, -32602))
                self.lives()

    def test_two_members_of_one_name(self):
        for line in (
            b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}',
            b'{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/list"}',
            b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read",'
            b'"arguments":{"workspace_id":"ws","path":"a","path":"b"}}}',
        ):
            with self.subTest(line=line):
                self.assertEqual(self.error_for(line), -32700)
                self.lives()

    def test_deep_nesting(self):
        for depth in (100, 10000, 1000000):
            for opening, closing in ((b"[", b"]"), (b'{"a":', b"}")):
                with self.subTest(depth=depth, opening=opening):
                    deep = opening * depth + b"1" + closing * depth
                    line = b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":' + deep + b"}}"
                    self.assertEqual(self.error_for(line), -32700)
                    self.lives()

    def test_a_line_without_end(self):
        """Oversized input costs bounded memory, one error, and only its own line."""
        before = memory_kib(self.client.pid)
        chunk = b"a" * MIB
        self.client.send_bytes(b'{"jsonrpc":"2.0","id":1,"method":"')
        for _ in range(200):
            self.client.send_bytes(chunk)
        self.client.send_bytes(b'"}\n')
        error = self.client.stray()["error"]
        self.assertIn(error["code"], (-32700, -32600))
        self.assertRegex(error["message"], r"\d")
        self.lives()
        self.assertLess(memory_kib(self.client.pid, "VmHWM") - before, 100 * 1024)

    def test_large_but_legal_line(self):
        """Three MiB of argument is not too much for a patch."""
        body = "\n".join("+line %d of a long file" % i for i in range(120000))
        patch = "*** Begin Patch\n*** Add File: big.txt\n%s\n*** End Patch\n" % body
        self.assertGreater(len(patch), 3 * MIB)
        answer = self.client.call("apply_patch", workspace_id="ws", patch=patch)
        self.assertEqual(answer["status"], "applied")
        self.assertEqual(self.bytes_of("big.txt").count(b"\n"), 120000)

    def test_unknown_methods(self):
        for method, code in (
            ("tools/unheard-of", -32601),
            ("roots/list", -32601),
            ("sampling/createMessage", -32601),
            ("", -32601),
            ("ping\u0000", -32600),
        ):
            with self.subTest(method=method):
                with self.assertRaises(RpcError) as caught:
                    self.client.request(method)
                self.assertEqual(caught.exception.code, code)
        self.lives()

    def test_what_needs_no_answer_gets_none(self):
        self.client.notify("notifications/unheard-of", {"x": 1})
        self.client.notify("notifications/cancelled", {"requestId": 4711})
        self.client.notify("notifications/cancelled", {"requestId": {"a": 1}})
        self.client.notify("notifications/cancelled")
        self.client.send({"jsonrpc": "2.0", "id": 99, "result": {}})
        self.client.send({"jsonrpc": "2.0", "id": "x", "error": {"code": 1, "message": "m"}})
        self.client.send_bytes(b"\n\r\n   \n")
        self.lives()
        self.assertEqual(self.client.strays, [])
        self.assertFalse(self.client.answered(99))

    def test_ids_come_back_as_they_were(self):
        for ident in ("", "a", "\u00e9\U0001f600", "5", 0, 5, -3, 2**53 + 1, 2**63 - 1, -(2**63)):
            with self.subTest(id=ident):
                self.client.send({"jsonrpc": "2.0", "id": ident, "method": "ping"})
                self.assertEqual(self.client.message_for(ident)["result"], {})

    def test_escapes_and_line_ends_are_legal(self):
        self.client.send_bytes(b'{"jsonrpc":"2.0","id":"\\u0041\\n","method":"pi\\u006eg"}\r\n')
        self.assertEqual(self.client.message_for("A\n")["result"], {})
        self.client.send_bytes(b' \t{"method" : "ping" , "id":"s", "jsonrpc":"2.0"} \n')
        self.assertEqual(self.client.message_for("s")["result"], {})

    def test_a_message_in_single_bytes(self):
        for byte in b'{"jsonrpc":"2.0","id":"slow","method":"ping"}\n':
            self.client.send_bytes(bytes([byte]))
        self.assertEqual(self.client.message_for("slow")["result"], {})

    def test_a_last_line_without_its_end(self):
        self.client.send_bytes(b'{"jsonrpc":"2.0","id":"cut","method":"pi')
        self.assertEqual(self.client.close(), 0)
        self.assertFalse(self.client.answered("cut"))

    def test_second_use_of_an_id_in_flight(self):
        arguments = {"workspace_id": "ws", "command": ["cat"], "wait_ms": 600000}
        call = {"name": "exec_command", "arguments": arguments}
        message = {"jsonrpc": "2.0", "id": "twice", "method": "tools/call", "params": call}
        self.client.send(message)
        self.client.send({"jsonrpc": "2.0", "id": "twice", "method": "ping"})
        self.assertEqual(self.client.message_for("twice")["error"]["code"], -32600)
        self.client.notify("notifications/cancelled", {"requestId": "twice"})
        self.lives()


class Slow(Case):
    """A client that asks faster than it reads."""

    def cpu_ticks(self, pid):
        with open("/proc/%d/stat" % pid) as f:
            fields = f.read().rsplit(")", 1)[1].split()
        return int(fields[11]) + int(fields[12])

    def idle(self, pid):
        """The server has done all it wants to do while nobody reads."""
        before = self.cpu_ticks(pid)
        return not poll(lambda: self.cpu_ticks(pid) != before, 0.5)

    def test_answers_that_nobody_reads_cost_bounded_memory(self):
        self.write("big", "x" * MIB)
        client = self.start()
        client.call("read", workspace_id="ws", path="big")
        before = memory_kib(client.pid)
        client.pause_reading()
        call = {"name": "read", "arguments": {"workspace_id": "ws", "path": "big"}}
        lines = b"".join(
            json.dumps({"jsonrpc": "2.0", "id": "r%d" % i, "method": "tools/call", "params": call})
            .encode() + b"\n"
            for i in range(64)
        )
        client.send_bytes(lines)
        self.assertTrue(poll(lambda: self.idle(client.pid), 60))
        client.resume_reading()
        for i in range(64):
            message = client.message_for("r%d" % i)
            self.assertNotIn("error", message)
        self.assertLess(memory_kib(client.pid, "VmHWM") - before, 64 * 1024)


class Arguments(Case):
    """Wrong arguments of every tool: which argument, what is wrong, what would be right."""

    def setUp(self):
        super().setUp()
        self.client = self.start()
        self.write("a.txt", "alpha\n")

    def test_missing_arguments_are_named(self):
        for tool, arguments, name in (
            ("read", {"workspace_id": "ws"}, "path"),
            ("read", {"path": "a.txt"}, "workspace_id"),
            ("find", {}, "workspace_id"),
            ("apply_patch", {"workspace_id": "ws"}, "patch"),
            ("exec_command", {"workspace_id": "ws"}, "command"),
            ("write_stdin", {"data": "x"}, "process_id"),
            ("read_process", {}, "process_id"),
            ("process_status", {}, "process_id"),
            ("process_resize", {"process_id": "proc-x", "rows": 5}, "cols"),
            ("terminate_process", {}, "process_id"),
        ):
            with self.subTest(tool=tool, missing=name):
                error = self.fails("INVALID_ARGUMENT", self.client, tool, **arguments)
                self.assertIn(name, error.message)

    def test_wrong_types_are_named(self):
        for tool, good, bad in (
            ("workspace_info", {}, {"workspace_id": [5, ["ws"], {}, True]}),
            ("read", {"workspace_id": "ws", "path": "a.txt"},
             {"path": [5, None, ["a"], {}, True], "offset": ["0", -1, 1.5, 2**64, [1]],
              "limit": ["5", -1, True]}),
            ("find", {"workspace_id": "ws"}, {"glob": [5, ["*"]], "limit": ["x"], "offset": [-1]}),
            ("apply_patch", {"workspace_id": "ws", "patch": "x"},
             {"patch": [5, ["x"]], "expected_versions": [[], "x", {"a": 5}],
              "check_only": ["true", 1]}),
            ("exec_command", {"workspace_id": "ws", "command": ["true"]},
             {"command": ["true", {}, [5], [["true"]], [None]], "tty": ["yes", 1],
              "timeout_ms": ["5", -1, 1.5], "env": [["A=b"], "A=b", {"A": 5}], "cwd": [5],
              "stdin": [5, ["x"]], "rows": ["24", -1, 70000], "wait_ms": [-1, "5"]}),
            ("write_stdin", {"process_id": "proc-x", "data": "x"},
             {"data": [5, ["x"]], "eof": ["yes"]}),
            ("read_process", {"process_id": "proc-x"},
             {"cursor": [-1, "0"], "stream": ["both", 5], "encoding": ["latin-1"], "limit": ["5"]}),
            ("process_resize", {"process_id": "proc-x", "rows": 5, "cols": 5},
             {"rows": ["5", 70000, -1], "cols": [1.5, None]}),
        ):
            for name, values in bad.items():
                for value in values:
                    with self.subTest(tool=tool, argument=name, value=value):
                        error = self.fails(
                            ("INVALID_ARGUMENT", "INVALID_COMMAND"), self.client, tool,
                            **{**good, name: value},
                        )
                        self.assertIn(name, error.message)

    def test_near_misses_are_answered_with_the_right_name(self):
        error = self.fails("INVALID_ARGUMENT", self.client, "read", workspace_id="ws", pth="a.txt")
        self.assertIn("path", error.message)

    def test_claims_about_oneself_never_decide(self):
        """Arguments that older clients send are accepted and change nothing."""
        answer = self.client.call(
            "read", workspace_id="ws", path="a.txt", work_id="work-1"
        )
        self.assertEqual(answer["content"], "alpha\n")

    def test_strings_with_nul(self):
        for tool, arguments in (
            ("read", {"workspace_id": "ws", "path": "a.txt\u0000b"}),
            ("read", {"workspace_id": "ws\u0000", "path": "a.txt"}),
            ("exec_command", {"workspace_id": "ws", "command": ["echo", "a\u0000b"]}),
            ("exec_command", {"workspace_id": "ws", "command": ["true"], "env": {"A": "\u0000"}}),
            ("exec_command", {"workspace_id": "ws", "command": ["true"], "cwd": "\u0000"}),
        ):
            with self.subTest(tool=tool, arguments=arguments):
                self.fails(
                    ("INVALID_ARGUMENT", "INVALID_COMMAND", "PATH_ESCAPE"),
                    self.client, tool, **arguments
                )

    def test_unknown_workspace_lists_the_ones_there_are(self):
        for tool, arguments in (
            ("workspace_info", {}),
            ("read", {"path": "a.txt"}),
            ("find", {}),
            ("apply_patch", {"patch": "x"}),
            ("exec_command", {"command": ["true"]}),
        ):
            with self.subTest(tool=tool):
                error = self.fails(
                    "WORKSPACE_NOT_FOUND", self.client, tool, workspace_id="other", **arguments
                )
                self.assertIn("other", error.message)
                self.assertIn("ws", error.message)


if __name__ == "__main__":
    import unittest

    unittest.main()
