"""Headers that the proxy adds: to exactly one host in plain HTTP, and nowhere else to be seen."""

import json
import os

from support import DEADLINE_S, LOOPBACK, Proxy, ProxyTest, listener

VALUE = "Bearer b9-secret-of-the-operator"
NAMES = {"a.test": [["127.0.0.1"]], "b.test": [["127.0.0.1"]], "a.test.b.test": [["127.0.0.1"]]}


class Credentials(ProxyTest):
    def setUp(self):
        self.server = self.origin()
        self.names = self.nameserver(NAMES)

    def start(self, policy=None, header="Authorization", value=VALUE, **more):
        rules = [{"host": "a.test:%d" % self.server.port, "header": header, "value": value}]
        policy = {"allow": ["*"], "private": LOOPBACK, **(policy or {})}
        return self.proxy(policy, nameserver=self.names.address, inject=json.dumps(rules), **more)

    def get(self, host="a.test", headers="", method="GET", port=None):
        return "%s http://%s:%d/x HTTP/1.1\r\nHost: %s:%d\r\n%s\r\n" % (
            method, host, port or self.server.port, host, port or self.server.port, headers)

    def test_it_is_added(self):
        client = self.client(self.start())
        for _ in range(3):  # also on a kept connection
            head = client.send(self.get(headers="X: 1\r\n")).response().body.decode()
            self.assertEqual(head, "GET /x HTTP/1.1\r\nHost: a.test:%d\r\nX: 1\r\n"
                             "Authorization: %s\r\n\r\n" % (self.server.port, VALUE))

    def test_it_replaces_the_clients(self):
        client = self.client(self.start())
        for headers in ("Authorization: mine\r\n", "aUTHORIZATION: mine\r\nAuthorization: two\r\n",
                        "Connection: Authorization\r\nAuthorization: mine\r\n"):
            head = client.send(self.get(headers=headers)).response().body.decode()
            self.assertEqual(head.lower().count("authorization"), 1, head)
            self.assertIn("Authorization: %s\r\n" % VALUE, head)

    def test_other_spellings_of_the_host_are_the_host(self):
        client = self.client(self.start())
        for host in ("A.Test", "a.test."):
            self.assertIn(VALUE.encode(), client.send(self.get(host)).response().body)

    def test_no_other_place_gets_it(self):
        other = self.origin()
        client = self.client(self.start())
        for host, port in (("b.test", None), ("a.test.b.test", None), ("127.0.0.1", None),
                           ("a.test", other.port), ("a.test", None), ("b.test", None)):
            body = client.send(self.get(host, port=port)).response().body
            self.assertEqual(VALUE.encode() in body, (host, port) == ("a.test", None), (host, port))

    def test_the_clients_own_stays_elsewhere(self):
        client = self.client(self.start())
        body = client.send(self.get("b.test", "Authorization: mine\r\n")).response().body
        self.assertIn(b"Authorization: mine\r\n", body)

    def test_not_after_a_redirect(self):
        def serve(client):
            head = client.read_until(b"\r\n\r\n")
            seen.append(head)
            client.send(b"HTTP/1.1 302 Found\r\nLocation: http://b.test:%d/x\r\n"
                        b"Content-Length: 0\r\n\r\n" % self.server.port)

        seen = []
        self.server = self.origin(serve)
        client = self.client(self.start())
        where = client.send(self.get()).response().headers["location"]
        self.assertIn(VALUE.encode(), seen[0])
        client.send("GET %s HTTP/1.1\r\nHost: b.test:%d\r\n\r\n" % (where, self.server.port))
        client.response()
        self.assertNotIn(VALUE.encode(), seen[1])

    def test_not_in_a_tunnel(self):
        client = self.client(self.start())
        client.send("CONNECT a.test:%d HTTP/1.1\r\nHost: a.test:%d\r\n\r\n" % (
            (self.server.port,) * 2))
        self.assertEqual(client.head()[0], 200)
        body = client.send("GET / HTTP/1.1\r\nHost: a.test:%d\r\n\r\n" % self.server.port
                           ).response().body
        self.assertNotIn(VALUE.encode(), body)

    def test_not_by_an_echo_of_the_request(self):
        client = self.client(self.start())
        for method in ("TRACE", "Trace", "TRACK"):
            body = client.send(self.get(method=method)).response().body
            self.assertNotIn(VALUE.encode(), body, method)

    def test_forms_that_could_mean_two_hosts_are_refused(self):
        proxy = self.start()
        port = self.server.port
        for target, host in (("http://b.test:%d/" % port, "a.test:%d" % port),
                             ("http://a.test:%d/" % port, "b.test:%d" % port),
                             ("http://b.test@a.test:%d/" % port, "a.test:%d" % port),
                             ("http://a.test:%d@b.test:%d/" % (port, port), "b.test:%d" % port),
                             ("http://a.test:%d#@b.test/" % port, "a.test:%d" % port),
                             ("/", "a.test:%d" % port)):
            answer = self.client(proxy).send(
                "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n" % (target, host)).response()
            self.assertEqual(answer.status, 400, target)
            self.assertNotIn(VALUE, answer.body.decode())
        self.assertEqual(self.server.count, 0)

    def test_not_before_the_verdict(self):
        proxy = self.start({"deny": ["a.test"]})
        answer = self.client(proxy).send(self.get()).response()
        self.assertEqual(answer.status, 403)
        self.assertNotIn(VALUE, answer.raw_head + answer.body.decode())
        self.assertNotIn(VALUE, json.dumps(proxy.event()))
        self.assertEqual(self.server.count, 0)

    def test_a_server_that_fails_tells_nothing(self):
        self.server = self.origin(lambda client: client.read_until(b"\r\n\r\n"))
        answer = self.client(self.start()).send(self.get()).response()
        self.assertEqual(answer.status, 502)
        self.assertNotIn(VALUE, answer.body.decode())

    def test_nothing_of_the_process_shows_it(self):
        proxy = self.start()
        for name in ("cmdline", "environ", "comm"):
            with open("/proc/%d/%s" % (proxy.process.pid, name), "rb") as f:
                self.assertNotIn(VALUE.encode(), f.read())
        self.assertEqual(os.stat("/proc/%d/mem" % proxy.process.pid).st_uid, 0)

    def test_it_stays_with_a_new_policy(self):
        proxy = self.start()
        client = self.client(proxy)
        proxy.set_policy({"allow": ["a.test"], "private": LOOPBACK})
        proxy.expect_event("policy")
        self.assertIn(VALUE.encode(), client.send(self.get()).response().body)
        self.assertEqual(client.send(self.get("b.test")).response().status, 403)

    def test_a_list_that_is_none_ends_the_start(self):
        good = {"host": "a.test", "header": "Authorization", "value": VALUE}
        for text in ("", "{}", "[1]", json.dumps([{**good, "host": "localhost"}]),
                     json.dumps([{**good, "host": "127.0.0.1"}]),
                     json.dumps([{**good, "host": "*.test"}]),
                     json.dumps([{**good, "header": "Host"}]),
                     json.dumps([{**good, "header": "a b"}]),
                     json.dumps([{**good, "value": VALUE + "\r\nX: 1"}]),
                     json.dumps([{**good, "more": 1}]), json.dumps([good, good])):
            proxy = Proxy({"allow": ["*"]}, listeners=[("--listen-fd", listener())], inject=text)
            self.assertIsNone(proxy.ready)
            self.assertEqual(proxy.process.wait(DEADLINE_S), 78, text)
            proxy.stop()
            self.assertIn("--inject-fd: ", proxy.errors)
            self.assertNotIn(VALUE, proxy.errors)
