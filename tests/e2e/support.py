"""What every end-to-end test stands on: a workspace of its own, servers, and a clean end.

Theory. A test case makes a directory of its own with a workspace, a home and a temporary directory
for the server. Servers are started through start(), and after the test each must exit with 0 on
EOF, must have written nothing but protocol to stdout, must have left its temporary directory empty,
and no process at all: this process is a subreaper, so whatever outlives a server becomes a child
here and is found. Those checks run after every test, whatever it was about.

The programs come from run.py (or the two variables below, for `python3 -m unittest`).
"""

import ctypes
import functools
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest
import uuid

import mcp_client
import schema
from mcp_client import Client, RpcError, ToolError  # noqa: F401 (used by the test files)

SERVER = os.environ.get("CODESPACE_TEST_SERVER", "")
HELPER = os.environ.get("CODESPACE_TEST_HELPER", "")

WAIT_MS = 60000
GONE_S = 60.0
PR_SET_CHILD_SUBREAPER = 36

LOG_LINE = re.compile(r"\d{4}-\d\d-\d\dT[0-9:.]+Z (error|warn|info|debug) codespace-mcp: .")

TOOLS = (
    "workspace_info",
    "read",
    "find",
    "search",
    "apply_patch",
    "operation_status",
    "list_operations",
    "revert_operation",
    "exec_command",
    "write_stdin",
    "read_process",
    "process_status",
    "process_resize",
    "terminate_process",
    "signal_process",
    "list_processes",
    "approval_create",
    "approval_resolve",
    "operation_resume",
    "work_open",
    "steer_status",
    "steer_claim_next",
    "steer_complete",
    "work_finish",
)


def version(data):
    """How the server names the content of a file."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


def patch_text(*lines):
    """A V4A patch from its body lines."""
    return "\n".join(("*** Begin Patch",) + lines + ("*** End Patch",)) + "\n"


def must_not_skip():
    return bool(os.environ.get("CI")) or os.environ.get("CODESPACE_REQUIRE_LINUX_SANDBOX") == "1"


@functools.lru_cache(maxsize=None)
def sandbox_problem():
    """Why commands cannot be sandboxed on this machine; "" when they can."""
    if not os.access(HELPER, os.X_OK):
        return "no helper program at %r" % HELPER
    probe = subprocess.run(
        [HELPER, "probe", "--json"], stdin=subprocess.DEVNULL, capture_output=True, timeout=60
    )
    if probe.returncode == 0:
        return ""
    return "helper probe failed: %s" % (probe.stdout + probe.stderr).decode("utf-8", "replace")


def needs_sandbox(test):
    """Skip where the machine has no sandbox; a failure where that is not acceptable."""

    @functools.wraps(test)
    def wrapper(self, *args):
        problem = sandbox_problem()
        if problem and must_not_skip():
            self.fail(problem)
        if problem:
            self.skipTest(problem)
        return test(self, *args)

    return wrapper


def processes():
    """(pid, parent, state, command line) of every process we can see."""
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open("/proc/%s/stat" % name, "rb") as f:
                stat = f.read()
            with open("/proc/%s/cmdline" % name, "rb") as f:
                command = f.read().replace(b"\0", b" ").decode("utf-8", "replace").strip()
        except (FileNotFoundError, ProcessLookupError):
            continue
        fields = stat[stat.rindex(b")") + 2 :].split()
        yield int(name), int(fields[1]), fields[0].decode(), command


def running(marker):
    """Command lines of live processes that contain `marker`."""
    return [c for pid, _, state, c in processes() if marker in c and state not in "ZX"]


def poll(condition, seconds=GONE_S):
    """Wait for a condition that has no event to wait for. The last value."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value or time.monotonic() > deadline:
            return value
        time.sleep(0.01)


def own_children():
    """Live children of this process; reaps the dead ones that nobody else waits for."""
    live = []
    for pid, parent, state, command in processes():
        if parent != os.getpid():
            continue
        if state == "Z":
            try:
                os.waitpid(pid, os.WNOHANG)
            except ChildProcessError:
                pass
        else:
            live.append((pid, command))
    return live


