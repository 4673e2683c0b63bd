"""What the comparisons share: the driver as a process, trees as dictionaries, random texts."""
import os
import pathlib
import random
import shutil
import subprocess
import tempfile


class Driver:
    """tests/oracle/patch_driver, kept running."""

    def __init__(self, program):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def apply(self, root, patch_file, options=""):
        """(status or error name, "exact", "fuzzy" or "-", message)"""
        self.process.stdin.write(f"{root}\t{patch_file}\t{options}\n".encode())
        self.process.stdin.flush()
        line = self.process.stdout.readline().decode("utf-8", "replace")
        if not line.endswith("\n"):
            raise AssertionError(f"the driver ended: {self.process.wait()}")
        status, fuzzy, message = line.rstrip("\n").split(" ", 2)
        return status, fuzzy, message

    def close(self):
        self.process.stdin.close()
        return self.process.wait()


def scratch():
    """A directory where fsync costs little; removed by the caller."""
    parent = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    return pathlib.Path(tempfile.mkdtemp(prefix="cs-oracle-", dir=parent))


def write_tree(root, tree):
    """tree: name -> (bytes, executable)"""
    if root.exists():
        shutil.rmtree(root)
    root.mkdir(parents=True)
    for name, (content, executable) in tree.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        path.chmod(0o755 if executable else 0o644)


def read_tree(root):
    return {str(p.relative_to(root)): (p.read_bytes(), bool(p.stat().st_mode & 0o100))
            for p in sorted(root.rglob("*")) if p.is_file() and ".git" not in p.parts}


LINES = [b"a", b"b", b"", b"  x", b"\tif (a) {", b"}", b"\xff\xfe", b"caf\xc3\xa9", b"- x", b"+ y",
         b"-- ", b"@@ -1 +1 @@", b"--- z", b"+++ z", b"\\ No newline", b"diff --git a/x b/x", b"$&"]


def random_content(rng, most=40):
    unique = rng.random() < 0.5
    ending = rng.choice([b"\n", b"\n", b"\n", b"\r\n"])
    lines = []
    for i in range(rng.randrange(most)):
        text = rng.choice(LINES)
        if unique:
            text += b" %d.%d" % (i, rng.randrange(1000))
        lines.append(text + (ending if rng.random() < 0.95 else b"\n"))
    content = b"".join(lines)
    if content and rng.random() < 0.2:
        content = content.rstrip(b"\r\n")
    return content


def mutate(rng, content):
    """Some lines removed, changed, inserted."""
    lines = content.splitlines(keepends=True) if b"\r" not in content.replace(b"\r\n", b"") else [content]
    for _ in range(rng.randrange(1, 5)):
        at = rng.randrange(len(lines) + 1)
        kind = rng.randrange(3)
        if kind == 0 and at < len(lines):
            del lines[at]
        elif kind == 1 and at < len(lines):
            lines[at] = rng.choice(LINES) + b" new\n"
        else:
            lines.insert(at, rng.choice(LINES) + b" %d\n" % rng.randrange(100))
    content = b"".join(lines)
    return content.rstrip(b"\n") if rng.random() < 0.05 else content
