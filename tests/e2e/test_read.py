"""read in all its forms: lines, tail, base64, what the bytes look like, and files that are large or
grow."""

import base64
import os

from support import FileCase, memory_kib, version


class Lines(FileCase):
    def setUp(self):
        super().setUp()
        self.text = "".join("line %d\n" % i for i in range(1, 101))
        self.write("f", self.text)

    def test_from_a_line_on(self):
        page = self.read("f", start_line=10, max_lines=2)
        self.assertEqual(page["content"], "line 10\nline 11\n")
        self.assertEqual((page["start_line"], page["line_count"]), (10, 2))
        self.assertEqual((page["truncated"], page["next_line"]), (True, 12))
        self.assertEqual(page["version"], version(self.text.encode()))
        rest = self.read("f", offset=page["next_offset"])
        self.assertTrue(rest["content"].startswith("line 12\n"))

    def test_the_first_ones(self):
        self.assertEqual(self.read("f", max_lines=1)["content"], "line 1\n")

    def test_to_the_end(self):
        page = self.read("f", start_line=99)
        self.assertEqual(page["content"], "line 99\nline 100\n")
        self.assertIs(page["truncated"], False)
        self.assertNotIn("next_line", page)

    def test_past_the_end(self):
        page = self.read("f", start_line=500)
        self.assertEqual((page["content"], page["truncated"]), ("", False))

    def test_lines_tile_the_file(self):
        got, line = "", 1
        while True:
            page = self.read("f", start_line=line, limit=64)
            got += page["content"]
            if not page["truncated"]:
                break
            line = page["next_line"]
        self.assertEqual(got, self.text)

    def test_a_line_longer_than_the_window(self):
        self.write("long", "x" * 1000 + "\nend\n")
        page = self.read("long", start_line=1, limit=100)
        self.assertEqual((page["content"], page["truncated"]), ("x" * 100, True))
        self.assertEqual(page["next_offset"], 100)
        self.assertNotIn("next_line", page)

    def test_the_last_ones(self):
        for n, expected in ((1, "line 100\n"), (2, "line 99\nline 100\n"), (1000, self.text)):
            with self.subTest(n=n):
                page = self.read("f", tail_lines=n)
                self.assertEqual((page["content"], page["truncated"]), (expected, False))
        self.write("open", "a\nb")
        self.assertEqual(self.read("open", tail_lines=1)["content"], "b")
        self.assertEqual(self.read("open", tail_lines=2)["content"], "a\nb")

    def test_endings_are_kept(self):
        self.write("crlf", b"a\r\nb\r\nc")
        self.assertEqual(self.read("crlf", start_line=2, max_lines=1)["content"], "b\r\n")

    def test_one_form_at_a_time(self):
        for arguments in (
            {"offset": 1, "start_line": 1},
            {"offset": 1, "max_lines": 1},
            {"start_line": 1, "tail_lines": 1},
            {"offset": 1, "tail_lines": 1},
        ):
            with self.subTest(**arguments):
                error = self.fails(
                    "INVALID_ARGUMENT", self.client, "read", workspace_id="ws", path="f",
                    **arguments
                )
                self.assertIn("tail_lines", error.message)
        for name in ("start_line", "max_lines", "tail_lines"):
            self.fails(
                "INVALID_ARGUMENT", self.client, "read", workspace_id="ws", path="f", **{name: 0}
            )


class Bytes(FileCase):
    def test_base64_loses_nothing(self):
        data = bytes(range(256)) * 10
        self.write("b", data)
        got, offset = b"", 0
        while True:
            page = self.read("b", offset=offset, limit=100, encoding="base64")
            self.assertEqual(page["encoding"], "base64")
            self.assertIs(page["content_lossy"], False)
            piece = base64.b64decode(page["content"], validate=True)
            self.assertEqual(len(piece), page["byte_count"])
            got += piece
            if not page["truncated"]:
                break
            self.assertEqual(page["next_offset"], offset + 100)
            offset = page["next_offset"]
        self.assertEqual(got, data)

    def test_a_base64_window_is_exact(self):
        self.write("u", "\u20ac" * 10)
        self.assertEqual(self.read("u", limit=4, encoding="base64")["byte_count"], 4)
        self.assertEqual(self.read("u", limit=4)["byte_count"], 3)

    def test_what_it_looks_like(self):
        for data, binary, charset, lossy in (
            (b"plain\n", False, "utf-8", False),
            ("\u00e9".encode(), False, "utf-8", False),
            (b"", False, "utf-8", False),
            (b"caf\xe9\n", False, "unknown", True),
            (b"\x7fELF\0\0", True, "binary", False),
            ("x".encode("utf-16"), False, "utf-16le", True),
            (b"\xfe\xff\0x", False, "utf-16be", True),
        ):
            with self.subTest(data=data):
                self.write("f", data)
                page = self.read("f")
                self.assertEqual(
                    (page["binary"], page["charset"], page["content_lossy"]),
                    (binary, charset, lossy),
                )
                self.assertEqual(page["encoding"], "utf-8")


class Sizes(FileCase):
    def test_an_answer_has_a_budget(self):
        """G6: without a limit an answer stays below what clients let one have."""
        data = ("0123456789abcde\n" * 8192).encode()
        self.write("big", data)
        got, offset = b"", 0
        while True:
            page = self.read("big", offset=offset)
            self.assertLessEqual(page["byte_count"], 65536)
            got += page["content"].encode()
            if not page["truncated"]:
                break
            offset = page["next_offset"]
        self.assertEqual(got, data)
        self.assertEqual(self.read("big", limit=1 << 20)["byte_count"], len(data))

    def test_a_sparse_file_in_flat_memory(self):
        """5 GiB: its version is hashed in a stream, once."""
        with open(self.path("sparse"), "wb") as f:
            f.truncate(5 << 30)
            f.seek((5 << 30) - 4)
            f.write(b"\nend")
        self.read_slowly("sparse", offset=1 << 32, limit=10)
        before = memory_kib(self.client.process.pid)
        page = self.read_slowly("sparse", offset=(5 << 30) - 4)
        self.assertEqual((page["content"], page["size"]), ("\nend", 5 << 30))
        self.assertEqual(self.read_slowly("sparse", tail_lines=1)["content"], "end")
        self.assertLess(memory_kib(self.client.process.pid) - before, 8192)

    def read_slowly(self, path, **arguments):
        return self.client.call("read", 120.0, workspace_id="ws", path=path, **arguments)

    def test_a_file_that_grows(self):
        """A read is of one moment; the next one sees more, and another version."""
        self.write("log", "one\n" * 50000)
        versions = set()
        for i in range(5):
            page = self.read("log", tail_lines=1, limit=100)
            size = os.path.getsize(self.path("log"))
            self.assertEqual(page["size"], size)
            versions.add(page["version"])
            with open(self.path("log"), "ab") as f:
                f.write(b"more %d\n" % i)
            self.assertEqual(self.read("log", tail_lines=1)["content"], "more %d\n" % i)
        self.assertEqual(len(versions), 5)

    def test_a_cancelled_read_of_a_large_file(self):
        with open(self.path("sparse"), "wb") as f:
            f.truncate(64 << 30)
        ident = self.client.begin_call("read", workspace_id="ws", path="sparse")
        self.write("a", "x")
        self.assertEqual(self.read("a")["content"], "x")
        self.client.notify("notifications/cancelled", {"requestId": ident})
        for _ in range(8):  # the pool's threads are free again
            self.write("big", "x" * 100000)
            self.read("big", limit=10)
        self.assertFalse(self.client.answered(ident))
