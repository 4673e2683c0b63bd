"""Commands by all their arguments: lists, signals, silence, turns, what is left behind, networks."""

import os
import signal
import time

from support import WAIT_MS, ProcessCase, needs_sandbox, poll, processes, running

# So often it takes a connection and ends instead of greeting; then it is the real one.
UNGREETING = """#!/usr/bin/python3
import os, socket, sys
mark = "%s.times"
with open(mark, "a+") as f:
    f.write("x")
    f.seek(0)
    if len(f.read()) > %d:
        os.execv("%s", sys.argv)
listener = socket.socket(socket.AF_UNIX)
try:
    listener.bind(sys.argv[-1])
    os.chmod(sys.argv[-1], 0o600)
    listener.listen(1)
    os.write(1, b"listening\\n")
    listener.accept()[0].recv(1)
except OSError: # the server has ended meanwhile
    pass
"""

REMOTE = os.environ.get("CODESPACE_RUNNER") == "uds"

# Prints `ready` and the port, then answers each connection with "hello".
SERVE = """
import socket, sys
s = socket.socket()
s.bind(("127.0.0.1", 0))
s.listen()
print("ready", s.getsockname()[1], flush=True)
while True:
    c, _ = s.accept()
    c.sendall(b"hello")
    c.close()
"""
CONNECT = """
import socket, sys
try:
    s = socket.create_connection(("127.0.0.1", int(sys.argv[1])), 60)
    print(s.recv(5).decode())
except ConnectionRefusedError:
    print("refused")
"""


class List(ProcessCase):
    def test_order_pages_and_filters(self):
        first = self.begin("true")
        self.ended(self.client, first)
        live = self.begin("echo up; exec sleep " + self.marker())
        third = self.begin("exit 3")
        self.ended(self.client, third)
        listed = self.client.call("list_processes")
        self.assertEqual([p["process_id"] for p in listed["processes"]], [first, live, third])
        self.assertIs(listed["more"], False)
        serials = [p["serial"] for p in listed["processes"]]
        self.assertEqual(serials, sorted(serials))
        self.assertEqual(listed["next_after"], serials[-1])
        states = [(p["state"], p.get("exit_code")) for p in listed["processes"]]
        self.assertEqual(states, [("exited", 0), ("running", None), ("exited", 3)])
        self.assertIn("exit 3", listed["processes"][2]["command"])
        page = self.client.call("list_processes", limit=2)
        self.assertEqual([p["process_id"] for p in page["processes"]], [first, live])
        self.assertIs(page["more"], True)
        page = self.client.call("list_processes", limit=2, after=page["next_after"])
        self.assertEqual([p["process_id"] for p in page["processes"]], [third])
        self.assertIs(page["more"], False)
        page = self.client.call("list_processes", after=page["next_after"])
        self.assertEqual((page["processes"], page["next_after"]), ([], serials[-1]))
        page = self.client.call("list_processes", live_only=True, workspace_id="ws")
        self.assertEqual([p["process_id"] for p in page["processes"]], [live])

    def test_what_is_refused(self):
        self.fails("WORKSPACE_NOT_FOUND", self.client, "list_processes", workspace_id="nope")
        for limit in (0, 101):
            self.fails("INVALID_ARGUMENT", self.client, "list_processes", limit=limit)
        error = self.fails("INVALID_ARGUMENT", self.client, "list_processes", liveonly=True)
        self.assertIn("live_only", error.message)

    def test_of_one_workspace(self):
        other = self.make_dir("other")
        client = self.start("--workspace", "ws=" + self.ws, "--workspace", "other=" + other)
        mine = client.call("exec_command", workspace_id="other", command=["true"], wait_ms=WAIT_MS)
        client.call("exec_command", workspace_id="ws", command=["true"], wait_ms=WAIT_MS)
        listed = client.call("list_processes", workspace_id="other")["processes"]
        self.assertEqual([p["process_id"] for p in listed], [mine["process_id"]])

    def test_dropped_is_not_unknown(self):
        first = self.exec("true", wait_ms=WAIT_MS)["process_id"]
        for _ in range(65):
            self.exec("true", wait_ms=WAIT_MS)
        error = self.fails("PROCESS_NOT_FOUND", self.client, "process_status", process_id=first)
        self.assertIn("dropped", error.message)
        listed = self.client.call("list_processes")["processes"]
        self.assertNotIn(first, [p["process_id"] for p in listed])
        error = self.fails(
            "PROCESS_NOT_FOUND", self.client, "process_status", process_id="proc-nobody"
        )
        self.assertNotIn("dropped", error.message)


