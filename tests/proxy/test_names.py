"""From inside a network namespace: the name server, stand-in addresses, carried connections."""

import errno
import json
import os
import socket
import struct
import subprocess
import sys

from support import DEADLINE_S, LOOPBACK, Client, NameServer, ProxyTest

A, TXT, AAAA, HTTPS, ANY, PTR = 1, 16, 28, 65, 255, 12


class World:
    def __init__(self):
        self.control, theirs = socket.socketpair()
        self.control.settimeout(DEADLINE_S)
        here = os.path.dirname(os.path.realpath(__file__))
        self.process = subprocess.Popen(
            [sys.executable, os.path.join(here, "world.py"), str(theirs.fileno())],
            pass_fds=[theirs.fileno()], stderr=subprocess.PIPE)
        theirs.close()
        if self.control.recv(16) != b"ready\n":
            raise RuntimeError(self.process.communicate(timeout=DEADLINE_S)[1].decode())

    def ask(self, op, host, port, kind="tcp"):
        request = {"op": op, "kind": kind, "host": host, "port": port}
        self.control.sendall(json.dumps(request).encode() + b"\n")
        data, fds, _, _ = socket.recv_fds(self.control, 4096, 1)
        error = json.loads(data)["errno"]
        if error:
            raise OSError(error, os.strerror(error))
        return socket.socket(fileno=fds[0])

    def stop(self):
        self.control.close()
        self.process.wait(DEADLINE_S)
        self.process.stderr.close()


def query(name, kind, ident=0x4242):
    out = struct.pack("!HHHHHH", ident, 0x0100, 1, 0, 0, 0)
    for label in name.encode("latin-1").split(b"."):
        out += bytes([len(label)]) + label
    return out + b"\0" + struct.pack("!HH", kind, 1)


class Answer:
    def __init__(self, data):
        self.ident, flags, _, count, _, _ = struct.unpack("!HHHHHH", data[:12])
        self.rcode = flags & 15
        _, end = NameServer.name_of(data)
        self.addresses = []
        for i in range(count):
            at = end + 4 + 16 * i
            self.addresses.append(socket.inet_ntoa(data[at + 12:at + 16]))


class NamesTest(ProxyTest):
    def setUp(self):
        self.world = World()
        self.addCleanup(self.world.stop)
        self.outside = self.nameserver({"a.test": [["127.0.0.1"]], "b.test": [["127.0.0.1"]]})

    def inside(self, policy, port):
        """A proxy whose listeners are all inside: door 3128, names 53, everything else `port`."""
        listeners = [
            ("--listen-fd", self.world.ask("listen", "127.0.0.1", 3128)),
            ("--dns-fd", self.world.ask("listen", "127.0.0.1", 53, "udp")),
            ("--dns-fd", self.world.ask("listen", "127.0.0.1", 53, "tcp")),
            ("--transparent-fd", self.world.ask("listen", "0.0.0.0", port)),
        ]
        return self.proxy(policy, nameserver=self.outside.address, listeners=listeners)

    def resolve(self, name, kind=A):
        with self.world.ask("connect", "127.0.0.1", 53, "udp") as sock:
            sock.settimeout(DEADLINE_S)
            sock.send(query(name, kind))
            return Answer(sock.recv(4096))

    def connect(self, host, port):
        sock = self.world.ask("connect", host, port)
        client = Client(sock)
        self.addCleanup(client.close)
        return client

    def assert_refused(self, host, port):
        """Reset, perhaps before connect() has returned."""
        try:
            self.assertEqual(self.connect(host, port).read_all(), b"")
        except ConnectionResetError:
            pass


