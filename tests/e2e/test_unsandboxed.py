"""No sandbox: restricted commands run on the host and everybody is told; or it is demanded (R13,
R14). Which of the two is the operator's word, never what happens to be installed."""

import os
import signal

from support import HELPER, Case, ToolError, needs_sandbox, poll, running

NOWHERE = {"CODESPACE_LINUX_SANDBOX_BIN": "/nonexistent/helper"}


class Told(Case):
    def setUp(self):
        super().setUp()
        self.client = self.start(env=NOWHERE)

    def test_workspace_info(self):
        execution = self.client.call("workspace_info", workspace_id="ws")["execution"]
        self.assertEqual(execution["isolation"]["command_sandbox"], "none")
        self.assertEqual(execution["network"]["policy"], "restricted")
        self.assertEqual(execution["network"]["enforcement"], "none")
        self.assertIs(execution["process"]["available"], True)

    def test_stderr_with_cause_and_remedy(self):
        self.client.call("workspace_info", workspace_id="ws")
        line = self.client.stderr_line("sandbox")
        self.assertTrue(line)
        text = "\n".join(self.client.stderr_lines)
        self.assertIn("CODESPACE_LINUX_SANDBOX_BIN", text)

    def test_descriptions(self):
        """H14: texts never speak of a wall that does not stand."""
        self.client.call("workspace_info", workspace_id="ws")
        tools = {t["name"]: t for t in self.client.request("tools/list")["tools"]}
        text = tools["exec_command"]["description"].lower()
        self.assertRegex(text, "without (a|any|the) sandbox|not sandboxed|no sandbox|unsandboxed")

    def test_every_answer(self):
        done = self.shell(self.client, "echo here; exit 4")
        self.assertEqual((done["output"], done["exit_code"]), ("here\n", 4))
        self.assertEqual(done["sandbox"], "none")
        status = self.client.call("process_status", process_id=done["process_id"])
        self.assertEqual(status.get("sandbox", "none"), "none")


class HostRun(Case):
    """The same contract on the host, as far as a host can keep it."""

    def setUp(self):
        super().setUp()
        self.client = self.start(env={**NOWHERE, "MY_SECRET": "hush-on-host"})

    def sh(self, script, **arguments):
        return self.shell(self.client, script, **arguments)

    def test_a_clean_environment(self):
        output = self.sh("env")["output"]
        self.assertNotIn("MY_SECRET", output)
        self.assertNotIn("CODESPACE_", output)
        self.assertIn("PATH=", output)

    def test_place_input_and_variables(self):
        self.write("d/f", "x")
        done = self.sh('pwd; cat; echo "$A"', cwd="d", stdin="in\n", env={"A": "b"})
        self.assertEqual(done["output"], self.ws + "/d\nin\nb\n")

    def test_signals_and_codes(self):
        self.assertEqual(self.sh("kill -9 $$")["signal"], {"number": 9, "name": "SIGKILL"})
        self.assertEqual(self.sh("exit 137")["exit_code"], 137)

    def test_a_missing_executable_is_named(self):
        error = self.fails(
            "PROCESS_SPAWN_FAILED", self.client, "exec_command", workspace_id="ws",
            command=["no-such-program-here"], wait_ms=20000,
        )
        self.assertIn("no-such-program-here", error.message)

    def test_only_three_descriptors(self):
        """E30."""
        listing = self.sh("ls -l /proc/self/fd")["output"]
        numbers = [line.split()[8] for line in listing.splitlines() if "->" in line]
        self.assertEqual(numbers, ["0", "1", "2", "3"], listing)

    def test_time_limit_and_terminate_take_the_group(self):
        """L26: children of a shell do not stay behind."""
        mark = self.marker()
        done = self.sh("sleep %s & sleep %s" % (mark, mark), timeout_ms=300)
        self.assertEqual(done["termination"], "timeout")
        self.assert_gone(mark)
        started = self.client.call(
            "exec_command", workspace_id="ws",
            command=["/bin/sh", "-c", "sleep %s & sleep %s" % (mark, mark)],
        )
        self.assertTrue(poll(lambda: len(running("sleep " + mark)) >= 2))
        self.client.call("terminate_process", process_id=started["process_id"])
        status = self.ended(self.client, started["process_id"])
        self.assertEqual(status["termination"], "terminated")
        self.assert_gone(mark)

    def test_background_children_do_not_hold_the_call(self):
        mark = self.marker()
        done = self.sh("sleep %s & echo done" % mark)
        self.assertEqual((done["state"], done["exit_code"]), ("exited", 0))
        self.assertEqual(done["output"], "done\n")
        self.assert_gone(mark)

    def test_terminal(self):
        done = self.sh("stty size; test -t 0", tty=True, rows=10, cols=20)
        self.assertEqual((done["output"].strip(), done["exit_code"]), ("10 20", 0))

    def test_the_end_of_the_server(self):
        for number in (None, signal.SIGTERM):
            with self.subTest(signal=number):
                client, mark = self.start(env=NOWHERE), self.marker()
                client.call("exec_command", workspace_id="ws", command=["sleep", mark])
                self.assertTrue(poll(lambda: running(mark)))
                if number is None:
                    client.close()
                else:
                    client.signal(number)
                    self.assertEqual(client.wait_exit(), 0)
                self.assert_gone(mark)


