#!/usr/bin/env python3
"""codespace-patch: arguments, formats, answers, exit statuses; and what agents know as apply_patch.

usage: test_program.py PROGRAM
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

PROGRAM = pathlib.Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else None

V4A = "*** Begin Patch\n*** Update File: f\n-a\n+b\n*** End Patch\n"
UNIFIED = "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n"
ALL_KINDS = ("*** Begin Patch\n*** Update File: f\n-a\n+b\n*** Add File: n/x\n+1\n"
             "*** Delete File: gone\n*** Update File: from\n*** Move to: to\n-a\n+b\n"
             "*** End Patch\n")


class ProgramTest(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory(prefix="cs-patch-")
        self.top = pathlib.Path(self.scratch.name)
        self.root = self.top / "ws"
        self.root.mkdir()
        for name in ("f", "gone", "from"):
            (self.root / name).write_text("a\n")
        (self.top / "apply_patch").symlink_to(PROGRAM)

    def tearDown(self):
        self.assertEqual([p for p in self.root.rglob(".codespace-*")], [])
        self.scratch.cleanup()

    def run_program(self, *args, text="", name=None, cwd=None):
        return subprocess.run([str(name or PROGRAM), *args], input=text.encode(), cwd=cwd or self.top,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=20)

    def apply_patch(self, *args, text=""):
        return self.run_program(*args, text=text, name=self.top / "apply_patch", cwd=self.root)

    def expect(self, done, status, out=None, err=""):
        message = done.stdout.decode() + done.stderr.decode()
        self.assertEqual(done.returncode, status, message)
        if out is not None:
            self.assertEqual(done.stdout.decode(), out)
        self.assertIn(err, done.stderr.decode())

    def content(self, name):
        return (self.root / name).read_text()

    # -- codespace-patch --

    def test_argument_and_standard_input(self):
        want = "Success. Updated the following files:\nM f\n"
        self.expect(self.run_program("--root", "ws", V4A), 0, want)
        self.assertEqual(self.content("f"), "b\n")
        (self.root / "f").write_text("a\n")
        self.expect(self.run_program("--root", "ws", text=UNIFIED), 0, want)
        self.assertEqual(self.content("f"), "b\n")
        (self.root / "f").write_text("a\n")
        self.expect(self.run_program("--no-sync", UNIFIED, text="ignored", cwd=self.root), 0, want)

    def test_formats(self):
        self.expect(self.run_program("--root", "ws", "--format", "v4a", UNIFIED), 65, "", "unified")
        self.expect(self.run_program("--root", "ws", "--format", "unified", V4A), 65, "",
                    "no unified diff")
        self.expect(self.run_program("--root", "ws", "--format", "other", V4A), 64, "", "--format")
        self.expect(self.run_program("--root", "ws", "--strip", "2", text=UNIFIED), 65, "",
                    "no more than 2 components")
        self.assertEqual(self.content("f"), "a\n")

    def test_check_and_diff(self):
        done = self.run_program("--root", "ws", "--check", text=ALL_KINDS)
        self.expect(done, 0, "The patch applies. It would update the following files:\n"
                             "A n/x\nM f\nM to\nD gone\n")
        done = self.run_program("--root", "ws", "--check", "--diff", text=V4A)
        self.expect(done, 0, "diff --git a/f b/f\n" + UNIFIED)
        self.assertEqual(self.content("f"), "a\n")
        self.assertFalse((self.root / "n").exists())

    def test_json(self):
        done = self.run_program("--root", "ws", "--json", "--diff", text=V4A)
        self.expect(done, 0)
        answer = json.loads(done.stdout)
        self.assertEqual(answer["status"], "applied")
        self.assertEqual(answer["diff"], "diff --git a/f b/f\n" + UNIFIED)
        change = answer["changes"][0]
        self.assertEqual((change["path"], change["kind"], change["fuzzy"]), ("f", "update", False))
        self.assertTrue(change["before_version"].startswith("sha256:"))
        done = self.run_program("--root", "ws", "--json", text=V4A)
        self.expect(done, 65)
        self.assertEqual(json.loads(done.stdout)["error"]["code"], "INVALID_PATCH")

    def test_exit_statuses(self):
        def patch(section):
            return f"*** Begin Patch\n{section}\n*** End Patch\n"
        for section, status in (("*** Delete File: missing", 66), ("*** Add File: f\n+x", 73),
                                ("*** Delete File: ../x", 65), ("*** Add File: /etc/x\n+x", 65),
                                ("*** Add File: .git/x\n+x", 77), ("*** Delete File: n/../..", 65)):
            self.expect(self.run_program("--root", "ws", text=patch(section)), status, "")
        self.expect(self.run_program("--root", "nowhere", V4A), 66, "", "nowhere")
        self.expect(self.run_program("--nonsense"), 64, "", "no such option")
        self.expect(self.run_program("--root"), 64, "", "a value is missing")
        self.expect(self.run_program("a", "b"), 64, "", "more than one patch")
        self.expect(self.run_program("--root", "ws", text=""), 65, "", "empty")

    def test_links_lead_nowhere(self):
        (self.top / "out").write_text("a\n")
        (self.root / "link").symlink_to("../out")
        text = V4A.replace("File: f", "File: link")
        self.expect(self.run_program("--root", "ws", text=text), 65, "", "symbolic link")
        self.assertEqual((self.top / "out").read_text(), "a\n")

    def test_fuzzy_is_told(self):
        (self.root / "f").write_text("a \nz\n")
        done = self.run_program("--root", "ws", text=V4A.replace("-a\n+b", " a\n-z\n+b"))
        self.expect(done, 0, err="ignoring white space")
        self.assertEqual(self.content("f"), "a \nb\n")

    def test_help_and_version(self):
        self.expect(self.run_program("--help"), 0)
        self.assertTrue(self.run_program("--version").stdout.startswith(b"codespace-patch "))

    # -- apply_patch --

    def test_as_apply_patch(self):
        want = "Success. Updated the following files:\nA n/x\nM f\nM to\nD gone\n"
        self.expect(self.apply_patch(ALL_KINDS), 0, want)
        self.assertEqual(self.content("to"), "b\n")
        self.expect(self.apply_patch(text=V4A.replace("-a\n+b", "-b\n+c")), 0,
                    "Success. Updated the following files:\nM f\n")

    def test_apply_patch_fails_as_known(self):
        self.expect(self.apply_patch("nonsense"), 1, "", "*** Begin Patch")
        self.expect(self.apply_patch(V4A.replace("-a", "-z")), 1, "", "does not apply")
        self.expect(self.apply_patch(V4A, "more"), 2, "", "usage: apply_patch")
        self.assertEqual(self.content("f"), "a\n")

    def test_apply_patch_takes_a_here_document(self):
        text = f"<<'EOF'\n{V4A}EOF\n"
        self.expect(self.apply_patch(text), 0)
        self.assertEqual(self.content("f"), "b\n")

    def test_apply_patch_takes_no_options(self):
        self.expect(self.apply_patch("--check"), 1, "")


if __name__ == "__main__":
    if PROGRAM is None or not os.access(PROGRAM, os.X_OK):
        sys.exit("usage: test_program.py PROGRAM")
    unittest.main(argv=sys.argv[:1])
