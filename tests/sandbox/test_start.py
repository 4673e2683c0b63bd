#!/usr/bin/env python3
"""`start`: a request, its answer and the command in one process, without a plan on disk. What it
refuses it refuses in the words of `prepare`. See suite.py for how to run it.
"""

import json
import os
import signal
import socket
import subprocess

import suite
from test_sandbox import EXIT, LIMIT, PREFIX, Sandbox

REQUEST_MAX = 4 << 20


def in_memory(data):
    fd = os.memfd_create("request")
    os.write(fd, data)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


class Start(Sandbox):
    def begin(self, request, **popen):
        """The runner's way: (process, our end of the control socket). The request's descriptor is
        closed here."""
        ours, theirs = socket.socketpair()
        popen.setdefault("stdin", subprocess.DEVNULL)
        process = subprocess.Popen(
            [self.helper, "start", "--request-fd", str(request), "--control-fd",
             str(theirs.fileno())],
            pass_fds=[request, theirs.fileno()], start_new_session=True, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, **self.as_user(**popen))
        os.close(request)
        theirs.close()
        ours.settimeout(LIMIT)
        self.addCleanup(ours.close)
        return process, ours

    def begin_command(self, argv, popen=None, **options):
        return self.begin(in_memory(self.request(argv, **options).encode()), **(popen or {}))

    def run_command(self, argv, popen=None, **options):
        return self.finish(*self.begin_command(argv, popen, **options))

    def read_line(self, control):
        text = b""
        while not text.endswith(b"\n"):
            data = control.recv(1)
            self.assertNotEqual(data, b"", "it ended")
            text += data
        return text

    def leaves_nothing(self):
        self.nothing_survives()
        self.assertEqual(os.listdir(self.tmp), [])
        self.assertEqual(os.listdir(self.ws), [])

    def test_answer_comes_first(self):
        done = self.succeeds(self.run_command(["sh", "-c", "echo out; echo err >&2; exit 0"]))
        answer = done.events[0]
        self.assertEqual(sorted(answer), ["guards", "type"])
        self.assertEqual(answer["type"], "prepared")
        self.assertIn(f"{self.ws}/.git", answer["guards"])
        self.assertEqual((done.out, done.err), (b"out\n", b"err\n"))
        self.leaves_nothing()

    def test_same_as_prepare_and_run(self):
        script = "id -u; pwd; env | sort; cat /proc/self/status | grep -E 'Cap|NoNew|Seccomp'; " \
                 "ls -la /dev /etc | wc -l; ls /proc/self/fd; ulimit -a"
        request = self.request(["sh", "-c", script], env=["A=b"])
        once = self.succeeds(self.finish(*self.begin(in_memory(request.encode()))))
        twice = self.succeeds(self.run_plan(self.ask(request)["plan_path"]))
        self.assertEqual(once.out, twice.out)

    def test_no_place_for_a_plan_is_needed(self):
        self.succeeds(self.run_command(["true"], popen={"env": {"TMPDIR": "/nowhere"}}))
        self.succeeds(self.run_command(["true"], popen={"env": {"TMPDIR": self.ws}}))
        self.leaves_nothing()

    def test_refusals_are_those_of_prepare(self):
        whole = self.request(["true"])
        for text in ("", "{}", "[]", "nonsense", whole[:-1], whole[:40], whole + "}", "\0" + whole,
                     whole.replace('"protocol": 1', '"protocol": 2'),
                     self.request([]), self.request([""]), self.request(["a\0b"]),
                     self.request(["true"], workspace_root="relative"),
                     self.request(["true"], workspace_root="/nowhere/at/all"),
                     self.request(["true"], hidden=[self.ws]),
                     self.request(["true"], publish=[3000]),
                     self.request(["true"], unknown=1),
                     self.request(["x" * 140000]),
                     self.request(["true"], env=["X=" + "y" * REQUEST_MAX])):
            with self.subTest(text=text[:80], size=len(text)):
                said = self.ask(text)
                self.assertEqual(said["type"], "error")
                done = self.finish(*self.begin(in_memory(text.encode())))
                self.assertEqual((done.events, done.words), ([said], []))
                self.assertEqual((done.status, done.out, done.err), (1, b"", b""))
        self.leaves_nothing()

    def test_requests_that_come_in_another_way(self):
        whole = self.request(["sh", "-c", "exit 3"]).encode()
        reader, writer = os.pipe()
        process, control = self.begin(reader)
        for i in range(0, len(whole), 100):
            os.write(writer, whole[i:i + 100])
        os.close(writer)
        self.assertEqual(self.finish(process, control).end["code"], 3)
        for request, words in ((os.open("/dev/null", os.O_RDONLY), "the request"),
                               (os.open("/", os.O_RDONLY), "cannot be read"),
                               (os.open("/dev/zero", os.O_RDONLY), "HELPER_REQUEST_MAX"),
                               (os.open("/", os.O_PATH), "cannot be read")):
            done = self.finish(*self.begin(request))
            self.assertEqual(len(done.events), 1, done)
            self.assertEqual(done.end["type"], "error")
            self.assertIn(words, done.end["message"])
            self.assertEqual(done.status, 1)

    def test_descriptors(self):
        request = in_memory(self.request(["touch", "ran"]).encode())
        self.addCleanup(os.close, request)
        ours, theirs = socket.socketpair()
        self.addCleanup(ours.close)
        self.addCleanup(theirs.close)
        r, c = str(request), str(theirs.fileno())
        for words in ([], ["--request-fd", r], ["--control-fd", c],
                      ["--request-fd", "777", "--control-fd", c],
                      ["--request-fd", r, "--control-fd", "777"],
                      ["--request-fd", "0", "--control-fd", c],
                      ["--request-fd", "1", "--control-fd", c],
                      ["--request-fd", r, "--control-fd", "2"],
                      ["--request-fd", c, "--control-fd", c],
                      ["--request-fd", r, "--control-fd", c, "--rules-fd", "777"],
                      ["--request-fd", r, "--control-fd", c, "--rules-fd", c],
                      ["--request-fd", r, "--control-fd", c, "--rules-fd", r],
                      ["--request-fd", "x", "--control-fd", c],
                      ["--request-fd", r, "--control-fd", c, "--plan", "/p"]):
            with self.subTest(words=words):
                done = subprocess.run([self.helper, "start", *words], capture_output=True,
                                      timeout=LIMIT, stdin=subprocess.DEVNULL, check=False,
                                      pass_fds=[request, theirs.fileno()], **self.as_user())
                self.assertEqual(done.returncode, EXIT["usage"])
                self.assertTrue(done.stderr.decode().startswith(PREFIX))
        self.leaves_nothing()

    def test_nothing_of_the_request_is_seen_from_outside(self):
        process, control = self.begin_command(["sleep", self.marker], env=["TOKEN=secret-value"])
        self.read_line(control)  # the answer
        self.wait_started(control)
        for name in ("cmdline", "environ"):
            with open(f"/proc/{process.pid}/{name}", "rb") as f:
                text = f.read()
            self.assertNotIn(self.marker.encode(), text)
            self.assertNotIn(b"secret-value", text)
        self.assertEqual(os.path.basename(os.readlink(f"/proc/{process.pid}/exe")), "bwrap")
        self.end(process, control)
        self.leaves_nothing()

    def test_the_request_is_not_the_commands(self):
        done = self.succeeds(self.run_command(["sh", "-c", "ls /proc/self/fd"]))
        self.assertEqual(done.out.split(), [b"0", b"1", b"2", b"3"])  # 3: the directory

    def test_killed_at_any_step(self):
        def at_once(process, control):
            del process, control

        def after_the_answer(process, control):
            self.assertEqual(json.loads(self.read_line(control))["type"], "prepared")
            del process

        def when_it_runs(process, control):
            after_the_answer(process, control)
            self.wait_started(control)

        for step in (at_once, after_the_answer, when_it_runs) * 5:
            process, control = self.begin_command(["sleep", self.marker])
            step(process, control)
            process.send_signal(signal.SIGKILL)
            process.wait(LIMIT)
            self.end(process, control)
            self.leaves_nothing()

    def test_killed_while_it_waits_for_the_request(self):
        reader, writer = os.pipe()
        self.addCleanup(os.close, writer)
        process, control = self.begin(reader)
        process.kill()
        done = self.finish(process, control)
        self.assertEqual((done.status, done.events, done.words), (-signal.SIGKILL, [], []))
        self.leaves_nothing()

    def test_nobody_hears_the_answer(self):
        for text in (self.request(["touch", "ran"]), "{}"):
            reader, writer = os.pipe()
            process, control = self.begin(reader)
            control.close()
            os.write(writer, text.encode())
            os.close(writer)
            self.assertNotEqual(process.wait(LIMIT), 0)
            process.communicate(timeout=LIMIT)
        self.leaves_nothing()

    def test_guards_hold(self):
        done = self.run_command(["sh", "-c", "mkdir .git && echo x > .git/config"])
        self.succeeds(done, removed=[".git"])
        self.leaves_nothing()

    def test_bubblewrap_that_is_not_there(self):
        env = {"CODESPACE_BWRAP_BIN": "/nowhere/bwrap"}
        process, control = self.begin_command(["true"], popen={"env": env})
        done = self.finish(process, control)
        self.assertEqual([event["type"] for event in done.events], ["error"])
        self.assertEqual(done.end, self.ask(self.request(["true"]), env))


suite.main(Start)
