#!/usr/bin/env python3
"""The same patches on Codex's own apply_patch and on ours, entered by that name.

Run as: test_apply_patch.py PROGRAM [--write]. Each row of CASES runs on both, as an argument and on
standard input, in a directory of its own; exit status and what became of the files are compared to
the byte. Where the two differ the row says why, and docs/peers-apply-patch.md is the table (--write
makes it, without it is compared). The program comes from npm as in test_codex.py.
"""

import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import test_codex  # noqa: E402

TABLE = os.path.join(test_codex.HERE, "../../docs/peers-apply-patch.md")

FILES = {
    "f": b"a\nb\nc\n",
    "gone": b"x\n",
    "d/g": b"one\ntwo\n",
    "twice": b"one\nx\ntwo\nx\nthree\n",
    "dash": "a \u2013 b\nz\n".encode(),
    "crlf": b"a\r\nb\r\nc\r\n",
    "open": b"a\nb",
    "gap": b"a\n\nb\n",
    "latin": b"caf\xe9\nb\n",
    "run": b"b\n",
}
CHANGE_F = "*** Update File: f\n@@\n-b\n+B\n"

NO_OVERWRITE = "a file that is there is not lost by a patch that says it is new; send an update"
OWN_ROOT = "nothing outside the working directory is written"
NO_LINKS = "no link is followed, so nobody can aim a patch elsewhere"
WHOLE = "all of a patch or nothing"
ONLY_ASKED = "only the bytes asked for change: no newline is added at the end"
BYTES = "a file is bytes; those that are not UTF-8 stay as they are"
PLACED = "an insertion goes where its @@ line says, not to the end of the file"
RENAME = "a move alone is a move"
GIT = "what makes other programs run code is not written"
ENVIRONMENT = "there is one place to patch, so no other can be named"

# name, patch body (or "=" and the whole text), why it differs
CASES = (
    ("update", CHANGE_F, None),
    ("update without @@", "*** Update File: f\n-b\n+B\n", None),
    ("two hunks", "*** Update File: f\n@@\n-a\n+A\n@@\n-c\n+C\n", None),
    ("hunks in the wrong order", "*** Update File: f\n@@\n-c\n+C\n@@\n-a\n+A\n", None),
    ("one file twice", "*** Update File: f\n@@\n-a\n+A\n*** Update File: f\n@@\n-A\n+AA\n", None),
    ("all lines removed", "*** Update File: f\n@@\n-a\n-b\n-c\n", None),
    ("add", "*** Add File: n/new\n+hello\n", None),
    ("add an empty file", "*** Add File: e\n", None),
    ("add over a file", "*** Add File: f\n+hello\n", NO_OVERWRITE),
    ("add over a directory", "*** Add File: d\n+x\n", None),
    ("add below a file", "*** Add File: f/x\n+x\n", None),
    ("delete", "*** Delete File: gone\n", None),
    ("delete what is not there", "*** Delete File: none\n", None),
    ("delete a directory", "*** Delete File: d\n", None),
    ("move and change", "*** Update File: f\n*** Move to: x/y\n@@\n-a\n+A\n", None),
    ("move over a file", "*** Update File: f\n*** Move to: gone\n@@\n-a\n+A\n", NO_OVERWRITE),
    ("move without a change", "*** Update File: f\n*** Move to: x/y\n", RENAME),
    ("old lines that are not there", "*** Update File: f\n@@\n-zzz\n+A\n", None),
    ("the second section fails", "*** Add File: new\n+x\n*** Update File: f\n@@\n-zzz\n+A\n", WHOLE),
    ("a file that is not there", "*** Update File: none\n@@\n-zzz\n+A\n", None),
    ("two places fit exactly: the first", "*** Update File: twice\n@@\n-x\n+A\n", None),
    ("an anchor", "*** Update File: twice\n@@ two\n-x\n+A\n", None),
    ("an anchor that is not there", "*** Update File: twice\n@@ nine\n-x\n+A\n", None),
    ("End of File", "*** Update File: twice\n@@\n-three\n+3\n*** End of File\n", None),
    ("End of File, elsewhere", "*** Update File: twice\n@@\n-x\n+A\n*** End of File\n", None),
    ("blanks at the end of a line", "*** Update File: f\n@@\n-b   \n+B\n", None),
    ("another indentation", "*** Update File: f\n@@\n-   b\n+B\n", None),
    ("a dash that looks alike", "*** Update File: dash\n@@\n-a - b\n+c\n", None),
    ("an empty line as context", "*** Update File: gap\n@@\n a\n\n-b\n+B\n", None),
    ("insertion without a place", "*** Update File: f\n@@\n+z\n", None),
    ("insertion with an anchor", "*** Update File: f\n@@ b\n+z\n", PLACED),
    ("CRLF file, LF patch", "*** Update File: crlf\n@@\n a\n-b\n+B\n", None),
    ("CRLF patch, LF file", "=" + ("*** Begin Patch\n" + CHANGE_F + "*** End Patch\n")
     .replace("\n", "\r\n"), None),
    ("no newline at the end", "*** Update File: open\n@@\n a\n-b\n+B\n", ONLY_ASKED),
    ("bytes that are not UTF-8", "*** Update File: latin\n@@\n-b\n+B\n", BYTES),
    ("an executable file", "*** Update File: run\n@@\n-b\n+B\n", None),
    ("an absolute path below", "*** Update File: @/ws/f\n@@\n-b\n+B\n", None),
    ("an absolute path outside", "*** Add File: @/out/x\n+B\n", OWN_ROOT),
    ("a path with ..", "*** Add File: ../out/x\n+B\n", OWN_ROOT),
    ("a symbolic link", "*** Update File: link\n@@\n-b\n+B\n", NO_LINKS),
    (".git", "*** Add File: .git/hooks/x\n+x\n", GIT),
    ("an environment", "*** Environment ID: x\n" + CHANGE_F, ENVIRONMENT),
    ("no sections", "", None),
    ("no text", "=", None),
    ("no patch", "=hello\n", None),
    ("no End Patch", "=*** Begin Patch\n" + CHANGE_F, None),
    ("blanks before it", "=\n  *** Begin Patch\n" + CHANGE_F + "*** End Patch\n", None),
    ("a here-document", "=<<'EOF'\n*** Begin Patch\n" + CHANGE_F + "*** End Patch\nEOF\n", None),
)


