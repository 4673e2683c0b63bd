"""apply_patch as a command inside the sandbox: what an agent's shell knows by that name works there,
within the walls of the workspace."""

import os
import shutil

from support import HELPER, SERVER, Case, needs_sandbox, patch_text


class ShellPatch(Case):
    @needs_sandbox
    def setUp(self):
        super().setUp()
        program = os.path.join(os.path.dirname(SERVER), "../patch/codespace-patch")
        tools = self.make_dir("tools")
        shutil.copy(program, tools)
        os.symlink("codespace-patch", os.path.join(tools, "apply_patch"))
        self.client = self.start("--config", self.config({"workspaces": {"ws": {
            "root": self.ws, "profile": "workspace-write", "sandbox": "required",
            "mounts": [{"path": tools}],
            # The leak checker of a build with ASan traces, which nothing inside may.
            "env": {"PATH": "/usr/bin:/bin:" + tools, "ASAN_OPTIONS": "detect_leaks=0"},
        }}}))
        self.write("f", "a\nb\n")

    def patch_in_shell(self, text, **arguments):
        """A here-document, as agents write it."""
        return self.shell(self.client, "apply_patch <<'END'\n" + text + "END\n", **arguments)

    def test_a_patch(self):
        done = self.patch_in_shell(patch_text(
            "*** Update File: f", "@@", "-b", "+B", "*** Add File: n/new", "+x"))
        self.assertEqual(done["exit_code"], 0, done)
        self.assertEqual(done["output"],
                         "Success. Updated the following files:\nA n/new\nM f\n")
        self.assertEqual(self.bytes_of("f"), b"a\nB\n")
        self.assertEqual(self.bytes_of("n/new"), b"x\n")

    def test_as_an_argument_and_by_an_absolute_path(self):
        text = patch_text("*** Update File: %s/f" % self.ws, "@@", "-b", "+B")
        done = self.run_command(self.client, "apply_patch", text)
        self.assertEqual(done["exit_code"], 0, done)
        self.assertEqual(self.bytes_of("f"), b"a\nB\n")

    def test_in_a_directory(self):
        self.write("d/g", "one\n")
        done = self.patch_in_shell(patch_text("*** Update File: g", "@@", "-one", "+two"), cwd="d")
        self.assertEqual(done["exit_code"], 0, done)
        self.assertEqual(self.bytes_of("d/g"), b"two\n")

    def test_a_failure_is_a_text(self):
        done = self.patch_in_shell(patch_text("*** Update File: f", "@@", "-nothing", "+B"))
        self.assertEqual(done["exit_code"], 1)
        self.assertTrue(done["output"].startswith("f: hunk 1"), done["output"])
        self.assertEqual(self.bytes_of("f"), b"a\nb\n")

    def test_the_walls_hold(self):
        for path in (".git/hooks/post-commit", "../out", "/etc/x"):
            with self.subTest(path=path):
                done = self.patch_in_shell(patch_text("*** Add File: " + path, "+x"))
                self.assertEqual(done["exit_code"], 1, done)
        self.assertEqual(sorted(os.listdir(self.ws)), ["f"])


class Installed(Case):
    """The product in a directory that no view shows and no PATH names, as with a PREFIX of one's
    own: the one program is there all the same, and nothing else of that directory."""

    @needs_sandbox
    def setUp(self):
        super().setUp()
        self.prefix = self.make_dir("prefix")
        for program in (HELPER, os.path.join(os.path.dirname(SERVER), "../patch/codespace-patch")):
            shutil.copy(program, self.prefix)
        with open(os.path.join(self.prefix, "other"), "w") as f:
            f.write("not for commands\n")
        self.helper = os.path.join(self.prefix, os.path.basename(HELPER))
        self.write("f", "a\nb\n")

    def serve(self, **keys):
        return self.start("--config", self.config({"workspaces": {"ws": {
            "root": self.ws, "profile": "workspace-write", "sandbox": "required",
            "env": {"ASAN_OPTIONS": "detect_leaks=0"}, **keys}}}),
            env={"CODESPACE_LINUX_SANDBOX_BIN": self.helper})

    def patch(self, client, old, new):
        text = patch_text("*** Update File: f", "@@", "-" + old, "+" + new)
        return self.shell(client, "apply_patch <<'END'\n" + text + "END\n")

    def test_it_is_found(self):
        for keys in ({}, {"read": "all"}):
            with self.subTest(**keys):
                self.write("f", "a\nb\n")
                client = self.serve(**keys)
                # Cold and warm.
                for old, new in (("b", "c"), ("c", "d")):
                    done = self.patch(client, old, new)
                    self.assertEqual(done["exit_code"], 0, done)
                self.assertEqual(self.bytes_of("f"), b"a\nd\n")
                client.close()

    def test_nothing_else_is_shown(self):
        client = self.serve()
        done = self.shell(client, "exec 2>&1; ls %s; ls /dev/codespace" % self.prefix)
        self.assertIn("No such file", done["output"])
        self.assertTrue(done["output"].endswith("\napply_patch\n"), done["output"])

    def test_no_command_puts_another_there(self):
        client = self.serve()
        for attempt in (
            "echo x > /dev/codespace/apply_patch", "rm -f /dev/codespace/apply_patch",
            "mv /dev/codespace /dev/elsewhere", "cp /bin/true /dev/codespace/cargo",
            "rmdir /dev/codespace", "chmod 777 /dev/codespace",
        ):
            with self.subTest(attempt=attempt):
                self.assertNotEqual(self.shell(client, attempt)["exit_code"], 0)
        self.assertEqual(self.patch(client, "b", "c")["exit_code"], 0)

    def test_a_path_of_the_operators_own_is_left_alone(self):
        client = self.serve(env={"PATH": "/usr/bin:/bin"})
        done = self.shell(client, "echo $PATH; ls /dev")
        self.assertEqual(done["output"].splitlines()[0], "/usr/bin:/bin")
        self.assertNotIn("codespace", done["output"])
