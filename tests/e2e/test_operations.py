"""Operations through the protocol: what is remembered, under which key, and how it is undone.

Ledgers lie in a directory of the test's own beside the workspace. A server that is killed is killed
by its pid; what comes after is asked of a second server on the same ledger.
"""

import os
import signal
import stat
import subprocess
import time

from support import FileCase, ProcessCase, WAIT_MS, needs_sandbox, patch_text, poll, version


def tree(root):
    """Every file below root: path -> (bytes, executable)."""
    out = {}
    for where, _, names in os.walk(root):
        for name in names:
            path = os.path.join(where, name)
            with open(path, "rb") as f:
                mode = os.stat(path).st_mode
                out[os.path.relpath(path, root)] = (f.read(), bool(mode & stat.S_IXUSR))
    return out


class Forms(FileCase):
    """The three forms of apply_patch, and its preview."""

    def apply(self, **arguments):
        return self.client.call("apply_patch", workspace_id="ws", **arguments)

    def refuses(self, code, **arguments):
        return self.fails(code, self.client, "apply_patch", workspace_id="ws", **arguments)

    def test_exact_edits(self):
        self.write("a.txt", "one two one\n$&\n")
        answer = self.apply(
            edits=[
                {"path": "a.txt", "old": "one", "new": "\\1 $& one", "count": 2},
                {"path": "a.txt", "old": "two", "new": ""},
                {"path": "new.txt", "old": "", "new": "made\n"},
            ]
        )
        self.assertEqual(answer["status"], "applied")
        self.assertIs(answer["durable"], True)
        self.assertEqual(self.bytes_of("a.txt"), b"\\1 $& one  \\1 $& one\n$&\n")
        self.assertEqual(self.bytes_of("new.txt"), b"made\n")

    def test_edits_are_all_or_none(self):
        self.write("a.txt", "one\n")
        self.refuses(
            "INVALID_PATCH",
            edits=[
                {"path": "a.txt", "old": "one", "new": "two"},
                {"path": "a.txt", "old": "absent", "new": "x"},
            ],
        )
        self.assertEqual(self.bytes_of("a.txt"), b"one\n")

    def test_exactly_one_form(self):
        edit = [{"path": "a", "old": "", "new": "x"}]
        patch = patch_text("*** Add File: a", "+x")
        self.refuses("INVALID_ARGUMENT")
        self.refuses("INVALID_ARGUMENT", patch=patch, edits=edit)
        self.refuses("INVALID_ARGUMENT", edits=[])
        self.refuses("INVALID_ARGUMENT", edits=edit, format="v4a")
        self.refuses("INVALID_ARGUMENT", edits=[{"path": "a", "old": "x"}])
        self.refuses("INVALID_ARGUMENT", edits=[{"path": "a", "old": "x", "new": "y", "count": 0}])
        self.assertEqual(os.listdir(self.ws), [])

    def test_format_is_as_said(self):
        self.write("x", "a\n")
        diff = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"
        self.refuses("INVALID_PATCH", patch=diff, format="v4a")
        self.refuses("INVALID_PATCH", patch=patch_text("*** Delete File: x"), format="unified")
        self.assertEqual(self.apply(patch=diff, format="unified")["status"], "applied")

    def test_the_preview_is_a_patch(self):
        self.write("a.txt", "one\ntwo\n")
        self.write("gone.txt", "x\n")
        patch = patch_text(
            "*** Update File: a.txt", "@@", "-two", "+TWO", "*** Delete File: gone.txt",
            "*** Add File: n.txt", "+new",
        )
        before = tree(self.ws)
        seen = self.apply(patch=patch, check_only=True)
        self.assertEqual(seen["status"], "checked")
        self.assertIs(seen["truncated"], False)
        self.assertEqual(tree(self.ws), before)
        self.assertEqual(self.apply(patch=seen["diff"])["status"], "applied")
        after = tree(self.ws)
        self.assertEqual(
            after, {"a.txt": (b"one\nTWO\n", False), "n.txt": (b"new\n", False)}
        )

    def test_a_long_preview_is_cut_and_says_so(self):
        line = "0123456789abcdef" * 4
        patch = patch_text("*** Add File: long", *["+" + line] * 8000)
        seen = self.apply(patch=patch, check_only=True)
        self.assertIs(seen["truncated"], True)
        self.assertLessEqual(len(seen["diff"]), 262144)
        self.assertTrue(seen["diff"].endswith(line + "\n"))

    def test_not_durable_is_told(self):
        answer = self.apply(patch=patch_text("*** Add File: a", "+x"), durable=False)
        self.assertEqual((answer["status"], answer["durable"]), ("applied", False))


