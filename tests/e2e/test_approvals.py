"""Calls that wait for a person: who may decide them, and that they run once.

The caller here is the client of stdio; the operator is the command line beside the running server,
on the same ledger. What a person answers to the client's question is in here, too.
"""

import json
import os
import signal
import sqlite3
import subprocess
import threading
import unittest

from http_support import MODERN
from support import SERVER, WAIT_MS, Case, ToolError, patch_text, poll

META = {"io.modelcontextprotocol/protocolVersion": MODERN}
ADD = patch_text("*** Add File: a.txt", "+one")
TOUCH = ["/bin/sh", "-c", "echo ran >> ran.txt"]


class ApprovalCase(Case):
    def has_run(self):
        """Until the command has written its word; the file is there before that."""
        self.assertTrue(poll(lambda: os.path.exists(self.path("ran.txt"))
                             and self.bytes_of("ran.txt") == b"ran\n"))

    def setUp(self):
        super().setUp()
        self.ledger = os.path.join(self.make_dir("state"), "ledger.db")

    def serve(self, *arguments, ledger=True, approvals="confirm", top=None, capabilities=None,
              **entry):
        path = self.config({**(top or {}), "workspaces": {"ws": {
            "root": self.ws, "profile": "workspace-write", "approvals": approvals, **entry}}})
        more = ("--ledger", self.ledger) if ledger else ()
        client = self.launch("--config", path, *more, *arguments)
        client.initialize(capabilities=capabilities)
        return client

    def cli(self, *arguments, status=0, ledger=None):
        done = subprocess.run(
            [SERVER, "approvals", *arguments, "--ledger", ledger or self.ledger],
            stdin=subprocess.DEVNULL, capture_output=True, env=self.environment(), timeout=60)
        self.assertEqual(done.returncode, status, done.stderr)
        return (done.stdout if status == 0 else done.stderr).decode()

    def hold(self, client, tool="apply_patch", **arguments):
        """A call that must be held; the id."""
        arguments.setdefault("workspace_id", "ws")
        if tool == "apply_patch":
            arguments.setdefault("patch", ADD)
        else:
            arguments.setdefault("command", TOUCH)
        error = self.fails("APPROVAL_REQUIRED", client, tool, **arguments)
        return error.body["approval_id"]

    def create(self, client, tool, **arguments):
        arguments.setdefault("workspace_id", "ws")
        return client.finish_call(client.begin("tools/call", {
            "name": "approval_create", "arguments": {"tool": tool, "arguments": arguments}}))

    def create_fails(self, code, client, tool, **arguments):
        with self.assertRaises(ToolError) as caught:
            self.create(client, tool, **arguments)
        self.assertEqual(caught.exception.code, code)

    def state(self, client, approval_id):
        return client.call("approval_resolve", approval_id=approval_id)["state"]

    def resume(self, client, approval_id):
        return client.call("operation_resume", 60.0, approval_id=approval_id)

    def rows(self, sql, *values):
        with sqlite3.connect(self.ledger) as db:
            return db.execute(sql, values).fetchall()

    def set_row(self, sql, *values):
        """A ledger as a crash would have left it; no gateway runs."""
        db = sqlite3.connect(self.ledger)
        with db:
            db.execute(sql, values)
        db.close()


