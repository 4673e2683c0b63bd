"""Verdicts: before any look-up, for the very address, again with a new policy."""

import json
import socket

from support import LOOPBACK, ProxyTest


def get(host, port):
    return "GET http://%s:%d/ HTTP/1.1\r\nHost: %s:%d\r\n\r\n" % (host, port, host, port)


class Names(ProxyTest):
    def ask(self, proxy, host, port):
        return self.client(proxy).send(get(host, port)).response()

    def test_allowed_name(self):
        names = self.nameserver({"a.test": [["127.0.0.1"]]})
        proxy = self.proxy({"allow": ["a.test"], "private": LOOPBACK}, nameserver=names.address)
        origin = self.origin()
        self.assertIn(b"Host: a.test:", self.ask(proxy, "A.Test.", origin.port).body)

    def test_no_query_for_a_refused_name(self):
        names = self.nameserver({"a.test": [["127.0.0.1"]]})
        proxy = self.proxy({"allow": ["a.test"], "deny": ["b.a.test"], "private": LOOPBACK},
                           nameserver=names.address)
        origin = self.origin()
        for host in ("secret-data.evil.test", "b.a.test", "localhost"):
            self.assertEqual(self.ask(proxy, host, origin.port).status, 403)
        self.assertEqual(self.ask(proxy, "a.test", origin.port).status, 200)
        self.assertEqual({name for name, _ in names.asked}, {"a.test"})

    def test_addresses_that_are_not_public(self):
        table = {
            "loop.test": (["127.0.0.1"], "loopback"), "ten.test": (["10.1.2.3"], "private"),
            "meta.test": (["169.254.169.254"], "metadata"), "cg.test": (["100.64.0.1"], "cgnat"),
            "any.test": (["0.0.0.0"], "unspecified"), "class.test": (["240.0.0.1"], "reserved"),
            "multi.test": (["224.0.0.1"], "multicast"), "bench.test": (["198.18.0.1"], "benchmark"),
            "both.test": (["192.0.2.7", "10.0.0.1"], "documentation"),
        }
        names = self.nameserver({name: [addrs] for name, (addrs, _) in table.items()})
        proxy = self.proxy({"allow": ["*"]}, nameserver=names.address)
        for host, (_, kind) in table.items():
            with self.subTest(host):
                answer = self.ask(proxy, host, 80)
                self.assertEqual(answer.status, 403)
                self.assertEqual(answer.headers["x-codespace-verdict"], "address_not_public")
                self.assertEqual(answer.json()["class"], kind)
                self.assertEqual(proxy.event()["class"], kind)

    def test_one_bad_address_refuses_the_name(self):
        names = self.nameserver({"a.test": [["127.0.0.1", "10.0.0.1"]]})
        proxy = self.proxy({"allow": ["a.test"], "private": LOOPBACK}, nameserver=names.address)
        origin = self.origin()
        self.assertEqual(self.ask(proxy, "a.test", origin.port).status, 403)
        self.assertEqual(origin.count, 0)

    def test_rebinding(self):
        """The first answer is granted, the second is not: what is judged is what is dialled."""
        names = self.nameserver({"a.test": [["127.0.0.2"], ["127.0.0.1"], ["127.0.0.1"]]})
        proxy = self.proxy({"allow": ["a.test"], "private": ["127.0.0.2"]}, nameserver=names.address)
        good = self.origin(host="127.0.0.2")
        bad = self.origin(host="127.0.0.1", port=good.port)
        self.assertEqual(self.ask(proxy, "a.test", good.port).status, 200)
        for _ in range(2):
            answer = self.ask(proxy, "a.test", good.port)
            self.assertEqual(answer.json()["class"], "loopback")
        self.assertEqual((good.count, bad.count), (1, 0))

    def test_literal_addresses_need_their_own_rule(self):
        origin = self.origin()
        proxy = self.proxy({"allow": ["*"]})
        for host in ("127.0.0.1", "10.0.0.1", "169.254.169.254", "[::1]", "[::ffff:127.0.0.1]",
                     "[fe80::1]", "0.0.0.0", "localhost", "a.localhost"):
            answer = self.ask(proxy, host, origin.port)
            self.assertEqual((host, answer.headers["x-codespace-verdict"]),
                             (host, "address_not_public"))
        self.assertEqual(origin.count, 0)

    def test_host_services_by_port(self):
        granted, other = self.origin(), self.origin()
        proxy = self.proxy({"local_ports": [granted.port]})
        for host in ("localhost", "127.0.0.1", "x.localhost"):
            self.assertEqual(self.ask(proxy, host, granted.port).status, 200)
            self.assertEqual(self.ask(proxy, host, other.port).status, 403)
        self.assertEqual(other.count, 0)

    def test_host_service_by_rule(self):
        origin = self.origin()
        proxy = self.proxy({"allow": ["localhost:%d" % origin.port]})
        self.assertEqual(self.ask(proxy, "localhost", origin.port).status, 200)
        self.assertEqual(self.ask(proxy, "127.0.0.1", origin.port).status, 403)

    def test_second_address_is_tried(self):
        names = self.nameserver({"a.test": [["127.0.0.3", "127.0.0.2"]]})
        proxy = self.proxy({"allow": ["a.test"], "private": LOOPBACK}, nameserver=names.address)
        origin = self.origin(host="127.0.0.2")
        self.assertEqual(self.ask(proxy, "a.test", origin.port).status, 200)

    def test_names_without_answer(self):
        names = self.nameserver({"empty.test": [[]]})
        proxy = self.proxy({"allow": ["*"]}, nameserver=names.address)
        for host in ("missing.test", "empty.test"):
            answer = self.ask(proxy, host, 80)
            self.assertEqual((answer.status, answer.headers["x-codespace-error"]),
                             (502, "no_such_name"))

    def test_answers_that_are_cut_are_asked_for_over_tcp(self):
        names = self.nameserver({"a.test": [["127.0.0.1"]]}, cut=True)
        proxy = self.proxy({"allow": ["a.test"], "private": LOOPBACK}, nameserver=names.address)
        origin = self.origin()
        self.assertEqual(self.ask(proxy, "a.test", origin.port).status, 200)
        self.assertGreater(names.tcp.count, 0)

    def test_the_second_server_is_asked_when_the_first_is_not_there(self):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as closed:
            closed.bind(("127.0.0.1", 0))
            address = "127.0.0.1:%d" % closed.getsockname()[1]
        names = self.nameserver({"a.test": [["127.0.0.1"]]})
        proxy = self.proxy({"allow": ["a.test"], "private": LOOPBACK},
                           nameserver=[address, names.address])
        origin = self.origin()
        self.assertEqual(self.ask(proxy, "a.test", origin.port).status, 200)

    def test_no_name_server(self):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as closed:
            closed.bind(("127.0.0.1", 0))
            address = "127.0.0.1:%d" % closed.getsockname()[1]
        proxy = self.proxy({"allow": ["*"]}, nameserver=address)
        answer = self.ask(proxy, "a.test", 80)
        self.assertEqual((answer.status, answer.headers["x-codespace-error"]),
                         (504, "lookup_failed"))


