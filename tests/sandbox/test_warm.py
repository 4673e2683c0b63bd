#!/usr/bin/env python3
"""The same commands and the same hostile program as in test_sandbox.py, started warm: by a zygote.
Run as: test_warm.py HELPER HOSTILE [unittest arguments]

Every test of test_sandbox.py that starts a command the runner's way is run again here with a client
of wire/warm in place of the start (class Warm); what it expects is what it expects there. Below are
the tests of what only a zygote can get wrong.
"""

import concurrent.futures
import errno
import fcntl
import inspect
import json
import os
import pty
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

import test_sandbox as cold
from test_sandbox import EXIT, LIMIT, Outcome, Sandbox, alive, wait_until
from warm_client import Zygote, message, open_fds

# Its row of src/sandbox/exits.h; nothing but a fault of ours gives it.
INTERNAL = 197

# Of a request, what belongs to the command and not to the zygote.
COMMAND = ("command_cwd", "tty", "env", "background")


class Ticket:
    """What plan() gives in place of a path: a zygote that was not started, and a command."""

    def __init__(self, plan, data):
        self.plan, self.data = plan, data


class Process:
    """As much of subprocess.Popen as the tests use, for a command that is not our child."""

    def __init__(self, zygote, ours):
        self.zygote = zygote
        self.pid = zygote.process.pid
        self.stdin, self.stdout, self.stderr = ours
        self.returncode = None

    def kill(self):
        self.zygote.process.kill()

    def poll(self):
        return self.zygote.process.poll()

    def wait(self, timeout=LIMIT):
        self.zygote.control.close()
        self.returncode = self.zygote.process.wait(timeout)
        return self.returncode

    def communicate(self, timeout=LIMIT):
        if self.stdin:
            self.stdin.close()
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            parts = [pool.submit(f.read) if f else None for f in (self.stdout, self.stderr)]
            out, err = (part.result(timeout) if part else None for part in parts)
        for f in (self.stdout, self.stderr):
            if f:
                f.close()
        self.wait(timeout)
        return out, err


