#!/usr/bin/env python3
"""What a command leaves behind and is asked to keep, and commands with a network each, cold and warm.
Run as: test_keep.py HELPER HOSTILE [unittest arguments]

The end of the command and the end of what it left are two lines on the control socket; between them
process 1 lives on. Everything here is run cold and by a zygote; what is about networks of their own
by a zygote only, because a cold start never has another one.
"""

import json
import os
import signal
import subprocess
import sys
import unittest

import test_sandbox as cold
import test_warm as warm
from test_sandbox import Sandbox, alive, wait_until
from warm_client import message


class Keep(Sandbox):
    def begin(self, script, **options):
        """(process, control, the line of the command's end)."""
        process, control = self.start(self.plan(["sh", "-c", script], background="keep", **options))
        self.addCleanup(self.let_go, process, control)
        self.wait_started(control)
        return process, control, self.line(control)

    def let_go(self, process, control):
        control.close()
        wait_until(lambda: not alive(self.marker), "the sandbox's processes are gone")
        for f in (process.stdout, process.stderr):
            f.close()
        process.kill()
        process.wait()

    def line(self, control):
        text = b""
        while not text.endswith(b"\n"):
            data = control.recv(1)
            self.assertNotEqual(data, b"", "it closed before it told")
            text = (text + data).lstrip(b"\n")  # the receipt is an empty line
        return json.loads(text)

    def signal(self, control, number):
        control.sendall(b'{"op":"signal","signal":%d}\n' % number)

    def over(self, control):
        end = self.line(control)
        self.assertEqual(end["event"], "over", end)
        self.assertEqual(control.recv(1), b"", "a line after the last one")
        return end

    def test_it_lives_on_and_ends_by_itself(self):
        process, control, end = self.begin(
            f"mkfifo f; (read x <f; touch late; exec sleep 0) & echo out; exit 3")
        self.assertEqual((end["event"], end["code"], end["kept"]), ("exit", 3, True))
        self.assertEqual(end["background"], 1)
        self.assertEqual(process.stdout.readline(), b"out\n")
        with open(f"{self.ws}/f", "w", encoding="ascii") as f:
            f.write("go\n")
        self.assertNotIn("kept", self.over(control))
        self.assertTrue(os.path.exists(f"{self.ws}/late"))

    def test_sessions_and_orphans_are_counted(self):
        """[E1, E2] Whatever they did to get away from the command."""
        mark = self.marker
        _, control, end = self.begin(
            f"setsid sleep {mark} & (setsid sh -c 'sleep {mark} & sleep {mark} & wait' &) ; "
            f"while [ $(pgrep -fc '^sleep {mark}') -lt 3 ]; do :; done")
        self.assertEqual((end["background"], len(alive(mark))), (4, 4), end)
        self.assertEqual(sorted(p["name"] for p in end["background_pids"]),
                         ["sh", "sleep", "sleep", "sleep"])
        self.signal(control, signal.SIGKILL)
        self.over(control)
        self.assertEqual(alive(mark), [])

    def test_signals_go_to_all_that_is_left(self):
        _, control, end = self.begin(
            f"mkfifo f; for i in 1 2; do setsid sh -c 'trap \"echo x >>got; exit\" TERM; echo >f; "
            f"while :; do sleep 0.01; done' & until read x <f; do :; done; done")
        # (the end of what the first one wrote is no word of the second)
        self.assertTrue(end["kept"])
        self.signal(control, signal.SIGTERM)
        self.over(control)
        with open(f"{self.ws}/got", encoding="ascii") as f:
            self.assertEqual(f.read(), "x\nx\n")

    def test_a_signal_is_an_end_like_others(self):
        _, control, end = self.begin(f"sleep {self.marker} & kill -9 $$")
        self.assertEqual((end["event"], end["signal"], end["kept"]), ("signal", 9, True))
        self.signal(control, signal.SIGKILL)
        self.over(control)

    def test_nothing_left_is_one_line(self):
        _, control, end = self.begin("sleep 0 & wait; exit 2")
        self.assertEqual((end["event"], end["code"]), ("exit", 2))
        self.assertNotIn("kept", end)
        self.assertEqual(control.recv(1), b"")

    def test_zombies_do_not_count(self):
        _, control, end = self.begin(
            f"(sleep 0 & sleep 0 & exec sleep {self.marker}) & (sleep 0 &) ; "
            # until the last one has executed, and all others are zombies or gone
            "until [ \"$(ps -e -o stat= -o comm= | awk '!/^Z/ { n[$2]++ } "
            "END { print n[\"sh\"] + 0, n[\"sleep\"] + 0 }')\" = '2 1' ]; do :; done")
        self.assertEqual(end["background"], 1, end)
        self.signal(control, signal.SIGKILL)
        self.over(control)

    def test_the_runner_going_ends_it(self):
        """[E5]"""
        _, control, end = self.begin(f"setsid sleep {self.marker} & :")
        self.assertTrue(end["kept"])
        wait_until(lambda: alive(self.marker), "what was left runs")
        control.close()
        wait_until(lambda: not alive(self.marker), "the sandbox's processes are gone")

    def test_protected_names_are_taken_away_at_the_last_end(self):
        _, control, end = self.begin(f"mkfifo f; (read x <f; mkdir .codex) & :")
        self.assertEqual(end["removed"], [])
        with open(f"{self.ws}/f", "w", encoding="ascii") as f:
            f.write("go\n")
        self.assertEqual(self.over(control)["removed"], [".codex"])
        self.assertFalse(os.path.exists(f"{self.ws}/.codex"))

    def test_the_rest_cannot_reach_process_1(self):
        """[A28] The walls stand for what is left as for the command."""
        _, control, end = self.begin(
            "mkfifo f; (read x <f; kill -9 1; kill -PWR 1; cat /proc/1/environ; "
            "echo '{\"event\":\"over\"}' >/proc/1/fd/3; unshare -n true; echo $? >said) 2>/dev/null & :")
        with open(f"{self.ws}/f", "w", encoding="ascii") as f:
            f.write("go\n")
        last = self.line(control)
        self.assertEqual(last["event"], "over")
        self.assertEqual(last["denials"][0]["rule"], "filter.namespace")
        with open(f"{self.ws}/said", encoding="ascii") as f:
            self.assertNotEqual(f.read(), "0\n")

    def test_without_being_asked_nothing_is_kept(self):
        outcome = self.shell(f"sleep {self.marker} & :")
        self.assertNotIn("kept", outcome.end)
        self.assertEqual(outcome.end["background"], 1)


