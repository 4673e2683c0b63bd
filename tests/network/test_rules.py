"""The operator replaces the rules of a running server; a caller never does."""

import json
import os
import signal
import subprocess

from http_support import HttpServer, Answer, call
from worlds import SERVER, WAIT_MS, NetworkCase, proxies_of

import http.client

CALLER = "a-token-of-the-callers-0123456789"
OPERATOR = "a-token-of-the-operator-9876543210"
PATH = "/operator/workspaces/%s/egress"
BOTH = ("for h in example.test registry.test; do "
        "curl -s -o /dev/null -w '%{http_code} ' http://$h/file.txt; done")


class RulesCase(NetworkCase):
    def start(self, **more):
        config = self.dir + "/config.json"
        common = {"profile": "workspace-write", "sandbox": "required"}
        os.mkdir(self.dir + "/closed")
        with open(config, "w") as out:
            json.dump({"workspaces": {
                "Work_1.x": {"root": self.ws, "network": "enabled",
                             "egress": {"allow": ["example.test"]}, **common, **more},
                "closed": {"root": self.dir + "/closed", **common}}}, out)
        self.serve()
        self.addCleanup(self.stopped)
        self.initialize()

    def serve(self):
        """A server for the configuration file that is there."""
        env = {**os.environ, "TMPDIR": self.dir + "/tmp", "HOME": self.dir,
               "CODESPACE_HTTP_TOKEN": CALLER, "CODESPACE_OPERATOR_TOKEN": OPERATOR}
        self.server = HttpServer([SERVER, "--http", "--port", "0", "--log-level", "info",
                                  "--config", self.dir + "/config.json", *self.OPTIONS], env, self.dir)

    def initialize(self):
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

    def loop(self, script, name="said"):
        """A command that runs `script` whenever the test takes its file `again` away; what it said."""
        self.sh("while [ ! -e stop ]; do if [ ! -e again-%s ]; then (%s) > %s.new 2>&1; "
                "mv %s.new %s; touch again-%s; fi; sleep 0.02; done" % ((name, script) + 4 * (name,)),
                wait_ms=0)
        return self.done["process_id"]

    def next_of(self, name="said"):
        said, again = self.ws + "/" + name, self.ws + "/again-" + name
        self.until(lambda: os.path.exists(again), "the loop")
        os.unlink(said)
        os.unlink(again)
        self.until(lambda: os.path.exists(again), "the loop again")
        with open(said) as f:
            return f.read()

    def stop_loops(self):
        open(self.ws + "/stop", "w").close()

    def rewrite(self, **more):
        with open(self.dir + "/config.json") as f:
            config = json.load(f)
        config["workspaces"]["Work_1.x"].update(more)
        with open(self.dir + "/config.json", "w") as f:
            json.dump(config, f)
        seen = len(self.server.lines)
        os.kill(self.server.pid, signal.SIGUSR1)
        self.until(lambda: [line for line in self.server.lines[seen:] if "signal 10" in line],
                   "an answer in the log")
        return [line for line in self.server.lines[seen:] if "signal 10" in line][0]


