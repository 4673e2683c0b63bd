"""Tasks: calls that go on while their client does something else, in both revisions that know them,
mapped onto processes."""

import json
import os
import re
import signal

from http_support import HttpCase
from mcp_client import RpcError
from support import Case, needs_sandbox, poll, running

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {
        "extensions": {"io.modelcontextprotocol/tasks": {}}
    },
}
ASKED = {**META, "io.modelcontextprotocol/clientCapabilities": {
    "elicitation": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}}}
PLAIN = {**META, "io.modelcontextprotocol/clientCapabilities": {}}
RELATED = "io.modelcontextprotocol/related-task"
STAMP = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")


def command(script, **arguments):
    return {"name": "exec_command",
            "arguments": {"workspace_id": "ws", "command": ["/bin/sh", "-c", script], **arguments}}


# Goes on when a file is there, so it needs nobody to wait for its start.
WAITS = "while [ ! -e go ]; do sleep 0.05; done; read x < go; echo got $x"


class Gate:
    def go(self):
        """Let WAITS end."""
        self.write("go.new", "it\n")
        os.rename(self.path("go.new"), self.path("go"))


class TaskCase(Gate, Case):
    def setUp(self):
        super().setUp()
        self.client = self.start()

    def begin(self, script, task=None, **arguments):
        """A command as a task of the older revision."""
        params = {**command(script, **arguments), "task": task if task is not None else {}}
        return self.client.request("tools/call", params)["task"]

    def get(self, ident):
        return self.client.request("tasks/get", {"taskId": ident})

    def refused(self, code, method, **params):
        with self.assertRaises(RpcError) as caught:
            self.client.request(method, params)
        self.assertEqual(caught.exception.code, code, caught.exception.message)
        return caught.exception


