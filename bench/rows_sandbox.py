"""Rows about the command sandbox: busy hosts, many masks, many commands at once, memory.

A plan runs once, so these rows time a program by themselves: everything that a command costs, from
the start of the first program to the end of the last, prepare included. Host mounts are made in a
mount namespace of our own, which needs root.
"""

import array
import concurrent.futures
import ctypes
import json
import os
import shutil
import socket
import subprocess
import time

from run import (Missing, TURN_S, codex_helper, exec_call, node, peer, recorded_view)

BURST = 16
CLONE_NEWNS = 0x20000
NOTE_FAILED = "%d of %d failed"


def finish(argv, env, cwd):
    """Start and wait for the end, in ns. A failure must not look fast."""
    quiet = [(os.POSIX_SPAWN_OPEN, fd, "/dev/null", os.O_RDWR, 0) for fd in range(3)]
    start = time.monotonic_ns()
    pid = os.posix_spawn(argv[0], argv, env, file_actions=quiet)
    _, status = os.waitpid(pid, 0)
    took = time.monotonic_ns() - start
    if status:
        raise Missing("%s ended with status %#x" % (os.path.basename(argv[0]), status))
    return took


def request(setting, **options):
    return json.dumps({
        "protocol": 1, "workspace_root": setting.ws, "command_cwd": setting.ws,
        "writable_workspace": True, "network": "restricted", "argv": ["/bin/true"], **options,
    }).encode()


def prepared(setting, text):
    done = subprocess.run([setting.options.helper, "prepare"], input=text, env=setting.env,
                          capture_output=True, timeout=TURN_S, check=False)
    answer = json.loads(done.stdout or b"{}")
    if "plan_path" not in answer:
        raise Missing("the helper did not prepare: %s" % answer.get("message", done.stderr))
    return answer["plan_path"]


def helper_runs(setting, runs, what="both", **options):
    """`run` of plans that were prepared before ("run"), or prepare as well ("both")."""
    text = request(setting, **options)
    ns = array.array("Q")
    for _ in range(runs):
        start = time.monotonic_ns()
        plan = prepared(setting, text)
        before = time.monotonic_ns() - start
        took = finish([setting.options.helper, "run", "--plan", plan], setting.env, setting.ws)
        ns.append(took + (before if what == "both" else 0))
    return {"ns": ns}


def told(setting, words):
    """As a runner does it: until the end of the command is told, in ns. What is left of bubblewrap
    ends beside the next thing."""
    ours, theirs = socket.socketpair()
    os.set_inheritable(theirs.fileno(), True)
    argv = [setting.options.helper, *words, "--control-fd", str(theirs.fileno())]
    start = time.monotonic_ns()
    pid = os.posix_spawn(argv[0], argv, setting.env, setsid=True)
    theirs.close()
    lines = b""
    while b'"event":"exit"' not in lines:
        part = ours.recv(4096)
        if not part:
            raise Missing("no verdict: " + lines.decode())
        lines += part
    took = time.monotonic_ns() - start
    ours.close()
    os.waitpid(pid, 0)
    return took


def told_runs(setting, runs):
    text = request(setting)
    return {"ns": array.array("Q", (told(setting, ["run", "--plan", prepared(setting, text)])
                                    for _ in range(runs)))}


def started(setting, text):
    fd = os.memfd_create("request")
    os.pwrite(fd, text, 0)
    os.set_inheritable(fd, True)
    try:
        return told(setting, ["start", "--request-fd", str(fd)])
    finally:
        os.close(fd)


def start_runs(setting, runs, **options):
    """`start`: all that a runner's cold command costs but the runner."""
    text = request(setting, **options)
    return {"ns": array.array("Q", (started(setting, text) for _ in range(runs)))}


def bwrap_runs(setting, runs, extra=()):
    words = ["/usr/bin/bwrap", *recorded_view(setting), *extra, "--", "/bin/true"]
    return {"ns": array.array("Q", (finish(words, setting.env, setting.ws) for _ in range(runs)))}


def mount_points(words, setting):
    """Where something is mounted for a command that `words` starts."""
    done = subprocess.run(words, env=setting.env, cwd=setting.ws, capture_output=True, check=False,
                          stdin=subprocess.DEVNULL, timeout=TURN_S)
    return [line.split()[4] for line in done.stdout.decode().splitlines()]


def masks_of(setting):
    """Our helper lays its masks itself, so they are not among bubblewrap's recorded arguments: the
    words with which bubblewrap would lay the same."""
    table = ["/bin/cat", "/proc/self/mountinfo"]
    plain = mount_points(["/usr/bin/bwrap", *recorded_view(setting), "--", *table], setting)
    plan = prepared(setting, request(setting, argv=table))
    ours = mount_points([setting.options.helper, "run", "--plan", plan], setting)
    words = []
    for path in sorted(set(ours) - set(plain)):
        if path.startswith("/proc/"):
            words += ["--ro-bind", path, path]
        elif os.path.isdir(path):
            words += ["--size", "65536", "--tmpfs", path, "--remount-ro", path]
        else:
            words += ["--ro-bind", "/dev/null", path]
    if not words:
        raise Missing("our view has no masks")
    return words