class Ledger(RulesCase):
    def changes(self):
        listed = self.tool("list_operations", kind="egress")["operations"]
        self.assertEqual({(c["kind"], c["status"], c["workspace_id"]) for c in listed},
                         {("egress", "applied", "Work_1.x")} if listed else set())
        return [c["rules"] for c in reversed(listed)]

    def test_changes_of_the_operator_are_in_it(self):
        self.start()
        self.sh("true")
        self.assertEqual(self.changes(), [])
        self.loop(BOTH)
        self.assertEqual(self.next_of(), "200 403 ")  # it runs
        self.put({"allow": ["registry.test"], "deny": ["evil.test"]})
        self.assertEqual(self.put({"allow": ["not a host"]}).status, 400)
        self.assertEqual(self.put({"allow": []}, token=CALLER).status, 403)
        first, = self.changes()
        running = first.pop("running_with_these"), first.pop("running_with_others")
        self.assertEqual(running, (1, 0))
        self.assertEqual((first["by"], sorted(first["changed"])),
                         ("the operator's token", ["allow", "deny"]))
        self.rewrite(egress={"allow": ["example.test"], "deny": ["evil.test"], "methods": ["GET"]})
        self.until(lambda: len(self.changes()) == 2, "the second change")
        second = self.changes()[1]
        self.assertEqual((second["by"], sorted(second["changed"])),
                         ("the configuration file, read again", ["allow", "methods"]))
        whole = self.tool("operation_status", operation_id=self.tool(
            "list_operations", kind="egress")["operations"][0]["operation_id"])
        self.assertEqual((whole["rules"], whole["revertible"]), (second, False))
        self.assertNotIn("registry.test", str(self.changes()))
        self.stop_loops()

    def test_no_call_makes_or_reverts_one(self):
        self.start()
        self.put({"allow": []})
        made, = self.tool("list_operations", kind="egress")["operations"]
        answer = self.ask("POST", "/mcp", call("revert_operation", workspace_id="Work_1.x",
                                               operation_id=made["operation_id"])).json["result"]
        self.assertIn("OPERATION_NOT_REVERTIBLE", str(answer))
        self.assertEqual(len(self.changes()), 1)