class Patch(ApprovalCase):
    def test_held_granted_and_written_once(self):
        client = self.serve()
        info = client.call("workspace_info", workspace_id="ws")
        self.assertEqual(info["execution"]["approvals"], "confirm")
        held = self.hold(client)
        self.assertRegex(held, "^appr-")
        self.assertEqual(os.listdir(self.ws), [])
        self.assertEqual(self.state(client, held), "pending")
        self.fails("APPROVAL_CONFLICT", client, "operation_resume", approval_id=held)
        self.assertIn("granted", self.cli("grant", held))
        self.assertEqual(os.listdir(self.ws), [])
        answer = self.resume(client, held)
        self.assertEqual((answer["state"], answer["approval_id"]), ("consumed", held))
        self.assertEqual(answer["apply_patch"]["status"], "applied")
        self.assertEqual(self.bytes_of("a.txt"), b"one\n")
        os.unlink(self.path("a.txt"))
        self.assertEqual(self.resume(client, held), answer)
        self.assertEqual(os.listdir(self.ws), [])
        operation = client.call("operation_status",
                                operation_id=answer["apply_patch"]["operation_id"])
        self.assertEqual(operation["status"], "applied")
        self.assertNotEqual(self.hold(client), held)

    def test_denied_is_final(self):
        client = self.serve()
        held = self.hold(client)
        self.cli("deny", held)
        self.fails("APPROVAL_CONFLICT", client, "operation_resume", approval_id=held)
        self.assertIn("denied", self.cli("grant", held, status=75))
        self.assertEqual(os.listdir(self.ws), [])

    def test_the_caller_withdraws(self):
        client = self.serve()
        held = self.hold(client)
        answer = client.call("approval_resolve", approval_id=held, decision="deny")
        self.assertEqual((answer["state"], answer["resolved_by"]), ("denied", "caller"))
        self.fails("APPROVAL_CONFLICT", client, "approval_resolve", approval_id=held,
                   decision="deny")

    def test_the_same_call_meets_the_same_hold(self):
        client = self.serve()
        held = self.hold(client)
        self.assertEqual(self.hold(client), held)
        self.assertEqual(self.hold(client, approved=True, user_id="root", work_id="work-x"), held)
        self.assertNotEqual(self.hold(client, expected_versions={"a.txt": "absent"}), held)
        other = self.create(client, "apply_patch", patch=ADD)
        self.assertEqual(other, {"approval_id": held, "state": "pending"})

    def test_looking_and_repeating_wait_for_nobody(self):
        client = self.serve()
        checked = client.call("apply_patch", workspace_id="ws", patch=ADD, check_only=True)
        self.assertEqual(checked["status"], "checked")
        held = self.hold(client, operation_key="k")
        self.cli("grant", held)
        first = self.resume(client, held)["apply_patch"]
        again = client.call("apply_patch", workspace_id="ws", patch=ADD, operation_key="k")
        self.assertTrue(again["replayed"])
        self.assertEqual(again["operation_id"], first["operation_id"])
        self.fails("OPERATION_KEY_CONFLICT", client, "apply_patch", workspace_id="ws",
                   patch=patch_text("*** Add File: b.txt", "+x"), operation_key="k")

    def test_policy_is_asked_again(self):
        client = self.serve()
        held = self.hold(client)
        self.cli("grant", held)
        self.assertEqual(client.close(), 0)
        client = self.serve(profile="read-only")
        self.fails("UNAUTHORIZED", client, "operation_resume", approval_id=held)
        self.assertEqual(os.listdir(self.ws), [])
        self.fails("UNAUTHORIZED", client, "operation_resume", approval_id=held)

    def test_a_failing_patch_uses_it_up(self):
        client = self.serve()
        held = self.hold(client)
        self.cli("grant", held)
        self.write("a.txt", "there\n")
        self.fails("ADD_FILE_EXISTS", client, "operation_resume", approval_id=held)
        os.unlink(self.path("a.txt"))
        self.fails("ADD_FILE_EXISTS", client, "operation_resume", approval_id=held)
        self.assertEqual(self.state(client, held), "consumed")

    def test_revert_is_no_way_around(self):
        client = self.serve()
        held = self.hold(client)
        self.cli("grant", held)
        done = self.resume(client, held)["apply_patch"]
        self.fails(("UNAUTHORIZED", "APPROVAL_REQUIRED"), client, "revert_operation",
                   workspace_id="ws", operation_id=done["operation_id"])
        self.assertEqual(self.bytes_of("a.txt"), b"one\n")

    def test_without_a_ledger_file(self):
        client = self.serve(ledger=False)
        held = self.hold(client)
        self.assertEqual(self.state(client, held), "pending")
        self.assertEqual(os.listdir(self.ws), [])

    def test_off_runs_at_once_and_explicit_holds_work(self):
        client = self.serve(approvals="off")
        self.assertEqual(client.call("apply_patch", workspace_id="ws", patch=ADD)["status"],
                         "applied")
        patch = patch_text("*** Add File: b.txt", "+b")
        made = self.create(client, "apply_patch", patch=patch)
        self.cli("grant", made["approval_id"])
        self.assertEqual(self.resume(client, made["approval_id"])["apply_patch"]["status"],
                         "applied")
        self.assertEqual(self.bytes_of("b.txt"), b"b\n")


