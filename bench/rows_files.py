"""Rows about files: patches, find, search and the ledger; run.py reads ROWS.

A patch of these rows adds a line behind one that stays, so the same call can be made again and
again; each turn starts with a fresh file. The tree of find and search has 100,000 small files in
1,000 directories and is made once.
"""

import array
import json
import os
import random
import shutil
import subprocess
import time

import run as bench

MANY = 1000
FOLDERS, IN_FOLDER = 1000, 100
ENDINGS = ("c", "c", "c", "c", "h", "h", "h", "py", "md", "json")
WORDS = "int main void return struct if else for while static const char value index".split()
NEEDLE = "needle_in_the_hay"


# ---- places ----


def fresh(setting, name):
    path = os.path.join(setting.ws, name)
    shutil.rmtree(path, ignore_errors=True)
    os.makedirs(path)
    return path


def ten_kib(setting):
    """A directory with one file of 10 KiB whose first line is an anchor."""
    folder = fresh(setting, "one")
    with open(os.path.join(folder, "f.txt"), "w") as f:
        f.write("anchor line\n")
        f.writelines("    value[%07d] = \"text\"; /* x */\n" % i for i in range(10240 // 35))
    return folder


def serve(setting, folder, *more):
    return [setting.options.server, *more, "--workspace", "ws=" + folder]


def tree(setting):
    """The large tree, made once a run."""
    root = os.path.join(setting.scratch, "tree")
    if os.path.exists(root):
        return root
    rng = random.Random(1)
    for folder in range(FOLDERS):
        path = os.path.join(root, "mod%02d" % (folder // 50), "part%02d" % (folder % 50), "src")
        os.makedirs(path)
        for i in range(IN_FOLDER):
            name = "file_%03d.%s" % (i, ENDINGS[i % 10])
            with open(os.path.join(path, name), "w") as f:
                f.writelines(" ".join(rng.choices(WORDS, k=8)) + "\n" for _ in range(12))
                if i == 7 and folder % 10 == 0:
                    f.write("x = %s;\n" % NEEDLE)
    return root


def program(*names):
    for name in names:
        found = shutil.which(name, path=bench.PATH)
        if found:
            return found
    raise bench.Missing("not installed: " + " or ".join(names))


# ---- a line in a file ----


def floor_rewrite(setting, runs, *more):
    folder = ten_kib(setting)
    _, ns = setting.run("floor-files", ["rewrite", "--runs", str(runs), *more,
                                        os.path.join(folder, "f.txt")])
    return {"ns": ns}


def our_patch(**more):
    edit = {"path": "f.txt", "old": "anchor line\n", "new": "anchor line\none line\n"}
    return bench.params("apply_patch", workspace_id="ws", edits=[edit], **more)


def our_v4a(**more):
    text = "*** Begin Patch\n*** Update File: f.txt\n@@\n anchor line\n+one line\n*** End Patch\n"
    return bench.params("apply_patch", workspace_id="ws", patch=text, **more)


def ours_once(setting, runs, call, *more):
    return bench.latency(setting, serve(setting, ten_kib(setting), *more), call, runs,
                         "--expect", "applied")


def filesystem_edit(setting, runs):
    path = os.path.join(ten_kib(setting), "f.txt")
    call = bench.params("edit_file", path=path, edits=[
        {"oldText": "anchor line\n", "newText": "anchor line\none line\n"}])
    return bench.latency(setting, setting.filesystem(), call, runs)


def commander_edit(setting, runs):
    path = os.path.join(ten_kib(setting), "f.txt")
    call = bench.params("edit_block", file_path=path, old_string="anchor line\n",
                        new_string="anchor line\none line\n")
    return bench.latency(setting, setting.commander(), call, runs)


def row_line(s, f):
    return "one-line patch of a 10 KiB file, on the disk when it is answered", [
        ("read, write, fsync, rename, fsync (floor)", lambda: floor_rewrite(s, 30 * f)),
        ("codespace-mcp, edits", lambda: ours_once(s, 30 * f, our_patch())),
        ("codespace-mcp, V4A", lambda: ours_once(s, 30 * f, our_v4a())),
        ("server-filesystem, edit_file (no fsync)", lambda: filesystem_edit(s, 15 * f)),
        ("desktop-commander, edit_block (no fsync)", lambda: commander_edit(s, 15 * f)),
    ]


def row_line_lax(s, f):
    return "the same, not waiting for the disk (durable: false)", [
        ("read, write, rename (floor)", lambda: floor_rewrite(s, 100 * f, "--no-sync")),
        ("codespace-mcp, edits", lambda: ours_once(s, 100 * f, our_patch(durable=False))),
        ("server-filesystem, edit_file", lambda: filesystem_edit(s, 15 * f)),
        ("desktop-commander, edit_block", lambda: commander_edit(s, 15 * f)),
    ]


def row_ledger(s, f):
    def with_file():
        ledger = os.path.join(fresh(s, "ledger"), "l.db")
        folder = ten_kib(s)
        return bench.latency(s, serve(s, folder, "--operations-db", ledger), our_patch(), 30 * f,
                             "--expect", "applied")

    def record():
        _, ns = s.run("floor-files", ["record", "--runs", str(30 * f),
                                      os.path.join(fresh(s, "floor-db"), "l.db")])
        return {"ns": ns}

    def both():
        """What a patch that is recorded before it is written has to sync, without a second
        thread."""
        pairs = zip(floor_rewrite(s, 30 * f)["ns"], record()["ns"])
        return {"ns": array.array("Q", (a + b for a, b in pairs))}

    return "one-line patch with a ledger on the disk", [
        ("one SQLite insert with fsync (floor)", record),
        ("rewrite and insert, one after the other", both),
        ("codespace-mcp, ledger in a file", with_file),
        ("codespace-mcp, ledger in memory", lambda: ours_once(s, 30 * f, our_patch())),
    ]


IN_FLIGHT = 8


def workspaces(setting, count, files):
    """`count` workspaces with so many files each: their options, and a patch of each file."""
    options, calls = [], []
    for w in range(count):
        folder = fresh(setting, "many-%d" % w)
        options += ["--workspace", "w%d=%s" % (w, folder)]
        for i in range(files):
            name = "f%d.txt" % i
            shutil.copy(os.path.join(ten_kib(setting), "f.txt"), os.path.join(folder, name))
            edit = {"path": name, "old": "anchor line\n", "new": "anchor line\none line\n"}
            calls.append(bench.params("apply_patch", workspace_id="w%d" % w, edits=[edit]))
    return options, calls


def row_in_flight(s, f):
    """Patches a second when nobody waits for one before sending the next."""
    def ours(count, files):
        options, calls = workspaces(s, count, files)
        ledger = os.path.join(fresh(s, "ledger"), "l.db")
        more = [word for call in calls[1:] for word in ("--params", call)]
        return bench.rate(s, [s.options.server, *options, "--operations-db", ledger], calls[0],
                          240 * f, IN_FLIGHT, "--expect", "applied", *more)

    def one_by_one(took, runs):
        _, ns = took(runs)
        return {"rate": len(ns) / (sum(ns) / 1e9)}

    def record(runs):
        return s.run("floor-files", ["record", "--runs", str(runs),
                                     os.path.join(fresh(s, "floor-db"), "l.db")])

    def rewrite(runs):
        path = os.path.join(ten_kib(s), "f.txt")
        return s.run("floor-files", ["rewrite", "--runs", str(runs), path])

    return "one-line patches with a ledger on the disk, %d in flight" % IN_FLIGHT, [
        ("SQLite inserts with fsync, one by one (floor)", lambda: one_by_one(record, 120 * f)),
        ("rewrites with fsync, one by one", lambda: one_by_one(rewrite, 60 * f)),
        ("codespace-mcp, %d workspaces" % IN_FLIGHT, lambda: ours(IN_FLIGHT, 1)),
        ("codespace-mcp, %d files of one workspace" % IN_FLIGHT, lambda: ours(1, IN_FLIGHT)),
    ]


# ---- a patch of 1,000 files: there and back again ----


class Many:
    """1,000 files and a unified diff that changes a line of each, and its reverse.

    All contenders use the same folder: ext4 passes over the inodes of files that were removed in
    the last minutes when it makes a new one, so a folder that was used less would be quicker.
    """

    def __init__(self, setting):
        self.folder = os.path.join(setting.ws, "many")
        if not os.path.exists(self.folder):
            self.make()
        there, back = [], []
        for i in range(MANY):
            name, lines = self.file(i)
            head = "diff --git a/%s b/%s\n--- a/%s\n+++ b/%s\n@@ -19,3 +19,3 @@\n" % ((name,) * 4)
            for text, old, new in ((there, "int value_%d_19;\n" % i, "int changed_%d;\n" % i),
                                   (back, "int changed_%d;\n" % i, "int value_%d_19;\n" % i)):
                text.append("%s %s-%s+%s %s" % (head, lines[18], old, new, lines[20]))
        self.texts = ("".join(there), "".join(back))

    @staticmethod
    def file(i):
        return "d%02d/f%03d.c" % (i // 50, i), ["int value_%d_%d;\n" % (i, k) for k in range(40)]

    def make(self):
        for i in range(MANY):
            name, lines = self.file(i)
            path = os.path.join(self.folder, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w") as f:
                f.writelines(lines)

    def time(self, apply, runs):
        """`runs` is even, so the next one finds the files as they were."""
        ns = array.array("Q")
        try:
            for i in range(runs):
                start = time.perf_counter_ns()
                apply(self.texts[i % 2])
                ns.append(time.perf_counter_ns() - start)
        except BaseException:
            shutil.rmtree(self.folder)
            raise
        return {"ns": ns}


def many_by_program(setting, runs, argv):
    many = Many(setting)

    def apply(text):
        done = subprocess.run(argv, input=text.encode(), cwd=many.folder, env=setting.env,
                              capture_output=True)
        if done.returncode:
            raise bench.Missing("failed: " + done.stderr.decode("utf-8", "replace")[-100:])

    return many.time(apply, runs)


def many_by_server(setting, runs, **more):
    many = Many(setting)
    server = subprocess.Popen(serve(setting, many.folder), env=setting.env, stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)

    def ask(method, params):
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        server.stdin.write(json.dumps(message).encode() + b"\n")
        server.stdin.flush()
        return server.stdout.readline()

    def apply(text):
        answer = ask("tools/call", {"name": "apply_patch", "arguments": {
            "workspace_id": "ws", "patch": text, **more}})
        if b'"applied"' not in answer:
            raise bench.Missing("failed: " + answer[:100].decode("utf-8", "replace"))

    try:
        ask("initialize", {"protocolVersion": "2025-06-18", "capabilities": {},
                           "clientInfo": {"name": "bench", "version": "1"}})
        server.stdin.write(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
        return many.time(apply, runs)
    finally:
        server.stdin.close()
        server.wait(bench.TURN_S)
        server.stdout.close()


def row_many(s, f):
    ours = os.path.join(os.path.dirname(s.options.tools), "src/patch/codespace-patch")
    return "unified diff of 1,000 files", [
        ("git apply (no fsync)", lambda: many_by_program(s, 2 * f, [program("git"), "apply"])),
        ("codespace-patch --no-sync", lambda: many_by_program(s, 2 * f, [ours, "--no-sync"])),
        ("codespace-mcp, durable: false", lambda: many_by_server(s, 2 * f, durable=False)),
        ("codespace-mcp, durable", lambda: many_by_server(s, 2 * f)),
    ]


# ---- 100,000 files ----


def in_tree(setting, argv, runs):
    here = os.getcwd()
    os.chdir(tree(setting))
    try:
        command = [setting.tool("spawn"), "--runs", str(runs), "--samples",
                   os.path.join(setting.scratch, "samples"), "--", *argv]
        subprocess.run(command, env=setting.env, check=True, stdin=subprocess.DEVNULL,
                       capture_output=True, timeout=bench.TURN_S)
    except subprocess.CalledProcessError as error:
        raise bench.Missing("failed: " + error.stderr.decode("utf-8", "replace")[-100:])
    finally:
        os.chdir(here)
    values = array.array("Q")
    with open(os.path.join(setting.scratch, "samples"), "rb") as f:
        values.frombytes(f.read())
    os.unlink(os.path.join(setting.scratch, "samples"))
    return {"ns": values}


def row_find(s, f):
    def ours(**more):
        call = bench.params("find", workspace_id="ws", glob="**/*.c", **more)
        return bench.latency(s, serve(s, tree(s)), call, 3 * f, "--warm", "1")

    def filesystem():
        server = [bench.node(),
                  bench.peer("@modelcontextprotocol/server-filesystem/dist/index.js"), tree(s)]
        call = bench.params("search_files", path=tree(s), pattern="**/*.c")
        return bench.latency(s, server, call, f, "--warm", "1")

    files = ["--files", "--hidden", "--no-ignore", "-g", "**/*.c"]
    return "find **/*.c over 100,000 files", [
        ("rg --files (floor)", lambda: in_tree(s, [program("rg"), *files], 3 * f)),
        ("fd", lambda: in_tree(s, [program("fd", "fdfind"), "-HI", "-g", "**/*.c"], 3 * f)),
        ("codespace-mcp, find, a page", ours),
        ("codespace-mcp, find, 10,000 paths", lambda: ours(limit=10000)),
        ("server-filesystem, search_files", filesystem),
    ]


def row_search(s, f):
    def ours():
        call = bench.params("search", workspace_id="ws", pattern=NEEDLE)
        return bench.latency(s, serve(s, tree(s)), call, 3 * f, "--warm", "2", "--expect",
                             NEEDLE)

    def commander():
        call = bench.params("start_search", path=tree(s), pattern=NEEDLE, searchType="content")
        return bench.latency(s, s.commander(), call, f, "--warm", "1")

    rg = lambda *more: in_tree(s, [program("rg"), *more, NEEDLE, "./"], 3 * f)  # noqa: E731
    return "search for a word over 100,000 files, 100 matches", [
        ("rg (floor)", rg),
        ("rg, the same question", lambda: rg(
            "--hidden", "--no-ignore", "--binary", "--max-filesize=64M", "-g", "!.git")),
        ("codespace-mcp, search", ours),
        ("desktop-commander, start_search (first results)", commander),
    ]


# name, row, rounds
ROWS = (
    ("patch-line", row_line, 4),
    ("patch-line-lax", row_line_lax, 3),
    ("patch-ledger", row_ledger, 4),
    ("patch-ledger-depth8", row_in_flight, 4),
    ("patch-1000", row_many, 6),
    ("find-100k", row_find, 3),
    ("search-100k", row_search, 3),
)
