"""Rows about Streamable HTTP and about the official SDK client; run.py reads ROWS.

Each turn starts its server on a free port and ends it. The floor is a bare epoll loop with a canned
answer of the same size (http_floor.c).
"""

import array
import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import threading

import run as bench

LISTENING = re.compile(r"listening on http://127\.0\.0\.1:(\d+)/|listening on port (\d+)")
START_S = 30
IDLE_SESSIONS = 1000
CLIENT_PACKAGES = os.path.join(os.path.dirname(bench.HERE), "tests", "clients", "node_modules")
EVERYTHING = "@modelcontextprotocol/server-everything/dist/index.js"
ECHO = {"name": "echo", "arguments": {"message": "hi"}}


class Server:
    """A server that says on stderr where it listens."""

    def __init__(self, setting, argv, env=None):
        self.process = subprocess.Popen(
            argv, env={**setting.env, **(env or {})}, cwd=setting.ws, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        )
        self.port, self.said = None, []
        self.ready = threading.Event()
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()
        self.ready.wait(START_S)

    def _read(self):
        for line in self.process.stderr:
            text = line.decode("utf-8", "replace")
            self.said = (self.said + [text.strip()])[-5:]
            found = LISTENING.search(text)
            if found:
                self.port = int(found.group(1) or found.group(2))
                self.ready.set()
        self.ready.set()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.thread.join()
        self.process.stderr.close()

    def cpu_ns(self):
        with open("/proc/%d/stat" % self.process.pid) as f:
            fields = f.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) * 1e9 / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def served(setting, argv, env=None):
    server = Server(setting, argv, env)
    try:
        if server.port is None:
            raise bench.Missing("does not listen: " + " ".join(server.said)[-100:])
        yield server
    finally:
        server.stop()


# ---- servers: a function that gives (argv, more environment) ----


def floor(size):
    return lambda s: ([s.tool("http-floor"), str(size)], None)


def ours(s):
    return s.ours() + ["--http", "--port", "0", "--log-level", "info"], None


def everything(s):
    with socket.socket() as free:  # it takes no port 0
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    return [bench.node(), bench.peer(EVERYTHING), "streamableHttp"], {"PORT": str(port)}


# ---- what is measured ----


def http(setting, server, call, calls, *more):
    with served(setting, *server(setting)) as one:
        before = one.cpu_ns()
        told, ns = setting.run("http-load", ["--calls", str(calls), "--params", call, *more,
                                             str(one.port)])
        cpu = (one.cpu_ns() - before) / calls
    if "--depth" in more:
        return {"rate": calls / (told["total_ns"] / 1e9), "cpu": cpu}
    return {"ns": ns, "cpu": cpu}


def idle(setting, server, sessions):
    with served(setting, *server(setting)) as one:
        told, _ = setting.run(
            "http-load", ["--idle", str(sessions), "--pid", str(one.process.pid), str(one.port)])
    return {"kib": (told["rss_before_kib"], told["rss_after_kib"])}


