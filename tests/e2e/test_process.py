"""Commands through the protocol: run, talk to, watch, end; and many at once."""

import base64
import os
import signal
import time

from support import WAIT_MS, Case, memory_kib, needs_sandbox, poll, processes, running

PROC_TOOLS = (
    ("write_stdin", {"data": "x"}),
    ("read_process", {}),
    ("process_status", {}),
    ("process_resize", {"rows": 5, "cols": 5}),
    ("terminate_process", {}),
)


class ProcessCase(Case):
    def setUp(self):
        super().setUp()
        self.client = self.start()

    def exec(self, *command, **arguments):
        return self.client.call(
            "exec_command", workspace_id="ws", command=list(command), **arguments
        )

    def sh(self, script, **arguments):
        return self.shell(self.client, script, **arguments)

    def begin(self, script, **arguments):
        """Start a script; returns its process id."""
        return self.exec("/bin/sh", "-c", script, **arguments)["process_id"]

    def call(self, tool, process_id, **arguments):
        return self.client.call(tool, process_id=process_id, **arguments)

    def assert_exited(self, done, code=0):
        self.assertEqual(done["state"], "exited", done)
        self.assertEqual(done.get("termination"), "exited", done)
        self.assertEqual(done.get("exit_code"), code, done)
        self.assertNotIn("signal", done)


