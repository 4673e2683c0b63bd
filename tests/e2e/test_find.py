"""find in all its forms: globs, kinds, details, depth, ignore files, pages that know their listing,
and walks that hold nobody up."""

import json
import os

from support import FileCase


class FindCase(FileCase):
    def find(self, **arguments):
        return self.client.call("find", workspace_id="ws", **arguments)

    def paths(self, **arguments):
        return self.find(**arguments)["paths"]


class Forms(FindCase):
    def test_globs(self):
        for name in ("a.c", "b.cc", "src/a.c", "src/x/y/b.c", "src/x/test_1.py", "doc/[a].md"):
            self.write(name, "")
        for glob, expected in (
            ("*.c", ["a.c", "src/a.c", "src/x/y/b.c"]),
            ("src/**/*.c", ["src/a.c", "src/x/y/b.c"]),
            ("src/*.c", ["src/a.c"]),
            ("?.c", ["a.c", "src/a.c", "src/x/y/b.c"]),
            ("[!a].c", ["src/x/y/b.c"]),
            ("*.{c,cc}", ["a.c", "b.cc", "src/a.c", "src/x/y/b.c"]),
            ("**/test_*.py", ["src/x/test_1.py"]),
            ("doc/\\[a\\].md", ["doc/[a].md"]),
            ("SRC/*.C", []),
        ):
            with self.subTest(glob=glob):
                self.assertEqual(self.paths(glob=glob), expected)
        self.assertEqual(self.paths(glob="SRC/*.C", ignore_case=True), ["src/a.c"])

    def test_a_glob_that_is_none(self):
        self.fails("INVALID_ARGUMENT", self.client, "find", workspace_id="ws", glob="[")

    def test_depth(self):
        for name in ("a", "d/b", "d/e/c"):
            self.write(name, "")
        self.assertEqual(self.paths(depth=1), ["a"])
        self.assertEqual(self.paths(depth=2), ["a", "d/b"])
        self.assertEqual(self.paths(depth=1, kinds=["directory", "file"]), ["a", "d/"])

    def test_kinds(self):
        self.write("d/f", "")
        os.symlink("d", self.path("l"))
        os.mkfifo(self.path("p"))
        for kinds, expected in (
            ([], ["d/f"]),
            (["file"], ["d/f"]),
            (["directory"], ["d/"]),
            (["link"], ["l"]),
            (["other"], ["p"]),
            (["file", "directory", "link", "other"], ["d/", "d/f", "l", "p"]),
        ):
            with self.subTest(kinds=kinds):
                self.assertEqual(self.paths(kinds=kinds), expected)
        error = self.fails(
            "INVALID_ARGUMENT", self.client, "find", workspace_id="ws", kinds=["socket"]
        )
        self.assertIn("directory", error.message)

    def test_details(self):
        self.write("run.sh", "12345", mode=0o755)
        os.utime(self.path("run.sh"), (1700000000, 1700000000))
        os.symlink("nowhere", self.path("l"))
        answer = self.find(details=True, kinds=["file", "link"])
        self.assertEqual(answer["paths"], [])
        link, script = answer["entries"]
        self.assertEqual(
            script,
            {"path": "run.sh", "kind": "file", "size": 5, "mode": "0755",
             "modified": "2023-11-14T22:13:20Z"},
        )
        self.assertEqual((link["path"], link["kind"]), ("l", "link"))

    def test_ignore_files(self):
        for name in ("keep.c", "out/x.o", "sub/y.o", "sub/keep.o"):
            self.write(name, "")
        self.write(".gitignore", "*.o\nout/\n")
        self.write("sub/.gitignore", "!keep.o\n")
        everything = [".gitignore", "keep.c", "out/x.o", "sub/.gitignore", "sub/keep.o", "sub/y.o"]
        self.assertEqual(self.paths(), everything)
        answer = self.find(ignore_files=True)
        self.assertEqual(
            answer["paths"], [".gitignore", "keep.c", "sub/.gitignore", "sub/keep.o"]
        )
        self.assertEqual(answer["ignored"], 2)

    def test_names_that_are_not_utf8(self):
        with open(os.path.join(os.fsencode(self.ws), b"caf\xe9"), "w"):
            pass
        answer = self.find()
        self.assertEqual((answer["paths"], answer["lossy_paths"]), (["caf\ufffd"], 1))
        entry = self.find(details=True)["entries"][0]
        self.assertEqual(entry["path_base64"], "Y2Fm6Q==")


class Pages(FindCase):
    def setUp(self):
        super().setUp()
        for i in range(3000):
            self.write("directory/with-a-long-name/file-%05d.txt" % i, "")

    def test_an_answer_has_a_budget(self):
        """G6: without a limit a page stays small, and says where to go on."""
        got, offset, pages = [], 0, 0
        while True:
            page = self.find(offset=offset)
            self.assertLess(sum(len(p) + 3 for p in page["paths"]), 64 << 10)
            self.assertEqual(page["total"], 3000)
            got += page["paths"]
            pages += 1
            if not page["truncated"]:
                break
            offset = page["next_offset"]
        self.assertEqual(len(set(got)), 3000)
        self.assertEqual(got, sorted(got))
        self.assertGreater(pages, 1)
        self.assertEqual(self.find(limit=10000)["paths"], got)

    def test_a_listing_that_changed(self):
        page = self.find(limit=10)
        listing = page["listing_version"]
        again = self.find(limit=10, offset=10, listing_version=listing)
        self.assertEqual(again["listing_version"], listing)
        self.write("new", "")
        error = self.fails(
            "VERSION_CONFLICT", self.client, "find", workspace_id="ws", offset=20,
            listing_version=listing,
        )
        self.assertIn("offset 0", error.message)


class Walks(FindCase):
    def test_many_walks_hold_nobody_up(self):
        """More walks than the pool has threads, and a patch and a large read between them."""
        for i in range(200):
            for k in range(50):
                self.write("d%03d/f%02d" % (i, k), "")
        self.write("big", "x" * 200000)
        ids = [self.client.begin_call("find", workspace_id="ws", limit=1) for _ in range(24)]
        self.assertEqual(self.read("big")["size"], 200000)
        self.patch("*** Add File: new", "+x")
        for ident in ids:
            self.assertEqual(self.client.finish_call(ident)["incomplete"], False)

    def test_a_cancelled_walk_is_not_answered(self):
        for i in range(100):
            for k in range(50):
                self.write("d%03d/f%02d" % (i, k), "")
        # In one piece, so that no walk can end before the server sees that it is given up.
        ids = ["walk%d" % i for i in range(8)]
        lines = [{"method": "tools/call", "id": i, "params": {
            "name": "find", "arguments": {"workspace_id": "ws"}}} for i in ids]
        lines += [{"method": "notifications/cancelled", "params": {"requestId": i}} for i in ids]
        self.client.send_bytes(b"".join(
            json.dumps({"jsonrpc": "2.0", **line}).encode() + b"\n" for line in lines))
        self.assertEqual(self.paths(glob="d000/f00"), ["d000/f00"])
        self.assertLess(sum(self.client.answered(i) for i in ids), 8)