class OwnNetwork(warm.Warm):
    """A zygote whose commands have a network namespace each."""

    def request(self, argv, **options):
        options.setdefault("network_scope", "command")
        return super().request(argv, **options)


class Networks(OwnNetwork):
    def test_loopbacks_are_apart(self):
        server = ("import socket; s = socket.create_server(('127.0.0.1', 8765)); "
                  "print('up', flush=True); s.accept()")
        client = ("import socket\ntry: socket.create_connection(('127.0.0.1', 8765))\n"
                  "except ConnectionRefusedError: print('refused')")
        zygote = self.new_zygote()
        first, control = self.hand(zygote, message(["python3", "-c", server], self.ws))
        self.assertEqual(first.stdout.readline(), b"up\n")
        self.assertEqual(self.run_in(zygote, ["python3", "-c", client]).out, b"refused\n")
        control.close()
        first.stdout.close()
        first.stderr.close()

    def test_names_of_unix_sockets_are_apart(self):
        """Abstract ones belong to a network namespace."""
        script = ("import socket; s = socket.socket(socket.AF_UNIX); s.bind('\\x00%s'); "
                  "print('bound', flush=True); input()" % self.marker)
        zygote = self.new_zygote()
        first, control = self.hand(zygote, message(["python3", "-c", script], self.ws),
                                   stdin=subprocess.PIPE)
        self.assertEqual(first.stdout.readline(), b"bound\n")
        other, second = self.hand(zygote, message(["python3", "-c", script], self.ws),
                                  stdin=subprocess.PIPE)
        self.assertEqual(other.stdout.readline(), b"bound\n")
        self.read_all(other, second)
        self.read_all(first, control)

    def test_the_loopback_is_up_and_all_there_is(self):
        zygote = self.new_zygote()
        script = ("import os, socket; a = socket.create_server(('127.0.0.1', 0)); "
                  "socket.create_connection(a.getsockname()); "
                  "print(socket.if_nameindex(), os.readlink('/proc/self/ns/net'))")
        told = [self.run_in(zygote, ["python3", "-c", script]).out for _ in range(2)]
        self.assertEqual([t.split(b")]")[0] for t in told], [b"[(1, 'lo'"] * 2)
        self.assertNotEqual(told[0], told[1])

    def test_commands_have_no_capability(self):
        zygote = self.new_zygote()
        out = self.shell_in(zygote, "grep Cap /proc/self/status").out.decode()
        self.assertEqual([int(line.split()[1], 16) for line in out.splitlines()], [0] * 5, out)

    def test_zygote_holds_one_more(self):
        zygote = self.new_zygote()
        with open(f"/proc/{zygote.pid()}/status", encoding="ascii") as f:
            status = dict(line.split(":\t", 1) for line in f)
        allowed = 1 << 21 | 1 << 8 | 1 << 31 | 1 << 12  # and NET_ADMIN of its own namespace
        self.assertEqual(int(status["CapEff"], 16) & ~allowed, 0)


def load_tests(loader, _tests, _pattern):
    suite = unittest.TestSuite()
    for case in (Keep, warm.repeated(Keep), Networks, warm.repeated(cold.Inside, OwnNetwork)):
        suite.addTests(loader.loadTestsFromTestCase(case))
        if os.getuid() == 0:
            other = type(case.__name__ + "AsUser", (case,), {"uid": 1000})
            suite.addTests(loader.loadTestsFromTestCase(other))
    return suite


if __name__ == "__main__":
    cold.HELPER, cold.HOSTILE = (os.path.abspath(path) for path in sys.argv[1:3])
    os.umask(0o022)
    program = unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2, exit=False)
    bad = len(program.result.failures) + len(program.result.errors)
    print(f"codespace-tests: {program.result.testsRun - bad} passed, {bad} failed, 0 skipped")
    sys.exit(bad != 0)