class Changes(ProxyTest):
    def test_next_request_on_a_kept_connection_is_judged_anew(self):
        origin = self.origin()
        proxy = self.proxy({"allow": ["127.0.0.1"]})
        client = self.client(proxy)
        self.assertEqual(client.send(get("127.0.0.1", origin.port)).response().status, 200)
        proxy.set_policy({"deny": ["127.0.0.1"], "allow": ["*"]})
        self.assertEqual(proxy.event(), {"event": "policy", "generation": 2})
        answer = client.send(get("127.0.0.1", origin.port)).response()
        self.assertEqual(answer.headers["x-codespace-verdict"], "denied")
        proxy.set_policy({"allow": ["127.0.0.1"]})
        self.assertEqual(proxy.expect_event("policy")["generation"], 3)
        self.assertEqual(client.send(get("127.0.0.1", origin.port)).response().status, 200)

    def test_tunnels_that_a_new_policy_refuses_end(self):
        origin = self.origin(lambda client: client.read_all())
        proxy = self.proxy({"allow": ["127.0.0.1"]})
        client = self.client(proxy)
        client.send("CONNECT 127.0.0.1:%d HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" % origin.port)
        self.assertEqual(client.head()[0], 200)
        proxy.set_policy({})
        self.assertEqual(client.read_all(), b"")
        self.assertEqual(proxy.event()["reason"], "not_allowed")

    def test_answers_that_a_new_policy_refuses_end(self):
        def serve(client):
            client.read_until(b"\r\n\r\n")
            client.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc")
            client.read_all()

        origin = self.origin(serve)
        proxy = self.proxy({"allow": ["127.0.0.1"]})
        client = self.client(proxy).send(get("127.0.0.1", origin.port))
        self.assertEqual(client.head()[0], 200)
        self.assertEqual(client.read(3), b"abc")
        proxy.set_policy({})
        self.assertEqual(client.read_all(), b"")

    def test_a_bad_policy_changes_nothing(self):
        origin = self.origin()
        proxy = self.proxy({"allow": ["127.0.0.1"]})
        for text, message in ((b'{"op":"policy","policy":{"alow":[]}}\n', "did you mean"),
                              (b'{"op":"policy"}\n', "policy: is required"),
                              (b'{"op":"stop"}\n', "the only operation"), (b"x\n", "JSON")):
            proxy.control.sendall(text)
            event = proxy.expect_event("policy_refused")
            self.assertIn(message, event["message"])
            self.assertEqual(json.loads(proxy.control.recv(65536)), event)  # to who asked, too
        client = self.client(proxy).send(get("127.0.0.1", origin.port))
        self.assertEqual(client.response().status, 200)


