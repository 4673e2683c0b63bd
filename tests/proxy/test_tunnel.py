"""Tunnels: CONNECT and SOCKS, half-close, first bytes, names in hellos."""

import hashlib
import os
import queue
import socket
import ssl
import struct

from support import DEADLINE_S, ProxyTest

ALLOW = {"allow": ["127.0.0.1"]}
NAMED = {"allow": ["*.test"], "private": ["127.0.0.0/8"]}


def reverse(client):
    while client.more():
        data, client.buffer = client.buffer, b""
        client.send(data[::-1])


def answer_after_end(client):
    """Read to the end of the client's bytes, then answer with their digest."""
    client.send(hashlib.sha256(client.read_all()).hexdigest())


def hello(name):
    """A real ClientHello for that name."""
    out = ssl.MemoryBIO()
    context = ssl.create_default_context()
    sock = context.wrap_bio(ssl.MemoryBIO(), out, server_hostname=name)
    try:
        sock.do_handshake()
    except ssl.SSLWantReadError:
        pass
    return out.read()


class TunnelTest(ProxyTest):
    def tunnel(self, proxy, port, host="127.0.0.1"):
        client = self.client(proxy)
        client.send("CONNECT %s:%d HTTP/1.1\r\nHost: %s:%d\r\n\r\n" % (host, port, host, port))
        self.assertEqual(client.head()[0], 200)
        return client


class Connect(TunnelTest):
    def test_bytes_both_ways(self):
        proxy, origin = self.proxy(ALLOW), self.origin(reverse)
        client = self.tunnel(proxy, origin.port)
        self.assertEqual(client.send("abc").read(3), b"cba")
        self.assertEqual(client.send("GET http://evil.test/ HTTP/1.1").read(30)[:3], b"1.1")

    def test_bytes_right_behind_the_request(self):
        proxy, origin = self.proxy(ALLOW), self.origin(reverse)
        client = self.client(proxy)
        client.send("CONNECT 127.0.0.1:%d HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\nabc" % origin.port)
        self.assertEqual(client.head()[0], 200)
        self.assertEqual(client.read(3), b"cba")

    def test_server_that_speaks_first(self):
        proxy, origin = self.proxy(NAMED, nameserver=self.nameserver(
            {"ssh.test": [["127.0.0.1"]]}).address), self.origin(lambda c: c.send("SSH-2.0-x\r\n"))
        client = self.tunnel(proxy, origin.port, "ssh.test")
        self.assertEqual(client.read_until(b"\r\n"), b"SSH-2.0-x\r\n")

    def test_half_close_of_the_client(self):
        data = os.urandom(5 << 20)
        proxy, origin = self.proxy(ALLOW), self.origin(answer_after_end)
        client = self.tunnel(proxy, origin.port).send(data).half_close()
        self.assertEqual(client.read_all().decode(), hashlib.sha256(data).hexdigest())

    def test_half_close_of_the_server(self):
        got = queue.Queue()

        def serve(client):
            client.send("done").half_close()
            got.put(client.read_all())

        proxy, origin = self.proxy(ALLOW), self.origin(serve)
        client = self.tunnel(proxy, origin.port)
        self.assertEqual(client.read_all(), b"done")
        client.send("still here").half_close()
        self.assertEqual(got.get(timeout=DEADLINE_S), b"still here")

    def test_reset_passes_through(self):
        begun, ended = queue.Queue(), queue.Queue()

        def serve(client):
            begun.put(client.read(1))
            try:
                ended.put(client.sock.recv(1))
            except ConnectionResetError:
                ended.put("reset")

        proxy, origin = self.proxy(ALLOW), self.origin(serve)
        client = self.tunnel(proxy, origin.port).send("x")
        self.assertEqual(begun.get(timeout=DEADLINE_S), b"x")
        client.reset()
        self.assertEqual(ended.get(timeout=DEADLINE_S), "reset")

    def test_large_amounts_both_ways_at_once(self):
        data = os.urandom(8 << 20)

        def serve(client):
            client.sock.sendall(data)
            client.half_close()
            client.read_all()

        proxy, origin = self.proxy(ALLOW), self.origin(serve)
        client = self.tunnel(proxy, origin.port)
        got = client.read_all()
        self.assertEqual(hashlib.sha256(got).digest(), hashlib.sha256(data).digest())

    def test_closed_port_is_told(self):
        closed = socket.socket()
        closed.bind(("127.0.0.1", 0))
        self.addCleanup(closed.close)
        proxy = self.proxy(ALLOW)
        client = self.client(proxy)
        client.send("CONNECT 127.0.0.1:%d HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
                    % closed.getsockname()[1])
        answer = client.response()
        self.assertEqual((answer.status, answer.headers["x-codespace-error"]),
                         (502, "connection_refused"))
        self.assertTrue(client.closed())

    def test_port_is_required(self):
        proxy = self.proxy({"allow": ["*"]})
        client = self.client(proxy).send("CONNECT a.test HTTP/1.1\r\nHost: a.test\r\n\r\n")
        self.assertEqual(client.response().status, 400)


