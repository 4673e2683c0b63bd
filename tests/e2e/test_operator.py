"""The operator's side over HTTP: who may use it, approvals, and the inbox of works."""

import json
import os
import socket
import threading
import unittest

from http_support import HttpCase, HttpServer, call
from support import SERVER, needs_sandbox, patch_text, poll

CALLER = "a-token-of-the-callers-0123456789"
OPERATOR = "a-token-of-the-operator-9876543210"
ADD = patch_text("*** Add File: a.txt", "+one")


class OperatorCase(HttpCase):
    def serve(self, *arguments, caller=CALLER, operator=OPERATOR, approvals="confirm", top=None,
              **more):
        config = self.config({**(top or {}), "workspaces": {"ws": {
            "root": self.ws, "profile": "workspace-write", "approvals": approvals}}})
        env = {"CODESPACE_HTTP_TOKEN": caller, "CODESPACE_OPERATOR_TOKEN": operator}
        server = HttpServer(
            [SERVER, "--http", "--log-level", "info", "--port", "0", "--config", config,
             *arguments], self.environment(**env), self.dir, **more)
        self.addCleanup(self.stopped, server)
        return server

    def op(self, server, method, path, body=None, token=OPERATOR, **headers):
        own = {"Authorization": "Bearer " + token} if token else {}
        return self.ask(server, method, body, {**own, **headers}, path)

    def good(self, server, method, path, body=None, status=200):
        answer = self.op(server, method, path, body)
        self.assertEqual(answer.status, status, answer.body)
        self.assertEqual(answer.headers["content-type"], "application/json")
        self.assertEqual(answer.headers["cache-control"], "no-store")
        return answer.json

    def bad(self, status, code, server, method, path, body=None, **more):
        answer = self.op(server, method, path, body, **more)
        self.assertEqual((answer.status, answer.json["code"]), (status, code), answer.body)
        self.assertGreater(len(answer.json["message"]), 10)
        return answer

    def client(self, server):
        return self.session(server, headers={"Authorization": "Bearer " + CALLER})

    def tool(self, server, client, name, **arguments):
        answer = self.ask(server, headers=client, body=call(name, **arguments))
        self.assertEqual(answer.status, 200, answer.body)
        return answer.json["result"]

    def answer(self, server, client, name, **arguments):
        result = self.tool(server, client, name, **arguments)
        self.assertFalse(result.get("isError"), result)
        return result["structuredContent"]

    def error(self, server, client, name, **arguments):
        result = self.tool(server, client, name, **arguments)
        self.assertTrue(result.get("isError"), result)
        return json.loads(result["content"][0]["text"])

    def hold(self, server, client, patch=ADD):
        body = self.error(server, client, "apply_patch", workspace_id="ws", patch=patch)
        self.assertEqual(body["code"], "APPROVAL_REQUIRED")
        return body["approval_id"]