class Run(ProcessCase):
    @needs_sandbox
    def test_one_call_is_enough(self):
        done = self.sh("echo out; echo err >&2; exit 3")
        self.assert_exited(done, 3)
        self.assertEqual(done["dispatch_status"], "confirmed")
        self.assertEqual(sorted(done["output"].split()), ["err", "out"])
        self.assertIs(done["eof"], True)
        self.assertIs(done["output_lost"], False)
        self.assertIs(done["truncated"], False)
        self.assertEqual(done["sandbox"], "linux-sandbox")
        self.assertIsInstance(done["duration_ms"], int)

    @needs_sandbox
    def test_without_waiting_the_handle_comes_at_once(self):
        started = self.exec("cat")
        self.assertEqual(started["dispatch_status"], "confirmed")
        self.assertTrue(started["process_id"].startswith("proc-"))
        self.assertNotIn("exit_code", started)
        status = self.call("process_status", started["process_id"])
        self.assertEqual(status["state"], "running")
        self.assertNotIn("termination", status)

    @needs_sandbox
    def test_waiting_ends_before_a_long_command(self):
        done = self.exec("sleep", self.marker(), wait_ms=20)
        self.assertEqual(done["state"], "running")
        self.assertIs(done["eof"], False)
        self.assertNotIn("exit_code", done)
        self.assertNotIn("termination", done)

    @needs_sandbox
    def test_the_working_directory(self):
        self.write("dir/sub/f", "x")
        self.assertEqual(self.sh("pwd")["output"], self.ws + "\n")
        self.assertEqual(self.sh("pwd", cwd="dir/sub")["output"], self.ws + "/dir/sub\n")
        self.assertEqual(self.sh("pwd", cwd=".")["output"], self.ws + "\n")

    def test_working_directories_that_are_none(self):
        self.write("file", "x")
        for cwd, codes in (
            ("../", ("PATH_ESCAPE",)),
            ("/tmp", ("PATH_ESCAPE",)),
            ("nope", ("FILE_NOT_FOUND", "INVALID_COMMAND", "PROCESS_SPAWN_FAILED")),
            ("file", ("PATH_NOT_DIRECTORY", "INVALID_COMMAND", "PROCESS_SPAWN_FAILED")),
        ):
            with self.subTest(cwd=cwd):
                error = self.fails(
                    codes, self.client, "exec_command", workspace_id="ws", command=["pwd"],
                    cwd=cwd, wait_ms=WAIT_MS,
                )
                self.assertIn(cwd.strip("/."), error.message)

    @needs_sandbox
    def test_the_environment(self):
        done = self.sh('echo "$A|$B|$PATH"', env={"A": "one two", "B": ""})
        self.assertEqual(done["output"].split("|")[:2], ["one two", ""])
        self.assertIn("/usr/bin", done["output"])

    def test_names_of_variables(self):
        for name in ("", "A=B"):
            with self.subTest(name=name):
                self.fails(
                    ("INVALID_ARGUMENT", "INVALID_COMMAND"), self.client, "exec_command",
                    workspace_id="ws", command=["true"], env={name: "x"},
                )

    @needs_sandbox
    def test_arguments_arrive_as_they_are(self):
        odd = ["", " ", "a b", "$HOME", "`id`", "*", "line\nfeed", "\u00e9\U0001f600", "-n", "--"]
        done = self.run_command(
            self.client, "/bin/sh", "-c", 'for a; do printf "[%s]" "$a"; done', "sh", *odd
        )
        self.assertEqual(done["output"], "".join("[%s]" % a for a in odd))

    def test_empty_commands(self):
        for command in ([], [""], ["", "x"]):
            with self.subTest(command=command):
                self.fails(
                    "INVALID_COMMAND", self.client, "exec_command", workspace_id="ws",
                    command=command,
                )

    def test_a_missing_executable_is_named(self):
        for name in ("no-such-program-here", "/no/such/program", "./none"):
            with self.subTest(name=name):
                error = self.fails(
                    "PROCESS_SPAWN_FAILED", self.client, "exec_command", workspace_id="ws",
                    command=[name], wait_ms=WAIT_MS,
                )
                self.assertIn(name, error.message)

    def test_a_file_that_cannot_be_executed(self):
        self.write("plain.txt", "just text\n")
        error = self.fails(
            "PROCESS_SPAWN_FAILED", self.client, "exec_command", workspace_id="ws",
            command=["./plain.txt"], wait_ms=WAIT_MS,
        )
        self.assertIn("plain.txt", error.message)

    def test_more_argument_than_the_kernel_takes(self):
        """E33: a clear answer before or at the start; never a hang or a lost server."""
        self.fails(
            ("PROCESS_SPAWN_FAILED", "INVALID_COMMAND", "INVALID_ARGUMENT", "LIMIT_EXCEEDED"),
            self.client, "exec_command", workspace_id="ws",
            command=["true"] + ["x" * 100000] * 32, wait_ms=WAIT_MS,
        )
        self.assertEqual(self.client.request("ping"), {})

    @needs_sandbox
    def test_a_signal_is_not_an_exit_code(self):
        """E8: `kill -9 $$` and `exit 137` are told apart."""
        killed = self.sh("kill -9 $$")
        self.assertEqual(killed["termination"], "signaled", killed)
        self.assertEqual(killed["signal"], {"number": 9, "name": "SIGKILL"})
        self.assertNotIn("exit_code", killed)
        self.assert_exited(self.sh("exit 137"), 137)

    @needs_sandbox
    def test_a_time_limit_ends_the_tree(self):
        """E2: setsid does not save anybody."""
        mark = self.marker()
        done = self.sh("setsid sleep %s & sleep %s" % (mark, mark), timeout_ms=300)
        self.assertEqual(done["state"], "exited")
        self.assertEqual(done["termination"], "timeout")
        self.assertNotIn("exit_code", done)
        self.assert_gone(mark)

    @needs_sandbox
    def test_background_children_do_not_hold_the_call(self):
        """E1: the answer comes at the end of the command itself, and says what was left."""
        for script in ("sleep %s & echo done", "setsid -f sleep %s; echo done"):
            with self.subTest(script=script):
                mark = self.marker()
                done = self.sh(script % mark)
                self.assert_exited(done)
                self.assertEqual(done["output"], "done\n")
                self.assertGreaterEqual(done["background"], 1)
                self.assert_gone(mark)

    @needs_sandbox
    def test_the_exit_status_of_a_wrapper_is_never_the_commands(self):
        """H13: codes of the wrapper's own range, given by the command, stay the command's."""
        for code in (1, 64, 70, 100, 120, 125, 126, 127, 128, 200, 255):
            with self.subTest(code=code):
                self.assert_exited(self.sh("exit %d" % code), code)


