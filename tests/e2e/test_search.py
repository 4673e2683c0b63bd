"""search: contents by regular expression, through ripgrep inside the workspace's sandbox. Nothing is
left out silently (F17), odd names and lines are told (F18), and it sees what the file tools see
(A27)."""

import base64
import os
import stat

from support import Case, needs_sandbox, own_children, poll, processes

NOWHERE = {"CODESPACE_LINUX_SANDBOX_BIN": "/nonexistent/helper"}


class SearchCase(Case):
    @needs_sandbox
    def setUp(self):
        super().setUp()
        self.client = None

    def serve(self, **keys):
        entry = {"root": self.ws, "profile": "workspace-write", **keys}
        return self.start("--config", self.config({"workspaces": {"ws": entry}}))

    def search(self, pattern, **arguments):
        if self.client is None:
            self.client = self.start()
        return self.client.call("search", workspace_id="ws", pattern=pattern, **arguments)

    def hits(self, pattern, **arguments):
        """(path, line, text) of every match of one page."""
        return [
            (f["path"], l.get("line"), l["text"])
            for f in self.search(pattern, **arguments)["files"]
            for l in f["lines"]
            if not l.get("context")
        ]


class Finds(SearchCase):
    def test_lines_with_their_places(self):
        self.write("b/two.c", "int a;\nint needle; // needle\n")
        self.write("a.txt", "needle\n")
        answer = self.search("needle")
        self.assertEqual(
            answer["files"],
            [
                {"path": "a.txt", "lines": [{"line": 1, "column": 1, "text": "needle"}]},
                {
                    "path": "b/two.c",
                    "lines": [
                        {"line": 2, "column": 5, "hits": 2, "text": "int needle; // needle"}
                    ],
                },
            ],
        )
        self.assertEqual((answer["matches"], answer["total"], answer["total_files"]), (2, 2, 2))
        self.assertIs(answer["truncated"], False)
        self.assertIs(answer["incomplete"], False)
        self.assertEqual(answer["skipped"], {})

    def test_nothing(self):
        self.write("a", "text\n")
        answer = self.search("no such thing")
        self.assertEqual((answer["files"], answer["total"]), ([], 0))

    def test_the_language(self):
        self.write("f", "a.c\nabc\nABC\nword words\nx\ny\n")
        for pattern, arguments, lines in (
            ("a.c", {}, [1, 2]),
            ("a.c", {"literal": True}, [1]),
            ("abc", {"case": "ignore"}, [2, 3]),
            ("abc", {"case": "smart"}, [2, 3]),
            ("Abc", {"case": "smart"}, []),
            ("word", {"whole_words": True}, [4]),
            (r"^[xy]$", {}, [5, 6]),
            (r"x\ny", {"multiline": True}, [5]),
            ("-e", {}, []),
            ("--files", {}, []),
        ):
            with self.subTest(pattern=pattern, **arguments):
                self.assertEqual([h[1] for h in self.hits(pattern, **arguments)], lines)

    def test_where(self):
        for name in ("a.c", "a.h", "d/b.c", "d/e/c.c"):
            self.write(name, "needle\n")
        for arguments, paths in (
            ({"path": "d"}, ["d/b.c", "d/e/c.c"]),
            ({"path": "d/e/c.c"}, ["d/e/c.c"]),
            ({"path": "."}, ["a.c", "a.h", "d/b.c", "d/e/c.c"]),
            ({"globs": ["*.c"]}, ["a.c", "d/b.c", "d/e/c.c"]),
            ({"globs": ["*.c", "!d/e/**"]}, ["a.c", "d/b.c"]),
            ({"path": "d", "globs": ["!b.c"]}, ["d/e/c.c"]),
        ):
            with self.subTest(**arguments):
                self.assertEqual([h[0] for h in self.hits("needle", **arguments)], paths)

    def test_context(self):
        self.write("f", "".join("line %d\n" % i for i in range(1, 10)))
        for arguments, lines in (
            ({"context": 1}, [4, 5, 6]),
            ({"before": 2}, [3, 4, 5]),
            ({"after": 2}, [5, 6, 7]),
            ({"context": 1, "after": 0}, [4, 5]),
        ):
            with self.subTest(**arguments):
                got = self.search("line 5", **arguments)["files"][0]["lines"]
                self.assertEqual([l["line"] for l in got], lines)
                self.assertEqual([l["line"] for l in got if not l.get("context")], [5])

    def test_pages(self):
        for i in range(7):
            self.write("f%d" % i, "hit\nno\nhit\n")
        whole = self.hits("hit", limit=100)
        self.assertEqual(len(whole), 14)
        got, offset = [], 0
        while True:
            page = self.search("hit", offset=offset, limit=3)
            self.assertEqual(page["total"], 14)
            got += [(f["path"], l["line"], l["text"]) for f in page["files"] for l in f["lines"]]
            if not page["truncated"]:
                break
            self.assertEqual(page["next_offset"], offset + page["matches"])
            offset = page["next_offset"]
        self.assertEqual(got, whole)

    def test_a_page_has_a_budget(self):
        """F18, G6: 100,000 hits."""
        self.write("many", "a line with a hit in it\n" * 100000)
        page = self.search("hit")
        self.assertEqual(page["total"], 100000)
        self.assertIs(page["truncated"], True)
        self.assertLess(len(str(page)), 100000)
        self.assertGreater(page["matches"], 100)
        again = self.search("hit", offset=page["next_offset"], limit=1)
        self.assertEqual(again["files"][0]["lines"][0]["line"], page["matches"] + 1)