class Reverts(FileCase):
    def apply(self, **arguments):
        return self.client.call("apply_patch", workspace_id="ws", **arguments)

    def revert(self, answer, **arguments):
        return self.client.call(
            "revert_operation", operation_id=answer["operation_id"], **arguments
        )

    FILES = {
        "crlf.txt": b"one\r\ntwo\r\nthree\r\n",
        "mixed.txt": b"one\r\ntwo\nthree\r\n",
        "nonl.txt": b"one\ntwo",
        "latin.txt": b"x = 1;\n// caf\xe9\n",
        "bom.txt": b"\xef\xbb\xbfone\n",
        "empty.txt": b"",
        "tool.sh": b"#!/bin/sh\necho old\n",
        "sub/old.txt": b"moved\nhere\n",
        "gone.txt": b"deleted\nno newline at the end",
    }

    def lay_out(self):
        for name, data in self.FILES.items():
            self.write(name, data, mode=0o755 if name == "tool.sh" else None)
        return tree(self.ws)

    ROUND_TRIPS = {
        "v4a": {
            "patch": patch_text(
                "*** Update File: crlf.txt", "@@", " one", "-two", "+TWO",
                "*** Update File: mixed.txt", "@@", "-two", "+TWO",
                "*** Update File: nonl.txt", "@@", "-two", "+TWO",
                "*** Update File: latin.txt", "@@", "-x = 1;", "+x = 2;",
                "*** Update File: bom.txt", "@@", "-\ufeffone", "+\ufefftwo",
                "*** Update File: tool.sh", "@@", "-echo old", "+echo new",
                "*** Update File: sub/old.txt", "*** Move to: to/new.txt", "@@", "-moved", "+MOVED",
                "*** Delete File: gone.txt", "*** Add File: made/new.txt", "+new",
            )
        },
        "unified": {
            "patch": "diff --git a/tool.sh b/tool.sh\nold mode 100755\nnew mode 100644\n"
            "diff --git a/sub/old.txt b/plain.txt\nsimilarity index 100%\n"
            "rename from sub/old.txt\nrename to plain.txt\n"
            "diff --git a/nonl.txt b/nonl.txt\n--- a/nonl.txt\n+++ b/nonl.txt\n@@ -1,2 +1,2 @@\n one\n-two\n"
            "\\ No newline at end of file\n+two\n"
            "diff --git a/script b/script\nnew file mode 100755\n--- /dev/null\n+++ b/script\n"
            "@@ -0,0 +1 @@\n+#!/bin/sh\n"
        },
        "edits": {
            "edits": [
                {"path": "crlf.txt", "old": "\r\n", "new": "\n", "count": 3},
                {"path": "empty.txt", "old": "", "new": "no newline"},
                {"path": "nonl.txt", "old": "one\ntwo", "new": ""},
            ]
        },
    }

    def test_round_trips_in_every_form(self):
        before = self.lay_out()
        for form, request in self.ROUND_TRIPS.items():
            with self.subTest(form=form):
                answer = self.apply(**request)
                self.assertEqual(answer["status"], "applied")
                after = tree(self.ws)
                self.assertNotEqual(after, before)
                undone = self.revert(answer)
                self.assertEqual(undone["status"], "applied")
                self.assertEqual(undone["reverts"], answer["operation_id"])
                self.assertEqual(tree(self.ws), before)
                # An undoing can be undone, and that one again.
                again = self.revert(undone)
                self.assertEqual(tree(self.ws), after)
                self.revert(again)
                self.assertEqual(tree(self.ws), before)

    def test_once(self):
        answer = self.apply(patch=patch_text("*** Add File: a", "+x"))
        first = self.revert(answer)
        error = self.fails(
            "OPERATION_NOT_REVERTIBLE", self.client, "revert_operation",
            operation_id=answer["operation_id"],
        )
        self.assertIn(first["operation_id"], error.message)

    def test_a_key_repeats_the_answer(self):
        answer = self.apply(patch=patch_text("*** Add File: a", "+x"))
        first = self.revert(answer, operation_key="undo")
        again = self.revert(answer, operation_key="undo")
        self.assertEqual(again["operation_id"], first["operation_id"])
        self.assertEqual((again["status"], again["replayed"]), ("applied", True))

    def test_later_operations_are_named(self):
        self.write("a", "one\n")
        first = self.apply(edits=[{"path": "a", "old": "one", "new": "two"}])
        second = self.apply(edits=[{"path": "a", "old": "two", "new": "three"}])
        error = self.fails(
            "VERSION_CONFLICT", self.client, "revert_operation",
            operation_id=first["operation_id"],
        )
        self.assertIn(second["operation_id"], error.message)
        self.assertEqual(self.bytes_of("a"), b"three\n")
        self.revert(second)
        self.revert(first)
        self.assertEqual(self.bytes_of("a"), b"one\n")

    def test_a_foreign_change_is_not_lost(self):
        self.write("a", "one\n")
        answer = self.apply(edits=[{"path": "a", "old": "one", "new": "two"}])
        self.write("a", "somebody else's\n")
        error = self.fails(
            "VERSION_CONFLICT", self.client, "revert_operation",
            operation_id=answer["operation_id"],
        )
        self.assertIn("none that this server recorded", error.message)
        self.assertEqual(self.bytes_of("a"), b"somebody else's\n")

    def test_the_preview(self):
        self.write("a", "one\n")
        answer = self.apply(edits=[{"path": "a", "old": "one", "new": "two"}])
        seen = self.revert(answer, check_only=True)
        self.assertEqual(seen["status"], "checked")
        self.assertIn("-two\n+one\n", seen["diff"])
        self.assertEqual(self.bytes_of("a"), b"two\n")
        self.revert(answer)
        self.assertEqual(self.bytes_of("a"), b"one\n")

    def test_what_has_no_undo(self):
        checked = self.apply(patch=patch_text("*** Add File: a", "+x"), check_only=True)
        for code, ident in (
            ("OPERATION_NOT_REVERTIBLE", checked["operation_id"]),
            ("OPERATION_NOT_FOUND", "op-none"),
        ):
            self.fails(code, self.client, "revert_operation", operation_id=ident)
        answer = self.apply(patch=patch_text("*** Add File: a", "+x"))
        self.fails(
            "OPERATION_NOT_FOUND", self.client, "revert_operation",
            operation_id=answer["operation_id"], workspace_id="other",
        )
        self.assertEqual(self.bytes_of("a"), b"x\n")


