#!/usr/bin/env python3
"""The same walls where the kernel, a filter around us or bubblewrap offers less. Run as:
test_fallbacks.py HELPER HOSTILE DENIED OLDER_MOUNTS [unittest arguments]; see suite.py.
"""

import errno
import json
import os
import socket
import subprocess
import sys

import suite
from test_sandbox import LIMIT, Sandbox

DENIED = os.path.abspath(sys.argv.pop(3))
OLDER_MOUNTS = os.path.abspath(sys.argv.pop(3))


class Denied(Sandbox):
    """Every call here is missing (ENOSYS) or refused (EPERM), all at once and one by one."""

    CALLS = ("openat2", "clone3", "pidfd_open", "close_range", "open_tree", "mount_setattr",
             "fsopen", "move_mount", "inotify_init1")

    def wrap(self, *before):
        if not os.path.exists(self.helper + ".real"):
            os.rename(self.helper, self.helper + ".real")
        with open(self.helper, "w", encoding="utf-8") as f:
            f.write(f"#!/bin/sh\nexec {' '.join(before)} {self.helper}.real \"$@\"\n")
        os.chmod(self.helper, 0o755)

    def deny(self, error, *names):
        self.wrap(DENIED, str(error), *names, "--")

    def walls(self):
        self.put(".git/file")
        self.put("a/b/key.pem", "words")
        self.put("ci/run.sh")
        options = dict(deny=["*.pem"], protect=[".git", "ci/run.sh", "a/none"])
        self.attack("protected_directories", ".git", **options)
        self.attack("cannot_rename", "ci", **options)
        self.attack("namespaces", **options)
        self.attack("proc_one", **options)
        self.attack("reads_as_empty", "/etc/shadow", **options)
        self.attack("forged_signals", **options)
        self.attack("subvolumes", **options)
        outcome = self.attack("limits_of_process_one", "a/none", **options)
        self.assertEqual(outcome.end["removed"], ["a/none"])
        outcome = self.shell("echo x > a/b/none; chmod 0 a", protect=["a/b/none"])
        self.succeeds(outcome, ["a/b/none"])
        os.chmod(f"{self.ws}/a", 0o755)
        outcome = self.shell("cat a/b/key.pem; echo x > a/none; ! echo x > ci/run.sh", **options)
        self.succeeds(outcome, ["a/none"])
        self.assertEqual(outcome.out, b"")
        outcome = self.shell(f"sleep {self.marker} & exit 3")
        self.assertEqual((outcome.end["code"], outcome.end["background"]), (3, 1))
        self.nothing_survives()

    def test_all_are_missing(self):
        self.deny(errno.ENOSYS, *self.CALLS)
        self.walls()

    def test_all_are_refused(self):
        """But openat2, whose EPERM the walk answers for."""
        self.deny(errno.EPERM, *self.CALLS)
        self.walls()

    def test_one_by_one(self):
        for name in self.CALLS:
            with self.subTest(name):
                self.deny(errno.ENOSYS, name)
                self.attack("descriptors")
                self.put("key.pem", "words")
                self.assertEqual(self.succeeds(self.shell("cat key.pem", deny=["*.pem"])).out, b"")

    def test_only_what_is_attached_can_be_copied(self):
        """As before Linux 6.15; with masks that are files only, and with directories among them."""
        for name in ("one.pem", "two.pem", "keys/key"):
            self.put(name, "words")
        self.wrap(OLDER_MOUNTS)
        done = subprocess.run([self.helper, "probe", "--json"], timeout=LIMIT, capture_output=True,
                              **self.as_user())
        self.assertTrue(json.loads(done.stdout)["works"], done.stdout)
        for options in ({}, {"proc": "inherited", "protect": []}):
            for hidden in ((), (f"{self.ws}/keys",)):
                outcome = self.shell("cat *.pem keys/* 2>/dev/null; ls -A /.. | head -3; ls -A / | head -3",
                                     deny=["*.pem"], hidden=[f"{self.ws}/keys/key", *hidden], **options)
                lines = self.succeeds(outcome).out.decode().split()
                self.assertNotIn("words", lines)
                self.assertEqual(lines[:3], lines[3:])  # nothing of ours is left on "/"
        self.walls()

    def test_group_without_pidfd(self):
        """What cannot be done is told, and nothing runs."""
        fake = os.path.join(self.base, "group")
        os.mkdir(fake)
        self.own(fake)
        self.deny(errno.ENOSYS, "pidfd_open")
        for name in ("cgroup.controllers", "cgroup.subtree_control"):
            with open(f"{fake}/{name}", "w", encoding="utf-8") as f:
                f.write("pids\n")
        outcome = self.shell("touch ran", limits={"pids": 5}, cgroup_parent=fake)
        self.assertEqual(outcome.end["event"], "failed")
        self.assertEqual(os.listdir(self.ws), [])


