"""Both eras of the protocol on one pipe: nothing is pinned by what came first."""

import unittest

from http_support import META, MODERN
from support import Case, RpcError, poll, running


class Stdio(Case):
    def ask(self, client, method, **params):
        return client.request(method, {"_meta": META, **params})

    def refuses(self, client, code, method, **params):
        with self.assertRaises(RpcError) as caught:
            client.request(method, params)
        self.assertEqual(caught.exception.code, code)
        return caught.exception

    def test_discover_then_initialize(self):
        """A client that probes, gives up and falls back on the same pipe is served."""
        client = self.launch("--workspace", "ws=" + self.ws)
        result = self.ask(client, "server/discover")
        self.assertEqual(result["supportedVersions"], [MODERN])
        self.assertEqual(result["resultType"], "complete")
        self.assertEqual(client.initialize()["protocolVersion"], "2025-11-25")
        self.assertNotIn("resultType", client.request("tools/list"))
        self.assertEqual(self.ask(client, "tools/list")["resultType"], "complete")

    def test_a_call_without_anything_before_it(self):
        client = self.launch("--workspace", "ws=" + self.ws)
        self.write("a.txt", "alpha\n")
        result = self.ask(client, "tools/call", name="read",
                          arguments={"workspace_id": "ws", "path": "a.txt"})
        self.assertEqual(result["structuredContent"]["content"], "alpha\n")
        self.assertEqual(result["resultType"], "complete")
        self.refuses(client, -32600, "tools/list")

    def test_what_a_request_must_say(self):
        client = self.launch("--workspace", "ws=" + self.ws)
        version = "io.modelcontextprotocol/protocolVersion"
        error = self.refuses(client, -32022, "tools/list", _meta={**META, version: "2999-01-01"})
        self.assertEqual(error.data, {"supported": [MODERN], "requested": "2999-01-01"})
        self.refuses(client, -32602, "tools/list", _meta={version: MODERN})
        for method in ("initialize", "ping", "logging/setLevel", "resources/subscribe"):
            self.refuses(client, -32601, method, _meta=META)

    def test_listen_until_cancelled(self):
        client = self.launch("--workspace", "ws=" + self.ws)
        client.send({"jsonrpc": "2.0", "id": "l", "method": "subscriptions/listen",
                     "params": {"_meta": META, "notifications": {"toolsListChanged": True}}})
        self.assertTrue(poll(lambda: client.notifications))
        first = client.notifications[0]
        self.assertEqual(first["method"], "notifications/subscriptions/acknowledged")
        self.assertEqual(first["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], "l")
        client.send({"jsonrpc": "2.0", "method": "notifications/cancelled",
                     "params": {"requestId": "l"}})
        self.assertEqual(self.ask(client, "tools/list")["resultType"], "complete")

    def test_progress_only_with_a_token(self):
        for meta, wanted in (({"progressToken": 5}, True), ({}, False)):
            with self.subTest(meta=meta):
                client = self.start()
                result = client.request("tools/call", {
                    "name": "exec_command", "_meta": meta, "arguments": {
                        "workspace_id": "ws", "command": ["sleep", "5.5"], "wait_ms": 60000}})
                self.assertEqual(result["structuredContent"]["exit_code"], 0)
                told = [n for n in client.notifications
                        if n["method"] == "notifications/progress"]
                self.assertEqual(bool(told), wanted)
                for one in told:
                    self.assertEqual(one["params"]["progressToken"], 5)

    def test_cancel_ends_the_tree(self):
        client = self.launch("--workspace", "ws=" + self.ws)
        marker = self.marker()
        client.send({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
            "_meta": META, "name": "exec_command", "arguments": {
                "workspace_id": "ws", "wait_ms": 600000,
                "command": ["/bin/sh", "-c", "sleep %s & sleep %s" % (marker, marker)]}}})
        self.assertTrue(poll(lambda: len(running(marker)) >= 2))
        client.send({"jsonrpc": "2.0", "method": "notifications/cancelled",
                     "params": {"requestId": 1}})
        self.assertTrue(poll(lambda: not running(marker)), "it is gone")
        self.assertEqual(self.ask(client, "server/discover")["resultType"], "complete")


if __name__ == "__main__":
    unittest.main()