class Tokens(OperatorCase):
    PATHS = (("GET", "/operator/approvals"), ("POST", "/operator/approvals/%s/grant"),
             ("GET", "/inbox/works"), ("GET", "/operator"), ("GET", "/inbox/none"))

    def test_only_the_operators(self):
        server = self.serve()
        held = self.hold(server, self.client(server))
        for method, path in self.PATHS:
            path = path % held if "%" in path else path
            for token, status in ((CALLER, 403), (None, 401), (OPERATOR + "x", 401),
                                  (OPERATOR[:-1], 401), (CALLER + OPERATOR, 401)):
                with self.subTest(path=path, token=token):
                    self.assertEqual(self.op(server, method, path, token=token).status, status)
        twice = self.raw(server, (
            "POST /operator/approvals/%s/grant HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n"
            "Authorization: Bearer %s\r\nAuthorization: Bearer %s\r\n\r\n"
            % (held, CALLER, OPERATOR)).encode())
        self.assertIn(b" 401 ", twice.splitlines()[0])
        (one,) = self.good(server, "GET", "/operator/approvals")
        self.assertEqual((one["approval_id"], one["state"]), (held, "pending"))

    def test_it_is_no_callers_token(self):
        server = self.serve()
        listed = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        headers = {"Authorization": "Bearer " + OPERATOR}
        self.assertEqual(self.ask(server, body=listed, headers=headers).status, 401)

    def test_where_nobody_is_the_operator(self):
        server = self.serve(operator=None)
        for token in (CALLER, OPERATOR, None):
            self.bad(404, "UNAUTHORIZED", server, "GET", "/operator/approvals", token=token)

    def test_without_a_callers_token(self):
        server = self.serve(caller=None)
        self.assertEqual(self.op(server, "GET", "/operator/approvals", token=None).status, 401)
        self.assertEqual(self.good(server, "GET", "/operator/approvals"), [])

    def test_the_same_token_twice_is_refused(self):
        status, text = self.refused("--http", "--port", "0", env={
            "CODESPACE_HTTP_TOKEN": CALLER, "CODESPACE_OPERATOR_TOKEN": CALLER})
        self.assertEqual(status, 64)
        self.assertIn("operator", text)
        self.assertNotIn(CALLER, text)
        status, text = self.refused("--http", "--port", "0",
                                    env={"CODESPACE_OPERATOR_TOKEN": "short"})
        self.assertEqual(status, 64)

    def test_from_a_file(self):
        path = os.path.join(self.dir, "token")
        with open(path, "w") as f:
            f.write(OPERATOR + "\n")
        server = self.serve("--operator-token-file", path, operator=None)
        self.assertEqual(self.good(server, "GET", "/operator/approvals"), [])
        self.assertFalse([line for line in server.lines if OPERATOR in line])

    def test_pages_of_other_origins(self):
        server = self.serve("--allow-origin", "https://app.example")
        own = {"Host": "localhost:%d" % server.port}
        for headers, status in (({"Origin": "https://evil.example"}, 403),
                                ({"Host": "evil.example"}, 403),
                                ({"Origin": "https://app.example", **own}, 200)):
            with self.subTest(headers=headers):
                answer = self.op(server, "GET", "/inbox/works", **headers)
                self.assertEqual(answer.status, status)
                self.assertFalse([h for h in answer.headers if "access-control" in h])
        preflight = self.op(server, "OPTIONS", "/operator/approvals", token=None, **{
            "Origin": "https://app.example", "Access-Control-Request-Method": "GET"})
        self.assertEqual(preflight.status, 401)
        self.assertFalse([h for h in preflight.headers if "access-control" in h])

    def test_the_environment_of_commands(self):
        server = self.serve(approvals="off")
        client = self.client(server)
        done = self.answer(server, client, "exec_command", workspace_id="ws", wait_ms=60000,
                           command=["/bin/sh", "-c", "env; cat /proc/*/environ 2>/dev/null || :"])
        self.assertNotIn(OPERATOR, done["output"])
        self.assertNotIn(CALLER, done["output"])


class Places(OperatorCase):
    """What says who may do what does not lie where a command reaches it."""

    def token(self, *path):
        path = os.path.join(*path)
        with open(path, "w") as f:
            f.write(OPERATOR + "\n")
        os.chmod(path, 0o600)
        return path

    def test_in_a_workspace(self):
        config = self.config({"workspaces": {"ws": {"root": self.ws}}})
        path = self.token(self.ws, "token")
        for option in ("--operator-token-file", "--token-file", "--oauth-keys"):
            with self.subTest(option=option):
                status, text = self.refused("--http", "--port", "0", "--config", config,
                                            option, path)
                self.assertEqual(status, 78, text)
                self.assertIn(option, text)
                self.assertIn("workspace ws", text)
        for options in (("--http", "--unix-socket"), ("--runner", "uds", "--runner-durable"),
                        ("--runner", "uds", "--runner-socket")):
            with self.subTest(option=options[-1]):
                status, text = self.refused("--config", config, *options,
                                            os.path.join(self.ws, "new/place"))
                self.assertEqual(status, 78, text)
                self.assertIn("workspace ws", text)

    def test_in_a_temporary_directory_that_is_shared(self):
        config = self.config({"workspaces": {"ws": {"root": self.ws, "tmp": "shared"}}})
        for option, path in (("--operator-token-file", "/tmp/no-such-token"),
                             ("--ledger", "/tmp/no-such-place/ledger")):
            with self.subTest(option=option):
                status, text = self.refused("--http", "--port", "0", "--config", config,
                                            option, path, env={"TMPDIR": "/var/tmp"})
                self.assertEqual(status, 78, text)
                self.assertIn("would lie in /tmp, which workspace ws", text)

    @needs_sandbox
    def test_commands_that_read_everything(self):
        path = self.token(self.dir, "token")
        config = self.config({"workspaces": {"ws": {
            "root": self.ws, "profile": "workspace-write", "read": "all"}}})
        server = self.serve("--config", config, "--operator-token-file", path, operator=None)
        done = self.answer(server, self.client(server), "exec_command", workspace_id="ws",
                           command=["cat", path], wait_ms=60000)
        self.assertEqual(done["state"], "exited")
        self.assertNotIn(OPERATOR, done["output"])
        self.assertEqual(self.good(server, "GET", "/operator/approvals"), [])


