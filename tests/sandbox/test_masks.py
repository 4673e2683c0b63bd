#!/usr/bin/env python3
"""Paths that are hidden or protected wherever they lie, and what that costs. See suite.py for how
to run it. Hazard ids stand in brackets.
"""

import os
import resource
import shutil
import stat
import time

import suite
from test_sandbox import EXIT, Sandbox


class Protect(Sandbox):
    def test_paths_at_depth(self):
        """[A1, A2] Every directory on the way is fixed."""
        self.put("ci/tools/deploy.sh")
        self.put("a/b/keys/file")
        self.put("decoy")
        protect = ["ci/tools/deploy.sh", "a/b/keys"]
        self.attack("protected_file", "ci/tools/deploy.sh", protect=protect)
        self.attack("protected_directories", "a/b/keys", protect=protect)
        self.attack("cannot_rename", "ci", "ci/tools", "a", "a/b", protect=protect)
        self.succeeds(self.shell("touch ci/x ci/tools/x a/b/x; rm ci/x", protect=protect))

    def test_missing_at_depth(self):
        """[A7] Whatever way it comes to be there, it goes; the rest stays."""
        self.directory("ci")
        for script in ("echo x > ci/deploy.sh", "mkdir -p ci/deploy.sh/x || true",
                       "mkdir new; echo x > new/deploy.sh; ! rmdir ci; mv new/deploy.sh ci/"):
            outcome = self.succeeds(self.shell(script, protect=["ci/deploy.sh"]),
                                    ["ci/deploy.sh"])
            self.assertEqual(os.listdir(f"{self.ws}/ci"), [], outcome)
            shutil.rmtree(f"{self.ws}/new", ignore_errors=True)

    def test_missing_with_its_directories(self):
        protect = ["x/y/z"]
        self.succeeds(self.shell("mkdir -p x/y; echo 1 > x/y/z; echo 2 > x/y/other",
                                 protect=protect), ["x/y/z"])
        self.assertEqual(os.listdir(f"{self.ws}/x/y"), ["other"])
        shutil.rmtree(f"{self.ws}/x")
        self.succeeds(self.shell("mkdir -p evil/y; echo 1 > evil/y/z; ln -s evil x",
                                 protect=protect), ["x/y/z"])
        self.assertEqual(os.listdir(self.ws), ["evil"])
        self.succeeds(self.shell("mkdir x; ln -s ../evil/y x/y", protect=protect), ["x/y/z"])
        self.assertEqual(os.listdir(f"{self.ws}/x"), [])
        os.rmdir(f"{self.ws}/x")
        self.succeeds(self.shell("ln -s nowhere x", protect=protect))
        self.assertEqual(os.readlink(f"{self.ws}/x"), "nowhere")

    def test_missing_at_depth_goes_while_the_command_runs(self):
        self.directory("ci")
        outcome = self.shell("sleep 0.1; mkdir -p ci/sub; echo x > ci/sub/run.sh; "
                             "while [ -e ci/sub/run.sh ]; do :; done; echo gone",
                             protect=["ci/sub/run.sh"])
        self.succeeds(outcome, ["ci/sub/run.sh"])
        self.assertEqual(outcome.out, b"gone\n")

    def test_link_at_depth(self):
        """[A14] The link stays, and what it leads to stays."""
        self.put("real/tool")
        self.put("ci/other")
        os.symlink("../real/tool", f"{self.ws}/ci/tool")
        self.own(f"{self.ws}/ci/tool")
        outcome = self.shell("! echo x > ci/tool; rm ci/tool; (echo x > ci/tool); true",
                             protect=["ci/tool"])
        self.succeeds(outcome, ["ci/tool"])
        self.assertEqual(os.readlink(f"{self.ws}/ci/tool"), "../real/tool")

    def test_links_on_the_way_of_a_link(self):
        """[A14] None of them can be made to lead to something else."""
        self.put("one/deep/tool", "old\n")
        self.put("evil/deep/tool", "evil\n")
        for name, target in (("ci", "second"), ("second", "way/deep/tool"), ("way", "one")):
            os.symlink(target, f"{self.ws}/{name}")
            self.own(f"{self.ws}/{name}")
        for script, removed in (("ln -sfn evil way", ["way"]), ("rm second; cp evil/deep/tool second || true", ["second"]),
                                ("! mv one two; ! mv one/deep one/d; ! echo x > one/deep/tool", [])):
            self.succeeds(self.shell(script, protect=["ci"]), removed)
            with open(f"{self.ws}/ci", encoding="utf-8") as f:
                self.assertEqual(f.read(), "old\n")

    def test_protected_and_hidden_mounts(self):
        """What stands instead of a mount needs the mount's place."""
        for i in range(8):  # enough that process 1 lays the masks
            self.put(f"m{i}/file", "words")
        places = [{"path": f"{self.ws}/m{i}", "writable": True} for i in range(8)]
        outcome = self.shell("for i in 0 1 2 3; do ! echo x > m$i/file || exit 1; done; cat m4/file",
                             mounts=places, protect=[f"m{i}" for i in range(4)],
                             hidden=[f"{self.ws}/m{i}" for i in range(5, 8)])
        self.assertEqual(self.succeeds(outcome).out, b"words")
        self.succeeds(self.shell("! cat m5/file m6/file m7/file", mounts=places,
                                 hidden=[f"{self.ws}/m{i}" for i in range(5, 8)]))

    def test_missing_target_of_a_link(self):
        """[A14] A link that leads nowhere does not come to lead to what the command makes."""
        self.directory("deep")
        for name, target in ((".codex", "deep/later"), (".agents", f"{self.ws}/other"),
                             (".git", ".git")):
            os.symlink(target, f"{self.ws}/{name}")
            self.own(f"{self.ws}/{name}")
        outcome = self.shell("mkdir -p deep/later other; echo x > other/file; mkdir fine")
        self.assertEqual(sorted(outcome.end["removed"]), ["deep/later", "other"])
        self.assertEqual(os.listdir(f"{self.ws}/deep"), [])
        self.assertEqual(sorted(os.listdir(self.ws)), [".agents", ".codex", ".git", "deep", "fine"])

    def test_killed_at_any_time_leaves_nothing(self):
        """[A7] Two at once, one of them killed."""
        self.put("a/b/.git/HEAD")
        options = dict(protect=[".git", "a/b/.git", "c/d"], deny=["*.pem"])
        self.put("a/b/x.pem")
        before = sorted(os.path.join(d, f) for d, _, files in os.walk(self.ws) for f in files)
        for delay in (0, 0.002, 0.004, 0.008, None):
            process, control = self.start(self.plan(["sleep", self.marker], **options))
            other = self.start(self.plan(["sleep", self.marker], **options))
            if delay is None:
                self.wait_started(control)
            else:
                time.sleep(delay)
            process.kill()
            process.wait()
            self.end(process, control)
            self.end(*other)
        self.nothing_survives()
        for entry in os.listdir(self.tmp):  # a helper killed before it took its plan
            shutil.rmtree(os.path.join(self.tmp, entry))
        after = sorted(os.path.join(d, f) for d, _, files in os.walk(self.ws) for f in files)
        self.assertEqual(before, after)
        self.assertEqual(sorted(os.listdir(self.ws)), ["a"])

    def test_refused(self):
        self.refused("protect", protect=["/abs"])
        self.refused("protect", protect=["a/../b"])
        self.refused("protect", protect=[f"n{i}" for i in range(70)])

    def test_swapped_after_the_plan(self):
        """What is masked cannot be chosen after the plan was made."""
        self.put("a/secret", "words")
        plan = self.plan(["cat", "a/secret"], deny=["a/secret"])
        os.rename(f"{self.ws}/a", f"{self.ws}/b")
        os.symlink("b", f"{self.ws}/a")
        outcome = self.run_plan(plan)
        self.assertEqual((outcome.end["event"], outcome.end["code"]), ("failed", EXIT["source"]))
        self.assertEqual(outcome.out, b"")