class Told(SearchCase):
    """F17, F18: what was passed over, and what is not shown as it is."""

    def test_hidden_and_ignored_files_are_searched(self):
        for name in (".hidden", ".dir/f", "ignored", "sub/f.o", "plain"):
            self.write(name, "needle\n")
        self.write(".gitignore", "ignored\n*.o\n")
        self.assertEqual(
            [h[0] for h in self.hits("needle")],
            [".dir/f", ".hidden", "ignored", "plain", "sub/f.o"],
        )
        answer = self.search("needle", ignore_files=True)
        self.assertEqual([f["path"] for f in answer["files"]], ["plain"])
        self.assertEqual(answer["skipped"]["ignored"], 2)
        self.assertGreaterEqual(answer["skipped"]["hidden"], 2)

    def test_binary_files(self):
        self.write("bin", b"needle\0more\n")
        self.write("text", b"needle\n")
        answer = self.search("needle")
        self.assertEqual([f["path"] for f in answer["files"]], ["text"])
        self.assertEqual(answer["skipped"], {"binary": 1})
        answer = self.search("needle", binary=True)
        self.assertEqual([f["path"] for f in answer["files"]], ["bin", "text"])

    def test_large_files(self):
        self.write("big", "needle\n" * 1000)
        answer = self.search("needle", max_file_bytes=6999)
        self.assertEqual((answer["files"], answer["skipped"]), ([], {"too_large": 1}))
        self.assertEqual(self.search("needle", max_file_bytes=7000)["total"], 1000)

    def test_files_above_the_limit_of_the_server(self):
        """The first try asks no file for its size. What it finds in a file that is too large is
        not shown, and one that takes long, or holds one line that is too long, is not waited for:
        the answer is the same each time."""
        self.write("a", "needle\n")
        with open(self.path("lines"), "wb") as f:
            f.write((b"x" * 63 + b"\n") * (1 << 20))
            f.write(b"needle\n")
        for name in ("sparse", "one-line"):
            with self.subTest(name=name):
                with open(self.path(name), "wb") as f:
                    f.write(b"needle")
                    f.truncate(64 << 30 if name == "sparse" else 7)
                if name == "one-line":
                    os.unlink(self.path("sparse"))
                    with open(self.path(name), "wb") as f:
                        f.write(b"x" * (65 << 20) + b"needle")
                for _ in range(3):
                    answer = self.search("needle")
                    self.assertEqual([f["path"] for f in answer["files"]], ["a"])
                    self.assertEqual((answer["total"], answer["total_files"]), (1, 1))
                    self.assertEqual(answer["skipped"], {"too_large": 2})
                    self.assertIs(answer["incomplete"], False)

    def test_memory_is_bounded(self):
        """One line is more than ripgrep may hold: what was found before is told, and why there is
        no more."""
        self.client = self.serve(limits={"data": 48 << 20})
        self.write("long", b"x" * (40 << 20) + b"needle\n")
        for _ in range(2):
            answer = self.search("needle")
            self.assertIs(answer["incomplete"], True)
            self.assertIn("limits.data", answer["incomplete_reason"])
        os.unlink(self.path("long"))
        self.write("short", b"needle\n")
        self.assertIs(self.search("needle")["incomplete"], False)

    def test_special_files(self):
        """F15: a FIFO, a socket, a link and a loop of links: no hang, and told."""
        self.write("plain", "needle\n")
        os.mkfifo(self.path("fifo"))
        os.symlink(self.outside_file(), self.path("link"))
        os.symlink(".", self.path("loop"))
        answer = self.search("needle")
        self.assertEqual([f["path"] for f in answer["files"]], ["plain"])
        self.assertGreaterEqual(answer["skipped"]["special"], 2)

    def outside_file(self):
        path = os.path.join(self.dir, "outside")
        with open(path, "w") as f:
            f.write("needle\n")
        return path

    def test_a_file_without_permission(self):
        self.write("plain", "needle\n")
        self.write("shut", "needle\n", mode=0)
        answer = self.search("needle")
        paths = [f["path"] for f in answer["files"]]
        if os.geteuid() != 0:  # root reads it
            self.assertEqual(paths, ["plain"])
            self.assertEqual(answer["skipped"], {"unreadable": 1})
        self.assertIn("plain", paths)

    def test_a_long_line_is_cut_around_its_hit(self):
        self.write("min.js", "x" * (1 << 20) + "needle" + "y" * (1 << 20) + "\n")
        line = self.search("needle")["files"][0]["lines"][0]
        self.assertEqual((line["line"], line["column"]), (1, (1 << 20) + 1))
        self.assertIn("xneedley", line["text"])
        self.assertLessEqual(len(line["text"]), 400)
        self.assertEqual((line["cut_front"], line["cut_back"]), (True, True))

    def test_lines_that_are_not_utf8(self):
        self.write("latin", b"needle caf\xe9\n")
        line = self.search("needle")["files"][0]["lines"][0]
        self.assertEqual(line["text"], "needle caf\ufffd")
        self.assertIs(line["lossy"], True)

    def test_odd_names(self):
        names = [b"new\nline", b'quo"te', b"caf\xe9", b"-dash", b"a:b"]
        for name in names:
            with open(os.path.join(os.fsencode(self.ws), name), "w") as f:
                f.write("needle\n")
        files = self.search("needle")["files"]
        got = [
            base64.b64decode(f["path_base64"]) if "path_base64" in f else f["path"].encode()
            for f in files
        ]
        self.assertEqual(got, sorted(names))

    def test_stores_of_version_control_are_left_out(self):
        self.write(".git/config", "needle\n")
        self.write("sub/.git/config", "needle\n")
        self.assertEqual(self.hits("needle"), [])


