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
import time

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
        if "--one-cpu" in more:
            more += ("--pid", str(one.process.pid))
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


def grown(calls, call):
    """Options for memory after a tenth of the calls and after all of them."""
    tenth = calls // 10
    return ["--warm", str(tenth), "--calls", str(calls - tenth), "--params", call]


def growth(setting, server, call, calls, *more):
    with served(setting, *server(setting)) as one:
        told, _ = setting.run("http-load", [*grown(calls, call), "--depth", "16", *more, "--pid",
                                            str(one.process.pid), str(one.port)])
    return {"kib": (told["rss_before_kib"], told["rss_after_kib"])}


def growth_stdio(setting, call, calls):
    told, _ = setting.run("load", [*grown(calls, call), "--depth", "16", "--", *setting.ours()])
    return {"kib": (told["rss_before_kib"], told["rss_after_kib"])}


def through_sdk(setting, call, calls, *target, cpus=None):
    """The official client (version 1); `target` is "http URL" or "stdio ARGV...". """
    if not os.path.isdir(os.path.join(CLIENT_PACKAGES, "@modelcontextprotocol", "sdk")):
        raise bench.Missing("the SDK is not installed (./dev test clients/sdk)")
    samples = os.path.join(setting.scratch, "sdk-samples")
    done = subprocess.run(
        [bench.node(), os.path.join(bench.HERE, "sdk_load.mjs"), CLIENT_PACKAGES, samples,
         str(calls), call, *target],
        env=setting.env, capture_output=True, stdin=subprocess.DEVNULL, timeout=bench.TURN_S,
        cwd=setting.ws, preexec_fn=cpus and (lambda: os.sched_setaffinity(0, cpus)),
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
META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {}}
OURS_MODERN = json.dumps({**json.loads(OURS_SHORT), "_meta": META}, separators=(",", ":"))
MODERN = ("--modern", "read")


def add_file(s, name, text):
    with open(os.path.join(s.ws, name), "w") as f:
        f.write(text)


def file_64k(s):
    lines = ('    value[%07d] = "text"; /* x */\n' % i for i in range((64 << 10) // 32))
    add_file(s, "64k", "".join(lines)[: 64 << 10])
    # For two seconds a new file's version is not remembered, so every read would hash it.
    time.sleep(3)


def echo_contenders(s):
    add_file(s, "short", "hi")
    return (("bare epoll server (floor)", floor(40), json.dumps(ECHO)),
            ("codespace-mcp, read of 2 bytes", ours, OURS_SHORT),
            ("server-everything, echo", everything, json.dumps(ECHO)))


def echoes(where, *more):
    words, options = where
    counts = (40000, 40000) if more else (2000, 2000, 100)
    said = "16 in flight" if more else "one at a time"
    return lambda s, f: (
        "HTTP keep-alive, tools/call with a short answer, %s, %s" % (said, words), [
            (label, lambda a=server, c=call, n=n: http(s, a, c, n * f, *more, *options))
            for (label, server, call), n in zip(echo_contenders(s), counts)
        ] + [("codespace-mcp, revision 2026-07-28",
              lambda: http(s, ours, OURS_MODERN, counts[1] * f, *more, *options, *MODERN))])


def reads_64k_http(where):
    words, options = where
    # every character once as it is and once in a string in a string
    size = (64 << 10) * 2 + (64 << 10) // 32 * 7

    def row(s, f):
        file_64k(s)
        return "HTTP keep-alive, read of 64 KiB, one at a time, " + words, [
            ("bare epoll server (floor)", lambda: http(s, floor(size), "{}", 4000 * f, *options)),
            ("codespace-mcp",
             lambda: http(s, ours, bench.ours_read("64k"), 4000 * f, *options)),
        ]
    return row


def reads_64k_stdio(where):
    words, options = where

    def row(s, f):
        file_64k(s)
        return "read of 64 KiB over stdio, one at a time, " + words, [
            (label, lambda a=argv, c=call, n=n: bench.latency(s, a(), c, n * f, *options))
            for (label, argv, call), n in zip(bench.read_call(s, "64k"), (4000, 4000, 200))
        ]
    return row


def row_idle(s, f):
    n = IDLE_SESSIONS
    return "resident memory: before and after %d sessions with an open stream each" % n, [
        ("codespace-mcp", lambda: idle(s, ours, n)),
        ("server-everything", lambda: idle(s, everything, n)),
    ]


def row_growth(s, f):
    n = 100000 * f
    add_file(s, "short", "hi")
    return "resident memory after %d and after %d calls, 16 in flight" % (n // 10, n), [
        ("over HTTP, a session", lambda: growth(s, ours, OURS_SHORT, n)),
        ("over HTTP, 2026-07-28", lambda: growth(s, ours, OURS_MODERN, n, *MODERN)),
        ("over stdio, initialized", lambda: growth_stdio(s, OURS_SHORT, n)),
        ("over stdio, 2026-07-28", lambda: growth_stdio(s, OURS_MODERN, n)),
        # It takes a hundred times longer, and grows: a fiftieth of the calls shows it.
        ("server-everything, echo, %d calls" % (n // 50),
         lambda: growth(s, everything, json.dumps(ECHO), n // 50)),
    ]


def our_result(setting, call):
    """What our server answers to it, in a file."""
    meta = json.dumps({**json.loads(call), "_meta": META})
    line = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":%s}\n' % meta
    done = subprocess.run(setting.ours(), input=line.encode(), env=setting.env, cwd=setting.ws,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    path = os.path.join(setting.scratch, "our-result")
    with open(path, "w") as f:
        json.dump(json.loads(done.stdout)["result"], f, separators=(",", ":"))
    return path


def sdk_stdio(cpus, words):
    """The client takes longer over a longer answer: so there is a floor that says what we say."""
    def row(s, f):
        reads = bench.read_call(s, "1k")
        same = ("null server with our answer", lambda: s.null(our_result(s, reads[1][2])), "{}")
        return "read of 1 KiB through the official SDK client, over stdio, " + words, [
            (label, lambda a=argv, c=call: through_sdk(s, c, 500 * f, "stdio", *a(), cpus=cpus))
            for label, argv, call in (same, *reads)
        ]
    return row


def row_sdk_http(s, f):
    return "tools/call with a short answer through the official SDK client, over HTTP", [
        (label, lambda a=server, c=call: sdk_http(s, a, c, 200 * f))
        for label, server, call in echo_contenders(s)
    ]


# name, row, rounds
ROWS = (
    ("http-echo", echoes(bench.ONE_CPU), 3),
    ("http-echo-two-cpus", echoes(bench.ANY_CPU), 3),
    ("http-echo-depth16", echoes(bench.ONE_CPU, "--depth", "16"), 3),
    ("http-echo-depth16-two-cpus", echoes(bench.ANY_CPU, "--depth", "16"), 3),
    ("http-read-64k", reads_64k_http(bench.ONE_CPU), 3),
    ("http-read-64k-two-cpus", reads_64k_http(bench.ANY_CPU), 3),
    ("read-64k", reads_64k_stdio(bench.ONE_CPU), 3),
    ("read-64k-two-cpus", reads_64k_stdio(bench.ANY_CPU), 3),
    ("http-idle", row_idle, 1),
    ("http-memory", row_growth, 1),
    ("sdk-stdio", sdk_stdio({min(os.sched_getaffinity(0))}, bench.ONE_CPU[0]), 3),
    ("sdk-stdio-two-cpus", sdk_stdio(None, bench.ANY_CPU[0]), 3),
    ("sdk-http", row_sdk_http, 3),
)
