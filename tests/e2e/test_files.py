"""read and find through the protocol, and the read-only profile: the normal path and each error."""

import os
import socket
import stat

from support import Case, FileCase, version


class Read(FileCase):
    def test_a_file(self):
        self.write("dir/a.txt", "alpha\nbeta\n")
        answer = self.read("dir/a.txt")
        self.assertEqual(answer["content"], "alpha\nbeta\n")
        self.assertEqual(answer["path"], "dir/a.txt")
        self.assertEqual(answer["version"], version(b"alpha\nbeta\n"))
        self.assertEqual(answer["byte_count"], 11)
        self.assertIs(answer["truncated"], False)
        self.assertIs(answer["content_lossy"], False)
        self.assertNotIn("offset", answer)
        self.assertNotIn("next_offset", answer)

    def test_an_empty_file(self):
        self.write("empty", "")
        answer = self.read("empty")
        self.assertEqual((answer["content"], answer["byte_count"]), ("", 0))
        self.assertEqual(answer["version"], version(b""))

    def test_dots_and_backslashes_are_normalised(self):
        self.write("dir/a.txt", "alpha\n")
        for path in ("./dir/a.txt", "dir//a.txt", "dir/../dir/a.txt", "dir\\a.txt"):
            with self.subTest(path=path):
                self.assertEqual(self.read(path)["content"], "alpha\n")

    def test_windows_tile_the_file(self):
        data = "".join("line %d: h\u00e9llo \U0001f600 \u20ac\n" % i for i in range(40)).encode()
        self.write("u.txt", data)
        for limit in (7, 13, 64, 4096):
            with self.subTest(limit=limit):
                got, offset = b"", 0
                while True:
                    page = self.read("u.txt", offset=offset, limit=limit)
                    self.assertIs(page["content_lossy"], False)
                    self.assertEqual(page["version"], version(data))
                    got += page["content"].encode()
                    if not page["truncated"]:
                        break
                    self.assertGreater(page["next_offset"], offset)
                    offset = page["next_offset"]
                self.assertEqual(got, data)

    def test_past_the_end(self):
        self.write("a.txt", "alpha\n")
        for offset in (6, 7, 2**40):
            with self.subTest(offset=offset):
                page = self.read("a.txt", offset=offset)
                self.assertEqual(page["content"], "")
                self.assertIs(page["truncated"], False)
                self.assertNotIn("next_offset", page)
                self.assertEqual(page["version"], version(b"alpha\n"))

    def test_the_window_has_bounds(self):
        self.write("a.txt", "alpha\n")
        for limit in (0, (1 << 20) + 1):
            with self.subTest(limit=limit):
                error = self.fails(
                    ("OUTPUT_LIMIT", "INVALID_ARGUMENT"), self.client, "read", workspace_id="ws",
                    path="a.txt", limit=limit
                )
                self.assertIn("limit", error.message)

    def test_one_mebibyte_and_more(self):
        data = os.urandom(1 << 19).hex().encode()
        self.write("big", data + b"tail")
        page = self.read("big", limit=1 << 20)
        self.assertEqual(page["content"].encode(), data)
        self.assertIs(page["truncated"], True)
        self.assertEqual(self.read("big", offset=page["next_offset"])["content"], "tail")

    def test_bytes_that_are_not_utf8(self):
        self.write("b", b"ok\xff\xfe\x00\xc3")
        page = self.read("b")
        self.assertIs(page["content_lossy"], True)
        self.assertEqual(page["byte_count"], 6)
        self.assertTrue(page["content"].startswith("ok\ufffd"))

    def test_paths_that_leave(self):
        self.outside()
        for path in (
            "/etc/passwd", "../secret.txt", "..", "dir/../../secret.txt", "..\\secret.txt",
            self.path("a.txt"), "/", "//etc/passwd", "\\etc\\passwd",
        ):
            with self.subTest(path=path):
                self.fails("PATH_ESCAPE", self.client, "read", workspace_id="ws", path=path)

    def test_a_sibling_with_the_same_prefix(self):
        """A17: `/ws` does not open `/ws_secret`."""
        os.mkdir(self.ws + "_secret")
        self.fails(
            "PATH_ESCAPE", self.client, "read", workspace_id="ws", path="../ws_secret/x"
        )

    def test_missing_things(self):
        self.write("a.txt", "alpha\n")
        for path, code in (
            ("nope.txt", "FILE_NOT_FOUND"),
            ("no/such/dir.txt", "FILE_NOT_FOUND"),
            ("a.txt/below", "PATH_NOT_DIRECTORY"),
        ):
            with self.subTest(path=path):
                error = self.fails(code, self.client, "read", workspace_id="ws", path=path)
                self.assertIn(path.split("/")[0], error.message)

    def test_empty_and_overlong_paths(self):
        for path in ("", "x" * 5000, "/".join(["d"] * 3000)):
            with self.subTest(path=path[:10]):
                self.fails(
                    ("INVALID_ARGUMENT", "PATH_ESCAPE", "FILE_OPERATION_FAILED", "LIMIT_EXCEEDED",
                     "FILE_NOT_FOUND"),
                    self.client, "read", workspace_id="ws", path=path
                )

    def test_symbolic_links_are_refused(self):
        """A17, A19: as the leaf and on the way, to the outside and to the inside."""
        self.write("real/a.txt", "alpha\n")
        os.symlink(self.outside(), self.path("out"))
        os.symlink(self.dir, self.path("updir"))
        os.symlink("real/a.txt", self.path("in"))
        os.symlink("real", self.path("indir"))
        os.symlink("/proc/self/root", self.path("magic"))
        for path in ("out", "updir/secret.txt", "in", "indir/a.txt", "magic/etc/passwd"):
            with self.subTest(path=path):
                self.fails("SYMLINK_REJECTED", self.client, "read", workspace_id="ws", path=path)

    def test_special_files_are_refused_at_once(self):
        """F15: a FIFO must not hang the call, nor anything else the server."""
        os.mkfifo(self.path("fifo"))
        os.mkdir(self.path("adir"))
        listener = socket.socket(socket.AF_UNIX)
        self.addCleanup(listener.close)
        listener.bind(self.path("sock"))
        names = ["fifo", "adir", "sock", "."]
        if os.geteuid() == 0:
            os.mknod(self.path("null"), 0o600 | stat.S_IFCHR, os.makedev(1, 3))
            names.append("null")
        for name in names:
            with self.subTest(name=name):
                error = self.fails(
                    "SPECIAL_FILE_REJECTED", self.client, "read", workspace_id="ws", path=name
                )
                self.assertIn("read %s: " % name, error.message)

    def test_the_root_that_went_away(self):
        os.rmdir(self.ws)
        self.fails(
            ("FILE_NOT_FOUND", "FILE_OPERATION_FAILED"), self.client, "read", workspace_id="ws",
            path="a.txt"
        )
        os.mkdir(self.ws)