class Warm(Sandbox):
    """A Sandbox whose commands are handed to a zygote of their own."""

    def zygote_request(self, argv, **options):
        request = json.loads(self.request(argv, **options))
        command = {key: request.pop(key, None) for key in COMMAND}
        request.update(command_cwd=self.ws, argv=["-"], zygote=True)
        data = message(argv, command["command_cwd"], command["env"] or (), command["tty"],
                       command["background"] == "keep")
        return json.dumps(request), data

    def plan(self, argv, env=None, **options):
        request, data = self.zygote_request(argv, **options)
        answer = self.ask(request, env)
        self.assertEqual(answer["type"], "prepared", answer)
        return Ticket(answer["plan_path"], data)

    def zygote(self, plan, **popen):
        for name in ("stdin", "stdout", "stderr"):
            popen.pop(name, None)
        zygote = Zygote(self.helper, plan, LIMIT, self.as_user(**popen))
        self.addCleanup(self.end_zygote, zygote)
        return zygote

    def children_of(self, pid):
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
            return f.read().split()

    def children(self, zygote):
        return self.children_of(zygote.pid())

    def those_that_wait(self, zygote):
        """Each process 1 that is ready for a command, and what is to become the command."""
        waiting = self.children(zygote)
        return waiting + [pid for one in waiting for pid in self.children_of(one)]

    def waits(self, pid):
        """Not getting ready any more; one that has gone does not."""
        try:
            return os.sched_getscheduler(int(pid)) == os.SCHED_OTHER
        except ProcessLookupError:
            return False

    def all_wait(self, zygote):
        wait_until(lambda: len(pids := self.children(zygote)) == 4 and
                   all(self.waits(pid) for pid in pids), "four children wait")

    def stop(self, pid):
        os.kill(pid, signal.SIGSTOP)

        def stopped():
            with open(f"/proc/{pid}/stat", encoding="ascii") as f:
                return f.read().rsplit(")", 1)[1].split()[0] == "T"
        wait_until(stopped, "it has stopped")

    def end_zygote(self, zygote):
        zygote.control.close()
        zygote.process.kill()
        zygote.process.wait(LIMIT)

    def new_zygote(self, **options):
        """One that is ready."""
        zygote = self.zygote(self.plan(["-"], **options).plan)
        self.assertEqual(zygote.event(), {"event": "started"})
        return zygote

    def stream(self, wish, write):
        """(our end or None, theirs, whether theirs is ours to close)"""
        if wish == subprocess.DEVNULL:
            return None, os.open("/dev/null", os.O_RDWR), True
        if wish != subprocess.PIPE:
            return None, wish, False
        reader, writer = os.pipe()
        if write:
            return os.fdopen(reader, "rb"), writer, True
        return os.fdopen(writer, "wb"), reader, True

    def hand(self, zygote, data, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
             stderr=subprocess.PIPE):
        streams = [self.stream(wish, i > 0) for i, wish in enumerate((stdin, stdout, stderr))]
        control = zygote.command(data, *(theirs for _, theirs, _ in streams))
        self.addCleanup(control.close)
        for _, theirs, owned in streams:
            if owned:
                os.close(theirs)
        return Process(zygote, [ours for ours, _, _ in streams]), control

    def start(self, plan, **popen):
        streams = {name: popen.pop(name) for name in ("stdin", "stdout", "stderr") if name in popen}
        return self.hand(self.zygote(plan.plan, **popen), plan.data, **streams)

    def read_all(self, process, control):
        """The whole of a command, without ending its zygote."""
        if process.stdin:
            process.stdin.close()
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            parts = [pool.submit(f.read) if f else None for f in (process.stdout, process.stderr)]
            text = b""
            while data := control.recv(65536):
                text += data
            out, err = (part.result(LIMIT) if part else None for part in parts)
        for f in (process.stdout, process.stderr):
            if f:
                f.close()
        return self.outcome(text, out, err)

    def outcome(self, text, out, err):
        receipt, newline, rest = text.partition(b"\n")
        if receipt == b"" and newline:
            text = rest
        outcome = Outcome(text, out, err, None)
        end = outcome.end
        if end.get("event") == "exec_failed":
            outcome.status = 127 if end["errno"] == errno.ENOENT else 126
        elif end:
            outcome.status = end["code"] if "code" in end else 128 + end["signal"]
        return outcome

    def finish(self, process, control):
        outcome = self.read_all(process, control)
        process.wait()
        return outcome

    def run_in(self, zygote, argv, cwd=None, env=(), **streams):
        return self.read_all(*self.hand(zygote, message(argv, cwd or self.ws, env), **streams))

    def shell_in(self, zygote, script, **options):
        return self.run_in(zygote, ["sh", "-c", script], **options)

    def wait_started(self, control):
        self.assertEqual(control.recv(1), b"\n", "no receipt")
        super().wait_started(control)


# Tests that are about something else than a command that a runner starts: the person's way (alone),
# requests and plans as such, the whole chain being one process, and what a zygote refuses.
OTHER = re.compile(r"self\.(alone|refused|ask|denied|spoil|fake|probe|shell_all)\(|read=\"all\"|"
                   r"deny=|git=\"commit\"|inherited|cgroup|\"memory\"|\"pids\"|cpu_percent|"
                   r"subprocess\.(run|Popen)\(")
# name: why it cannot be the same
DIFFERENT = {
    "test_words_pass_unchanged": "its words are more than a message takes (WARM_MESSAGE_MAX)",
    "test_helper_may_be_anywhere": "a user that may not read the helper may not map its ids either",
    "test_helper_is_replaced_in_place": "there is no process of the command's own outside",
    "test_sixteen_at_once": "one zygote serves them here: test_sixty_four_at_once",
    "test_places_swapped_for_links": "then there is no zygote: class Stale",
    "test_tmp_is_private": "its two commands have two zygotes: test_two_commands_do_not_meet",
}


def is_repeated(name, function):
    return (name.startswith("test_") and name not in DIFFERENT and
            not OTHER.search(inspect.getsource(function)))


def repeated(case, base=Warm):
    """The class `case`, its applicable tests only, warm."""
    members = dict(inspect.getmembers(case, inspect.isfunction))
    hidden = {name: None for name, f in members.items()
              if name.startswith("test_") and not is_repeated(name, f)}
    return type(base.__name__ + case.__name__, (base, case), hidden)


