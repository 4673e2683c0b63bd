#!/usr/bin/env python3
"""What git takes for settings and for repositories wherever they lie: files that are included, hooks
among the files, repositories without a work tree, and trees too large to be searched. See suite.py
for how to run it. Hazard ids stand in brackets.
"""

import os
import shutil
import subprocess

import suite
from test_sandbox import Sandbox
from test_warm import Stale, Warm

GIT = "git -c user.name=x -c user.email=x@x -c init.defaultBranch=main "
MODES = ("read-only", "commit")
# Entries that are looked at (GITDIR_SCAN_MAX).
SEARCHED = 50000


class Repositories(Sandbox):
    def git(self, words, where=None):
        done = subprocess.run(["sh", "-c", GIT + words.replace("GIT ", GIT)],
                              cwd=where or self.ws, capture_output=True, text=True, timeout=90,
                              check=False, **self.as_user(env={"GIT_CONFIG_NOSYSTEM": "1"}))
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def settings(self, text):
        with open(f"{self.ws}/.git/config", "a", encoding="utf-8") as f:
            f.write(text)


class Settings(Repositories):
    def setUp(self):
        super().setUp()
        self.git("init -q . && GIT commit -q --allow-empty -m first")

    def test_included_file(self):
        """[A3] A setting in it counts as one in the repository's own file."""
        self.put("team/gitconfig", "[user]\n\tname = team\n")
        self.git("config include.path ../team/gitconfig")
        for git in MODES:
            outcome = self.shell("(echo x >> team/gitconfig) && exit 1; mv team t && exit 1; "
                                 "rm -f team/gitconfig && exit 1; git config user.name", git=git)
            self.assertEqual(self.succeeds(outcome).out, b"team\n")

    def test_included_by_an_included_one(self):
        self.put("a", "[include]\n\tpath = b ; and so on\n")
        self.put("b", "[includeIf \"gitdir:/x]y/\"] path = \"sub/c\"\n")
        self.put("sub/c", "")
        self.settings("[ InClude ]\n  PATH = ../a\n")
        self.shell("for f in a b sub/c; do echo x > $f; mv other $f; done", git="commit")
        for name in ("a", "b", "sub/c"):
            with open(f"{self.ws}/{name}", encoding="utf-8") as f:
                self.assertNotEqual(f.read(), "x\n", name)

    def test_missing_included_file(self):
        """[A7]"""
        self.git("config include.path ../none")
        for git in MODES:
            self.succeeds(self.shell("echo '[core]' > none", git=git), ["none"])
        self.assertFalse(os.path.exists(f"{self.ws}/none"))

    def test_what_is_included_from_elsewhere_does_not_matter(self):
        self.settings("[include]\n path = /etc/hostname\n path = ~/x\n path = ..\n path = \n path\n"
                      " path = /nonexistent/x\n path = ../.git/config\n[branch \"a]b\"] path = file\n")
        self.put("file")
        for git in MODES:
            self.succeeds(self.shell("echo x > file", git=git))

    def test_hooks_on_one_line(self):
        """[A3] As a person writes it."""
        self.put("my hooks/pre-commit", "", 0o755)
        self.settings("[core] hookspath = \"my hooks/\" # ours\n")
        for git in MODES:
            self.succeeds(self.shell("(echo x > 'my hooks/pre-commit') && exit 1; "
                                     "touch 'my hooks/post-checkout' && exit 1; "
                                     "mv 'my hooks' other && exit 1; exit 0", git=git))

    def test_missing_hooks(self):
        """[A7]"""
        self.git("config core.hooksPath tools/hooks")
        for git in MODES:
            self.succeeds(self.shell("mkdir -p tools/hooks; touch tools/hooks/x || true", git=git),
                          ["tools/hooks"])

    def test_settings_of_a_worktree(self):
        """[A2, A3] Its own file of settings names hooks, too."""
        main, tree = self.ws, f"{self.base}/tree"
        os.mkdir(tree)
        self.own(tree)
        self.git(f"config extensions.worktreeConfig true && GIT worktree add -q {tree}/t")
        self.ws = f"{tree}/t"
        try:
            self.git("config --worktree core.hooksPath tools")
            self.put("tools/pre-commit", "", 0o755)
            for git in MODES:
                self.succeeds(self.shell("(echo x > tools/pre-commit) && exit 1; exit 0", git=git,
                                         command_cwd=self.ws))
        finally:
            self.ws = main


