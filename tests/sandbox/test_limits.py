#!/usr/bin/env python3
"""Limits of a command's resources, held or refused. See suite.py for how to run it."""

import contextlib
import os
import resource
import shutil
import signal
import subprocess
import unittest

import suite
from test_sandbox import EXIT, Sandbox, descendants, wait_until

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

    def test_data(self):
        ask = "ulimit -d; ulimit -Hd; head -c 1 /dev/zero | tail -c 67108864 | wc -c"
        outcome = self.shell(ask, limits={"data": 32 << 20})
        self.assertEqual(self.succeeds(outcome).out.split()[:2], [b"32768", b"32768"])
        outcome = self.shell("x=$(head -c 100000000 /dev/zero | tr '\\0' x); echo ${#x}",
                             limits={"data": 32 << 20})
        self.assertNotIn(b"100000000", outcome.out)

    def test_refused_rather_than_dropped(self):
        """[D11, D12]"""
        for limit in ("memory", "pids", "cpu_percent"):
            self.refused(limit, "no control group directory", limits={limit: 100})
            self.refused(limit, "not a directory below", limits={limit: 100},
                         cgroup_parent=self.ws)
            self.refused(limit, limits={limit: 100}, cgroup_parent=f"{V1}/memory/none/here")
        self.refused("limits.memory", limits={"memory": 0})
        self.refused("memroy", limits={"memroy": 1})


class Groups:
    """What holds in either version, in directories that an operator has given to the user. A version
    says which they are (self.parents), the one that is told to the sandbox (self.parent), and the
    directory and the file of a limit."""

    def remove(self):
        wait_until(lambda: not self.groups(), "every group is removed")
        for path in self.parents:
            os.rmdir(path)

    def groups(self):
        return [e for path in self.parents for e in os.listdir(path)
                if e.startswith("codespace-") and os.path.isdir(f"{path}/{e}")]

    def asked(self, **limits):
        return {"limits": limits, "cgroup_parent": self.parent}

    def limited(self, script, **limits):
        return self.shell(script, **self.asked(**limits))

    def begin(self, *argv, **limits):
        process, control = self.start(self.plan(argv, **self.asked(**limits)))
        self.wait_started(control)
        return process, control

    def of_limit(self, controller):
        """The group of the one command that runs."""
        return f"{self.directory_of(controller)}/{self.groups()[0]}"

    def number(self, path):
        with open(path, encoding="ascii") as f:
            return int(f.read().split()[0])

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
        self.assertEqual([d["rule"] for d in outcome.end["denials"]], ["limit.pids"])
        outcome = self.limited("for i in 1 2 3 4 5 6 7 8; do sleep 0.1 & done; wait", pids=9)
        self.assertEqual(self.succeeds(outcome).end.get("denials", []), [])

    def test_fork_bomb(self):
        """[D12] It reaches the limit and no further, and nothing of it is left."""
        outcome = self.attack("fork_bomb", "29", **self.asked(pids=30))
        self.assertIn(outcome.end["background"], (29, 30))  # one more in the command's own place
        self.assertGreaterEqual(outcome.end["denials"][0]["count"], 1)

    def test_both_are_told(self):
        outcome = self.limited("python3 -S -c 'x = bytearray(200 << 20)'; i=0; "
                               "while [ $i -lt 50 ]; do sleep 600 & i=$((i+1)); done 2>/dev/null",
                               pids=20, memory=64 << 20)
        self.assertEqual(outcome.end["oom_kills"], 1)
        self.assertEqual([d["rule"] for d in outcome.end["denials"]], ["limit.pids"])

    def test_threads_count(self):
        """They are what `pids` counts, too."""
        code = ("import threading\nn = 0\n"
                "try:\n"
                "    while n < 100: threading.Thread(target=threading.Event().wait, daemon=True)"
                ".start(); n += 1\n"
                "except RuntimeError: pass\n"
                "print(n)")
        outcome = self.run_command(["python3", "-S", "-c", code], **self.asked(pids=20))
        self.assertEqual(self.succeeds(outcome).out, b"19\n")

    def test_out_of_the_group(self):
        """[D11] Whoever may write to the groups outside may not from inside."""
        moves = " && ".join(f"! echo 0 > {path}/cgroup.procs" for path in self.parents)
        for read in ("minimal", "all"):
            outcome = self.shell(f"{{ {moves}; }} 2>/dev/null", read=read, **self.asked(pids=30))
            self.succeeds(outcome)

    def test_cpu(self):
        """A command that only computes is held back, by the kernel's own count."""
        process, control = self.begin("sh", "-c", f"while :; do :; done; {self.marker}",
                                      cpu_percent=10)
        group = self.of_limit("cpu")

        def held_back():
            with open(f"{group}/cpu.stat", encoding="ascii") as f:
                return int(dict(line.split() for line in f)["nr_throttled"])

        self.assertEqual(self.number(f"{group}/{self.CPU_FILE}"), 10000)
        wait_until(held_back, "the loop is held back")
        self.end(process, control)
        self.nothing_survives()

    def ends_without_groups(self, kill):
        process, control = self.begin("sleep", self.marker, memory=64 << 20, pids=10)
        self.assertEqual(len(self.groups()), self.EACH_COMMAND)
        kill(process)
        self.end(process, control)
        self.nothing_survives()
        wait_until(lambda: not self.groups(), "the groups are gone")

    def test_groups_go_with_the_sandbox(self):
        """However it ends: bubblewrap, or everything in the group at once."""
        self.ends_without_groups(lambda process: process.kill())

    def test_groups_go_with_process_one(self):
        def kill(process):
            below = descendants(process.pid)
            self.assertGreaterEqual(len(below), 3)  # bubblewrap, process 1, the command
            os.kill(below[1], signal.SIGKILL)
        self.ends_without_groups(kill)

    def test_groups_go_with_the_runner(self):
        """It is killed: all that is left of it is that its end of the socket is closed."""
        self.ends_without_groups(lambda process: None)

    def test_stale_groups_are_removed(self):
        for path in self.parents[:1]:
            os.mkdir(f"{path}/codespace-{2**22 - 1}")
            self.own(f"{path}/codespace-{2**22 - 1}")
        self.succeeds(self.limited("true", memory=64 << 20))
        wait_until(lambda: not self.groups(), "the stale group is gone")

    def test_group_vanishes_after_the_plan(self):
        """Nothing runs without its limit."""
        plan = self.plan(["touch", "ran"], **self.asked(pids=10))
        with self.without(self.directory_of("pids")):
            outcome = self.run_plan(plan)
        self.assertEqual((outcome.end["event"], outcome.end["code"]), ("failed", EXIT["limits"]))
        self.assertIn(self.directory_of("pids"), outcome.end["message"])
        self.assertEqual(os.listdir(self.ws), [])


