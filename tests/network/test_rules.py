"""The operator replaces the rules of a running server; a caller never does."""

import json
import os

from http_support import HttpServer, Answer, call
from worlds import SERVER, WAIT_MS, NetworkCase, proxies_of

import http.client

CALLER = "a-token-of-the-callers-0123456789"
OPERATOR = "a-token-of-the-operator-9876543210"
PATH = "/operator/workspaces/%s/egress"
BOTH = ("for h in example.test registry.test; do "
        "curl -s -o /dev/null -w '%{http_code} ' http://$h/file.txt; done")


class Rules(NetworkCase):
    def start(self, **more):
        config = self.dir + "/config.json"
        common = {"profile": "workspace-write", "sandbox": "required"}
        os.mkdir(self.dir + "/closed")
        with open(config, "w") as out:
            json.dump({"workspaces": {
                "Work_1.x": {"root": self.ws, "network": "enabled",
                             "egress": {"allow": ["example.test"]}, **common, **more},
                "closed": {"root": self.dir + "/closed", **common}}}, out)
        env = {**os.environ, "TMPDIR": self.dir + "/tmp", "HOME": self.dir,
               "CODESPACE_HTTP_TOKEN": CALLER, "CODESPACE_OPERATOR_TOKEN": OPERATOR}
        self.server = HttpServer([SERVER, "--http", "--port", "0", "--log-level", "info",
                                  "--config", config], env, self.dir)
        self.addCleanup(self.stopped)
        self.ident = {}
        answer = self.ask("POST", "/mcp", {"jsonrpc": "2.0", "id": 0, "method": "initialize",
                                           "params": {"protocolVersion": "2025-11-25",
                                                      "capabilities": {},
                                                      "clientInfo": {"name": "t", "version": "1"}}})
        self.ident = {"Mcp-Session-Id": answer.headers["mcp-session-id"],
                      "MCP-Protocol-Version": "2025-11-25"}
        self.ask("POST", "/mcp", {"jsonrpc": "2.0", "method": "notifications/initialized"})

    def stopped(self):
        self.assertEqual(self.server.stop(), 0)
        self.assertEqual(proxies_of(self.server.pid), [])

    def ask(self, method, path, body=None, token=CALLER):
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=90)
        own = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
               **({"Authorization": "Bearer " + token} if token else {}),
               **(self.ident if path == "/mcp" else {})}
        connection.request(method, path, body=json.dumps(body) if body is not None else None,
                           headers=own)
        response = connection.getresponse()
        answer = Answer(response.status, response.getheaders(), response.read())
        connection.close()
        return answer

    def tool(self, name, **arguments):
        answer = self.ask("POST", "/mcp", call(name, workspace_id="Work_1.x", **arguments))
        return answer.json["result"]["structuredContent"]

    def sh(self, script, wait_ms=WAIT_MS):
        self.done = self.tool("exec_command", command=["/bin/sh", "-c", script], wait_ms=wait_ms)
        return self.done["output"]

    def put(self, egress, token=OPERATOR, workspace="Work_1.x"):
        return self.ask("PUT", PATH % workspace, egress, token)

    def warm_up(self):
        self.sh("true")
        self.until(lambda: self.tool("workspace_info")["execution"]["network"]["scope_now"] ==
                   "workspace", "a warm sandbox")

    def check_next_command(self):
        self.assertEqual(self.sh(BOTH), "200 403 ")
        answer = self.put({"allow": ["registry.test"]})
        self.assertEqual((answer.status, answer.json["workspace_id"]), (200, "Work_1.x"), answer.body)
        self.assertEqual(answer.json["egress"]["allow"], ["registry.test"])
        self.assertEqual(answer.json["running_with_others"], [])
        self.assertEqual(self.sh(BOTH), "403 200 ")
        self.assertEqual(self.tool("workspace_info")["execution"]["network"]["egress"],
                         self.ask("GET", PATH % "Work_1.x", token=OPERATOR).json["egress"])
        self.assertTrue([line for line in self.server.lines if
                         "workspace 'Work_1.x': new rules of egress (allow: 1, deny: 0)" in line])

    def test_next_command(self):
        self.start(network_scope="command")
        self.check_next_command()

    def test_next_command_of_a_warm_workspace(self):
        self.start()
        self.warm_up()
        self.check_next_command()
        self.warm_up()  # with the new ones
        self.assertEqual(self.sh(BOTH), "403 200 ")
        self.assertEqual(self.done["network_scope"], "workspace")

    def test_a_command_that_runs_keeps_its_rules(self):
        self.start()
        self.warm_up()
        self.sh("touch up; until [ -e go ]; do sleep 0.05; done; (%s) > said.new; mv said.new said"
                % BOTH, wait_ms=0)
        said = self.ws + "/said"
        self.until(lambda: os.path.exists(self.ws + "/up"), "the command")
        running = self.done["process_id"]
        answer = self.put({})
        self.assertEqual((answer.status, answer.json["running_with_others"]), (200, [running]))
        self.assertEqual(self.sh(BOTH), "403 403 ")
        open(self.ws + "/go", "w").close()
        self.until(lambda: os.path.exists(said), "its end")
        with open(said) as f:
            self.assertEqual(f.read(), "200 403 ")

    def test_a_caller_cannot(self):
        self.start()
        for token, status in ((CALLER, 403), (None, 401), ("x" * 40, 401)):
            for method in ("PUT", "GET"):
                answer = self.ask(method, PATH % "Work_1.x", {"allow": ["*"]}, token)
                self.assertEqual(answer.status, status, (token, method))
        self.assertEqual(self.sh("curl -s -o /dev/null -w '%{http_code} ' http://registry.test/"),
                         "403 ")

    def test_what_is_refused_changes_nothing(self):
        self.start()
        for egress, workspace, status, text in (
                ({"alow": []}, "Work_1.x", 400, "did you mean"),
                ({"allow": ["a b"]}, "Work_1.x", 400, "egress.allow[0]"),
                ([], "Work_1.x", 400, "must be an object"),
                (None, "Work_1.x", 400, "the body is missing"),
                ({"unix_sockets": [self.ws + "/s"]}, "Work_1.x", 400, "lies in the workspace"),
                ({"inject": []}, "Work_1.x", 400, "egress.inject: is taken"),
                ({}, "closed", 400, "restricted"), ({}, "none", 404, "no workspace")):
            answer = self.put(egress, workspace=workspace)
            self.assertEqual(answer.status, status, answer.body)
            self.assertIn(text, answer.json["message"])
        self.assertEqual(self.ask("DELETE", PATH % "Work_1.x", token=OPERATOR).status, 405)
        self.assertEqual(self.sh(BOTH), "200 403 ")
