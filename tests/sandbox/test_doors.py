#!/usr/bin/env python3
"""Ways around the walls that are open to every process (hostile_doors.c), cold and warm: process 1 of
the same user, descriptors, programs without a name, the kernel's files. Run as: test_doors.py HELPER
HOSTILE [unittest arguments]; see suite.py.
"""

import os
import socket
import subprocess

import suite
from test_sandbox import Sandbox, wait_until
from test_warm import Warm


class Doors:
    """What is tried; how it is started is the class's that takes it in."""

    def test_limits_of_process_one(self):
        """[A7] Without descriptors it could not put right what it guards."""
        outcome = self.attack("limits_of_process_one", ".git")
        self.assertEqual(outcome.end["removed"], [".git"])
        self.assertEqual(os.listdir(self.ws), [])
        self.assertIn(("filter.process", "prlimit64"),
                      [(d["rule"], d["what"]) for d in outcome.end["denials"]])

    def test_forged_signals(self):
        """[E8] They neither end the sandbox nor change what is told of its end."""
        outcome = self.attack("forged_signals")
        self.assertEqual(outcome.end["code"], 0)

    def test_pidfd_of_process_one(self):
        self.attack("pidfd_of_process_one")

    def test_everything_is_stopped(self):
        """[E2]"""
        hostile = self.hostile_here()
        plan = self.plan([hostile, "stop_everything", self.marker], mounts=[{"path": hostile}])
        process, control = self.start(plan)
        self.wait_started(control)
        self.end(process, control)
        self.nothing_survives()

    def test_by_descriptor(self):
        """[A1]"""
        self.put(".git/file")
        self.put("ci/deploy/file")
        for protected, way in ((".git", ".git"), ("ci/deploy", "ci")):
            self.attack("by_descriptor", protected, way, protect=[".git", "ci/deploy"])

    def test_directory_on_the_way_is_closed(self):
        """[A7] What was put behind it is found, and the directory stays as the command left it."""
        self.put("ci/deploy/other")
        for script in ("echo x > ci/deploy/run.sh; chmod 0 ci",
                       "echo x > ci/deploy/run.sh; chmod 0 ci/deploy ci",
                       "mkdir ci/deploy/run.sh; chmod 0 ci/deploy/run.sh; chmod 0 ci/deploy ci"):
            outcome = self.succeeds(self.shell(script, protect=["ci/deploy/run.sh"]),
                                    ["ci/deploy/run.sh"])
            self.assertEqual(os.stat(f"{self.ws}/ci").st_mode & 0o777, 0, outcome)
            os.chmod(f"{self.ws}/ci", 0o755)
            os.chmod(f"{self.ws}/ci/deploy", 0o755)
            self.assertEqual(os.listdir(f"{self.ws}/ci/deploy"), ["other"])

    def test_closed_directories_alone_are_no_offence(self):
        """Nothing was made, so nothing is told of."""
        self.put("ci/deploy/other")
        self.succeeds(self.shell("chmod 0 ci/deploy ci .", protect=[".git", "ci/deploy/run.sh"]))
        for name in (".", "ci", "ci/deploy"):
            self.assertEqual(os.stat(f"{self.ws}/{name}").st_mode & 0o777, 0, name)
            os.chmod(f"{self.ws}/{name}", 0o755)

    def test_directory_on_the_way_is_somebody_elses(self):
        """[A9] Nobody of us gets there: nothing to guard, and nothing to fail of."""
        self.put("ci/deploy/other")
        os.chmod(f"{self.ws}/ci", 0o700)
        if os.getuid() == 0:
            os.chown(f"{self.ws}/ci", 4242, 4242)
        else:
            os.chmod(f"{self.ws}/ci/deploy", 0)
        self.succeeds(self.shell("true", protect=["ci/deploy/run.sh", "ci/x"]))
        self.assertEqual(os.stat(f"{self.ws}/ci").st_mode & 0o777, 0o700)

    def test_nameless_programs(self):
        self.attack("nameless_programs")

    def test_proc_is_read_only(self):
        self.attack("proc_is_read_only", self.owner())

    def test_subvolumes(self):
        self.attack("subvolumes")

    def test_memory_files(self):
        self.attack("memory_files")

    def test_watching(self):
        self.attack("watching")

    def test_workspace_is_swapped(self):
        """What stands at the path later is not what a command sees that began before."""
        self.put("file", "first")
        process, control = self.start(self.plan(["sh", "-c", "read x; cat file"]),
                                      stdin=subprocess.PIPE)
        self.wait_started(control)
        os.rename(self.ws, f"{self.base}/old")
        os.symlink("/etc", self.ws)
        outcome = self.finish(process, control)
        os.unlink(self.ws)
        os.rename(f"{self.base}/old", self.ws)
        self.assertEqual(outcome.out, b"first")


class Cold(Doors, Sandbox):
    def test_descriptor_over_a_shared_mount(self):
        """[C16] A mount that two workspaces may write is a way between them, and only for who holds
        both ends: what one hands over is what it has itself."""
        shared = os.path.join(self.base, "shared")
        other = os.path.join(self.base, "other")
        for path in (shared, other):
            os.mkdir(path)
            self.own(path)
        mounts = [{"path": shared, "writable": True}]
        self.put(".git/file")
        give = ("import array, os, socket, sys\n"
                "s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen()\n"
                "open(sys.argv[1] + '.up', 'w').close()\n"
                "c, _ = s.accept(); d = os.open('.git', os.O_RDONLY)\n"
                "c.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [d]))])\n")
        take = ("import os, socket, sys\n"
                "s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])\n"
                "_, fds, _, _ = socket.recv_fds(s, 1, 1)\n"
                "try:\n"
                "    os.open('new', os.O_WRONLY | os.O_CREAT, dir_fd=fds[0])\n"
                "except OSError as e:\n"
                "    print(e.errno)\n"
                "print(sorted(os.listdir(fds[0])), os.path.exists(sys.argv[2]))\n")
        first = self.start(self.plan(["python3", "-S", "-c", give, f"{shared}/s"], mounts=mounts))
        wait_until(lambda: os.path.exists(f"{shared}/s.up"), "the giver listens")
        outcome = self.run_command(["python3", "-S", "-c", take, f"{shared}/s", self.ws],
                                   workspace_root=other, command_cwd=other, mounts=mounts)
        self.finish(*first)
        self.assertEqual(outcome.out, b"30\n['file'] False\n", outcome)

    def test_host_hands_nothing_over(self):
        """[C15] A server of the host in the workspace is reached, because it can be seen there: what
        it hands over is its own doing. Anywhere else there is none."""
        server = socket.socket(socket.AF_UNIX)
        server.bind(f"{self.ws}/seen")
        os.chmod(f"{self.ws}/seen", 0o777)
        hidden = socket.socket(socket.AF_UNIX)
        hidden.bind(f"{self.base}/hidden")
        for s in (server, hidden):
            s.listen()
            self.addCleanup(s.close)
        code = ("import socket, sys\n"
                "for path in sys.argv[1:]:\n"
                "    try:\n"
                "        socket.socket(socket.AF_UNIX).connect(path); print('reached')\n"
                "    except OSError as e:\n"
                "        print(e.errno)\n")
        outcome = self.run_command(["python3", "-S", "-c", code, f"{self.ws}/seen",
                                    f"{self.base}/hidden"])
        self.assertEqual(outcome.out, b"reached\n2\n")


class WarmDoors(Doors, Warm):
    pass


suite.main(Cold, WarmDoors)
