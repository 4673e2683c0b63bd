#!/usr/bin/env python3
"""What users of such sandboxes have reported, each as it was met there, as far as no other file here
has it (docs/hazards.md says which is where). See suite.py for how to run it.
"""

import ctypes
import itertools
import os
import pwd
import shutil

import suite
from test_sandbox import Sandbox

IN_CREATE, IN_MOVED_TO = 0x100, 0x80


class Created:
    """Whatever comes to be in a directory while this is entered."""

    def __init__(self, path):
        libc = ctypes.CDLL(None, use_errno=True)
        self.fd = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if libc.inotify_add_watch(self.fd, path.encode(), IN_CREATE | IN_MOVED_TO) < 0:
            raise OSError(ctypes.get_errno(), "inotify_add_watch")

    def names(self):
        try:
            return os.read(self.fd, 65536)
        except BlockingIOError:
            return b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.fd)


class Files(Sandbox):
    def test_shared_directory_gets_no_entry(self):
        """[A8] Not even for a moment."""
        shared = os.path.join(self.base, "shared")
        os.mkdir(shared)
        os.chmod(shared, 0o1777)
        with Created(shared) as created:
            self.succeeds(self.run_command(["true"], mounts=[
                {"path": shared, "writable": True}]))
            self.succeeds(self.run_command(["true"], workspace_root=shared, command_cwd=shared))
            self.assertEqual(created.names(), b"")
        self.assertEqual(os.listdir(shared), [])

    def test_link_to_a_place_outside_opens_nothing(self):
        """[A20] Whatever it is taken for: to be protected, hidden, or as a pattern."""
        state = os.path.join(self.base, "state")
        os.mkdir(state, 0o700)
        self.own(state)
        with open(f"{state}/secret", "w", encoding="ascii") as f:
            f.write("SECRET-WORDS")
        self.own(f"{state}/secret")
        os.symlink(state, f"{self.ws}/x")
        self.own(f"{self.ws}/x")
        for options in ({}, {"protect": ["x"]}, {"protect": ["x/secret"]}, {"deny": ["x/none"]}):
            outcome = self.shell(f"cat x/secret {state}/secret; echo x > x/secret; "
                                 f"echo x > x/new; :", **options)
            self.assertNotIn(b"SECRET", outcome.out)
            self.assertEqual(os.listdir(state), ["secret"])

    def test_moving_and_linking_between_directories(self):
        """[A23]"""
        self.succeeds(self.shell("mkdir a b; touch f; mv f a/; ln a/f g; mv a/f b/f; ln b/f a/h; "
                                 "mv b a/; test -e a/b/f"))

    def test_hidden_in_every_mode(self):
        """[A26] What is hidden depends on nothing else."""
        hidden = self.put("private/key", "SECRET-WORDS")
        self.put("a/x.pem", "SECRET-WORDS")
        for read, writable, debug, git in itertools.product(
                ("minimal", "all"), (True, False), (True, False), ("read-only", "commit")):
            mode = dict(read=read, writable_workspace=writable, debug=debug, git=git)
            with self.subTest(**mode):
                outcome = self.shell("cat private/key a/x.pem; cat /etc/shadow; :",
                                     hidden=[hidden], deny=["*.pem"], **mode)
                self.succeeds(outcome)
                self.assertEqual(outcome.out, b"")


class Surroundings(Sandbox):
    def test_caches_below_home(self):
        """[B6, B7]"""
        self.succeeds(self.shell("cd && mkdir -p .cache/go-build go/pkg .npm .cargo/registry && "
                                 "touch .cache/go-build/x .npm/x .cargo/registry/x && "
                                 "echo x > .gitconfig.lock && mv .gitconfig.lock .gitconfig"))

    def test_who_one_is(self):
        """[B8] The user is known by its name; files of others belong to nobody."""
        outcome = self.succeeds(self.shell("id -u; stat -c %u . /etc/passwd; whoami || echo none"))
        user, mine, others, name = outcome.out.decode().split()
        uid = os.getuid() if self.uid is None else self.uid
        known = [entry.pw_name for entry in pwd.getpwall() if entry.pw_uid == uid]
        self.assertEqual((int(user), int(mine)), (uid, uid))
        self.assertEqual(int(others), 0 if uid == 0 else 65534)
        self.assertIn(name, known or ["none"])

    def test_ssh_takes_its_configuration(self):
        """[B8]"""
        if not shutil.which("ssh"):
            self.fail("openssh-client is not installed")
        outcome = self.shell("mkdir -p -m 700 ~/.ssh; echo 'User x' > ~/.ssh/config; "
                             "chmod 600 ~/.ssh/config; ssh -G host.test")
        self.assertNotIn(b"Bad owner", outcome.err)
        self.assertIn(b"hostname host.test", self.succeeds(outcome).out)

    def test_set_user_id_bubblewrap(self):
        """[B11] It gives nobody anything, and TMPDIR is there."""
        bwrap = os.path.join(self.base, "bwrap")
        shutil.copy("/usr/bin/bwrap", bwrap)
        os.chmod(bwrap, 0o4755)
        env = {"CODESPACE_BWRAP_BIN": bwrap}
        plan = self.plan(["sh", "-c", "touch \"$TMPDIR/x\" && grep CapEff /proc/self/status"],
                         env=env)
        outcome = self.run_plan(plan)
        if outcome.end.get("event") == "exit":
            self.assertEqual(outcome.out.split(), [b"CapEff:", b"0" * 16], outcome)
        else:
            self.assertEqual(outcome.out, b"")

    def test_namespaces_of_ones_own(self):
        """[B18] Refused, and told by which rule."""
        outcome = self.shell("! unshare -Ur true")
        self.succeeds(outcome)
        self.assertIn("filter.namespace", [d["rule"] for d in outcome.end["denials"]])


class Choice(Sandbox):
    def test_a_request_cannot_leave_the_sandbox(self):
        """[D4] There is no such word, and one that is not known is refused."""
        for word in ("unsandboxed", "sandbox", "dangerously_disable_sandbox", "privileged"):
            self.refused(word, **{word: True})

    def test_what_is_installed_changes_nothing(self):
        """[D6] The same plan, byte by byte, with and without other programs in reach."""
        tools = os.path.join(self.base, "tools")
        os.mkdir(tools)
        for name in ("socat", "pasta", "slirp4netns", "newuidmap", "firejail"):
            with open(f"{tools}/{name}", "w", encoding="ascii") as f:
                f.write("#!/bin/sh\nexit 0\n")
            os.chmod(f"{tools}/{name}", 0o755)
        views = []
        for path in ("/usr/bin:/bin", f"{tools}:/usr/bin:/bin"):
            plan = self.plan(["sh", "-c", "cut -d' ' -f5,6 /proc/self/mountinfo; "
                              "grep -E 'Seccomp|NoNewPrivs|CapEff' /proc/self/status"],
                             env={"PATH": path})
            views.append(self.succeeds(self.run_plan(plan)).out)
        self.assertEqual(*views)


suite.main(Files, Surroundings, Choice)