class Approvals(OperatorCase):
    def test_grant_and_resume(self):
        server = self.serve()
        client = self.client(server)
        held = self.hold(server, client)
        (one,) = self.good(server, "GET", "/operator/approvals?workspace_id=ws")
        self.assertEqual(one["tool"], "apply_patch")
        self.assertIn('add "a.txt"', one["shown"])
        self.assertNotIn("arguments", one)
        whole = self.good(server, "GET", "/operator/approvals/" + held)
        self.assertEqual(whole["arguments"], {"workspace_id": "ws", "patch": ADD})
        decided = self.good(server, "POST", "/operator/approvals/%s/grant" % held)
        self.assertEqual(decided, {"approval_id": held, "state": "granted"})
        self.bad(409, "APPROVAL_CONFLICT", server, "POST", "/operator/approvals/%s/deny" % held)
        answer = self.answer(server, client, "operation_resume", approval_id=held)
        self.assertEqual(answer["apply_patch"]["status"], "applied")
        self.assertEqual(self.good(server, "GET", "/operator/approvals"), [])
        (ended,) = self.good(server, "GET", "/operator/approvals?all=1")
        self.assertEqual((ended["state"], ended["resolved_by"]), ("consumed", "operator_token"))

    def test_deny(self):
        server = self.serve()
        client = self.client(server)
        held = self.hold(server, client)
        self.good(server, "POST", "/operator/approvals/%s/deny" % held)
        error = self.error(server, client, "operation_resume", approval_id=held)
        self.assertEqual(error["code"], "APPROVAL_CONFLICT")

    def test_the_caller_cannot_grant(self):
        server = self.serve()
        client = self.client(server)
        held = self.hold(server, client)
        error = self.error(server, client, "approval_resolve", approval_id=held, decision="grant")
        self.assertEqual(error["code"], "UNAUTHORIZED")
        for path in ("/operator/approvals/%s/grant", "/mcp/../operator/approvals/%s/grant",
                     "/mcp?/operator/approvals/%s/grant"):
            answer = self.op(server, "POST", path % held, {}, token=CALLER)
            self.assertIn(answer.status, (400, 403, 404), path)
        self.assertEqual(self.good(server, "GET", "/operator/approvals")[0]["state"], "pending")

    def test_pages(self):
        server = self.serve()
        client = self.client(server)
        held = [self.hold(server, client, patch_text("*** Add File: %d.txt" % i, "+x"))
                for i in range(5)]
        path, seen = "/operator/approvals?limit=2&workspace_id=ws", []
        while path:
            answer = self.op(server, "GET", path)
            seen += [a["approval_id"] for a in answer.json]
            link = answer.headers.get("link")
            path = link[1:link.index(">")] if link else None
        self.assertEqual(seen, held[::-1])

    def test_what_is_no_request(self):
        server = self.serve()
        for status, code, method, path in (
                (404, "APPROVAL_NOT_FOUND", "GET", "/operator/approvals/appr-none"),
                (404, "APPROVAL_NOT_FOUND", "POST", "/operator/approvals/appr-none/grant"),
                (404, "INVALID_ARGUMENT", "GET", "/operator/approvals/" + "a" * 200),
                (404, "INVALID_ARGUMENT", "GET", "/operator/approvals/a%2e"),
                (404, "INVALID_ARGUMENT", "GET", "/operator/approvals/x/grant/y"),
                (405, "METHOD_NOT_FOUND", "GET", "/operator/approvals/x/grant"),
                (405, "METHOD_NOT_FOUND", "DELETE", "/operator/approvals/x"),
                (400, "INVALID_ARGUMENT", "GET", "/operator/approvals?limit=x"),
                (400, "INVALID_ARGUMENT", "GET", "/operator/approvals?colour=red"),
                (400, "INVALID_ARGUMENT", "GET", "/operator/approvals?workspace_id=a%0d%0ab"),
                (400, "OUTPUT_LIMIT", "GET", "/operator/approvals?limit=100000")):
            with self.subTest(path=path):
                self.bad(status, code, server, method, path)

    def test_many_at_once_decide_once(self):
        server = self.serve()
        held = self.hold(server, self.client(server))
        found = []

        def decide(verb):
            path = "/operator/approvals/%s/%s" % (held, verb)
            found.append(self.op(server, "POST", path).status)

        threads = [threading.Thread(target=decide, args=(v,)) for v in ("grant", "deny") * 8]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(sorted(found), [200] + [409] * 15)