class Apart(Warm):
    """Two commands of one zygote, one after the other and at once."""

    def test_two_commands_do_not_meet(self):
        zygote = self.new_zygote()
        script = ("echo x > /tmp/x; echo x > /tmp/home/x; echo x > /dev/shm/x; "
                  "! touch /dev/x 2>/dev/null")
        self.succeeds(self.shell_in(zygote, script, env=["SECRET=1"]))
        outcome = self.shell_in(zygote, "ls -A /tmp/home /dev/shm; test ! -e /tmp/x; env")
        self.succeeds(outcome)
        self.assertNotIn(b"SECRET", outcome.out)
        self.assertEqual(outcome.out.split(b"\n")[:3], [b"/dev/shm:", b"", b"/tmp/home:"])

    def test_processes_of_another_command(self):
        zygote = self.new_zygote()
        first, control = self.hand(zygote, message(["sleep", self.marker], self.ws))
        self.wait_started(control)
        wait_until(lambda: alive(self.marker), "it runs")
        outcome = self.shell_in(
            zygote, "ls /proc | grep -c '^[0-9]'; cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ; "
                    "for i in 1 2 3 4 5 6 7 8 9; do kill -9 $i; done 2>/dev/null; kill -9 -1")
        self.assertNotIn(self.marker.encode(), outcome.out)
        self.assertNotEqual(alive(self.marker), [])
        control.close()
        self.nothing_survives()
        self.succeeds(self.shell_in(zygote, "true"))
        first.stdout.close()
        first.stderr.close()

    def test_terminals_of_another_command(self):
        script = ("import os, pty, sys; m, s = pty.openpty(); print(os.ttyname(s), flush=True); "
                  "sys.stdin.read()")
        zygote = self.new_zygote()
        first, control = self.hand(zygote, message(["python3", "-c", script], self.ws),
                                   stdin=subprocess.PIPE)
        self.assertEqual(first.stdout.readline(), b"/dev/pts/0\n")
        outcome = self.shell_in(zygote, "ls /dev/pts")
        self.assertEqual(outcome.out, b"ptmx\n")
        self.read_all(first, control)

    def test_shared_memory_of_another_command(self):
        if not os.path.exists("/usr/bin/ipcmk"):
            self.fail("ipcmk (util-linux) is not installed")
        zygote = self.new_zygote()
        first, control = self.hand(
            zygote, message(["sh", "-c", "ipcmk -M 4096; read x"], self.ws), stdin=subprocess.PIPE)
        self.assertIn(b"id", first.stdout.readline())
        self.assertEqual(self.shell_in(zygote, "tail -n +2 /proc/sysvipc/shm").out, b"")
        self.read_all(first, control)

    def test_servers_are_reachable(self):
        """They share the loopback of the workspace, and nothing else."""
        server = ("import socket; s = socket.create_server(('127.0.0.1', 8765)); "
                  "print('up', flush=True); c, _ = s.accept(); c.sendall(b'hello'); c.close()")
        client = "import socket; print(socket.create_connection(('127.0.0.1', 8765)).recv(9))"
        zygote = self.new_zygote()
        first, control = self.hand(zygote, message(["python3", "-c", server], self.ws))
        self.assertEqual(first.stdout.readline(), b"up\n")
        self.assertEqual(self.run_in(zygote, ["python3", "-c", client]).out, b"b'hello'\n")
        self.assertEqual(self.read_all(first, control).end["code"], 0)

    def test_zygote_is_out_of_reach(self):
        zygote = self.new_zygote()
        script = ("cat /proc/1/comm; ls /proc/1/root/ 2>&1; cat /proc/1/environ "
                  "/proc/1/maps /proc/1/fd/3 2>&1; kill -9 1; echo still; grep -c codespace-warm "
                  "/proc/[0-9]*/comm")
        outcome = self.shell_in(zygote, script)
        self.assertIn(b"codespace-init\n", outcome.out)
        self.assertIn(b"still\n", outcome.out)
        self.assertNotIn(b"comm:1", outcome.out)
        self.assertEqual(outcome.out.count(b"Permission denied"), 4, outcome.out)
        self.succeeds(self.shell_in(zygote, "true"))

    def test_zygote_holds_little(self):
        """[A28, E30]"""
        zygote = self.new_zygote()
        pid = zygote.pid()
        with open(f"/proc/{pid}/environ", "rb") as f:
            self.assertEqual(f.read(), b"PWD=/\0")  # bubblewrap's
        links = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
        files = [link for link in links if link.startswith("/")]
        self.assertEqual(files, ["/dev/null"] * 3)
        with open(f"/proc/{pid}/status", encoding="ascii") as f:
            status = dict(line.split(":\t", 1) for line in f)
        self.assertEqual(status["NoNewPrivs"].strip(), "1")
        allowed = 1 << 21 | 1 << 8 | 1 << 31  # SYS_ADMIN, SETPCAP, SETFCAP of its own namespace
        self.assertEqual(int(status["CapEff"], 16) & ~allowed, 0)