class Caller(ApprovalCase):
    """What the caller can say, it cannot grant by."""

    def test_no_argument_grants(self):
        client = self.serve()
        for extra in ({"approved": True}, {"user_id": "operator"}, {"network": "enabled"},
                      {"work_id": "work-1"}):
            with self.subTest(extra=extra):
                held = self.hold(client, **extra)
                self.fails("UNAUTHORIZED", client, "approval_resolve", approval_id=held,
                           decision="grant", **extra)
                self.fails("APPROVAL_CONFLICT", client, "operation_resume", approval_id=held,
                           **extra)
        for unknown in ({"self_grant": True}, {"actor": "command_line"}, {"resolved_by": "x"}):
            with self.subTest(unknown=unknown):
                self.fails("INVALID_ARGUMENT", client, "approval_resolve", approval_id=held,
                           decision="grant", **unknown)
        self.assertEqual(self.state(client, held), "pending")
        self.assertEqual(os.listdir(self.ws), [])

    def test_answers_that_nobody_asked_for(self):
        client = self.serve(capabilities={"elicitation": {}})
        for extra in ({"inputResponses": {"approval": {"action": "accept", "content": {
                "decision": "allow once"}}}}, {"requestState": "0" * 64 + ".9.appr-1"}):
            ident = client.begin("tools/call", {"name": "apply_patch", **extra, "arguments": {
                "workspace_id": "ws", "patch": ADD}})
            question = self.question(client)
            client.send({"jsonrpc": "2.0", "id": "ask-999", "result": {
                "action": "accept", "content": {"decision": "allow once"}}})
            client.send({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "cancel"}})
            with self.assertRaises(ToolError) as caught:
                client.finish_call(ident)
            self.assertEqual(caught.exception.code, "APPROVAL_REQUIRED")
        self.assertEqual(os.listdir(self.ws), [])

    def question(self, client):
        self.assertTrue(poll(lambda: client.notifications))
        return client.notifications.pop(0)

    def test_self_grant_is_the_operators_to_allow(self):
        client = self.serve(top={"approvals": {"self_grant": True}})
        held = self.hold(client)
        answer = client.call("approval_resolve", approval_id=held, decision="grant")
        self.assertEqual((answer["state"], answer["resolved_by"]), ("granted", "caller"))
        self.assertEqual(self.resume(client, held)["apply_patch"]["status"], "applied")

    def test_what_cannot_be_held(self):
        client = self.serve()
        for code, tool, arguments in (
                ("INVALID_COMMAND", "exec_command", {"command": []}),
                ("INVALID_COMMAND", "exec_command", {"command": [""]}),
                ("INVALID_COMMAND", "exec_command", {"argv": ["ls"]}),
                ("INVALID_PATCH", "apply_patch", {"patch": 5}),
                ("WORKSPACE_NOT_FOUND", "apply_patch", {"workspace_id": "no", "patch": ADD}),
                ("INVALID_ARGUMENT", "read", {})):
            with self.subTest(arguments=arguments):
                self.create_fails(code, client, tool, **arguments)
        self.fails("APPROVAL_NOT_FOUND", client, "approval_resolve", approval_id="appr-x")
        self.fails("APPROVAL_NOT_FOUND", client, "operation_resume", approval_id="appr-x")
        self.assertEqual(self.rows("SELECT count(*) FROM approvals"), [(0,)])

    def test_read_only_holds_nothing(self):
        client = self.serve(profile="read-only")
        for tool, arguments in (("apply_patch", {"patch": ADD}), ("exec_command", {
                "command": TOUCH})):
            self.fails("UNAUTHORIZED", client, tool, workspace_id="ws", approved=True, **arguments)
            self.create_fails("UNAUTHORIZED", client, tool, **arguments)
        self.assertEqual(self.rows("SELECT count(*) FROM approvals"), [(0,)])


