#!/usr/bin/env python3
"""--use-legacy-landlock, the explicit and weaker choice (H9). See suite.py for how to run it; a
fourth argument is the program that runs another one under a filter.
"""

import ctypes
import json
import os
import socket
import subprocess
import sys

import suite
from test_sandbox import LIMIT, PREFIX, Sandbox

DENIED = os.path.abspath(sys.argv.pop(3))
TCP = 4  # the version from which on it knows the network
VERSION = ctypes.CDLL(None).syscall(444, None, 0, 1)


def entry(kind, access):
    path = {"type": "path", "path": kind} if kind.startswith("/") else \
        {"type": "special", "value": {"kind": kind}}
    return {"path": path, "access": access}


def profile(*entries):
    return {"type": "managed", "network": "restricted",
            "file_system": {"type": "restricted", "entries": [entry(*e) for e in entries]}}


READ = profile(("root", "read"))
FULL = {"type": "managed", "network": "restricted", "file_system": {"type": "unrestricted"}}


class Landlock(Sandbox):
    def face(self, what, script, *before):
        link = os.path.join(self.base, "codex-linux-sandbox")
        if not os.path.islink(link):
            os.symlink(self.helper, link)
        return subprocess.run(
            [*before, link, "--sandbox-policy-cwd", self.ws, "--permission-profile",
             json.dumps(what), "--use-legacy-landlock", "--", "sh", "-c", script],
            timeout=LIMIT, capture_output=True, stdin=subprocess.DEVNULL, cwd=self.ws, check=False,
            **self.as_user())

    def works(self, what, script):
        done = self.face(what, script)
        self.assertEqual(done.returncode, 0, done)
        return done

    def works_full(self, script):
        """With the whole disk writable the network is all that there is to hold, which Landlock can from
        version 4 on; a version that would hold nothing is refused by its number."""
        if VERSION >= TCP:
            self.works(FULL, script)
            return
        done = self.face(FULL, script)
        self.assertEqual(done.returncode, 191, done)
        self.assertIn(f"version {VERSION}", done.stderr.decode())

    def test_disk_is_read_only(self):
        self.put("file", "words")
        self.put("other", "words")
        self.works(READ, f"cat file && ! echo x > new && ! echo x > file && ! true >> file && ! rm file && "
                         f"! mv file x && ! ln file l && ! ln -s file s && ! mkdir d && ! mkfifo p && "
                         f"! truncate -s 0 file && ! echo x > {self.tmp}/x && ! echo x > /tmp/cs-x && "
                         "echo x > /dev/null && : | cat > /dev/null")
        with open(f"{self.ws}/file", encoding="utf-8") as f:
            self.assertEqual(f.read(), "words")
        self.assertEqual(sorted(os.listdir(self.ws)), ["file", "other"])

    def test_whole_disk_stays_writable(self):
        self.works_full("echo x > new && mkdir d && mv new d/new && ln d/new l && rm l")
        self.assertEqual(os.listdir(self.ws), ["d"] if VERSION >= TCP else [])

    def test_walls_that_are_left(self):
        script = "grep -q 'NoNewPrivs:.1' /proc/self/status && grep -q 'Seccomp:.2' /proc/self/status"
        self.works(READ, script)
        self.works_full(script)

    def test_no_tcp(self):
        with socket.socket() as server:
            server.bind(("127.0.0.1", 0))
            server.listen()
            server.setblocking(False)
            port = server.getsockname()[1]
            for what in (READ, FULL):
                done = self.face(what, f"bash -c 'echo > /dev/tcp/127.0.0.1/{port}'")
                self.assertNotEqual(done.returncode, 0)
            with self.assertRaises(BlockingIOError):
                server.accept()

    def test_others_are_out_of_reach(self):
        """From version 6 on; below it is told that they are not: the manual."""
        name = f"\0cs-{self.marker}"
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(name)
            server.listen()
            code = ("import socket, os, sys\n"
                    f"try: socket.socket(socket.AF_UNIX).connect({name!r}); print('reached')\n"
                    "except OSError: pass\n"
                    f"try: os.kill({os.getpid()}, 0); print('signalled')\n"
                    "except OSError: pass\n")
            script = self.put("probe.py", code)
            done = self.works(READ, f"python3 -S {script}")
        if VERSION >= 6:
            self.assertEqual(done.stdout, b"")
        else:
            self.assertIn(b"reached", done.stdout)

    def test_what_it_cannot_keep_is_refused(self):
        for what in (profile(("root", "read"), ("project_roots", "write")),
                     profile(("root", "read"), ("/etc", "deny")), profile(("minimal", "read")),
                     profile(("/usr", "read"))):
            done = self.face(what, "touch ran")
            self.assertEqual(done.returncode, 2)
            self.assertIn(PREFIX + "--use-legacy-landlock cannot hide", done.stderr.decode())
        self.assertEqual(os.listdir(self.ws), [])

    def test_never_without(self):
        """[H10] Where the kernel has none, nothing runs."""
        for what in (READ, FULL):
            done = self.face(what, "touch ran", DENIED, "38", "landlock_create_ruleset", "--")
            self.assertEqual(done.returncode, 191, done)
            self.assertIn("version 0", done.stderr.decode())
        self.assertEqual(os.listdir(self.ws), [])


if VERSION < 1:
    print("codespace-tests: skipped: this kernel has no Landlock")
    sys.exit(1 if os.environ.get("CI") == "true" else 77)
suite.main(Landlock)
