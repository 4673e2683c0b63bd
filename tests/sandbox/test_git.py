#!/usr/bin/env python3
"""Real git in a sandbox: what it can do, and what nobody can make it do on the host. See suite.py
for how to run it. Hazard ids stand in brackets.
"""

import os
import subprocess

import suite
from test_sandbox import Sandbox

GIT = ("git -c user.name=x -c user.email=x@x -c commit.gpgsign=false -c protocol.file.allow=always "
       "-c init.defaultBranch=main ")
COMMIT = {"git": "commit"}


class Repository(Sandbox):
    """Every test has a repository with one commit in the workspace."""

    def setUp(self):
        super().setUp()
        self.git("init -q", self.ws)
        self.put("file", "one\n")
        self.git("add . && GIT commit -qm first", self.ws)

    def git(self, words, where, check=True):
        """On the host, as the user of the sandbox; words after && may begin with GIT."""
        done = subprocess.run(["sh", "-c", GIT + words.replace("GIT ", GIT)], cwd=where,
                              capture_output=True, text=True, timeout=90, check=False,
                              **self.as_user(env={"GIT_CONFIG_NOSYSTEM": "1"}))
        if check:
            self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout + done.stderr

    def inside(self, script, removed=(), **options):
        done = self.shell("set -e; " + script.replace("GIT ", GIT), **options)
        return self.succeeds(done, removed)

    def scratch(self, name):
        path = os.path.join(self.base, name)
        os.mkdir(path)
        self.own(path)
        return path


class ReadOnly(Repository):
    def test_reading(self):
        out = self.inside("GIT status --short; GIT log --oneline; GIT diff; GIT show HEAD:file").out
        self.assertIn(b"first", out)

    def test_one_clear_reason(self):
        """[A4] The same for a plain clone and a linked worktree."""
        main, tree = self.ws, f"{self.scratch('trees')}/tree"
        self.git(f"worktree add -q {tree}", self.ws)
        for where in (main, tree):
            self.ws = where
            done = self.shell(f"echo x > new; {GIT} add new; {GIT} log --oneline",
                              command_cwd=where)
            self.assertIn(b"Read-only file system", done.err)
            self.assertIn(b"first", done.out)
        self.ws = main

    def test_pointer_is_believed_only_when_it_is_answered(self):
        """[A2] A workspace cannot claim somebody else's repository."""
        other = self.scratch("other")
        self.git("init -q", other)
        thief = self.scratch("thief")
        with open(f"{thief}/.git", "w", encoding="utf-8") as f:
            f.write(f"gitdir: {other}/.git\n")
        self.own(f"{thief}/.git")
        self.ws, main = thief, self.ws
        for mode in ("read-only", "commit"):
            self.succeeds(self.shell(f"test ! -e {other}", git=mode))
        self.ws = main

    def test_hooks_among_the_files(self):
        """[A3] core.hooksPath leads into the work tree."""
        self.put(".husky/pre-commit", "#!/bin/sh\n", 0o755)
        self.git("config core.hooksPath .husky", self.ws)
        for git in ("read-only", "commit"):
            self.inside("! echo x > .husky/pre-commit; ! touch .husky/commit-msg; ! mv .husky h",
                        git=git)

    def test_nested_repositories(self):
        """[A5] A hook cannot be planted in any repository that was there."""
        self.directory("sub")
        self.git("init -q", f"{self.ws}/sub")
        self.directory("deep")
        self.git("init -q a/b/c", f"{self.ws}/deep")
        for where in ("sub", "deep/a/b/c"):
            for git in ("read-only", "commit"):
                self.inside(f"! echo x > {where}/.git/hooks/post-checkout; "
                            f"! {GIT} -C {where} config core.fsmonitor x; ! mv {where} moved; "
                            f"! mv {where}/.git {where}/g; touch {where}/file; rm {where}/file",
                            git=git)

    def test_created_repositories_are_told(self):
        """[A5]"""
        outcome = self.inside("GIT init -q made/by/me; mkdir other; echo gitdir: /x > other/.git; "
                              "GIT init -q gone; rm -r gone")
        self.assertEqual(sorted(outcome.end["created_repositories"]),
                         ["made/by/me/.git", "other/.git"])
        outcome = self.inside("true")
        self.assertEqual(outcome.end["created_repositories"], [])