def memory_kib(pid, field="VmRSS"):
    with open("/proc/%d/status" % pid) as f:
        for line in f:
            if line.startswith(field + ":"):
                return int(line.split()[1])
    raise AssertionError("no %s for %d" % (field, pid))


class CheckedClient(Client):
    """Checks every tool answer against the output schema that the server published."""

    schemas = None

    def load_schemas(self):
        tools = self.request("tools/list")["tools"]
        self.schemas = {t["name"]: t.get("outputSchema") for t in tools}

    def call(self, tool, seconds=mcp_client.ANSWER_S, **arguments):
        answer = super().call(tool, seconds, **arguments)
        if self.schemas is None:
            self.load_schemas()
        wanted = self.schemas.get(tool)
        wrong = list(schema.problems(wanted, answer)) if wanted else []
        if wrong:
            raise AssertionError("%s: %s" % (tool, "; ".join(wrong)))
        return answer


class Case(unittest.TestCase):
    """A directory, servers, and the checks that follow every test."""

    def setUp(self):
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self.dir = os.path.realpath(tempfile.mkdtemp(prefix="codespace-e2e-"))
        self.addCleanup(shutil.rmtree, self.dir)
        self.addCleanup(self.check_nothing_left)  # what outlives a killed server clears up, too
        self.addCleanup(self.check_nothing_runs)
        self.ws = self.make_dir("ws")
        self.home = self.make_dir("home")
        self.tmp = self.make_dir("tmp")

    # ---- files ----

    def make_dir(self, name):
        path = os.path.join(self.dir, name)
        os.makedirs(path)
        return path

    def path(self, name):
        return os.path.join(self.ws, name)

    def write(self, name, content, mode=None):
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        data = content.encode() if isinstance(content, str) else content
        with open(path, "wb") as f:
            f.write(data)
        if mode is not None:
            os.chmod(path, mode)
        return path

    def bytes_of(self, name):
        with open(self.path(name), "rb") as f:
            return f.read()

    def config(self, document):
        """A registry file; returns its path."""
        path = os.path.join(self.dir, "config-%s.json" % uuid.uuid4().hex[:8])
        with open(path, "w") as f:
            if isinstance(document, str):
                f.write(document)
            else:
                json.dump(document, f)
        return path

    # ---- servers ----

    def environment(self, **more):
        env = {
            "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
            "HOME": self.home,
            "LANG": "C.UTF-8",
            "TMPDIR": self.tmp,
            "CODESPACE_LINUX_SANDBOX_BIN": HELPER,
        }
        for name in (
            "ASAN_OPTIONS",
            "UBSAN_OPTIONS",
            "LSAN_OPTIONS",
            "CODESPACE_RUNNER",
            "CODESPACE_RUNTIME_BIN",
        ):
            if name in os.environ:
                env[name] = os.environ[name]
        env.update(more)
        return {k: v for k, v in env.items() if v is not None}

    def launch(self, *arguments, env=None):
        """A server that nobody has talked to yet."""
        client = CheckedClient(
            [SERVER, *arguments], env=self.environment(**(env or {})), cwd=self.dir
        )
        self.addCleanup(self.stop, client)
        return client

    def start(self, *arguments, env=None, version=mcp_client.LEGACY_VERSIONS[0]):
        """An initialized server; without arguments it serves self.ws as `ws`."""
        client = self.launch(*(arguments or ("--workspace", "ws=" + self.ws)), env=env)
        client.initialize(version)
        return client

    def stop(self, client):
        if client.process.returncode is None:
            status = client.close()
            self.assertEqual(status, 0, "exit status; stderr: %s" % client.stderr_lines)
        self.assertEqual(client.junk, [], "bytes on stdout that are not the protocol")
        strange = [line for line in client.stderr_lines if not LOG_LINE.match(line)]
        self.assertEqual(strange, [], "lines on stderr that are not the server's log")

    def refused(self, *arguments, env=None):
        """Run a server that must not start: (exit status, stderr)."""
        done = subprocess.run(
            [SERVER, *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=self.environment(**(env or {})),
            cwd=self.dir,
            timeout=60,
        )
        stderr = done.stderr.decode("utf-8", "replace")
        self.assertEqual(done.stdout, b"", "stdout of a server that did not start")
        self.assertGreater(done.returncode, 0, "it started, or died of a signal: " + stderr)
        return done.returncode, stderr

    # ---- tools ----

    def run_command(self, client, *argv, **arguments):
        """exec_command and its end, in one call."""
        arguments.setdefault("workspace_id", "ws")
        arguments.setdefault("wait_ms", WAIT_MS)
        seconds = max(mcp_client.ANSWER_S, arguments["wait_ms"] / 1000 + 30)
        return client.call("exec_command", seconds, command=list(argv), **arguments)

    def shell(self, client, script, **arguments):
        return self.run_command(client, "/bin/sh", "-c", script, **arguments)

    def ready(self, client, process_id, text, **arguments):
        """Read a process until its output contains `text`; returns (output, cursor)."""
        output, cursor = "", 0
        while text not in output:
            page = client.call(
                "read_process", process_id=process_id, cursor=cursor, wait_ms=WAIT_MS, **arguments
            )
            output += page["chunk"]
            cursor = page["cursor"]
            if page["eof"] and text not in output:
                self.fail("%r never came: %r, %r" % (text, output, page))
        return output, cursor

    def ended(self, client, process_id):
        """Wait for the end of a process; returns process_status."""
        cursor = 0
        while True:
            page = client.call(
                "read_process", process_id=process_id, cursor=cursor, wait_ms=WAIT_MS
            )
            cursor = page["cursor"]
            if page["eof"]:
                break
        return poll(
            lambda: (s := client.call("process_status", process_id=process_id))
            and s["state"] == "exited"
            and s
        )

    def fails(self, code, client, tool, **arguments):
        """The call must end in a tool error of that code (or one of them); returns the error."""
        with self.assertRaises(ToolError) as caught:
            client.call(tool, **arguments)
        error = caught.exception
        codes = code if isinstance(code, tuple) else (code,)
        self.assertIn(error.code, codes, error.message)
        self.assertGreater(len(error.message), 10, "a message that tells nothing")
        self.assertNotIn("structuredContent", error.result)
        return error

    def marker(self):
        """Seconds for `sleep` that no other process on this machine asks for."""
        return "86400.%d" % (uuid.uuid4().int % 10**12)

    def assert_gone(self, marker):
        self.assertTrue(
            poll(lambda: not running(marker)), "still running: %s" % running(marker)
        )

    # ---- afterwards ----

    def check_nothing_runs(self):
        if not poll(lambda: not own_children()):
            left = own_children()
            for pid, _ in left:
                os.kill(pid, signal.SIGKILL)
            self.fail("left running: %s" % left)

    def check_nothing_left(self):
        left = os.listdir(self.tmp)
        self.assertEqual(left, [], "left in the server's temporary directory")


class FileCase(Case):
    def setUp(self):
        super().setUp()
        self.client = self.start()

    def read(self, path, **arguments):
        return self.client.call("read", workspace_id="ws", path=path, **arguments)

    def patch(self, *lines, **arguments):
        return self.client.call(
            "apply_patch", workspace_id="ws", patch=patch_text(*lines), **arguments
        )

    def patch_fails(self, code, *lines, **arguments):
        return self.fails(
            code, self.client, "apply_patch", workspace_id="ws", patch=patch_text(*lines),
            **arguments
        )

    def outside(self, name="secret.txt", content="outside\n"):
        path = os.path.join(self.dir, name)
        with open(path, "w") as f:
            f.write(content)
        return path


class ProcessCase(Case):
    def setUp(self):
        super().setUp()
        self.client = self.start()

    def exec(self, *command, **arguments):
        return self.client.call(
            "exec_command", workspace_id="ws", command=list(command), **arguments
        )

    def sh(self, script, **arguments):
        return self.shell(self.client, script, **arguments)

    def begin(self, script, **arguments):
        """Start a script; returns its process id."""
        return self.exec("/bin/sh", "-c", script, **arguments)["process_id"]

    def call(self, tool, process_id, **arguments):
        return self.client.call(tool, process_id=process_id, **arguments)

    def assert_exited(self, done, code=0):
        self.assertEqual(done["state"], "exited", done)
        self.assertEqual(done.get("termination"), "exited", done)
        self.assertEqual(done.get("exit_code"), code, done)
        self.assertNotIn("signal", done)