class Ready(Warm):
    """Children that wait, and those that are about to go."""

    def test_replaced_and_gone(self):
        """None is used twice, and those that have ended are reaped though nothing else happens."""
        zygote = self.new_zygote()
        for _ in range(3):
            self.all_wait(zygote)
            before = set(self.children(zygote))
            self.succeeds(self.shell_in(zygote, "true"))
            # The verdict comes first; one that has ended may not have gone yet.
            wait_until(lambda: before - set(self.children(zygote)), "it has gone")
            self.all_wait(zygote)
            self.assertEqual(len(before - set(self.children(zygote))), 1)

    def test_command_runs_like_any_other(self):
        """How children get ready and go is not how a command runs."""
        zygote = self.new_zygote()
        script = "cut -d' ' -f41,19 /proc/self/stat; cut -d' ' -f41,19 /proc/1/stat"
        for _ in range(8):
            self.assertEqual(self.shell_in(zygote, script).out, b"0 0\n" * 2)

    def test_started_is_told_before_the_end(self):
        zygote = self.new_zygote()
        for argv in (["true"], ["sh", "-c", "sleep 0.01"], ["sh", "-c", "unshare -U true; true"]):
            process, control = self.hand(zygote, message(argv, self.ws))
            text = b""
            while part := control.recv(65536):
                text += part
            lines = text.split(b"\n")
            self.assertEqual(lines[0], b"")  # the receipt
            self.assertEqual(json.loads(lines[1])["event"], "started")
            self.assertEqual(json.loads(lines[2])["event"], "exit")
            process.stdout.close()
            process.stderr.close()

    def test_last_word_ends_the_stream(self):
        """Not only the end of process 1 does, which comes later: the runner waits for this."""
        zygote = self.new_zygote()
        for argv, event in ((["true"], "exit"), (["sh", "-c", "sleep 0.01"], "exit"),
                            (["sh", "-c", "kill -9 $$"], "signal"), (["./no-such"], "exec_failed")):
            held, theirs = socket.socketpair()
            held.settimeout(LIMIT)
            null = os.open("/dev/null", os.O_RDWR)
            zygote.send(message(argv, self.ws), [null, null, null, theirs.fileno()])
            text = b""
            while part := held.recv(65536):  # `theirs` is open here as well
                text += part
            self.assertEqual(json.loads(text.split(b"\n")[-2])["event"], event)
            os.close(null)
            theirs.close()
            held.close()

    def test_waiting_child_killed(self):
        """It is told, so that the runner takes another zygote; nothing of ours is left."""
        zygote = self.new_zygote()
        self.all_wait(zygote)
        os.kill(int(self.children(zygote)[0]), signal.SIGKILL)
        event = zygote.event()
        self.assertEqual((event["event"], event["code"]), ("failed", INTERNAL), event)
        self.assertEqual(zygote.close(), INTERNAL)
        self.assertEqual(os.listdir(self.ws), [])

    def test_killed_before_the_zygote_was_told(self):
        """A child that has a command wakes the zygote later, but has written it down."""
        zygote = self.new_zygote()
        for _ in range(20):
            process, control = self.hand(zygote, message(["sleep", "60"], self.ws))
            receipt, fds, _, _ = socket.recv_fds(control, 1, 1)
            self.assertEqual((receipt, len(fds)), (b"\n", 1))
            signal.pidfd_send_signal(fds[0], signal.SIGKILL)
            os.close(fds[0])
            while control.recv(65536):
                pass
            process.stdout.close()
            process.stderr.close()
            self.succeeds(self.shell_in(zygote, "true"))
        self.all_wait(zygote)
        self.assertEqual(zygote.close(), 0)

    def test_end_is_told_with_the_start(self):
        """One that ends at once wakes the runner once, and one that goes on lets go of its pipes."""
        zygote = self.new_zygote()

        def at_once():
            process, control = self.hand(zygote, message(["true"], self.ws))
            parts = []
            while part := control.recv(65536):
                parts.append(part)
            process.stdout.close()
            process.stderr.close()
            self.assertEqual(b"".join(parts).count(b"\n"), 3)
            return any(b"started" in part and b"exit" in part for part in parts)
        wait_until(at_once, "one that this machine runs fast enough")
        process, control = self.hand(zygote, message(
            ["sh", "-c", "exec >&- 2>&-; exec sleep 60"], self.ws))
        self.assertEqual(process.stdout.read(), b"")
        self.assertEqual(process.stderr.read(), b"")
        control.close()

    def test_mass_of_short_ones_goes(self):
        """More than may wait for an idle processor."""
        zygote = self.new_zygote()
        started = [self.hand(zygote, message(["true"], self.ws)) for _ in range(100)]
        for it in started:
            self.succeeds(self.read_all(*it))
        self.all_wait(zygote)