class Stdin(ProcessCase):
    @needs_sandbox
    def test_text_given_with_the_command(self):
        done = self.run_command(self.client, "cat", stdin="one\ntwo\n")
        self.assert_exited(done)
        self.assertEqual(done["output"], "one\ntwo\n")

    @needs_sandbox
    def test_more_text_than_a_pipe_holds(self):
        text = "0123456789abcdef" * 40000
        done = self.run_command(self.client, "wc", "-c", stdin=text)
        self.assertEqual(done["output"].strip(), str(len(text)))

    @needs_sandbox
    def test_write_and_end_of_file(self):
        process_id = self.exec("cat")["process_id"]
        self.assertIs(self.call("write_stdin", process_id, data="one\n")["ok"], True)
        self.ready(self.client, process_id, "one\n")
        self.call("write_stdin", process_id, data="two\n", eof=True)
        self.assert_exited(self.ended(self.client, process_id))
        page = self.call("read_process", process_id)
        self.assertEqual(page["chunk"], "one\ntwo\n")

    @needs_sandbox
    def test_end_of_file_alone(self):
        process_id = self.exec("wc", "-c")["process_id"]
        self.call("write_stdin", process_id, data="", eof=True)
        self.ended(self.client, process_id)
        self.assertEqual(self.call("read_process", process_id)["chunk"].strip(), "0")

    @needs_sandbox
    def test_writing_to_what_is_closed(self):
        """E27."""
        process_id = self.exec("cat")["process_id"]
        self.call("write_stdin", process_id, data="", eof=True)
        self.fails(
            ("STDIN_CLOSED", "PROCESS_NOT_RUNNING"), self.client, "write_stdin",
            process_id=process_id, data="x",
        )
        self.ended(self.client, process_id)
        self.fails(
            ("STDIN_CLOSED", "PROCESS_NOT_RUNNING"), self.client, "write_stdin",
            process_id=process_id, data="x",
        )

    @needs_sandbox
    def test_a_process_that_never_reads(self):
        """Bytes that wait have a limit; what is refused was not taken."""
        process_id = self.exec("sleep", self.marker())["process_id"]
        chunk = "x" * 500000
        self.call("write_stdin", process_id, data=chunk)
        error = self.fails(
            "STDIN_FULL", self.client, "write_stdin", process_id=process_id, data=chunk * 2
        )
        self.assertRegex(error.message, r"\d{6}")

    @needs_sandbox
    def test_a_command_does_not_eat_the_protocol(self):
        """E29: cat sees what was written to it, not the client's next request."""
        process_id = self.exec("cat")["process_id"]
        for _ in range(20):
            self.assertEqual(self.client.request("ping"), {})
        self.call("write_stdin", process_id, data="mine\n", eof=True)
        self.ended(self.client, process_id)
        self.assertEqual(self.call("read_process", process_id)["chunk"], "mine\n")


