#!/usr/bin/env python3
"""What was refused, told by the layer that refused it (G9, G10). See suite.py for how to run it; a
fourth argument is the program that runs another one under a filter.
"""

import os
import subprocess
import sys

import suite
from test_sandbox import Sandbox, wait_until

DENIED = os.path.abspath(sys.argv.pop(3))
PYTHON = ["python3", "-S", "-c"]
CALL = "import ctypes; c = ctypes.CDLL(None, use_errno=True).syscall\n"


def numbers():
    """The numbers of this machine, by the names of its headers."""
    done = subprocess.run(["cc", "-E", "-dM", "-include", "sys/syscall.h", "-xc", "/dev/null"],
                          capture_output=True, text=True, check=True)
    words = (line.split() for line in done.stdout.splitlines() if " __NR_" in line)
    return {name[5:]: int(number) for _, name, number in words if number.isdigit()}


NR = numbers()


class Denials(Sandbox):
    def told(self, outcome):
        return {(d["rule"], d["what"]): d["count"] for d in outcome.end.get("denials", [])}

    def calls(self, code, **options):
        return self.run_command(PYTHON + [CALL + code], **options)

    def test_nothing_refused_nothing_told(self):
        """[G9] Words of the output are no denial."""
        outcome = self.shell("echo Permission denied: sandbox, seccomp; exit 1")
        self.assertEqual(outcome.end["code"], 1)
        self.assertNotIn("denials", outcome.end)

    def test_each_kind_with_its_count(self):
        """[G10]"""
        outcome = self.calls(
            f"for i in range(3): c({NR['ptrace']}, 16, 1, 0, 0)\n"
            f"c({NR['io_uring_setup']}, 1, 0)\n"
            f"c({NR['unshare']}, 0x10000000)\n"
            f"c({NR['unshare']}, 0x20000)\n"
            f"c({NR['keyctl']}, 0, 0)\n"
            "import socket\n"
            "for family, kind in ((40, 1), (38, 5), (16, 3)):\n"
            "    try: socket.socket(family, kind, 15 if family == 16 else 0)\n"
            "    except OSError: pass\n")
        self.succeeds(outcome)
        self.assertEqual(self.told(outcome), {
            ("filter.trace", "ptrace"): 3, ("filter.io_uring", "io_uring_setup"): 1,
            ("filter.namespace", "unshare(CLONE_NEWUSER)"): 1,
            ("filter.namespace", "unshare(CLONE_NEWNS)"): 1, ("filter.kernel", "keyctl"): 1,
            ("filter.socket", "socket(AF_VSOCK)"): 1, ("filter.socket", "socket(AF_ALG)"): 1,
            ("filter.socket", "socket(AF_NETLINK)"): 1})

    def test_older_call_is_no_denial(self):
        """clone3 says ENOSYS so that libc takes clone."""
        outcome = self.run_command(PYTHON + [
            "import threading; t = threading.Thread(target=print); t.start(); t.join()"])
        self.succeeds(outcome)
        self.assertNotIn("denials", outcome.end)

    def test_same_errno_as_without_being_observed(self):
        """Every call of the table, once with a listener and once where there cannot be one."""
        code = ("import sys\n"
                f"skip = {{{', '.join(str(NR[n]) for n in ('clone3',))}}}\n"
                f"for nr in {sorted(NR[n] for n in REFUSED if n in NR)}:\n"
                "    ctypes.set_errno(0); r = c(nr, 0, 0, 0, 0, 0, 0)\n"
                "    print(nr, r, ctypes.get_errno())\n")
        seen = self.calls(code)
        self.succeeds(seen)
        hidden = self.under_a_listener(PYTHON + [CALL + code])
        self.succeeds(hidden)
        self.assertEqual(self.told(hidden), {("filter.unobserved", ""): 0})
        self.assertEqual(seen.out, hidden.out)
        self.assertEqual(seen.out.count(b" -1 1\n"), len([n for n in REFUSED if n in NR]))

    def under_a_listener(self, argv, **options):
        """The sandbox inside of something that listens already, as some container engines do."""
        plan = self.plan(argv, **options)
        helper, self.helper = self.helper, self.helper + "-listened"
        with open(self.helper, "w", encoding="utf-8") as f:
            f.write(f"#!/bin/sh\nexec {DENIED} 16 listener -- {helper} \"$@\"\n")
        os.chmod(self.helper, 0o755)
        try:
            return self.run_plan(plan)
        finally:
            self.helper = helper

    def test_many_kinds(self):
        """The list is bounded, and says that it is."""
        code = "".join(f"c({NR[n]}, 0, 0, 0, 0, 0, 0)\n" for n in REFUSED if n in NR)
        told = self.told(self.succeeds(self.calls(code)))
        self.assertEqual(len(told), 16)
        kinds = len([n for n in REFUSED if n in NR])
        self.assertEqual(told[("filter.more", "")], kinds - 15)

    def test_flood(self):
        """A flood of refused calls waits for itself: process 1 still does everything else."""
        flood = (f"import os\n"
                 f"for i in range(8):\n"
                 f"    if os.fork() == 0:\n"
                 f"        while True: c({NR['keyctl']}, 0, 0)\n"
                 f"c({NR['keyctl']}, 0, 0)\n"
                 f"open('ready', 'w')\n"  # at least one was refused
                 f"while True: c({NR['keyctl']}, 0, 0)\n")
        plan = self.plan(PYTHON + [CALL + flood + f"# {self.marker}"])
        process, control = self.start(plan)
        self.wait_started(control)
        wait_until(lambda: os.path.exists(f"{self.ws}/ready"), "the flood runs")
        control.sendall(b'{"op":"signal","signal":15}\n')
        outcome = self.finish(process, control)
        self.assertEqual((outcome.end["event"], outcome.end["signal"]), ("signal", 15))
        self.assertGreater(self.told(outcome)[("filter.kernel", "keyctl")], 0)
        self.nothing_survives()

    def test_flood_from_what_is_left(self):
        """A caller that waits for an answer when everything is killed holds nothing up."""
        code = (f"import os\nfor i in range(8):\n    if os.fork() == 0:\n"
                f"        while True: c({NR['keyctl']}, 0, 0)\n")
        outcome = self.calls(code)
        self.succeeds(outcome)
        self.assertEqual(outcome.end["background"], 8)

    def test_ten_thousand(self):
        """Every one is refused and counted; the list stays as long as its kinds."""
        told = self.told(self.attack("ten_thousand_denials"))
        self.assertEqual(sorted(told.values()), [2000] * 5, told)

    def test_callers_that_die(self):
        """In the middle of a call that waits for its answer."""
        told = self.told(self.attack("killed_in_calls"))
        self.assertEqual(list(told), [("filter.kernel", "keyctl")])

    def test_pointers_decide_nothing(self):
        """Memory that changes, a path longer than PATH_MAX, a pointer to nothing: never permitted."""
        told = self.told(self.attack("calls_with_pointers"))
        self.assertEqual(told, {("filter.mount", "mount"): 2002, ("filter.mount", "umount2"): 2000,
                                ("filter.mount", "pivot_root"): 2000, ("filter.kernel", "bpf"): 1})

    def test_listener_is_out_of_reach(self):
        """[B] A second one cannot be opened, and ours is nowhere to be found."""
        outcome = self.calls(
            "import os, glob\n"
            "class P(ctypes.Structure): _fields_ = [('n', ctypes.c_ushort), ('p', ctypes.c_char_p)]\n"
            "import struct\n"
            "prog = P(1, struct.pack('HBBI', 6, 0, 0, 0x7fff0000))\n"
            f"r = c({NR['seccomp']}, 1, 8, ctypes.byref(prog))\n"
            "assert r < 0 and ctypes.get_errno() == 16, (r, ctypes.get_errno())\n"
            "assert sorted(os.listdir('/proc/self/fd'))[:3] == ['0', '1', '2']\n"
            "for p in glob.glob('/proc/[0-9]*/fd/*'):\n"
            "    try: t = os.readlink(p)\n"
            "    except OSError: continue\n"
            "    assert 'seccomp' not in t and not p.startswith('/proc/1/'), p\n"
            "for n in range(16):\n"
            "    try: os.open(f'/proc/1/fd/{n}', os.O_RDONLY); raise SystemExit('opened')\n"
            "    except OSError: pass\n")
        self.succeeds(outcome)

    def test_debug_is_no_denial(self):
        outcome = self.calls(f"assert c({NR['ptrace']}, 0, 0, 0, 0) == 0\n", debug=True)
        self.succeeds(outcome)
        self.assertNotIn("denials", outcome.end)

    def test_command_that_dies_tells_too(self):
        outcome = self.calls(f"c({NR['keyctl']}, 0, 0)\nimport os; os.kill(os.getpid(), 9)\n")
        self.assertEqual(outcome.end["signal"], 9)
        self.assertEqual(self.told(outcome), {("filter.kernel", "keyctl"): 1})


# As the table of sandbox/filter_gen; clone, unshare, ioctl, socket and personality look at arguments.
REFUSED = """ptrace process_vm_readv process_vm_writev kcmp process_madvise pidfd_getfd setns mount umount2
pivot_root chroot fsopen fsconfig fsmount fspick open_tree move_mount mount_setattr quotactl quotactl_fd
swapon swapoff open_by_handle_at name_to_handle_at fanotify_init lookup_dcookie io_uring_setup
io_uring_enter io_uring_register bpf perf_event_open userfaultfd add_key request_key keyctl reboot
kexec_load kexec_file_load init_module finit_module delete_module acct syslog iopl ioperm""".split()

suite.main(Denials)
