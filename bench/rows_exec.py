"""Rows about starting commands: the helper by itself, cold and warm through the server, through the
worker, many at once, and what loading the filter costs.

A warm start that follows another one directly also waits for what that one left behind (its
namespaces are taken down, a replacement is made ready); an agent thinks between two commands. So
both are measured: calls without a break, and calls with one.
"""

import os
import subprocess
import time

from rows_sandbox import bwrap_masked, bwrap_runs, helper_runs, start_runs, told_runs
from run import (Missing, TURN_S, codex_helper, commander_call, exec_call, latency, params,
                 plain_bwrap, rate, recorded_view, spawn)

EXPECT = ("--expect", "linux-sandbox")
BREAK_US = "20000"
COLD = ("/usr/bin/env", "CODESPACE_WARM=0")


def bare_true(setting):
    """A program of three instructions, where a sandbox shows it."""
    path = os.path.join(setting.ws, "bare-true")
    if not os.path.exists(path):
        with open(setting.tool("bare-true"), "rb") as source, open(path, "wb") as copy:
            copy.write(source.read())
        os.chmod(path, 0o755)
    return path


def worker(setting):
    """Our server with the commands in a worker program."""
    src = os.path.dirname(os.path.dirname(setting.options.server))
    program = os.path.join(src, "worker", "codespace-codex-runtime")
    return [*setting.ours(), "--runner", "uds", "--runtime-bin", program]


def call_of(program):
    return params("exec_command", workspace_id="ws", command=[program], wait_ms=30000)


def warm(s, program, calls, *more):
    return latency(s, s.ours(), call_of(program), calls, *EXPECT, *more)


def cold(s, calls):
    return latency(s, [*COLD, *s.ours()], exec_call(), calls, *EXPECT)


def row_helper(s, f):
    return "the helper alone: /bin/true", [
        ("plain bwrap, same view (floor)", lambda: bwrap_masked(s, 15 * f)),
        ("plain bwrap, same view but masks", lambda: bwrap_runs(s, 15 * f)),
        ("codespace-linux-sandbox run", lambda: helper_runs(s, 15 * f, "run")),
        ("codespace-linux-sandbox run, until the end is told", lambda: told_runs(s, 15 * f)),
        ("codespace-linux-sandbox prepare + run", lambda: helper_runs(s, 15 * f)),
        ("codespace-linux-sandbox start, until the end is told", lambda: start_runs(s, 15 * f)),
        ("codex helper", lambda: codex_helper(s, 5 * f)),
    ]


def row_cold(s, f):
    return "exec of /bin/true to its end, cold", [
        ("plain bwrap, same view (floor)", lambda: plain_bwrap(s, 15 * f)),
        ("codespace-mcp", lambda: cold(s, 15 * f)),
        ("codex helper", lambda: codex_helper(s, 5 * f)),
        ("desktop-commander, start_process (no sandbox)",
         lambda: latency(s, s.commander(), commander_call(), 5 * f, "--warm", "2")),
    ]


def row_warm(s, f):
    return "exec of /bin/true to its end, warm", [
        ("bare posix_spawn, no sandbox (floor)", lambda: spawn(s, ["/bin/true"], 30 * f)),
        ("codespace-mcp", lambda: warm(s, "/bin/true", 30 * f)),
        ("codespace-mcp, 20 ms between calls",
         lambda: warm(s, "/bin/true", 30 * f, "--break-us", BREAK_US)),
        ("codespace-mcp, through the worker",
         lambda: latency(s, worker(s), exec_call(), 30 * f, *EXPECT)),
        ("codespace-mcp, through the worker, 20 ms between calls",
         lambda: latency(s, worker(s), exec_call(), 30 * f, *EXPECT, "--break-us", BREAK_US)),
    ]


def row_bare(s, f):
    return "exec of a program of three instructions to its end, warm", [
        ("bare posix_spawn, no sandbox (floor)", lambda: spawn(s, [bare_true(s)], 30 * f)),
        ("codespace-mcp", lambda: warm(s, bare_true(s), 30 * f)),
        ("codespace-mcp, 20 ms between calls",
         lambda: warm(s, bare_true(s), 30 * f, "--break-us", BREAK_US)),
    ]


def at_once(s, argv, runs, n):
    """`n` spawners side by side; commands per second of all."""
    each = max(1, runs // n)
    command = [s.tool("spawn"), "--runs", str(each), "--warm", "0", "--", *argv]
    start = time.monotonic()
    spawners = [subprocess.Popen(command, env=s.env, stdout=subprocess.DEVNULL,
                                 stdin=subprocess.DEVNULL, cwd=s.ws) for _ in range(n)]
    codes = [spawner.wait(TURN_S) for spawner in spawners]
    took = time.monotonic() - start
    if any(codes):
        raise Missing("%d of %d spawners failed" % (sum(map(bool, codes)), n))
    return {"rate": each * n / took}


def rate_row(n):
    def row(s, f):
        runs = 400 * f
        words = ["/usr/bin/bwrap", *recorded_view(s), "--", "/bin/true"]
        return "commands per second, %d at once (/bin/true)" % n, [
            ("bare posix_spawn (floor)", lambda: at_once(s, ["/bin/true"], runs, n)),
            ("codespace-mcp, warm",
             lambda: rate(s, s.ours(), exec_call(), runs, n, *EXPECT)),
            ("plain bwrap, same view", lambda: at_once(s, words, runs // 4, n)),
        ]
    return row


def filter_load(s, runs, *more):
    _, ns = s.run("filter-load", ["--runs", str(runs), *more])
    return {"ns": ns}


def row_filter(s, f):
    return "loading the system call filter", [
        ("one instruction (floor)", lambda: filter_load(s, 100 * f, "--floor")),
        ("the command's filter", lambda: filter_load(s, 100 * f)),
    ]


ROWS = (
    ("helper", row_helper, 4),
    ("exec-cold", row_cold, 4),
    ("exec-warm", row_warm, 4),
    ("exec-bare", row_bare, 4),
    *(("rate-%d" % n, rate_row(n), 3) for n in (1, 4, 16, 64)),
    ("filter", row_filter, 3),
)
