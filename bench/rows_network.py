"""Rows about the enabled network: what a start costs with it, and what the proxy carries.

The proxy is measured from the host's side, as in bench/egress.py, whose contenders and measurements
these are: listeners made in another network namespace are the same sockets to it.
"""

import atexit
import json
import os
import shutil
import subprocess
import tempfile
import time

import egress
from run import Missing, exec_call, latency, node, peer

EXPECT = ("--expect", "linux-sandbox")
BREAK_US = "20000"
COLD = ("/usr/bin/env", "CODESPACE_WARM=0")
SECONDS = 1
KEPT = {}


def proxy_program(s):
    return os.path.join(os.path.dirname(os.path.dirname(s.options.server)), "proxy",
                        "codespace-egress-proxy")


def enabled(s):
    """The server with a workspace whose network is enabled."""
    path = os.path.join(s.scratch, "network.json")
    s.env["CODESPACE_EGRESS_PROXY_BIN"] = proxy_program(s)
    with open(path, "w") as out:
        json.dump({"workspaces": {"ws": {
            "root": s.ws, "profile": "workspace-write", "network": "enabled",
            "egress": {"allow": ["**.example.com"], "local_ports": [5432]}}}}, out)
    return [s.options.server, "--config", path]


def row_start(s, f):
    def call(argv, *more):
        return lambda: latency(s, argv(), exec_call(), 20 * f, *EXPECT, *more)

    return "exec of /bin/true to its end, by network", [
        ("warm, restricted (floor)", call(s.ours, "--break-us", BREAK_US)),
        ("warm, enabled", call(lambda: enabled(s), "--break-us", BREAK_US)),
        ("cold, restricted", call(lambda: [*COLD, *s.ours()])),
        ("cold, enabled", call(lambda: [*COLD, *enabled(s)])),
    ]


def origin(s):
    for program in ("nginx", "wrk", "curl"):
        if not shutil.which(program):
            raise Missing("%s is not installed (nginx-light wrk curl)" % program)
    if "origin" not in KEPT:
        KEPT["folder"] = tempfile.mkdtemp(prefix="codespace-origin-")  # its server is another user
        atexit.register(shutil.rmtree, KEPT["folder"])
        KEPT["origin"] = egress.Origin(KEPT["folder"])
        atexit.register(KEPT["origin"].stop)
    return KEPT["origin"]


