#!/usr/bin/env python3
"""Real programs that people use as MCP clients, each making real tool calls against the server.

    agents.py mcporter|codex|claude --server PATH --helper PATH

Each reads a file and runs a sandboxed command, over stdio and over HTTP. Codex is asked by its own
app-server protocol, without a model. Claude Code talks to a model that is played here, on loopback:
a script that asks for one tool after the other and keeps what came back.

Nothing of it reaches another machine: this process leaves for a network namespace that has only
loopback (where that is allowed, and then it is checked), every proxy variable names a port where
nobody listens, telemetry and updates are turned off, and each has a home directory of its own.
The packages are exact versions (agents/package.json), installed as run.py does it.
"""

import argparse
import contextlib
import ctypes
import errno
import fcntl
import glob
import http.server
import json
import os
import platform
import queue
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

import run as clients  # noqa: E402

NODE_FLOOR = (20, 11)
STEP_S = 60  # an instrumented server on a busy machine; seconds are usual
MACHINE = {"x86_64": "x64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
NOWHERE = "http://127.0.0.1:9"
OUTSIDE = ("192.0.2.1", 443)  # an address that belongs to nobody (RFC 5737)
QUIET = {
    "HTTP_PROXY": NOWHERE, "HTTPS_PROXY": NOWHERE, "ALL_PROXY": NOWHERE,
    "http_proxy": NOWHERE, "https_proxy": NOWHERE, "all_proxy": NOWHERE,
    "NO_PROXY": "127.0.0.1,localhost", "no_proxy": "127.0.0.1,localhost",
    "DO_NOT_TRACK": "1",
}
READ = {"workspace_id": "ws", "path": "a.txt"}
EXEC = {"workspace_id": "ws", "command": ["sh", "-c", "cat a.txt; exit 3"], "wait_ms": 30000}


# ---- no network ----

CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
SIOCSIFFLAGS, IFF_UP = 0x8914, 0x1


def write_file(path, text):
    with open(path, "w") as f:
        f.write(text)


def leave_network():
    """Go where there is only loopback. False: this system does not let us."""
    libc = ctypes.CDLL(None, use_errno=True)
    uid, gid = os.geteuid(), os.getegid()
    flags = CLONE_NEWNET | (0 if uid == 0 else CLONE_NEWUSER)
    if libc.unshare(flags) != 0:
        return False
    if uid != 0:
        write_file("/proc/self/setgroups", "deny")
        write_file("/proc/self/uid_map", "%d %d 1" % (uid, uid))
        write_file("/proc/self/gid_map", "%d %d 1" % (gid, gid))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        fcntl.ioctl(s, SIOCSIFFLAGS, struct.pack("16sh22x", b"lo", IFF_UP))
    return True


def outside_is_unreachable():
    with socket.socket() as s:
        s.settimeout(5)
        return s.connect_ex(OUTSIDE) == errno.ENETUNREACH


# ---- what every client must have got ----


def check_read(answer):
    assert answer["content"] == "alpha\n", answer
    assert answer["version"].startswith("sha256:"), answer


def check_exec(answer):
    assert answer["output"] == "alpha\n", answer
    assert answer["exit_code"] == 3, answer
    assert answer["sandbox"] == "linux-sandbox", answer


def answer_of(result):
    """The tool's answer in an MCP result."""
    assert not result.get("isError"), result
    answer = json.loads(result["content"][0]["text"])
    assert result.get("structuredContent", answer) == answer, result
    return answer


class Place:
    """Where a client lives: its environment, and the server as it is to reach it."""

    def __init__(self, options, scratch, name, url):
        self.home = os.path.join(scratch, name)
        self.work = os.path.join(self.home, "work")
        os.makedirs(self.work)
        self.url = url
        self.server = os.path.realpath(options.server)
        self.root = os.path.join(scratch, "ws")
        self.server_env = {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "CODESPACE_LINUX_SANDBOX_BIN": os.path.realpath(options.helper),
            "CODESPACE_SPILL_DIR": "none",
            "XDG_STATE_HOME": os.path.join(self.home, "state"),
            **{k: v for k, v in os.environ.items() if k.endswith("SAN_OPTIONS")},
        }
        self.env = {
            "PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": self.home, "TMPDIR": self.home,
            "LANG": "C.UTF-8", **QUIET,
        }

    @property
    def entry(self):
        """The server in the form that most clients' JSON has."""
        if self.url:
            return {"type": "http", "url": self.url}
        return {"type": "stdio", "command": self.server,
                "args": ["--workspace", "ws=" + self.root], "env": self.server_env}

    def write(self, name, text):
        path = os.path.join(self.home, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        write_file(path, text)
        return path

    def run(self, *command, env=None):
        """What it prints. Into a file: a node program that exits at once loses what a pipe did not
        take yet."""
        with tempfile.TemporaryFile(dir=self.home) as out:
            done = subprocess.run(
                command, cwd=self.work, env={**self.env, **(env or {})}, stdout=out,
                stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, timeout=STEP_S,
            )
            out.seek(0)
            text = out.read().decode("utf-8", "replace")
        said = done.stderr.decode("utf-8", "replace")[-3000:]
        assert done.returncode == 0, "exit status %d: %s%s" % (
            done.returncode, text[-3000:], said)
        return text


def package_file(pattern):
    found = glob.glob(os.path.join(clients.MODULES, pattern))
    if len(found) != 1:
        raise clients.Unavailable("the package has no program for this machine: " + pattern)
    return found[0]


# ---- mcporter ----


def find_mcporter():
    return [clients.find_node(NODE_FLOOR), package_file("mcporter/dist/cli.js")]


def mcporter(program, place):
    entry = {k: v for k, v in place.entry.items() if k != "type"}
    config = place.write("mcporter.json", json.dumps({"mcpServers": {"codespace": entry}}))

    def call(tool, arguments):
        out = place.run(*program, "--config", config, "call", "codespace." + tool,
                        "--args", json.dumps(arguments), "--output", "json")
        return json.loads(out)  # it prints what the tool answered, not the result around it

    listed = json.loads(place.run(*program, "--config", config, "list", "codespace", "--json"))
    assert "exec_command" in {tool["name"] for tool in listed["tools"]}, listed
    check_read(call("read", READ))
    check_exec(call("exec_command", EXEC))


# ---- Codex ----

CODEX_CONFIG = """
check_for_update_on_startup = false
[analytics]
enabled = false
[feedback]
enabled = false
[mcp_servers.codespace]
"""


def toml(value):
    """JSON's strings and lists are TOML's too; a table is not."""
    if isinstance(value, dict):
        return "{%s}" % ", ".join("%s = %s" % (k, toml(v)) for k, v in value.items())
    return json.dumps(value)


def find_codex():
    return [package_file("@openai/codex-linux-%s/vendor/*/bin/codex" % MACHINE)]


class AppServer:
    """Codex's protocol for user interfaces: one JSON message a line, over its stdin and stdout."""

    def __init__(self, program, place):
        self.process = subprocess.Popen(
            [*program, "app-server"], env={**place.env, "CODEX_HOME": place.home}, cwd=place.work,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        self.errors = []
        self.lines = queue.Queue()
        self.threads = [threading.Thread(target=self._read, daemon=True),
                        threading.Thread(target=self._read_errors, daemon=True)]
        for thread in self.threads:
            thread.start()
        self.last = 0

    def _read(self):
        for line in self.process.stdout:
            self.lines.put(json.loads(line))
        self.lines.put(None)

    def _read_errors(self):
        for line in self.process.stderr:
            self.errors.append(line.decode("utf-8", "replace"))

    def send(self, **message):
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def ask(self, method, **params):
        self.last += 1
        self.send(id=self.last, method=method, params=params)
        while True:
            message = self.lines.get(timeout=STEP_S)
            assert message is not None, "it ended: " + "".join(self.errors[-20:])
            if message.get("id") == self.last and "method" not in message:
                assert "error" not in message, message
                return message["result"]

    def close(self):
        self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        for thread in self.threads:
            thread.join(10)


def codex(program, place):
    keys = ("url",) if place.url else ("command", "args", "env")
    lines = ["%s = %s" % (key, toml(place.entry[key])) for key in keys]
    place.write("config.toml", CODEX_CONFIG + "\n".join(lines) + "\n")
    with contextlib.closing(AppServer(program, place)) as app:
        app.ask("initialize", clientInfo={"name": "codespace-test", "version": "1"},
                capabilities={"experimentalApi": True})
        app.send(method="initialized")
        status = app.ask("mcpServerStatus/list")["data"]
        names = {s["name"]: set(s["tools"]) for s in status}
        assert {"read", "exec_command"} <= names["codespace"], names
        thread = app.ask("thread/start", cwd=place.work)["thread"]["id"]

        def call(tool, arguments):
            return answer_of(app.ask("mcpServer/tool/call", threadId=thread, server="codespace",
                                     tool=tool, arguments=arguments))

        check_read(call("read", READ))
        check_exec(call("exec_command", EXEC))


# ---- Claude Code ----


def find_claude():
    return [package_file("@anthropic-ai/claude-code-linux-%s/claude" % MACHINE)]


def tool_results(body):
    """The tool results of a conversation, in their order."""
    blocks = [block for message in body.get("messages", ())
              if isinstance(message["content"], list) for block in message["content"]]
    return [block for block in blocks if block.get("type") == "tool_result"]


class Script(http.server.ThreadingHTTPServer):
    """A model that asks for the tools of `calls` one after the other and then says it is done."""

    daemon_threads = True

    def __init__(self, calls):
        super().__init__(("127.0.0.1", 0), Turn)
        self.calls = calls
        self.results = []
        self.strange = []
        self.offered = set()

    def next_block(self, body):
        self.offered |= {tool["name"] for tool in body.get("tools", ())}
        results = tool_results(body)
        self.results = max(self.results, results, key=len)
        if not body.get("tools") or len(results) >= len(self.calls):
            return {"type": "text", "text": "all tools were called"}
        name, arguments = self.calls[len(results)]
        return {"type": "tool_use", "id": "call_%d" % len(results), "name": name,
                "input": arguments}


def events_of(message, block):
    """The events that build up a message of one block."""
    text = block["type"] == "text"
    empty = {**block, "text": ""} if text else {**block, "input": {}}
    piece = ({"type": "text_delta", "text": block["text"]} if text else
             {"type": "input_json_delta", "partial_json": json.dumps(block["input"])})
    yield {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}}
    yield {"type": "content_block_start", "index": 0, "content_block": empty}
    yield {"type": "content_block_delta", "index": 0, "delta": piece}
    yield {"type": "content_block_stop", "index": 0}
    yield {"type": "message_delta", "usage": {"output_tokens": 1},
           "delta": {"stop_reason": message["stop_reason"], "stop_sequence": None}}
    yield {"type": "message_stop"}


class Turn(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def answer(self, status, kind, text):
        data = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def refuse(self):
        self.server.strange.append("%s %s" % (self.command, self.path))
        self.answer(404, "application/json", "{}")

    do_GET = do_PUT = refuse

    def do_HEAD(self):
        self.send_response(200)  # it looks whether anybody is there
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        path = self.path.partition("?")[0]
        if path == "/v1/messages/count_tokens":
            self.answer(200, "application/json", '{"input_tokens":1}')
        elif path != "/v1/messages":
            self.refuse()
        else:
            self.say(body, self.server.next_block(body))

    def say(self, body, block):
        message = {
            "id": "msg_1", "type": "message", "role": "assistant", "model": body["model"],
            "content": [block], "stop_sequence": None,
            "stop_reason": "tool_use" if block["type"] == "tool_use" else "end_turn",
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }
        if not body.get("stream"):
            self.answer(200, "application/json", json.dumps(message))
            return
        self.answer(200, "text/event-stream", "".join(
            "event: %s\ndata: %s\n\n" % (event["type"], json.dumps(event))
            for event in events_of(message, block)))


@contextlib.contextmanager
def scripted(calls):
    script = Script(calls)
    thread = threading.Thread(target=script.serve_forever, daemon=True)
    thread.start()
    try:
        yield script
    finally:
        script.shutdown()
        thread.join()
        script.server_close()


def claude_answer(block):
    """A tool result as the model is shown it: the answer's text, or blocks of it."""
    assert not block.get("is_error"), block
    content = block["content"]
    text = content if isinstance(content, str) else content[0]["text"]
    return json.loads(text)


def claude(program, place):
    config = place.write("mcp.json", json.dumps({"mcpServers": {"codespace": place.entry}}))
    names = ["mcp__codespace__read", "mcp__codespace__exec_command"]
    with scripted(list(zip(names, (READ, EXEC)))) as script:
        out = place.run(
            *program, "-p", "go", "--output-format", "json", "--strict-mcp-config",
            "--mcp-config", config, "--allowedTools", ",".join(names),
            env={
                "ANTHROPIC_BASE_URL": "http://127.0.0.1:%d" % script.server_address[1],
                "ANTHROPIC_API_KEY": "none", "ENABLE_TOOL_SEARCH": "false",
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1",
                "DISABLE_TELEMETRY": "1", "DISABLE_ERROR_REPORTING": "1",
            })
        assert set(names) <= script.offered, sorted(script.offered)
        assert script.strange == [], script.strange
        assert json.loads(out)["result"] == "all tools were called", out
        assert len(script.results) == 2, script.results
        check_read(claude_answer(script.results[0]))
        check_exec(claude_answer(script.results[1]))


# ---- the run ----

AGENTS = {
    "mcporter": (find_mcporter, mcporter),
    "codex": (find_codex, codex),
    "claude": (find_claude, claude),
}


def run_steps(name, steps):
    print("1..%d" % len(steps))
    failed = 0
    for number, (what, step) in enumerate(steps, 1):
        try:
            step()
            print("ok %d - %s: %s" % (number, name, what), flush=True)
        except (AssertionError, ValueError, LookupError, TypeError, OSError, queue.Empty,
                subprocess.TimeoutExpired) as error:
            failed += 1
            print("\n".join("# " + line for line in repr(error).split("\\n")))
            print("not ok %d - %s: %s" % (number, name, what), flush=True)
    print("codespace-tests: %d passed, %d failed, 0 skipped" % (len(steps) - failed, failed))
    return failed


def run_agent(options, program, scratch, alone):
    client = AGENTS[options.agent][1]
    root = clients.make_workspace(scratch)
    here = Place(options, scratch, "over-stdio", None)
    server_env = {**here.server_env, "HOME": here.home}

    def no_way_out():
        assert outside_is_unreachable(), "another machine can be reached"

    with clients.http_server(options, server_env, root) as server:
        there = Place(options, scratch, "over-http", server.url)
        steps = [("no way to another machine", no_way_out)] if alone else []
        steps += [("reads and runs a command over stdio", lambda: client(program, here)),
                  ("reads and runs a command over HTTP", lambda: client(program, there))]
        failed = run_steps(options.agent, steps)
    return 1 if failed or server.status else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("agent", choices=sorted(AGENTS))
    parser.add_argument("--server", required=True)
    parser.add_argument("--helper", required=True)
    options = parser.parse_args()
    clients.use_folder(os.path.join(os.path.dirname(os.path.realpath(__file__)), "agents"))
    program = clients.node_or_exit(AGENTS[options.agent][0])
    alone = leave_network()
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    with tempfile.TemporaryDirectory(prefix="codespace-agent-") as scratch:
        return run_agent(options, program, os.path.realpath(scratch), alone)


if __name__ == "__main__":
    sys.exit(main())
