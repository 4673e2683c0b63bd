#!/usr/bin/env python3
"""Side-by-side measurements: ours, the floor under it, and each installed peer, in one run.

    bench/run.py BUILD [--peers] [--full] [--row NAME]...

Contenders of a row take turns in short rounds, so that a busy moment of the machine hits all of
them; samples are pooled over the rounds. The floor is the least that anybody could need for the
row (a C server with a canned answer, a bare spawn, plain bubblewrap). A ratio is to the floor of
its row. Peers are npm packages in bench/peers/, which is ignored; --peers installs them. Absent
ones are shown as such, never left out. Nothing here passes or fails: figures are for reading.
"""

import argparse
import array
import glob
import importlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.realpath(__file__))
PEERS = os.path.join(HERE, "peers")
CODEX = "@openai/codex@0.171.0"
# Codex's program is a package a platform, an optional dependency under this name.
CODEX_NATIVE = {"x86_64": ("codex-linux-x64", "linux-x64"),
                "aarch64": ("codex-linux-arm64", "linux-arm64")}
PEER_PACKAGES = (
    "@modelcontextprotocol/server-everything@2026.8.31",
    "@modelcontextprotocol/server-filesystem@2026.8.31",
    "@wonderwhy-er/desktop-commander@0.2.52",
    CODEX,
    "@anthropic-ai/sandbox-runtime@0.0.78",
)
TURN_S = 180
PATH = "/usr/local/bin:/usr/bin:/bin"


class Missing(Exception):
    """The contender is not here; the text is its line in the table."""


def peer_packages():
    """Codex's native package by name: as an optional dependency npm leaves it out in silence."""
    name, version = CODEX_NATIVE.get(os.uname().machine, (None, None))
    native = ["@openai/%s@npm:%s-%s" % (name, CODEX, version)] if name else []
    return [*PEER_PACKAGES, *native]


def install_peers():
    os.makedirs(PEERS, exist_ok=True)
    npm = shutil.which("npm")
    if not npm:
        sys.exit("--peers: npm is not installed (apt-get install npm)")
    command = [npm, "install", "--prefix", PEERS, "--no-save", "--ignore-scripts", "--no-audit",
               "--no-fund", "--loglevel=error", "--include=optional", *peer_packages()]
    print("installing into bench/peers: " + ", ".join(peer_packages()), flush=True)
    subprocess.run(command, check=True, env={**os.environ, "PUPPETEER_SKIP_DOWNLOAD": "1"})


def peer(path):
    """A file of an installed peer."""
    found = os.path.join(PEERS, "node_modules", path)
    if not os.path.exists(found):
        raise Missing("not installed (--peers)")
    return found


def node():
    program = shutil.which("node")
    if not program:
        raise Missing("node is not installed")
    return os.path.realpath(program)


