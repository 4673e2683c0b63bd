"""What an operator writes about a workspace's paths, repositories and limits, met by a client:
commands and file tools give one answer (A27)."""

import os
import subprocess

from support import Case, needs_sandbox, patch_text


class Rules(Case):
    def serve(self, **keys):
        entry = {"root": self.ws, "profile": "workspace-write", "sandbox": "required", **keys}
        return self.start("--config", self.config({"workspaces": {"ws": entry}}))

    def write_fails(self, client, path):
        patch = patch_text("*** Update File: " + path, "@@", "-old", "+new")
        return self.fails("PATH_PROTECTED", client, "apply_patch", workspace_id="ws", patch=patch)

    @needs_sandbox
    def test_denied_patterns(self):
        for name in ("key.pem", "deep/er/key.pem", "keys/a", "open"):
            os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
            self.write(name, "old\n")
        client = self.serve(deny_read=["*.pem", "keys/"])
        done = self.shell(client, "cat key.pem deep/er/key.pem; ls -A keys; cat open")
        self.assertEqual((done["exit_code"], done["output"]), (0, "old\n"))
        for path in ("key.pem", "deep/er/key.pem", "keys/a", "keys/none"):
            error = self.fails("PATH_PROTECTED", client, "read", workspace_id="ws", path=path)
            self.assertIn("deny_read", error.message)
        self.write_fails(client, "key.pem")
        found = client.call("find", workspace_id="ws")["paths"]
        self.assertEqual(found, ["open"])

    @needs_sandbox
    def test_protected_paths(self):
        for name in ("ci/deploy.sh", "ci/other"):
            os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
            self.write(name, "old\n")
        client = self.serve(protect=["ci/deploy.sh", "ci/none"])
        done = self.shell(client, "! echo x > ci/deploy.sh; ! mv ci c; echo x > ci/none; cat ci/*")
        self.assertEqual(done["exit_code"], 0, done)
        self.assertFalse(os.path.exists(self.path("ci/none")))
        error = self.write_fails(client, "ci/deploy.sh")
        self.assertIn("ci/deploy.sh", error.message)

    @needs_sandbox
    def test_git_commit(self):
        subprocess.run(["git", "init", "-q", self.ws], check=True)
        client = self.serve(git="commit")
        script = ("echo x > f; git add f; git -c user.name=x -c user.email=x@x commit -qm first; "
                  "! git config a.b c; ! touch .git/hooks/post-commit; git log --oneline")
        done = self.shell(client, script)
        self.assertEqual(done["exit_code"], 0, done)
        self.assertIn("first", done["output"])
        info = client.call("workspace_info", workspace_id="ws")
        self.assertIn("'git': 'commit'", str(info))

    @needs_sandbox
    def test_limits(self):
        client = self.serve(limits={"file_size": 4096, "open_files": 30})
        done = self.shell(client, "ulimit -n; head -c 100000 /dev/zero > big")
        self.assertTrue(done["output"].startswith("30\n"), done)
        self.assertEqual(os.path.getsize(self.path("big")), 4096)
        self.refused("--config", self.config({"workspaces": {"ws": {
            "root": self.ws, "limits": {"memory": 1 << 30}}}}))

    @needs_sandbox
    def test_a_limit_is_named(self):
        client = self.serve(limits={"file_size": 4096, "cpu_seconds": 1})
        for script, reason in (
            ("exec head -c 100000 /dev/zero > big", "limits.file_size"),
            ("while :; do :; done", "limits.cpu_seconds"),
            ("kill -XCPU $$", None),  # not used up, so not said
        ):
            done = self.shell(client, script)
            self.assertEqual(done["termination"], "signaled", script)
            if reason is None:
                self.assertNotIn("reason", done)
            else:
                self.assertIn(reason, done["reason"])
