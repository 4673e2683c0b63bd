"""The two worlds and what a test of the network stands on.

The test process is the host: one link, one address, a name server on the other side of it. All that
leaves the host is recorded over there. Commands run through the real server with a registry that the
test writes. Nothing waits by time: servers are up when the internet has answered, and what a command
does is over when it has ended.
"""

import ctypes
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import zipfile

from internet import HOST
from mcp_client import Client

HERE = os.path.dirname(os.path.realpath(__file__))
SERVER = os.environ.get("CODESPACE_TEST_SERVER", "")
MS_BIND, MS_REC, MS_PRIVATE = 0x1000, 0x4000, 0x40000
WAIT_MS = 60000


def mount(source, target, flags):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(source.encode(), target.encode(), None, flags, None) < 0:
        raise OSError(ctypes.get_errno(), "mount %s" % target)


def unmount(target):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.umount2(target.encode(), 0) < 0:
        raise OSError(ctypes.get_errno(), "unmount %s" % target)


def git(*argv, cwd):
    env = {"PATH": os.environ["PATH"], "HOME": cwd, "GIT_CONFIG_NOSYSTEM": "1",
           "GIT_AUTHOR_NAME": "t", "GIT_AUTHOR_EMAIL": "t@t", "GIT_COMMITTER_NAME": "t",
           "GIT_COMMITTER_EMAIL": "t@t"}
    subprocess.run(["git", "-c", "init.defaultBranch=main", *argv], cwd=cwd, env=env, check=True,
                   stdout=subprocess.DEVNULL)


class Internet:
    """Made once for all tests of a run."""

    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix="cs-net-")
        self._make_content()
        self.control, theirs = socket.socketpair()
        self.control.settimeout(60)
        self.process = subprocess.Popen(
            [sys.executable, "-B", os.path.join(HERE, "internet.py"), str(theirs.fileno()),
             self.folder], pass_fds=[theirs.fileno()])
        theirs.close()
        self.lines = self.control.makefile("rb")
        self._answer()
        for argv in (["link", "add", "out", "type", "veth", "peer", "name", "in", "netns",
                      str(self.process.pid)],
                     ["link", "set", "lo", "up"], ["link", "set", "out", "up"],
                     ["addr", "add", HOST + "/24", "dev", "out"],
                     ["route", "add", "default", "via", "45.33.10.2"]):
            subprocess.run(["ip"] + argv, check=True)
        mount("none", "/", MS_REC | MS_PRIVATE)
        mount(self.folder + "/resolv.conf", os.path.realpath("/etc/resolv.conf"), MS_BIND)
        mount(self.folder + "/hosts", os.path.realpath("/etc/hosts"), MS_BIND)
        self.ask(op="link", name="in")
        return self

    def _make_content(self):
        www = self.folder + "/www"
        os.mkdir(www)
        with open(www + "/file.txt", "w") as out:
            out.write("from the internet\n")
        with open(self.folder + "/resolv.conf", "w") as out:
            out.write("nameserver 45.33.10.53\n")
        with open(self.folder + "/hosts", "w") as out:
            out.write("127.0.0.1 localhost\n45.33.10.10 written.test\n45.33.10.66 bad.test\n")
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj",
             "/CN=example.test", "-addext", "subjectAltName=DNS:example.test,DNS:registry.test",
             "-keyout", self.folder + "/key.pem", "-out", self.folder + "/cert.pem"],
            check=True, stderr=subprocess.DEVNULL)
        work = self.folder + "/work"
        os.mkdir(work)
        git("init", "-q", cwd=work)
        with open(work + "/README", "w") as out:
            out.write("a repository\n")
        git("add", "README", cwd=work)
        git("commit", "-qm", "one", cwd=work)
        git("clone", "-q", "--bare", work, www + "/repo.git", cwd=self.folder)
        git("update-server-info", cwd=www + "/repo.git")
        self._make_package(www)
        self._make_wheel(www)

    def _make_package(self, www):
        """One package of a registry for npm."""
        package = self.folder + "/package"
        os.makedirs(package)
        with open(package + "/package.json", "w") as out:
            json.dump({"name": "tiny-thing", "version": "1.0.0", "main": "index.js"}, out)
        with open(package + "/index.js", "w") as out:
            out.write("module.exports = 'tiny thing';\n")
        os.mkdir(www + "/npm")
        subprocess.run(["tar", "-czf", www + "/npm/tiny-thing-1.0.0.tgz", "-C", self.folder,
                        "package"], check=True)
        with open(www + "/npm/tiny-thing", "w") as out:
            json.dump({"name": "tiny-thing", "dist-tags": {"latest": "1.0.0"}, "versions": {
                "1.0.0": {"name": "tiny-thing", "version": "1.0.0", "dist": {
                    "tarball": "http://registry.test/npm/tiny-thing-1.0.0.tgz"}}}}, out)

    def _make_wheel(self, www):
        """One package of an index for pip."""
        folder = www + "/simple/tiny-thing"
        os.makedirs(folder)
        wheel = "tiny_thing-1.0-py3-none-any.whl"
        with zipfile.ZipFile(folder + "/" + wheel, "w") as out:
            out.writestr("tiny_thing.py", "NAME = 'tiny thing'\n")
            about = "tiny_thing-1.0.dist-info/"
            out.writestr(about + "METADATA", "Metadata-Version: 2.1\nName: tiny-thing\nVersion: 1.0\n")
            out.writestr(about + "WHEEL", "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\n"
                         "Tag: py3-none-any\n")
            out.writestr(about + "RECORD", "tiny_thing.py,,\n%sMETADATA,,\n%sWHEEL,,\n%sRECORD,,\n"
                         % (about, about, about))
        with open(folder + "/index.html", "w") as out:
            out.write('<!DOCTYPE html><html><body><a href="%s">%s</a></body></html>' % (wheel, wheel))

    def _answer(self):
        line = self.lines.readline()
        if not line:
            raise RuntimeError("the internet is gone")
        return json.loads(line)

    def ask(self, **request):
        self.control.sendall(json.dumps(request).encode() + b"\n")
        return self._answer()

    def log(self):
        found = self.ask(op="log")
        found["packets"] = {tuple(p) for p in found["packets"]}
        return found

    def __exit__(self, *_):
        self.control.sendall(b'{"op":"stop"}\n')
        self.process.wait(90)
        self.control.close()
        shutil.rmtree(self.folder)