class Exec(ApprovalCase):
    def test_runs_once_and_its_answer_is_kept(self):
        client = self.serve()
        held = self.hold(client, "exec_command", wait_ms=WAIT_MS)
        self.assertEqual(self.hold(client, "exec_command"), held)
        self.assertNotEqual(self.hold(client, "exec_command", env={"A": "b"}), held)
        self.cli("grant", held)
        self.assertFalse(os.path.exists(self.path("ran.txt")))
        answer = self.resume(client, held)
        self.assertEqual(answer["exec_command"]["exit_code"], 0)
        self.assertEqual(self.resume(client, held), answer)
        self.assertEqual(self.bytes_of("ran.txt"), b"ran\n")

    def test_racing_resumes(self):
        client = self.serve()
        held = self.hold(client, "exec_command", wait_ms=WAIT_MS)
        self.cli("grant", held)
        idents = [client.begin_call("operation_resume", approval_id=held) for _ in range(8)]
        done = []
        for ident in idents:
            try:
                done.append(client.finish_call(ident)["exec_command"]["process_id"])
            except ToolError as error:
                self.assertEqual(error.code, "APPROVAL_CONFLICT")
        self.assertGreaterEqual(len(done), 1)
        self.assertEqual(len(set(done)), 1)
        self.assertEqual(self.bytes_of("ran.txt"), b"ran\n")

    def test_a_cancelled_resume_ends_the_command(self):
        client = self.serve()
        marker = self.marker()
        held = self.hold(client, "exec_command", wait_ms=WAIT_MS, command=[
            "/bin/sh", "-c", "echo ran >> ran.txt; exec sleep " + marker])
        self.cli("grant", held)
        ident = client.begin_call("operation_resume", approval_id=held)
        self.has_run()
        client.notify("notifications/cancelled", {"requestId": ident})
        self.assert_gone(marker)
        self.assertTrue(poll(lambda: self.state(client, held) == "consumed"))
        self.fails("CANCELLED", client, "operation_resume", approval_id=held)
        self.assertEqual(self.bytes_of("ran.txt"), b"ran\n")

    def test_a_full_house_leaves_it_granted(self):
        client = self.serve(approvals="off")
        marker = self.marker()
        made = self.create(client, "exec_command", command=TOUCH, wait_ms=WAIT_MS)["approval_id"]
        self.cli("grant", made)
        self.assertEqual(client.close(), 0)
        path = self.config({"workspaces": {"ws": {"root": self.ws, "profile": "workspace-write"}}})
        client = self.start("--config", path, "--ledger", self.ledger,
                            env={"CODESPACE_MAX_PROCESSES": "1"})
        blocker = client.call("exec_command", workspace_id="ws", command=["sleep", marker])
        self.fails(("PROCESS_LIMIT", "WORKSPACE_BUSY", "RESOURCE_QUEUE_FULL"), client,
                   "operation_resume", approval_id=made)
        self.assertEqual(self.state(client, made), "granted")
        client.call("terminate_process", process_id=blocker["process_id"])
        self.assert_gone(marker)
        poll(lambda: client.call("process_status", process_id=blocker["process_id"])["state"]
             == "exited")
        self.assertEqual(self.resume(client, made)["exec_command"]["exit_code"], 0)