def bwrap_masked(setting, runs):
    return bwrap_runs(setting, runs, masks_of(setting))


# ---- a busy host ----


def among(setting, mounts, measure):
    """measure(), where so many more file systems are mounted."""
    if os.geteuid() != 0:
        raise Missing("needs root, to mount %d file systems" % mounts)
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            if ctypes.CDLL(None).unshare(CLONE_NEWNS) != 0:
                raise OSError("unshare")
            place = os.path.join(setting.scratch, "mounts")
            for i in range(mounts):
                os.makedirs("%s/%d" % (place, i), exist_ok=True)
            script = "mount --make-rprivate /; for i in $(seq 0 %d); do mount -t tmpfs x %s/$i || " \
                     "exit 1; done" % (mounts - 1, place)
            subprocess.run(["sh", "-c", script], check=True, capture_output=True)
            try:
                answer = {"ns": list(measure()["ns"])}
            except Missing as reason:
                answer = {"missing": str(reason)}
            with os.fdopen(writer, "w") as out:
                json.dump(answer, out)
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as told:
        text = told.read()
    os.waitpid(pid, 0)
    answer = json.loads(text or '{"missing": "the mounts could not be made"}')
    if "missing" in answer:
        raise Missing(answer["missing"])
    return {"ns": array.array("Q", answer["ns"])}


def own_view(setting, runs):
    argv = [setting.tool("own-view"), setting.ws]
    return {"ns": array.array("Q", (finish(argv, setting.env, setting.ws) for _ in range(runs)))}


def mounts_row(mounts):
    def row(s, f):
        return "/bin/true on a host with %d more mounts" % mounts, [
            ("own mounts, same walls but masks (floor)",
             lambda: among(s, mounts, lambda: own_view(s, 10 * f))),
            ("plain bwrap, same view but masks",
             lambda: among(s, mounts, lambda: bwrap_runs(s, 10 * f))),
            ("plain bwrap, same view",
             lambda: among(s, mounts, lambda: bwrap_masked(s, 10 * f))),
            ("codespace-linux-sandbox, run",
             lambda: among(s, mounts, lambda: helper_runs(s, 10 * f, "run"))),
            ("codespace-linux-sandbox, run, until the end is told",
             lambda: among(s, mounts, lambda: told_runs(s, 10 * f))),
            ("codespace-linux-sandbox, prepare and run",
             lambda: among(s, mounts, lambda: helper_runs(s, 10 * f))),
            ("codespace-linux-sandbox, start, until the end is told",
             lambda: among(s, mounts, lambda: start_runs(s, 10 * f))),
            ("codex helper", lambda: among(s, mounts, lambda: codex_helper(s, 3 * f))),
        ]
    return row


# ---- masks ----


def masked(setting, n):
    """So many files of the workspace that are to be hidden."""
    folder = os.path.join(setting.ws, "masked%d" % n)
    if not os.path.isdir(folder):
        os.makedirs(folder)
        for i in range(n):
            with open("%s/%d" % (folder, i), "w", encoding="utf-8") as f:
                f.write("words")
    return ["%s/%d" % (folder, i) for i in range(n)]


def masks_row(n):
    def row(s, f):
        paths = masked(s, n)
        plain = [word for path in paths for word in ("--ro-bind", "/dev/null", path)]
        return "/bin/true with %d hidden files" % n, [
            ("plain bwrap, an empty file over each (floor)", lambda: bwrap_runs(s, 8 * f, plain)),
            ("codespace-linux-sandbox, run", lambda: helper_runs(s, 8 * f, "run", hidden=paths)),
            ("codespace-linux-sandbox, prepare and run",
             lambda: helper_runs(s, 8 * f, hidden=paths)),
            ("codespace-linux-sandbox, start, until the end is told",
             lambda: start_runs(s, 8 * f, hidden=paths)),
        ]
    return row


# ---- many at once ----


def burst(runs, once):
    """So many runs, BURST at a time: how many failed, and the rate."""
    start = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(BURST) as pool:
        failed = sum(pool.map(lambda _: not once(), range(runs)))
    return {"rate": runs / (time.monotonic() - start), "note": NOTE_FAILED % (failed, runs)}


def ends_well(argv, setting):
    try:
        finish(argv, setting.env, setting.ws)
        return True
    except Missing:
        return False


def helper_once(setting, text):
    try:
        plan = prepared(setting, text)
    except (Missing, json.JSONDecodeError):
        return False
    return ends_well([setting.options.helper, "run", "--plan", plan], setting)


SRT = """
import { SandboxManager } from '%(package)s/dist/index.js';
import { spawn } from 'node:child_process';
await SandboxManager.initialize({ network: { allowedDomains: [], deniedDomains: [] },
  filesystem: { denyRead: [], allowWrite: [%(ws)s], denyWrite: [] } });
const once = () => new Promise(async (done) => {
  try {
    const words = await SandboxManager.wrapWithSandbox('/bin/true');
    const child = spawn('/bin/sh', ['-c', words], { cwd: %(ws)s, stdio: 'ignore' });
    child.on('exit', (code) => done(code === 0));
    child.on('error', () => done(false));
  } catch { done(false); }
});
let left = %(runs)d, failed = 0;
const start = process.hrtime.bigint();
await Promise.all(Array.from({ length: %(burst)d }, async () => {
  while (left-- > 0) if (!(await once())) failed++;
}));
const seconds = Number(process.hrtime.bigint() - start) / 1e9;
console.log(JSON.stringify({ failed, seconds }));
await SandboxManager.reset();
process.exit(0);
"""