def proxies_of(pid):
    """Process ids of the egress proxies below a process."""
    found, parents = [], {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open("/proc/%s/stat" % name) as f:
                text = f.read()
            rest = text[text.rindex(")") + 2:].split()
            parents[int(name)] = (text[text.index("(") + 1:text.rindex(")")], int(rest[1]), rest[0])
        except (FileNotFoundError, ProcessLookupError):
            continue
    for child, (comm, parent, state) in parents.items():
        while parent in parents and parent != pid:
            parent = parents[parent][1]
        if parent == pid and comm.startswith("codespace-egres") and state not in "ZX":
            found.append(child)
    return found


class NetworkCase(unittest.TestCase):
    internet = None
    EGRESS = {"allow": ["example.test", "registry.test"]}
    PUBLISH = []
    OPTIONS = ()
    WRAPPER = ()

    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="cs-net-test-")
        self.addCleanup(shutil.rmtree, self.dir)
        self.ws = self.dir + "/ws"
        os.mkdir(self.ws)
        os.mkdir(self.dir + "/tmp")
        shutil.copy(self.internet.folder + "/cert.pem", self.ws)
        self.internet.ask(op="clear")
        self.client = None

    def start(self, egress=None, publish=None, **more):
        """A server for one workspace."""
        workspace = {"root": self.ws, "profile": "workspace-write", "sandbox": "required",
                     "network": "enabled", "egress": egress or self.EGRESS,
                     "publish": publish or self.PUBLISH, **more}
        config = self.dir + "/config.json"
        with open(config, "w") as out:
            json.dump({"workspaces": {"ws": workspace}}, out)
        env = {**os.environ, "TMPDIR": self.dir + "/tmp", "HOME": self.dir}
        self.client = Client([*self.WRAPPER, SERVER, "--config", config, *self.OPTIONS],
                             env=env)
        self.addCleanup(self.stop)
        self.client.initialize()
        return self.client

    def stop(self):
        if self.client is None:
            return
        pid, client = self.client.pid, self.client
        self.client = None
        code = client.close()
        self.assertIn(code, (0, None))
        self.assertEqual(proxies_of(pid), [])

    def begin(self, script, **arguments):
        if self.client is None:
            self.start()
        return self.client.begin_call("exec_command", workspace_id="ws", wait_ms=WAIT_MS,
                                      command=["/bin/sh", "-c", script], **arguments)

    def sh(self, script, code=0, **arguments):
        """Run a script; its output. `code`: how it must exit, None = any."""
        done = self.client_finish(self.begin(script, **arguments))
        if code is not None:
            self.assertEqual(done.get("exit_code"), code, done)
        return done["output"]

    def client_finish(self, ident):
        self.done = self.client.finish_call(ident, 90)
        return self.done

    def denials(self):
        return {(d["rule"], d.get("what", "")) for d in self.done.get("denials") or []}

    def left(self):
        """What has left the host, as (protocol, destination, port), without answers to us."""
        return self.internet.log()["packets"]

    def assert_left(self, *allowed):
        """Nothing but these went out."""
        self.assertEqual(self.left() - set(allowed), set())

    def until(self, is_so, what):
        """Wait for something that has no event of its own."""
        end = time.monotonic() + 90
        while not is_so():
            self.assertLess(time.monotonic(), end, what)
            time.sleep(0.005)

    def warm_up(self):
        self.sh("true")
        self.until(lambda: self.client.call("workspace_info", workspace_id="ws")["execution"][
            "network"]["scope_now"] == "workspace", "a warm sandbox")

    def serve_host(self, reply, family=socket.AF_INET, address=("127.0.0.1", 0)):
        """A server of the host: sends `reply` to whoever connects, over TCP to whoever asks. Its
        address."""
        sock = socket.socket(family)
        if family == socket.AF_INET:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(address)
        sock.listen(16)
        self.addCleanup(sock.close)

        def loop():
            while True:
                try:
                    client, _ = sock.accept()
                except OSError:
                    return
                with client:
                    if family == socket.AF_INET:
                        client.recv(4096)
                    client.sendall(reply)

        threading.Thread(target=loop, daemon=True).start()
        self.addCleanup(sock.shutdown, socket.SHUT_RDWR)
        return sock.getsockname()