class Restart(ApprovalCase):
    def granted(self, client, tool="apply_patch", **arguments):
        held = self.hold(client, tool, **arguments)
        self.cli("grant", held)
        return held

    def test_pending_granted_and_consumed_survive(self):
        client = self.serve()
        pending = self.hold(client, "exec_command")
        consumed = self.granted(client, patch=patch_text("*** Add File: c.txt", "+c"))
        answer = self.resume(client, consumed)
        granted = self.granted(client)
        self.assertEqual(client.close(), 0)
        client = self.serve()
        self.assertEqual(self.state(client, pending), "pending")
        self.assertEqual(self.hold(client, "exec_command"), pending)
        self.assertEqual(self.resume(client, consumed), answer)
        self.assertEqual(self.resume(client, granted)["apply_patch"]["status"], "applied")

    def test_a_killed_gateway_loses_nothing(self):
        client = self.serve()
        granted = self.granted(client)
        client.process.kill()
        client.process.wait()
        client = self.serve()
        self.assertEqual(self.resume(client, granted)["apply_patch"]["status"], "applied")

    def test_resuming_patch_that_did_not_run(self):
        client = self.serve()
        held = self.granted(client)
        self.assertEqual(client.close(), 0)
        self.set_row("UPDATE approvals SET state='resuming' WHERE approval_id=?", held)
        client = self.serve()
        self.assertEqual(self.state(client, held), "granted")
        self.assertEqual(self.resume(client, held)["apply_patch"]["status"], "applied")

    def test_resuming_patch_that_ran(self):
        client = self.serve()
        held = self.granted(client)
        answer = self.resume(client, held)["apply_patch"]
        self.assertEqual(client.close(), 0)
        self.set_row("UPDATE approvals SET state='resuming', result=NULL, ended_ms=NULL"
                     " WHERE approval_id=?", held)
        os.unlink(self.path("a.txt"))
        client = self.serve()
        again = self.resume(client, held)["apply_patch"]
        self.assertEqual(again["operation_id"], answer["operation_id"])
        self.assertEqual(os.listdir(self.ws), [])

    def test_resuming_command_is_never_run_again(self):
        client = self.serve()
        held = self.granted(client, "exec_command")
        self.assertEqual(client.close(), 0)
        self.set_row("UPDATE approvals SET state='resuming' WHERE approval_id=?", held)
        client = self.serve()
        for _ in range(2):
            self.fails("APPROVAL_AMBIGUOUS", client, "operation_resume", approval_id=held)
        self.assertEqual(os.listdir(self.ws), [])

    def test_killed_while_the_command_runs(self):
        client = self.serve()
        marker = self.marker()
        held = self.granted(client, "exec_command", wait_ms=WAIT_MS, command=[
            "/bin/sh", "-c", "echo ran >> ran.txt; exec sleep " + marker])
        client.begin_call("operation_resume", approval_id=held)
        self.has_run()
        client.process.send_signal(signal.SIGKILL)
        client.process.wait()
        self.assert_gone(marker)
        client = self.serve()
        self.fails("APPROVAL_AMBIGUOUS", client, "operation_resume", approval_id=held)
        self.assertEqual(self.bytes_of("ran.txt"), b"ran\n")

    def test_what_ended_is_scrubbed(self):
        client = self.serve()
        secret = "a-line-that-is-nowhere-else"
        held = self.granted(client, patch=patch_text("*** Add File: s.txt", "+" + secret))
        self.resume(client, held)
        gone = self.hold(client, patch=patch_text("*** Add File: t.txt", "+" + secret))
        self.cli("deny", gone)
        for (text,) in self.rows("SELECT arguments FROM approvals"):
            self.assertTrue(json.loads(text)["scrubbed"])
            self.assertNotIn(secret, text)