class Bare(Repositories):
    """[A5] A repository that git finds without the name .git."""

    def planting(self, where):
        for git in MODES:
            outcome = self.shell(
                f"exec 2>/dev/null; (echo x > {where}/hooks/post-update) && exit 1; "
                f"git -C {where} config core.fsmonitor x && exit 1; mv {where}/hooks {where}/h && exit 1; "
                f"(echo x > {where}/info/attributes) && exit 1; "
                f"echo x > {where}/commondir; exit 0", git=git)
            self.succeeds(outcome, [f"{where}/commondir"])
            self.attack("cannot_rename", where, *where.split("/")[:-1], git=git)

    def test_hooks_and_settings_stay(self):
        self.git("init -q --bare store/a.git && GIT init -q --bare plain")
        self.planting("store/a.git")
        self.planting("plain")

    def test_pushing_and_fetching_go_on(self):
        self.git("init -q --bare r.git && GIT init -q w && GIT -C w commit -q --allow-empty -m a && "
                 "GIT -C w remote add origin ../r.git")
        for git in MODES:
            self.succeeds(self.shell(f"{GIT} -C w push -q origin HEAD:{git} && "
                                     f"{GIT} -C r.git branch x$(echo {git} | tr -d -) $(git -C w rev-parse HEAD) || exit 1; "
                                     f"{GIT} clone -q r.git c && rm -rf c", git=git)
                          if git == "commit" else
                          self.shell(f"{GIT} -C r.git gc -q && {GIT} clone -q r.git c && rm -rf c",
                                     git=git))

    def test_workspace_is_one(self):
        self.git("init -q --bare .")
        for git in MODES:
            self.succeeds(self.shell("(echo x > hooks/post-update) 2>/dev/null && exit 1; "
                                     "touch file && rm file", git=git))

    def test_made_ones_are_told(self):
        for script, made in (("git init -q --bare a/b", ["a/b"]),
                             ("mkdir d d/objects d/refs; echo ref: refs/heads/x > d/HEAD", ["d"]),
                             ("mkdir real real/objects real/refs e; ln -s ../real/objects e; "
                              "ln -s ../real/refs e; touch e/HEAD", ["e"]),
                             ("mkdir f; echo ../x > f/commondir; ln -s refs/heads/x f/HEAD; "
                              "touch f/HEAD.txt", []),
                             ("mkdir g; echo ../x > g/commondir; echo ref: refs/x > g/HEAD", ["g"])):
            outcome = self.succeeds(self.shell(script))
            self.assertEqual([n for n in outcome.end["created_repositories"] if n != "f"], made,
                             script)
            for name in os.listdir(self.ws):
                shutil.rmtree(f"{self.ws}/{name}")
        outcome = self.succeeds(self.shell("mkdir objects refs; touch HEAD"))
        self.assertEqual(outcome.end["created_repositories"], ["."])


class Large(Repositories):
    def fill(self, n):
        wide = os.path.join(self.ws, "wide")
        os.mkdir(wide)
        self.own(wide)
        for i in range(n):
            os.close(os.open(f"{wide}/{i}", os.O_WRONLY | os.O_CREAT, 0o644))

    def unsearched(self, outcome):
        return ("repositories.unsearched", 0) in [(d["rule"], d["count"])
                                                  for d in outcome.end.get("denials", [])]

    def test_what_was_not_searched_is_told(self):
        """[A5] More entries than are looked at: who is not told of a repository is told so."""
        self.assertFalse(self.unsearched(self.succeeds(self.shell("mkdir a; rmdir a"))))
        self.fill(SEARCHED)
        outcome = self.succeeds(self.shell("true"))
        self.assertTrue(self.unsearched(outcome), outcome)

    def test_more_than_are_named(self):
        outcome = self.succeeds(self.shell("for i in $(seq 40); do mkdir -p $i/.git; done"))
        self.assertEqual(len(outcome.end["created_repositories"]), 16)
        self.assertTrue(self.unsearched(outcome), outcome)


class Later(Warm):
    """[A5] Between two commands of a view that was built before."""

    refuses, settled = Stale.refuses, Stale.settled

    def make_bare(self, name):
        for directory in (name, f"{name}/objects", f"{name}/refs"):
            self.directory(directory)
        self.put(f"{name}/HEAD", "ref: refs/heads/main\n")

    def test_one_that_a_person_makes(self):
        zygote = self.new_zygote()
        self.settled(zygote)
        self.make_bare("store")
        self.refuses(zygote, "guard", "store")

    def test_one_that_a_command_completes(self):
        """What was looked at before was no repository yet."""
        for directory in ("a", "a/b", "a/b/objects", "a/b/refs"):
            self.directory(directory)
        zygote = self.new_zygote()
        self.settled(zygote)
        outcome = self.shell_in(zygote, "echo ref: refs/heads/main > a/b/HEAD")
        self.assertEqual(outcome.end["created_repositories"], ["a/b"])
        self.refuses(zygote, "guard", "a/b")

    def test_one_whose_parts_lie_elsewhere(self):
        for directory in ("a", "real", "real/objects", "real/refs"):
            self.directory(directory)
        self.put("a/HEAD", "ref: refs/heads/main\n")
        zygote = self.new_zygote()
        self.settled(zygote)
        outcome = self.shell_in(zygote, "ln -s ../real/objects ../real/refs a")
        self.assertEqual(outcome.end["created_repositories"], ["a"])

    def test_known_one(self):
        self.make_bare("store")
        zygote = self.new_zygote()
        self.settled(zygote)
        outcome = self.shell_in(zygote, "touch store/refs/x; mkdir store/hooks; echo x > store/config")
        self.assertEqual(sorted(outcome.end["removed"]), ["store/config", "store/hooks"])


suite.main(Settings, Bare, Large, Later)