class Deny(Sandbox):
    def everything(self, script="find . -type f -exec cat {} +", **options):
        return self.succeeds(self.shell(script, **options)).out.decode()

    def test_patterns(self):
        """[A11] Matches read as empty regular files, at any depth."""
        for name in (".env", "a/.env", "a/b/key.pem", "a/b/open", ".env.example", "keys/x",
                     "keys/deep/y", "src/keys/z"):
            self.put(name, name + "\n")
        seen = self.everything(deny=[".env", "*.pem", "keys/"])
        self.assertEqual(sorted(seen.split()), [".env.example", "a/b/open", "src/keys/z"])
        kinds = self.everything("stat -c '%F %s' .env a/b/key.pem keys; ls -A keys",
                                deny=[".env", "*.pem", "keys/**"])
        self.assertEqual(kinds, "regular empty file 0\nregular empty file 0\ndirectory 40\n")
        self.assertEqual(self.everything("cat src/keys/* keys/x; :", deny=["**/keys/*"]), "")

    def test_closed_directories_are_hidden_whole(self):
        """[A11] What cannot be searched may hold a match, and its owner can open it later."""
        self.put("closed/x.pem", "SECRET")
        self.put("open/y", "words")
        os.chmod(f"{self.ws}/closed", 0)
        for script in ("chmod 755 closed; cat closed/x.pem; ls -A closed; mv closed c; cat c/x.pem",
                       "unshare -Ur cat closed/x.pem"):
            for writable in (True, False):
                outcome = self.shell(script + "; cat open/y", deny=["*.pem"], user_namespaces=True,
                                     writable_workspace=writable)
                if outcome.end["event"] == "exit":  # or refused: root sees the match, process 1 not
                    self.assertEqual(outcome.out, b"words", script)
                self.assertNotIn(b"SECRET", outcome.out)
        os.chmod(f"{self.ws}/closed", 0o755)

    def test_matches_cannot_be_changed_or_moved(self):
        self.put("a/secret", "words")
        script = ("! echo x > a/secret; ! rm a/secret; ! mv a/secret b; ! mv a c; "
                  "! ln a/secret d; ! cat a/secret | grep .")
        self.everything(script, deny=["a/secret"])
        self.everything(script.replace("! mv a c; ", ""), deny=["secret"])
        with open(f"{self.ws}/a/secret", encoding="utf-8") as f:
            self.assertEqual(f.read(), "words")

    def test_read_only_workspace(self):
        self.put("a/secret", "words")
        self.assertEqual(self.everything(deny=["secret"], writable_workspace=False), "")

    def test_nested_reopening(self):
        """[A30] Deeper wins: hidden, shown again, hidden again."""
        for name in ("h/x", "h/open/y", "h/open/deep/z"):
            self.put(name, name + "\n")
        mounts = [{"path": f"{self.ws}/h/open"}]
        seen = self.everything(hidden=[f"{self.ws}/h", f"{self.ws}/h/open/deep"], mounts=mounts)
        self.assertEqual(seen, "h/open/y\n")
        mounts[0]["writable"] = True
        self.everything("echo x > h/open/new; ! echo x > h/new; ! mv h i; ! mv h/open h/p",
                        hidden=[f"{self.ws}/h"], mounts=mounts)
        self.assertTrue(os.path.exists(f"{self.ws}/h/open/new"))

    def test_links_to_a_match(self):
        """[A27] The target is masked under its own name, so links to it show nothing."""
        self.put("secret", "words")
        os.symlink("secret", f"{self.ws}/link")
        self.assertEqual(self.everything("cat link secret", deny=["secret"]), "")

    def test_git_lives_with_it(self):
        """[A11]"""
        self.put(".env", "words\n")
        self.put("file", "x\n")
        git = "git -c user.name=x -c user.email=x@x"
        self.everything(f"git init -q && git add . && {git} commit -qm x", protect=[])
        script = f"git status --short; git diff --stat | tail -1; {git} stash -q; git fsck"
        seen = self.everything(script, deny=[".env"], protect=[])
        self.assertIn(" M .env", seen)

    def test_five_thousand_matches(self):
        """[A22] It runs, the command has few descriptors, and a directory is one mask."""
        for i in range(50):
            for j in range(100):
                self.put(f"d{i}/f{j}.pem", "words")
        outcome = self.run_command(
            ["sh", "-c", "cat d*/*.pem; ls d7 | wc -l"], deny=["*.pem"],
            popen={"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))})
        self.succeeds(outcome)
        self.assertEqual(outcome.out, b"100\n")
        outcome = self.succeeds(self.shell("ls d7; grep -c /d /proc/self/mountinfo; :",
                                           deny=[f"d{i}/**" for i in range(50)]))
        self.assertLess(int(outcome.out.split()[-1]), 100)

    def test_refused(self):
        self.put("f", "x")
        self.refused("whole workspace", deny=["**"])
        self.refused("deny", deny=["{a"])


class Places(Sandbox):
    def test_shared_tmp(self):
        """[B3] Only when asked for, and then the plan must lie elsewhere."""
        name = f"/tmp/{self.marker}"
        answer = self.ask(self.request(["true"], tmp="shared"))
        self.assertEqual(answer["type"], "error")
        self.assertIn("TMPDIR", answer["message"])
        other = f"/var/tmp/{self.marker}"
        os.mkdir(other, 0o700)
        self.own(other)
        try:
            plan = self.plan(["sh", "-c", f"echo x > {name}; echo $HOME; touch $HOME/y"],
                             env={"TMPDIR": other}, tmp="shared")
            outcome = self.succeeds(self.run_plan(plan))
            self.assertEqual(outcome.out, b"/dev/shm/home\n")
            self.assertTrue(os.path.exists(name))
            self.assertFalse(os.path.exists("/tmp/home"))
            self.assertFalse(os.path.exists("/dev/shm/home"))
        finally:
            shutil.rmtree(other)
            if os.path.exists(name):
                os.unlink(name)

    def test_devices(self):
        """Named ones appear; disks and links to them do not."""
        outcome = self.shell("test -c /dev/ptmx -a ! -e /dev/hwrng; stat -c %F /dev/fuse",
                             devices=["/dev/fuse"])
        self.assertEqual(self.succeeds(outcome).out, b"character special file\n")
        self.refused("does not lie", devices=["/etc/passwd"])
        self.refused("does not lie", devices=["/dev"])
        self.refused("devices", devices=["/dev/nothing-here"])
        for entry in os.listdir("/dev"):
            if stat.S_ISBLK(os.lstat(f"/dev/{entry}").st_mode):
                self.refused("neither", devices=[f"/dev/{entry}"])
                break

    def test_debug(self):
        """[B15] ptrace works among the command's own processes, and not on process 1."""
        self.succeeds(self.shell("strace -o log true && grep -q execve log", debug=True))
        self.succeeds(self.shell("! strace -o log true 2>/dev/null"))
        self.succeeds(self.shell("! strace -o log -p 1 2>/dev/null", debug=True))
        self.attack("proc_one", debug=True)
        self.attack("namespaces", debug=True)

    def test_inherited_proc(self):
        """[D2] The explicit weaker mode: /proc is the host's, read-only; all else as ever."""
        outcome = self.shell(f"test -d /proc/{os.getpid()} && ! echo x > /proc/sys/vm/drop_caches",
                             proc="inherited")
        self.succeeds(outcome)
        self.attack("privileges", proc="inherited")


suite.main(Protect, Deny, Places)
