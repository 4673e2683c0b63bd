"""Streamable HTTP: the rules of both eras, one test a rule."""

import json
import os
import signal
import socket
import threading
import unittest

from http_support import ANSWER_S, META, MODERN, HttpCase, HttpServer, call
from support import SERVER, poll, running

INIT = {"jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {"protocolVersion": "2025-11-25", "capabilities": {}}}
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
TOKEN = "a-token-that-nobody-guesses-0123456789"


class Legacy(HttpCase):
    def test_every_version(self):
        server = self.serve()
        for version in ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"):
            with self.subTest(version=version):
                answer = self.ask(server, body=LIST, headers=self.session(server, version))
                self.assertEqual(answer.status, 200)
                self.assertEqual(answer.headers["content-type"], "application/json")
                self.assertGreater(len(answer.json["result"]["tools"]), 5)
                self.assertNotIn("resultType", answer.json["result"])

    def test_session_ids_are_visible_ascii_and_differ(self):
        server = self.serve()
        ids = {self.session(server)["Mcp-Session-Id"] for _ in range(20)}
        self.assertEqual(len(ids), 20)
        for one in ids:
            self.assertTrue(all(0x21 <= ord(c) <= 0x7E for c in one))

    def test_without_a_session_it_is_400_and_with_an_unknown_one_404(self):
        server = self.serve()
        answer = self.ask(server, body=LIST)
        self.assertEqual((answer.status, answer.json["id"]), (400, LIST["id"]))
        for wrong in ("nonsense", "x" * 5000, "%00"):
            answer = self.ask(server, body=LIST, headers={"Mcp-Session-Id": wrong})
            self.assertEqual((answer.status, answer.json["id"]), (404, LIST["id"]))
        self.assertEqual(self.ask(server, "GET").status, 400)
        self.assertEqual(self.ask(server, "DELETE").status, 400)

    def test_delete_ends_it(self):
        server = self.serve()
        own = self.session(server)
        self.assertEqual(self.ask(server, "DELETE", headers=own).status, 200)
        self.assertEqual(self.ask(server, body=LIST, headers=own).status, 404)
        self.assertEqual(self.ask(server, "DELETE", headers=own).status, 404)

    def test_the_end_of_a_session_ends_no_process(self):
        server = self.serve()
        own = self.session(server)
        marker = self.marker()
        started = self.ask(server, headers=own, body=call(
            "exec_command", workspace_id="ws", command=["sleep", marker]))
        process_id = started.json["result"]["structuredContent"]["process_id"]
        self.assertEqual(self.ask(server, "DELETE", headers=own).status, 200)
        other = self.session(server)
        status = self.ask(server, headers=other,
                          body=call("process_status", process_id=process_id))
        self.assertEqual(status.json["result"]["structuredContent"]["state"], "running")
        self.ask(server, headers=other, body=call("terminate_process", process_id=process_id))
        self.assert_gone(marker)

    def test_protocol_version_header(self):
        server = self.serve()
        own = self.session(server)
        for value, status in (("1999-01-01", 400), ("nonsense", 400), (None, 200),
                              ("2025-06-18", 200)):
            with self.subTest(value=value):
                headers = {**own, "MCP-Protocol-Version": value}
                self.assertEqual(self.ask(server, body=LIST, headers=headers).status, status)

    def test_accept(self):
        server = self.serve()
        own = self.session(server)
        for value, status in (("application/json", 200), ("text/event-stream", 200), (None, 200),
                              ("*/*", 200), ("application/*;q=0.5", 200), ("text/html", 406),
                              ("image/png, text/html", 406)):
            with self.subTest(value=value):
                answer = self.ask(server, body=LIST, headers={**own, "Accept": value})
                self.assertEqual(answer.status, status)

    def test_content_type(self):
        server = self.serve()
        own = self.session(server)
        for value, status in (("application/json; charset=utf-8", 200), ("text/plain", 415),
                              ("application/jsonx", 415), (None, 415)):
            with self.subTest(value=value):
                answer = self.ask(server, body=LIST, headers={**own, "Content-Type": value})
                self.assertEqual(answer.status, status)

    def test_bodies_that_are_no_message(self):
        server = self.serve()
        own = self.session(server)
        for body, code in (("", -32700), ("{", -32700), ("[]", -32600), ("[1]", -32600),
                           ("5", -32600), ('{"jsonrpc":"2.0"}', -32600),
                           ('{"jsonrpc":"1.0","id":3,"method":"ping"}', -32600)):
            with self.subTest(body=body):
                answer = self.ask(server, body=body, headers=own)
                self.assertEqual(answer.status, 400)
                self.assertEqual(answer.json["error"]["code"], code)

    def test_notifications_and_responses_are_accepted_without_a_body(self):
        server = self.serve()
        own = self.session(server)
        for message in ({"jsonrpc": "2.0", "method": "notifications/unheard-of"},
                        {"jsonrpc": "2.0", "id": 5, "result": {}}):
            answer = self.ask(server, body=message, headers=own)
            self.assertEqual((answer.status, answer.body), (202, b""))

    def test_batches_belong_to_one_revision(self):
        server = self.serve()
        batch = [{"jsonrpc": "2.0", "id": 1, "method": "ping"},
                 {"jsonrpc": "2.0", "method": "notifications/unheard-of"},
                 {"jsonrpc": "2.0", "id": "b", "method": "ping"}]
        answer = self.ask(server, body=batch, headers=self.session(server, "2025-03-26"))
        messages = [m for _, m in answer.events if m]
        self.assertEqual([m["id"] for m in messages], [1, "b"])
        answer = self.ask(server, body=batch, headers=self.session(server))
        self.assertEqual(answer.status, 400)

    def test_several_answers_need_a_stream(self):
        server = self.serve()
        own = self.session(server, "2025-03-26")
        batch = [{"jsonrpc": "2.0", "id": i, "method": "ping"} for i in range(2)]
        json_only = {**own, "Accept": "application/json"}
        answer = self.ask(server, body=batch, headers=json_only)
        self.assertEqual(answer.status, 406, answer.body)
        self.assertIn("text/event-stream", answer.json["error"]["message"])
        quiet = [{"jsonrpc": "2.0", "method": "notifications/unheard-of"}] * 2
        self.assertEqual(self.ask(server, body=quiet, headers=json_only).status, 202)

    def test_a_refused_initialize_opens_no_session(self):
        answer = self.ask(self.serve(), body={
            "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}})
        self.assertEqual(answer.json["error"]["code"], -32602)
        self.assertNotIn("mcp-session-id", answer.headers)

    def test_a_progress_token_alone_makes_no_stream(self):
        server = self.serve()
        answer = self.ask(server, headers=self.session(server), body=call(
            "exec_command", meta={"progressToken": 1}, workspace_id="ws", command=["true"],
            wait_ms=60000))
        self.assertEqual(answer.headers["content-type"], "application/json")

    def test_progress_of_a_long_command(self):
        server = self.serve()
        answer = self.ask(server, headers=self.session(server), body=call(
            "exec_command", meta={"progressToken": "t"}, workspace_id="ws",
            command=["sleep", "5.5"], wait_ms=60000))
        events = answer.events
        self.assertIsNone(events[0][1], "the stream begins with an id and no data")
        self.assertEqual(events[1][1]["params"]["progressToken"], "t")
        self.assertEqual(events[-1][1]["result"]["structuredContent"]["exit_code"], 0)
        self.assertEqual(len({one for one, _ in events}), len(events))

    def test_a_client_that_takes_no_stream_gets_only_the_answer(self):
        server = self.serve()
        headers = {**self.session(server), "Accept": "application/json"}
        answer = self.ask(server, headers=headers, body=call(
            "exec_command", meta={"progressToken": "t"}, workspace_id="ws",
            command=["sleep", "5.5"], wait_ms=60000))
        self.assertEqual(answer.json["result"]["structuredContent"]["exit_code"], 0)

    def test_a_broken_stream_is_taken_up_again(self):
        server = self.serve()
        own = self.session(server)
        stream = self.ask(server, stream=True, headers=own, body=call(
            "exec_command", id="long", meta={"progressToken": 1}, workspace_id="ws",
            command=["sleep", "7"], wait_ms=60000))
        first, _ = stream.event()
        second, message = stream.event()
        self.assertEqual(message["method"], "notifications/progress")
        stream.close()
        again = self.ask(server, "GET", stream=True, headers={**own, "Last-Event-ID": first})
        self.assertEqual(again.event()[0], second, "what was missed comes first")
        while (event := again.event()) is not None and "result" not in event[1]:
            pass
        self.assertEqual(event[1]["id"], "long")
        self.assertEqual(event[1]["result"]["structuredContent"]["exit_code"], 0)
        self.assertIsNone(again.event())

    def test_resume_ids_that_are_none(self):
        server = self.serve()
        own = self.session(server)
        for value in ("x", "1-1", "99999999999-1", "-1-1", "1", "1-", "0-0x", "0" * 100):
            with self.subTest(value=value):
                answer = self.ask(server, "GET", headers={**own, "Last-Event-ID": value})
                self.assertEqual(answer.status, 400)

    def test_cancel_ends_the_command_and_the_call(self):
        server = self.serve()
        own = self.session(server)
        marker = self.marker()
        answers = []
        caller = threading.Thread(target=lambda: answers.append(self.ask(
            server, headers=own, body=call("exec_command", id="c", workspace_id="ws",
                                           command=["sleep", marker], wait_ms=600000))))
        caller.start()
        self.assertTrue(poll(lambda: running(marker)))
        self.ask(server, headers=own, body={
            "jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "c"}})
        self.assertTrue(poll(lambda: not running(marker)), "it is gone")
        caller.join(ANSWER_S)
        self.assertEqual(answers[0].body, b"", "a cancelled call has no answer")
        self.assertEqual(self.ask(server, headers=own, body=LIST).status, 200)

    def test_the_stream_of_get(self):
        server = self.serve()
        own = self.session(server)
        stream = self.ask(server, "GET", stream=True, headers=own)
        self.assertEqual(stream.response.status, 200)
        self.assertEqual(stream.response.getheader("Content-Type"), "text/event-stream")
        self.assertEqual(stream.event(), ("0-0", None))
        other = self.ask(server, "GET", stream=True, headers=own)
        self.assertEqual(other.event(), ("0-0", None))
        self.assertIsNone(stream.event(), "one stream at a time; the new one takes over")
        self.ask(server, "DELETE", headers=own)
        self.assertIsNone(other.event())

    def test_other_methods_and_paths(self):
        server = self.serve()
        for method in ("PUT", "PATCH", "OPTIONS", "HEAD"):
            self.assertEqual(self.ask(server, method).status, 405)
        for path in ("/", "/mcpx", "/mcp/", "/.well-known/oauth-protected-resource/mcp",
                     "/.well-known/oauth-authorization-server", "/MCP"):
            self.assertEqual(self.ask(server, "GET", path=path).status, 404)
        self.assertEqual(self.ask(server, body=INIT, path="/mcp?x=1").status, 200)

    def test_sessions_do_not_see_each_others_ids(self):
        server = self.serve()
        one, two = self.session(server), self.session(server)
        marker = self.marker()
        caller = threading.Thread(target=lambda: self.ask(
            server, headers=one, body=call("exec_command", id=1, workspace_id="ws",
                                           command=["sleep", marker], wait_ms=600000)))
        caller.start()
        self.assertTrue(poll(lambda: running(marker)))
        cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled",
                  "params": {"requestId": 1}}
        self.ask(server, headers=two, body=cancel)
        self.assertEqual(self.ask(server, headers=two, body=LIST).status, 200)
        self.assertTrue(running(marker), "another session's call goes on")
        self.ask(server, headers=one, body=cancel)
        caller.join(ANSWER_S)
        self.assert_gone(marker)


class Modern(HttpCase):
    def test_discover(self):
        server = self.serve()
        answer = self.modern(server, "server/discover")
        result = answer.json["result"]
        self.assertEqual(answer.status, 200)
        self.assertNotIn("mcp-session-id", answer.headers)
        self.assertEqual(result["supportedVersions"], [MODERN])
        self.assertEqual(result["resultType"], "complete")
        self.assertIn(result["cacheScope"], ("public", "private"))
        self.assertGreaterEqual(result["ttlMs"], 0)
        self.assertEqual(result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"],
                         "codespace")

    def test_both_eras_on_one_connection(self):
        server = self.serve()
        own = self.session(server)
        self.assertEqual(self.modern(server, "tools/list").json["result"]["resultType"],
                         "complete")
        self.assertNotIn("resultType", self.ask(server, body=LIST, headers=own).json["result"])

    def test_a_tool_call_needs_nothing_before_it(self):
        server = self.serve()
        self.write("a.txt", "alpha\n")
        answer = self.modern(server, "tools/call", {
            "name": "read", "arguments": {"workspace_id": "ws", "path": "a.txt"}})
        result = answer.json["result"]
        self.assertEqual(result["structuredContent"]["content"], "alpha\n")
        self.assertEqual(result["resultType"], "complete")

    def test_what_changes_is_not_to_be_kept(self):
        server = self.serve()
        self.write("a.txt", "alpha\n")
        for uri, lasting in (("codespace://workspaces/ws/files/a.txt", False),
                             ("codespace://doctor", True)):
            result = self.modern(server, "resources/read", {"uri": uri}).json["result"]
            self.assertEqual(result["ttlMs"] > 0, lasting, uri)

    def test_a_tool_error_is_200(self):
        server = self.serve()
        answer = self.modern(server, "tools/call", {
            "name": "read", "arguments": {"workspace_id": "ws", "path": "none"}})
        self.assertEqual(answer.status, 200)
        self.assertTrue(answer.json["result"]["isError"])
        self.assertEqual(answer.json["result"]["resultType"], "complete")
        answer = self.modern(server, "tools/call", {"name": "nothing", "arguments": {}})
        self.assertEqual((answer.status, answer.json["error"]["code"]), (200, -32602))

    def test_headers_must_say_what_the_body_says(self):
        server = self.serve()
        read = {"name": "read", "arguments": {}}
        for method, params, headers, code in (
            ("tools/list", {}, {"Mcp-Method": None}, -32020),
            ("tools/list", {}, {"Mcp-Method": "tools/call"}, -32020),
            ("tools/list", {}, {"Mcp-Method": "Tools/List"}, -32020),
            ("tools/list", {}, {"MCP-Protocol-Version": None}, -32020),
            ("tools/list", {}, {"MCP-Protocol-Version": "2025-11-25"}, -32020),
            ("tools/call", read, {"Mcp-Name": None}, -32020),
            ("tools/call", read, {"Mcp-Name": "find"}, -32020),
            ("tools/call", read, {"Mcp-Name": "=?base64?cmVhZA=?="}, -32020),
            ("tools/call", read, {"Mcp-Name": "=?base64?cmV*ZA==?="}, -32020),
        ):
            with self.subTest(headers=headers):
                answer = self.modern(server, method, params, headers)
                self.assertEqual((answer.status, answer.json["error"]["code"]), (400, code))
                self.assertEqual(answer.json["id"], 1)
        answer = self.modern(server, "tools/call", read, {"Mcp-Name": "=?base64?cmVhZA==?="})
        self.assertTrue(answer.json["result"]["isError"], "it got as far as the arguments")

    def test_versions(self):
        server = self.serve()
        meta = {**META, "io.modelcontextprotocol/protocolVersion": "2999-01-01"}
        answer = self.modern(server, "tools/list", meta=meta,
                             headers={"MCP-Protocol-Version": "2999-01-01"})
        self.assertEqual((answer.status, answer.json["error"]["code"]), (400, -32022))
        self.assertEqual(answer.json["error"]["data"],
                         {"supported": [MODERN], "requested": "2999-01-01"})

    def test_meta(self):
        server = self.serve()
        for meta in ({}, {k: v for k, v in META.items() if "Version" in k}):
            with self.subTest(meta=meta):
                answer = self.modern(server, "tools/list", meta=meta)
                self.assertEqual((answer.status, answer.json["error"]["code"]), (400, -32602))

    def test_methods_of_the_other_era_do_not_exist(self):
        server = self.serve()
        for method in ("initialize", "ping", "logging/setLevel", "resources/subscribe",
                       "resources/unsubscribe", "unheard/of"):
            with self.subTest(method=method):
                answer = self.modern(server, method, id="x")
                self.assertEqual((answer.status, answer.json["error"]["code"]), (404, -32601))
                self.assertEqual(answer.json["id"], "x")

    def test_get_and_delete_are_405(self):
        server = self.serve()
        for method in ("GET", "DELETE"):
            answer = self.ask(server, method, headers={"MCP-Protocol-Version": MODERN})
            self.assertEqual((answer.status, answer.headers["allow"]), (405, "POST"))

    def test_a_session_id_is_ignored(self):
        server = self.serve()
        answer = self.modern(server, "tools/list", headers={"Mcp-Session-Id": "nonsense"})
        self.assertEqual(answer.status, 200)

    def test_listen_is_acknowledged_and_ends_with_the_server(self):
        server = self.serve()
        stream = self.modern(server, "subscriptions/listen", id="l", stream=True, params={
            "notifications": {"toolsListChanged": True, "promptsListChanged": True}})
        _, first = stream.event()
        self.assertEqual(first["method"], "notifications/subscriptions/acknowledged")
        self.assertEqual(first["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], "l")
        self.assertEqual(first["params"]["notifications"], {}, "the tools never change")
        server.process.send_signal(signal.SIGTERM)
        _, last = stream.event()
        self.assertEqual((last["id"], last["result"]["resultType"]), ("l", "complete"))
        self.assertIsNone(stream.event())
        self.assertEqual(server.process.wait(ANSWER_S), 0)

    def test_listen_needs_a_stream(self):
        server = self.serve()
        answer = self.modern(server, "subscriptions/listen", {"notifications": {}},
                             headers={"Accept": "application/json"})
        self.assertEqual(answer.status, 406)

    def test_closing_cancels(self):
        server = self.serve()
        marker = self.marker()
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
            "_meta": META, "name": "exec_command", "arguments": {
                "workspace_id": "ws", "command": ["sleep", marker], "wait_ms": 600000}}})
        head = ("POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                "MCP-Protocol-Version: %s\r\nMcp-Method: tools/call\r\nMcp-Name: exec_command\r\n"
                "Content-Length: %d\r\n\r\n" % (MODERN, len(body)))
        with socket.create_connection(("127.0.0.1", server.port)) as s:
            s.sendall((head + body).encode())
            self.assertTrue(poll(lambda: running(marker)))
        self.assertTrue(poll(lambda: not running(marker)), "it is gone")
        self.assertEqual(self.modern(server, "tools/list").status, 200)


class WhoMayAsk(HttpCase):
    def test_hosts(self):
        server = self.serve("--allow-host", "box.example.com", "--allow-host", "b.example.com:90")
        for host, status in (("localhost", 200), ("localhost:1", 200), ("127.0.0.1", 200),
                             ("[::1]:80", 200), ("LOCALHOST", 200), ("box.example.com:4", 200),
                             ("b.example.com:90", 200), ("b.example.com:91", 403),
                             ("evil.example.com", 403), ("localhost.evil.example.com", 403),
                             ("127.0.0.1.evil.example.com", 403), ("127.0.0.1@evil", 403),
                             ("0x7f.1", 403), ("", 403), ("localhost:99999", 403)):
            with self.subTest(host=host):
                self.assertEqual(self.ask(server, body=INIT, headers={"Host": host}).status,
                                 status)

    def test_origins(self):
        server = self.serve("--allow-origin", "https://app.example.com")
        for origin, status in (("http://localhost:5173", 200), ("https://127.0.0.1", 200),
                               ("https://app.example.com", 200), (None, 200),
                               ("https://app.example.com:444", 403), ("null", 403), ("", 403),
                               ("http://evil.example.com", 403), ("file://localhost", 403),
                               ("http://localhost@evil.example.com", 403)):
            with self.subTest(origin=origin):
                answer = self.ask(server, body=INIT, headers={"Origin": origin})
                self.assertEqual(answer.status, status)

    def test_token(self):
        server = self.serve(env={"CODESPACE_HTTP_TOKEN": " " + TOKEN + "\n"})
        for value in (None, "", "Bearer", "Bearer ", TOKEN, "Basic " + TOKEN, "Bearer x" + TOKEN,
                      "Bearer " + TOKEN[:-1], "Bearer " + TOKEN + "x", "Bearer " + "x" * 4000):
            with self.subTest(value=value):
                answer = self.ask(server, body=INIT, headers={"Authorization": value})
                self.assertEqual(answer.status, 401)
                self.assertEqual(answer.headers["www-authenticate"], "Bearer")
                self.assertEqual(answer.json, {"error": "unauthorized"})
                self.assertNotIn(TOKEN.encode(), answer.body)
        right = {"Authorization": "bearer " + TOKEN}
        self.assertEqual(self.ask(server, body=INIT, headers=right).status, 200)
        server.stop()
        self.assertNotIn(TOKEN, "\n".join(server.lines))
        with open("/proc/%d/environ" % os.getpid(), "rb") as f:
            self.assertNotIn(TOKEN.encode(), f.read())

    def test_token_file(self):
        path = os.path.join(self.dir, "token")
        with open(path, "w") as f:
            f.write(TOKEN + "\n")
        server = self.serve("--token-file", path)
        self.assertEqual(self.ask(server, body=INIT).status, 401)
        headers = {"Authorization": "Bearer " + TOKEN}
        self.assertEqual(self.ask(server, body=INIT, headers=headers).status, 200)

    def test_refuses_to_start(self):
        path = os.path.join(self.dir, "empty")
        with open(path, "w") as f:
            f.write("\n")
        for arguments, says in (
            (("--host", "0.0.0.0", "--port", "0"), "token"),
            (("--token", TOKEN), "--token-file"),
            (("--token-file", path), "holds no token"),
            (("--token-file", path + "x"), "No such file"),
            (("--port", "65536"), "--port"),
            (("--allow-host", "a b"), "--allow-host"),
            (("--allow-origin", "example.com"), "--allow-origin"),
            (("--socket-activation",), "LISTEN_PID"),
        ):
            with self.subTest(arguments=arguments):
                _, stderr = self.refused("--http", "--workspace", "ws=" + self.ws, *arguments)
                self.assertIn(says, stderr)
                self.assertNotIn(TOKEN, stderr)
        _, stderr = self.refused("--http", env={"CODESPACE_HTTP_TOKEN": "short"})
        self.assertIn("HTTP_TOKEN_MIN", stderr)

    def test_a_port_that_is_taken(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = str(taken.getsockname()[1])
            _, stderr = self.refused("--http", "--workspace", "ws=" + self.ws, "--port", port)
        self.assertIn("another program listens there already", stderr)
        self.assertIn(port, stderr)

    def test_many_come_to_a_unix_socket_at_once(self):
        path = os.path.join(self.make_dir("s"), "mcp.sock")
        os.chmod(os.path.dirname(path), 0o700)
        server = self.serve("--unix-socket", path)
        os.kill(server.pid, signal.SIGSTOP)
        self.addCleanup(os.kill, server.pid, signal.SIGCONT)
        for _ in range(50):
            s = socket.socket(socket.AF_UNIX)
            self.addCleanup(s.close)
            s.setblocking(False)
            s.connect(path)
        os.kill(server.pid, signal.SIGCONT)

    def test_unix_socket(self):
        path = os.path.join(self.make_dir("s"), "mcp.sock")
        os.chmod(os.path.dirname(path), 0o700)
        server = self.serve("--unix-socket", path)
        self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)
        body = json.dumps(INIT).encode()
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(path)
            s.sendall(b"POST /mcp HTTP/1.1\r\nHost: anything\r\nConnection: close\r\n"
                      b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
                      + body)
            got = b""
            while piece := s.recv(65536):
                got += piece
        self.assertTrue(got.startswith(b"HTTP/1.1 200 "), got[:200])
        server.stop()
        self.assertFalse(os.path.exists(path))

    def test_socket_activation(self):
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            listener.listen(8)

            # LISTEN_PID must name the process that is started, so a shell execs it.
            script = os.path.join(self.dir, "start")
            with open(script, "w") as f:
                f.write('#!/bin/sh\nLISTEN_PID=$$ LISTEN_FDS=1 exec "$@" 3<&%d\n'
                        % listener.fileno())
            os.chmod(script, 0o755)
            server = HttpServer(
                [script, SERVER, "--socket-activation", "--log-level", "info", "--workspace",
                 "ws=" + self.ws], self.environment(), self.dir, pass_fds=(listener.fileno(),))
            self.addCleanup(self.stopped, server)
            self.assertEqual(server.port, listener.getsockname()[1])
            self.assertEqual(self.ask(server, body=INIT).status, 200)


class TheEnd(HttpCase):
    def test_signals_end_it(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            with self.subTest(signal=number):
                server = self.serve()
                own = self.session(server)
                stream = self.ask(server, "GET", stream=True, headers=own)
                stream.event()
                self.assertEqual(server.stop(number), 0)
                self.assertIsNone(stream.event())

    def test_a_stream_is_ended_not_cut(self):
        server = self.serve()
        own = self.session(server)
        with socket.create_connection(("127.0.0.1", server.port), timeout=ANSWER_S) as s:
            s.sendall(b"GET /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n"
                      b"Mcp-Session-Id: " + own["Mcp-Session-Id"].encode() + b"\r\n\r\n")
            reader = s.makefile("rb")
            self.assertIn(b" 200 ", reader.readline())
            server.stop()
            self.assertEqual(reader.read()[-7:], b"\r\n0\r\n\r\n")

    def test_who_waits_is_told(self):
        server = self.serve()
        own = self.session(server)
        marker = self.marker()
        answers = {}

        def waits(id, ask):
            answers[id] = ask()

        command = {"workspace_id": "ws", "command": ["sleep", marker], "wait_ms": 50000}
        callers = [
            threading.Thread(target=waits, args=(1, lambda: self.ask(
                server, headers=own, body=call("exec_command", id=1, **command)))),
            threading.Thread(target=waits, args=(2, lambda: self.modern(
                server, "tools/call", {"name": "exec_command", "arguments": command}, id=2)))]
        for caller in callers:
            caller.start()
        self.assertTrue(poll(lambda: len(running(marker)) >= 2))
        server.stop()
        for caller in callers:
            caller.join(ANSWER_S)
        for id in (1, 2):
            self.assertEqual(answers[id].json["id"], id)
            self.assertEqual(answers[id].json["error"]["code"], -32800)
            self.assertIn("the server ends", answers[id].json["error"]["message"])
        self.assert_gone(marker)

    def test_commands_end_with_it(self):
        server = self.serve()
        marker = self.marker()
        self.ask(server, headers=self.session(server), body=call(
            "exec_command", workspace_id="ws", command=["sleep", marker]))
        self.assertTrue(poll(lambda: running(marker)))
        server.stop()
        self.assert_gone(marker)


if __name__ == "__main__":
    unittest.main()