class Output(ProcessCase):
    @needs_sandbox
    def test_the_two_streams(self):
        done = self.sh("echo o1; echo e1 >&2; echo o2; echo e2 >&2")
        process_id = done["process_id"]
        for stream, wanted in (("stdout", "o1\no2\n"), ("stderr", "e1\ne2\n")):
            page = self.call("read_process", process_id, stream=stream)
            self.assertEqual(page["chunk"], wanted)
            self.assertIs(page["eof"], True)
        both = self.call("read_process", process_id)["chunk"]
        self.assertEqual(both, self.call("read_process", process_id, stream="combined")["chunk"])
        self.assertEqual(sorted(both.split()), ["e1", "e2", "o1", "o2"])

    @needs_sandbox
    def test_order_across_streams(self):
        """Lines that come apart in time come in that order."""
        process_id = self.begin(
            "for i in 1 2 3; do read x; echo out$i; read x; echo err$i >&2; done"
        )
        for i in (1, 2, 3):
            for word in ("out", "err"):
                self.call("write_stdin", process_id, data="go\n")
                self.ready(self.client, process_id, "%s%d\n" % (word, i))
        self.ended(self.client, process_id)
        self.assertEqual(
            self.call("read_process", process_id)["chunk"], "out1\nerr1\nout2\nerr2\nout3\nerr3\n"
        )

    @needs_sandbox
    def test_reading_waits_for_output_and_not_longer(self):
        process_id = self.begin("echo first; read x; echo second; read x")
        _, cursor = self.ready(self.client, process_id, "first\n")
        waiting = self.client.begin_call(
            "read_process", process_id=process_id, cursor=cursor, wait_ms=600000
        )
        self.assertEqual(self.client.request("ping"), {})
        self.assertFalse(self.client.answered(waiting))
        self.call("write_stdin", process_id, data="\n")
        self.assertEqual(self.client.finish_call(waiting)["chunk"], "second\n")

    @needs_sandbox
    def test_reading_wakes_at_the_end(self):
        process_id = self.begin("read x")
        waiting = self.client.begin_call(
            "read_process", process_id=process_id, cursor=0, wait_ms=600000
        )
        self.call("write_stdin", process_id, data="\n")
        page = self.client.finish_call(waiting)
        self.assertEqual(page["chunk"], "")
        self.assertIs(page["eof"], True)

    @needs_sandbox
    def test_pages_tile_the_output(self):
        line = "h\u00e9llo \u20ac \U0001f600 %d\n"
        self.write("t", "".join(line % i for i in range(200)))
        process_id = self.run_command(self.client, "cat", "t")["process_id"]
        for limit in (16, 61, 4096):
            with self.subTest(limit=limit):
                got, cursor = "", 0
                while True:
                    page = self.call("read_process", process_id, cursor=cursor, limit=limit)
                    self.assertNotIn("\ufffd", page["chunk"])
                    self.assertLessEqual(len(page["chunk"].encode()), limit)
                    got += page["chunk"]
                    cursor = page["cursor"]
                    if page["eof"]:
                        break
                self.assertEqual(got.encode(), self.bytes_of("t"))

    @needs_sandbox
    def test_a_long_output_is_told_to_be_cut(self):
        done = self.sh("head -c 200000 /dev/zero | tr '\\0' a")
        self.assert_exited(done)
        self.assertIs(done["truncated"], True)
        got, cursor = done["output"], done["cursor"]
        while not (page := self.call("read_process", done["process_id"], cursor=cursor))["eof"]:
            got += page["chunk"]
            cursor = page["cursor"]
        self.assertEqual(len(got + page["chunk"]), 200000)

    @needs_sandbox
    def test_any_bytes(self):
        """E14: valid JSON always, base64 without loss."""
        raw = b"ok\xff\xfe\x00\xc3 \xed\xa0\x80"
        self.write("raw", raw)
        process_id = self.run_command(self.client, "cat", "raw")["process_id"]
        page = self.call("read_process", process_id, encoding="base64")
        self.assertEqual(base64.b64decode(page["chunk"]), raw)
        text = self.call("read_process", process_id)["chunk"]
        self.assertTrue(text.startswith("ok\ufffd"))
        self.assertIn("\x00", text)

    @needs_sandbox
    def test_old_output_is_dropped_and_told(self):
        done = self.sh("seq 1 100000")
        status = self.call("process_status", done["process_id"])
        self.assertGreater(status["output_total"], 500000)
        self.assertGreater(status["output_retained_from"], 0)
        page = self.call("read_process", done["process_id"])
        self.assertIs(page["output_lost"], True)
        self.assertEqual(page["retained_from"], status["output_retained_from"])
        late = self.call(
            "read_process", done["process_id"], cursor=status["output_total"] - 7
        )
        self.assertEqual(late["chunk"], "100000\n")
        self.assertIs(late["eof"], True)

    @needs_sandbox
    def test_a_flood_costs_no_memory(self):
        """E11: 256 MiB through a server of a few MiB."""
        self.sh("true")
        before = memory_kib(self.client.pid)
        done = self.sh("head -c 268435456 /dev/zero", wait_ms=60000)
        self.assert_exited(done)
        status = self.call("process_status", done["process_id"])
        self.assertEqual(status["output_total"], 268435456)
        self.assertLess(memory_kib(self.client.pid, "VmHWM") - before, 16 * 1024)

    @needs_sandbox
    def test_output_stays_readable_after_the_end(self):
        """E10: twice, and after other commands."""
        first = self.sh("echo kept")["process_id"]
        for _ in range(5):
            self.sh("true")
        for _ in range(2):
            self.assertEqual(self.call("read_process", first)["chunk"], "kept\n")
        self.assert_exited(self.call("process_status", first))

    @needs_sandbox
    def test_a_cursor_beyond_the_output(self):
        process_id = self.sh("echo x")["process_id"]
        page = self.call("read_process", process_id, cursor=10**9)
        self.assertEqual(page["chunk"], "")