class Demanded(Case):
    def check_refused(self, client, *codes):
        error = self.fails(
            codes, client, "exec_command", workspace_id="ws", command=["touch", "ran"],
            wait_ms=20000,
        )
        self.assertFalse(os.path.exists(self.path("ran")))
        return error

    def test_by_the_server(self):
        client = self.start("--workspace", "ws=" + self.ws, "--require-sandbox", env=NOWHERE)
        error = self.check_refused(client, "SANDBOX_UNAVAILABLE")
        self.assertIn("CODESPACE_LINUX_SANDBOX_BIN", error.message)
        self.write("a", "x")
        self.assertEqual(client.call("read", workspace_id="ws", path="a")["content"], "x")

    def test_by_the_workspace(self):
        other = self.make_dir("other")
        config = self.config(
            {
                "workspaces": {
                    "ws": {"root": self.ws, "profile": "workspace-write", "sandbox": "required"},
                    "loose": {"root": other, "profile": "workspace-write"},
                }
            }
        )
        client = self.start("--config", config, env=NOWHERE)
        self.check_refused(client, "SANDBOX_UNAVAILABLE")
        done = self.run_command(client, "pwd", workspace_id="loose")
        self.assertEqual((done["output"], done["sandbox"]), (other + "\n", "none"))

    def test_enabled_network_never_runs_without_it(self):
        config = self.config(
            {
                "workspaces": {
                    "ws": {"root": self.ws, "profile": "workspace-write", "network": "enabled"}
                }
            }
        )
        client = self.start("--config", config, env=NOWHERE)
        self.check_refused(client, "PROCESS_SPAWN_FAILED", "SANDBOX_UNAVAILABLE")


class Broken(Case):
    """R14: a sandbox that was there and fails is never replaced by no sandbox."""

    def helper(self, start):
        path = os.path.join(self.dir, "helper.sh")
        with open(path, "w") as f:
            f.write(
                '#!/bin/sh\ncase "$1" in\nstart) %s;;\n*) exec "%s" "$@";;\nesac\n' % (start, HELPER)
            )
        os.chmod(path, 0o755)
        return {"CODESPACE_LINUX_SANDBOX_BIN": path}

    def refused_with(self, start):
        client = self.start(env=self.helper(start))
        info = client.call("workspace_info", workspace_id="ws")["execution"]
        self.assertEqual(info["isolation"]["command_sandbox"], "linux-sandbox")
        error = self.fails(
            "PROCESS_SPAWN_FAILED", client, "exec_command", workspace_id="ws",
            command=["touch", "ran"], wait_ms=20000,
        )
        self.assertFalse(os.path.exists(self.path("ran")))
        return error

    @needs_sandbox
    def test_helper_that_fails(self):
        error = self.refused_with("echo broken >&2; exit 1")
        self.assertIn("broken", error.message)

    @needs_sandbox
    def test_helper_that_says_why(self):
        error = self.refused_with(
            "cat <&4 >/dev/null; "
            "echo '{\"type\":\"error\",\"message\":\"walls are out\"}' >&3; exit 1"
        )
        self.assertIn("the sandbox refused: walls are out", error.message)

    @needs_sandbox
    def test_helper_that_answers_nonsense(self):
        for answer in ("nonsense", "{}", '{"type":"plan"}', '{"type":"prepared","guards":[1]}'):
            with self.subTest(answer=answer):
                self.refused_with("cat <&4 >/dev/null; echo '%s' >&3" % answer)

    @needs_sandbox
    def test_helper_that_floods(self):
        self.refused_with("cat <&4 >/dev/null; head -c 5000000 /dev/zero >&3")

    @needs_sandbox
    def test_what_fails_after_the_answer_is_not_the_commands_end(self):
        """R15, H13: the wrapper's failure is told as the wrapper's."""
        client = self.start(
            env=self.helper("cat <&4 >/dev/null; echo '{\"type\":\"prepared\"}' >&3; exit 1")
        )
        try:
            done = self.run_command(client, "touch", "ran")
        except ToolError as error:
            self.assertEqual(error.code, "PROCESS_SPAWN_FAILED")
        else:
            self.assertEqual(done["termination"], "wrapper_failed", done)
            self.assertNotIn("exit_code", done)
            self.assertTrue(done["reason"])
        self.assertFalse(os.path.exists(self.path("ran")))


if __name__ == "__main__":
    import unittest

    unittest.main()
