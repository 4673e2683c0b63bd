"""What the tests of the HTTP transport stand on: a server on a free port, and a client that shows
what was on the wire.

Nothing is retried and nothing repaired: a test sends the bytes it is about.
"""

import http.client
import json
import re
import signal
import socket
import subprocess
import threading

from support import LOG_LINE, SERVER, Case

LISTENING = re.compile(r"listening on (\S+)")
START_S = 60.0
ANSWER_S = 90.0
MODERN = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
}


class HttpServer:
    """A server process over HTTP. stop() ends it with SIGTERM and gives its exit status."""

    def __init__(self, argv, env, cwd, pass_fds=(), preexec_fn=None):
        self.lines = []
        self.address = None
        self.process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            env=env, cwd=cwd, pass_fds=pass_fds, preexec_fn=preexec_fn,
        )
        self.pid = self.process.pid
        self.ready = threading.Event()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        self.ready.wait(START_S)
        if self.address is None:
            raise AssertionError("the server does not listen: %s" % self.lines)

    def _read(self):
        for line in self.process.stderr:
            text = line.decode("utf-8", "replace").rstrip("\n")
            self.lines.append(text)
            found = LISTENING.search(text)
            if found:
                self.address = found.group(1)
                self.ready.set()
        self.ready.set()

    @property
    def port(self):
        return int(re.search(r":(\d+)/", self.address).group(1))

    def stop(self, number=signal.SIGTERM):
        if self.process.returncode is None:
            self.process.send_signal(number)
            self.process.wait(ANSWER_S)
            self.reader.join(ANSWER_S)
            self.process.stderr.close()
        return self.process.returncode


class Answer:
    def __init__(self, status, headers, body):
        self.status = status
        self.headers = {k.lower(): v for k, v in headers}
        self.body = body

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def events(self):
        return parse_events(self.body.decode())


def parse_events(text):
    """[(id, message or None)] of a whole event stream."""
    found = []
    for block in text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.split("\n") if ": " in line)
        if "data" in fields or block.startswith(("id:", "data:")):
            data = fields.get("data", "")
            found.append((fields.get("id"), json.loads(data) if data else None))
    return found


class Stream:
    """An event stream that is open."""

    def __init__(self, connection, response):
        self.connection, self.response = connection, response

    def event(self):
        """The next (id, message or None); None at the end. Comments are passed over."""
        lines = []
        while True:
            line = self.response.readline().decode()
            if not line:
                return None
            line = line.rstrip("\n")
            if line:
                lines.append(line)
            elif any(not text.startswith(":") for text in lines):
                return parse_events("\n".join(lines))[0]
            else:
                lines = []

    def close(self):
        self.response.close()
        self.connection.close()


class HttpCase(Case):
    def serve(self, *arguments, env=None, **more):
        if not any(a in ("--port", "--unix-socket", "--socket-activation") for a in arguments):
            arguments += ("--port", "0")
        server = HttpServer(
            [SERVER, "--http", "--log-level", "info", "--workspace", "ws=" + self.ws, *arguments],
            self.environment(**(env or {})), self.dir, **more,
        )
        self.addCleanup(self.stopped, server)
        return server

    def stopped(self, server):
        self.assertEqual(server.stop(), 0, "exit status; stderr: %s" % server.lines)
        strange = [line for line in server.lines if not LOG_LINE.match(line)]
        self.assertEqual(strange, [], "lines on stderr that are not the server's log")

    def ask(self, server, method="POST", body=None, headers=None, path="/mcp", stream=False):
        """One request on a connection of its own."""
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=ANSWER_S)
        all_headers = {"Content-Type": "application/json",
                       "Accept": "application/json, text/event-stream", **(headers or {})}
        if isinstance(body, (dict, list)):
            body = json.dumps(body)
        connection.request(method, path, body=body,
                           headers={k: v for k, v in all_headers.items() if v is not None})
        response = connection.getresponse()
        if stream:
            found = Stream(connection, response)
            self.addCleanup(found.close)
            return found
        answer = Answer(response.status, response.getheaders(), response.read())
        connection.close()
        return answer

    def modern(self, server, method, params=None, headers=None, meta=None, id=1, **more):
        """A request of the modern era with the headers it wants."""
        params = {"_meta": META if meta is None else meta, **(params or {})}
        own = {"MCP-Protocol-Version": MODERN, "Mcp-Method": method}
        name = params.get("name") or params.get("uri")
        if name:
            own["Mcp-Name"] = name
        own.update(headers or {})
        message = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
        return self.ask(server, body=message, headers=own, **more)

    def session(self, server, version="2025-11-25", headers=None, capabilities=None):
        """Headers of a new legacy session."""
        answer = self.ask(server, headers=headers, body={
            "jsonrpc": "2.0", "id": 0, "method": "initialize",
            "params": {"protocolVersion": version, "capabilities": capabilities or {},
                       "clientInfo": {"name": "test", "version": "1"}}})
        self.assertEqual(answer.status, 200, answer.body)
        self.assertEqual(answer.json["result"]["protocolVersion"], version)
        own = {**(headers or {}), "Mcp-Session-Id": answer.headers["mcp-session-id"],
               "MCP-Protocol-Version": version}
        done = self.ask(server, headers=own,
                        body={"jsonrpc": "2.0", "method": "notifications/initialized"})
        self.assertEqual((done.status, done.body), (202, b""))
        return own

    def raw(self, server, data, shut=False, seconds=ANSWER_S):
        """Send bytes, return all that comes until the server closes."""
        with socket.create_connection(("127.0.0.1", server.port), timeout=seconds) as s:
            s.sendall(data)
            if shut:
                s.shutdown(socket.SHUT_WR)
            got = b""
            while True:
                try:
                    piece = s.recv(65536)
                except ConnectionResetError:
                    return got
                if not piece:
                    return got
                got += piece


def call(tool, id=7, meta=None, **arguments):
    params = {"name": tool, "arguments": arguments}
    if meta:
        params["_meta"] = meta
    return {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}