class Signals(ProcessCase):
    def test_names_and_numbers(self):
        script = (
            "import signal; names = {2: 'int', 10: 'usr'}\n"
            "signal.pthread_sigmask(signal.SIG_BLOCK, names)\n"
            "print('ready', flush=True)\n"
            "while True: print(names[signal.sigwait(names)], flush=True)"
        )
        process = self.exec("python3", "-c", script)["process_id"]
        _, cursor = self.ready(self.client, process, "ready\n")
        for name, word in (
            ("INT", "int"), ("SIGINT", "int"), ("sigusr1", "usr"), (str(int(signal.SIGINT)), "int"),
        ):
            self.call("signal_process", process, signal=name)
            page = self.call("read_process", process, cursor=cursor, wait_ms=WAIT_MS)
            self.assertEqual(page["chunk"], word + "\n", name)
            cursor = page["cursor"]
        self.call("signal_process", process, signal="TERM")
        status = self.ended(self.client, process)
        self.assertEqual(status["termination"], "signaled")
        self.assertEqual(status["signal"], {"number": 15, "name": "SIGTERM"})

    def test_stop_and_continue(self):
        process = self.begin("echo ready; exec sleep " + self.marker())
        self.ready(self.client, process, "ready")
        self.call("signal_process", process, signal="STOP")
        self.assertIs(self.call("process_status", process)["stopped"], True)
        self.call("signal_process", process, signal="CONT")
        self.assertNotIn("stopped", self.call("process_status", process))
        self.call("signal_process", process, signal="STOP")
        self.call("terminate_process", process)
        self.assertEqual(self.ended(self.client, process)["termination"], "terminated")

    def test_before_the_start(self):
        """A handle is there before the command is; what it is sent meanwhile is not lost."""
        holder = self.begin("echo ready; exec sleep " + self.marker(), exclusive=True)
        self.ready(self.client, holder, "ready")
        call = self.client.begin_call
        late = call("exec_command", workspace_id="ws", command=["sleep", self.marker()],
                    wait_ms=WAIT_MS)
        waiting = poll(lambda: [p["process_id"] for p in self.client.call(
            "list_processes", live_only=True)["processes"] if p["process_id"] != holder])
        for name in ("STOP", "CONT", "INT"):
            self.call("signal_process", waiting[0], signal=name)
        self.call("terminate_process", holder)
        done = self.client.finish_call(late)
        self.assertEqual(done["process_id"], waiting[0])
        self.assertEqual(done["signal"], {"number": 2, "name": "SIGINT"}, done)
        self.assertNotIn("stopped", done)

    def test_what_is_no_signal(self):
        process = self.begin("exec sleep " + self.marker())
        for name in ("FOO", "0", "65", "-1", " INT", "SIG", "9999999999999999999999"):
            error = self.fails(
                "INVALID_ARGUMENT", self.client, "signal_process", process_id=process, signal=name
            )
            self.assertIn("signal", error.message)
        for value in (None, 2, ""):
            self.fails(
                "INVALID_ARGUMENT", self.client, "signal_process", process_id=process, signal=value
            )
        for name in ("STOP", "CONT", "TSTP"):
            error = self.fails(
                "INVALID_ARGUMENT", self.client, "terminate_process", process_id=process,
                signal=name,
            )
            self.assertIn("signal_process", error.message)
        self.assertEqual(self.call("process_status", process)["state"], "running")

    def test_to_what_has_ended(self):
        process = self.exec("true", wait_ms=WAIT_MS)["process_id"]
        self.fails(
            "PROCESS_NOT_RUNNING", self.client, "signal_process", process_id=process, signal="INT"
        )
        self.fails(
            "PROCESS_NOT_FOUND", self.client, "signal_process", process_id="proc-x", signal="INT"
        )

    def test_the_first_signal_of_an_end_and_its_grace(self):
        process = self.begin(
            "trap '' TERM; trap 'echo bye; exit 4' HUP; echo ready; while :; do sleep 0.02; done"
        )
        self.ready(self.client, process, "ready")
        self.call("terminate_process", process, signal="HUP", grace_ms=60000)
        status = self.ended(self.client, process)
        self.assertEqual(status["termination"], "terminated")
        self.assertIn("bye", self.call("read_process", process)["chunk"])
        stubborn = self.begin("trap '' TERM; echo ready; while :; do sleep 0.02; done")
        self.ready(self.client, stubborn, "ready")
        self.call("terminate_process", stubborn, grace_ms=0)
        self.assertEqual(self.ended(self.client, stubborn)["termination"], "terminated")
        for grace in (60001, -1, "1"):
            self.fails(
                "INVALID_ARGUMENT", self.client, "terminate_process", process_id=stubborn,
                grace_ms=grace,
            )