class Commit(Repository):
    """[A3, A4] git: commit."""

    def everyday(self, **options):
        return self.inside(
            "B=$(GIT rev-parse --abbrev-ref HEAD); echo two >> file; GIT add file; GIT commit -qm second; "
            "GIT checkout -qb side; echo s > side; GIT add side; GIT commit -qm side; "
            "GIT checkout -q $B; echo m > main; GIT add main; GIT commit -qm onmain; "
            "GIT rebase -q $B side; GIT checkout -q $B; GIT merge -q side; GIT tag t; "
            "echo dirty >> file; GIT stash -q; test -z \"$(GIT status --short)\"; "
            "GIT stash pop -q; GIT checkout -q -- file; GIT commit -q --amend -m amended; "
            "GIT branch -D side; GIT reset -q --hard HEAD~1; GIT gc -q; GIT fsck --full",
            git="commit", **options)

    def test_plain(self):
        self.everyday()
        self.assertIn("onmain", self.git("log --oneline --all", self.ws))

    def test_linked_worktree(self):
        """[A4, A2] Its directory lies elsewhere, in the main repository."""
        main, tree = self.ws, f"{self.scratch('trees')}/tree"
        self.git(f"worktree add -q {tree}", self.ws)
        self.ws = tree
        try:
            self.everyday(command_cwd=self.ws)
            self.assertIn("onmain", self.git("log --oneline --all", main))
            self.planting(main + "/.git", main + "/.git/worktrees/tree")
            self.succeeds(self.shell(f"test ! -e {main}/file", git="commit"))
        finally:
            self.ws = main

    def test_new_worktree(self):
        outcome = self.inside("GIT worktree add -q inner; cd inner; echo x > y; GIT add y; "
                              "GIT commit -qm inner", **COMMIT)
        self.assertEqual(outcome.end["created_repositories"], ["inner/.git"])
        self.assertIn("inner", self.git("log --oneline --all", self.ws))
        self.planting(self.ws + "/.git", self.ws + "/.git/worktrees/inner")
        self.inside("! echo gitdir: evil > inner/.git; cd inner; echo z > y; GIT commit -qam z",
                    **COMMIT)

    def test_submodule(self):
        other = self.scratch("other")
        self.git("init -q && echo x > x && GIT add . && GIT commit -qm sub", other)
        self.git("submodule --quiet add ../other lib && GIT commit -qm lib", self.ws)
        self.inside("GIT submodule status; cd lib; echo y > x; GIT commit -qam insub; cd ..; "
                    "GIT add lib; GIT commit -qm bump; GIT submodule --quiet foreach 'git log -1' >/dev/null; "
                    "GIT -C lib checkout -q HEAD~1; GIT submodule summary", **COMMIT)
        # It writes the submodule's config, each time, which is what a command may not do.
        done = self.shell(f"{GIT} submodule update -q", **COMMIT)
        self.assertIn(b"could not write config file", done.err)
        self.assertIn("insub", self.git("log --oneline --all", f"{self.ws}/lib"))
        self.planting(self.ws + "/.git", self.ws + "/.git/modules/lib")
        self.inside("! echo gitdir: evil > lib/.git; ! mv lib l; ! mv .git/modules x", **COMMIT)

    def test_submodule_as_workspace(self):
        """Its directory lies in the repository around it, which says so."""
        other = self.scratch("other")
        self.git("init -q && echo x > x && GIT add . && GIT commit -qm sub", other)
        self.git("submodule --quiet add ../other lib", self.ws)
        main, self.ws = self.ws, f"{self.ws}/lib"
        try:
            self.inside("echo y > x; GIT commit -qam insub", **COMMIT)
            self.succeeds(self.shell(f"test ! -e {main}/file -a ! -e {main}/.git/HEAD", **COMMIT))
            self.planting(main + "/.git/modules/lib")
        finally:
            self.ws = main

    def planting(self, *directories):
        """[A1, A2, A3] Nothing that makes the host run code can be changed, made or moved."""
        for directory in directories:
            tries = "; ".join(
                f"(! mkdir -p {directory}/{name} && ! touch {directory}/{name}/x && "
                f"! ln -sf /etc {directory}/{name} && ! rm -r {directory}/{name} && "
                f"! mv {directory}/{name} {directory}/moved)"
                for name in ("hooks", "info") if os.path.exists(f"{directory}/{name}"))
            self.shell(f"{tries or ':'}; ! mv {directory} {directory}.moved", **COMMIT)
            existing = [name for name in ("config", "commondir", "gitdir", "config.worktree")
                        if os.path.exists(f"{directory}/{name}")]
            before = {name: open(f"{directory}/{name}", encoding="utf-8").read()
                      for name in existing}
            missing = [name for name in ("config.worktree", "commondir", "gitdir", "hooks", "info")
                       if not os.path.exists(f"{directory}/{name}")]
            outcome = self.shell(
                "".join(f"echo x > {directory}/{n}; echo y > {directory}/y; "
                        f"mv {directory}/y {directory}/{n}; rm -f {directory}/{n}; "
                        for n in existing) +
                "".join(f"mkdir -p {directory}/{n}; " for n in missing) + ":", **COMMIT)
            self.assertEqual(outcome.end["event"], "exit", outcome)
            self.assertEqual(len(outcome.end["removed"]), len(missing), outcome.end)
            for name, text in before.items():
                with open(f"{directory}/{name}", encoding="utf-8") as f:
                    self.assertEqual(f.read(), text, name)
            for name in missing:
                self.assertFalse(os.path.lexists(f"{directory}/{name}"), name)

    def test_planting(self):
        self.planting(self.ws + "/.git")

    def test_renaming_the_repository(self):
        """[A1] The recipe of the report, to its end on the host."""
        self.shell("mv .git .g; cp -a .g .git; printf '#!/bin/sh\\necho PWNED > pwned' > "
                   ".git/hooks/post-checkout; chmod +x .git/hooks/post-checkout", **COMMIT)
        self.shell("mkdir -p x/hooks; printf '#!/bin/sh\\necho PWNED > pwned' > "
                   "x/hooks/post-checkout; chmod +x x/hooks/*; rm -rf .git/hooks; mv x/hooks .git",
                   **COMMIT)
        self.git("checkout -q -b q", self.ws)
        self.assertFalse(os.path.exists(f"{self.ws}/pwned"))
        self.inside("echo x > new; GIT add new; GIT commit -qm new", **COMMIT)

    def linked_repository(self, *steps):
        """.git is a link, over so many more, to a directory beside it."""
        with open(f"{self.ws}/.git/info/exclude", "a", encoding="utf-8") as f:
            f.write("\n".join(("store", "evil") + steps))
        os.rename(f"{self.ws}/.git", f"{self.ws}/store")
        for name, target in zip((".git",) + steps, steps + ("store",)):
            os.symlink(target, f"{self.ws}/{name}")
            self.own(f"{self.ws}/{name}")

    def test_link(self):
        """[A14] A repository behind a link is one like any other."""
        self.linked_repository()
        self.everyday()
        self.assertIn("onmain", self.git("log --oneline --all", self.ws))
        self.planting(self.ws + "/store")
        done = self.shell(f"echo x > new; {GIT} add new")
        self.assertIn(b"Read-only file system", done.err)

    def test_link_cannot_be_let_lead_elsewhere(self):
        self.linked_repository("a", "b")
        evil = ("cp -r store evil; printf '#!/bin/sh\\necho PWNED > pwned' > evil/hooks/post-checkout; "
                "chmod +x evil/hooks/*; ")
        for script, removed in (("ln -sfn evil .git", [".git"]), ("ln -sfn evil a", ["a"]),
                                ("ln -sfn evil b", ["b"]), ("rm b; mv evil b", ["b"]),
                                ("! mv store other", [])):
            self.inside(evil + script + "; rm -rf evil", removed, **COMMIT)
        self.git("checkout -q -b q", self.ws)
        self.assertFalse(os.path.exists(f"{self.ws}/pwned"))

    def test_link_to_the_work_tree(self):
        """The work tree is the repository: all of it stays."""
        for name in os.listdir(f"{self.ws}/.git"):
            os.rename(f"{self.ws}/.git/{name}", f"{self.ws}/{name}")
        os.rmdir(f"{self.ws}/.git")
        os.symlink(".", f"{self.ws}/.git")
        self.own(f"{self.ws}/.git")
        self.inside("! echo x > hooks/post-checkout; ! echo x > config; ! mkdir y", **COMMIT)

    def test_hooks_among_the_files_behind_a_link(self):
        self.put(".husky/pre-commit", "#!/bin/sh\n", 0o755)
        self.git("config core.hooksPath .husky", self.ws)
        os.mkdir(f"{self.ws}/deep")
        self.own(f"{self.ws}/deep")
        os.rename(f"{self.ws}/.git", f"{self.ws}/deep/store")
        os.symlink("deep/store", f"{self.ws}/.git")
        self.own(f"{self.ws}/.git")
        self.inside("! echo x > .husky/pre-commit; ! touch .husky/commit-msg; ! mv deep d", **COMMIT)

    def test_what_needs_the_settings(self):
        """The settings stay, so git tells that it could not write them: these are all of its
        commands that do. The README lists them."""
        remote = self.scratch("remote")
        self.git("init -q --bare", remote)
        sub = self.scratch("sub")
        self.git("init -q && echo x > x && GIT add . && GIT commit -qm sub && echo y > x && "
                 "GIT commit -qam two", sub)
        self.git(f"remote add origin {remote} && GIT push -q origin HEAD:main && GIT fetch -q && "
                 "GIT submodule --quiet add ../sub lib && GIT commit -qm lib && "
                 "GIT -C lib checkout -q HEAD~1", self.ws)
        before = self.put("before", open(f"{self.ws}/.git/config", encoding="utf-8").read())
        options = dict(mounts=[{"path": remote, "writable": True}, {"path": sub}], **COMMIT)
        for words, code in (("submodule update", 128), ("push -q origin HEAD:side", 0), ("push -q -u origin HEAD:up", 0),
                            ("fetch -q origin", 0), ("checkout -q --no-track -b x origin/main", 0),
                            ("checkout -q -b y origin/main", 0), ("config user.name me", 4),
                            ("branch --set-upstream-to=origin/main", 0), ("remote add r x", 128),
                            ("branch -m z", 128),
                            ("config --global user.name me", 0)):
            done = self.shell(GIT + words, **options)
            self.assertEqual(done.end["code"], code, (words, done))
            needs = words not in ("push -q origin HEAD:side", "fetch -q origin",
                                  "checkout -q --no-track -b x origin/main",
                                  "config --global user.name me")
            self.assertEqual(b"could not write config file" in done.err, needs, (words, done))
        self.assertIn("up", self.git("branch -a", remote))
        self.assertEqual(open(f"{self.ws}/.git/config", encoding="utf-8").read(),
                         open(before, encoding="utf-8").read())

    def test_settings(self):
        """[A3]"""
        for words in ("core.fsmonitor 'echo PWNED >&2; false'", "core.hooksPath evil",
                      "alias.st '!echo PWNED'", "core.sshCommand evil", "include.path ../evil",
                      "extensions.worktreeConfig true"):
            self.shell(f"{GIT} config {words}; {GIT} config --worktree {words}", **COMMIT)
        self.assertNotIn("PWNED", self.git("status", self.ws))
        self.shell("mkdir -p .git/info; echo '* filter=evil' > .git/info/attributes", **COMMIT)
        self.assertFalse(os.path.exists(f"{self.ws}/.git/info/attributes"))

    def test_common_directory_file(self):
        """A main repository with a file `commondir` reads another one's config."""
        outcome = self.shell("mkdir evil; cp .git/config evil; echo '[core] fsmonitor = "
                             "\"echo PWNED >&2\"' >> evil/config; echo ../evil > .git/commondir; "
                             "sleep 0.2", **COMMIT)
        self.assertEqual(outcome.end["removed"], [".git/commondir"])
        self.assertNotIn("PWNED", self.git("status", self.ws, check=False))

    def test_protected_directory_that_is_tracked(self):
        """[A13] What git could not do is told by git, and the protected files are as they were."""
        self.put(".agents/skill", "old\n")
        self.git("add . && GIT commit -qm skill && GIT checkout -qb b && echo new > "
                 ".agents/skill && GIT commit -qam change && GIT checkout -q -", self.ws)
        outcome = self.shell(f"{GIT} checkout b", **COMMIT)
        self.assertIn(b".agents/skill", outcome.err)
        with open(f"{self.ws}/.agents/skill", encoding="utf-8") as f:
            self.assertEqual(f.read(), "old\n")


suite.main(ReadOnly, Commit)