class Find(FileCase):
    def setUp(self):
        super().setUp()
        for name in ("a.c", "b.h", "dir/c.c", "dir/sub/d.c", ".hidden/e.c", "dir/README"):
            self.write(name, name)

    def find(self, **arguments):
        return self.client.call("find", workspace_id="ws", **arguments)

    def test_everything(self):
        answer = self.find()
        self.assertEqual(
            answer["paths"],
            [".hidden/e.c", "a.c", "b.h", "dir/README", "dir/c.c", "dir/sub/d.c"],
        )
        self.assertIs(answer["truncated"], False)
        self.assertIs(answer["incomplete"], False)
        self.assertRegex(answer["listing_version"], "^sha256:[0-9a-f]{64}$")
        for glob in ("*", "**", "**/*"):
            with self.subTest(glob=glob):
                self.assertEqual(set(self.find(glob=glob)["paths"]), set(answer["paths"]))

    def test_globs(self):
        for glob, expected in (
            ("*.c", [".hidden/e.c", "a.c", "dir/c.c", "dir/sub/d.c"]),
            ("*.h", ["b.h"]),
            ("README", ["dir/README"]),
            ("dir/c.c", ["dir/c.c"]),
            ("nothing*", []),
        ):
            with self.subTest(glob=glob):
                self.assertEqual(self.find(glob=glob)["paths"], expected)

    def test_pages_share_one_listing(self):
        whole = self.find()
        got, offset = [], 0
        while True:
            page = self.find(offset=offset, limit=2)
            self.assertEqual(page["listing_version"], whole["listing_version"])
            got += page["paths"]
            if not page["truncated"]:
                self.assertNotIn("next_offset", page)
                break
            offset = page["next_offset"]
        self.assertEqual(got, whole["paths"])

    def test_the_version_follows_the_listing(self):
        before = self.find()["listing_version"]
        self.write("new.c", "x")
        self.assertNotEqual(self.find()["listing_version"], before)

    def test_only_regular_files_and_no_links(self):
        os.mkfifo(self.path("fifo"))
        os.symlink("a.c", self.path("link.c"))
        os.symlink("/usr", self.path("usr"))
        os.symlink("..", self.path("dir/loop"))
        self.assertEqual(len(self.find()["paths"]), 6)

    def test_odd_names_make_valid_answers(self):
        """F18: line feeds, quotes and bytes that are not UTF-8 in names."""
        odd = [b"line\nfeed", b'quo"te', b"back\\slash", b"tab\t", b"bad\xff"]
        for name in odd:
            with open(os.path.join(os.fsencode(self.ws), name), "wb") as f:
                f.write(b"x")
        paths = self.find()["paths"]
        self.assertIn("line\nfeed", paths)
        self.assertIn('quo"te', paths)
        self.assertEqual(len(paths), 6 + len(odd))

    def test_the_page_has_bounds(self):
        for limit in (0, 10001):
            with self.subTest(limit=limit):
                self.fails(
                    ("OUTPUT_LIMIT", "INVALID_ARGUMENT"), self.client, "find", workspace_id="ws",
                    limit=limit
                )


class ReadOnly(FileCase):
    def setUp(self):
        Case.setUp(self)
        self.write("a.txt", "alpha\n")
        config = self.config({"workspaces": {"ws": {"root": self.ws, "profile": "read-only"}}})
        self.client = self.start("--config", config)

    def test_reading_is_allowed(self):
        self.assertEqual(self.read("a.txt")["content"], "alpha\n")
        self.assertEqual(self.client.call("find", workspace_id="ws")["paths"], ["a.txt"])

    def test_writing_and_running_are_not(self):
        change = ("*** Update File: a.txt", "@@", "-alpha", "+b")
        for check_only in (False, True):
            error = self.patch_fails("UNAUTHORIZED", *change, check_only=check_only)
            self.assertIn("read-only", error.message)
        error = self.fails(
            "UNAUTHORIZED", self.client, "exec_command", workspace_id="ws", command=["true"]
        )
        self.assertIn("read-only", error.message)
        self.assertEqual(self.bytes_of("a.txt"), b"alpha\n")

    def test_it_is_said(self):
        info = self.client.call("workspace_info", workspace_id="ws")
        self.assertEqual(info["profile"], "read-only")
        permissions = info["execution"]["permissions"]
        self.assertEqual(permissions, {"read": True, "write": False, "exec": False})


if __name__ == "__main__":
    import unittest

    unittest.main()
