#!/usr/bin/env python3
"""Run a real MCP client against given programs and say what became of each step.

    run.py sdk|inspector|era --server PATH --helper PATH

The clients are npm packages of exact versions (package.json, package-lock.json), installed here
into node_modules/, which is ignored. Where npm or the packages cannot be had, the test is skipped
with the reason; with CI set that is a failure, because there it must be possible.
"""

import argparse
import contextlib
import fcntl
import hashlib
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading

HERE = os.path.dirname(os.path.realpath(__file__))
CHECKOUT = os.path.dirname(os.path.dirname(HERE))
MODULES = os.path.join(HERE, "node_modules")
NODE_FLOOR = (22, 19)
INSTALL_S = 600
CLIENT_S = 900
START_S = 20
EXIT_S = 20
LISTENING = re.compile(r"listening on (http://\S+)")
SKIPPED = 77  # as meson understands it


def use_folder(folder):
    """Install and look for the packages of another folder than this one."""
    global HERE, MODULES
    HERE = folder
    MODULES = os.path.join(folder, "node_modules")


class Unavailable(Exception):
    """The clients cannot be had here; the text says why."""


def lock_digest():
    with open(os.path.join(HERE, "package-lock.json"), "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()


@contextlib.contextmanager
def one_at_a_time():
    """Two builds may be tested at once; they share the folder."""
    with open(os.path.join(HERE, "package-lock.json")) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def install():
    """Install the locked packages unless they are there already."""
    stamp = os.path.join(MODULES, ".installed-lock")
    if os.path.exists(stamp):
        with open(stamp) as f:
            if f.read() == lock_digest():
                return
    npm = shutil.which("npm")
    if not npm:
        raise Unavailable("npm is not installed (apt-get install npm)")
    command = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    try:
        done = subprocess.run(
            command, cwd=HERE, capture_output=True, timeout=INSTALL_S, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired:
        raise Unavailable("npm ci did not end in %d s" % INSTALL_S) from None
    if done.returncode:
        tail = done.stderr.decode("utf-8", "replace").strip().splitlines()[:4]
        raise Unavailable("npm ci failed: " + "; ".join(tail))
    with open(stamp, "w") as f:
        f.write(lock_digest())


def node_version(program):
    out = subprocess.run([program, "--version"], capture_output=True, check=True).stdout.decode()
    return tuple(int(part) for part in out.strip().lstrip("v").split(".")[:2])


def find_node(floor=NODE_FLOOR):
    """A node that is new enough: the one of the packages, else the system's."""
    machine = {"x86_64": "x64", "aarch64": "arm64"}.get(platform.machine(), "none")
    carried = os.path.join(MODULES, "node-linux-" + machine, "bin", "node")
    for program in (carried, shutil.which("node")):
        if program and os.access(program, os.X_OK) and node_version(program) >= floor:
            return program
    raise Unavailable("no node of version %d.%d or newer" % floor)


def git_names(*what):
    listed = subprocess.run(
        ["git", "-C", CHECKOUT, "ls-files", "-z", *what], capture_output=True, check=True
    )
    return [name for name in listed.stdout.decode().split("\0") if name]


def clone_into(target):
    """A clone of this repository, as a user would have, with what is not committed yet laid over
    it; a copy of the files where this is no git work tree."""
    inside = subprocess.run(
        ["git", "-C", CHECKOUT, "rev-parse", "--verify", "-q", "HEAD"], capture_output=True
    )
    if inside.returncode != 0:
        skip = shutil.ignore_patterns("build*", "node_modules", "peers", "__pycache__", ".git")
        shutil.copytree(CHECKOUT, target, symlinks=True, ignore=skip)
        return
    subprocess.run(
        ["git", "clone", "-q", "--no-hardlinks", CHECKOUT, target],
        check=True, stdin=subprocess.DEVNULL,
    )
    for name in git_names("--modified", "--others", "--exclude-standard"):
        source, copy = os.path.join(CHECKOUT, name), os.path.join(target, name)
        if os.path.lexists(source):
            os.makedirs(os.path.dirname(copy), exist_ok=True)
            shutil.copy2(source, copy, follow_symlinks=False)
        elif os.path.lexists(copy):
            os.unlink(copy)


def environment(options, scratch):
    home = os.path.join(scratch, "home")
    os.makedirs(home)
    return {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": home,
        "TMPDIR": scratch,
        "LANG": "C.UTF-8",
        "CODESPACE_LINUX_SANDBOX_BIN": os.path.realpath(options.helper),
        **{k: v for k, v in os.environ.items() if k.endswith("SAN_OPTIONS")},
    }


def run_sdk(node, options, scratch):
    clone = os.path.join(scratch, "clone")
    clone_into(clone)
    script = os.path.join(HERE, "sdk.mjs")
    done = subprocess.run(
        [node, script, os.path.realpath(options.server), clone],
        env=environment(options, scratch), stdin=subprocess.DEVNULL, timeout=CLIENT_S,
    )
    return done.returncode


class HttpServer:
    """A server that listens on a free port; the context has its `url`."""

    def __init__(self, argv, env=None):
        self.argv, self.env = argv, env
        self.lines = []
        self.url = None
        self.ready = threading.Event()

    def _read(self):
        for line in self.process.stderr:
            text = line.decode("utf-8", "replace").rstrip()
            self.lines.append(text)
            found = LISTENING.search(text)
            if found:
                self.url = found.group(1)
                self.ready.set()
        self.ready.set()

    def __enter__(self):
        self.process = subprocess.Popen(
            self.argv, env=self.env, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()
        self.ready.wait(START_S)
        if self.url is None:
            raise RuntimeError("the server does not listen: " + " ".join(self.lines))
        return self

    def __exit__(self, *exc):
        self.process.send_signal(signal.SIGTERM)
        self.status = self.process.wait(EXIT_S)
        self.thread.join(EXIT_S)


def http_server(options, env, root):
    return HttpServer(
        [os.path.realpath(options.server), "--http", "--port", "0", "--log-level", "info",
         "--workspace", "ws=" + root], env)


def make_workspace(scratch):
    root = os.path.join(scratch, "ws")
    os.makedirs(root)
    with open(os.path.join(root, "a.txt"), "w") as f:
        f.write("alpha\n")
    return root


def run_era(node, options, scratch):
    env = environment(options, scratch)
    root = make_workspace(scratch)
    with http_server(options, env, root) as server:
        done = subprocess.run(
            [node, os.path.join(HERE, "era.mjs"), os.path.realpath(options.server), root,
             server.url],
            env=env, stdin=subprocess.DEVNULL, timeout=CLIENT_S,
        )
    return 1 if done.returncode or server.status else 0


class Inspector:
    """The Inspector's command line, one call a process, over a server entry in its config."""

    def __init__(self, node, scratch, env, entry):
        self.env = env
        self.config = os.path.join(scratch, "inspector-%s.json" % entry["type"])
        with open(self.config, "w") as f:
            json.dump({"mcpServers": {"codespace": entry}}, f)
        program = "@modelcontextprotocol/inspector/clients/launcher/build/index.js"
        self.base = [node, os.path.join(MODULES, program), "--cli", "--config", self.config,
                     "--server", "codespace"]

    def ask(self, *arguments):
        done = subprocess.run(
            self.base + list(arguments), env=self.env, capture_output=True,
            stdin=subprocess.DEVNULL, timeout=CLIENT_S,
        )
        text = done.stdout.decode("utf-8", "replace")
        said = text + done.stderr.decode("utf-8", "replace")
        assert done.returncode == 0, "exit status %d: %s" % (done.returncode, said)
        return json.loads(text), said

    def call(self, tool, *pairs):
        arguments = ["--method", "tools/call", "--tool-name", tool]
        for pair in pairs:
            arguments += ["--tool-arg", pair]
        result, said = self.ask(*arguments)
        assert not result.get("isError"), said
        return json.loads(result["content"][0]["text"])


def inspector_lists(inspector):
    listed, _ = inspector.ask("--method", "tools/list", "--strict")
    names = [tool["name"] for tool in listed["tools"]]
    assert "exec_command" in names and "read" in names, names


def inspector_reads(inspector):
    page = inspector.call("read", "workspace_id=ws", "path=a.txt")
    assert page["content"] == "alpha\n", page


def inspector_runs(inspector):
    done = inspector.call(
        "exec_command", "workspace_id=ws", 'command=["cat","a.txt"]', "wait_ms=60000"
    )
    assert done["exit_code"] == 0 and done["output"] == "alpha\n", done


def run_inspector(node, options, scratch):
    env = environment(options, scratch)
    root = make_workspace(scratch)
    stdio = {
        "type": "stdio",
        "command": os.path.realpath(options.server),
        "args": ["--workspace", "ws=" + root],
        "env": {k: v for k, v in env.items() if k != "HOME"},
    }
    with http_server(options, env, root) as server:
        http = {"type": "streamable-http", "url": server.url}
        bad = inspect(Inspector(node, scratch, env, stdio), "over stdio", 0)
        bad += inspect(Inspector(node, scratch, env, http), "over HTTP", 3)
    print("codespace-tests: %d passed, %d failed, 0 skipped" % (6 - bad, bad))
    return 1 if bad or server.status else 0


def inspect(inspector, how, offset):
    steps = (
        ("lists the tools, strictly", inspector_lists),
        ("reads a file", inspector_reads),
        ("runs a command", inspector_runs),
    )
    failed = 0
    if offset == 0:
        print("1..%d" % (2 * len(steps)))
    for number, (name, step) in enumerate(steps, offset + 1):
        name = "%s %s" % (name, how)
        try:
            step(inspector)
            print("ok %d - inspector: %s" % (number, name), flush=True)
        except (AssertionError, ValueError, KeyError, subprocess.TimeoutExpired) as error:
            failed += 1
            print("\n".join("# " + line for line in repr(error).split("\\n")))
            print("not ok %d - inspector: %s" % (number, name), flush=True)
    return failed


def node_or_exit(find=find_node):
    """What `find` finds (a node) with the packages installed; else the test ends here, with the
    reason."""
    try:
        with one_at_a_time():
            install()
        return find()
    except Unavailable as reason:
        if os.environ.get("CI"):
            print("1..1\nnot ok 1 - install the client: %s" % reason)
            print("codespace-tests: 0 passed, 1 failed, 0 skipped")
            sys.exit(1)
        print("1..0 # SKIP %s" % reason)
        print("codespace-tests: 0 passed, 0 failed, 1 skipped")
        sys.exit(SKIPPED)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("client", choices=("sdk", "inspector", "era"))
    parser.add_argument("--server", required=True)
    parser.add_argument("--helper", required=True)
    options = parser.parse_args()
    node = node_or_exit()
    with tempfile.TemporaryDirectory(prefix="codespace-client-") as scratch:
        run = {"sdk": run_sdk, "inspector": run_inspector, "era": run_era}[options.client]
        return run(node, options, os.path.realpath(scratch))


if __name__ == "__main__":
    sys.exit(main())
