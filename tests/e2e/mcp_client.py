"""A small MCP client for tests: one server process, raw lines in and out, nothing hidden.

Theory. Official clients forgive and repair; a test wants to see what was on the wire. So this
client writes the lines it is told to write (broken ones too), a thread reads every line of the
server's stdout, and each line must be one JSON-RPC message: what is not is kept in `junk` and
close() reports it. Answers are found by id; what has no id or a null id waits in `strays`.

Standard library only. Must not: sleep, retry, or swallow an answer nobody asked for.
"""

import json
import os
import signal
import subprocess
import threading
import time

# Nets under what is waited for by its event: no machine is that slow.
ANSWER_S = 90.0
EXIT_S = 60.0

LEGACY_VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")


class Gone(Exception):
    """The server closed its stdout or did not answer in time."""


class RpcError(Exception):
    """A JSON-RPC error answer."""

    def __init__(self, error):
        super().__init__(json.dumps(error))
        self.code = error.get("code")
        self.message = error.get("message")
        self.data = error.get("data")


class ToolError(Exception):
    """A tool result flagged isError: the JSON object in its first text."""

    def __init__(self, result):
        text = result["content"][0]["text"]
        super().__init__(text)
        self.result = result
        self.body = json.loads(text)
        self.code = self.body.get("code")
        self.message = self.body.get("message", "")


def tool_answer(result):
    """The answer of a tool call as an object; raises ToolError.

    Checks what every client may rely on: the text holds the same JSON as structuredContent.
    """
    if result.get("isError"):
        raise ToolError(result)
    answer = json.loads(result["content"][0]["text"])
    structured = result.get("structuredContent", answer)
    if structured != answer:
        raise AssertionError("structuredContent and text differ: %r, %r" % (structured, answer))
    return answer