class SandboxRuntime(egress.Daemon):
    """The HTTP proxy of @anthropic-ai/sandbox-runtime, by itself: without its sandbox and the hops
    that lead into it. All is allowed, as for squid and tinyproxy."""

    name = "sandbox-runtime"
    SCRIPT = ('import { createHttpProxyServer } from "%s";\n'
              'createHttpProxyServer({ filter: () => true }).listen(%d, "127.0.0.1");\n')

    def __init__(self, folder):
        module = peer("@anthropic-ai/sandbox-runtime/dist/sandbox/http-proxy.js")
        self.port = egress.free_port()
        path = os.path.join(folder, "sandbox-runtime.mjs")
        with open(path, "w") as out:
            out.write(self.SCRIPT % (module, self.port))
        self.process = subprocess.Popen([node(), path], stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
        egress.wait_for(self.port)


class Codex(egress.Daemon):
    """The network proxy of @openai/codex, which its sandbox starts beside itself on a port of the
    host's loopback: it is asked there, without the hop that leads in from the sandbox. The origin is
    allowed by name, as for ours, because it takes no "*"."""

    name = "codex"
    CONFIG = """default_permissions = "bench"
[features]
network_proxy = true
[permissions.bench.filesystem]
":root" = "read"
[permissions.bench.network]
enabled = true
enable_socks5 = false
allow_local_binding = true
allow_upstream_proxy = false
mode = "full"
[permissions.bench.network.domains]
"127.0.0.1" = "allow"
"""

    def __init__(self, s):
        program = os.path.realpath(s.codex())
        # It refuses to keep what its sandbox is started by in the temporary directory.
        self.home = home = tempfile.mkdtemp(prefix="codespace-codex-", dir="/var/tmp")
        with open(os.path.join(home, "config.toml"), "w") as out:
            out.write(self.CONFIG)
        env = {"PATH": os.environ["PATH"], "HOME": home, "CODEX_HOME": home}
        # The command is `cat`: the sandbox and the proxy live until it has no more input.
        self.process = subprocess.Popen([program, "sandbox", "-P", "bench", "-C", home, "--", "cat"],
                                        env=env, stdin=subprocess.PIPE,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.port = self.find_port()
        if self.port is None:
            self.stop()
            raise Missing("its sandbox does not start here, and so neither does its network proxy")

    def find_port(self):
        """The one that its process listens on."""
        deadline = time.monotonic() + 20
        while self.process.poll() is None and time.monotonic() < deadline:
            ports = listening_ports(self.process.pid)
            if ports:
                return ports[0]
            time.sleep(0.02)
        return None

    def stop(self):
        self.process.stdin.close()
        super().stop()
        shutil.rmtree(self.home, ignore_errors=True)


def listening_ports(pid):
    """TCP ports that a process listens on."""
    inodes = set()
    try:
        for fd in os.listdir("/proc/%d/fd" % pid):
            inodes.add(os.readlink("/proc/%d/fd/%s" % (pid, fd)))
    except OSError:
        pass
    with open("/proc/net/tcp") as table:
        rows = [line.split() for line in table][1:]
    return [int(row[1].split(":")[1], 16) for row in rows
            if row[3] == "0A" and "socket:[%s]" % row[9] in inodes]


def contender(s, kind):
    """Each is started for its turn and stopped after it."""
    if kind is egress.Ours:
        return kind(proxy_program(s))
    if kind is egress.Direct:
        return kind()
    if kind is Codex:
        return kind(s)
    if kind is SandboxRuntime:
        return kind(KEPT["folder"])
    if not shutil.which(kind.name):
        raise Missing("not installed (apt-get install %s)" % kind.name)
    return kind(KEPT["folder"])


def turn(s, kind, measure):
    def run():
        server = origin(s)
        one = contender(s, kind)
        try:
            return measure(one, server)
        except SystemExit as reason:
            raise Missing(str(reason).splitlines()[0]) from reason
        finally:
            one.stop()
    return run


KINDS = (egress.Direct, egress.Ours, egress.Squid, egress.Tinyproxy, Codex, SandboxRuntime)


def row_small(connections):
    def row(s, f):
        def measure(one, server):
            rate, p99_ms = egress.small(one, server, KEPT["folder"], connections, SECONDS * f)
            return {"rate": rate, "note": "p99 %.2f ms" % p99_ms}

        return "GETs of 1 KiB through the proxy, %d connections" % connections, [
            (kind.name, turn(s, kind, measure)) for kind in KINDS]
    return row


def row_big(tunnel):
    def row(s, f):
        def measure(one, server):
            return {"rate": 1000 * egress.big(one, server, tunnel)}

        return "100 MiB by %s, in MB a second" % ("CONNECT" if tunnel else "GET"), [
            (kind.name, turn(s, kind, measure)) for kind in KINDS]
    return row


def row_memory(s, f):
    def measure(one, server):
        idle = egress.resident_kib(one.pid)
        each = egress.tunnels(one, server)
        return {"kib": (idle, idle + each * egress.TUNNELS), "note": "%.1f KiB a tunnel" % each}

    return "resident memory of the proxy, idle and with %d tunnels" % egress.TUNNELS, [
        (egress.Ours.name, turn(s, egress.Ours, measure))]


ROWS = (
    ("net-start", row_start, 3),
    ("net-get-1", row_small(1), 2),
    ("net-get-16", row_small(16), 2),
    ("net-get-64", row_small(64), 2),
    ("net-big-get", row_big(False), 2),
    ("net-big-connect", row_big(True), 2),
    ("net-memory", row_memory, 1),
)