class Upstream(ProxyTest):
    def upstream(self):
        """A proxy of the operator's: answers requests with their head, tunnels to nowhere."""
        def serve(client):
            head = client.read_until(b"\r\n\r\n")
            if head.startswith(b"CONNECT refused"):
                client.send("HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n")
            elif head.startswith(b"CONNECT"):
                client.send(b"HTTP/1.1 200 OK\r\n\r\n" + head)
            else:
                client.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(head) + head)
        return self.origin(serve)

    def test_requests_and_tunnels_go_through_it(self):
        upstream = self.upstream()
        names = self.nameserver({})
        proxy = self.proxy({"allow": ["*.test"], "upstream": "127.0.0.1:%d" % upstream.port},
                           nameserver=names.address)
        client = self.client(proxy).send("GET http://a.test/x HTTP/1.1\r\nHost: a.test\r\n\r\n")
        self.assertIn(b"GET http://a.test/x HTTP/1.1\r\nHost: a.test\r\n", client.response().body)
        client = self.client(proxy).send("CONNECT a.test:443 HTTP/1.1\r\nHost: a.test\r\n\r\n")
        self.assertEqual(client.head()[0], 200)
        self.assertEqual(client.read_all(),
                         b"CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n\r\n")
        client = self.client(proxy).send("CONNECT refused.test:443 HTTP/1.1\r\nHost: refused.test"
                                         "\r\n\r\n")
        self.assertEqual(client.response().status, 502)
        self.assertEqual(names.asked, [])

    def test_it_widens_nothing(self):
        upstream = self.upstream()
        proxy = self.proxy({"allow": ["*"], "deny": ["evil.test"],
                            "upstream": "127.0.0.1:%d" % upstream.port})
        for host in ("evil.test", "10.0.0.1", "169.254.169.254"):
            answer = self.client(proxy).send(get(host, 80)).response()
            self.assertEqual(answer.status, 403)
        self.assertEqual(upstream.count, 0)