class Older(TaskCase):
    def test_is_declared(self):
        client = self.launch("--workspace", "ws=" + self.ws)
        declared = client.initialize()["capabilities"]["tasks"]
        self.assertEqual(declared, {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}})
        tools = {t["name"]: t for t in client.request("tools/list")["tools"]}
        self.assertEqual(tools["exec_command"]["execution"], {"taskSupport": "optional"})
        self.assertNotIn("execution", tools["read"])
        limits = client.call("workspace_info")["limits"]
        self.assertEqual([limits[n] for n in ("tasks", "task_ttl_ms", "task_result_bytes",
                                              "task_results_bytes")],
                         [256, 86400000, 16 << 20, 64 << 20])

    @needs_sandbox
    def test_from_start_to_result(self):
        task = self.begin(WAITS + "; exit 3", {"ttl": 60000})
        self.assertEqual((task["status"], task["ttl"]), ("working", 60000))
        for key in ("createdAt", "lastUpdatedAt"):
            self.assertRegex(task[key], STAMP)
        self.assertEqual(self.get(task["taskId"])["status"], "working")
        waits = self.client.begin("tasks/result", {"taskId": task["taskId"]})
        self.go()
        result = self.client.finish(waits)
        self.assertEqual(result["_meta"][RELATED], {"taskId": task["taskId"]})
        answer = result["structuredContent"]
        self.assertEqual((answer["output"], answer["exit_code"]), ("got it\n", 3))
        self.assertEqual(json.loads(result["content"][0]["text"]), answer)
        self.assertEqual(self.get(task["taskId"])["status"], "completed")
        again = self.client.request("tasks/result", {"taskId": task["taskId"]})
        self.assertEqual(again, result)

    @needs_sandbox
    def test_the_end_is_told_to_who_made_it(self):
        task = self.begin("echo x")
        told = poll(lambda: [n for n in self.client.notifications
                             if n["method"] == "notifications/tasks/status"])
        self.assertEqual([(n["params"]["taskId"], n["params"]["status"]) for n in told],
                         [(task["taskId"], "completed")])
        self.assertIn("ttl", told[0]["params"])

    @needs_sandbox
    def test_it_waits_longer_than_wait_ms(self):
        task = self.begin("sleep 1.2; echo done", wait_ms=1)
        answer = self.client.request("tasks/result", {"taskId": task["taskId"]})
        self.assertEqual(answer["structuredContent"]["output"], "done\n")

    @needs_sandbox
    def test_cancel_ends_the_tree(self):
        marker = self.marker()
        task = self.begin("setsid sleep %s & sleep %s" % (marker, marker))
        self.assertTrue(poll(lambda: len(running("sleep " + marker)) >= 2))
        waits = self.client.begin("tasks/result", {"taskId": task["taskId"]})
        gone = self.client.request("tasks/cancel", {"taskId": task["taskId"]})
        self.assertEqual((gone["taskId"], gone["status"]), (task["taskId"], "cancelled"))
        with self.assertRaises(RpcError):
            self.client.finish(waits)
        self.assertTrue(poll(lambda: not running("sleep " + marker)))
        self.refused(-32602, "tasks/cancel", taskId=task["taskId"])
        self.assertEqual(self.get(task["taskId"])["status"], "cancelled")

    @needs_sandbox
    def test_list_shows_a_session_its_own(self):
        first, second = self.begin("true"), self.begin("true")
        listed = self.client.request("tasks/list")["tasks"]
        self.assertEqual([t["taskId"] for t in listed], [first["taskId"], second["taskId"]])
        self.refused(-32602, "tasks/list", cursor="x")

    def test_a_failure_is_told(self):
        task = self.client.request(
            "tools/call", {**command("true", cwd="none"), "task": {}})["task"]
        self.assertEqual(task["status"], "failed")
        result = self.client.request("tasks/result", {"taskId": task["taskId"]})
        self.assertTrue(result["isError"])
        self.assertIn("FILE_NOT_FOUND", result["content"][0]["text"])

    def test_what_is_refused(self):
        for method in ("tasks/get", "tasks/result", "tasks/cancel"):
            self.refused(-32602, method, taskId="task-none")
            self.refused(-32602, method)
        for ttl in (0, -1, "x", 1.5):
            self.refused(-32602, "tools/call", **command("true"), task={"ttl": ttl})
        self.refused(-32601, "tools/call", name="read",
                     arguments={"workspace_id": "ws", "path": "x"}, task={})
        self.refused(-32601, "tasks/update", taskId="x")

    @needs_sandbox
    def test_other_revisions_take_no_task(self):
        client = self.launch("--workspace", "ws=" + self.ws)
        self.assertNotIn("tasks", client.initialize("2025-06-18")["capabilities"])
        answer = client.request("tools/call", {**command("echo x", wait_ms=60000), "task": {}})
        self.assertEqual(answer["structuredContent"]["output"], "x\n")

    @needs_sandbox
    def test_a_task_that_runs_ends_with_the_server(self):
        marker = self.marker()
        self.begin("sleep " + marker)
        self.assertTrue(poll(lambda: running("sleep " + marker)))
        self.assertEqual(self.client.close(), 0)
        self.assertTrue(poll(lambda: not running("sleep " + marker)))

    @needs_sandbox
    def test_there_is_room_for_new_ones(self):
        first = self.begin("true")["taskId"]
        self.client.request("tasks/result", {"taskId": first})
        for _ in range(256):
            last = self.client.request("tools/call", {**command("true", cwd="none"), "task": {}})
        self.assertEqual(self.get(last["task"]["taskId"])["status"], "failed")
        self.refused(-32602, "tasks/get", taskId=first)