class OtherBubblewraps(Sandbox):
    def fake(self, option, message="Unknown option"):
        """One that does not know an option, as it says so itself."""
        path = os.path.join(self.base, "bwrap")
        with open(path, "w", encoding="utf-8") as f:
            f.write(f"""#!/usr/bin/python3
import os, sys
if sys.argv[1:] == ["--version"]:
    print("bubblewrap 0.7.0")
    sys.exit(0)
fd = int(sys.argv[sys.argv.index("--args") + 1])
at = os.lseek(fd, 0, os.SEEK_CUR)
words = os.read(fd, 1 << 20).decode().split("\\0") + sys.argv
os.lseek(fd, at, os.SEEK_SET)
if "{option}" in words:
    sys.stderr.write("bwrap: {message} {option}\\n")
    sys.exit(1)
os.execv("/usr/bin/bwrap", ["bwrap"] + sys.argv[1:])
""")
        os.chmod(path, 0o755)
        return {"CODESPACE_BWRAP_BIN": path}

    def test_without_argv0(self):
        """It is not needed."""
        plan = self.plan(["sh", "-c", "exit 9"], env=self.fake("--argv0"))
        self.assertEqual(self.alone(plan).returncode, 9)

    def test_without_a_fresh_proc(self):
        """[D2] As in a container whose /proc is masked: the weaker mode is there for who chose it,
        and for nobody else."""
        env = self.fake("--proc", "Can't mount proc on /newroot/proc: Operation not permitted;")
        done = subprocess.run([self.helper, "probe", "--json"], timeout=LIMIT, capture_output=True,
                              **self.as_user(env=env))
        found = json.loads(done.stdout)
        self.assertEqual((done.returncode, found["works"], found["cause"]), (1, False, "no_proc"))
        self.assertTrue(found["inherited_proc"])
        self.assertFalse(found["fresh_proc"])
        self.assertTrue(found["seccomp"] and found["pid_namespace"] and found["pid1"])
        self.assertIn("inherited", found["remedy"])
        done = subprocess.run([self.helper, "probe", "--explain"], timeout=LIMIT,
                              capture_output=True, text=True, **self.as_user(env=env))
        self.assertIn("weaker: works for workspaces", done.stdout)
        outcome = self.run_plan(self.plan(["touch", "ran"], env=env))
        self.assertEqual(outcome.events, [])
        self.assertEqual(os.listdir(self.ws), [])
        self.succeeds(self.run_plan(self.plan(["touch", "ran"], env=env, proc="inherited")))
        self.assertEqual(os.listdir(self.ws), ["ran"])

    def test_too_old(self):
        for option in ("--perms", "--as-pid-1", "--size"):
            env = self.fake(option)
            done = self.alone(self.plan(["touch", "ran"], env=env))
            self.assertEqual(done.returncode, 187)
            self.assertIn(option, done.stderr.decode())
            done = subprocess.run([self.helper, "probe", "--json"], timeout=LIMIT,
                                  capture_output=True, **self.as_user(env=env))
            found = json.loads(done.stdout)
            self.assertEqual((found["works"], found["cause"]), (False, "old_bwrap"), (option, found))
        self.assertEqual(os.listdir(self.ws), [])