class Version1(Groups, Sandbox):
    CPU_FILE = "cpu.cfs_quota_us"
    EACH_COMMAND = 2  # one under each controller

    def setUp(self):
        super().setUp()
        if os.getuid() != 0 or not os.path.isdir(f"{V1}/memory"):
            raise unittest.SkipTest("no control groups of version 1, or not root to prepare them")
        self.name = f"codespace-test-{self.marker}"
        self.parent = f"{V1}/memory/{self.name}"
        self.parents = []
        for controller in ("memory", "pids", "cpu"):
            path = self.directory_of(controller)
            os.mkdir(path)
            self.own(path)
            if self.uid is not None:
                for entry in os.listdir(path):
                    os.chown(f"{path}/{entry}", self.uid, self.uid)
            self.parents.append(path)
        self.addCleanup(self.remove)

    def directory_of(self, controller):
        return f"{V1}/{controller}/{self.name}"

    @contextlib.contextmanager
    def without(self, directory):
        os.rmdir(directory)
        yield
        os.mkdir(directory)

    def test_swap_is_no_way_around(self):
        """What holds both together has the same value, where the kernel accounts swap."""
        process, control = self.begin("sleep", self.marker, memory=64 << 20)
        group = self.of_limit("memory")
        for file in ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes"):
            if os.path.exists(f"{group}/{file}"):
                self.assertEqual(self.number(f"{group}/{file}"), 64 << 20, file)
        self.end(process, control)
        self.nothing_survives()


def version_2_with_controllers():
    """Where groups of version 2 can hold something; None where they cannot (a hybrid machine)."""
    with open("/proc/mounts", encoding="utf-8") as mounts:
        for words in map(str.split, mounts):
            if words[2] == "cgroup2" and os.getuid() == 0:
                with open(f"{words[1]}/cgroup.subtree_control", encoding="ascii") as f:
                    if {"cpu", "memory", "pids"} <= set(f.read().split()):
                        return words[1]
    return None


