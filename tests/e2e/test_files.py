"""read, find and apply_patch through the protocol: the normal path and each documented error."""

import hashlib
import os
import socket
import stat

from support import Case, ToolError, patch_text


def version(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


class FileCase(Case):
    def setUp(self):
        super().setUp()
        self.client = self.start()

    def read(self, path, **arguments):
        return self.client.call("read", workspace_id="ws", path=path, **arguments)

    def patch(self, *lines, **arguments):
        return self.client.call(
            "apply_patch", workspace_id="ws", patch=patch_text(*lines), **arguments
        )

    def patch_fails(self, code, *lines, **arguments):
        return self.fails(
            code, self.client, "apply_patch", workspace_id="ws", patch=patch_text(*lines),
            **arguments
        )

    def outside(self, name="secret.txt", content="outside\n"):
        path = os.path.join(self.dir, name)
        with open(path, "w") as f:
            f.write(content)
        return path


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
        page = self.read("big")
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
        names = ["fifo", "adir", "sock"]
        if os.geteuid() == 0:
            os.mknod(self.path("null"), 0o600 | stat.S_IFCHR, os.makedev(1, 3))
            names.append("null")
        for name in names:
            with self.subTest(name=name):
                self.fails(
                    "SPECIAL_FILE_REJECTED", self.client, "read", workspace_id="ws", path=name
                )

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


class Patch(FileCase):
    def test_add_update_delete_move(self):
        self.write("u.txt", "one\ntwo\nthree\n")
        self.write("d.txt", "gone\n")
        self.write("m.txt", "moved\nhere\n")
        answer = self.patch(
            "*** Add File: new/a.txt", "+alpha", "+beta",
            "*** Update File: u.txt", "@@", " one", "-two", "+TWO", " three",
            "*** Delete File: d.txt",
            "*** Update File: m.txt", "*** Move to: to/m2.txt", "@@", "-moved", "+MOVED", " here",
        )
        self.assertEqual(answer["status"], "applied")
        self.assertIs(answer["replayed"], False)
        self.assertTrue(answer["operation_id"].startswith("op-"))
        self.assertEqual(self.bytes_of("new/a.txt"), b"alpha\nbeta\n")
        self.assertEqual(self.bytes_of("u.txt"), b"one\nTWO\nthree\n")
        self.assertEqual(self.bytes_of("to/m2.txt"), b"MOVED\nhere\n")
        self.assertFalse(os.path.exists(self.path("d.txt")))
        self.assertFalse(os.path.exists(self.path("m.txt")))
        changes = {(c["path"], c["kind"]): c for c in answer["changes"]}
        self.assertEqual(
            set(changes),
            {("new/a.txt", "add"), ("u.txt", "update"), ("d.txt", "delete"),
             ("m.txt", "delete"), ("to/m2.txt", "move")},
        )
        update = changes[("u.txt", "update")]
        self.assertEqual(update["before_version"], version(b"one\ntwo\nthree\n"))
        self.assertEqual(update["after_version"], version(b"one\nTWO\nthree\n"))
        self.assertNotIn("before_version", changes[("new/a.txt", "add")])
        self.assertNotIn("after_version", changes[("d.txt", "delete")])
        self.assertEqual(update["after_version"], self.read("u.txt")["version"])

    def test_several_hunks_find_their_place(self):
        self.write("c.c", "".join("int f%d(void)\n{\n    return 0;\n}\n\n" % i for i in range(9)))
        answer = self.patch(
            "*** Update File: c.c",
            "@@ int f2(void)", " {", "-    return 0;", "+    return 2;",
            "@@ int f7(void)", " {", "-    return 0;", "+    return 7;", " }",
        )
        self.assertEqual(answer["status"], "applied")
        text = self.bytes_of("c.c").decode()
        self.assertIn("int f2(void)\n{\n    return 2;\n", text)
        self.assertIn("int f7(void)\n{\n    return 7;\n", text)
        self.assertEqual(text.count("return 0;"), 7)

    def test_only_the_asked_bytes_change(self):
        """F1, F2, F6, F12: endings, a missing last newline, foreign bytes and modes stay."""
        self.write("crlf", b"one\r\ntwo\r\nthree\r\n")
        self.write("nonl", b"one\ntwo")
        self.write("latin", b"const x = 1;\n// caf\xe9\n")
        self.write("tool.sh", "#!/bin/sh\necho old\n", mode=0o755)
        self.patch(
            "*** Update File: crlf", "@@", " one", "-two", "+TWO", " three",
            "*** Update File: nonl", "@@", "-one", "+ONE", " two",
            "*** Update File: latin", "@@", "-const x = 1;", "+const x = 2;",
            "*** Update File: tool.sh", "@@", "-echo old", "+echo new",
        )
        self.assertEqual(self.bytes_of("crlf"), b"one\r\nTWO\r\nthree\r\n")
        self.assertEqual(self.bytes_of("nonl"), b"ONE\ntwo")
        self.assertEqual(self.bytes_of("latin"), b"const x = 2;\n// caf\xe9\n")
        self.assertEqual(stat.S_IMODE(os.stat(self.path("tool.sh")).st_mode), 0o755)

    def test_check_only_writes_nothing(self):
        self.write("u.txt", "one\n")
        answer = self.patch(
            "*** Update File: u.txt", "@@", "-one", "+two", "*** Add File: n.txt", "+x",
            check_only=True,
        )
        self.assertEqual(answer["status"], "checked")
        self.assertEqual(self.bytes_of("u.txt"), b"one\n")
        self.assertEqual(os.listdir(self.ws), ["u.txt"])

    def test_a_patch_that_does_not_apply_changes_nothing(self):
        """F11: all files or none."""
        self.write("a.txt", "alpha\n")
        self.write("b.txt", "beta\n")
        error = self.patch_fails(
            "INVALID_PATCH",
            "*** Update File: a.txt", "@@", "-alpha", "+ALPHA",
            "*** Update File: b.txt", "@@", "-no such line", "+x",
        )
        self.assertIn("b.txt", error.message)
        self.assertEqual(self.bytes_of("a.txt"), b"alpha\n")
        self.assertEqual(sorted(os.listdir(self.ws)), ["a.txt", "b.txt"])

    def test_garbage(self):
        for text in (
            "", "nonsense", "*** Begin Patch\n", "*** Begin Patch\n*** End Patch\n",
            "*** Begin Patch\n*** Update File: \n@@\n-a\n+b\n*** End Patch\n",
            "*** Begin Patch\n*** Rename File: a\n*** End Patch\n",
            "*** Begin Patch\n*** Add File: a\nno plus\n*** End Patch\n",
            "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n",
        ):
            with self.subTest(text=text):
                self.fails(
                    "INVALID_PATCH", self.client, "apply_patch", workspace_id="ws", patch=text
                )
        self.assertEqual(os.listdir(self.ws), [])

    def test_versions_are_expected(self):
        self.write("a.txt", "alpha\n")
        change = ("*** Update File: a.txt", "@@", "-alpha", "+beta")
        self.patch_fails(
            "VERSION_CONFLICT", *change, expected_versions={"a.txt": version(b"other")}
        )
        self.patch_fails("VERSION_CONFLICT", *change, expected_versions={"a.txt": "absent"})
        self.patch_fails(
            "VERSION_CONFLICT", *change, expected_versions={"not-there": version(b"")}
        )
        self.assertEqual(self.bytes_of("a.txt"), b"alpha\n")
        answer = self.patch(
            *change, expected_versions={"a.txt": version(b"alpha\n"), "not-there": "absent"}
        )
        self.assertEqual(answer["status"], "applied")

    def test_existing_targets(self):
        self.write("a.txt", "alpha\n")
        self.write("b.txt", "beta\n")
        self.patch_fails("ADD_FILE_EXISTS", "*** Add File: a.txt", "+x")
        self.patch_fails(
            "MOVE_DESTINATION_EXISTS",
            "*** Update File: a.txt", "*** Move to: b.txt", "@@", "-alpha", "+x",
        )
        self.assertEqual(self.bytes_of("a.txt"), b"alpha\n")
        self.assertEqual(self.bytes_of("b.txt"), b"beta\n")

    def test_missing_targets(self):
        self.patch_fails("FILE_NOT_FOUND", "*** Delete File: nope")
        self.patch_fails("FILE_NOT_FOUND", "*** Update File: nope", "@@", "-a", "+b")

    def test_paths_that_leave(self):
        for path in ("/tmp/codespace-e2e-x", "../x", "a/../../x", self.path("x")):
            with self.subTest(path=path):
                self.patch_fails("PATH_ESCAPE", "*** Add File: " + path, "+x")
        self.write("a.txt", "alpha\n")
        self.patch_fails(
            "PATH_ESCAPE",
            "*** Update File: a.txt", "*** Move to: ../a.txt", "@@", "-alpha", "+x",
        )
        self.assertFalse(os.path.exists(os.path.join(self.dir, "x")))
        self.assertEqual(self.bytes_of("a.txt"), b"alpha\n")

    def test_links_and_special_files(self):
        """A16, A17: not even through an ancestor that is a link."""
        out = self.make_dir("out")
        os.symlink(out, self.path("link"))
        os.symlink(self.outside(), self.path("flink"))
        os.mkfifo(self.path("fifo"))
        self.patch_fails("SYMLINK_REJECTED", "*** Add File: link/newdir/f", "+x")
        self.patch_fails("SYMLINK_REJECTED", "*** Update File: flink", "@@", "-outside", "+x")
        self.patch_fails("SYMLINK_REJECTED", "*** Delete File: flink")
        self.patch_fails("SPECIAL_FILE_REJECTED", "*** Update File: fifo", "@@", "-a", "+x")
        self.assertEqual(os.listdir(out), [])

    def test_a_hard_link_to_a_foreign_file_is_not_written_through(self):
        """A18."""
        outside = self.outside()
        os.link(outside, self.path("in"))
        try:
            self.patch("*** Update File: in", "@@", "-outside", "+inside")
        except ToolError:
            pass
        with open(outside) as f:
            self.assertEqual(f.read(), "outside\n")

    def test_protected_names(self):
        """R21, H3: the same names that a sandboxed command cannot write."""
        self.write(".git/config", "[core]\n")
        for name in (".git", ".agents", ".codex"):
            with self.subTest(name=name):
                self.patch_fails("PATH_PROTECTED", "*** Add File: %s/hooks/x" % name, "+x")
        self.patch_fails(
            "PATH_PROTECTED", "*** Update File: .git/config", "@@", "-[core]", "+[x]"
        )
        self.patch_fails("PATH_PROTECTED", "*** Delete File: .git/config")
        self.patch_fails("PATH_PROTECTED", "*** Add File: sub/../.git/x", "+x")
        self.write("a.txt", "alpha\n")
        self.patch_fails(
            "PATH_PROTECTED",
            "*** Update File: a.txt", "*** Move to: .git/a", "@@", "-alpha", "+b",
        )
        self.assertEqual(self.read(".git/config")["content"], "[core]\n")
        self.assertEqual(sorted(os.listdir(self.ws)), [".git", "a.txt"])

    def test_failure_of_the_system_is_rolled_back(self):
        """F11: a directory in the way of the second file."""
        self.write("a.txt", "alpha\n")
        self.write("file", "x\n")
        self.patch_fails(
            ("PATH_NOT_DIRECTORY", "FILE_OPERATION_FAILED", "INVALID_PATCH"),
            "*** Update File: a.txt", "@@", "-alpha", "+ALPHA",
            "*** Add File: file/below", "+x",
        )
        self.assertEqual(self.bytes_of("a.txt"), b"alpha\n")

    def test_patches_of_one_workspace_do_not_mix(self):
        self.write("n.txt", "".join("line %d\n" % i for i in range(50)))
        calls = [
            self.client.begin_call(
                "apply_patch", workspace_id="ws",
                patch=patch_text("*** Update File: n.txt", "@@", "-line %d" % i, "+LINE %d" % i),
            )
            for i in range(50)
        ]
        for call in calls:
            self.assertEqual(self.client.finish_call(call)["status"], "applied")
        self.assertEqual(
            self.bytes_of("n.txt").decode(), "".join("LINE %d\n" % i for i in range(50))
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