class Newer(TaskCase):
    def modern(self, method, meta=META, **params):
        return self.client.request(method, {"_meta": meta, **params})

    def test_is_declared(self):
        declared = self.modern("server/discover")["capabilities"]["extensions"]
        self.assertEqual(declared, {"io.modelcontextprotocol/tasks": {}})

    @needs_sandbox
    def test_a_long_command_is_a_task(self):
        task = self.modern("tools/call", **command(WAITS, wait_ms=60000))
        self.assertEqual((task["resultType"], task["status"]), ("task", "working"))
        self.assertIsInstance(task["ttlMs"], int)
        working = self.modern("tasks/get", taskId=task["taskId"])
        self.assertEqual((working["resultType"], working["status"]), ("complete", "working"))
        self.assertNotIn("result", working)
        self.go()
        done = poll(lambda: (t := self.modern("tasks/get", taskId=task["taskId"]))
                    and t["status"] == "completed" and t)
        self.assertEqual(done["result"]["structuredContent"]["output"], "got it\n")
        self.assertEqual(self.modern("tasks/cancel", taskId=task["taskId"])["resultType"],
                         "complete")
        self.assertEqual(self.modern("tasks/update", taskId=task["taskId"],
                                     inputResponses={})["resultType"], "complete")

    @needs_sandbox
    def test_who_listens_is_told(self):
        task = self.modern("tools/call", **command(WAITS, wait_ms=60000))
        listen = self.client.begin("subscriptions/listen", {
            "_meta": META, "notifications": {"taskIds": [task["taskId"], "task-none"]}})
        self.assertTrue(poll(lambda: self.client.notifications))
        first = self.client.notifications.pop(0)
        self.assertEqual(first["params"]["notifications"], {"taskIds": [task["taskId"]]})
        self.go()
        self.assertTrue(poll(lambda: self.client.notifications))
        told = self.client.notifications.pop(0)
        self.assertEqual((told["method"], told["params"]["status"], told["params"]["taskId"]),
                         ("notifications/tasks", "completed", task["taskId"]))
        self.assertEqual(told["params"]["result"]["structuredContent"]["output"], "got it\n")
        self.assertEqual(told["params"]["_meta"],
                         {"io.modelcontextprotocol/subscriptionId": listen})

    @needs_sandbox
    def test_a_short_one_is_answered(self):
        for meta, script in ((META, "echo x"), (PLAIN, "sleep 1.5; echo x")):
            # One that this machine starts too slowly for the second it gets is no short one.
            answer = poll(lambda: (a := self.modern(
                "tools/call", meta=meta, **command(script, wait_ms=60000)))
                and (meta == PLAIN or a["resultType"] == "complete") and a)
            self.assertEqual(answer["resultType"], "complete")
            self.assertEqual(answer["structuredContent"]["output"], "x\n")

    @needs_sandbox
    def test_cancelled_before_it_was_told(self):
        for _ in range(20):  # again where the second was over, and it was told, before it ran
            marker = self.marker()
            ident = self.client.begin(
                "tools/call", {"_meta": META, **command("sleep " + marker, wait_ms=60000)})
            self.assertTrue(poll(lambda: running("sleep " + marker)))
            self.client.notify("notifications/cancelled", {"requestId": ident})
            poll(lambda: not running("sleep " + marker) or self.client.answered(ident))
            if not self.client.answered(ident):
                break
            self.modern("tasks/cancel", taskId=self.client.finish(ident)["taskId"])
        self.assertFalse(self.client.answered(ident))
        self.assertTrue(poll(lambda: not running("sleep " + marker)))

    def test_who_did_not_declare_it(self):
        for method in ("tasks/get", "tasks/cancel", "tasks/update"):
            error = self.refused(-32021, method, _meta=PLAIN, taskId="x")
            self.assertIn("io.modelcontextprotocol/tasks",
                          error.data["requiredCapabilities"]["extensions"])
        for method in ("tasks/list", "tasks/result"):
            self.refused(-32601, method, _meta=META, taskId="x")
        self.refused(-32602, "tasks/get", _meta=META, taskId="task-none")


