#!/usr/bin/env python3
"""The same command line and permission profile on the real codex-linux-sandbox and on ours.

Run as: test_codex.py HELPER [--write]. Each row of CASES runs on both, in surroundings of its own;
what happened is one word or line. Where the two differ the row says why, and docs/peers-codex.md is
the table (--write makes it, without it is compared). The program comes from npm, pinned in
package-lock.json here; where npm cannot be reached the test is skipped with the reason, in CI
(variable CI=true) it fails then.
"""

import fcntl
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TABLE = os.path.join(HERE, "../../docs/peers-codex.md")
ARCH = {"x86_64": ("x64", "x86_64"), "aarch64": ("arm64", "aarch64")}
SKIP = 77


def real_program():
    """Path of the native program, or exit with the reason. Whoever comes while another test has it
    installed waits until all of it is there."""
    with open(os.path.join(HERE, "package.json"), "rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return find_or_install()


def find_or_install():
    short, long = ARCH[platform.machine()]
    path = os.path.join(HERE, f"node_modules/@openai/codex-linux-{short}/vendor/"
                              f"{long}-unknown-linux-musl/bin/codex")
    if not os.path.exists(path):
        try:
            done = subprocess.run(["npm", "ci", "--no-audit", "--no-fund"], cwd=HERE, timeout=600,
                                  capture_output=True, text=True, check=False)
            reason = done.stderr
        except OSError as error:
            reason = str(error)
        if not os.path.exists(path):
            print(f"codespace-tests: skipped: @openai/codex cannot be installed: {reason}")
            sys.exit(1 if os.environ.get("CI") == "true" else SKIP)
    return path


def entry(path, access):
    if path.startswith(":"):
        return {"path": {"type": "special", "value": {"kind": path[1:]}}, "access": access}
    if "*" in path:
        return {"path": {"type": "glob_pattern", "pattern": path}, "access": access}
    return {"path": {"type": "path", "path": path}, "access": access}


def profile(*entries, network="restricted"):
    return {"type": "managed", "network": network,
            "file_system": {"type": "restricted", "entries": [entry(*e) for e in entries]}}


READ = ((":root", "read"),)
WORK = READ + ((":project_roots", "write"),)
FULL = {"type": "managed", "network": "restricted", "file_system": {"type": "unrestricted"}}
DISABLED = {"type": "disabled"}

# Why ours is right where the two differ.
PRIVATE_TMP = "/tmp is private and writable: here-documents and compilers work, nothing leaks"
TAKEN_AWAY = ("the name is made in the workspace itself and taken away again before the result is "
              "told, so no mount point is ever left on the host when we are killed")
ODD_ENTRY = "one odd entry does not disable the sandbox: the link and its target are held"
SIGNAL = "died of the signal itself, so that it can be told from exit 137"
LOOPBACK = "an own loopback is not a way out; local servers and their tests work inside"
LANDLOCK = ("a read-only disk is what it can keep, so who chooses it explicitly gets it; what it cannot "
            "keep is refused")
SHELL_CODE = "127 and 126, as shells have it, instead of the exit code of a panic"
MISSING = "the usage code 2 for a wrong command line, not that of a panic"
SECRETS = "secret places stay hidden although the whole file system shows"
NESTED = "repositories in the workspace are protected, too"
MOVED = "it stays where the pattern finds it; under another name the next command would read it"
ISOLATED = "what belongs to other processes of the host is not seen or shared"
NO_HOST_NET = "the host's network beside a restricted file system is never given (no proxy)"

SOCKETS = "import socket; s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen()"
CAPS = "grep -q 'CapEff:.0000000000000000' /proc/self/status"

# (row, what is tried, profile, shell script in the workspace, why ours differs or None)
CASES = [
    ("S1", "list /bin", READ, "ls /bin >/dev/null", None),
    ("S2", "write a file outside, not in /tmp", WORK, "echo x > @/out/x", None),
    ("S2a", "write a file in /tmp", WORK, "echo x > /tmp/cs-peer-x", PRIVATE_TMP),
    ("S3", "write to /dev/null", READ, "echo x > /dev/null", None),
    ("S4", "the six devices", READ,
     "for d in null zero full random urandom tty; do test -c /dev/$d || exit 1; done", None),
    ("S5", "/dev/shm as a writable root", READ + (("/dev/shm", "write"),),
     "echo x > /dev/shm/cs-peer && rm /dev/shm/cs-peer", None),
    ("S6", "write inside a writable root", WORK, "echo x > new && cat new", None),
    ("S6a", "write in a second writable root", WORK + (("@/out", "write"),), "echo x > @/out/x",
     None),
    ("S7", "one writable root is missing", WORK + (("@/none", "write"),), "echo fine", None),
    ("S8", "no_new_privs", READ, "grep -q 'NoNewPrivs:.1' /proc/self/status", None),
    ("S9", "no capabilities", READ, CAPS, None),
    ("S12", "connect to the host", READ, "bash -c 'echo > /dev/tcp/127.0.0.1/22'", None),
    ("S12a", "a name is looked up", READ, "getent ahosts example.com", None),
    ("S12b", "a server of one's own", READ, f'python3 -c "{SOCKETS}"', LOOPBACK),
    ("S13", "change .git/config that is there", WORK, "echo x > .git/config", None),
    ("S13a", "change .codex and .aws that are there", WORK,
     "echo x > .codex/config.toml || echo x > .aws/config", None),
    ("S13b", "a file beside them", WORK, "echo x > .gitignore", None),
    ("S14", "write through a link .agents", WORK, "echo x > .agents/file", None),
    ("S15", "anything at all with a link .agents", WORK, "true # link", ODD_ENTRY),
    ("S18", "git init where there is none", WORK, "rm -r x; git init -q . # fresh", TAKEN_AWAY),
    ("S18a", "... and what it leaves", WORK,
     "git init -q . 2>/dev/null; mkdir .codex 2>/dev/null; true # fresh", None),
    ("S20", "write in a denied child", WORK + (("@/ws/sub", "deny"),), "echo x > sub/x", None),
    ("S20a", "read in a denied child", WORK + (("@/ws/sub", "deny"),), "cat sub/file", None),
    ("S20b", "write in a read-only child", WORK + (("@/ws/sub", "read"),), "echo x > sub/x", None),
    ("S22", "a writable grandchild of a denied one",
     WORK + (("@/ws/sub", "deny"), ("@/ws/sub/deep", "write")),
     "cat sub/deep/file && echo x > sub/deep/x", None),
    ("S22a", "a writable grandchild of a read-only one",
     WORK + (("@/ws/sub", "read"), ("@/ws/sub/deep", "write")), "echo x > sub/deep/x", None),
    ("S23", "read in a denied directory", READ + (("@/out", "deny"),), "cat @/out/file", None),
    ("G1", "read what a pattern denies", WORK + (("**/*.pem", "deny"),), "grep . sub/key.pem",
     None),
    ("G2", "read what it does not deny", WORK + (("**/*.pem", "deny"),), "cat sub/file", None),
    ("G3", "move a directory with a denied match", WORK + (("sub/*.pem", "deny"),),
     "mv sub other && grep . other/key.pem", MOVED),
    ("P1", "the parent is process 1", READ, "test $PPID = 1", None),
    ("P3", "a child that stays", WORK, "(sleep 0.3; echo x > late) & true", None),
    ("N1", "a hook in a nested repository", WORK, "echo x > nested/.git/hooks/post-checkout",
     NESTED),
    ("N2", "move the directory around it", WORK, "mv .git git", None),
    ("N3", "a new user namespace", READ, "unshare -Ur true", None),
    ("N4", "ptrace", READ, "strace -o /dev/null true", None),
    ("N5", "see the caller's processes", READ, "test -d /proc/@pid/fd", None),
    ("N6", "read a key in ~/.ssh", READ, "cat @/home/.ssh/id", SECRETS),
    ("N7", "the host's name can be told from ours", READ, "test \"$(uname -n)\" = @host", ISOLATED),
    ("X1", "exit 7", READ, "exit 7", None),
    ("X2", "exit 137", READ, "exit 137", None),
    ("X3", "killed by 9", READ, "kill -9 $$", SIGNAL),
    ("X4", "a program that is not there", READ, "!/nonexistent", SHELL_CODE),
    ("F1", "whole disk: write outside", FULL, "echo x > @/out/x", None),
    ("F2", "whole disk: network", FULL, "bash -c 'echo > /dev/tcp/127.0.0.1/22'", None),
    ("F3", "whole disk: the filter is on", FULL, "grep -q 'Seccomp:.2' /proc/self/status", None),
    ("F4", "disabled: nothing is on", DISABLED, "grep -q 'Seccomp:.0' /proc/self/status", None),
    ("F5", "host network beside a restricted disk", profile(*WORK, network="enabled"), "true",
     NO_HOST_NET),
    ("R1", "no command", READ, None, MISSING),
    ("R2", "legacy Landlock with a read-only disk", READ, "true # --use-legacy-landlock",
     LANDLOCK),
    ("R2a", "... and a write", READ, "test -e . && ! echo x > @/out/file # --use-legacy-landlock", LANDLOCK),
    ("R2b", "legacy Landlock with a writable workspace", WORK, "true # --use-legacy-landlock",
     MISSING),
    ("R3a", "legacy Landlock with the whole disk: a write", FULL,
     "echo x > @/out/file # --use-legacy-landlock", None),
    ("R3b", "legacy Landlock with the whole disk: network", FULL,
     "test -e . && ! bash -c 'echo > /dev/tcp/127.0.0.1/22' # --use-legacy-landlock", None),
    ("R3", "legacy Landlock with the whole disk", FULL, "true # --use-legacy-landlock", None),
    ("R4", "a profile that is not JSON", "nonsense", "true", None),
    ("R5", "--no-proc", READ, "true # --no-proc", None),
]


class World:
    """A workspace with a repository, protected directories and something outside."""

    def __init__(self, script):
        self.base = os.path.realpath(tempfile.mkdtemp(prefix="cs-peer-", dir="/var/tmp"))
        fresh = "# fresh" in (script or "")
        for name in ("tmp", "out", "ws", "home/.ssh", "ws/sub/deep", "ws/x"):
            os.makedirs(os.path.join(self.base, name), exist_ok=True)
        if not fresh:
            for name in (".codex", ".aws"):
                os.mkdir(f"{self.base}/ws/{name}")
            for where in (".", "nested"):
                subprocess.run(["git", "init", "-q", where], cwd=f"{self.base}/ws", check=True)
        if "# link" in (script or "") or ".agents/" in (script or ""):
            os.symlink("sub", f"{self.base}/ws/.agents")
        for name in ("out/file", "home/.ssh/id", "ws/sub/file", "ws/sub/key.pem", "ws/sub/deep/file"):
            with open(os.path.join(self.base, name), "w", encoding="utf-8") as f:
                f.write("words\n")
        self.before = self.listing()

    def listing(self):
        return sorted(os.path.join(d, n) for d, dirs, files in os.walk(f"{self.base}/ws")
                      for n in dirs + files)

    def fill(self, text):
        return (text.replace("@pid", str(os.getpid())).replace("@host", os.uname().nodename)
                .replace("@", self.base))

    def run(self, program, what, script):
        text = what if isinstance(what, str) else \
            json.dumps(what if isinstance(what, dict) else profile(*what))
        words = [program, "--sandbox-policy-cwd", f"{self.base}/ws", "--permission-profile",
                 self.fill(text)]
        words += [w for w in (script or "").split() if w.startswith("--")]
        command = [] if script is None else \
            [script[1:]] if script.startswith("!") else ["sh", "-c", self.fill(script)]
        done = subprocess.run(words + ["--"] + command, cwd=f"{self.base}/ws", timeout=60,
                              capture_output=True, check=False, stdin=subprocess.DEVNULL,
                              env={**os.environ, "TMPDIR": f"{self.base}/tmp",
                                   "HOME": f"{self.base}/home"})
        gone = [e for e in self.before if not os.path.lexists(e)]
        made = [os.path.basename(e) for e in self.listing() if e not in self.before]
        left = [n for n in made if n in (".git", ".codex", ".agents", ".aws")]
        shutil.rmtree(self.base)
        word = "works" if done.returncode == 0 else "fails"
        if (script or "").startswith(("exit", "kill", "!")) or script is None or \
                "landlock" in script:
            word = f"status {done.returncode}"
        return word + (f", leaves {' '.join(left)}" if left else "") + \
            (", late" if "late" in made else "") + \
            (", moved" if gone and "mv" in script else "")


def table(rows):
    lines = ["# Side by side with codex-linux-sandbox", "",
             "The same command line and permission profile on the helper of Codex 0.171.0 and on",
             "ours, entered by that name. Made and checked by `tests/peers/test_codex.py`. The rows",
             "that need Windows or the managed proxy are not here: ours refuses the proxy's options",
             "by name.", "", "| row | what is tried | theirs | ours | why ours |", "| - | - | - | - | - |"]
    for name, what, theirs, ours, why in rows:
        lines.append(f"| {name} | {what} | {theirs} | {ours} | "
                     f"{'the same' if theirs == ours else why} |")
    same = sum(theirs == ours for _, _, theirs, ours, _ in rows)
    lines += ["", f"{same} of {len(rows)} rows agree."]
    return "\n".join(lines) + "\n"


def main():
    real = real_program()
    bad, rows = 0, []
    with tempfile.TemporaryDirectory() as names:
        programs = []
        for number, target in enumerate((real, os.path.abspath(sys.argv[1]))):
            os.mkdir(f"{names}/{number}")
            programs.append(f"{names}/{number}/codex-linux-sandbox")
            os.symlink(target, programs[-1])
        for name, what, policy, script, why in CASES:
            theirs, ours = (World(script).run(p, policy, script) for p in programs)
            rows.append((name, what, theirs, ours, why))
            if (theirs != ours) != (why is not None):
                bad += 1
                print(f"FAIL {name} {what}: theirs {theirs!r}, ours {ours!r}, reason {why!r}")
    text = table(rows)
    if "--write" in sys.argv:
        with open(TABLE, "w", encoding="utf-8") as f:
            f.write(text)
    else:
        with open(TABLE, encoding="utf-8") as f:
            if f.read() != text:
                bad += 1
                print("FAIL docs/peers-codex.md is not what was seen; make it with --write")
    print(f"codespace-tests: {len(rows) + 1 - bad} passed, {bad} failed, 0 skipped")
    sys.exit(bad != 0)


if __name__ == "__main__":
    main()
