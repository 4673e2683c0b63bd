"""Rows about running commands: a gibibyte of output to a client that reads it page by page, and what
a command that does nothing costs in memory.

Output is written as fast as the pipe takes it and never waits for a reader; one that follows gets all
of it all the same, as far as the runner keeps it for him: the part that it read is shown beside the
rate. The rate is until the last byte was read, of the command and of the floor.
"""

import json
import os
import re
import subprocess
import time

from run import Missing, TURN_S, spawn
from rows_exec import worker

BYTES = 1 << 30
LINE = "0123456789" * 6
WRITER = "yes %s | head -c %d" % (LINE, BYTES)
IDLE = 48
PAGE = 1 << 19
CURSOR = re.compile(rb'"cursor":(\d+)')
START = re.compile(rb'\\"start\\":(\d+)')
EOF = b'\\"eof\\":true'


class Reader:
    """The cheapest client: it finds a number in an answer and parses nothing."""

    def __init__(self, setting, argv):
        self.server = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            env=setting.env, cwd=setting.ws, bufsize=0,
        )
        self.out = self.server.stdout.fileno()
        self.number, self.buffer = 0, memoryview(bytearray(32 * PAGE))
        self.ask("initialize", {"protocolVersion": "2025-06-18", "capabilities": {},
                                "clientInfo": {"name": "bench", "version": "1"}})
        self.server.stdin.write(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.stdin.close()
        self.server.wait(TURN_S)
        self.server.stdout.close()

    def line(self):
        """A view of the next answer, which is alone: nothing else was asked."""
        n = 0
        while n == 0 or self.buffer[n - 1] != 10:
            came = os.readv(self.out, [self.buffer[n:]])
            if came == 0:
                raise Missing("the server ended")
            n += came
        return self.buffer[:n]

    def ask(self, method, params):
        self.number += 1
        message = {"jsonrpc": "2.0", "id": self.number, "method": method, "params": params}
        self.server.stdin.write(json.dumps(message).encode() + b"\n")
        return self.line()

    def call(self, tool, **arguments):
        return self.ask("tools/call", {"name": tool, "arguments": arguments})

    def value(self, tool, **arguments):
        result = json.loads(bytes(self.call(tool, **arguments)))["result"]
        if result.get("isError"):
            raise Missing(result["content"][0]["text"][:120])
        return json.loads(result["content"][0]["text"])

    def start(self, *argv):
        return self.value("exec_command", workspace_id="ws", command=list(argv))["process_id"]

    def resident(self, field="VmRSS"):
        with open("/proc/%d/status" % self.server.pid) as f:
            return next(int(x.split()[1]) for x in f if x.startswith(field + ":"))


def pipe(setting):
    start = time.monotonic()
    done = subprocess.run(["/bin/sh", "-c", WRITER + " | cat >/dev/null"], env=setting.env,
                          timeout=TURN_S)
    if done.returncode:
        raise Missing("the pipe failed")
    return {"rate": BYTES / 1e6 / (time.monotonic() - start)}


def read_all(r, process, encoding):
    """(bytes that were read, bytes that were missed)"""
    cursor, missed = 0, 0
    while True:
        answer = r.call("read_process", process_id=process, cursor=cursor, limit=PAGE,
                        wait_ms=20000, encoding=encoding)
        head, tail = bytes(answer[:400]), bytes(answer[-1000:])
        found = CURSOR.search(head)
        if not found:
            raise Missing(head[:120].decode("utf-8", "replace"))
        missed += int(START.search(tail).group(1)) - cursor
        cursor = int(found.group(1))
        if EOF in tail:
            return cursor - missed, missed


def output(setting, argv, encoding):
    with Reader(setting, argv) as r:
        r.value("exec_command", workspace_id="ws", command=["/bin/true"], wait_ms=30000)
        start = time.monotonic()
        read, missed = read_all(r, r.start("/bin/sh", "-c", WRITER), encoding)
        took = time.monotonic() - start
        if read + missed != BYTES:
            raise Missing("%d bytes came" % (read + missed))
        note = "%.0f %% read, peak %d MiB" % (100 * read / BYTES, r.resident("VmHWM") // 1024)
        return {"rate": BYTES / 1e6 / took, "note": note}


def row_output(s, f):
    return "a command writes 1 GiB, a client reads it in pages of 512 KiB (MB per second)", [
        ("pipe to cat >/dev/null (floor)", lambda: pipe(s)),
        ("codespace-mcp, utf-8", lambda: output(s, s.ours(), "utf-8")),
        ("codespace-mcp, base64", lambda: output(s, s.ours(), "base64")),
        ("codespace-mcp, utf-8, through the worker", lambda: output(s, worker(s), "utf-8")),
    ]


# ---- memory ----


def below(pid):
    """Every process below, nearest first."""
    found = []
    try:
        with open("/proc/%d/task/%d/children" % (pid, pid)) as f:
            found = [int(x) for x in f.read().split()]
    except OSError:
        pass
    return found + [x for child in found for x in below(child)]


def private_kib(pid):
    """What would be free again if it ended, and its name."""
    try:
        with open("/proc/%d/smaps_rollup" % pid) as f:
            kib = sum(int(x.split()[1]) for x in f if x.startswith("Private_"))
        with open("/proc/%d/comm" % pid) as f:
            return f.read().strip(), kib
    except OSError:
        return "", 0


def idle(setting, argv):
    """The server without and with many commands that sleep, and what is around each of them."""
    with Reader(setting, argv) as r:
        r.value("exec_command", workspace_id="ws", command=["/bin/true"], wait_ms=30000)
        own = set(below(r.server.pid))
        before = r.resident()
        for _ in range(IDLE):
            r.start("/bin/sleep", "600")
        after = r.resident()
        around = [private_kib(p) for p in below(r.server.pid) if p not in own]
        extra = sum(kib for name, kib in around if name != "sleep")
        note = "%.0f KiB a command in the runner, %.0f KiB around it (%d processes)" % (
            (after - before) / IDLE, extra / IDLE, len(around) / IDLE)
        return {"kib": (before, after), "note": note}


def row_idle(s, f):
    return "resident memory, before and with %d idle commands" % IDLE, [
        ("codespace-mcp", lambda: idle(s, s.ours())),
    ]


# ---- a large server ----


def row_resident(s, f):
    """Ours spawns like the first two; the last one is what a server that forks would pay."""
    runs = 100 * f
    return "start of /bin/true by a program of that size", [
        ("spawn, 10 MiB resident (floor)",
         lambda: spawn(s, ["/bin/true"], runs, "--resident", "10")),
        ("spawn, 1 GiB resident", lambda: spawn(s, ["/bin/true"], runs, "--resident", "1024")),
        ("fork, 1 GiB resident",
         lambda: spawn(s, ["/bin/true"], 20 * f, "--resident", "1024", "--fork")),
    ]


ROWS = (
    ("resident", row_resident, 2),
    ("output", row_output, 2),
    ("idle", row_idle, 1),
)