class Elicitation(OperatorCase):
    def test_over_http_only_when_it_was_said(self):
        """Whoever has the clients' token could answer the question it asked for itself."""
        server = self.serve()
        client = self.session(server, headers={"Authorization": "Bearer " + CALLER},
                              capabilities={"elicitation": {}})
        self.hold(server, client)
        meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}
        done = self.modern(server, "tools/call", {
            "name": "apply_patch", "arguments": {"workspace_id": "ws", "patch": ADD}}, meta=meta,
            headers={"Authorization": "Bearer " + CALLER}).json["result"]
        self.assertEqual(done["resultType"], "complete")
        self.assertIn("APPROVAL_REQUIRED", done["content"][0]["text"])

    def test_over_a_legacy_session(self):
        server = self.serve(top={"approvals": {"elicitation": True}})
        client = self.session(server, headers={"Authorization": "Bearer " + CALLER},
                              capabilities={"elicitation": {}})
        stream = self.ask(server, headers=client, stream=True, body=call(
            "apply_patch", workspace_id="ws", patch=ADD))
        question = None
        while question is None:
            question = stream.event()[1]
        self.assertEqual(question["method"], "elicitation/create")
        # Another session, even one of the same caller, cannot answer it.
        other = self.client(server)
        reply = {"jsonrpc": "2.0", "id": question["id"], "result": {
            "action": "accept", "content": {"decision": "allow once"}}}
        self.ask(server, headers=other, body=reply)
        self.assertEqual(os.listdir(self.ws), [])
        self.assertEqual(self.ask(server, headers=client, body=reply).status, 202)
        answer = stream.event()[1]
        self.assertEqual(answer["result"]["structuredContent"]["status"], "applied")