class Client:
    """A running server. Use `with`, or close()."""

    def __init__(self, argv, env=None, cwd=None):
        self.argv = list(argv)
        self.process = subprocess.Popen(
            self.argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=env,
            cwd=cwd,
            bufsize=0,
        )
        self.pid = self.process.pid
        self.junk = []
        self.strays = []
        self.notifications = []
        self.stderr_lines = []
        self.instructions = None
        self.server = None
        self._answers = {}
        self._next_id = 0
        self._ended = False
        self._changed = threading.Condition()
        self._reading = threading.Event()
        self._reading.set()
        self._write_lock = threading.Lock()
        self._threads = [
            threading.Thread(target=self._read_stdout, daemon=True),
            threading.Thread(target=self._read_stderr, daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

    # ---- the wire ----

    def _read_stdout(self):
        rest = b""
        fd = self.process.stdout.fileno()
        parts = []
        while True:
            self._reading.wait()
            chunk = os.read(fd, 1 << 18)
            if not chunk:
                break
            if b"\n" not in chunk:
                parts.append(chunk)
                continue
            parts.append(chunk)
            lines = b"".join(parts).split(b"\n")
            rest = lines.pop()
            parts = [rest] if rest else []
            for line in lines:
                self._take(line)
        if parts:
            self._take(b"".join(parts))
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def _read_stderr(self):
        for line in self.process.stderr:
            with self._changed:
                self.stderr_lines.append(line.decode("utf-8", "replace").rstrip("\n"))
                self._changed.notify_all()

    def _take(self, line):
        try:
            message = json.loads(line.decode("utf-8", "strict"))
            good = isinstance(message, dict) and message.get("jsonrpc") == "2.0"
        except ValueError:
            good = False
        with self._changed:
            if not good:
                self.junk.append(line)
            elif "method" in message:
                self.notifications.append(message)
            elif message.get("id") is None:
                self.strays.append(message)
            else:
                self._answers.setdefault(self._key(message["id"]), []).append(message)
            self._changed.notify_all()

    @staticmethod
    def _key(ident):
        return (type(ident).__name__, ident)

    def send_bytes(self, data):
        """Write bytes as they are."""
        with self._write_lock:
            view = memoryview(data)
            while view:
                view = view[os.write(self.process.stdin.fileno(), view) :]

    def send(self, message):
        self.send_bytes(json.dumps(message, separators=(",", ":")).encode() + b"\n")

    def _wait(self, ready, seconds, what):
        deadline = time.monotonic() + seconds
        with self._changed:
            while True:
                got = ready()
                if got is not None:
                    return got
                left = deadline - time.monotonic()
                if self._ended or left <= 0:
                    raise Gone(
                        "%s: %s; stderr: %s"
                        % (
                            what,
                            "the server closed stdout" if self._ended else "no answer in time",
                            "\n".join(self.stderr_lines[-20:]),
                        )
                    )
                self._changed.wait(left)

    def message_for(self, ident, seconds=ANSWER_S):
        """The answer to `ident`, result or error, as it was on the wire."""

        def ready():
            queue = self._answers.get(self._key(ident))
            return queue.pop(0) if queue else None

        return self._wait(ready, seconds, "waiting for answer %r" % (ident,))

    def stray(self, seconds=ANSWER_S):
        """The next answer without a usable id."""
        return self._wait(
            lambda: self.strays.pop(0) if self.strays else None, seconds, "waiting for an error"
        )

    def stderr_line(self, text, seconds=ANSWER_S):
        """Wait for a line of stderr that contains `text`."""

        def ready():
            return next((line for line in self.stderr_lines if text in line), None)

        deadline = time.monotonic() + seconds
        with self._changed:
            while True:
                got = ready()
                if got is not None:
                    return got
                left = deadline - time.monotonic()
                if left <= 0:
                    raise Gone("stderr never said %r: %s" % (text, self.stderr_lines))
                self._changed.wait(left)

    def pause_reading(self):
        """Leave what the server says in the pipe (but for one read that may be under way)."""
        self._reading.clear()

    def resume_reading(self):
        self._reading.set()

    def answered(self, ident):
        with self._changed:
            return bool(self._answers.get(self._key(ident)))

    def unclaimed(self):
        """Answers that came and nobody asked for yet."""
        with self._changed:
            return [m for queue in self._answers.values() for m in queue] + self.strays

    # ---- JSON-RPC ----

    def begin(self, method, params=None):
        """Send a request and return its id."""
        with self._write_lock:
            self._next_id += 1
            ident = self._next_id
        message = {"jsonrpc": "2.0", "id": ident, "method": method}
        if params is not None:
            message["params"] = params
        self.send(message)
        return ident

    def notify(self, method, params=None):
        message = {"jsonrpc": "2.0", "method": method}
        if params is not None:
            message["params"] = params
        self.send(message)

    def finish(self, ident, seconds=ANSWER_S):
        message = self.message_for(ident, seconds)
        if "error" in message:
            raise RpcError(message["error"])
        return message["result"]

    def request(self, method, params=None, seconds=ANSWER_S):
        return self.finish(self.begin(method, params), seconds)

    def initialize(self, version=LEGACY_VERSIONS[0], capabilities=None):
        result = self.request(
            "initialize",
            {
                "protocolVersion": version,
                "capabilities": capabilities or {},
                "clientInfo": {"name": "codespace-e2e", "version": "1"},
            },
        )
        self.notify("notifications/initialized")
        self.instructions = result.get("instructions")
        self.server = result.get("serverInfo")
        return result

    # ---- tools ----

    def begin_call(self, tool, **arguments):
        return self.begin("tools/call", {"name": tool, "arguments": arguments})

    def finish_call(self, ident, seconds=ANSWER_S):
        return tool_answer(self.finish(ident, seconds))

    def call(self, tool, seconds=ANSWER_S, **arguments):
        return self.finish_call(self.begin_call(tool, **arguments), seconds)

    # ---- the end ----

    def signal(self, number=signal.SIGTERM):
        self.process.send_signal(number)

    def close_stdin(self):
        if not self.process.stdin.closed:
            self.process.stdin.close()

    def wait_exit(self, seconds=EXIT_S):
        """Exit status as subprocess gives it; Gone when the server lives on."""
        try:
            status = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise Gone("the server did not exit; stderr: %s" % self.stderr_lines) from None
        for thread in self._threads:
            thread.join(seconds)
        return status

    def close(self):
        """End by EOF. Returns the exit status; kills a server that does not go."""
        self.resume_reading()
        try:
            self.close_stdin()
        except BrokenPipeError:
            pass
        try:
            return self.wait_exit()
        except Gone:
            self.process.kill()
            self.process.wait()
            raise
        finally:
            if self.process.poll() is not None:
                self.process.stdout.close()
                self.process.stderr.close()