class Terminal(ProcessCase):
    @needs_sandbox
    def test_it_is_one(self):
        done = self.sh("test -t 0 && test -t 1 && test -t 2 && stty size", tty=True)
        self.assert_exited(done)
        self.assertEqual(done["output"].strip(), "24 80")

    @needs_sandbox
    def test_pipes_are_none(self):
        self.assert_exited(self.sh("test ! -t 0 && test ! -t 1 && test ! -t 2"))

    @needs_sandbox
    def test_its_size(self):
        """E17."""
        done = self.sh("stty size", tty=True, rows=50, cols=132)
        self.assertEqual(done["output"].strip(), "50 132")

    @needs_sandbox
    def test_resize_is_seen_and_signalled(self):
        process_id = self.begin(
            'trap "stty size; exit 0" WINCH; echo ready; while :; do sleep 0.02; done', tty=True
        )
        self.ready(self.client, process_id, "ready")
        answer = self.call("process_resize", process_id, rows=40, cols=100)
        self.assertEqual((answer["ok"], answer["rows"], answer["cols"]), (True, 40, 100))
        self.ready(self.client, process_id, "40 100")
        self.assert_exited(self.ended(self.client, process_id))

    @needs_sandbox
    def test_input_and_end_of_file(self):
        process_id = self.exec("cat", tty=True)["process_id"]
        self.call("write_stdin", process_id, data="hello\n")
        self.ready(self.client, process_id, "hello\r\nhello\r\n")
        self.call("write_stdin", process_id, data="", eof=True)
        self.assert_exited(self.ended(self.client, process_id))

    @needs_sandbox
    def test_interrupt_character(self):
        mark = self.marker()
        process_id = self.begin("echo up; exec sleep " + mark, tty=True)
        self.ready(self.client, process_id, "up")
        self.call("write_stdin", process_id, data="\x03")
        status = self.ended(self.client, process_id)
        self.assertEqual(status["termination"], "signaled", status)
        self.assertEqual(status["signal"]["number"], signal.SIGINT)

    @needs_sandbox
    def test_what_cannot_be_resized(self):
        pipe = self.exec("cat")["process_id"]
        self.fails(
            "PROCESS_NOT_TTY", self.client, "process_resize", process_id=pipe, rows=5, cols=5
        )
        ended = self.sh("true", tty=True)["process_id"]
        self.fails(
            "PROCESS_NOT_RUNNING", self.client, "process_resize", process_id=ended, rows=5, cols=5
        )
        for rows, cols in ((0, 80), (24, 0)):
            self.fails(
                ("INVALID_COMMAND", "INVALID_ARGUMENT"), self.client, "process_resize",
                process_id=pipe, rows=rows, cols=cols,
            )