class LookUps(FileCase):
    def status(self, **arguments):
        return self.client.call("operation_status", **arguments)

    def test_a_patch(self):
        answer = self.patch("*** Add File: a", "+x", operation_key="k")
        for question in ({"operation_id": answer["operation_id"]}, {"operation_key": "k"}):
            seen = self.status(**question)
            self.assertEqual(seen["operation_id"], answer["operation_id"])
            self.assertEqual(
                (seen["status"], seen["kind"], seen["workspace_id"], seen["replayed"]),
                ("applied", "patch", "ws", False),
            )
            self.assertEqual(seen["changes"], answer["changes"])
            self.assertEqual(
                [e["name"] for e in seen["events"]], ["minted", "planned", "finished"]
            )
            self.assertLessEqual(abs(seen["created_at"] - time.time()), 600)

    def test_a_refusal(self):
        self.write("a", "x\n")
        error = self.patch_fails("ADD_FILE_EXISTS", "*** Add File: a", "+x")
        seen = self.status(operation_id=error.body["operation_id"])
        self.assertEqual(seen["status"], "rejected")
        self.assertEqual(seen["error"]["code"], "ADD_FILE_EXISTS")
        self.assertNotIn("changes", seen)

    def test_a_key_in_two_workspaces(self):
        other = self.make_dir("other")
        client = self.start("--workspace", "ws=" + self.ws, "--workspace", "two=" + other)
        patch = patch_text("*** Add File: a", "+x")
        ids = {
            ws: client.call("apply_patch", workspace_id=ws, patch=patch, operation_key="k")[
                "operation_id"
            ]
            for ws in ("ws", "two")
        }
        self.fails("INVALID_ARGUMENT", client, "operation_status", operation_key="k")
        for ws, ident in ids.items():
            seen = client.call("operation_status", operation_key="k", workspace_id=ws)
            self.assertEqual(seen["operation_id"], ident)

    def test_exactly_one_question(self):
        self.fails("OPERATION_NOT_FOUND", self.client, "operation_status")
        self.fails(
            "OPERATION_NOT_FOUND", self.client, "operation_status", operation_id="a",
            operation_key="b",
        )
        self.fails("OPERATION_NOT_FOUND", self.client, "operation_status", operation_id="op-x")

    def test_pages_and_filters(self):
        ids = [
            self.patch("*** Add File: f%d" % i, "+x")["operation_id"] for i in range(5)
        ]
        undo = self.client.call("revert_operation", operation_id=ids[2])["operation_id"]
        seen, cursor = [], None
        while True:
            more = {} if cursor is None else {"cursor": cursor}
            page = self.client.call("list_operations", workspace_id="ws", limit=2, **more)
            seen += [o["operation_id"] for o in page["operations"]]
            if not page["truncated"]:
                break
            cursor = page["next_cursor"]
        self.assertEqual(seen, [undo] + ids[::-1])
        reverts = self.client.call("list_operations", kind="revert")["operations"]
        self.assertEqual([o["reverts"] for o in reverts], [ids[2]])
        self.assertEqual(
            self.client.call("list_operations", workspace_id="none")["operations"], []
        )
        self.fails("INVALID_ARGUMENT", self.client, "list_operations", limit=501)