class Asking(TaskCase):
    """A workspace in which a person is asked: a call does not lose the question by being a task."""

    TOUCH = "echo ran >> ran.txt; sleep 1.5; echo out"

    def setUp(self):
        super().setUp()
        path = self.config({"workspaces": {"ws": {
            "root": self.ws, "profile": "workspace-write", "approvals": "confirm"}}})
        self.client = self.launch("--config", path)
        self.client.initialize(capabilities={"elicitation": {}})

    def state(self, approval_id):
        return self.client.call("approval_resolve", approval_id=approval_id)["state"]

    def held(self):
        """The id of the only hold, as the same call meets it when its client cannot be asked."""
        answer = self.client.request("tools/call", {
            "_meta": PLAIN, **command(self.TOUCH, wait_ms=1001)})
        return json.loads(answer["content"][0]["text"])["approval_id"]

    def modern(self, method, **params):
        return self.client.request(method, {"_meta": ASKED, **params})

    def ask_modern(self, script=TOUCH):
        task = self.modern("tools/call", **command(script, wait_ms=1001))
        self.assertEqual((task["resultType"], task["status"]), ("task", "input_required"))
        ((key, question),) = self.modern(
            "tasks/get", taskId=task["taskId"])["inputRequests"].items()
        self.assertEqual(question["method"], "elicitation/create")
        self.assertIn(script, question["params"]["message"])
        self.assertFalse(os.path.exists(self.path("ran.txt")))
        return task["taskId"], key

    def reply_modern(self, ident, key, action, decision=None):
        answer = {"action": action, **({"content": {"decision": decision}} if decision else {})}
        done = self.modern("tasks/update", taskId=ident, inputResponses={key: answer})
        self.assertEqual(done["resultType"], "complete")
        return poll(lambda: (t := self.modern("tasks/get", taskId=ident))
                    and t["status"] == "completed" and t["result"])

    @needs_sandbox
    def test_allowed(self):
        ident, key = self.ask_modern()
        answer = self.reply_modern(ident, key, "accept", "allow once")["structuredContent"]
        # It is waited for to its end, whatever wait_ms says.
        self.assertEqual((answer["output"], answer["exit_code"]), ("out\n", 0))
        self.assertEqual(self.bytes_of("ran.txt"), b"ran\n")

    def test_declined(self):
        result = self.reply_modern(*self.ask_modern(), "decline")
        self.assertTrue(result["isError"])
        self.assertIn("APPROVAL_CONFLICT", result["content"][0]["text"])
        self.assertFalse(os.path.exists(self.path("ran.txt")))

    def test_cancelled_before_an_answer(self):
        ident, key = self.ask_modern()
        self.modern("tasks/cancel", taskId=ident)
        self.modern("tasks/update", taskId=ident,
                    inputResponses={key: {"action": "accept",
                                          "content": {"decision": "allow once"}}})
        self.assertEqual(self.modern("tasks/get", taskId=ident)["status"], "cancelled")
        self.assertEqual(self.state(self.held()), "pending")
        self.assertFalse(os.path.exists(self.path("ran.txt")))

    @needs_sandbox
    def test_cancelled_while_it_runs(self):
        marker = self.marker()
        ident, key = self.ask_modern("sleep " + marker)
        self.modern("tasks/update", taskId=ident,
                    inputResponses={key: {"action": "accept",
                                          "content": {"decision": "allow once"}}})
        self.assertTrue(poll(lambda: running("sleep " + marker)))
        self.assertEqual(self.modern("tasks/get", taskId=ident)["status"], "working")
        self.modern("tasks/cancel", taskId=ident)
        self.assert_gone("sleep " + marker)

    def test_who_cannot_be_asked_gets_the_hold(self):
        answer = self.client.request(
            "tools/call", {"_meta": META, **command(self.TOUCH, wait_ms=60000)})
        self.assertEqual((answer["resultType"], answer["isError"]), ("complete", True))
        self.assertEqual(self.state(json.loads(answer["content"][0]["text"])["approval_id"]),
                         "pending")

    @needs_sandbox
    def test_the_older_revision_asks_who_waits_for_the_result(self):
        task = self.begin(self.TOUCH)
        self.assertTrue(poll(lambda: self.get(task["taskId"])["status"] == "input_required"))
        waits = self.client.begin("tasks/result", {"taskId": task["taskId"]})
        question = poll(lambda: [n for n in self.client.notifications if "id" in n])[0]
        self.assertEqual(question["method"], "elicitation/create")
        self.assertEqual(question["params"]["_meta"][RELATED], {"taskId": task["taskId"]})
        self.assertIn(self.TOUCH, question["params"]["message"])
        self.client.send({"jsonrpc": "2.0", "id": question["id"], "result": {
            "action": "accept", "content": {"decision": "allow once"}}})
        answer = self.client.finish(waits)["structuredContent"]
        self.assertEqual((answer["output"], answer["exit_code"]), ("out\n", 0))


