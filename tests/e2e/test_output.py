"""What goes into a command and what comes out of it: standard input, output, terminals."""

import base64
import signal

from support import WAIT_MS, ProcessCase, memory_kib, needs_sandbox


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
        """Far beyond what is kept: head and tail stay, and only who asks for the middle loses."""
        done = self.sh("seq 1 6000000")
        status = self.call("process_status", done["process_id"])
        self.assertGreater(status["output_total"], 40 << 20)
        self.assertGreater(status["output_retained_from"], 16 << 20)
        head = self.call("read_process", done["process_id"])
        self.assertIs(head["output_lost"], False)
        self.assertTrue(head["chunk"].startswith("1\n2\n3\n"))
        page = self.call("read_process", done["process_id"], cursor=(16 << 20) + 5)
        self.assertIs(page["output_lost"], True)
        self.assertEqual(page["retained_from"], status["output_retained_from"])
        late = self.call(
            "read_process", done["process_id"], cursor=status["output_total"] - 8
        )
        self.assertEqual(late["chunk"], "6000000\n")
        self.assertIs(late["eof"], True)

    @needs_sandbox
    def test_who_follows_misses_nothing(self):
        """Six times what is kept otherwise, written faster than anybody reads."""
        size = 192 << 20
        process_id = self.begin("yes 0123456789abcde | head -c %d" % size)
        cursor = 0
        while True:
            page = self.call(
                "read_process", process_id, cursor=cursor, limit=1 << 19, wait_ms=WAIT_MS
            )
            self.assertIs(page["output_lost"], False, cursor)
            self.assertEqual(page["start"], cursor)
            if page["chunk"]:
                self.assertEqual(page["chunk"][0], "0123456789abcde\n"[cursor % 16])
            cursor = page["cursor"]
            if page["eof"]:
                break
        self.assertEqual(cursor, size)

    @needs_sandbox
    def test_one_line_of_five_mebibytes(self):
        """E13: pages are cut by bytes, not by lines."""
        process_id = self.sh("head -c 5242880 /dev/zero | tr '\\0' a", wait_ms=WAIT_MS)["process_id"]
        got, cursor, pages = 0, 0, 0
        while True:
            page = self.call("read_process", process_id, cursor=cursor, limit=100000)
            got += len(page["chunk"])
            cursor, pages = page["cursor"], pages + 1
            if page["eof"]:
                break
        self.assertEqual((got, pages), (5242880, 53))
        tail = self.call("read_process", process_id, tail_bytes=10)
        self.assertEqual(tail["chunk"], "a" * 10)

    @needs_sandbox
    def test_limits_of_a_page(self):
        process_id = self.sh("echo x")["process_id"]
        for limit in (0, (1 << 19) + 1):
            self.fails(
                "OUTPUT_LIMIT", self.client, "read_process", process_id=process_id, limit=limit
            )
        self.assertEqual(self.call("read_process", process_id, limit=1 << 19)["chunk"], "x\n")

    @needs_sandbox
    def test_a_flood_costs_no_memory(self):
        """E11: 256 MiB through a server of a few MiB."""
        self.sh("true")
        before = memory_kib(self.client.pid)
        done = self.sh("head -c 268435456 /dev/zero", wait_ms=300000)
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
    def test_it_answers_no_questions(self):
        """E19: nobody stands behind it; the question is output, and the program goes on alone."""
        script = "stty -echo -icanon; printf '\\033[6n'; read -r -t 0.2 -d R x || echo none"
        done = self.run_command(self.client, "bash", "-c", script, tty=True)
        self.assert_exited(done)
        self.assertEqual(done["output"], "\x1b[6nnone\r\n")

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


if __name__ == "__main__":
    import unittest

    unittest.main()