class Silence(ProcessCase):
    def test_silence_ends_a_command(self):
        for limit in (700, 5600, 44800):  # more where that was too short for this machine
            done = self.sh(
                "for i in 1 2 3; do echo $i; sleep %.3f; done; exec sleep %s"
                % (limit / 7000, self.marker()),
                idle_timeout_ms=limit,
            )
            self.assertEqual(done["termination"], "limit")
            self.assertIn("idle_timeout_ms", done["reason"])
            self.assertNotIn("exit_code", done)
            if done["output"] == "1\n2\n3\n":
                break
        self.assertEqual(done["output"], "1\n2\n3\n")
        self.assertGreaterEqual(done["duration_ms"], limit * 9 // 7)

    def test_input_is_no_silence(self):
        process = self.exec("cat", idle_timeout_ms=60000)["process_id"]
        for _ in range(4):
            self.call("write_stdin", process, data="x")
            self.assertEqual(self.call("process_status", process)["idle_timeout_ms"], 60000)
        self.call("write_stdin", process, eof=True)
        status = self.ended(self.client, process)
        self.assertEqual((status["termination"], status["exit_code"]), ("exited", 0))

    def test_zero_is_never(self):
        status = self.call("process_status", self.exec("cat", idle_timeout_ms=0)["process_id"])
        self.assertNotIn("idle_timeout_ms", status)


class Turns(ProcessCase):
    """exclusive: alone on the root, first come, first served."""

    def start_later(self, script, **arguments):
        return self.client.begin_call(
            "exec_command", workspace_id="ws", command=["/bin/sh", "-c", script], **arguments
        )

    def test_first_come_first_served(self):
        holder = self.exec("cat", exclusive=True)["process_id"]
        calls = [
            self.start_later(
                "echo %d >>order; sleep 0.05; echo %d >>order" % (i, i), wait_ms=WAIT_MS,
                exclusive=True, exclusive_wait_ms=WAIT_MS,
            )
            for i in range(4)
        ]
        # A plain one waits behind those that asked before it, and nothing overtakes.
        calls.append(self.start_later("echo plain >>order", wait_ms=WAIT_MS))
        self.client.request("ping")
        self.assertFalse(os.path.exists(self.path("order")))
        self.call("write_stdin", holder, eof=True)
        for ident in calls:
            self.assert_exited(self.client.finish_call(ident))
        wanted = "".join("%d\n%d\n" % (i, i) for i in range(4)) + "plain\n"
        self.assertEqual(self.bytes_of("order").decode(), wanted)

    def test_a_turn_that_does_not_come(self):
        holder = self.exec("cat")["process_id"]
        error = self.fails(
            "WORKSPACE_BUSY", self.client, "exec_command", workspace_id="ws",
            command=["touch", "ran"], exclusive=True, exclusive_wait_ms=50,
        )
        self.assertIn("list_processes", error.message)
        self.assertFalse(os.path.exists(self.path("ran")))
        self.call("terminate_process", holder)
        self.ended(self.client, holder)
        self.assert_exited(self.exec("true", exclusive=True, wait_ms=WAIT_MS))

    def test_who_gives_up_leaves_the_queue(self):
        holder = self.exec("cat", exclusive=True)["process_id"]
        ident = self.start_later("touch ran", exclusive=True, exclusive_wait_ms=WAIT_MS)
        last = self.start_later("echo last", wait_ms=WAIT_MS)
        self.client.notify("notifications/cancelled", {"requestId": ident})
        self.call("write_stdin", holder, eof=True)
        self.assert_exited(self.client.finish_call(last, 60))
        self.assertFalse(os.path.exists(self.path("ran")))
        self.assertFalse(self.client.answered(ident))

    def test_other_roots_and_patches_do_not_wait(self):
        other = self.make_dir("other")
        client = self.start("--workspace", "ws=" + self.ws, "--workspace", "other=" + other)
        client.call("exec_command", workspace_id="ws", command=["cat"], exclusive=True)
        done = client.call("exec_command", workspace_id="other", command=["true"], wait_ms=WAIT_MS)
        self.assertEqual(done["exit_code"], 0)
        self.write("f", "x")
        self.assertEqual(client.call("read", workspace_id="ws", path="f")["content"], "x")

    def test_limits(self):
        for name, value in (
            ("exclusive_wait_ms", 0), ("exclusive_wait_ms", 600001), ("exclusive", 1),
            ("idle_timeout_ms", 86400001), ("background", "detach"), ("background", True),
        ):
            with self.subTest(name=name, value=value):
                error = self.fails(
                    "INVALID_ARGUMENT", self.client, "exec_command", workspace_id="ws",
                    command=["true"], **{name: value},
                )
                self.assertIn(name, error.message)


class Background(ProcessCase):
    """What a command leaves behind: killed, or kept under its handle."""

    def gone(self, process, client=None):
        """Wait until nothing is left of it; process_status."""
        client = client or self.client
        return poll(
            lambda: (s := client.call("process_status", process_id=process))
            and not s["background_alive"] and s
        )

    @needs_sandbox
    def test_killed_by_default_whatever_it_did(self):
        mark = self.marker()
        for script in (
            "sleep %s & echo done" % mark,
            "setsid sleep %s >/dev/null 2>&1 & echo done" % mark,
            "(setsid -f sleep %s); echo done" % mark,
            "exec 3>&1; (sleep %s >&3 2>&3 &); echo done" % mark,
        ):
            with self.subTest(script=script):
                done = self.sh(script)
                self.assert_exited(done)
                self.assertEqual(done["output"], "done\n")
                self.assertGreaterEqual(done["background"], 1)
                self.assertIs(done["background_alive"], False)
                self.assertEqual(running(mark), [])

    @needs_sandbox
    def test_kept_and_ended_by_hand(self):
        for script in (
            "sleep %s & echo done",
            "setsid sleep %s & echo done",
            "(setsid sh -c '(sleep %s &) '); echo done",
        ):
            mark = self.marker()
            with self.subTest(script=script):
                done = self.sh(script % mark + "; exit 7", background="keep")
                self.assert_exited(done, 7)
                self.assertEqual(done["output"], "done\n")
                self.assertEqual((done["background"], done["background_alive"]), (1, True))
                self.assertIs(done["eof"], False)
                process = done["process_id"]
                listed = self.client.call("list_processes", live_only=True)["processes"]
                self.assertEqual([p["process_id"] for p in listed], [process])
                self.assertTrue(poll(lambda: len(running("sleep " + mark)) == 1))
                self.call("terminate_process", process)
                status = self.gone(process)
                self.assertEqual((status["termination"], status["exit_code"]), ("exited", 7))
                self.assertIs(status["eof"], True)
                self.assertIn("terminate_process", status["reason"])
                self.assertEqual(running(mark), [])

    @needs_sandbox
    def test_it_goes_on_and_its_output_is_read(self):
        done = self.sh(
            "(while [ ! -e go ]; do sleep 0.02; done; echo later; touch made) & echo first",
            background="keep",
        )
        self.assertEqual((done["output"], done["exit_code"]), ("first\n", 0))
        self.write("go", "")
        page = self.call(
            "read_process", done["process_id"], cursor=done["cursor"], wait_ms=WAIT_MS
        )
        self.assertEqual((page["chunk"], page["state"]), ("later\n", "exited"))
        status = self.gone(done["process_id"])
        self.assertEqual(status["exit_code"], 0)
        self.assertGreaterEqual(status["background"], 1)
        self.assertIs(status["eof"], True)
        self.assertNotIn("reason", status)
        self.assertLessEqual(status["ended_at_ms"] - status["started_at_ms"],
                             done["duration_ms"])
        self.assertTrue(os.path.exists(self.path("made")))

    @needs_sandbox
    def test_nothing_left_is_an_ordinary_end(self):
        done = self.sh("sleep 0 & wait; echo x", background="keep")
        self.assert_exited(done)
        self.assertNotIn("background", done)
        self.assertIs(done["eof"], True)

    @needs_sandbox
    def test_the_time_limit_goes_on(self):
        mark = self.marker()
        for limit in (1500, 12000, 50000):  # more where that was too short for this machine
            started = time.monotonic()
            done = self.sh(
                "trap '' TERM; sleep %s & echo x" % mark, background="keep", timeout_ms=limit
            )
            if done["background_alive"]:
                break
        self.assertIs(done["background_alive"], True)
        status = self.gone(done["process_id"])
        self.assertGreaterEqual(time.monotonic() - started, limit / 1000 - 0.1)
        self.assertEqual((status["termination"], status["exit_code"]), ("exited", 0))
        self.assertIn("timeout_ms", status["reason"])
        self.assertEqual(running(mark), [])

    @needs_sandbox
    def test_it_counts_as_alive(self):
        client = self.start(
            "--workspace", "ws=" + self.ws, env={"CODESPACE_MAX_PROCESSES": "1"}
        )
        done = self.shell(client, "sleep %s & :" % self.marker(), background="keep")
        self.fails(
            "PROCESS_LIMIT", client, "exec_command", workspace_id="ws", command=["true"]
        )
        client.call("terminate_process", process_id=done["process_id"])
        self.gone(done["process_id"], client)
        done = client.call(
            "exec_command", workspace_id="ws", command=["true"], wait_ms=WAIT_MS
        )
        self.assert_exited(done)

    @needs_sandbox
    def test_an_end_that_was_asked_for_keeps_nothing(self):
        mark = self.marker()
        process = self.begin(
            "setsid sleep %s & echo up; trap 'exit 0' TERM; while :; do sleep 0.02; done" % mark,
            background="keep",
        )
        self.ready(self.client, process, "up")
        self.call("terminate_process", process)
        status = self.ended(self.client, process)
        self.assertEqual(status["termination"], "terminated")
        self.assertEqual(running(mark), [])

    @needs_sandbox
    def test_signals_reach_what_was_left(self):
        done = self.sh(
            "mkfifo up; setsid sh -c 'trap \"echo got; exit\" USR1; echo >up; "
            "while :; do sleep 0.02; done' & read x <up",
            background="keep",
        )
        self.assertIs(done["background_alive"], True)
        self.call("signal_process", done["process_id"], signal="USR1")
        status = self.gone(done["process_id"])
        self.assertEqual(status["exit_code"], 0)
        self.assertIn("got\n", self.call("read_process", done["process_id"])["chunk"])

    @needs_sandbox
    def test_the_end_of_the_server_ends_it(self):
        for kill in (False, True):
            mark = self.marker()
            client = self.start()
            done = self.shell(client, "setsid sleep %s & :" % mark, background="keep")
            self.assertIs(done["background_alive"], True)
            if kill:
                client.signal(signal.SIGKILL)
                self.assertEqual(client.wait_exit(), -signal.SIGKILL)
            else:
                self.stop(client)
            self.assertTrue(poll(lambda: not running(mark)), kill)

    def test_without_a_sandbox_it_is_refused(self):
        client = self.start(env={"CODESPACE_LINUX_SANDBOX_BIN": "/nonexistent"})
        error = self.fails(
            "INVALID_COMMAND", client, "exec_command", workspace_id="ws",
            command=["touch", "ran"], background="keep",
        )
        self.assertIn("nothing was run", error.message)
        self.assertFalse(os.path.exists(self.path("ran")))


class Output(ProcessCase):
    def setUp(self):
        super().setUp()
        self.process = self.exec(
            "/bin/sh", "-c", "for i in 1 2 3 4 5; do echo line $i; done", wait_ms=WAIT_MS
        )["process_id"]

    def read(self, **arguments):
        return self.call("read_process", self.process, **arguments)

    def test_by_line(self):
        page = self.read(line=4)
        self.assertEqual((page["chunk"], page["start"]), ("line 4\nline 5\n", 21))
        self.assertEqual(self.read(line=1)["start"], 0)
        self.assertEqual(self.read(line=99)["chunk"], "")
        self.fails("INVALID_ARGUMENT", self.client, "read_process", process_id=self.process, line=0)

    def test_the_tail(self):
        page = self.read(tail_lines=2)
        self.assertEqual((page["chunk"], page["eof"]), ("line 4\nline 5\n", True))
        self.assertEqual(self.read(tail_bytes=3)["chunk"], " 5\n")
        self.assertEqual(self.read(tail_lines=0)["chunk"], "")
        self.assertEqual(self.read(tail_bytes=10**9)["start"], 0)
        self.assertGreater(self.read()["written_at_ms"], 1.6e12)

    def test_one_beginning_only(self):
        for two in ({"cursor": 0, "line": 1}, {"tail_lines": 1, "tail_bytes": 1},
                    {"line": 1, "tail_lines": 1}):
            error = self.fails(
                "INVALID_ARGUMENT", self.client, "read_process", process_id=self.process, **two
            )
            for name in two:
                self.assertIn(name, error.message)

    def test_clean(self):
        script = r"printf '\033[31mred\033[0m\r\n10%%\r20%%\r100%%\n'"
        for tty in (True, False):
            done = self.exec("/bin/sh", "-c", script, tty=tty, wait_ms=WAIT_MS)
            page = self.call("read_process", done["process_id"], clean=True)
            self.assertEqual(page["chunk"], "red\n100%\n")
            self.assertEqual(page["cursor"], done["cursor"])
        self.fails(
            "INVALID_ARGUMENT", self.client, "read_process", process_id=done["process_id"],
            clean=True, encoding="base64",
        )


class Status(ProcessCase):
    @needs_sandbox
    def test_everything_is_told(self):
        before = int(time.time() * 1000)
        done = self.sh(
            "mkdir -p sub/.git .codex; i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; :"
        )
        status = self.call("process_status", done["process_id"])
        self.assertEqual(status["workspace_id"], "ws")
        self.assertIn("mkdir", status["command"])
        self.assertLessEqual(before - 1, status["started_at_ms"])
        self.assertLessEqual(status["started_at_ms"], status["ended_at_ms"])
        self.assertEqual(status["duration_ms"], status["ended_at_ms"] - status["started_at_ms"])
        self.assertGreater(status["cpu_us"], 0)
        self.assertGreater(status["max_rss_kib"], 100)
        self.assertEqual(status["removed"], [".codex"])
        self.assertEqual(status["created_repositories"], ["sub/.git"])
        self.assertEqual(done["created_repositories"], ["sub/.git"])
        self.assertEqual(status["network_scope"], "command")
        self.assertNotIn("idle_timeout_ms", status)

    def test_a_running_one(self):
        process = self.exec("cat", tty=False)["process_id"]
        status = self.call("process_status", process)
        self.assertEqual((status["state"], status["eof"]), ("running", False))
        for name in ("ended_at_ms", "termination", "exit_code", "duration_ms", "stopped",
                     "background"):
            self.assertNotIn(name, status)


class Network(ProcessCase):
    def warm(self, client):
        """Run commands until the workspace starts them warm."""
        def is_on():
            self.run_command(client, "true")
            info = client.call("workspace_info", workspace_id="ws")["execution"]
            return info["start"]["warm"] == "on" and info
        return poll(is_on)

    def serve(self, client):
        process = client.call(
            "exec_command", workspace_id="ws", command=["python3", "-c", SERVE]
        )["process_id"]
        output, _ = self.ready(client, process, "\n")
        return process, output.split()[1]

    def connect(self, client, port):
        return self.run_command(client, "python3", "-c", CONNECT, port)

    @needs_sandbox
    def test_cold_is_its_own_and_says_so(self):
        client = self.start("--workspace", "ws=" + self.ws, env={"CODESPACE_WARM": "0"})
        info = client.call("workspace_info", workspace_id="ws")["execution"]
        self.assertEqual(info["start"]["warm"], "off")
        self.assertEqual(
            (info["network"]["scope"], info["network"]["scope_now"]), ("workspace", "command")
        )
        _, port = self.serve(client)
        done = self.connect(client, port)
        self.assertEqual((done["output"], done["network_scope"]), ("refused\n", "command"))

    @needs_sandbox
    def test_warm_commands_share_a_loopback(self):
        info = self.warm(self.client)
        self.assertEqual(info["network"]["scope_now"], "workspace")
        process, port = self.serve(self.client)
        status = self.call("process_status", process)
        self.assertEqual(status["network_scope"], "workspace")
        done = self.connect(self.client, port)
        self.assertEqual((done["output"], done["network_scope"]), ("hello\n", "workspace"))

    @needs_sandbox
    def test_unless_each_is_to_have_its_own(self):
        config = self.config({"workspaces": {"ws": {
            "root": self.ws, "profile": "workspace-write", "network_scope": "command"}}})
        client = self.start("--config", config)
        info = self.warm(client)
        self.assertEqual(
            (info["network"]["scope"], info["network"]["scope_now"]), ("command", "command")
        )
        _, port = self.serve(client)
        done = self.connect(client, port)
        self.assertEqual((done["output"], done["network_scope"]), ("refused\n", "command"))
        # Its own loopback is up.
        script = (
            "import socket; s = socket.create_server(('127.0.0.1', 0)); "
            "socket.create_connection(s.getsockname(), 60); print('up')"
        )
        self.assertEqual(self.run_command(client, "python3", "-c", script)["output"], "up\n")
        links = self.run_command(client, "cat", "/proc/net/dev")["output"]
        self.assertEqual([line.split(":")[0].strip() for line in links.splitlines()[2:]], ["lo"])

    def test_unsandboxed(self):
        client = self.start(env={"CODESPACE_LINUX_SANDBOX_BIN": "/nonexistent"})
        info = client.call("workspace_info", workspace_id="ws")["execution"]
        self.assertEqual(info["network"]["scope_now"], "host")
        self.assertEqual(self.run_command(client, "true")["network_scope"], "host")


class Lost(ProcessCase):
    """The worker is lost between a request and its answer: nothing is guessed."""

    def worker(self):
        name = os.path.basename(os.environ["CODESPACE_RUNTIME_BIN"])
        found = [
            pid for pid, parent, state, command in processes()
            if parent == self.client.pid and name in command
        ]
        self.assertEqual(len(found), 1)
        return found[0]

    def test_an_exec_without_an_answer(self):
        if not REMOTE: # in this program nothing can be lost
            self.assertEqual(self.exec("true", wait_ms=WAIT_MS)["dispatch_status"], "confirmed")
            return
        self.exec("true", wait_ms=WAIT_MS)
        worker = self.worker()
        os.kill(worker, signal.SIGSTOP)
        ident = self.client.begin_call("exec_command", workspace_id="ws", command=["true"])
        waited = self.client.begin_call(
            "exec_command", workspace_id="ws", command=["true"], wait_ms=WAIT_MS
        )
        self.client.request("ping")
        os.kill(worker, signal.SIGKILL)
        for lost in (self.client.finish_call(ident), self.client.finish_call(waited)):
            self.assertEqual(lost["dispatch_status"], "unknown")
            self.assertIn("process_status", lost["hint"])
            self.assertNotIn("state", lost)
            status = self.call("process_status", lost["process_id"])
            self.assertEqual((status["state"], status["termination"]), ("exited", "lost"))
            self.assertNotIn("exit_code", status)
            self.assertIn("not known", status["reason"])
            self.assertEqual((status["sandbox"], status["network_scope"]), ("unknown", "unknown"))
        listed = [p["process_id"] for p in self.client.call("list_processes")["processes"]]
        self.assertIn(lost["process_id"], listed)
        # The next command gets a fresh worker.
        self.assert_exited(self.exec("true", wait_ms=WAIT_MS))

    def test_a_worker_that_ends_before_it_greets(self):
        """It was given nothing, so another takes its place; one that goes on like that is told."""
        if not REMOTE:
            return
        for times, works in ((1, True), (9, False)):
            fake = os.path.join(self.dir, "worker-%d" % times)
            with open(fake, "w", encoding="utf-8") as out:
                out.write(UNGREETING % (fake, times, os.environ["CODESPACE_RUNTIME_BIN"]))
            os.chmod(fake, 0o755)
            client = self.start(env={"CODESPACE_RUNTIME_BIN": fake})
            if works:
                self.assert_exited(client.call(
                    "exec_command", workspace_id="ws", command=["true"], wait_ms=WAIT_MS))
            else:
                error = self.fails("RUNNER_UNAVAILABLE", client, "exec_command",
                                   workspace_id="ws", command=["true"], wait_ms=WAIT_MS)
                self.assertIn("nothing was done", error.message)

    @needs_sandbox
    def test_what_was_kept(self):
        """The command's own end was told, so it stays; what it left went with the worker."""
        mark = self.marker()
        done = self.sh("sleep %s & exit 3" % mark, background="keep")
        self.assertIs(done["background_alive"], True)
        if not REMOTE:
            self.assertEqual(done["exit_code"], 3)
            return
        os.kill(self.worker(), signal.SIGKILL)
        self.assertTrue(poll(lambda: not running(mark)))
        status = poll(
            lambda: (s := self.call("process_status", done["process_id"]))
            and not s["background_alive"] and s
        )
        self.assertEqual((status["termination"], status["exit_code"]), ("exited", 3))
        self.assertIn("lost", status["reason"])

    def test_what_was_told_before(self):
        started = self.exec("sleep", self.marker())
        told = poll(lambda: (s := self.call("process_status", started["process_id"]))
                    and s["started_at_ms"] > 0 and s)
        if not REMOTE:
            self.assertEqual(told["state"], "running")
            return
        os.kill(self.worker(), signal.SIGKILL)
        lost = poll(lambda: (s := self.call("process_status", started["process_id"]))
                    and s["state"] == "exited" and s)
        self.assertEqual(lost["termination"], "lost")
        for key in ("sandbox", "network_scope", "started_at_ms"):
            self.assertEqual(lost[key], told[key])

    def test_a_wait_without_an_end(self):
        if not REMOTE:
            self.assertEqual(self.exec("true", wait_ms=WAIT_MS)["termination"], "exited")
            return
        for _ in range(20):  # again when it was killed before it had told the start
            ident = self.client.begin_call(
                "exec_command", workspace_id="ws", command=["sleep", self.marker()],
                wait_ms=WAIT_MS,
            )
            # A start is kept back for a moment, for the case that its end comes soon.
            self.assertTrue(poll(
                lambda: [p for p in self.client.call("list_processes", live_only=True)["processes"]
                         if 0 < p["started_at_ms"] < 1000 * time.time() - 200]))
            self.exec("true", wait_ms=WAIT_MS)
            os.kill(self.worker(), signal.SIGKILL)
            done = self.client.finish_call(ident)
            if done["dispatch_status"] == "confirmed":
                break
        self.assertEqual((done["dispatch_status"], done["termination"]), ("confirmed", "lost"))


if __name__ == "__main__":
    import unittest

    unittest.main()
