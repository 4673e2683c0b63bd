#!/usr/bin/env python3
"""Limits of a command's resources, held or refused. See suite.py for how to run it."""

import os
import resource
import shutil
import signal
import subprocess
import unittest

import suite
from test_sandbox import EXIT, Sandbox, wait_until

V1 = "/sys/fs/cgroup"


class Own(Sandbox):
    """What needs no group (rlimits), and what is refused without one."""

    def test_core_dumps_never(self):
        self.assertEqual(self.shell("ulimit -c; ulimit -Hc").out, b"0\n0\n")

    def test_file_size(self):
        outcome = self.shell("head -c 100000 /dev/zero > file; echo $?",
                             limits={"file_size": 65536})
        self.assertEqual(os.path.getsize(f"{self.ws}/file"), 65536)
        self.assertEqual(outcome.out.split()[-1], b"153")  # SIGXFSZ

    def test_cpu_seconds(self):
        outcome = self.shell("while :; do :; done", limits={"cpu_seconds": 1})
        self.assertEqual((outcome.end["event"], outcome.end["signal"]), ("signal", signal.SIGXCPU))
        outcome = self.shell("trap '' XCPU; while :; do :; done", limits={"cpu_seconds": 1})
        self.assertEqual((outcome.end["event"], outcome.end["signal"]), ("signal", signal.SIGKILL))

    def test_open_files(self):
        outcome = self.shell("ulimit -n; ulimit -Hn; ! ulimit -n 4000", limits={"open_files": 20})
        self.assertEqual(self.succeeds(outcome).out, b"20\n20\n")
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        outcome = self.shell("ulimit -Hn", limits={"open_files": 2**62})
        self.assertEqual(outcome.out, f"{most}\n".encode())

    def test_refused_rather_than_dropped(self):
        """[D11, D12]"""
        for limit in ("memory", "pids", "cpu_percent"):
            self.refused(limit, "no control group directory", limits={limit: 100})
            self.refused(limit, "not a directory below", limits={limit: 100},
                         cgroup_parent=self.ws)
            self.refused(limit, limits={limit: 100}, cgroup_parent=f"{V1}/memory/none/here")
        self.refused("limits.memory", limits={"memory": 0})
        self.refused("memroy", limits={"memroy": 1})