class Commands(ProcessCase):
    def status(self, **arguments):
        return self.client.call("operation_status", **arguments)

    def test_a_command_is_recorded(self):
        done = self.exec("sh", "-c", "exit 3", wait_ms=WAIT_MS)
        seen = poll(
            lambda: (s := self.status(process_id=done["process_id"]))["status"] != "running" and s
        )
        self.assertEqual(seen["operation_id"], done["operation_id"])
        self.assertEqual(
            (seen["kind"], seen["status"], seen["termination"], seen["exit_code"]),
            ("command", "ended", "exited", 3),
        )
        self.assertEqual(len(seen["argv_sha256"]), 64)
        listed = self.client.call("list_operations", kind="command")["operations"]
        self.assertEqual([o["operation_id"] for o in listed], [done["operation_id"]])

    def test_its_end_is_seen_when_nobody_waits(self):
        process = self.begin("exec sleep 1000")
        self.assertEqual(self.status(process_id=process)["status"], "running")
        self.call("terminate_process", process)
        seen = poll(
            lambda: (s := self.status(process_id=process))["status"] != "running" and s
        )
        self.assertEqual((seen["status"], seen["termination"]), ("ended", "terminated"))

    def test_a_key_runs_once(self):
        request = {"wait_ms": WAIT_MS, "operation_key": "k"}
        first = self.exec("sh", "-c", "echo x >>count; cat count", **request)
        again = self.exec("sh", "-c", "echo x >>count; cat count", **request)
        self.assertNotIn("replayed", first)
        self.assertIs(again["replayed"], True)
        self.assertEqual(again["process_id"], first["process_id"])
        self.assertEqual(again["output"], first["output"])
        with open(self.path("count")) as f:
            self.assertEqual(f.read(), "x\n")
        self.fails(
            "OPERATION_KEY_CONFLICT", self.client, "exec_command", workspace_id="ws",
            command=["sh", "-c", "echo y >>count"], **request
        )
        # Another wait, and what is only said about the caller, is the same request.
        other = self.exec(
            "sh", "-c", "echo x >>count; cat count", operation_key="k", approved=True
        )
        self.assertEqual(other["process_id"], first["process_id"])

    def test_keys_at_once(self):
        calls = [
            self.client.begin_call(
                "exec_command", workspace_id="ws", wait_ms=WAIT_MS, operation_key="k",
                command=["sh", "-c", "echo x >>count"],
            )
            for _ in range(8)
        ]
        ids = {self.client.finish_call(c)["process_id"] for c in calls}
        self.assertEqual(len(ids), 1)
        process = ids.pop()
        self.assert_exited(self.ended(self.client, process))
        with open(self.path("count")) as f:
            self.assertEqual(f.read(), "x\n")

    def test_a_patch_and_a_command_share_no_key(self):
        self.exec("true", operation_key="k", wait_ms=WAIT_MS)
        self.fails(
            "OPERATION_KEY_CONFLICT", self.client, "apply_patch", workspace_id="ws",
            patch=patch_text("*** Add File: a", "+x"), operation_key="k",
        )
        self.assertFalse(os.path.exists(self.path("a")))