def srt_burst(setting, runs):
    package = peer("@anthropic-ai/sandbox-runtime")
    if not shutil.which("socat"):
        raise Missing("it needs socat, which is not installed")
    script = os.path.join(setting.scratch, "srt.mjs")
    with open(script, "w", encoding="utf-8") as f:
        f.write(SRT % {"package": package, "ws": json.dumps(setting.ws), "runs": runs,
                       "burst": BURST})
    done = subprocess.run([node(), script], env=setting.env, cwd=setting.ws, capture_output=True,
                          stdin=subprocess.DEVNULL, timeout=TURN_S, check=False)
    lines = [x for x in done.stdout.decode().splitlines() if x.startswith("{")]
    if not lines:
        raise Missing("failed: " + " ".join(done.stderr.decode().split())[-120:])
    told = json.loads(lines[-1])
    return {"rate": runs / told["seconds"], "note": NOTE_FAILED % (told["failed"], runs)}


def server_burst(setting, runs):
    """exec_command, BURST in flight; one that fails ends the measuring program."""
    told, _ = setting.run("load", ["--calls", str(runs), "--depth", str(BURST), "--expect",
                                   "linux-sandbox", "--params", exec_call(), "--",
                                   *setting.ours()])
    return {"rate": runs / (told["total_ns"] / 1e9), "note": NOTE_FAILED % (0, runs)}


def row_burst(s, f):
    words = ["/usr/bin/bwrap", *recorded_view(s), "--", "/bin/true"]
    return "1,000 runs of /bin/true in one workspace, %d at once" % BURST, [
        ("plain bwrap, same view (floor)",
         lambda: burst(1000, lambda: ends_well(words, s))),
        ("codespace-mcp, exec_command", lambda: server_burst(s, 1000)),
        ("codespace-linux-sandbox, prepare and run",
         lambda: burst(1000, lambda: helper_once(s, request(s)))),
        ("sandbox-runtime, as a library", lambda: srt_burst(s, 1000)),
    ]


# ---- memory ----


def pss_kib(pid):
    with open("/proc/%d/smaps_rollup" % pid, encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("Pss:"))


def descendants(pid):
    found = [pid]
    for at in found:
        try:
            for task in os.listdir("/proc/%d/task" % at):
                with open("/proc/%d/task/%s/children" % (at, task), encoding="ascii") as f:
                    found += [int(word) for word in f.read().split()]
        except OSError:
            pass
    return found


def is_command(pid):
    try:
        with open("/proc/%d/cmdline" % pid, "rb") as f:
            return f.read() == b"sleep\x0030\0"
    except OSError:
        return False


def around(setting, argv):
    """Memory of everything that stands around a command while it runs."""
    process = subprocess.Popen(argv, env=setting.env, cwd=setting.ws, stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               start_new_session=True)
    try:
        deadline = time.monotonic() + 20
        while not any(is_command(p) for p in descendants(process.pid)):
            if process.poll() is not None or time.monotonic() > deadline:
                raise Missing("its command did not start")
            time.sleep(0.01)
        kib = [pss_kib(p) for p in descendants(process.pid) if not is_command(p)]
        return {"note": "in %d processes" % len(kib), "kib": (0, sum(kib))}
    finally:
        for pid in reversed(descendants(process.pid)):
            try:
                os.kill(pid, 9)
            except ProcessLookupError:
                pass
        process.wait()


def helper_around(setting):
    plan = prepared(setting, request(setting, argv=["sleep", "30"]))
    return around(setting, [setting.options.helper, "run", "--plan", plan])


def codex_around(setting):
    profile = {"type": "managed", "network": "restricted", "file_system": {
        "type": "restricted", "entries": [
            {"path": {"type": "special", "value": {"kind": "root"}}, "access": "read"}]}}
    return around(setting, [setting.codex(), "--sandbox-policy-cwd", setting.ws,
                            "--permission-profile", json.dumps(profile), "--", "sleep", "30"])


def row_around(s, f):
    words = ["/usr/bin/bwrap", *recorded_view(s), "--", "sleep", "30"]
    return "memory (proportional set) around a command that runs", [
        ("plain bwrap, same view (floor)", lambda: around(s, words)),
        ("codespace-linux-sandbox, run", lambda: helper_around(s)),
        ("codex helper", lambda: codex_around(s)),
    ]


ROWS = (
    ("mounts-100", mounts_row(100), 3),
    ("mounts-500", mounts_row(500), 3),
    ("masks-10", masks_row(10), 3),
    ("masks-100", masks_row(100), 3),
    ("masks-1000", masks_row(1000), 3),
    ("burst", row_burst, 1),
    ("around", row_around, 1),
)