class Settings(Sandbox):
    """[H12, D1] What an operator has set, as the kernel tells it: one cause, one remedy."""

    CLOSED = ("bwrap: No permissions to create new namespace, likely because the kernel does not allow "
              "non-privileged user namespaces.")
    USED_UP = ("bwrap: Creating new namespace failed: nesting depth or /proc/sys/user/max_*_namespaces "
               "exceeded (ENOSPC)")

    def setUp(self):
        super().setUp()
        self.assertEqual(os.getuid(), 0, "needs root, to lay settings over those of the kernel")

    def probe(self, words, directory, **files):
        """Under these settings, with a bubblewrap that ends with these words."""
        bwrap = os.path.join(self.base, "bwrap")
        with open(bwrap, "w", encoding="utf-8") as f:
            f.write(f"#!/bin/sh\n[ \"$1\" = --version ] && echo bubblewrap 0.8.0 && exit\n"
                    f"echo '{words}' >&2; exit 1\n")
        os.chmod(bwrap, 0o755)
        become = [] if self.uid is None else ["setpriv", f"--reuid={self.uid}", f"--regid={self.uid}",
                                              "--clear-groups"]
        script = "".join(f"echo {text} >{directory}/{name} && " for name, text in files.items())
        done = subprocess.run(
            ["unshare", "--mount", "sh", "-c", f'mount -t tmpfs settings {directory} && {script} exec "$@"',
             "sh", *become, self.helper, "probe", "--json"],
            env={"TMPDIR": self.tmp, "PATH": "/usr/sbin:/usr/bin:/bin", "CODESPACE_BWRAP_BIN": bwrap},
            capture_output=True, timeout=LIMIT, check=False)
        found = json.loads(done.stdout)
        self.assertEqual((done.returncode, found["works"]), (1, False), found)
        return found

    def test_kept_from_users(self):
        for name, value, cause, remedy in (
                ("unprivileged_userns_clone", 0, "userns_clone", "kernel.unprivileged_userns_clone=1"),
                ("apparmor_restrict_unprivileged_userns", 1, "apparmor", "bwrap-userns-restrict")):
            found = self.probe(self.CLOSED, "/proc/sys/kernel", **{name: value})
            if self.uid is None:  # whom neither holds
                self.assertEqual(found["cause"], "no_userns")
            else:
                self.assertEqual(found["cause"], cause)
                self.assertIn(remedy, found["remedy"])
            found = self.probe(self.CLOSED, "/proc/sys/kernel", **{name: 1 - value})
            self.assertEqual(found["cause"], "no_userns")

    def test_without_proc(self):
        """[D2] Something else is mounted there; a sanitizer finds what it cannot do without."""
        script = ('mkdir "$1/p" && mount --rbind /proc "$1/p" && mount -t tmpfs none /proc && '
                  'mkdir /proc/self && for name in maps exe cmdline environ; do '
                  'ln -s "$1/p/$$/$name" /proc/self/; done; '
                  'exec env ASAN_OPTIONS=detect_leaks=0 "$0" probe --json')
        done = subprocess.run(
            ["unshare", *([] if self.uid is None else ["-Ur"]), "-m", "sh", "-c", script, self.helper,
             self.ws], capture_output=True, timeout=LIMIT, check=False, **self.as_user())
        found = json.loads(done.stdout)
        self.assertEqual((found["works"], found["cause"]), (False, "proc_missing"), found)
        self.assertIn("mount -t proc", found["remedy"])

    def test_used_up(self):
        found = self.probe(self.USED_UP, "/proc/sys/user", max_user_namespaces=500, max_mnt_namespaces=0)
        self.assertEqual(found["cause"], "max_namespaces")
        self.assertEqual(found["detail"], f"user.max_mnt_namespaces is 0: {self.USED_UP}")
        found = self.probe(self.USED_UP, "/proc/sys/user", max_user_namespaces=500)
        self.assertEqual((found["cause"], found["detail"]), ("max_namespaces", self.USED_UP))


class Sockets(Sandbox):
    def test_sockets_that_listen_are_hidden(self):
        """[C15] With the whole view, wherever they lie; datagram pairs included."""
        where = os.path.join("/var/lib" if os.getuid() == 0 else self.base, f"s{self.marker}")
        os.mkdir(where, 0o755)
        paths = []
        try:
            for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
                path = f"{where}/{kind}"
                server = socket.socket(socket.AF_UNIX, kind)
                server.bind(path)
                os.chmod(path, 0o777)
                if kind == socket.SOCK_STREAM:
                    server.listen()
                self.addCleanup(server.close)
                paths.append(path)
            code = ("import socket, sys\n"
                    "for path in sys.argv[1:]:\n"
                    "    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):\n"
                    "        try:\n"
                    "            socket.socket(socket.AF_UNIX, kind).connect(path)\n"
                    "            print('reached', path)\n"
                    "        except OSError:\n"
                    "            pass\n"
                    "        try:\n"
                    "            socket.socketpair(type=kind)[0].connect(path)\n"
                    "            print('reached', path)\n"
                    "        except OSError:\n"
                    "            pass\n")
            outcome = self.run_command(["python3", "-S", "-c", code, *paths], read="all")
            self.assertEqual(self.succeeds(outcome).out, b"")
        finally:
            for path in paths:
                os.unlink(path)
            os.rmdir(where)


suite.main(Denied, OtherBubblewraps, Settings, Sockets)
