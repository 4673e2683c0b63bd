#!/usr/bin/env python3
"""Random unified diffs, thousands of them damaged, applied by us, by git apply and by GNU patch.

What must hold. A sound diff: applied exactly, and the tree is the one it was made from. A damaged
one: when we say that it applied exactly, one of the others takes it strictly and makes the same
bytes; when we needed tolerance (and said so) and git apply takes it, the bytes are the same too.
And what we refuse leaves every byte as it was. Each applied patch is undone by its inverse.

usage: test_unified.py DRIVER [--rounds N] [--seed N]
"""
import argparse
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import support  # noqa: E402

NAMES = ["f", "dir/g", "with blank", "caf\u00e9", "dir/deep/h", 'q"uote']
ENVIRONMENT = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "LC_ALL": "C.UTF-8",
               "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null",
               "GIT_CEILING_DIRECTORIES": "/"}


def run(argv, cwd):
    return subprocess.run(argv, cwd=cwd, env=ENVIRONMENT, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def random_tree(rng):
    return {name: (support.random_content(rng), rng.random() < 0.3)
            for name in rng.sample(NAMES, rng.randrange(1, len(NAMES)))}


def changed_tree(rng, tree):
    after = {}
    for name, (content, executable) in tree.items():
        choice = rng.randrange(12)
        if choice == 0:
            continue
        if choice == 1:
            after[name + ".moved"] = (content, executable)
            continue
        if choice < 9:
            content = support.mutate(rng, content)
        if choice == 9:
            executable = not executable
        after[name] = (content, executable)
    if rng.random() < 0.3:
        after["new/file"] = (support.random_content(rng), rng.random() < 0.5)
    return after


def make_diff(rng, work, before, after):
    """(text, is git's form)"""
    support.write_tree(work / "a", before)
    support.write_tree(work / "b", after)
    context = rng.choice([3, 3, 3, 1, 0, 8])
    if rng.random() < 0.75:
        argv = ["git", "diff", "--no-index", f"-U{context}", "--no-color", "--no-ext-diff",
                "--src-prefix=", "--dst-prefix=", "--text"]
        argv += rng.choice([[], ["-M"], ["-M", "-C", "--find-copies-harder"], ["--no-renames"]])
        text = run(argv + ["a", "b"], work).stdout
        # Outside a repository git writes the two directories here too, which its own apply does
        # not understand.
        return re.sub(rb'(?m)^((?:rename|copy) (?:from|to) "?)[ab]/', rb"\1", text), True
    return run(["diff", "-ruN", "-a", f"-U{context}", "a", "b"], work).stdout, False


def without_modes(before, after):
    """What GNU diff can say of a change: no modes, and no empty files that come or go."""
    tree = {}
    for name in sorted(set(before) | set(after)):
        old, new = before.get(name, (b"", False)), after.get(name, (b"", False))
        if old[0] == new[0]:
            if name in before:
                tree[name] = old
        elif name in after:
            tree[name] = (new[0], old[1])
    return tree


def damage(rng, text):
    lines = text.split(b"\n")
    for _ in range(rng.randrange(1, 3)):
        at = rng.randrange(len(lines))
        kind = rng.randrange(8)
        if lines[at].startswith(b"index ") and kind in (2, 4):
            continue  # says nothing to us
        if kind == 0:
            del lines[at]
        elif kind == 1:
            lines.insert(at, rng.choice(lines))
        elif kind == 2 and lines[at]:
            i = rng.randrange(len(lines[at]))
            lines[at] = lines[at][:i] + bytes([rng.choice(b" +-@0123459abx")]) + lines[at][i + 1:]
        elif kind == 3:
            lines = lines[:at + 1]
        elif kind == 4:
            lines[at] += b" "
        elif kind == 5:
            other = rng.randrange(len(lines))
            lines[at], lines[other] = lines[other], lines[at]
        else:
            hunks = [i for i, line in enumerate(lines) if line.startswith(b"@@ -")]
            if hunks:
                i = rng.choice(hunks)
                digits = [k for k, c in enumerate(lines[i]) if chr(c).isdigit()]
                if digits:
                    k = rng.choice(digits)
                    lines[i] = lines[i][:k] + b"%d" % rng.randrange(10) + lines[i][k + 1:]
    return b"\n".join(lines)


def others(work, patch, before):
    """Trees that others make of it, strictly: name -> tree."""
    found = {}
    if not patch.read_bytes().endswith(b"\n"):  # a last line without an end is a line for us
        patch.write_bytes(patch.read_bytes() + b"\n")
    for name, argv in (("git", ["git", "apply", "--whitespace=nowarn"]),
                       ("git-zero", ["git", "apply", "--whitespace=nowarn", "--unidiff-zero"]),
                       ("patch", ["patch", "-p1", "-F0", "-s", "-f", "--no-backup-if-mismatch",
                                  "--binary", "-r-", "-i"])):
        support.write_tree(work / "other", before)
        if run(argv + [str(patch)], work / "other").returncode == 0:
            found[name] = support.read_tree(work / "other")
        # Without "deleted file mode" git takes /dev/null for the name of a file.
        if "dev/null" in found.get(name, {}):
            del found[name]
    return found


class Round:
    def __init__(self, driver, work, seed):
        self.driver, self.work = driver, work
        self.rng = random.Random(seed)
        self.seed = seed

    def fail(self, why):
        keep = pathlib.Path("/tmp") / f"cs-oracle-failure-{self.seed}"
        shutil.copytree(self.work, keep, dirs_exist_ok=True)
        raise AssertionError(f"seed {self.seed}: {why} (kept in {keep})")

    def run(self):
        rng, work = self.rng, self.work
        before = random_tree(rng)
        after = changed_tree(rng, before)
        text, is_git = make_diff(rng, work, before, after)
        if not text:
            return "same"
        if not is_git:
            after = without_modes(before, after)
        damaged = rng.random() < 0.6
        if damaged:
            text = damage(rng, text)
        patch = work / "patch"
        patch.write_bytes(text)
        support.write_tree(work / "ours", before)
        status, fuzzy, message = self.driver.apply(work / "ours", patch, "ui1")
        ours = support.read_tree(work / "ours")
        if status != "applied":
            return self.refused(damaged, before, after, ours, status, message)
        self.compare(damaged, fuzzy, patch, before, after, ours)
        self.undo(patch, before)
        return f"applied-{'damaged' if damaged else 'sound'}-{fuzzy}"

    def refused(self, damaged, before, after, ours, status, message):
        if ours != before:
            self.fail(f"{status}: but files changed")
        if not damaged:
            self.fail(f"a sound diff was refused: {status} {message}")
        return "refused"

    def compare(self, damaged, fuzzy, patch, before, after, ours):
        if not damaged:
            if fuzzy != "exact" or ours != after:
                self.fail(f"a sound diff: {fuzzy}, the tree is {'right' if ours == after else 'wrong'}")
            return
        theirs = others(self.work, patch, before)
        # Without --unidiff-zero git appends what has no context to the end of the file.
        if "git" in theirs and ours not in (theirs["git"], theirs.get("git-zero")):
            self.fail(f"git apply makes something else ({fuzzy})")
        if fuzzy == "exact" and ours not in theirs.values():
            self.fail(f"exact, but nobody else makes that: {sorted(theirs)}")

    def undo(self, patch, before):
        inverse = pathlib.Path(f"{patch}.inverse")
        if inverse.stat().st_size == 0:
            return
        status, fuzzy, message = self.driver.apply(self.work / "ours", inverse, "u")
        if status != "applied" or fuzzy != "exact" or support.read_tree(self.work / "ours") != before:
            self.fail(f"the inverse: {status} {fuzzy} {message}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("driver")
    parser.add_argument("--rounds", type=int, default=1500)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    driver = support.Driver(args.driver)
    work = support.scratch()
    counts = {}
    try:
        for i in range(args.rounds):
            outcome = Round(driver, work, args.seed + i).run()
            counts[outcome] = counts.get(outcome, 0) + 1
    finally:
        shutil.rmtree(work)
    if driver.close() != 0:
        raise AssertionError("the driver failed")
    print(counts)
    for kind in ("applied-sound-exact", "applied-damaged-exact", "applied-damaged-fuzzy", "refused"):
        if counts.get(kind, 0) == 0 and args.rounds >= 1000:
            raise AssertionError(f"no round of kind {kind}: the comparison shows nothing")


if __name__ == "__main__":
    main()