class Handles(ProcessCase):
    def test_unknown_ones(self):
        for tool, arguments in PROC_TOOLS:
            for process_id in ("proc-nope", "", "proc-00000000-0000-4000-8000-000000000000"):
                with self.subTest(tool=tool, process_id=process_id):
                    self.fails(
                        ("PROCESS_NOT_FOUND", "INVALID_ARGUMENT") if not process_id
                        else "PROCESS_NOT_FOUND",
                        self.client, tool, process_id=process_id, **arguments
                    )

    @needs_sandbox
    def test_terminate_takes_the_tree_and_may_be_repeated(self):
        mark = self.marker()
        process_id = self.begin("setsid sleep %s & echo up; sleep %s" % (mark, mark))
        self.ready(self.client, process_id, "up")
        self.assertTrue(poll(lambda: running(mark)))
        self.assertIs(self.call("terminate_process", process_id)["ok"], True)
        status = self.ended(self.client, process_id)
        self.assertEqual(status["termination"], "terminated")
        self.assertNotIn("exit_code", status)
        self.assertNotIn("signal", status)
        self.assert_gone(mark)
        self.assertIs(self.call("terminate_process", process_id)["ok"], True)

    @needs_sandbox
    def test_terminate_is_not_refused_by_a_trap(self):
        process_id = self.begin("trap '' TERM; echo up; while :; do sleep 0.05; done")
        self.ready(self.client, process_id, "up")
        self.call("terminate_process", process_id)
        self.assertEqual(self.ended(self.client, process_id)["termination"], "terminated")

    @needs_sandbox
    def test_a_foreign_signal_is_named(self):
        mark = self.marker()
        process_id = self.exec("sleep", mark)["process_id"]
        pids = poll(lambda: self.pids_of(mark))
        for pid in pids:
            os.kill(pid, signal.SIGUSR1)
        status = self.ended(self.client, process_id)
        self.assertEqual(status["termination"], "signaled", status)
        self.assertEqual(status["signal"], {"number": 10, "name": "SIGUSR1"})

    @staticmethod
    def pids_of(mark):
        return [pid for pid, _, _, command in processes() if command == "sleep " + mark]

    @needs_sandbox
    def test_the_limit_of_live_processes(self):
        client = self.start(env={"CODESPACE_MAX_PROCESSES": "2"})
        ids = [
            client.call("exec_command", workspace_id="ws", command=["cat"])["process_id"]
            for _ in range(2)
        ]
        error = self.fails(
            "PROCESS_LIMIT", client, "exec_command", workspace_id="ws", command=["cat"]
        )
        self.assertIn("2", error.message)
        client.call("terminate_process", process_id=ids[0])
        self.ended(client, ids[0])
        client.call("exec_command", workspace_id="ws", command=["cat"])


class Cancel(ProcessCase):
    def begin_sleep(self, mark):
        call = self.client.begin_call(
            "exec_command", workspace_id="ws", wait_ms=600000,
            command=["/bin/sh", "-c", "setsid sleep %s & sleep %s" % (mark, mark)],
        )
        self.assertTrue(poll(lambda: len(running("sleep " + mark)) >= 2))
        return call

    @needs_sandbox
    def test_a_cancelled_command_leaves_nothing(self):
        """G1, G2: the tree is gone, no answer comes, the server is well."""
        mark = self.marker()
        call = self.begin_sleep(mark)
        self.client.notify("notifications/cancelled", {"requestId": call, "reason": "test"})
        self.assert_gone(mark)
        self.assertEqual(self.client.request("ping"), {})
        self.assertFalse(self.client.answered(call))
        self.client.notify("notifications/cancelled", {"requestId": call})
        self.assertEqual(self.client.request("ping"), {})

    @needs_sandbox
    def test_cancelling_at_once(self):
        """Before anything was started, or in the middle of it: the same."""
        mark = self.marker()
        for _ in range(20):
            call = self.client.begin_call(
                "exec_command", workspace_id="ws", command=["sleep", mark], wait_ms=600000
            )
            self.client.notify("notifications/cancelled", {"requestId": call})
        self.assertEqual(self.client.request("ping"), {})
        self.assert_gone(mark)
        self.assertEqual(self.sh("echo well")["output"], "well\n")

    @needs_sandbox
    def test_a_cancelled_read_leaves_the_process(self):
        process_id = self.exec("cat")["process_id"]
        call = self.client.begin_call("read_process", process_id=process_id, wait_ms=600000)
        self.client.notify("notifications/cancelled", {"requestId": call})
        self.assertEqual(self.call("process_status", process_id)["state"], "running")
        self.assertFalse(self.client.answered(call))

    @needs_sandbox
    def test_a_cancelled_wait_after_the_handle_leaves_others(self):
        mark, other = self.marker(), self.marker()
        call = self.begin_sleep(mark)
        self.exec("sleep", other)
        self.assertTrue(poll(lambda: running(other)))
        self.client.notify("notifications/cancelled", {"requestId": call})
        self.assert_gone(mark)
        self.assertTrue(running(other))