class Inbox(OperatorCase):
    def setUp(self):
        super().setUp()
        self.server = self.serve(approvals="off")
        self.caller = self.client(self.server)

    def steer(self, name, **arguments):
        return self.answer(self.server, self.caller, name, **arguments)

    def work(self, title="a title"):
        return self.steer("work_open", workspace_id="ws", title=title)["work_id"]

    def add(self, work, body, queue=True, **more):
        made = self.good(self.server, "POST", "/inbox/works/%s/intents" % work,
                         {"body": body, **more}, status=201)
        self.assertEqual((made["state"], made["revision"]), ("draft", 1))
        if queue:
            made = self.good(self.server, "POST", "/inbox/intents/%s/queue" % made["intent_id"],
                             {"revision": 1})
            self.assertEqual(made["state"], "queued")
        return made

    def test_from_draft_to_done(self):
        work = self.work()
        (shown,) = self.good(self.server, "GET", "/inbox/works?workspace_id=ws")
        self.assertEqual((shown["work_id"], shown["title"], shown["state"]),
                         (work, "a title", "active"))
        self.assertEqual(self.good(self.server, "GET", "/inbox/works/" + work)["work_id"], work)
        self.add(work, "a draft", queue=False, delivery="next_checkpoint")
        made = self.add(work, "do this", delivery="next_checkpoint", kind="note")
        status = self.steer("steer_status", work_id=work)
        self.assertEqual((status["queued"], status["claimable_now"], status["claimed"]), (1, 1, 0))
        item = self.steer("steer_claim_next", work_id=work)["item"]
        self.assertEqual(item, {"intent_id": made["intent_id"], "revision": item["revision"],
                                "kind": "note", "delivery": "next_checkpoint",
                                "content": "do this"})
        self.assertEqual(self.steer("steer_claim_next", work_id=work), {})
        self.bad(409, "INTENT_ALREADY_CLAIMED", self.server, "PATCH",
                 "/inbox/intents/" + made["intent_id"], {"revision": 3, "body": "other"})
        self.assertEqual(self.steer("work_finish", work_id=work)["reason"], "pending_user_input")
        done = self.steer("steer_complete", work_id=work, intent_id=made["intent_id"])
        self.assertEqual((done["state"], done["body"]), ("done", "do this"))
        self.assertEqual(self.error(self.server, self.caller, "steer_complete", work_id=work,
                                    intent_id=made["intent_id"])["code"], "INTENT_NOT_EDITABLE")
        finished = self.steer("work_finish", work_id=work)
        self.assertEqual((finished["closed"], finished["state"]), (True, "closed"))
        self.assertEqual(self.error(self.server, self.caller, "work_finish", work_id=work)["code"],
                         "WORK_CLOSED")

    def test_after_the_work(self):
        work = self.work()
        self.add(work, "afterwards")
        self.assertEqual(self.steer("steer_claim_next", work_id=work), {})
        finished = self.steer("work_finish", work_id=work)
        self.assertEqual((finished["closed"], finished["state"], finished["queued"]),
                         (False, "closing", 1))
        item = self.steer("steer_claim_next", work_id=work)["item"]
        blocked = self.steer("steer_complete", work_id=work, intent_id=item["intent_id"],
                             outcome="blocked")
        self.assertEqual(blocked["state"], "blocked")
        self.assertTrue(self.steer("work_finish", work_id=work)["closed"])
        later = self.good(self.server, "POST", "/inbox/works/%s/intents" % work,
                          {"body": "late"}, status=201)
        self.assertEqual(later["delivery"], "next_work")
        self.assertNotIn("work_id", later)

    def test_edit_cancel_reorder(self):
        work = self.work()
        one = self.add(work, "one", delivery="next_checkpoint")
        two = self.add(work, "two", delivery="next_checkpoint")
        path = "/inbox/intents/" + one["intent_id"]
        self.bad(409, "INTENT_REVISION_CONFLICT", self.server, "PATCH", path,
                 {"revision": one["revision"] + 1, "body": "x"})
        edited = self.good(self.server, "PATCH", path,
                           {"revision": one["revision"], "body": "uno"})
        self.assertEqual((edited["body"], edited["delivery"]), ("uno", "next_checkpoint"))
        order = [two["intent_id"], one["intent_id"]]
        listed = self.good(self.server, "POST", "/inbox/works/%s/reorder" % work,
                           {"intent_ids": order})
        self.assertEqual([i["intent_id"] for i in listed], order)
        self.bad(409, "INTENT_REVISION_CONFLICT", self.server, "POST",
                 "/inbox/works/%s/reorder" % work, {"intent_ids": order[:1]})
        self.assertEqual(self.steer("steer_claim_next", work_id=work)["item"]["content"], "two")
        cancelled = self.good(self.server, "POST", path + "/cancel")
        self.assertEqual(cancelled["state"], "cancelled")
        self.bad(400, "INTENT_NOT_EDITABLE", self.server, "POST", path + "/cancel")
        pages = []
        path = "/inbox/works/%s/intents?limit=1" % work
        while path:
            answer = self.op(self.server, "GET", path)
            pages += [i["body"] for i in answer.json]
            link = answer.headers.get("link")
            path = link[1:link.index(">")] if link else None
        self.assertEqual(pages, ["two", "uno"])

    def test_stop(self):
        work = self.work()
        markers = [self.marker(), self.marker()]
        for marker in markers:
            self.steer("exec_command", workspace_id="ws", command=["sleep", marker])
        stopped = self.good(self.server, "POST", "/inbox/works/%s/stop" % work,
                            {"reason": "wrong direction"})
        self.assertEqual((stopped["ok"], stopped["killed"]), (True, 2))
        self.assertEqual((stopped["intent"]["kind"], stopped["intent"]["state"]),
                         ("stop_notice", "claimed"))
        for marker in markers:
            self.assert_gone(marker)
        self.bad(409, "INTENT_ALREADY_CLAIMED", self.server, "POST",
                 "/inbox/intents/%s/cancel" % stopped["intent"]["intent_id"])
        self.add(work, "next", delivery="next_checkpoint")
        item = self.steer("steer_claim_next", work_id=work)["item"]
        self.assertEqual((item["kind"], item["content"]), ("stop_notice", "wrong direction"))
        self.assertEqual(self.steer("steer_claim_next", work_id=work)["item"]["content"], "next")
        again = self.good(self.server, "POST", "/inbox/works/%s/stop" % work)
        self.assertEqual(again["killed"], 0)

    def test_bodies_that_are_none(self):
        work = self.work()
        path = "/inbox/works/%s/intents" % work
        for status, code, body in (
                (400, "INVALID_ARGUMENT", {}), (400, "INVALID_ARGUMENT", {"body": ""}),
                (400, "INVALID_ARGUMENT", {"body": "x", "state": "queued"}),
                (400, "INVALID_ARGUMENT", {"body": "x", "kind": "order"}),
                (400, "INVALID_ARGUMENT", {"body": "x", "kind": "stop_notice"}),
                (400, "PARSE_ERROR", "{"), (400, "INVALID_ARGUMENT", []),
                (413, "LIMIT_EXCEEDED", {"body": "x" * (1 << 20)})):
            with self.subTest(body=str(body)[:40]):
                self.bad(status, code, self.server, "POST", path, body)
        self.bad(404, "WORK_NOT_FOUND", self.server, "POST", "/inbox/works/work-none/intents",
                 {"body": "x"})
        self.bad(404, "WORK_NOT_FOUND", self.server, "POST", "/inbox/works/work-none/stop")
        self.bad(404, "INTENT_NOT_FOUND", self.server, "POST", "/inbox/intents/none/cancel")

    def test_the_hint(self):
        self.write("f.txt", "text\n")
        read = lambda **more: self.steer("read", workspace_id="ws", path="f.txt", **more)
        self.assertNotIn("coordination", read())
        work = self.work()
        quiet = read()["coordination"]
        self.assertEqual((quiet["work_id"], quiet["pending_user_items"]), (work, 0))
        self.add(work, "look here", delivery="next_checkpoint")
        hint = {"work_id": work, "pending_user_items": 1,
                "queue_revision": read()["coordination"]["queue_revision"]}
        self.assertEqual(read(work_id=work)["coordination"], hint)
        started = self.steer("exec_command", workspace_id="ws", command=["cat"])
        self.assertEqual(started["coordination"], hint)
        process = started["process_id"]
        for name, arguments in (("process_status", {}), ("write_stdin", {"data": "x"}),
                                ("read_process", {}), ("terminate_process", {})):
            with self.subTest(tool=name):
                answer = self.steer(name, process_id=process, **arguments)
                self.assertEqual(answer["coordination"], hint)
        self.assertEqual(self.steer("apply_patch", workspace_id="ws", patch=ADD)["coordination"],
                         hint)
        self.assertEqual(self.steer("find", workspace_id="ws")["coordination"], hint)
        # Unknown: no hint and no error. Two open: only the one that is named.
        self.assertNotIn("coordination", read(work_id="work-none"))
        second = self.work()
        self.assertNotIn("coordination", read())
        self.assertEqual(read(work_id=second)["coordination"]["pending_user_items"], 0)
        self.steer("work_finish", work_id=second)
        self.assertEqual(read()["coordination"]["work_id"], work)

    def test_no_way_to_open_a_work(self):
        self.bad(405, "METHOD_NOT_FOUND", self.server, "POST", "/inbox/works", {"title": "x"})

    def test_a_client_that_goes_away(self):
        work = self.work()
        for _ in range(20):
            self.raw_go("POST /inbox/works/%s/stop HTTP/1.1\r\nHost: localhost\r\n"
                        "Authorization: Bearer %s\r\nContent-Length: 0\r\n\r\n" % (work, OPERATOR))
        poll(lambda: len(self.good(self.server, "GET", "/inbox/works/%s/intents" % work)) == 20)
        self.assertEqual(
            len(self.good(self.server, "GET", "/inbox/works/%s/intents" % work)), 20)

    def raw_go(self, text):
        with socket.create_connection(("127.0.0.1", self.server.port)) as s:
            s.sendall(text.encode())


if __name__ == "__main__":
    unittest.main()