class Life(Warm):
    def test_five_hundred_leave_nothing(self):
        zygote = self.new_zygote()
        self.succeeds(self.shell_in(zygote, "true"))
        pid = zygote.pid()
        self.all_wait(zygote)
        before = open_fds(pid)
        for i in range(500):
            outcome = self.run_in(zygote, ["sh", "-c", f"exit {i % 200}"])
            self.assertEqual(outcome.end.get("code"), i % 200, outcome)
        self.all_wait(zygote)
        wait_until(lambda: open_fds(pid) == before, "descriptors are as before")
        self.assertEqual(zygote.close(), 0)

    def test_denials_are_of_their_own_command(self):
        """[G10] The list begins anew with each."""
        zygote = self.new_zygote()
        told = [self.shell_in(zygote, script).end.get("denials")
                for script in ("unshare -U true; true", "true", "unshare -m true; true")]
        self.assertEqual(told, [
            [{"rule": "filter.namespace", "what": "unshare(CLONE_NEWUSER)", "count": 1}], None,
            [{"rule": "filter.namespace", "what": "unshare(CLONE_NEWNS)", "count": 1}]])
        self.end_zygote(zygote)

    def test_sixty_four_at_once(self):
        zygote = self.new_zygote()
        started = [self.hand(zygote, message(["sh", "-c", f"echo {i} > f{i}"], self.ws))
                   for i in range(64)]
        for it in started:
            self.succeeds(self.read_all(*it))
        self.assertEqual(len(os.listdir(self.ws)), 64)

    def test_sessions_do_not_survive_their_command(self):
        zygote = self.new_zygote()
        script = (f"setsid sh -c 'setsid sleep {self.marker} & setsid sleep {self.marker} &' & wait; "
                  f"while [ $(pgrep -fc '^sleep {self.marker}') -lt 2 ]; do :; done")
        self.assertEqual(self.shell_in(zygote, script).end["background"], 2)
        self.assertEqual(alive(self.marker), [])
        self.assertIsNone(zygote.process.poll())

    def start_several(self, plant=True):
        """Three that run; the last one leaves what a guard has to take away."""
        zygote = self.new_zygote()
        rest = f"setsid sleep {self.marker} & exec sleep {self.marker}"
        running = []
        for i in range(3):
            script = "mkdir .git; " + rest if plant and i == 2 else rest
            process, control = self.hand(zygote, message(["sh", "-c", script], self.ws))
            self.wait_started(control)
            process.stdout.close()
            process.stderr.close()
            running.append(control)
        wait_until(lambda: len(alive(self.marker)) >= 6, "they run")
        return zygote, running

    def test_killed_zygote(self):
        zygote, controls = self.start_several()
        os.kill(zygote.pid(), signal.SIGKILL)
        self.nothing_survives()
        for control in controls:
            while control.recv(65536):
                pass

    def has_command(self, pid):
        """A process that waits for its command has what process 1 has: the same program."""
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
            below = f.read().split()
        return any(os.stat(f"/proc/{child}/exe").st_ino != os.stat(f"/proc/{pid}/exe").st_ino
                   for child in below)

    def test_killed_process_one_of_a_command(self):
        zygote, controls = self.start_several(plant=False)
        with open(f"/proc/{zygote.pid()}/task/{zygote.pid()}/children", encoding="ascii") as f:
            children = [int(pid) for pid in f.read().split()]
        with_commands = [pid for pid in children if self.has_command(pid)]
        self.assertEqual(len(with_commands), 3)
        os.kill(with_commands[0], signal.SIGKILL)
        wait_until(lambda: len(alive(self.marker)) <= 4, "its processes are gone")
        self.assertIsNone(zygote.process.poll())
        self.succeeds(self.shell_in(zygote, "true"))
        for control in controls:
            control.close()
        self.nothing_survives()

    def test_killed_bubblewrap(self):
        """The guards still sweep."""
        zygote, controls = self.start_several()
        zygote.process.kill()
        for control in controls:
            while control.recv(65536):
                pass
        self.nothing_survives()
        self.assertEqual(os.listdir(self.ws), [])

    def test_killed_runner(self):
        """All its sockets close."""
        zygote, controls = self.start_several()
        zygote.control.close()
        for control in controls:
            control.close()
        self.assertEqual(zygote.process.wait(LIMIT), 0)
        self.nothing_survives()
        self.assertEqual(os.listdir(self.ws), [])

    def test_given_up_zygote_serves_to_the_end(self):
        zygote = self.new_zygote()
        process, control = self.hand(zygote, message(["sh", "-c", "read x; exit 4"], self.ws),
                                     stdin=subprocess.PIPE)
        self.wait_started(control)
        zygote.control.close()
        process.stdin.write(b"x\n")
        process.stdin.flush()
        self.assertIn(b'"code":4', control.recv(65536))
        self.assertEqual(zygote.process.wait(LIMIT), 0)
        process.communicate()

    def test_socket_of_one_command_ends_that_one(self):
        zygote = self.new_zygote()
        one, control = self.hand(zygote, message(["sleep", self.marker], self.ws))
        self.wait_started(control)
        two, other = self.hand(zygote, message(["sh", "-c", "read x"], self.ws),
                               stdin=subprocess.PIPE)
        self.wait_started(other)
        control.close()
        self.nothing_survives()
        one.stdout.close()
        one.stderr.close()
        two.stdin.write(b"x\n")
        two.stdin.flush()
        self.assertEqual(self.read_all(two, other).end["code"], 0)

    def test_nobody_waits_for_the_receipt(self):
        """Who gave up before it came may start the command elsewhere."""
        zygote = self.new_zygote()
        self.all_wait(zygote)
        self.stop(zygote.pid())
        children = self.those_that_wait(zygote)
        for pid in children:
            self.stop(int(pid))
        process, control = self.hand(zygote, message(["touch", f"{self.ws}/ran"], self.ws))
        control.close()
        for pid in reversed(children):  # who reaps it last
            os.kill(int(pid), signal.SIGCONT)
        os.kill(zygote.pid(), signal.SIGCONT)
        self.succeeds(self.shell_in(zygote, "true"))
        process.stdout.close()
        process.stderr.close()
        self.assertEqual(zygote.close(), 0)
        self.assertEqual(os.listdir(self.ws), [])