class Rules(RulesCase):
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

    def check_follows(self):
        """Allowed, refused, allowed again, while it runs: by proxy, by name and by name server."""
        direct = ("%s; curl -s -o /dev/null -w '%%{http_code} ' --noproxy '*' "
                  "http://example.test/file.txt; echo $?" % BOTH)
        running = self.loop(direct)
        self.assertRegex(self.next_of(), "^200 403 200 0\n$")
        for egress, said in (({"allow": ["registry.test"]}, "^403 200 000 6\n$"),  # no such name
                             ({"allow": ["*.test"], "deny": ["registry.test"]},
                              "^200 403 200 0\n$")):
            answer = self.put(egress)
            self.assertEqual(answer.status, 200, answer.body)
            self.assertEqual((answer.json["running_with_these"], answer.json["running_with_others"]),
                             ([running], []))
            self.assertRegex(self.next_of(), said)
            network = self.tool("workspace_info")["execution"]["network"]
            self.assertEqual(network["egress"]["allow"], egress["allow"])
            self.assertEqual(network["egress_change"]["state"], "in_force")
            self.assertEqual(network["egress_change"]["by"], "the operator's token")
        self.stop_loops()

    def test_a_command_that_runs_follows(self):
        self.start(network_scope="command")
        self.check_follows()

    def test_a_warm_command_that_runs_follows(self):
        self.start()
        self.warm_up()
        self.check_follows()
        self.assertEqual(self.sh(BOTH), "200 403 ")  # and the next one, in the same sandbox
        self.assertEqual(self.done["network_scope"], "workspace")

    def test_a_tunnel_is_cut(self):
        self.start()
        port = self.serve_host(b"hello\n", address=("127.0.0.1", 0))[1]
        self.put({"allow": ["example.test"], "local_ports": [port]})
        script = ("import socket, os\n"
                  "direct = socket.create_connection(('example.test', 80))\n"
                  "proxy = socket.create_connection(('127.0.0.1', 880))\n"
                  "proxy.sendall(b'CONNECT example.test:80 HTTP/1.1\\r\\nHost: example.test\\r\\n\\r\\n')\n"
                  "assert b' 200 ' in proxy.recv(4096)\n"
                  "open('up', 'w').close()\n"
                  "def end(s):\n"
                  "    try: return len(s.recv(1))\n"
                  "    except ConnectionResetError: return 'reset'\n"
                  "print(end(direct), end(proxy), file=open('cut.new', 'w'))\n"
                  "os.rename('cut.new', 'cut')\n")
        with open(self.ws + "/tunnel.py", "w") as f:
            f.write(script)
        self.sh("exec python3 tunnel.py", wait_ms=0)
        self.until(lambda: os.path.exists(self.ws + "/up"), "both tunnels")
        self.put({"allow": ["*"]})  # still allowed: they stay
        self.assertFalse(os.path.exists(self.ws + "/cut"))
        self.put({"allow": ["*"], "deny": ["example.test"]})
        self.until(lambda: os.path.exists(self.ws + "/cut"), "their end")
        with open(self.ws + "/cut") as f:
            self.assertEqual(f.read(), "reset reset\n")

    def test_ports_of_the_host(self):
        """The packet filter inside follows, too: a program that knows no proxy reaches the port."""
        self.start()
        self.warm_up()
        self.check_ports()

    def test_ports_of_the_host_for_a_command_alone(self):
        self.start(network_scope="command")
        self.check_ports()

    def check_ports(self):
        port = self.serve_host(b"from the host")[1]
        ask = ("python3 -c \"import socket\ntry:\n s = socket.create_connection(('127.0.0.1', %d)); "
               "s.sendall(b'x'); print(s.recv(99))\nexcept OSError as e: print(type(e))\"" % port)
        self.loop(ask, "port")
        self.assertIn("ConnectionRefusedError", self.next_of("port"))
        self.put({"local_ports": [port, 1]})
        self.assertIn("from the host", self.next_of("port"))
        self.put({})
        self.assertIn("ConnectionRefusedError", self.next_of("port"))
        self.stop_loops()

    def test_while_one_starts(self):
        """Whatever is under way when the rules change starts with the new ones."""
        self.start(network_scope="command")
        for i in range(6):
            allow = "registry.test" if i % 2 else "example.test"
            self.put({"allow": [allow]})
            self.tool("exec_command", command=["/bin/sh", "-c", "(%s) > out%d.new; mv out%d.new out%d"
                                               % (BOTH, i, i, i)], wait_ms=0, background="kill")
            self.put({"allow": ["registry.test", "example.test"]})
            self.until(lambda: os.path.exists(self.ws + "/out%d" % i), "its end")
            with open(self.ws + "/out%d" % i) as f:
                self.assertEqual(f.read(), "200 200 ")

    def cli(self, *argv, stdin=None, code=0):
        env = {**os.environ, "CODESPACE_OPERATOR_TOKEN": OPERATOR}
        done = subprocess.run([SERVER, "egress", *argv, "--port", str(self.server.port)], env=env,
                              input=stdin, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode == 0, code == 0, done)
        return json.loads(done.stdout) if code == 0 else done.stderr

    def test_the_command_line(self):
        self.start()
        self.assertEqual(self.cli("show", "Work_1.x")["egress"]["allow"], ["example.test"])
        with open(self.dir + "/rules.json", "w") as f:
            json.dump({"allow": ["registry.test"]}, f)
        self.assertEqual(self.cli("set", "Work_1.x", self.dir + "/rules.json")["egress"]["allow"],
                         ["registry.test"])
        self.assertEqual(self.sh(BOTH), "403 200 ")
        said = self.cli("set", "Work_1.x", "-", stdin='{"alow": []}', code=1)
        self.assertIn("did you mean", said)
        self.assertNotIn(OPERATOR, said)
        self.assertIn("no workspace", self.cli("show", "none", code=1))
        self.assertEqual(self.cli("show", "Work_1.x")["egress"]["allow"], ["registry.test"])

    def test_the_file_is_read_again(self):
        self.start()
        self.loop(BOTH)
        self.assertEqual(self.next_of(), "200 403 ")
        said = self.rewrite(egress={"allow": ["a b"]})
        self.assertIn("nothing was changed", said)
        self.assertIn("workspaces.Work_1.x.egress.allow[0]", said)
        self.assertEqual(self.next_of(), "200 403 ")
        said = self.rewrite(egress={"allow": ["registry.test"]}, profile="read-only")
        self.assertIn("of 1 workspaces", said)
        self.assertIn("restart", said)
        self.until(lambda: self.tool("workspace_info")["execution"]["network"]["egress_change"][
            "state"] == "in_force", "the new rules")
        self.assertEqual(self.next_of(), "403 200 ")
        self.assertEqual(self.tool("workspace_info")["profile"], "workspace-write")
        self.assertIn("of 0 workspaces", self.rewrite())
        self.stop_loops()

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
