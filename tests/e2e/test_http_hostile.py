"""Streamable HTTP against clients that mean harm, or are broken: raw bytes, one connection each."""

import json
import resource
import socket
import threading
import unittest

from http_support import ANSWER_S, HttpCase, call
from support import memory_kib, poll

IDLE_CONNECTIONS = 10000
OPEN_SESSIONS = 1000
MANY_CALLS = 100000
MANY_CALLS_SANITIZED = 5000
HEAD = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}


def sanitized(pid):
    """Built with a sanitizer, which keeps freed memory for a while (and terabytes of addresses)."""
    return memory_kib(pid, "VmSize") > 1 << 30


def status_of(data):
    return int(data.split(b" ", 2)[1]) if data.startswith(b"HTTP/1.1 ") else None


def answer_length(reader):
    """Read a head; (status, length of the body)."""
    status = int(reader.readline().split()[1])
    length = 0
    while (line := reader.readline()) != b"\r\n":
        if line.lower().startswith(b"content-length:"):
            length = int(line.split(b":")[1])
    return status, length


def allow_files(case, wanted):
    """Let this process, and the servers it starts, open that many files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < wanted:
        case.skipTest("only %d open files are allowed here" % hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    case.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))


class Smuggling(HttpCase):
    """Whatever two readers could see as two different requests is refused, and the connection
    ends: nothing that follows is taken for a request."""

    SHAPES = {
        "length and coding": b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "two lengths": b"Content-Length: 5\r\nContent-Length: 6\r\n",
        "the same length twice": b"Content-Length: 5\r\nContent-Length: 5\r\n",
        "a list of lengths": b"Content-Length: 5, 5\r\n",
        "a length with a sign": b"Content-Length: +5\r\n",
        "a length in hex": b"Content-Length: 0x5\r\n",
        "a negative length": b"Content-Length: -1\r\n",
        "a length that overflows": b"Content-Length: 99999999999999999999999\r\n",
        "another coding": b"Transfer-Encoding: gzip, chunked\r\n",
        "a coding with a twist": b"Transfer-Encoding: xchunked\r\n",
        "a coding twice": b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        "a blank before the colon": b"Content-Length : 5\r\n",
        "a folded line": b"X: a\r\n Content-Length: 5\r\n",
        "LF alone": b"X: a\nContent-Length: 5\r\n",
        "CR alone": b"X: a\rContent-Length: 5\r\n",
        "a NUL": b"X: a\0b\r\n",
        "two hosts": b"Host: localhost\r\n",
        "no name": b": a\r\n",
        "a coding and a length of it": b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
        "a coding in capitals and a length": b"TRANSFER-ENCODING: CHUNKED\r\nContent-Length: 5\r\n",
        "a coding by another name": b"Transfer-Encoding: identity\r\n",
        "a coding in a list": b"Transfer-Encoding: chunked, identity\r\n",
        "an empty coding": b"Transfer-Encoding:\r\n",
        "a coding with a vertical tab": b"Transfer-Encoding: \x0bchunked\r\n",
        "a coding with a blank in its name": b"Transfer Encoding: chunked\r\n",
        "a coding with a tab in its name": b"Transfer-Encoding\t: chunked\r\n",
        "an empty length": b"Content-Length:\r\n",
        "a length with a blank in it": b"Content-Length: 5 5\r\n",
        "a length with a unit": b"Content-Length: 5b\r\n",
        "a length with a point": b"Content-Length: 5.0\r\n",
        "a length of another script": b"Content-Length: \xd9\xa5\r\n",
        "a folded coding": b"Transfer-Encoding:\r\n chunked\r\n",
        "a blank line of its own": b" \r\nContent-Length: 5\r\n",
        "a line without a colon": b"Content-Length\r\n",
        "a control character": b"X: a\x01b\r\n",
        "a byte that is no letter in a name": b"X\xff: a\r\n",
    }

    def test_heads(self):
        server = self.serve()
        for name, lines in self.SHAPES.items():
            with self.subTest(name):
                got = self.raw(server, HEAD + lines + b"\r\n" + b"0\r\n\r\n" + HEAD
                               + b"Content-Length: %d\r\n\r\n" % len(PING) + PING)
                self.assertEqual(status_of(got), 400, got[:300])
                self.assertEqual(got.count(b"HTTP/1.1 "), 1)

    def test_request_lines(self):
        server = self.serve()
        for line in (b"POST  /mcp HTTP/1.1", b"POST /mcp HTTP/1.1 ", b"POST /mcp HTTP/2.0",
                     b"POST /mcp", b"POST\t/mcp HTTP/1.1", b"/mcp POST HTTP/1.1 x",
                     b"\r\nPOST /mcp HTTP/1.1", b"P" * 100 + b" /mcp HTTP/1.1"):
            with self.subTest(line=line):
                got = self.raw(server, line + b"\r\nHost: localhost\r\n\r\n", shut=True)
                self.assertIn(status_of(got), (400, 431), got[:300])

    def test_chunks(self):
        server = self.serve()
        for body in (b"5 \r\nhello\r\n0\r\n\r\n", b"-5\r\nhello\r\n0\r\n\r\n",
                     b"5\nhello\r\n0\r\n\r\n", b"5\r\nhelloX\r\n0\r\n\r\n", b"\r\n\r\n",
                     b"fffffffffffffffff\r\n", b"5;" + b"e" * 2000 + b"\r\nhello\r\n0\r\n\r\n"):
            with self.subTest(body=body[:30]):
                got = self.raw(server, HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + body,
                               shut=True)
                self.assertIn(status_of(got), (400, 413), got[:300])

    def test_good_chunks_and_pipelined_requests_are_served(self):
        server = self.serve()
        own = self.session(server)
        head = HEAD + b"Mcp-Session-Id: %s\r\n" % own["Mcp-Session-Id"].encode()
        chunked = head + b"Transfer-Encoding: chunked\r\n\r\n" + b"".join(
            b"1\r\n%c\r\n" % byte for byte in PING) + b"0\r\n\r\n"
        plain = head + b"Content-Length: %d\r\n\r\n" % len(PING) + PING
        last = head + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(PING) + PING
        got = self.raw(server, chunked + plain * 5 + last)
        self.assertEqual(got.count(b"HTTP/1.1 200 OK"), 7)
        self.assertEqual(got.count(b'"result":{}'), 7)

    def test_one_byte_at_a_time(self):
        server = self.serve()
        own = self.session(server)
        data = (HEAD + b"Mcp-Session-Id: %s\r\nConnection: close\r\nContent-Length: %d\r\n\r\n"
                % (own["Mcp-Session-Id"].encode(), len(PING)) + PING)
        with socket.create_connection(("127.0.0.1", server.port), timeout=ANSWER_S) as s:
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for byte in data:
                s.sendall(bytes([byte]))
            self.assertEqual(status_of(s.recv(65536)), 200)


class Floods(HttpCase):
    def test_headers(self):
        server = self.serve()
        for lines in (b"X: y\r\n" * 101, b"X: " + b"y" * 70000 + b"\r\n",
                      b"X" * 70000 + b": y\r\n"):
            got = self.raw(server, HEAD + lines + b"\r\n")
            self.assertEqual(status_of(got), 431, got[:300])

    def test_a_body_that_is_too_large(self):
        server = self.serve()
        for length in (b"16777217", b"1073741824"):
            got = self.raw(server, HEAD + b"Content-Length: " + length + b"\r\n\r\n")
            self.assertEqual(status_of(got), 413)
            self.assertIn(b"HTTP_BODY_MAX", got)

    def test_a_chunked_body_without_end(self):
        server = self.serve()
        piece = b"100000\r\n" + b" " * 0x100000 + b"\r\n"
        with socket.create_connection(("127.0.0.1", server.port), timeout=ANSWER_S) as s:
            s.sendall(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
            with self.assertRaises((ConnectionError, AssertionError)):
                for _ in range(64):
                    s.sendall(piece)
                self.assertEqual(status_of(s.recv(4096)), 200, "refused before 64 MiB")
        if not sanitized(server.pid):
            self.assertTrue(poll(lambda: memory_kib(server.pid) < 64 * 1024), "it is given back")
        self.assertEqual(self.ask(server, body=LIST, headers=self.session(server)).status, 200)

    def test_without_a_token_no_body_is_taken_in(self):
        server = self.serve(env={"CODESPACE_HTTP_TOKEN": "0123456789abcdef0123"})
        got = self.raw(server, HEAD + b"Content-Length: 16000000\r\n\r\n")
        self.assertEqual(status_of(got), 401)

    def test_one_session_too_many_takes_the_place_of_the_most_silent(self):
        server = self.serve()
        first = self.session(server)
        second = self.session(server)
        self.ask(server, "GET", stream=True, headers=second).event()
        body = (b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":'
                b'"2025-11-25"}}')
        one = HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body
        with socket.create_connection(("127.0.0.1", server.port), timeout=ANSWER_S) as s:
            reader = s.makefile("rb")
            found = set()
            for _ in range(4095):
                s.sendall(one)
                status, length = answer_length(reader)
                reader.read(length)
                found.add(status)
            self.assertEqual(found, {200})
        self.assertEqual(self.ask(server, body=LIST, headers=first).status, 404)
        self.assertEqual(self.ask(server, body=LIST, headers=second).status, 200,
                         "one with an open stream is not silent")

    def test_large_messages_count_as_long_as_they_are_worked_on(self):
        """A subscription keeps its message; sixteen of the largest are all there is room for."""
        server = self.serve()
        junk = "x" * ((16 << 20) - 2000)
        listening = []
        for i in range(16):
            listening.append(self.modern(server, "subscriptions/listen", {
                "notifications": {}, "junk": junk}, id="listen-%d" % i, stream=True))
            self.assertEqual(listening[-1].response.status, 200)
        answer = self.modern(server, "tools/list", {"junk": junk[:1 << 20]})
        self.assertEqual(answer.status, 503)
        self.assertIn(b"HTTP_BODIES_MAX", answer.body)
        self.assertEqual(self.modern(server, "tools/list").status, 200, "small ones go on")
        for stream in listening:
            stream.close()
        self.assertTrue(poll(lambda: self.modern(
            server, "tools/list", {"junk": junk[:1 << 20]}).status == 200), "there is room again")

    def test_a_client_that_does_not_read(self):
        """Pipelined requests for large answers, never read: memory stays bounded."""
        server = self.serve()
        own = self.session(server)
        self.write("big.txt", "x" * (1 << 20))
        body = (b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"read",'
                b'"arguments":{"workspace_id":"ws","path":"big.txt","limit":1048576}}}' % 5)
        one = (HEAD + b"Mcp-Session-Id: %s\r\nContent-Length: %d\r\n\r\n"
               % (own["Mcp-Session-Id"].encode(), len(body)) + body)
        with socket.create_connection(("127.0.0.1", server.port), timeout=2) as s:
            sent = 0
            try:
                for _ in range(2000):
                    s.sendall(one)
                    sent += 1
            except TimeoutError:
                pass
            high = poll(lambda: memory_kib(server.pid) > 96 * 1024, 4.0)
            self.assertFalse(high, "after %d requests" % sent)
        self.assertEqual(self.ask(server, body=LIST, headers=own).status, 200)


class Entangled(HttpCase):
    """What waits on a connection behind an answer is about the very thing whose end lets it go."""

    def open(self, server, *requests):
        """A connection of its own on which all of these are sent at once."""
        s = socket.create_connection(("127.0.0.1", server.port), timeout=ANSWER_S)
        self.addCleanup(s.close)
        s.sendall(b"".join(requests))
        return s.makefile("rb")

    @staticmethod
    def request(own, method="POST", body=None):
        text = json.dumps(body).encode() if body is not None else b""
        head = "%s /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" \
               "Accept: application/json, text/event-stream\r\nMcp-Session-Id: %s\r\n" \
               "Content-Length: %d\r\n\r\n" % (method, own["Mcp-Session-Id"], len(text))
        return head.encode() + text

    def skip_stream(self, reader):
        """Read a head and a chunked body."""
        self.assertIn(b" 200 ", reader.readline())
        while reader.readline() != b"\r\n":
            pass
        while (size := int(reader.readline(), 16)) > 0:
            reader.read(size + 2)
        reader.readline()

    def test_a_stream_that_is_replaced_before_its_session_is_deleted(self):
        server = self.serve()
        own = self.session(server)
        first = self.open(server, self.request(own, "GET"), self.request(own, "DELETE"))
        self.assertIn(b" 200 ", first.peek())
        second = self.open(server, self.request(own, "GET"))
        self.skip_stream(first)
        self.assertEqual(answer_length(first)[0], 200, "the session is deleted")
        self.skip_stream(second)
        self.assertEqual(self.ask(server, body=LIST, headers=own).status, 404)
        self.assertEqual(self.ask(server, body=LIST, headers=self.session(server)).status, 200)

    def test_a_wait_that_is_cancelled_before_its_task_is(self):
        server = self.serve()
        own = self.session(server)
        task = self.ask(server, headers=own, body={
            "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
                "name": "exec_command", "task": {}, "arguments": {
                    "workspace_id": "ws", "command": ["sleep", "600"]}}}
            ).json["result"]["task"]["taskId"]

        def message(id, method):
            return {"jsonrpc": "2.0", "id": id, "method": method, "params": {"taskId": task}}

        waits = self.open(server, self.request(own, body=message(5, "tasks/result")),
                          self.request(own, body=message(6, "tasks/cancel")))
        in_flight = {"jsonrpc": "2.0", "id": 5, "method": "ping"}
        self.assertTrue(poll(lambda: "error" in self.ask(
            server, headers=own, body=in_flight).json), "5 is in flight")
        self.ask(server, headers=own, body={
            "jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 5}})
        self.assertEqual(answer_length(waits), (200, 0), "nothing for the cancelled call")
        status, length = answer_length(waits)
        self.assertEqual(status, 200)
        self.assertEqual(json.loads(waits.read(length))["result"]["status"], "cancelled")

    def test_cancels_in_one_array_whose_session_goes_in_between(self):
        server = self.serve()
        own = self.session(server, "2025-03-26")
        self.open(server, *[self.request(own, body=call(
            "exec_command", id=id, workspace_id="ws", command=["sleep", "600"], wait_ms=60000))
            for id in (1,)], self.request(own, "DELETE"))
        in_flight = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        self.assertTrue(poll(lambda: "error" in self.ask(
            server, headers=own, body=in_flight).json), "1 is in flight")
        cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled",
                  "params": {"requestId": 1}}
        self.ask(server, headers=own, body=[cancel, cancel, cancel])
        self.assertTrue(poll(lambda: self.ask(server, headers=own, body=LIST).status == 404))
        self.assertEqual(self.ask(server, body=LIST, headers=self.session(server)).status, 200)


class Patience(HttpCase):
    def test_idle_connections(self):
        """Thousands that say nothing do not keep others out, and cost little."""
        allow_files(self, IDLE_CONNECTIONS + 200)
        server = self.serve()
        before = memory_kib(server.pid)
        idle = []
        self.addCleanup(lambda: [s.close() for s in idle])
        for _ in range(IDLE_CONNECTIONS):
            idle.append(socket.create_connection(("127.0.0.1", server.port), timeout=ANSWER_S))
        own = self.session(server)
        self.assertEqual(self.ask(server, body=LIST, headers=own).status, 200)
        used = memory_kib(server.pid) - before
        self.assertLess(used, 2 * IDLE_CONNECTIONS, "KiB for all of them")

    def test_many_sessions_with_an_open_stream(self):
        allow_files(self, OPEN_SESSIONS + 200)
        server = self.serve()
        self.session(server)
        before = memory_kib(server.pid)
        streams = []
        self.addCleanup(lambda: [s.close() for s in streams])
        for _ in range(OPEN_SESSIONS):
            streams.append(self.open_stream(server))
        used = memory_kib(server.pid) - before
        self.assertLess(used, 16 * OPEN_SESSIONS, "KiB for all of them")
        self.assertEqual(self.ask(server, body=LIST, headers=self.session(server)).status, 200)

    def open_stream(self, server):
        """A session of its own with its stream, on one connection."""
        body = (b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":'
                b'{"protocolVersion":"2025-11-25"}}')
        s = socket.create_connection(("127.0.0.1", server.port), timeout=ANSWER_S)
        s.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        reader = s.makefile("rb")
        session, length = None, 0
        while (line := reader.readline()) != b"\r\n":
            name, _, value = line.partition(b":")
            session = value.strip() if name.lower() == b"mcp-session-id" else session
            length = int(value) if name.lower() == b"content-length" else length
        reader.read(length)
        s.sendall(b"GET /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n"
                  b"Mcp-Session-Id: " + session + b"\r\n\r\n")
        self.assertIn(b" 200 ", reader.readline())
        return s

    def test_memory_does_not_grow_with_calls(self):
        """A hundred thousand calls of three kinds on one connection."""
        server = self.serve()
        own = self.session(server)
        self.write("a.txt", "alpha\n")
        head = HEAD + b"Mcp-Session-Id: %s\r\n" % own["Mcp-Session-Id"].encode()
        bodies = [PING] + [
            b'{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"read","arguments":'
            b'{"workspace_id":"ws","path":"%s"}}}' % path for path in (b"a.txt", b"none")]
        batch = b"".join(head + b"Content-Length: %d\r\n\r\n" % len(b) + b for b in bodies) * 10
        calls = MANY_CALLS_SANITIZED if sanitized(server.pid) else MANY_CALLS
        sizes = []
        with socket.create_connection(("127.0.0.1", server.port), timeout=ANSWER_S) as s:
            reader = s.makefile("rb")
            for turn in range(calls // 30):
                s.sendall(batch)
                for _ in range(30):
                    status, length = answer_length(reader)
                    self.assertEqual(status, 200)
                    self.assertEqual(len(reader.read(length)), length)
                if turn in (calls // 150, calls // 30 - 1):
                    sizes.append(memory_kib(server.pid))
        grown = sizes[1] - sizes[0]
        self.assertLess(grown, 8 * 1024 if sanitized(server.pid) else 512, "KiB: %s" % sizes)

    def test_more_connections_than_files(self):
        """The one that was idle longest makes room."""
        server = self.serve(preexec_fn=lambda: resource.setrlimit(
            resource.RLIMIT_NOFILE, (128, 128)))
        idle = []
        self.addCleanup(lambda: [s.close() for s in idle])
        for _ in range(300):
            idle.append(socket.create_connection(("127.0.0.1", server.port), timeout=ANSWER_S))
        self.assertEqual(self.ask(server, body={
            "jsonrpc": "2.0", "id": 1, "method": "initialize",
            "params": {"protocolVersion": "2025-11-25"}}).status, 200)
        self.assertEqual(idle[0].recv(1), b"", "it was hung up on")

    def test_a_slow_head_is_given_up(self):
        server = self.serve()
        with socket.create_connection(("127.0.0.1", server.port), timeout=ANSWER_S) as s:
            s.sendall(HEAD)
            got = s.recv(65536)
        self.assertEqual(status_of(got), 408)
        self.assertIn(b"HTTP_HEAD_MS", got)

    def test_a_slow_body_is_given_up(self):
        """Half of a body, then nothing; others are served meanwhile."""
        server = self.serve()
        with socket.create_connection(("127.0.0.1", server.port), timeout=ANSWER_S) as s:
            s.sendall(HEAD + b"Content-Length: 1000\r\n\r\n" + b" " * 500)
            self.assertEqual(self.ask(server, body=LIST, headers=self.session(server)).status, 200)
            got = s.recv(65536)
        self.assertEqual(status_of(got), 408)
        self.assertIn(b"HTTP_BODY_MS", got)

    def test_two_servers_on_one_workspace(self):
        """Each has its own sessions; what one writes the other reads."""
        one, two = self.serve(), self.serve()
        first, second = self.session(one), self.session(two)
        self.assertEqual(self.ask(two, body=LIST, headers=first).status, 404)
        patch = "*** Begin Patch\n*** Add File: b.txt\n+beta\n*** End Patch\n"
        done = self.ask(one, headers=first, body=call("apply_patch", workspace_id="ws", patch=patch))
        self.assertFalse(done.json["result"].get("isError"), done.body)
        page = self.ask(two, headers=second, body=call("read", workspace_id="ws", path="b.txt"))
        self.assertEqual(page.json["result"]["structuredContent"]["content"], "beta\n")
        self.assertEqual(one.stop(), 0)
        self.assertEqual(self.ask(two, body=LIST, headers=second).status, 200)

    def test_half_open(self):
        """A client that has sent everything and ends its side still gets its answer."""
        server = self.serve()
        own = self.session(server)
        got = self.raw(server, HEAD + b"Mcp-Session-Id: %s\r\nContent-Length: %d\r\n\r\n"
                       % (own["Mcp-Session-Id"].encode(), len(PING)) + PING, shut=True)
        self.assertEqual(status_of(got), 200)
        self.assertIn(b'"result":{}', got)

    def test_half_a_request(self):
        server = self.serve()
        for data in (b"", b"P", HEAD, HEAD + b"Content-Length: 100\r\n\r\n{"):
            self.assertEqual(self.raw(server, data, shut=True), b"")

    def test_resets_in_the_middle(self):
        server = self.serve()
        own = self.session(server)
        linger = b"\1\0\0\0\0\0\0\0"
        body = b'{"jsonrpc":"2.0","id":%d,"method":"tools/list"}'
        for i in range(200):
            text = body % i
            with socket.create_connection(("127.0.0.1", server.port), timeout=ANSWER_S) as s:
                s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                s.sendall(HEAD + b"Mcp-Session-Id: %s\r\nContent-Length: %d\r\n\r\n"
                          % (own["Mcp-Session-Id"].encode(), len(text)) + text)
        self.assertEqual(self.ask(server, body=LIST, headers=own).status, 200)

    def test_many_at_once(self):
        server = self.serve()
        own = self.session(server)
        self.write("a.txt", "alpha\n")
        bad = []

        def work(worker):
            for i in range(50):
                answer = self.ask(server, headers=own, body=call(
                    "read", id="%d-%d" % (worker, i), workspace_id="ws", path="a.txt"))
                if answer.status != 200 or answer.json["id"] != "%d-%d" % (worker, i):
                    bad.append(answer.body)

        workers = [threading.Thread(target=work, args=(n,)) for n in range(16)]
        for one in workers:
            one.start()
        for one in workers:
            one.join()
        self.assertEqual(bad, [])


if __name__ == "__main__":
    unittest.main()