class Stale(Warm):
    """A view that was built earlier never shows or allows what a new one would not."""

    def refuses(self, zygote, code, word):
        process, control = self.hand(zygote, message(["touch", f"{self.ws}/ran"], self.ws))
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            text = pool.submit(control.recv, 65536).result(LIMIT)
        event = json.loads(text)  # no receipt before it
        self.assertEqual((event["event"], event["code"]), ("failed", EXIT[code]), event)
        self.assertIn(word, event["message"])
        process.stdout.close()
        process.stderr.close()
        self.assertFalse(os.path.exists(f"{self.ws}/ran"))

    def test_repository_that_a_person_makes(self):
        zygote = self.new_zygote()
        self.succeeds(self.shell_in(zygote, "true"))
        self.put(".git/HEAD")
        self.refuses(zygote, "guard", ".git")
        self.assertTrue(os.path.exists(f"{self.ws}/.git/HEAD"))

    def test_repository_that_a_person_removes(self):
        self.put(".git/HEAD")
        zygote = self.new_zygote()
        self.succeeds(self.shell_in(zygote, "! touch .git/x"))
        os.unlink(f"{self.ws}/.git/HEAD")
        os.rmdir(f"{self.ws}/.git")
        self.refuses(zygote, "source", ".git")

    def test_repository_that_a_person_moves(self):
        self.put(".git/HEAD")
        zygote = self.new_zygote()
        os.rename(f"{self.ws}/.git", f"{self.ws}/old")
        self.refuses(zygote, "source", ".git")

    def test_repository_that_a_person_replaces(self):
        self.put(".git/HEAD")
        zygote = self.new_zygote()
        os.rename(f"{self.ws}/.git", f"{self.base}/old")
        self.put(".git/HEAD")
        self.refuses(zygote, "source", ".git")

    def test_hidden_file_that_is_replaced(self):
        path = self.put("secret", "words")
        zygote = self.new_zygote(hidden=[path])
        self.assertEqual(self.shell_in(zygote, "cat secret").out, b"")
        os.rename(self.put("other", "words"), path)
        self.refuses(zygote, "source", "secret")

    def test_nested_repository(self):
        self.directory("sub")
        zygote = self.new_zygote()
        self.put("sub/.git/HEAD")
        self.refuses(zygote, "guard", "sub/.git")

    def test_nested_repository_of_an_earlier_command(self):
        zygote = self.new_zygote()
        outcome = self.shell_in(zygote, "mkdir -p sub/.git")
        self.assertEqual(outcome.end["created_repositories"], ["sub/.git"])
        self.refuses(zygote, "guard", "sub/.git")

    def settled(self, zygote):
        """Until all directories are old enough for the zygote's children to remember them, and
        children that were made since have looked at them."""
        newest = max(os.stat(path).st_ctime for path, _, _ in os.walk(self.ws))
        wait_until(lambda: time.clock_gettime(time.CLOCK_REALTIME) > newest + 0.05, "an old tree")
        for _ in range(6):
            self.succeeds(self.shell_in(zygote, "true"))

    def test_nested_repository_in_a_tree_that_was_looked_at_before(self):
        for name in ("a", "a/b", "a/b/c", "a/d", "e"):
            self.directory(name)
        zygote = self.new_zygote()
        for made, command in (("e/.git", "mkdir e/.git"), ("a/b/c/.git", "touch a/b/c/.git"),
                              ("e/f/.git", "mkdir e/g e/g/.git; mv e/g e/f"),
                              ("a/d/.git", "mkdir x; mv a/d x; mkdir a/d a/d/.git")):
            self.settled(zygote)
            outcome = self.shell_in(zygote, command)
            self.assertEqual(outcome.end["created_repositories"], [made], command)
            self.refuses(zygote, "guard", made)
            os.rename(f"{self.ws}/{made}", tempfile.mkdtemp(dir=self.base) + "/x")
        self.settled(zygote)
        self.put("a/b/c/.git")
        self.refuses(zygote, "guard", "a/b/c/.git")

    def test_what_is_not_kept_warm(self):
        for options in ({"read": "all"}, {"deny": ["*.pem"]}, {"git": "commit"},
                        {"proc": "inherited"}):
            request, _ = self.zygote_request(["-"], **options)
            answer = self.ask(request)
            self.assertEqual(answer["type"], "error", options)
            self.assertIn("zygote", answer["message"])