class Durable(FileCase):
    """A ledger in a file, over more than one server."""

    def setUp(self):
        super().setUp()
        self.ledger = os.path.join(self.make_dir("state"), "ledger.db")

    def serve(self):
        return self.start("--workspace", "ws=" + self.ws, "--ledger", self.ledger)

    def kill(self, client):
        client.signal(signal.SIGKILL)
        self.assertEqual(client.wait_exit(), -signal.SIGKILL)

    def test_it_says_so(self):
        self.assertIs(self.client.call("workspace_info")["ledger"]["durable"], False)
        self.assertIs(self.serve().call("workspace_info")["ledger"]["durable"], True)
        self.assertEqual(stat.S_IMODE(os.stat(self.ledger).st_mode), 0o600)

    def test_the_variable_and_the_older_name(self):
        client = self.start(
            "--workspace", "ws=" + self.ws, env={"CODESPACE_OPERATIONS_DB": self.ledger}
        )
        self.assertIs(client.call("workspace_info")["ledger"]["durable"], True)
        client.close()
        client = self.start("--workspace", "ws=" + self.ws, "--operations-db", self.ledger)
        self.assertIs(client.call("workspace_info")["ledger"]["durable"], True)

    def test_doctor_tells(self):
        for arguments, word in (([], "in memory"), (["--ledger", self.ledger], self.ledger)):
            done = subprocess.run(
                self.client.argv[:1] + ["--doctor"] + arguments, capture_output=True, text=True,
                env=self.environment(), timeout=60,
            )
            self.assertIn("ledger: ", done.stdout)
            self.assertIn(word, done.stdout)
        self.assertFalse(os.path.exists(self.ledger))

    def test_operations_outlive_the_server(self):
        client = self.serve()
        patch = patch_text("*** Add File: a", "+x")
        first = client.call("apply_patch", workspace_id="ws", patch=patch, operation_key="k")
        client.close()
        client = self.serve()
        again = client.call("apply_patch", workspace_id="ws", patch=patch, operation_key="k")
        self.assertEqual(again["operation_id"], first["operation_id"])
        self.assertEqual((again["status"], again["replayed"]), ("applied", True))
        client.call("revert_operation", operation_id=first["operation_id"])
        self.assertFalse(os.path.exists(self.path("a")))

    def test_a_second_gateway_is_refused(self):
        client = self.serve()
        status, stderr = self.refused("--workspace", "ws=" + self.ws, "--ledger", self.ledger)
        self.assertIn(str(client.pid), stderr)
        client.close()
        self.serve()

    def test_no_workspace_may_hold_it(self):
        os.symlink(self.ws, os.path.join(self.dir, "link"))
        os.makedirs(self.path("sub"))
        for place in (
            self.path("l.db"),
            self.path("sub/new/l.db"),
            os.path.join(self.dir, "link", "l.db"),
            os.path.join(self.dir, "state", "..", "ws", "l.db"),
        ):
            with self.subTest(place=place):
                _, stderr = self.refused("--workspace", "ws=" + self.ws, "--ledger", place)
                self.assertIn("workspace ws", stderr)
        self.assertEqual(tree(self.ws), {})
        self.assertFalse(os.path.exists(self.path("sub/new")))

    @needs_sandbox
    def test_commands_of_a_killed_server_are_lost(self):
        client = self.serve()
        marker = self.marker()
        run = client.call(
            "exec_command", workspace_id="ws", command=["sleep", marker], operation_key="k"
        )
        self.assertEqual(
            client.call("operation_status", process_id=run["process_id"])["status"], "running"
        )
        self.kill(client)
        self.assert_gone(marker)
        client = self.serve()
        seen = client.call("operation_status", process_id=run["process_id"])
        self.assertEqual((seen["status"], seen["recovered"]), ("lost", True))
        # The key does not start it again.
        again = client.call(
            "exec_command", workspace_id="ws", command=["sleep", marker], operation_key="k"
        )
        self.assertEqual(again["process_id"], run["process_id"])
        self.assertEqual(again["dispatch_status"], "unknown")

    def kill_during_patches(self, start):
        """Kill a server that patches two files as fast as it can; the keys that were answered."""
        names = ["f%d" % i for i in range(2)]
        for name in names:
            self.write(name, "0\n")
        client = start()
        answered = []
        deadline = time.monotonic() + 0.4
        i = 0
        pending = None
        while time.monotonic() < deadline:
            pending = client.begin_call(
                "apply_patch", workspace_id="ws", operation_key="k%d" % i,
                edits=[{"path": n, "old": "%d\n" % i, "new": "%d\n" % (i + 1)} for n in names],
            )
            answered.append(client.finish_call(pending)["operation_id"])
            i += 1
        client.begin_call(
            "apply_patch", workspace_id="ws", operation_key="k%d" % i,
            edits=[{"path": n, "old": "%d\n" % i, "new": "%d\n" % (i + 1)} for n in names],
        )
        self.kill(client)
        return answered, i

    def check_whole(self, last):
        self.assertEqual(sorted(os.listdir(self.ws)), ["f0", "f1"])
        a, b = self.bytes_of("f0"), self.bytes_of("f1")
        self.assertEqual(a, b)
        self.assertIn(a, (b"%d\n" % last, b"%d\n" % (last + 1)))
        return a

    def test_killed_during_a_patch(self):
        for _ in range(3):
            answered, last = self.kill_during_patches(self.serve)
            client = self.serve()
            found = self.check_whole(last)
            for i, ident in enumerate(answered):
                seen = client.call("operation_status", operation_id=ident)
                self.assertEqual(seen["status"], "applied")
            # The last one: as the disk says, or it never began.
            unfinished = client.call("list_operations", unfinished=True)["operations"]
            self.assertEqual(unfinished, [])
            applied = found == b"%d\n" % (last + 1)
            known = [
                o
                for o in client.call("list_operations", limit=500)["operations"]
                if o.get("operation_key") == "k%d" % last
            ]
            if applied:
                self.assertEqual([o["status"] for o in known], ["applied"])
            else:
                self.assertIn([o["status"] for o in known], ([], ["failed_rolled_back"]))
            client.close()
            for side in ("", "-wal", "-shm", "-gateway"):
                if os.path.exists(self.ledger + side):
                    os.remove(self.ledger + side)

    def test_killed_during_a_patch_without_a_ledger(self):
        """The journal does not need one: the next server settles the files."""
        for _ in range(3):
            _, last = self.kill_during_patches(self.start)
            client = self.start()
            self.assertIs(client.call("workspace_info")["ledger"]["patch_journal"], True)
            self.check_whole(last)

    def test_two_servers_patch_one_workspace(self):
        one, two = self.start(), self.start()
        for i, client in enumerate((one, two, one, two)):
            answer = client.call(
                "apply_patch", workspace_id="ws",
                patch=patch_text("*** Add File: f%d" % i, "+x"),
            )
            self.assertEqual(answer["status"], "applied")

    def test_versions_are_the_files(self):
        client = self.serve()
        self.write("a", "one\n")
        answer = client.call(
            "apply_patch", workspace_id="ws",
            edits=[{"path": "a", "old": "one", "new": "two"}],
        )
        change = client.call("operation_status", operation_id=answer["operation_id"])["changes"][0]
        self.assertEqual(change["before_version"], version(b"one\n"))
        self.assertEqual(change["after_version"], version(b"two\n"))


if __name__ == "__main__":
    import unittest

    unittest.main()
