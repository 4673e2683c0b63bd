#!/usr/bin/env python3
"""The same walls where the workspace lies on another file system: tests of the other files, run again
in a mount namespace of their own on tmpfs and overlayfs, which every machine can mount, and with a
mount inside the workspace. Run as: test_filesystems.py HELPER HOSTILE [NAME ...].

What a file system says of a directory (times, numbers, kinds of entries) decides whether the search
for repositories may remember it, so a hook that is planted in one, or a repository that appears
between two commands, has to be found on each. With CODESPACE_TEST_FILESYSTEMS=DIR[:DIR...] they run in
these directories, too: of XFS and Btrfs, which need a disk.
"""

import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = {
    "test_git.py": ("ReadOnly.test_nested_repositories", "ReadOnly.test_created_repositories_are_told",
                    "ReadOnly.test_hooks_among_the_files", "Commit.test_new_worktree",
                    "Commit.test_planting", "Commit.test_renaming_the_repository"),
    "test_masks.py": ("Protect",),
    "test_repositories.py": ("Bare", "Later"),
    "test_sandbox.py": ("Protected",),
    "test_warm.py": ("Stale",),
}
PASSED = re.compile(r"^codespace-tests: (\d+) passed, (\d+) failed, (\d+) skipped$", re.M)


def mount_tmpfs(where):
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", where], check=True)


def mount_overlay(where):
    """Its layers lie on a tmpfs; a directory of the lower one is there before. Without privileges it
    keeps its marks in attributes of users."""
    mount_tmpfs(where)
    for name in ("lower", "upper", "work", "merged"):
        os.mkdir(f"{where}/{name}")
    os.mkdir(f"{where}/lower/before")
    options = f"lowerdir={where}/lower,upperdir={where}/upper,workdir={where}/work,userxattr"
    subprocess.run(["mount", "-t", "overlay", "overlay", "-o", options, f"{where}/merged"], check=True)
    return f"{where}/merged"


MOUNTS = {"tmpfs": mount_tmpfs, "overlay": mount_overlay}


def patterns(tests):
    """As -k takes them: also those of the user, where he has a number."""
    with open("/proc/self/uid_map", encoding="ascii") as f:
        known = int(f.read().split()[2]) > 1000
    for test in tests:
        case, _, rest = test.partition(".")
        for who in ("", "AsUser") if known else ("",):
            yield f"-k*.{case}{who}.{rest or '*'}"


def run_in(where, helper, hostile):
    """All tests in a directory; how many passed and failed."""
    os.chmod(where, 0o1777)
    passed = failed = 0
    for file, tests in TESTS.items():
        done = subprocess.run(
            [sys.executable, f"{HERE}/{file}", helper, hostile, *patterns(tests)],
            env=dict(os.environ, TMPDIR=where), capture_output=True, text=True, check=False)
        found = PASSED.search(done.stdout)
        counts = [int(n) for n in found.groups()] if found else [0, 1, 0]
        passed += counts[0]
        failed += counts[1] + counts[2] + (done.returncode != 0 and counts[1] == 0)
        if done.returncode != 0 or found is None:
            print(f"{file} in {where}:\n{done.stdout}{done.stderr}", flush=True)
    return passed, failed


def inside(name, helper, hostile):
    """In the namespace: mount, and run."""
    with tempfile.TemporaryDirectory(prefix="cs-fs-") as base:
        os.chmod(base, 0o755)
        where = MOUNTS[name](base) or base
        try:
            passed, failed = run_in(where, helper, hostile)
        finally:
            subprocess.run(["umount", "-R", "-l", base], check=False)
    print(f"{name}: {passed} {failed}")


def enter(name, helper, hostile):
    """A child in a namespace of its own; what it counted."""
    own = ["unshare", "--mount", "--propagation", "private"]
    if subprocess.run([*own, "true"], stderr=subprocess.DEVNULL, check=False).returncode != 0:
        own = ["unshare", "--user", "--map-root-user", "--mount"]
    done = subprocess.run([*own, sys.executable, os.path.abspath(__file__), helper, hostile,
                           "--inside", name], stdout=subprocess.PIPE, text=True, check=False)
    found = re.search(rf"^{name}: (\d+) (\d+)$", done.stdout, re.M)
    print(done.stdout, end="", flush=True)
    return (int(found[1]), int(found[2])) if found else (0, 1)


def main():
    helper, hostile = (os.path.abspath(path) for path in sys.argv[1:3])
    os.umask(0o022)
    if sys.argv[3:4] == ["--inside"]:
        inside(sys.argv[4], helper, hostile)
        return 0
    passed = failed = 0
    for name in sys.argv[3:] or MOUNTS:
        counts = enter(name, helper, hostile)
        passed, failed = passed + counts[0], failed + counts[1]
    for where in filter(None, os.environ.get("CODESPACE_TEST_FILESYSTEMS", "").split(":")):
        counts = run_in(where, helper, hostile)
        print(f"{where}: {counts[0]} {counts[1]}", flush=True)
        passed, failed = passed + counts[0], failed + counts[1]
    print(f"codespace-tests: {passed} passed, {failed} failed, 0 skipped")
    return failed != 0


sys.exit(main())