class Elicitation(ApprovalCase):
    """A person answers in the client."""

    ASKS = {"elicitation": {}}

    def ask(self, client, tool="apply_patch", **arguments):
        arguments.setdefault("workspace_id", "ws")
        if tool == "apply_patch":
            arguments.setdefault("patch", ADD)
        ident = client.begin_call(tool, **arguments)
        self.assertTrue(poll(lambda: client.notifications), "no question came")
        return ident, client.notifications.pop(0)

    def reply(self, client, question, action, decision=None):
        result = {"action": action}
        if decision is not None:
            result["content"] = {"decision": decision}
        client.send({"jsonrpc": "2.0", "id": question["id"], "result": result})

    def test_allowed_runs_in_the_same_call(self):
        client = self.serve(capabilities=self.ASKS)
        ident, question = self.ask(client)
        self.assertEqual(question["method"], "elicitation/create")
        self.assertIn('add "a.txt"', question["params"]["message"])
        self.assertEqual(os.listdir(self.ws), [])
        self.reply(client, question, "accept", "allow once")
        self.assertEqual(client.finish_call(ident)["status"], "applied")
        self.assertEqual(self.bytes_of("a.txt"), b"one\n")
        self.assertEqual(self.rows("SELECT state, resolved_by FROM approvals"),
                         [("consumed", "elicitation")])

    def test_a_command(self):
        client = self.serve(capabilities=self.ASKS)
        ident, question = self.ask(client, "exec_command", command=TOUCH, wait_ms=WAIT_MS)
        self.assertIn('"/bin/sh" "-c" "echo ran >> ran.txt"', question["params"]["message"])
        self.reply(client, question, "accept", "allow once")
        self.assertEqual(client.finish_call(ident)["exit_code"], 0)
        self.assertEqual(self.bytes_of("ran.txt"), b"ran\n")

    def test_no_means_no(self):
        client = self.serve(capabilities=self.ASKS)
        for reply in (("decline",), ("accept", "deny")):
            with self.subTest(reply=reply):
                ident, question = self.ask(client)
                self.reply(client, question, *reply)
                with self.assertRaises(ToolError) as caught:
                    client.finish_call(ident)
                self.assertEqual(caught.exception.code, "APPROVAL_CONFLICT")
                held = caught.exception.body["approval_id"]
                self.assertEqual(self.state(client, held), "denied")
        self.assertEqual(os.listdir(self.ws), [])

    def test_no_answer_leaves_it_pending(self):
        client = self.serve(capabilities=self.ASKS)
        held = set()
        for reply in (("cancel",), ("accept",), ("accept", "yes"), ("accept", "allow"),
                      ("", "allow once"), ("allow once",)):
            with self.subTest(reply=reply):
                ident, question = self.ask(client)
                self.reply(client, question, *reply)
                with self.assertRaises(ToolError) as caught:
                    client.finish_call(ident)
                self.assertEqual(caught.exception.code, "APPROVAL_REQUIRED")
                held.add(caught.exception.body["approval_id"])
        ident, question = self.ask(client)
        client.send({"jsonrpc": "2.0", "id": question["id"],
                     "error": {"code": -32603, "message": "no"}})
        with self.assertRaises(ToolError) as caught:
            client.finish_call(ident)
        held.add(caught.exception.body["approval_id"])
        self.assertEqual(len(held), 1)
        self.assertEqual(self.state(client, held.pop()), "pending")
        self.assertEqual(os.listdir(self.ws), [])

    def test_an_answer_is_of_its_own_question(self):
        client = self.serve(capabilities=self.ASKS)
        first, one = self.ask(client)
        second, two = self.ask(client, patch=patch_text("*** Add File: b.txt", "+b"))
        self.reply(client, two, "accept", "allow once")
        self.assertEqual(client.finish_call(second)["files"], ["b.txt"])
        self.assertFalse(os.path.exists(self.path("a.txt")))
        self.reply(client, two, "accept", "allow once")
        self.reply(client, one, "decline")
        with self.assertRaises(ToolError):
            client.finish_call(first)
        self.assertEqual(os.listdir(self.ws), ["b.txt"])

    def test_decided_elsewhere_while_the_question_is_open(self):
        client = self.serve(capabilities=self.ASKS)
        ident, question = self.ask(client)
        ((held,),) = self.rows("SELECT approval_id FROM approvals")
        self.cli("deny", held)
        self.reply(client, question, "accept", "allow once")
        with self.assertRaises(ToolError) as caught:
            client.finish_call(ident)
        self.assertEqual(caught.exception.code, "APPROVAL_CONFLICT")
        self.assertEqual(os.listdir(self.ws), [])

    def test_eof_while_the_question_is_open(self):
        client = self.serve(capabilities=self.ASKS)
        self.ask(client)
        self.assertEqual(client.close(), 0)
        self.assertEqual(self.rows("SELECT state FROM approvals"), [("pending",)])

    def test_the_operator_can_switch_it_off(self):
        client = self.serve(capabilities=self.ASKS, top={"approvals": {"elicitation": False}})
        self.hold(client)
        self.assertEqual(client.notifications, [])

    def test_forms_only(self):
        client = self.serve(capabilities={"elicitation": {"url": {}}})
        self.hold(client)
        self.assertEqual(client.notifications, [])

    # ---- the modern era ----

    def modern(self, client, tool, arguments, asks=True, **params):
        meta = {**META, "io.modelcontextprotocol/clientCapabilities":
                {"elicitation": {}} if asks else {}}
        return client.request("tools/call", {
            "_meta": meta, "name": tool, "arguments": arguments, **params}, 60.0)

    def accept(self, state, decision="allow once", action="accept"):
        return {"requestState": state, "inputResponses": {
            "approval": {"action": action, "content": {"decision": decision}}}}

    def test_modern_allowed(self):
        client = self.serve()
        arguments = {"workspace_id": "ws", "patch": ADD}
        asked = self.modern(client, "apply_patch", arguments)
        self.assertEqual(asked["resultType"], "input_required")
        self.assertEqual(list(asked["inputRequests"]), ["approval"])
        self.assertNotIn("structuredContent", asked)
        question = asked["inputRequests"]["approval"]
        self.assertEqual(question["method"], "elicitation/create")
        self.assertIn('add "a.txt"', question["params"]["message"])
        self.assertEqual(os.listdir(self.ws), [])
        answers = self.accept(asked["requestState"])
        done = self.modern(client, "apply_patch", arguments, **answers)
        self.assertEqual(done["resultType"], "complete")
        self.assertEqual(done["structuredContent"]["status"], "applied")
        # The same message once more, as a transport that retries would send it.
        again = self.modern(client, "apply_patch", arguments, **answers)
        self.assertEqual(again["structuredContent"], done["structuredContent"])
        self.assertEqual(self.rows("SELECT count(*) FROM operations"), [(1,)])

    def test_modern_an_answer_is_of_its_own_call(self):
        client = self.serve()
        asked = self.modern(client, "apply_patch", {"workspace_id": "ws", "patch": ADD})
        other = {"workspace_id": "ws", "patch": patch_text("*** Add File: b.txt", "+b")}
        answer = self.modern(client, "apply_patch", other, **self.accept(asked["requestState"]))
        self.assertEqual(answer["resultType"], "input_required")
        self.assertNotEqual(answer["requestState"], asked["requestState"])
        self.assertEqual(os.listdir(self.ws), [])
        ((first,),) = self.rows("SELECT approval_id FROM approvals ORDER BY seq LIMIT 1")
        self.assertEqual(self.state(client, first), "pending")

    def test_modern_forged_states(self):
        client = self.serve()
        arguments = {"workspace_id": "ws", "patch": ADD}
        asked = self.modern(client, "apply_patch", arguments)
        state = asked["requestState"]
        flipped = ("0" if state[0] != "0" else "1") + state[1:]
        for wrong in (flipped, state[:-1], "", "x" * 9000):
            with self.subTest(wrong=wrong[:20]):
                message = {"jsonrpc": "2.0", "id": "f", "method": "tools/call", "params": {
                    "_meta": {**META, "io.modelcontextprotocol/clientCapabilities": {
                        "elicitation": {}}},
                    "name": "apply_patch", "arguments": arguments, **self.accept(wrong)}}
                client.send(message)
                self.assertEqual(client.message_for("f")["error"]["code"], -32602)
        # No state: an answer to nothing, so it is asked.
        answers = self.accept(state)
        del answers["requestState"]
        again = self.modern(client, "apply_patch", arguments, **answers)
        self.assertEqual(again["resultType"], "input_required")
        self.assertEqual(os.listdir(self.ws), [])

    def test_modern_no(self):
        client = self.serve()
        arguments = {"workspace_id": "ws", "patch": ADD}
        asked = self.modern(client, "apply_patch", arguments)
        done = self.modern(client, "apply_patch", arguments,
                           **self.accept(asked["requestState"], action="cancel"))
        body = json.loads(done["content"][0]["text"])
        self.assertEqual((body["code"], done["resultType"]), ("APPROVAL_REQUIRED", "complete"))
        done = self.modern(client, "apply_patch", arguments,
                           **self.accept(asked["requestState"], action="decline"))
        self.assertEqual(json.loads(done["content"][0]["text"])["code"], "APPROVAL_CONFLICT")
        self.assertEqual(self.rows("SELECT state FROM approvals"), [("denied",)])

    def test_modern_without_the_capability(self):
        client = self.serve()
        done = self.modern(client, "apply_patch", {"workspace_id": "ws", "patch": ADD}, asks=False)
        self.assertTrue(done["isError"])
        self.assertEqual(json.loads(done["content"][0]["text"])["code"], "APPROVAL_REQUIRED")