class Version2Held(Groups, Sandbox):
    """[D11] As an operator delegates it: a directory of the user's, with the server in a group of its
    own below it. We are in the server's place."""

    CPU_FILE = "cpu.max"
    EACH_COMMAND = 1

    def setUp(self):
        super().setUp()
        self.top = version_2_with_controllers()
        self.parent = f"{self.top}/codespace-test-{self.marker}"
        self.parents = [self.parent]
        self.place = f"{self.parent}/server"
        for path in (self.parent, self.place):
            os.mkdir(path)
            self.own(path)
        with open(f"{self.parent}/cgroup.subtree_control", "w", encoding="ascii") as f:
            f.write("+cpu +memory +pids")
        for path in (f"{self.parent}/cgroup.procs", f"{self.place}/cgroup.procs"):
            self.own(path)
        with open("/proc/self/cgroup", encoding="ascii") as f:
            self.before = f"{self.top}{dict(l.strip().split('::') for l in f if '::' in l)['0']}"
        self.addCleanup(self.remove)
        self.addCleanup(lambda: os.rmdir(self.place))
        self.addCleanup(self.move, self.before)
        self.move(self.place)

    def move(self, group):
        with open(f"{group}/cgroup.procs", "w", encoding="ascii") as f:
            f.write("0")

    def directory_of(self, _controller):
        return self.parent

    @contextlib.contextmanager
    def without(self, _directory):
        self.move(self.before)
        os.rmdir(self.place)
        os.rmdir(self.parent)
        yield
        os.mkdir(self.parent)
        os.mkdir(self.place)
        self.move(self.place)

    def test_swap_is_no_way_around(self):
        process, control = self.begin("sleep", self.marker, memory=64 << 20)
        group = self.of_limit("memory")
        self.assertEqual(self.number(f"{group}/memory.max"), 64 << 20)
        if os.path.exists(f"{group}/memory.swap.max"):
            self.assertEqual(self.number(f"{group}/memory.swap.max"), 0)
        self.end(process, control)
        self.nothing_survives()

    def nothing_ran(self, outcome, *words):
        self.assertEqual((outcome.end["event"], outcome.end["code"]), ("failed", EXIT["limits"]),
                         outcome)
        for word in words:
            self.assertIn(word, outcome.end["message"])
        self.assertEqual(os.listdir(self.ws), [])
        self.assertEqual(self.groups(), [])

    def test_a_server_outside_of_what_it_was_given(self):
        """A user may move processes within what is his, not into it; root may."""
        self.move(self.before)
        outcome = self.limited("touch ran", pids=10)
        if self.uid is None:
            self.succeeds(outcome)
        else:
            self.nothing_ran(outcome, "cgroup.procs", "Permission denied", "start the server below")

    def test_a_server_in_the_directory_itself(self):
        """A group with processes gives no controllers to groups below: refused with the way out."""
        with open(f"{self.parent}/cgroup.subtree_control", "w", encoding="ascii") as f:
            f.write("-cpu -memory -pids")
        self.move(self.parent)
        for limit in ("memory", "pids", "cpu_percent"):
            self.refused(limit, "cgroup.subtree_control", "no process may be in",
                         **self.asked(**{limit: 1 << 20}))
        self.move(self.place)

    def test_a_group_of_threads(self):
        """Under one no processes can be entered; its files are there all the same."""
        above, threads = f"{self.parent}/above", f"{self.parent}/above/threads"
        for path, words in ((above, {}), (threads, {"cgroup.type": "threaded"})):
            os.mkdir(path)
            self.own(path)
            self.addCleanup(os.rmdir, path)
            for file, text in {**words, "cgroup.subtree_control": "+pids"}.items():
                with open(f"{path}/{file}", "w", encoding="ascii") as f:
                    f.write(text)
        self.own(f"{threads}/cgroup.procs")
        outcome = self.shell("touch ran", limits={"pids": 10}, cgroup_parent=threads)
        self.nothing_ran(outcome, "cgroup.procs", "a group of threads")
        self.assertEqual([e for e in os.listdir(threads) if os.path.isdir(f"{threads}/{e}")], [])

    def test_memory_of_a_group_above(self):
        """[E8] Its limit is not the command's own, and is not told as that."""
        above = f"{self.parent}/above"
        os.mkdir(above)
        self.own(above)
        self.addCleanup(os.rmdir, above)
        for file, text in (("memory.max", str(64 << 20)), ("cgroup.subtree_control", "+memory")):
            with open(f"{above}/{file}", "w", encoding="ascii") as f:
                f.write(text)
        outcome = self.run_command(["python3", "-S", "-c", "x = bytearray(200 << 20)"],
                                   limits={"memory": 1 << 30}, cgroup_parent=above)
        self.assertEqual((outcome.end["event"], outcome.end["signal"]), ("signal", 9))
        self.assertNotIn("oom_kills", outcome.end)

    def test_no_more_groups(self):
        """The operator's own bound on their number."""
        with open(f"{self.parent}/cgroup.max.descendants", "w", encoding="ascii") as f:
            f.write("1")
        self.nothing_ran(self.limited("touch ran", pids=10), self.parent)


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


# One machine has controllers of one version only. CI's has version 1; tools/try-kernel runs the other.
held = Version1 if version_2_with_controllers() is None else Version2Held
suite.main(Own, held, Version2, Version2Mounted)