class Version1(Sandbox):
    """Groups of version 1, in a directory that an operator has given to the user."""

    def setUp(self):
        super().setUp()
        if os.getuid() != 0 or not os.path.isdir(f"{V1}/memory"):
            raise unittest.SkipTest("no control groups of version 1, or not root to prepare them")
        self.name = f"codespace-test-{self.marker}"
        self.parents = []
        for controller in ("memory", "pids", "cpu"):
            path = f"{V1}/{controller}/{self.name}"
            os.mkdir(path)
            self.own(path)
            if self.uid is not None:
                for entry in os.listdir(path):
                    os.chown(f"{path}/{entry}", self.uid, self.uid)
            self.parents.append(path)
        self.addCleanup(self.remove)

    def remove(self):
        wait_until(lambda: not self.groups(), "every group is removed")
        for path in self.parents:
            os.rmdir(path)

    def groups(self):
        return [e for path in self.parents for e in os.listdir(path)
                if os.path.isdir(f"{path}/{e}")]

    def limited(self, script, **limits):
        return self.shell(script, limits=limits, cgroup_parent=f"{V1}/memory/{self.name}")

    def test_memory(self):
        code = "x = bytearray({} << 20); print(len(x))"
        outcome = self.limited(f"python3 -S -c '{code.format(200)}'; echo $?",
                               memory=64 << 20)
        self.assertEqual(outcome.out, b"137\n", outcome)
        self.assertGreaterEqual(outcome.end["oom_kills"], 1)
        outcome = self.limited(f"python3 -S -c '{code.format(20)}'", memory=64 << 20)
        self.succeeds(outcome)
        self.assertNotIn("oom_kills", outcome.end)

    def test_killed_for_memory_or_by_somebody(self):
        """[E8] The same signal, told apart by the group."""
        code = "x = bytearray(200 << 20)"
        outcome = self.limited(f"exec python3 -S -c '{code}'", memory=64 << 20)
        self.assertEqual((outcome.end["event"], outcome.end["signal"]), ("signal", 9))
        self.assertEqual(outcome.end["oom_kills"], 1)
        outcome = self.limited("kill -9 $$", memory=64 << 20)
        self.assertEqual((outcome.end["event"], outcome.end["signal"]), ("signal", 9))
        self.assertNotIn("oom_kills", outcome.end)

    def test_pids(self):
        """[D12] For root too, whom RLIMIT_NPROC does not hold."""
        script = ("i=0; while [ $i -lt 50 ]; do sleep 600 & i=$((i+1)); done 2>/dev/null; "
                  "echo never")
        outcome = self.limited(script, pids=20)
        self.assertNotEqual(outcome.out, b"never\n")
        self.assertLessEqual(outcome.end["background"], 19)
        self.succeeds(self.limited("for i in 1 2 3 4 5 6 7 8; do sleep 0.1 & done; wait", pids=9))

    def test_fork_bomb(self):
        """[D12] It reaches the limit and no further, and nothing of it is left."""
        outcome = self.attack("fork_bomb", "29", limits={"pids": 30},
                              cgroup_parent=f"{V1}/memory/{self.name}")
        self.assertIn(outcome.end["background"], (29, 30))  # one more in the command's own place

    def test_swap_is_no_way_around(self):
        """What holds both together has the same value, where the kernel accounts swap."""
        process, control = self.start(self.plan(
            ["sleep", self.marker], limits={"memory": 64 << 20},
            cgroup_parent=f"{V1}/memory/{self.name}"))
        self.wait_started(control)
        group = f"{V1}/memory/{self.name}/{self.groups()[0]}"
        for file in ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes"):
            if os.path.exists(f"{group}/{file}"):
                with open(f"{group}/{file}", encoding="ascii") as f:
                    self.assertEqual(int(f.read()), 64 << 20, file)
        self.end(process, control)
        self.nothing_survives()

    def test_out_of_the_group(self):
        """[D11] Whoever may write to the groups outside may not from inside."""
        moves = " && ".join(f"! echo 0 > {path}/cgroup.procs" for path in self.parents)
        for read in ("minimal", "all"):
            outcome = self.shell(f"{{ {moves}; }} 2>/dev/null", read=read, limits={"pids": 30},
                                 cgroup_parent=f"{V1}/memory/{self.name}")
            self.succeeds(outcome)

    def test_cpu(self):
        """A command that only computes is held back, by the kernel's own count."""
        process, control = self.start(self.plan(
            ["sh", "-c", f"while :; do :; done; {self.marker}"], limits={"cpu_percent": 10},
            cgroup_parent=f"{V1}/memory/{self.name}"))
        self.wait_started(control)
        group = f"{V1}/cpu/{self.name}/{self.groups()[0]}"

        def held_back():
            with open(f"{group}/cpu.stat", encoding="ascii") as f:
                return int(dict(line.split() for line in f)["nr_throttled"])

        with open(f"{group}/cpu.cfs_quota_us", encoding="ascii") as f:
            self.assertEqual(int(f.read()), 10000)
        wait_until(held_back, "the loop is held back")
        self.end(process, control)
        self.nothing_survives()

    def test_groups_go_with_the_sandbox(self):
        process, control = self.start(self.plan(
            ["sleep", self.marker], limits={"memory": 64 << 20, "pids": 10},
            cgroup_parent=f"{V1}/memory/{self.name}"))
        self.wait_started(control)
        self.assertEqual(len(self.groups()), 2)
        process.kill()
        self.end(process, control)
        self.nothing_survives()
        wait_until(lambda: not self.groups(), "the groups are gone")

    def test_stale_groups_are_removed(self):
        for path in self.parents[:1]:
            os.mkdir(f"{path}/codespace-{2**22 - 1}")
            self.own(f"{path}/codespace-{2**22 - 1}")
        self.succeeds(self.limited("true", memory=64 << 20))
        wait_until(lambda: not self.groups(), "the stale group is gone")

    def test_group_vanishes_after_the_plan(self):
        """Nothing runs without its limit."""
        plan = self.plan(["touch", "ran"], limits={"pids": 10},
                         cgroup_parent=f"{V1}/memory/{self.name}")
        os.rmdir(f"{V1}/pids/{self.name}")
        outcome = self.run_plan(plan)
        self.assertEqual((outcome.end["event"], outcome.end["code"]), ("failed", EXIT["limits"]))
        self.assertEqual(os.listdir(self.ws), [])
        os.mkdir(f"{V1}/pids/{self.name}")