class Shown(ApprovalCase):
    """What a person reads cannot be written by the caller."""

    HOSTILE = ["rm", "\x1b[2J\x1b[1;1Hharmless", "a\nworkspace: \"other\"", "\u202etxt.exe",
               "zero\u200bwidth", "\u2066x\u2069", "c1\u009b31m", "nb\u00a0sp", "quote\" \"x",
               "back\\slash", "bell\x07", "tag\U000e0041", "caf\u00e9"]

    def assert_plain(self, text):
        for c in text:
            self.assertTrue(c == "\n" or (c.isprintable() and c not in "\u2800\u3164"),
                            "%r in %r" % (c, text))

    def test_every_place(self):
        client = self.serve(capabilities={"elicitation": {}})
        ident = client.begin_call("exec_command", workspace_id="ws", command=self.HOSTILE)
        self.assertTrue(poll(lambda: client.notifications))
        message = client.notifications[0]["params"]["message"]
        ((held,),) = self.rows("SELECT approval_id FROM approvals")
        for text in (message, self.cli("show", held), self.cli("list")):
            self.assert_plain(text)
            self.assertNotIn("\nworkspace", text)
        for wanted in ('"\\x1b[2J\\x1b[1;1Hharmless"', '"a\\nworkspace: \\"other\\""',
                       '"\\u{202e}txt.exe"', '"c1\\u{9b}31m"', '"quote\\" \\"x"',
                       '"back\\\\slash"', '"caf\u00e9"', "13 words:"):
            self.assertIn(wanted, message)
            self.assertIn(wanted, self.cli("show", held))
        client.notify("notifications/cancelled", {"requestId": ident})

    def test_what_is_cut_says_so(self):
        client = self.serve(capabilities={"elicitation": {}})
        long = "#" * 100000 + "; rm -rf ."
        ident = client.begin_call("exec_command", workspace_id="ws",
                                  command=["sh", "-c", long], env={"LD_PRELOAD": "/x.so"},
                                  stdin="input", cwd="")
        self.assertTrue(poll(lambda: client.notifications))
        message = client.notifications[0]["params"]["message"]
        self.assertIn("MORE BYTES ARE NOT SHOWN", message)
        self.assertIn("LD_PRELOAD", message)
        self.assertIn('stdin: "input"', message)
        self.assertLess(len(message), 20000)
        ((held,),) = self.rows("SELECT approval_id FROM approvals")
        self.assertIn("; rm -rf .", self.cli("show", held))
        client.notify("notifications/cancelled", {"requestId": ident})

    def test_paths_of_a_patch(self):
        client = self.serve()
        held = self.hold(client, patch=patch_text(
            "*** Add File: x\x1b[8m.txt", "+secret \x1b[0m text", "*** Delete File: d.txt",
            "*** Update File: u.txt", "*** Move to: v.txt", "@@", "-a", "+b"))
        text = self.cli("show", held)
        self.assert_plain(text)
        for wanted in ('add "x\\x1b[8m.txt"', 'delete "d.txt"', 'move "u.txt" to "v.txt"',
                       '"+secret \\x1b[0m text"'):
            self.assertIn(wanted, text)