class Setting:
    """Everything a contender needs: programs, a scratch directory, an environment."""

    def __init__(self, options, scratch):
        self.options = options
        self.scratch = scratch
        self.ws = self.make("ws")
        self.env = {
            "PATH": PATH,
            "HOME": self.make("home"),
            "TMPDIR": self.make("tmp"),
            "LANG": "C.UTF-8",
            "CODESPACE_LINUX_SANDBOX_BIN": options.helper,
        }
        for name, size in (("1k", 1 << 10), ("1m", 1 << 20)):
            lines = ('    value[%07d] = "text"; /* x */\n' % i for i in range(size // 32))
            with open(os.path.join(self.ws, name), "w") as f:  # lines as long as those of code
                f.write("".join(lines)[:size])

    def make(self, name):
        path = os.path.join(self.scratch, name)
        os.makedirs(path)
        return path

    def tool(self, name):
        return os.path.join(self.options.tools, name)

    def run(self, program, arguments):
        """Run a measuring program: (its JSON line, its samples in ns)."""
        samples = os.path.join(self.scratch, "samples")
        command = [self.tool(program), "--samples", samples, *arguments]
        done = subprocess.run(
            command, env=self.env, capture_output=True, stdin=subprocess.DEVNULL, timeout=TURN_S,
            cwd=self.ws,
        )
        if done.returncode:
            said = " ".join(done.stderr.decode("utf-8", "replace").split())
            raise Missing("failed: " + said[-120:])
        values = array.array("Q")
        if os.path.exists(samples):
            with open(samples, "rb") as f:
                values.frombytes(f.read())
            os.unlink(samples)
        return json.loads(done.stdout), values

    # ---- servers ----

    def ours(self):
        return [self.options.server, "--workspace", "ws=" + self.ws]

    def null(self, size):
        return [self.tool("null-server"), str(size)]

    def filesystem(self):
        return [node(), peer("@modelcontextprotocol/server-filesystem/dist/index.js"), self.ws]

    def commander(self):
        return [node(), peer("@wonderwhy-er/desktop-commander/dist/index.js")]

    def codex(self):
        """The native program of bench/peers, or of tests/peers, which is the same package."""
        name, _ = CODEX_NATIVE.get(os.uname().machine, ("", ""))
        places = [os.path.join(base, "node_modules", "@openai", name, "vendor", "*", "bin", "codex")
                  for base in (PEERS, os.path.join(HERE, "../tests/peers"))]
        found = [program for place in places for program in glob.glob(place)]
        if not found:
            raise Missing("its native program is not installed (--peers)")
        link = os.path.join(self.scratch, "codex-linux-sandbox")
        if not os.path.islink(link):
            os.symlink(os.path.realpath(found[0]), link)
        return link


def params(tool, **arguments):
    return json.dumps({"name": tool, "arguments": arguments}, separators=(",", ":"))


def ours_read(name):
    return params("read", workspace_id="ws", path=name, limit=1 << 20)


def read_call(setting, name):
    """(label, argv, params) of a read of one file by each server."""
    size = os.path.getsize(os.path.join(setting.ws, name))
    path = os.path.join(setting.ws, name)
    return (
        ("null server (floor)", lambda: setting.null(size), "{}"),
        ("codespace-mcp", setting.ours, ours_read(name)),
        ("server-filesystem", setting.filesystem, params("read_text_file", path=path)),
    )


# ---- what is measured: {"ns": samples}, {"rate": calls/s} or {"kib": (before, after)}; and with
# "cpu" the time on a CPU that the server itself took for a call ----


def latency(setting, argv, call, calls, *more):
    told, ns = setting.run("load", ["--calls", str(calls), "--params", call, *more, "--", *argv])
    return {"ns": ns, "cpu": told["cpu_ns"] / calls}


def rate(setting, argv, call, calls, depth, *more):
    told, _ = setting.run("load", ["--calls", str(calls), "--depth", str(depth), "--params", call,
                                   *more, "--", *argv])
    return {"rate": calls / (told["total_ns"] / 1e9), "cpu": told["cpu_ns"] / calls}


def memory(setting, argv, call, calls):
    told, _ = setting.run(
        "load", ["--calls", str(calls), "--depth", "16", "--params", call, "--", *argv]
    )
    return {"kib": (told["rss_before_kib"], told["rss_after_kib"])}


def cold(setting, argv, starts):
    _, ns = setting.run("load", ["--cold", str(starts), "--", *argv])
    return {"ns": ns}


def spawn(setting, argv, runs, *more):
    _, ns = setting.run("spawn", ["--runs", str(runs), *more, "--", *argv])
    return {"ns": ns}


# ---- the sandbox floor: bubblewrap with the arguments that our helper gives it ----

RECORDER = """#!/usr/bin/env python3
# Stands in for bubblewrap once: writes down the arguments it was given, then becomes it. Mounts by
# descriptor are written down as mounts by path.
import json, os, sys
words = sys.argv[1:]
if "--args" in words:
    at = words.index("--args")
    fd = int(words[at + 1])
    start = os.lseek(fd, 0, os.SEEK_CUR)
    given = b""
    while chunk := os.read(fd, 65536):
        given += chunk
    os.lseek(fd, start, os.SEEK_SET)
    words[at : at + 2] = [os.fsdecode(w) for w in given.split(b"\\0")[:-1]]
    for i, word in enumerate(words):
        if word in ("--bind-fd", "--ro-bind-fd"):
            words[i] = word[:-3]
            words[i + 1] = os.readlink("/proc/self/fd/" + words[i + 1])
    with open("RECORD_TO", "w") as f:
        json.dump(words, f)
os.execv("/usr/bin/bwrap", ["bwrap"] + sys.argv[1:])
"""

# Options of bubblewrap that take a descriptor: none of them is there when it runs alone.
BY_DESCRIPTOR = {"--json-status-fd": 1, "--info-fd": 1, "--sync-fd": 1, "--block-fd": 1,
                 "--seccomp": 1, "--add-seccomp-fd": 1, "--userns-block-fd": 1, "--args": 1}


def alone(words):
    """Recorded words as a command line that needs no descriptor and runs /bin/true."""
    kept, i = [], 0
    words = words[: words.index("--")] if "--" in words else words
    while i < len(words):
        if words[i] in BY_DESCRIPTOR:
            i += 2
        elif words[i] in ("--ro-bind-data", "--bind-data", "--file"):
            if kept[-2:-1] == ["--perms"]:
                del kept[-2:]
            kept += ["--ro-bind", "/dev/null", words[i + 2]]
            i += 3
        else:
            kept.append(words[i])
            i += 1
    return kept


def write_recorder(setting, record):
    path = os.path.join(setting.scratch, "bwrap-recorder")
    with open(path, "w") as f:
        f.write(RECORDER.replace("RECORD_TO", record))
    os.chmod(path, 0o755)
    return path


def recorded_view(setting):
    """The arguments of bubblewrap for a command of ours."""
    record = os.path.join(setting.scratch, "bwrap.json")
    if not os.path.exists(record):
        helper = setting.options.helper
        env = {**setting.env, "CODESPACE_BWRAP_BIN": write_recorder(setting, record)}
        request = {
            "protocol": 1, "workspace_root": setting.ws, "command_cwd": setting.ws,
            "writable_workspace": True, "network": "restricted", "argv": ["/bin/true"],
        }
        answer = subprocess.run(
            [helper, "prepare"], input=json.dumps(request).encode(), env=env, capture_output=True,
            timeout=TURN_S,
        )
        plan = json.loads(answer.stdout or b"{}").get("plan_path")
        if not plan:
            raise Missing("the helper did not prepare: %r" % answer.stdout)
        subprocess.run([helper, "run", "--plan", plan], env=env, capture_output=True,
                       stdin=subprocess.DEVNULL, timeout=TURN_S)
    if not os.path.exists(record):
        raise Missing("the helper did not start the bubblewrap it was given")
    with open(record) as f:
        return alone(json.load(f))


def plain_bwrap(setting, runs):
    return spawn(setting, ["/usr/bin/bwrap", *recorded_view(setting), "--", "/bin/true"], runs)


def codex_helper(setting, runs):
    profile = {
        "type": "managed",
        "file_system": {
            "type": "restricted",
            "entries": [
                {"path": {"type": "special", "value": {"kind": "root"}}, "access": "read"},
                {"path": {"type": "path", "path": setting.ws}, "access": "write"},
            ],
        },
        "network": "restricted",
    }
    argv = [setting.codex(), "--sandbox-policy-cwd", setting.ws, "--permission-profile",
            json.dumps(profile), "--", "/bin/true"]
    return spawn(setting, argv, runs)


def exec_call():
    return params("exec_command", workspace_id="ws", command=["/bin/true"], wait_ms=30000)


def commander_call():
    return params("start_process", command="/bin/true", timeout_ms=5000)


# ---- rows ----


ONE_CPU = ("client and server on one CPU", ("--one-cpu",))
ANY_CPU = ("CPUs as the kernel likes", ())


def reads(name, calls, where):
    """The row of reads of one file, one at a time."""
    words, options = where
    return lambda s, f: (f"read of {name}, one call at a time, {words}", [
        (label, lambda a=argv, c=call: latency(s, a(), c, calls * f, *options))
        for label, argv, call in read_call(s, name)
    ])


def reads_in_flight(where):
    words, options = where
    return lambda s, f: (f"read of 1k, 16 calls in flight, {words}", [
        (label, lambda a=argv, c=call, n=n: rate(s, a(), c, n * f, 16, *options))
        for (label, argv, call), n in zip(read_call(s, "1k"), (20000, 20000, 1000))
    ])


def row_cold(s, f):
    return "cold start: spawn to the answer of initialize", [
        ("null server (floor)", lambda: cold(s, s.null(0), 10 * f)),
        ("codespace-mcp", lambda: cold(s, s.ours(), 10 * f)),
        ("server-filesystem", lambda: cold(s, s.filesystem(), f)),
        ("desktop-commander", lambda: cold(s, s.commander(), f)),
    ]


def row_memory(s, f):
    return "resident memory, before and after calls of read of 1 KiB", [
        (label, lambda a=argv, c=call, n=n: memory(s, a(), c, n))
        for (label, argv, call), n in zip(
            read_call(s, "1k"), (100000, 100000, 20000 if f == 1 else 100000)
        )
    ]


# name, row, rounds
ROWS = (
    ("read-1k", reads("1k", 300, ONE_CPU), 5),
    ("read-1k-two-cpus", reads("1k", 300, ANY_CPU), 5),
    ("read-1k-depth16", reads_in_flight(ONE_CPU), 3),
    ("read-1k-depth16-two-cpus", reads_in_flight(ANY_CPU), 3),
    ("read-1m", reads("1m", 15, ONE_CPU), 3),
    ("read-1m-two-cpus", reads("1m", 15, ANY_CPU), 3),
    ("cold", row_cold, 3),
    ("memory", row_memory, 1),
)


def more_rows():
    """Rows of other files: each rows_*.py beside this one has ROWS of its own."""
    sys.modules.setdefault("run", sys.modules[__name__])
    sys.path.insert(0, HERE)
    names = sorted(n[:-3] for n in os.listdir(HERE) if n.startswith("rows_") and n.endswith(".py"))
    return tuple(row for name in names for row in importlib.import_module(name).ROWS)


# ---- the table ----


def human(ns):
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if ns >= size:
            return "%.3g %s" % (ns / size, unit)
    return "%d ns" % ns


def percentile(ordered, part):
    return ordered[min(len(ordered) - 1, int(len(ordered) * part))]


class Pool:
    """What one contender did over the rounds."""

    def __init__(self):
        self.ns, self.rates, self.cpu = array.array("Q"), [], []
        self.kib, self.missing, self.note = None, None, ""

    def take(self, result):
        self.ns.extend(result.get("ns", ()))
        for values, key in ((self.rates, "rate"), (self.cpu, "cpu")):
            if key in result:
                values.append(result[key])
        self.kib = result.get("kib", self.kib)
        self.note = result.get("note", self.note)

    def middle(self):
        """The figure that ratios are made of; None when there is none."""
        if self.missing:
            return None
        values = self.rates or self.ns
        return percentile(sorted(values), 0.5) if values else None

    def figures(self):
        """median and p99 as text."""
        if self.missing:
            return self.missing, ""
        if self.kib:
            return "%.1f -> %.1f MiB" % tuple(k / 1024 for k in self.kib), self.note
        if self.rates:
            return "%.0f /s" % self.middle(), self.note
        return human(self.middle()), human(percentile(sorted(self.ns), 0.99))

    def cells(self, floor):
        mine, best = self.middle(), floor.middle()
        ratio = (best / mine if self.rates else mine / best) if mine and best else None
        return [
            *self.figures(),
            "%.2f" % ratio if ratio else "",
            human(percentile(sorted(self.cpu), 0.5)) if self.cpu and not self.missing else "",
            str(len(self.ns)) if self.ns and not self.missing else "",
        ]


def measure(contenders, rounds):
    pools = {label: Pool() for label, _ in contenders}
    for _ in range(rounds):
        for label, turn in contenders:
            if pools[label].missing:
                continue
            try:
                pools[label].take(turn())
            except Missing as reason:
                pools[label].missing = str(reason)
            except subprocess.TimeoutExpired:
                pools[label].missing = "did not end in %d s" % TURN_S
            except OSError as reason:
                pools[label].missing = str(reason)
    return pools


def show(title, pools):
    floor = next(iter(pools.values()))
    lines = [[label, *pool.cells(floor)] for label, pool in pools.items()]
    print("\n### " + title)
    header = ["contender", "median", "p99", "x floor", "server CPU", "samples"]
    widths = [max(len(line[i]) for line in [header, *lines]) for i in range(len(header))]
    for line in (header, ["-" * w for w in widths], *lines):
        print("| " + " | ".join(cell.ljust(w) for cell, w in zip(line, widths)) + " |", flush=True)


def machine():
    with open("/proc/cpuinfo") as f:
        model = next((x.split(":")[1].strip() for x in f if x.startswith("model name")), "?")
    return "%s, %d CPUs, Linux %s, load %.1f" % (
        model, os.cpu_count(), os.uname().release, os.getloadavg()[0],
    )


def main():
    rows = ROWS + more_rows()
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("build", help="a build folder")
    parser.add_argument("--peers", action="store_true", help="install the peers first (npm)")
    parser.add_argument("--full", action="store_true", help="ten times as many calls")
    parser.add_argument("--row", action="append", help="only this row: " +
                        ", ".join(name for name, _, _ in rows))
    options = parser.parse_args()
    known = [name for name, _, _ in rows]
    for name in options.row or ():
        if name not in known:
            parser.error("no row %r; there are: %s" % (name, ", ".join(known)))
    if options.peers:
        install_peers()
    build = os.path.realpath(options.build)
    options.server = os.path.join(build, "src/gateway/codespace-mcp")
    options.helper = os.path.join(build, "src/sandbox/codespace-linux-sandbox")
    options.tools = os.path.join(build, "bench")
    for program in (options.server, options.helper, os.path.join(options.tools, "load")):
        if not os.access(program, os.X_OK):
            parser.error("%s is not built" % program)
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="codespace-bench-") as scratch:
        setting = Setting(options, os.path.realpath(scratch))
        print("# " + machine())
        for name, row, rounds in rows:
            if not options.row or name in options.row:
                title, contenders = row(setting, 10 if options.full else 1)
                show(title, measure(contenders, rounds))
    print("\n# took %.0f s" % (time.monotonic() - start))
    return 0


if __name__ == "__main__":
    sys.exit(main())