class Names(NamesTest):
    POLICY = {"allow": ["**.a.test", "b.test:443"], "deny": ["no.a.test"], "private": LOOPBACK}

    def test_allowed_names_have_one_stand_in_each(self):
        self.inside(self.POLICY, 1000)
        first = self.resolve("a.test")
        self.assertEqual((first.rcode, first.ident), (0, 0x4242))
        self.assertRegex(first.addresses[0], r"^198\.1[89]\.")
        self.assertEqual(self.resolve("A.TEST").addresses, first.addresses)
        self.assertNotEqual(self.resolve("x.a.test").addresses, first.addresses)
        self.assertEqual(len(self.resolve("b.test").addresses), 1)
        self.assertEqual(len(self.resolve("a.test", ANY).addresses), 1)

    def test_no_other_records(self):
        self.inside(self.POLICY, 1000)
        for kind in (AAAA, TXT, HTTPS):
            answer = self.resolve("a.test", kind)
            self.assertEqual((answer.rcode, answer.addresses), (0, []))

    def test_other_names_do_not_exist_and_nobody_is_asked(self):
        proxy = self.inside(self.POLICY, 1000)
        for name in ("evil.test", "no.a.test", "secret.data.evil.test", "aa.test"):
            self.assertEqual(self.resolve(name).rcode, 3)
            self.assertEqual(proxy.event()["host"], name)
        for name in ("a.test\x00", "a test", "1.2.3.4", "x" * 63 + ".evil.test"):
            self.assertEqual(self.resolve(name).rcode, 3)
        self.assertEqual(self.resolve("1.0.18.198.in-addr.arpa", PTR).rcode, 3)
        self.assertEqual(self.resolve("a.test").rcode, 0)
        self.assertEqual(self.outside.asked, [])

    def test_localhost_is_the_world_s_own(self):
        self.inside(self.POLICY, 1000)
        self.assertEqual(self.resolve("localhost").addresses, ["127.0.0.1"])
        self.assertEqual(self.resolve("localhost", AAAA).addresses, [])

    def test_over_tcp(self):
        self.inside(self.POLICY, 1000)
        client = self.connect("127.0.0.1", 53)
        data = b""
        for ident, name in ((1, "a.test"), (2, "evil.test"), (3, "b.test")):
            one = query(name, A, ident)
            data += struct.pack("!H", len(one)) + one
        for i in range(0, len(data), 5):
            client.send(data[i:i + 5])
        got = []
        for _ in range(3):
            size = struct.unpack("!H", client.read(2))[0]
            answer = Answer(client.read(size))
            got.append((answer.ident, answer.rcode, len(answer.addresses)))
        self.assertEqual(got, [(1, 0, 1), (2, 3, 0), (3, 0, 1)])

    def test_malformed_queries(self):
        self.inside(self.POLICY, 1000)
        with self.world.ask("connect", "127.0.0.1", 53, "udp") as sock:
            sock.settimeout(DEADLINE_S)
            for data in (b"", b"x", b"\0" * 11, query("a.test", A)[:2] + b"\x81\x80" + b"\0" * 20):
                sock.send(data)  # silence
            sock.send(query("a.test", A)[:-3])
            self.assertEqual(sock.recv(4096)[3] & 15, 1)
            sock.send(query("a.test", A, 7))
            self.assertEqual(Answer(sock.recv(4096)).ident, 7)

    def test_many_tcp_clients(self):
        self.inside(self.POLICY, 1000)
        clients = [self.connect("127.0.0.1", 53) for _ in range(40)]
        one = query("a.test", A)
        clients[-1].send(struct.pack("!H", len(one)) + one)
        size = struct.unpack("!H", clients[-1].read(2))[0]
        self.assertEqual(Answer(clients[-1].read(size)).rcode, 0)
        self.assertTrue(clients[0].closed())  # the oldest made room