class Together(ProcessCase):
    @needs_sandbox
    def test_a_slow_command_holds_nobody(self):
        """E31: ping, read, patch and other commands go on beside it."""
        self.write("a.txt", "alpha\n")
        mark = self.marker()
        slow = self.client.begin_call(
            "exec_command", workspace_id="ws", command=["sleep", mark], wait_ms=600000
        )
        self.assertTrue(poll(lambda: running(mark)))
        self.assertEqual(self.client.request("ping"), {})
        page = self.client.call("read", workspace_id="ws", path="a.txt")
        self.assertEqual(page["content"], "alpha\n")
        patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n-alpha\n+beta\n*** End Patch\n"
        self.client.call("apply_patch", workspace_id="ws", patch=patch)
        for i in range(10):
            self.assertEqual(self.sh("echo %d" % i)["output"], "%d\n" % i)
        self.assertFalse(self.client.answered(slow))

    @needs_sandbox
    def test_sixteen_at_once(self):
        calls = [
            self.client.begin_call(
                "exec_command", workspace_id="ws", wait_ms=WAIT_MS,
                command=["/bin/sh", "-c", "echo %d > f%d; cat f%d" % (i, i, i)],
            )
            for i in range(16)
        ]
        for i, call in enumerate(calls):
            done = self.client.finish_call(call, 60)
            self.assert_exited(done)
            self.assertEqual(done["output"], "%d\n" % i)

    @needs_sandbox
    def test_a_hundred_commands_leave_no_descriptor(self):
        def descriptors():
            return len(os.listdir("/proc/%d/fd" % self.client.pid))

        for _ in range(5):
            self.sh("true")
        before = descriptors()
        for _ in range(20):
            calls = [
                self.client.begin_call(
                    "exec_command", workspace_id="ws", command=["true"], wait_ms=WAIT_MS
                )
                for _ in range(5)
            ]
            for call in calls:
                self.assert_exited(self.client.finish_call(call, 60))
        self.assertTrue(poll(lambda: descriptors() <= before), descriptors() - before)

    @needs_sandbox
    def test_no_zombies(self):
        """E6: whatever a command leaves behind is reaped by somebody."""
        for _ in range(20):
            self.sh("(sleep 0.01 &); (true &); true")

        def zombies():
            return [c for c in processes() if c[1] == self.client.pid and c[2] == "Z"]

        self.assertTrue(poll(lambda: not zombies()), zombies())

    @needs_sandbox
    def test_times_are_of_the_command(self):
        before = time.monotonic()
        done = self.sh("sleep 0.2")
        took = (time.monotonic() - before) * 1000
        self.assertGreaterEqual(done["duration_ms"], 199)
        self.assertLessEqual(done["duration_ms"], took + 1)


if __name__ == "__main__":
    import unittest

    unittest.main()
