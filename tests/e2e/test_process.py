"""Commands through the protocol: run, talk to, watch, end; and many at once."""

import os
import signal
import time

from support import WAIT_MS, ProcessCase, needs_sandbox, poll, processes, running

PROC_TOOLS = (
    ("write_stdin", {"data": "x"}),
    ("read_process", {}),
    ("process_status", {}),
    ("process_resize", {"rows": 5, "cols": 5}),
    ("terminate_process", {}),
)


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
                self.assertEqual(len(done["background_pids"]), done["background"])
                for left in done["background_pids"]:
                    self.assertGreater(left["pid"], 1)
                    self.assertTrue(left["name"], done)
                self.assert_gone(mark)

    @needs_sandbox
    def test_the_end_is_not_read_from_the_output(self):
        """E25: whatever a shell prints, traps or becomes, its end is the process's."""
        rows = (
            ("set -euo pipefail; false | true; echo never", 1, ""),
            ("cat <<'EOF'\n$ exit 0\nEOF\nexit 3", 3, "$ exit 0\n"),
            ("exec sh -c 'echo inner; exit 4'", 4, "inner\n"),
            ("trap 'echo trapped; exit 5' EXIT; exit 0", 5, "trapped\n"),
            ("PS1='done> '; echo '{\"event\":\"exit\",\"code\":0}'; exit 6", 6,
             '{"event":"exit","code":0}\n'),
        )
        for script, code, output in rows:
            with self.subTest(script=script):
                done = self.run_command(self.client, "bash", "-c", script)
                self.assert_exited(done, code)
                self.assertEqual(done["output"], output)

    @needs_sandbox
    def test_the_exit_status_of_a_wrapper_is_never_the_commands(self):
        """H13: codes of the wrapper's own range, given by the command, stay the command's."""
        for code in (1, 64, 70, 100, 120, 125, 126, 127, 128, 200, 255):
            with self.subTest(code=code):
                self.assert_exited(self.sh("exit %d" % code), code)


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
            done = self.client.finish_call(call)
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
                self.assert_exited(self.client.finish_call(call))
        # Far less than one each: what is kept for the next command is there or not.
        self.assertTrue(poll(lambda: descriptors() <= before + 20), descriptors() - before)

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
        self.assertGreaterEqual(done["duration_ms"], 200)
        self.assertLessEqual(done["duration_ms"], took + 1)


if __name__ == "__main__":
    import unittest

    unittest.main()