class Carried(NamesTest):
    def test_connection_to_a_stand_in_is_one_to_the_name(self):
        origin = self.origin()
        self.inside({"allow": ["a.test"], "private": LOOPBACK}, origin.port)
        address = self.resolve("a.test").addresses[0]
        client = self.connect(address, origin.port)
        client.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n")
        self.assertIn(b"Host: a.test\r\n", client.response().body)
        self.assertEqual({name for name, _ in self.outside.asked}, {"a.test"})

    def test_server_that_speaks_first(self):
        origin = self.origin(lambda client: client.send("220 ready\r\n"))
        self.inside({"allow": ["a.test"], "private": LOOPBACK}, origin.port)
        client = self.connect(self.resolve("a.test").addresses[0], origin.port)
        self.assertEqual(client.read_all(), b"220 ready\r\n")

    def test_the_verdict_comes_with_the_port(self):
        origin = self.origin()
        proxy = self.inside({"allow": ["a.test:1"], "private": LOOPBACK}, origin.port)
        self.assert_refused(self.resolve("a.test").addresses[0], origin.port)
        event = proxy.event()
        self.assertGreater(event.pop("client"), 0)
        self.assertEqual(event, {
            "event": "refused", "via": "transparent", "host": "a.test", "port": origin.port,
            "method": "CONNECT", "reason": "not_allowed"})
        self.assertEqual((origin.count, self.outside.asked), (0, []))

    def test_addresses_that_no_name_has(self):
        origin = self.origin()
        proxy = self.inside({"allow": ["*"], "private": ["0.0.0.0/0"]}, origin.port)
        self.assert_refused("198.19.1.1", origin.port)
        self.assertEqual(proxy.event()["host"], "198.19.1.1")
        self.assertEqual(origin.count, 0)

    def test_a_name_that_is_not_allowed_any_more(self):
        origin = self.origin()
        proxy = self.inside({"allow": ["a.test"], "private": LOOPBACK}, origin.port)
        address = self.resolve("a.test").addresses[0]
        proxy.set_policy({})
        self.assertEqual(proxy.event()["event"], "policy")
        self.assert_refused(address, origin.port)
        self.assertEqual(self.resolve("a.test").rcode, 3)

    def test_single_methods_are_judged_on_a_carried_connection(self):
        origin = self.origin()
        proxy = self.inside({"allow": ["a.test"], "private": LOOPBACK, "methods": ["GET"]},
                            origin.port)
        client = self.connect(self.resolve("a.test").addresses[0], origin.port)
        host = "a.test:%d" % origin.port
        for _ in range(2):
            client.send("GET /x HTTP/1.1\r\nHost: %s\r\n\r\n" % host)
            self.assertIn(b"GET /x HTTP/1.1\r\nHost: a.test", client.response().body)
        client.send("DELETE /x HTTP/1.1\r\nHost: %s\r\n\r\n" % host)
        self.assertEqual(client.response().headers["x-codespace-verdict"], "method_not_allowed")
        self.assertEqual(proxy.event()["method"], "DELETE")
        client.send("GET /x HTTP/1.1\r\nHost: other.test\r\n\r\n")
        self.assertEqual(client.response().status, 400)
        client = self.connect(self.resolve("a.test").addresses[0], origin.port)
        self.assertEqual(client.send("SSH-2.0-x\r\n").response().status, 400)
        self.assertEqual(origin.count, 1)

    def test_door_inside(self):
        origin = self.origin()
        self.inside({"local_ports": [origin.port]}, 1000)
        client = self.connect("127.0.0.1", 3128)
        host = "localhost:%d" % origin.port
        client.send("GET http://%s/ HTTP/1.1\r\nHost: %s\r\n\r\n" % (host, host))
        self.assertEqual(client.response().status, 200)

    def test_nothing_else_leads_out(self):
        origin = self.origin()
        self.inside({"allow": ["*"]}, 1000)
        for host, error in (("127.0.0.1", errno.ECONNREFUSED), ("192.0.2.1", errno.ENETUNREACH)):
            with self.assertRaises(OSError) as caught:
                self.connect(host, origin.port)
            self.assertEqual(caught.exception.errno, error)