class Refused(SearchCase):
    def refusal(self, code, **arguments):
        if self.client is None:
            self.client = self.start()
        return self.fails(code, self.client, "search", workspace_id="ws", **arguments)

    def test_patterns(self):
        error = self.refusal("INVALID_ARGUMENT", pattern="(")
        self.assertIn("regex", error.message)
        self.refusal("INVALID_ARGUMENT", pattern="")
        self.refusal("LIMIT_EXCEEDED", pattern="x" * 5000)
        self.refusal("INVALID_ARGUMENT", pattern="x", globs=["{"])

    def test_numbers(self):
        self.refusal(("OUTPUT_LIMIT", "INVALID_ARGUMENT"), pattern="x", limit=0)
        self.refusal(("OUTPUT_LIMIT", "INVALID_ARGUMENT"), pattern="x", limit=2001)
        self.refusal(("LIMIT_EXCEEDED", "INVALID_ARGUMENT"), pattern="x", context=101)

    def test_paths(self):
        os.symlink("/etc", self.path("link"))
        os.mkfifo(self.path("fifo"))
        for path, code in (
            ("../x", "PATH_ESCAPE"),
            ("/etc", "PATH_ESCAPE"),
            ("link", "SYMLINK_REJECTED"),
            ("link/passwd", "SYMLINK_REJECTED"),
            ("none", "FILE_NOT_FOUND"),
        ):
            with self.subTest(path=path):
                self.refusal(code, pattern="x", path=path)

    def test_workspaces(self):
        client = self.start()
        self.fails("WORKSPACE_NOT_FOUND", client, "search", workspace_id="no", pattern="x")

    def test_without_ripgrep(self):
        """A named error, and what to do."""
        self.write("a", "x\n")
        self.client = self.serve(env={"PATH": "/nonexistent"})
        for _ in range(2):
            error = self.refusal("PROCESS_SPAWN_FAILED", pattern="x")
            self.assertIn("ripgrep", error.message)
            self.assertIn("apt-get install", error.message)