def growth(setting, server, call, calls):
    """Memory after a tenth of the calls and after all of them."""
    with served(setting, *server(setting)) as one:
        sizes = []
        for n in (calls // 10, calls - calls // 10):
            setting.run("http-load", ["--calls", str(n), "--depth", "16", "--params", call,
                                      str(one.port)])
            sizes.append(rss_kib(one.process.pid))
    return {"kib": tuple(sizes)}


def rss_kib(pid):
    with open("/proc/%d/status" % pid) as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmRSS"))


def through_sdk(setting, call, calls, *target):
    """The official client (version 1); `target` is "http URL" or "stdio ARGV...". """
    if not os.path.isdir(os.path.join(CLIENT_PACKAGES, "@modelcontextprotocol", "sdk")):
        raise bench.Missing("the SDK is not installed (./dev test clients/sdk)")
    samples = os.path.join(setting.scratch, "sdk-samples")
    done = subprocess.run(
        [bench.node(), os.path.join(bench.HERE, "sdk_load.mjs"), CLIENT_PACKAGES, samples,
         str(calls), call, *target],
        env=setting.env, capture_output=True, stdin=subprocess.DEVNULL, timeout=bench.TURN_S,
        cwd=setting.ws,
    )
    if done.returncode:
        said = " ".join(done.stderr.decode("utf-8", "replace").split())
        raise bench.Missing("failed: " + said[-120:])
    values = array.array("Q")
    with open(samples, "rb") as f:
        values.frombytes(f.read())
    return {"ns": values}


def sdk_http(setting, server, call, calls):
    with served(setting, *server(setting)) as one:
        url = "http://127.0.0.1:%d/mcp" % one.port
        return through_sdk(setting, call, calls, "http", url)


# ---- rows ----

OURS_SHORT = bench.ours_read("short")


def add_file(s, name, text):
    with open(os.path.join(s.ws, name), "w") as f:
        f.write(text)


def file_64k(s):
    lines = ('    value[%07d] = "text"; /* x */\n' % i for i in range((64 << 10) // 32))
    add_file(s, "64k", "".join(lines)[: 64 << 10])


def echo_contenders(s):
    add_file(s, "short", "hi")
    return (("bare epoll server (floor)", floor(40), json.dumps(ECHO)),
            ("codespace-mcp, read of 2 bytes", ours, OURS_SHORT),
            ("server-everything, echo", everything, json.dumps(ECHO)))


def row_echo(s, f):
    return "HTTP keep-alive, tools/call with a short answer, one at a time", [
        (label, lambda a=server, c=call, n=n: http(s, a, c, n * f))
        for (label, server, call), n in zip(echo_contenders(s), (2000, 2000, 100))
    ]


def row_echo_rate(s, f):
    return "HTTP keep-alive, tools/call with a short answer, 16 in flight", [
        (label, lambda a=server, c=call, n=n: http(s, a, c, n * f, "--depth", "16"))
        for (label, server, call), n in zip(echo_contenders(s)[:2], (40000, 40000))
    ]


def row_read_64k_http(s, f):
    file_64k(s)
    # every character once as it is and once in a string in a string
    size = (64 << 10) * 2 + (64 << 10) // 32 * 7
    return "HTTP keep-alive, read of 64 KiB, one at a time", [
        ("bare epoll server (floor)", lambda: http(s, floor(size), "{}", 500 * f)),
        ("codespace-mcp", lambda: http(s, ours, bench.ours_read("64k"), 500 * f)),
    ]


def row_read_64k_stdio(s, f):
    file_64k(s)
    return "read of 64 KiB over stdio, one at a time", [
        (label, lambda a=argv, c=call: bench.latency(s, a(), c, 200 * f))
        for label, argv, call in bench.read_call(s, "64k")
    ]


def row_idle(s, f):
    n = IDLE_SESSIONS
    return "resident memory: before and after %d sessions with an open stream each" % n, [
        ("codespace-mcp", lambda: idle(s, ours, n)),
        ("server-everything", lambda: idle(s, everything, n)),
    ]


def row_growth(s, f):
    n = 100000 * f
    add_file(s, "short", "hi")
    return "resident memory after %d and after %d calls over HTTP" % (n // 10, n), [
        ("codespace-mcp", lambda: growth(s, ours, OURS_SHORT, n)),
    ]


def row_sdk_stdio(s, f):
    return "read of 1 KiB through the official SDK client, over stdio", [
        (label, lambda a=argv, c=call: through_sdk(s, c, 500 * f, "stdio", *a()))
        for label, argv, call in bench.read_call(s, "1k")
    ]


def row_sdk_http(s, f):
    return "tools/call with a short answer through the official SDK client, over HTTP", [
        (label, lambda a=server, c=call: sdk_http(s, a, c, 200 * f))
        for label, server, call in echo_contenders(s)
    ]


# name, row, rounds
ROWS = (
    ("http-echo", row_echo, 3),
    ("http-echo-depth16", row_echo_rate, 3),
    ("http-read-64k", row_read_64k_http, 3),
    ("read-64k", row_read_64k_stdio, 3),
    ("http-idle", row_idle, 1),
    ("http-memory", row_growth, 1),
    ("sdk-stdio", row_sdk_stdio, 3),
    ("sdk-http", row_sdk_http, 3),
)