class Hellos(TunnelTest):
    def named(self, **policy):
        proxy = self.proxy({**NAMED, **policy}, nameserver=self.nameserver(
            {"a.test": [["127.0.0.1"]], "b.test": [["127.0.0.1"]]}).address)
        origin = self.origin(lambda client: client.send(b"%d" % len(client.read(517))))
        return proxy, origin, self.tunnel(proxy, origin.port, "a.test")

    def test_same_name_passes_in_silence(self):
        _, _, client = self.named(fronting="refuse")
        data = hello("a.test")
        for i in range(0, len(data), 100):
            client.send(data[i:i + 100])
        self.assertEqual(client.read_all(), b"517")

    def test_other_name_is_told(self):
        proxy, origin, client = self.named()
        self.assertEqual(client.send(hello("b.test")).read_all(), b"517")
        self.assertEqual(proxy.event(), {
            "event": "name_mismatch", "via": "connect", "host": "a.test", "port": origin.port,
            "method": "CONNECT", "layer": "tls", "named": "b.test", "refused": False})

    def test_other_name_is_refused_on_demand(self):
        proxy, _, client = self.named(fronting="refuse")
        self.assertEqual(client.send(hello("b.test")).read_all(), b"")
        self.assertTrue(proxy.event()["refused"])

    def test_no_name_is_refused_on_demand(self):
        context = ssl.create_default_context()
        context.check_hostname = False
        out = ssl.MemoryBIO()
        with self.assertRaises(ssl.SSLWantReadError):
            context.wrap_bio(ssl.MemoryBIO(), out).do_handshake()
        proxy, _, client = self.named(fronting="refuse")
        self.assertEqual(client.send(out.read()).read_all(), b"")
        self.assertEqual(proxy.event()["named"], "")

    def test_host_of_plain_http_is_compared_too(self):
        request = b"GET / HTTP/1.1\r\nHost: %s\r\nX: "
        request += b"x" * (517 - len(request) - 8) + b"\r\n\r\n"  # 517 with a name of 6 bytes
        proxy, _, client = self.named(fronting="refuse")
        client.send(request[:2])
        client.send((request % b"a.test")[2:])
        self.assertEqual(client.read_all(), b"517")
        proxy, _, client = self.named()
        self.assertEqual(client.send(request % b"b.test").read_all(), b"517")
        event = proxy.event()
        self.assertEqual((event["layer"], event["named"], event["refused"]),
                         ("http", "b.test", False))
        proxy, _, client = self.named(fronting="refuse")
        self.assertEqual(client.send(request % b"b.test").read_all(), b"")
        self.assertTrue(proxy.event()["refused"])

    def test_bytes_that_are_no_hello_pass(self):
        proxy, origin, client = self.named(fronting="refuse")
        self.assertEqual(client.send(b"\x16\x02" + b"x" * 515).read_all(), b"517")


class Socks(ProxyTest):
    def greet(self, proxy, methods=b"\x00"):
        client = self.client(proxy).send(b"\x05" + bytes([len(methods)]) + methods)
        return client

    def request(self, proxy, kind, address, port, command=1):
        client = self.greet(proxy)
        self.assertEqual(client.read(2), b"\x05\x00")
        if kind == 3:
            address = bytes([len(address)]) + address
        client.send(bytes([5, command, 0, kind]) + address + struct.pack("!H", port))
        return client, client.read(10)[1]

    def test_addresses_and_names(self):
        proxy = self.proxy({"allow": ["127.0.0.1", "*.test"], "private": ["127.0.0.0/8"]},
                           nameserver=self.nameserver({"a.test": [["127.0.0.1"]]}).address)
        origin = self.origin(reverse)
        for kind, address in ((1, b"\x7f\0\0\1"), (3, b"127.0.0.1"), (3, b"A.test.")):
            client, code = self.request(proxy, kind, address, origin.port)
            self.assertEqual(code, 0)
            self.assertEqual(client.send("abc").read(3), b"cba")

    def test_ipv6(self):
        proxy, origin = self.proxy({"allow": ["::1"]}), self.origin(reverse, host="::1")
        client, code = self.request(proxy, 4, socket.inet_pton(socket.AF_INET6, "::1"), origin.port)
        self.assertEqual(code, 0)
        self.assertEqual(client.send("abc").read(3), b"cba")

    def test_codes(self):
        closed = socket.socket()
        closed.bind(("127.0.0.1", 0))
        self.addCleanup(closed.close)
        port = closed.getsockname()[1]
        proxy = self.proxy({"allow": ["127.0.0.1", "*.test", "10.0.0.1:1"], "deny": ["no.test"]},
                           nameserver=self.nameserver({"private.test": [["10.1.2.3"]]}).address)
        for kind, address, number, command, code in (
                (3, b"other.example", 80, 1, 2), (3, b"no.test", 80, 1, 2),
                (1, b"\x0a\0\0\1", 80, 1, 2), (3, b"private.test", 80, 1, 2),
                (3, b"evil.test\x00.a.test", 80, 1, 2), (3, b"0x7f.1", 80, 1, 2),
                (3, b"missing.test", 80, 1, 4), (1, b"\x7f\0\0\1", port, 1, 5),
                (1, b"\x7f\0\0\1", port, 2, 7), (1, b"\x7f\0\0\1", port, 3, 7),
                (9, b"\x7f\0\0\1", port, 1, 8)):
            with self.subTest(address):
                client, got = self.request(proxy, kind, address, number, command)
                self.assertEqual(got, code)
                self.assertTrue(client.half_close().closed())

    def test_no_method_in_common(self):
        client = self.greet(self.proxy(ALLOW), b"\x02")
        self.assertEqual(client.read(2), b"\x05\xff")
        self.assertTrue(client.half_close().closed())

    def test_refusal_is_told(self):
        proxy = self.proxy(ALLOW)
        client, _ = self.request(proxy, 3, b"evil.test", 22)
        self.assertEqual(proxy.event(), {
            "event": "refused", "via": "socks", "host": "evil.test", "port": 22,
            "method": "CONNECT", "reason": "not_allowed", "client": client.sock.getsockname()[1]})
