"""apply_patch through the protocol: the normal path and each documented error."""

import os
import stat

from support import FileCase, ToolError, patch_text, version


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

    def test_unified_diff(self):
        self.write("x", "a\nb\n")
        answer = self.client.call(
            "apply_patch", workspace_id="ws", patch="--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n-a\n+A\n b\n"
        )
        self.assertEqual(answer["status"], "applied")
        self.assertEqual(self.bytes_of("x"), b"A\nb\n")

    def test_garbage(self):
        for text in (
            "", "nonsense", "*** Begin Patch\n", "*** Begin Patch\n*** End Patch\n",
            "*** Begin Patch\n*** Update File: \n@@\n-a\n+b\n*** End Patch\n",
            "*** Begin Patch\n*** Rename File: a\n*** End Patch\n",
            "*** Begin Patch\n*** Add File: a\nno plus\n*** End Patch\n",
            "--- a/x\n+++ b/x\n@@ -1 +1\n-a\n+b\n",
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


if __name__ == "__main__":
    import unittest

    unittest.main()