class Messages(Warm):
    """What the runner sends is not trusted either."""

    def told(self, data):
        zygote = self.new_zygote()
        process, control = self.hand(zygote, data)
        text = control.recv(65536)
        process.stdout.close()
        process.stderr.close()
        self.succeeds(self.shell_in(zygote, "true"))
        self.assertEqual(zygote.close(), 0)
        return json.loads(text) if text else None

    def test_spoiled(self):
        good = message(["touch", f"{self.ws}/ran"], self.ws, ["A=1"])
        for at in range(20):
            spoiled = bytearray(good)
            spoiled[at] ^= 0x5a
            event = self.told(bytes(spoiled))
            self.assertEqual((event["event"], event["code"]), ("failed", EXIT["plan_form"]), at)
        self.assertEqual(os.listdir(self.ws), [])

    def test_cut_and_empty(self):
        good = message(["touch", f"{self.ws}/ran"], self.ws)
        for data in (good[:-1], good + b"x", good[:8], message([], self.ws), message([""], self.ws),
                     message(["true"], "relative"), message(["true"], self.ws, ["novalue"])):
            event = self.told(data)
            self.assertEqual((event["event"], event["code"]), ("failed", EXIT["plan_form"]), data)

    def test_too_large(self):
        self.assertIsNone(self.told(message(["true", "x" * 70000], self.ws)))

    def test_missing_descriptors(self):
        zygote = self.new_zygote()
        zygote.send(message(["touch", f"{self.ws}/ran"], self.ws), [0, 1])
        self.succeeds(self.shell_in(zygote, "true"))
        self.assertEqual(os.listdir(self.ws), [])


def load_tests(loader, _tests, _pattern):
    suite = unittest.TestSuite()
    cases = [repeated(case) for case in (cold.View, cold.Protected, cold.Inside, cold.Ends,
                                         cold.Control, cold.Terminal)]
    for case in (*cases, Apart, Ready, Life, Stale, Messages):
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