class OverHttp(Gate, HttpCase):
    """A task belongs to the server, not to the session or the connection that made it."""

    def setUp(self):
        super().setUp()
        self.server = self.serve()

    def legacy(self, headers, method, **params):
        answer = self.ask(self.server, headers=headers, body={
            "jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        self.assertEqual(answer.status, 200, answer.body)
        return answer.json

    def begin(self, headers, script):
        return self.legacy(headers, "tools/call", **command(script), task={})[
            "result"]["task"]["taskId"]

    def status(self, headers, ident):
        return self.legacy(headers, "tasks/get", taskId=ident)["result"]["status"]

    def end(self, headers):
        self.assertIn(self.ask(self.server, "DELETE", headers=headers).status, (200, 202, 204))
        gone = self.ask(self.server, headers=headers,
                        body={"jsonrpc": "2.0", "id": 1, "method": "ping"})
        self.assertEqual(gone.status, 404)

    @needs_sandbox
    def test_it_outlives_its_session(self):
        first, second = self.session(self.server), self.session(self.server)
        ident = self.begin(first, WAITS)
        self.assertEqual([t["taskId"] for t in self.legacy(first, "tasks/list")["result"]["tasks"]],
                         [ident])
        self.end(first)
        self.assertEqual(self.legacy(second, "tasks/list")["result"]["tasks"], [])
        self.assertEqual(self.status(second, ident), "working")
        self.go()
        result = self.legacy(second, "tasks/result", taskId=ident)["result"]
        self.assertEqual(result["structuredContent"]["output"], "got it\n")
        self.assertEqual(self.status(self.session(self.server), ident), "completed")

    @needs_sandbox
    def test_another_session_cancels_it(self):
        marker = self.marker()
        first, second = self.session(self.server), self.session(self.server)
        ident = self.begin(first, "sleep " + marker)
        self.assertTrue(poll(lambda: running("sleep " + marker)))
        self.end(first)
        self.assertTrue(running("sleep " + marker))
        self.assertEqual(self.legacy(second, "tasks/cancel", taskId=ident)["result"]["status"],
                         "cancelled")
        self.assert_gone("sleep " + marker)

    @needs_sandbox
    def test_who_waited_goes_away(self):
        headers = self.session(self.server)
        ident = self.begin(headers, WAITS)
        with self.assertRaises(TimeoutError):
            self.raw(self.server, self.waiting(headers, ident), seconds=0.3)
        self.assertEqual(self.status(headers, ident), "working")
        self.go()
        result = self.legacy(headers, "tasks/result", taskId=ident)["result"]
        self.assertEqual(result["structuredContent"]["output"], "got it\n")

    def waiting(self, headers, ident):
        body = json.dumps({"jsonrpc": "2.0", "id": 2, "method": "tasks/result",
                           "params": {"taskId": ident}})
        lines = ["POST /mcp HTTP/1.1", "Host: 127.0.0.1:%d" % self.server.port,
                 "Content-Type: application/json",
                 "Accept: application/json, text/event-stream",
                 "Content-Length: %d" % len(body), *("%s: %s" % h for h in headers.items())]
        return ("\r\n".join(lines) + "\r\n\r\n" + body).encode()

    @needs_sandbox
    def test_it_ends_with_the_server(self):
        marker = self.marker()
        headers = self.session(self.server)
        self.begin(headers, "sleep " + marker)
        self.assertTrue(poll(lambda: running("sleep " + marker)))
        self.assertEqual(self.server.stop(signal.SIGTERM), 0)
        self.assert_gone("sleep " + marker)

    def newer(self, method, ident, name=None, **more):
        headers = {"Mcp-Name": name or ident}
        return self.modern(self.server, method, {"taskId": ident, **more}, meta=META,
                           headers=headers)

    @needs_sandbox
    def test_the_newer_revision(self):
        made = self.modern(self.server, "tools/call", command(WAITS, wait_ms=60000), meta=META)
        task = made.json["result"]
        self.assertEqual((task["resultType"], task["status"]), ("task", "working"))
        ident = task["taskId"]
        for method in ("tasks/get", "tasks/cancel", "tasks/update"):
            wrong = self.newer(method, ident, name="task-none", inputResponses={})
            self.assertEqual((wrong.status, wrong.json["error"]["code"]), (400, -32020))
        stream = self.modern(self.server, "subscriptions/listen",
                             {"notifications": {"taskIds": [ident]}}, meta=META, stream=True)
        self.assertIn("acknowledged", json.dumps(stream.event()))
        self.go()
        told = json.dumps(stream.event())
        self.assertIn("notifications/tasks", told)
        self.assertIn("completed", told)
        done = self.newer("tasks/get", ident).json["result"]
        self.assertEqual(done["result"]["structuredContent"]["output"], "got it\n")
        stream.close()

    @needs_sandbox
    def test_a_question_reaches_who_waits_for_the_result(self):
        root = self.make_dir("asks")
        path = self.config({"workspaces": {"asks": {
            "root": root, "profile": "workspace-write", "approvals": "confirm"}},
            "approvals": {"elicitation": True}})
        self.server = self.serve("--config", path)
        headers = self.session(self.server, capabilities={"elicitation": {}})
        call = command("echo ran > ran.txt")
        call["arguments"]["workspace_id"] = "asks"
        ident = self.legacy(headers, "tools/call", **call, task={})["result"]["task"]["taskId"]
        self.assertTrue(poll(lambda: self.status(headers, ident) == "input_required"))
        stream = self.ask(self.server, headers=headers, stream=True, body={
            "jsonrpc": "2.0", "id": 2, "method": "tasks/result", "params": {"taskId": ident}})
        question = self.message(stream)
        self.assertEqual(question["method"], "elicitation/create")
        self.assertEqual(question["params"]["_meta"][RELATED], {"taskId": ident})
        done = self.ask(self.server, headers=headers, body={
            "jsonrpc": "2.0", "id": question["id"], "result": {
                "action": "accept", "content": {"decision": "allow once"}}})
        self.assertEqual(done.status, 202)
        result = self.message(stream)["result"]
        self.assertEqual(result["structuredContent"]["exit_code"], 0)
        with open(root + "/ran.txt") as f:
            self.assertEqual(f.read(), "ran\n")

    @needs_sandbox
    def test_progress_finds_the_client(self):
        """On the session's own stream, and on that of tasks/result while one is open."""
        headers = self.session(self.server)
        own = self.ask(self.server, "GET", headers=headers, stream=True)
        ident = self.legacy(headers, "tools/call", **command(WAITS), task={},
                            _meta={"progressToken": "tok"})["result"]["task"]["taskId"]
        first = self.message(own)
        waits = self.ask(self.server, headers=headers, stream=True, body={
            "jsonrpc": "2.0", "id": 2, "method": "tasks/result", "params": {"taskId": ident}})
        second = self.message(waits)
        for one in (first, second):
            self.assertEqual(one["method"], "notifications/progress")
            self.assertEqual(one["params"]["progressToken"], "tok")
            self.assertEqual(one["params"]["_meta"], {RELATED: {"taskId": ident}})
        self.assertLess(first["params"]["progress"], second["params"]["progress"])
        self.go()
        self.assertEqual(self.message(waits)["result"]["structuredContent"]["output"], "got it\n")
        self.assertEqual(self.message(own)["method"], "notifications/tasks/status")

    def message(self, stream):
        """The next on the stream; an event without one only gives an id to come back with."""
        while True:
            event = stream.event()
            self.assertIsNotNone(event, "the stream ended")
            if event[1] is not None:
                return event[1]