class Version2(Sandbox):
    """As far as this machine has controllers of version 2; else only what is refused."""

    def test_controller_that_is_not_enabled(self):
        """[D11]"""
        fake = os.path.join(self.base, "group")
        os.mkdir(fake)
        self.own(fake)
        for name, text in (("cgroup.controllers", "memory pids\n"),
                           ("cgroup.subtree_control", "pids\n")):
            with open(f"{fake}/{name}", "w", encoding="utf-8") as f:
                f.write(text)
        self.refused("memory", "cgroup.subtree_control", limits={"memory": 1 << 30},
                     cgroup_parent=fake)

    def test_plan_for_version_2(self):
        """The files of version 2 are written in a new group, which is told when it cannot be."""
        fake = os.path.join(self.base, "group")
        os.mkdir(fake)
        self.own(fake)
        for name in ("cgroup.controllers", "cgroup.subtree_control"):
            with open(f"{fake}/{name}", "w", encoding="utf-8") as f:
                f.write("cpu memory pids\n")
        plan = self.plan(["touch", "ran"], limits={"memory": 1 << 30, "cpu_percent": 150},
                         cgroup_parent=fake)
        outcome = self.run_plan(plan)
        self.assertEqual((outcome.end["event"], outcome.end["code"]), ("failed", EXIT["limits"]))
        self.assertIn("memory.max", outcome.end["message"])
        self.assertEqual(sorted(os.listdir(fake)), ["cgroup.controllers", "cgroup.subtree_control"])
        self.assertEqual(os.listdir(self.ws), [])


class Version2Mounted(Sandbox):
    """[D11] A real hierarchy of version 2 without controllers, as hybrid machines have it."""

    def setUp(self):
        super().setUp()
        if os.getuid() != 0:
            raise unittest.SkipTest("not root, to prepare control groups")
        self.parent = f"{self.hierarchy()}/codespace-test-{self.marker}"
        os.mkdir(self.parent)
        self.addCleanup(os.rmdir, self.parent)
        for path in (self.parent, f"{self.parent}/cgroup.procs"):
            self.own(path)

    def hierarchy(self):
        with open("/proc/mounts", encoding="utf-8") as mounts:
            for words in map(str.split, mounts):
                if words[2] == "cgroup2":
                    return words[1]
        place = os.path.join(self.base, "groups")
        os.mkdir(place)
        subprocess.run(["mount", "-t", "cgroup2", "none", place], check=True)
        self.addCleanup(subprocess.run, ["umount", place], check=True)
        return place

    def enabled(self):
        with open(f"{self.parent}/cgroup.controllers", encoding="ascii") as f:
            return f.read().split()

    def test_what_is_not_there_is_refused(self):
        for limit, controller in (("memory", "memory"), ("pids", "pids"), ("cpu_percent", "cpu")):
            if controller in self.enabled():
                continue
            self.refused(limit, "cgroup.subtree_control", limits={limit: 100},
                         cgroup_parent=self.parent)

    def as_user(self, **extra):
        """The wrapper below becomes the user itself."""
        if self.helper.endswith("-lied-to"):
            uid, self.uid = self.uid, None
            try:
                return super().as_user(**extra)
            finally:
                self.uid = uid
        return super().as_user(**extra)

    def lie(self):
        """From now on `prepare` believes that every controller is there."""
        text = os.path.join(self.base, "controllers")
        with open(text, "w", encoding="ascii") as f:
            f.write("cpu memory pids\n")
        user = "" if self.uid is None else f"setpriv --reuid={self.uid} --regid={self.uid} --clear-groups "
        script = f"{self.helper}-lied-to"
        with open(script, "w", encoding="utf-8") as f:
            f.write(f"#!/bin/sh\nexec unshare -m sh -c 'mount --bind {text} "
                    f"{self.parent}/cgroup.subtree_control && exec {user}{self.helper} \"$@\"' "
                    "sh \"$@\"\n")
        os.chmod(script, 0o755)
        self.helper = script

    def test_nothing_runs_when_a_limit_cannot_be_written(self):
        """The group is made, its file is not there: refused, and the group is gone again."""
        self.lie()
        for limit, file in (("memory", "memory.max"), ("pids", "pids.max"),
                            ("cpu_percent", "cpu.max")):
            outcome = self.run_plan(self.plan(["touch", "ran"], limits={limit: 100},
                                              cgroup_parent=self.parent))
            self.assertEqual((outcome.end["event"], outcome.end["code"]),
                             ("failed", EXIT["limits"]), outcome)
            self.assertIn(file, outcome.end["message"])
            self.assertEqual([e for e in os.listdir(self.parent)
                              if os.path.isdir(f"{self.parent}/{e}")], [])
        self.assertEqual(os.listdir(self.ws), [])


suite.main(Own, Version1, Version2, Version2Mounted)