class CommandLine(ApprovalCase):
    def test_list(self):
        client = self.serve()
        self.assertIn("no call waits", self.cli("list"))
        first = self.hold(client)
        second = self.hold(client, "exec_command")
        self.cli("deny", first)
        self.assertNotIn(first, self.cli("list"))
        listed = self.cli("list", "--all").splitlines()
        self.assertEqual([line.split()[0] for line in listed], [second, first])
        self.assertEqual(len(self.cli("list", "--all", "--limit", "1").splitlines()), 1)
        self.assertIn("no call waits", self.cli("list", "--workspace", "other"))

    def test_mistakes(self):
        self.serve()
        for arguments, status, text in (
                (("grant",), 64, "needs the ID"), (("list", "x"), 64, "takes no ID"),
                (("grant", "a", "b"), 64, "one too many"), (("allow", "x"), 64, "allow"),
                (("show", "appr-none"), 66, "appr-none"), (("list", "--limit", "0"), 64, "--limit"),
                (("list", "--yes"), 64, "--yes")):
            with self.subTest(arguments=arguments):
                self.assertIn(text, self.cli(*arguments, status=status))
        missing = os.path.join(self.dir, "nowhere.db")
        self.assertIn("nowhere.db", self.cli("list", ledger=missing, status=74))
        self.assertFalse(os.path.exists(missing))

    def test_two_decide_at_once(self):
        client = self.serve()
        held = self.hold(client)
        done = []

        def decide(verb):
            done.append(subprocess.run(
                [SERVER, "approvals", verb, held, "--ledger", self.ledger],
                stdin=subprocess.DEVNULL, capture_output=True, env=self.environment()).returncode)

        threads = [threading.Thread(target=decide, args=(verb,)) for verb in ("grant", "deny") * 3]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(sorted(done), [0] + [75] * 5)
        self.assertIn(self.state(client, held), ("granted", "denied"))


if __name__ == "__main__":
    unittest.main()
