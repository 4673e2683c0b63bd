"""A durable worker: processes and their output outlive the gateway, and nothing outlives the worker.

Each test has a worker directory of its own. The worker is started by the first gateway (or by the
test) and is ended by the test; the harness finds whatever would be left.
"""

import json
import os
import signal
import socket
import struct
import subprocess
import unittest

from support import SERVER, WAIT_MS, Case, needs_sandbox, own_children, poll, processes

RUNTIME = os.environ.get("CODESPACE_RUNTIME_BIN", "")


def frame(message):
    data = json.dumps(message).encode()
    return struct.pack(">I", len(data)) + data


def answers(path, data):
    """What a worker says to these bytes until it hangs up."""
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(60)
        s.connect(path)
        if data:
            s.sendall(data)
        got = b""
        while True:
            chunk = s.recv(65536)
            if not chunk:
                return got
            got += chunk


class Durable(Case):
    def setUp(self):
        super().setUp()
        self.place = os.path.join(self.dir, "worker")
        self.ledger = os.path.join(self.dir, "ledger.db")
        self.addCleanup(self.end_worker)

    # ---- the worker ----

    def worker_pid(self):
        try:
            with open(os.path.join(self.place, "lock")) as f:
                pid = int(f.read() or 0)
        except (FileNotFoundError, ValueError):
            return 0
        return pid if pid in [p for p, _ in own_children() + self.below()] else 0

    def below(self):
        return [(pid, c) for pid, _, state, c in processes() if self.place in c and state != "Z"]

    def end_worker(self, number=signal.SIGTERM):
        pid = self.worker_pid()
        if pid:
            os.kill(pid, number)
            self.assertTrue(poll(lambda: not self.worker_pid()), "the worker does not end")

    def worker(self, **env):
        """A worker that the test starts; waits until it listens."""
        process = subprocess.Popen(
            [RUNTIME, "--durable", self.place],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            env=self.environment(**env),
        )
        self.addCleanup(process.wait)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.kill)
        self.assertEqual(process.stdout.readline(), b"listening\n")
        return process

    # ---- gateways ----

    def gateway(self, *more, env=None):
        return self.start(
            "--workspace", "ws=" + self.ws, "--ledger", self.ledger, "--runner", "uds",
            "--runner-durable", self.place, *more, env=env,
        )

    def kill(self, client):
        client.signal(signal.SIGKILL)
        self.assertEqual(client.wait_exit(), -signal.SIGKILL)

    def begin(self, client, script, **arguments):
        done = client.call(
            "exec_command", workspace_id="ws", command=["/bin/sh", "-c", script], **arguments
        )
        return done["process_id"]

    def state(self, client, process):
        return client.call("process_status", process_id=process)

    def operation(self, client, process):
        return client.call("operation_status", process_id=process)

    # ---- tests ----

    @needs_sandbox
    def test_a_command_outlives_a_killed_gateway(self):
        first = self.gateway()
        process = self.begin(first, "echo before; read line; echo got $line; exit 7")
        self.ready(first, process, "before\n")
        poll(lambda: self.operation(first, process)["status"] == "running")
        worker = self.worker_pid()
        self.kill(first)
        second = self.gateway()
        self.assertEqual(self.worker_pid(), worker)
        self.assertEqual(self.state(second, process)["state"], "running")
        listed = second.call("list_processes")["processes"]
        self.assertEqual([p["process_id"] for p in listed], [process])
        self.ready(second, process, "before\n")
        self.assertEqual(self.operation(second, process)["status"], "running")
        second.call("write_stdin", process_id=process, data="again\n")
        self.ready(second, process, "got again\n")
        done = self.ended(second, process)
        self.assertEqual((done["termination"], done["exit_code"]), ("exited", 7))
        self.assertTrue(poll(lambda: self.operation(second, process)["status"] == "ended"))

    @needs_sandbox
    def test_what_ended_meanwhile_is_told(self):
        first = self.gateway()
        process = self.begin(first, "read line; echo $line; exit 9", stdin="x")
        gone = self.begin(first, "while [ ! -e go ]; do sleep 0.02; done; echo late; exit 4")
        self.ended(first, process)
        poll(lambda: self.operation(first, gone)["status"] == "running")
        self.kill(first)
        self.write("go", "")
        second = self.gateway()
        page = second.call("read_process", process_id=gone, wait_ms=WAIT_MS, cursor=0)
        done = self.ended(second, gone)
        self.assertEqual((done["termination"], done["exit_code"]), ("exited", 4))
        self.assertEqual(page["chunk"], "late\n")
        self.assertEqual(self.state(second, process)["exit_code"], 9)
        self.assertTrue(poll(lambda: self.operation(second, gone)["status"] == "ended"))

    @needs_sandbox
    def test_an_orderly_end_leaves_them_too(self):
        first = self.gateway()
        process = self.begin(first, "echo on; exec sleep " + self.marker())
        self.ready(first, process, "on\n")
        self.assertEqual(first.close(), 0)
        second = self.gateway()
        self.assertEqual(self.state(second, process)["state"], "running")
        second.call("terminate_process", process_id=process, grace_ms=0)
        self.assertEqual(self.ended(second, process)["termination"], "terminated")

    @needs_sandbox
    def test_a_key_finds_the_command_of_the_last_gateway(self):
        first = self.gateway()
        script = "echo run >> runs; read line"
        process = self.begin(first, script, operation_key="k")
        self.kill(first)
        second = self.gateway()
        self.assertEqual(self.begin(second, script, operation_key="k"), process)
        second.call("write_stdin", process_id=process, data="\n")
        self.ended(second, process)
        self.assertEqual(self.bytes_of("runs"), b"run\n")

    @needs_sandbox
    def test_a_killed_worker_takes_all_with_it(self):
        client = self.gateway()
        mark = self.marker()
        process = self.begin(client, "echo on; exec sleep " + mark)
        self.ready(client, process, "on\n")
        poll(lambda: self.operation(client, process)["status"] == "running")
        self.end_worker(signal.SIGKILL)
        self.assert_gone(mark)
        self.assertTrue(poll(lambda: self.state(client, process)["state"] == "exited"))
        lost = self.state(client, process)
        self.assertEqual(lost["termination"], "lost")
        self.assertNotIn("exit_code", lost)
        self.assertTrue(poll(lambda: self.operation(client, process)["status"] == "lost"))
        done = self.shell(client, "echo new")  # by a fresh worker
        self.assertEqual(done["output"], "new\n")
        self.assertEqual(self.state(client, process)["termination"], "lost")

    @needs_sandbox
    def test_both_killed(self):
        client = self.gateway()
        mark = self.marker()
        process = self.begin(client, "echo on; exec sleep " + mark)
        self.ready(client, process, "on\n")
        poll(lambda: self.operation(client, process)["status"] == "running")
        self.kill(client)
        self.end_worker(signal.SIGKILL)
        self.assert_gone(mark)
        second = self.gateway()
        self.fails("PROCESS_NOT_FOUND", second, "process_status", process_id=process)
        self.assertTrue(poll(lambda: self.operation(second, process)["status"] == "lost"))

    @needs_sandbox
    def test_one_gateway_at_a_time(self):
        first = self.gateway()
        process = self.begin(first, "echo on; exec sleep " + self.marker())
        self.ready(first, process, "on\n")
        second = self.start(
            "--workspace", "ws=" + self.ws, "--runner", "uds", "--runner-durable", self.place
        )
        error = self.fails(
            "RUNNER_UNAVAILABLE", second, "exec_command", workspace_id="ws", command=["true"]
        )
        self.assertIn("another gateway (process %d)" % first.pid, error.message)
        self.assertEqual(self.state(first, process)["state"], "running")
        self.assertEqual(first.close(), 0)

        def reached():
            try:
                return self.state(second, process)
            except Exception:  # until the worker has seen the end of the first
                return None

        self.assertEqual(poll(reached)["state"], "running")

    @needs_sandbox
    def test_the_idle_limit_ends_it_and_says_so(self):
        worker = self.worker(CODESPACE_DURABLE_IDLE_SECS="8")  # the gateway comes sooner
        client = self.gateway()
        mark = self.marker()
        process = self.begin(client, "echo on; exec sleep " + mark)
        self.ready(client, process, "on\n")
        self.kill(client)
        self.assertEqual(worker.wait(timeout=90), 0)
        self.assert_gone(mark)
        with open(os.path.join(self.place, "ended")) as f:
            words = f.read()
        self.assertIn("CODESPACE_DURABLE_IDLE_SECS", words)
        self.assertEqual(sorted(os.listdir(self.place)), ["ended", "lock"])

    @needs_sandbox
    def test_the_last_words_reach_the_client(self):
        client = self.gateway()
        process = self.begin(client, "echo on; exec sleep " + self.marker())
        self.ready(client, process, "on\n")
        self.end_worker()
        self.assertTrue(poll(lambda: self.state(client, process)["state"] == "exited"))
        lost = self.state(client, process)
        self.assertEqual(lost["termination"], "lost")
        self.assertIn("ended by signal 15", lost["reason"])

    def test_a_second_worker_and_bad_places(self):
        self.worker()

        def run(place):
            return subprocess.run(
                [RUNTIME, "--durable", place], stdin=subprocess.DEVNULL, capture_output=True,
                env=self.environment(), timeout=60,
            )

        second = run(self.place)
        self.assertEqual(second.returncode, 69)
        self.assertIn(b"another worker has", second.stderr)
        open_dir = self.make_dir("open")
        os.chmod(open_dir, 0o755)
        for place, word in (
            (open_dir, b"0700"), ("/tmp", b"name a directory below"), ("relative", b"absolute"),
        ):
            with self.subTest(place=place):
                done = run(place)
                self.assertEqual(done.returncode, 69)
                self.assertIn(word, done.stderr)
        self.assertEqual(os.stat(open_dir).st_mode & 0o777, 0o755)
        self.assertEqual(os.listdir(open_dir), [])

    def test_other_versions_and_noise_do_not_end_it(self):
        worker = self.worker()
        path = os.path.join(self.place, "runner.sock")
        old = answers(path, frame({
            "protocol": 4, "kind": "request", "request_id": "r-1",
            "op": {"op": "hello", "data": {}},
        }))
        self.assertIn(b"speaks version 5 only", old)
        for noise in (
            b"GET / HTTP/1.1\r\n\r\n",
            struct.pack(">I", 0),
            struct.pack(">I", 0xFFFFFFFF) + b"x",
            frame({"protocol": 5, "kind": "request", "request_id": "r-1",
                   "op": {"op": "ping", "data": {}}}),
        ):
            with self.subTest(noise=noise):
                answers(path, noise)
        self.assertIsNone(worker.poll())
        hello = frame({"protocol": 5, "kind": "request", "request_id": "h",
                       "op": {"op": "hello", "data": {"program": "t"}}})
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(60)
            s.connect(path)
            s.sendall(hello)
            welcome = json.loads(s.recv(65536)[4:])["result"]["data"]
            self.assertIs(welcome["durable"], True)
            self.assertEqual(welcome["epoch"], 1)
            with self.subTest("a second connection is told who has it"):
                self.assertIn(b"process %d" % os.getpid(), answers(path, b""))

    @unittest.skipUnless(os.getuid() == 0, "only root can be somebody else")
    def test_another_user_is_refused_by_name(self):
        self.worker()
        os.chmod(self.dir, 0o755)
        home = self.make_dir("other")
        os.chown(home, 65534, 65534)
        done = subprocess.run(
            [SERVER, "--workspace", "ws=" + self.ws, "--runner", "uds",
             "--runner-socket", os.path.join(self.place, "runner.sock")],
            stdin=subprocess.DEVNULL, capture_output=True, user=65534, group=65534, timeout=60,
            env=self.environment(HOME=home, TMPDIR=home, CODESPACE_RUNTIME_BIN=None),
        )
        self.assertEqual(done.returncode, 69, done.stderr)
        self.assertIn(b"belongs to another user (uid 0)", done.stderr)

    def test_in_process_cannot_be_durable(self):
        status, stderr = self.refused(
            "--workspace", "ws=" + self.ws, "--runner-durable", self.place,
            env={"CODESPACE_RUNNER": "in-process"},
        )
        self.assertIn("--runner-durable needs --runner uds", stderr)
        self.assertEqual(status, 78)