class Walls(SearchCase):
    def test_a_read_only_workspace_is_searched(self):
        self.write("a", "needle\n")
        self.client = self.serve(profile="read-only")
        self.assertEqual(self.hits("needle"), [("a", 1, "needle")])
        self.fails(
            "UNAUTHORIZED", self.client, "exec_command", workspace_id="ws", command=["true"]
        )

    def test_hidden_paths_are_hidden(self):
        """A27: one policy for read, find, search and commands."""
        self.write("secret/key", "needle\n")
        self.write("x.pem", "needle\n")
        self.write("open", "needle\n")
        self.client = self.serve(hide=[self.path("secret")], deny_read=["*.pem"])
        self.assertEqual(self.hits("needle"), [("open", 1, "needle")])
        self.assertEqual([h[0] for h in self.hits("needle", binary=True)], ["open"])
        for path in ("secret", "secret/key", "x.pem"):
            with self.subTest(path=path):
                for tool, more in (("search", {"pattern": "x"}), ("read", {})):
                    self.fails(
                        "PATH_PROTECTED", self.client, tool, workspace_id="ws", path=path, **more
                    )

    def test_never_outside_the_sandbox(self):
        self.write("a", "needle\n")
        client = self.start(env=NOWHERE)
        error = self.fails("SANDBOX_UNAVAILABLE", client, "search", workspace_id="ws",
                           pattern="needle")
        self.assertIn("CODESPACE_LINUX_SANDBOX_BIN", error.message)
        self.assertEqual(client.call("find", workspace_id="ws")["paths"], ["a"])

    def test_no_configuration_of_the_workspace_is_read(self):
        self.write(".ripgreprc", "--files\n")
        self.write("a", "needle\n")
        self.client = self.serve(env={"RIPGREP_CONFIG_PATH": self.path(".ripgreprc")})
        self.assertEqual(self.hits("needle"), [("a", 1, "needle")])

    def test_it_is_no_process_of_the_client(self):
        self.write("a", "needle\n")
        self.client = self.start()
        for _ in range(3):
            self.hits("needle")
        self.assertEqual(self.client.call("list_processes")["processes"], [])


class Ends(SearchCase):
    def make_slow(self):
        """What takes ripgrep long and no memory: one file by very many names."""
        self.write("slow/0", (b"x" * 63 + b"\n") * (1 << 19))
        for i in range(1, 20000):
            os.link(self.path("slow/0"), self.path(f"slow/{i}"))

    def test_a_time_limit(self):
        self.write("a", "needle\n")
        self.make_slow()
        answer = self.search("needle", timeout_ms=1500, globs=["slow/**"])
        self.assertIs(answer["incomplete"], True)
        self.assertIn("timeout_ms", answer["incomplete_reason"])

    def test_a_cancelled_search_ends(self):
        self.write("a", "needle\n")
        self.make_slow()
        self.client = self.start()
        ident = self.client.begin_call(
            "search", workspace_id="ws", pattern="needle"
        )

        def rg():
            return [c for _, _, s, c in processes() if "--regexp=needle" in c and s not in "ZX"
                    and "rg --no-config" in c]

        self.assertTrue(poll(rg))
        self.client.notify("notifications/cancelled", {"requestId": ident})
        self.assertTrue(poll(lambda: not rg()), rg())
        self.assertEqual(self.client.call("find", workspace_id="ws", glob="a")["paths"], ["a"])
        self.assertFalse(self.client.answered(ident))

    def test_a_time_limit_below_that_of_the_quick_try(self):
        self.make_slow()
        answer = self.search("needle", timeout_ms=100)
        self.assertIs(answer["incomplete"], True)
        self.assertIn("timeout_ms", answer["incomplete_reason"])

    def test_others_are_answered_meanwhile(self):
        self.write("a", "needle\n")
        self.make_slow()
        self.client = self.start()
        ident = self.client.begin_call(
            "search", workspace_id="ws", pattern="needle"
        )
        for _ in range(20):
            self.client.call("read", workspace_id="ws", path="a")
        self.assertFalse(self.client.answered(ident), "it was to be slow")
        self.client.notify("notifications/cancelled", {"requestId": ident})