class World:
    """A directory with the files, one program, one patch, and what became of it."""

    def __init__(self, top):
        self.top = top
        self.ws = os.path.join(top, "ws")
        for name, content in FILES.items():
            path = os.path.join(self.ws, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as f:
                f.write(content)
        os.makedirs(os.path.join(top, "out"))
        os.chmod(os.path.join(self.ws, "run"), 0o755)
        os.symlink("f", os.path.join(self.ws, "link"))

    def tree(self):
        found = {}
        for folder, folders, files in os.walk(self.top):
            for name in files + folders:
                path = os.path.join(folder, name)
                seen = os.lstat(path).st_mode
                if os.path.isfile(path) and not os.path.islink(path):
                    with open(path, "rb") as f:
                        seen = (seen, f.read())
                found[os.path.relpath(path, self.top)] = seen
        return found

    def run(self, program, body, as_argument):
        text = body[1:] if body[:1] == "=" else f"*** Begin Patch\n{body}*** End Patch\n"
        text = text.replace("@/", self.top + "/")
        done = subprocess.run(
            [program, *([text] if as_argument else [])], cwd=self.ws, capture_output=True,
            input=b"" if as_argument else text.encode(), timeout=60, check=False)
        return done.returncode, self.tree()


def try_on(program, body, as_argument):
    with tempfile.TemporaryDirectory() as top:
        return World(os.path.realpath(top)).run(program, body, as_argument)


def word(outcome, before):
    status, tree = outcome
    return ("works" if status == 0 else f"status {status}") + (
        "" if (tree != before) == (status == 0) else ", changed" if tree != before else ", unchanged")


def table(rows):
    lines = ["# Side by side with Codex's apply_patch", "",
             "The same patches on the `apply_patch` of Codex 0.171.0 and on `codespace-patch` entered",
             "by that name, as an argument and on standard input. Exit status and every byte of the",
             "files are compared. Made and checked by `tests/peers/test_apply_patch.py`.", "",
             "| patch | theirs | ours | why ours |", "| - | - | - | - |"]
    lines += [f"| {name} | {theirs} | {ours} | {why or 'the same'} |"
              for name, theirs, ours, why in rows]
    same = sum(why is None for *_, why in rows)
    lines += ["", f"{same} of {len(rows)} rows agree."]
    return "\n".join(lines) + "\n"


def main():
    real = test_codex.real_program()
    bad, rows = 0, []
    with tempfile.TemporaryDirectory() as names:
        programs = []
        for number, target in enumerate((real, os.path.abspath(sys.argv[1]))):
            os.mkdir(f"{names}/{number}")
            programs.append(f"{names}/{number}/apply_patch")
            os.symlink(target, programs[-1])
        with tempfile.TemporaryDirectory() as top:
            before = World(top).tree()
        for name, body, why in CASES:
            for as_argument in (True, False):
                theirs, ours = (try_on(p, body, as_argument) for p in programs)
                if (theirs != ours) != (why is not None):
                    bad += 1
                    print(f"FAIL {name}: theirs {theirs!r}, ours {ours!r}, reason {why!r}")
            rows.append((name, word(theirs, before), word(ours, before), why))
    text = table(rows)
    if "--write" in sys.argv:
        with open(TABLE, "w", encoding="utf-8") as f:
            f.write(text)
    else:
        with open(TABLE, encoding="utf-8") as f:
            if f.read() != text:
                bad += 1
                print("FAIL docs/peers-apply-patch.md is not what was seen; make it with --write")
    print(f"codespace-tests: {len(rows) + 1 - bad} passed, {bad} failed, 0 skipped")
    sys.exit(bad != 0)


if __name__ == "__main__":
    main()
