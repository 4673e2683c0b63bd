"""TLS that the proxy ends for the hosts of its list: what the client sees, what the server gets, and
what is refused on either side."""

import json
import os
import resource
import shutil
import socket
import ssl
import struct
import subprocess
import tempfile
import threading

from support import DEADLINE_S, LOOPBACK, Client, Proxy, ProxyTest, echo_head, listener

VALUE = "Bearer e3-secret-of-the-operator"
NAMES = {"a.test": [["127.0.0.1"]], "b.test": [["127.0.0.1"]], "c.test": [["127.0.0.1"]]}


def make_cert(folder, name, *more):
    path = os.path.join(folder, name)
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                    "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=" + name, "-keyout",
                    path + ".key", "-out", path + ".pem", *(more or ("-days", "2")), "-addext",
                    "subjectAltName=DNS:" + name], check=True, stderr=subprocess.DEVNULL)
    with open(path + ".pem") as text:
        return text.read()


class Intercept(ProxyTest):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="cs-tls-")
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.certs = {name: make_cert(cls.folder, name) for name in NAMES}

    def setUp(self):
        self.names = self.nameserver(NAMES)
        self.server = self.tls_origin("a.test")

    def tls_origin(self, name, serve=echo_head, **more):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*(os.path.join(self.folder, name + end) for end in (".pem", ".key")))
        context.set_alpn_protocols(["h2", "http/1.1"])
        self.seen_protocols = []

        def secured(client):
            with context.wrap_socket(client.sock, server_side=True) as sock:
                self.seen_protocols.append(sock.selected_alpn_protocol())
                serve(Client(sock))
                try:
                    sock.unwrap()
                except (OSError, ValueError):
                    pass

        return self.origin(secured, **more)

    def start(self, policy=None, rules=None, trust=None, **more):
        rules = rules or [{"host": "a.test:%d" % self.server.port, "header": "Authorization",
                           "value": VALUE, "tls": "intercept"}]
        policy = {"allow": ["*"], "private": LOOPBACK, **(policy or {})}
        self.px = self.proxy(policy, nameserver=self.names.address, inject=json.dumps(rules),
                             trust=(trust or self.certs["a.test"] + self.certs["b.test"]).encode(),
                             **more)
        return self.px

    def context(self):
        context = ssl.create_default_context(cadata=self.px.bundle)
        context.set_alpn_protocols(["h2", "http/1.1"])
        return context

    def tunnel(self, host="a.test", port=None):
        client = self.client(self.px)
        client.send("CONNECT %s:%d HTTP/1.1\r\nHost: %s:%d\r\n\r\n" % (
            (host, port or self.server.port) * 2))
        status = client.head()[0]
        self.assertEqual(status, 200)
        return client

    def secure(self, host="a.test", port=None, context=None, ragged=True):
        """`ragged`: an end without TLS's own end counts as one."""
        client = self.tunnel(host, port)
        sock = (context or self.context()).wrap_socket(client.sock, server_hostname=host,
                                                       suppress_ragged_eofs=ragged)
        self.addCleanup(sock.close)
        return Client(sock)

    def get(self, host="a.test", headers="", method="GET", path="/x"):
        return "%s %s HTTP/1.1\r\nHost: %s:%d\r\n%s\r\n" % (
            method, path, host, self.server.port, headers)

    # ---- what it is for ----

    def test_the_header_is_added_inside_tls(self):
        self.start()
        client = self.secure()
        self.assertEqual(client.sock.selected_alpn_protocol(), "http/1.1")
        for _ in range(3):  # on kept connections
            body = client.send(self.get(headers="authorization: mine\r\nX: 1\r\n")).response().body
            self.assertEqual(body.decode(), "GET /x HTTP/1.1\r\nHost: a.test:%d\r\nX: 1\r\n"
                             "Authorization: %s\r\n\r\n" % (self.server.port, VALUE))
        self.assertEqual((self.server.count, self.seen_protocols), (1, ["http/1.1"]))

    def test_socks_and_a_hello_in_one_piece_with_its_tunnel(self):
        self.start()
        client = self.client(self.px)
        host = b"a.test"
        client.send(b"\5\1\0").read(2)
        client.send(b"\5\1\0\3" + bytes([len(host)]) + host + struct.pack("!H", self.server.port))
        self.assertEqual(client.read(10)[1], 0)
        sock = self.context().wrap_socket(client.sock, server_hostname="a.test")
        self.addCleanup(sock.close)
        self.assertIn(VALUE.encode(), Client(sock).send(self.get()).response().body)
        # The hello does not wait for the answer to the CONNECT.
        client = self.client(self.px)
        inside, outside = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = self.context().wrap_bio(inside, outside, server_hostname="a.test")
        with self.assertRaises(ssl.SSLWantReadError):
            tls.do_handshake()
        client.send(b"CONNECT a.test:%d HTTP/1.1\r\nHost: a.test:%d\r\n\r\n" % (
            (self.server.port,) * 2) + outside.read())
        self.assertEqual(client.head()[0], 200)
        while True:
            inside.write(client.buffer)
            client.buffer = b""
            try:
                tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                client.more()
        self.assertEqual(tls.version(), "TLSv1.3")

    def test_tls_1_2(self):
        self.start()
        context = self.context()
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        client = self.secure(context=context)
        self.assertEqual(client.sock.version(), "TLSv1.2")
        self.assertIn(VALUE.encode(), client.send(self.get()).response().body)

    def test_large_bodies_both_ways(self):
        self.start()
        data = os.urandom(1 << 20) * 6
        client = self.secure()
        # The server answers when it has all. (One TLS session is not for two threads.)
        client.send(self.get(method="POST", headers="Content-Length: %d\r\n" % len(data)).encode()
                    + data)
        self.assertTrue(client.response().body.endswith(data))
        chunked = b"".join(b"%x\r\n%s\r\n" % (len(part), part)
                           for part in (data[:70000], data[:1], data[:300000])) + b"0\r\n\r\n"
        client.send(self.get(method="PUT", headers="Transfer-Encoding: chunked\r\n").encode()
                    + chunked)
        self.assertTrue(client.response().body.endswith(data[:300000]))
        self.assertEqual(self.server.count, 1)

    def test_a_client_that_reads_slowly(self):
        """What it does not read stays with the server, and other clients go on."""
        size, sent = 48 << 20, []

        def serve(client):
            while b"/small" not in client.read_until(b"\r\n\r\n"):
                client.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size)
                for _ in range(size >> 20):
                    client.send(bytes(1 << 20))
                    sent.append(1)
            client.send(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nsmall")

        self.server = self.tls_origin("a.test", serve)
        self.start()
        slow, other = self.secure(), self.secure()
        slow.send(self.get()).head()
        self.assertEqual(other.send(self.get(path="/small")).response().body, b"small")
        self.assertLess(len(sent), size >> 20)
        left = size - len(slow.buffer)
        while left > 0:
            left -= len(slow.sock.recv(65536)) or self.fail("cut with %d left" % left)
        slow.buffer = b""
        self.assertEqual(slow.send(self.get(path="/small")).response().body, b"small")

    def test_a_body_until_the_end_and_a_cut_one(self):
        begun = threading.Event()

        def serve(client):
            head = client.read_until(b"\r\n\r\n")
            client.send(b"HTTP/1.1 200 OK\r\n\r\nall of it")
            if b"/cut" in head:
                begun.wait(DEADLINE_S)
                os.dup2(os.open(os.devnull, os.O_RDWR), client.sock.fileno())  # no proper end

        self.server = self.tls_origin("a.test", serve)
        self.start()
        client = self.secure(ragged=False)
        client.send(self.get()).head()
        self.assertEqual(client.read_all(), b"all of it")
        client = self.secure(ragged=False)
        client.send(self.get(path="/cut")).head()
        self.assertEqual(client.read(9), b"all of it")
        begun.set()
        with self.assertRaises(OSError):
            client.sock.recv(4096)

    def test_upgrades(self):
        def serve(client):
            client.read_until(b"\r\n\r\n")
            client.send(b"HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n")
            client.send(b"<" + client.read(5) + b">")

        self.server = self.tls_origin("a.test", serve)
        self.start()
        client = self.secure()
        client.send(self.get(headers="Connection: upgrade\r\nUpgrade: x\r\n"))
        self.assertEqual(client.head()[0], 101)
        self.assertEqual(client.send(b"hello").read(7), b"<hello>")

    def test_methods_hold_inside(self):
        self.start({"methods": ["GET"]})
        client = self.secure()
        self.assertIn(VALUE.encode(), client.send(self.get()).response().body)
        answer = client.send(self.get(method="DELETE")).response()
        self.assertEqual((answer.status, answer.json()["reason"]), (403, "method_not_allowed"))
        event = self.px.expect_event("refused")
        self.assertEqual((event["host"], event["method"]), ("a.test", "DELETE"))
        self.assertIn(VALUE.encode(), client.send(self.get()).response().body)
        # Another host's tunnel still needs CONNECT.
        other = self.client(self.px)
        other.send("CONNECT b.test:%d HTTP/1.1\r\nHost: b.test:%d\r\n\r\n" % (
            (self.server.port,) * 2))
        self.assertEqual(other.head()[0], 403)

    def test_through_the_operators_proxy(self):
        seen = []

        def serve(client):
            seen.append(client.read_until(b"\r\n\r\n"))
            client.send(b"HTTP/1.1 200 OK\r\n\r\n")
            with socket.create_connection(("127.0.0.1", self.server.port)) as sock:
                def back():
                    try:
                        while data := sock.recv(65536):
                            client.send(data)
                    except OSError:
                        pass
                thread = threading.Thread(target=back)
                thread.start()
                try:
                    while data := client.sock.recv(65536):
                        seen.append(data)
                        sock.sendall(data)
                except OSError:
                    pass
                sock.shutdown(socket.SHUT_RDWR)
                thread.join()

        up = self.origin(serve)
        self.start({"upstream": "127.0.0.1:%d" % up.port})
        client = self.secure()
        body = client.send(self.get()).response().body.decode()
        self.assertTrue(body.startswith("GET /x HTTP/1.1\r\nHost: a.test"), body)
        self.assertIn(VALUE, body)
        self.assertTrue(seen[0].startswith(b"CONNECT a.test:%d" % self.server.port))
        self.assertNotIn(b"e3-secret", b"".join(seen))
        client.close()

    # ---- only these hosts ----

    def test_another_host_is_an_opaque_tunnel(self):
        other = self.tls_origin("b.test")
        self.start()
        client = self.secure("b.test", port=other.port)
        self.assertEqual(client.sock.getpeercert(True),
                         ssl.PEM_cert_to_DER_cert(self.certs["b.test"]))
        body = client.send(b"GET / HTTP/1.1\r\nHost: b.test\r\n\r\n").response().body
        self.assertNotIn(b"e3-secret", body)

    def test_another_port_of_the_host_too(self):
        other = self.tls_origin("a.test")
        self.start()
        client = self.secure(port=other.port)
        self.assertEqual(client.sock.getpeercert(True),
                         ssl.PEM_cert_to_DER_cert(self.certs["a.test"]))

    def test_not_in_plain_http_to_that_port(self):
        self.server = self.origin()
        self.start()
        body = self.client(self.px).send("GET http://a.test:%d/ HTTP/1.1\r\n\r\n" % self.server.port
                                         ).response().body
        self.assertNotIn(b"e3-secret", body)

    def test_the_certificates(self):
        self.start()
        shown = self.secure().sock.getpeercert()
        self.assertEqual(shown["subjectAltName"], (("DNS", "a.test"),))
        self.assertTrue(self.px.bundle.startswith(self.certs["a.test"]))
        ours = self.px.bundle[self.px.bundle.rindex("-----BEGIN"):]
        text = subprocess.run(["openssl", "x509", "-noout", "-text"], input=ours, check=True,
                              capture_output=True, text=True).stdout
        for word in ("CA:TRUE, pathlen:0", "Name Constraints: critical", "DNS:a.test",
                     "Certificate Sign"):
            self.assertIn(word, text)
        strict = ssl.create_default_context(cadata=ours)
        strict.verify_flags |= ssl.VERIFY_X509_STRICT
        self.secure(context=strict).send(self.get()).response()
        first = ours
        self.start()  # another one has another authority
        self.assertNotIn(first, self.px.bundle)

    def test_its_key_is_nowhere(self):
        proxy = self.start()
        self.secure()
        for name in ("cmdline", "environ"):
            with open("/proc/%d/%s" % (proxy.process.pid, name), "rb") as f:
                self.assertNotIn(b"PRIVATE", f.read())
        self.assertNotIn("PRIVATE", proxy.bundle)

    # ---- the server's certificate ----

    def refused_server(self, name="a.test", **more):
        client = self.secure(name, **more)
        answer = client.send(self.get(name)).response()
        self.assertEqual((answer.status, answer.headers["x-codespace-verdict"]),
                         (502, "certificate_refused"))
        event = self.px.expect_event("refused")
        self.assertEqual((event["reason"], event["host"]), ("certificate_refused", name))
        return answer.json()["message"]

    def test_an_unknown_authority(self):
        self.start(trust=self.certs["b.test"])
        self.assertIn("self-signed", self.refused_server())
        self.assertEqual(self.seen_protocols, [])

    def test_a_certificate_of_another_host(self):
        self.server = self.tls_origin("b.test")
        self.start()
        self.assertIn("ostname mismatch", self.refused_server())

    def test_a_server_that_speaks_no_tls(self):
        self.server = self.origin(lambda client: client.send(b"HTTP/1.1 200 OK\r\n\r\n").read(1))
        self.start()
        answer = self.secure().send(self.get()).response()
        self.assertEqual((answer.status, answer.headers["x-codespace-error"]), (502, "tls_failed"))
        self.assertNotIn("e3-secret", answer.body.decode())

    def test_a_server_that_closes_in_the_handshake(self):
        self.server = self.origin(lambda client: client.read(5))
        self.start()
        answer = self.secure().send(self.get()).response()
        self.assertEqual((answer.status, answer.json()["reason"]), (502, "tls_failed"))

    def test_a_server_that_never_finishes_its_handshake(self):
        over = threading.Event()
        self.server = self.origin(lambda client: (client.read(5), over.wait(DEADLINE_S)))
        self.addCleanup(over.set)  # before the origin waits for its threads
        self.start(limits=["DIAL=200"])
        client = self.secure()
        for _ in range(2):  # the client may go on
            answer = client.send(self.get()).response()
            self.assertEqual((answer.status, answer.json()["reason"]), (504, "tls_timeout"))
            self.assertIn("LOOP_DIAL", answer.json()["message"])
            self.assertNotIn("e3-secret", answer.body.decode())

    def test_a_large_trust_store(self):
        """It is parsed over many turns; who comes meanwhile waits for the end of it, where the
        authority is that is needed."""
        trust = self.certs["b.test"] * 300 + self.certs["a.test"]
        self.start(trust=trust)
        clients = [self.secure() for _ in range(8)]
        for client in clients:
            client.send(self.get())
        for client in clients:
            self.assertIn(VALUE.encode(), client.response().body)

    def test_a_server_that_is_not_there(self):
        port = self.server.port
        self.start()
        self.server.stop()
        self._cleanups = [c for c in self._cleanups if c[0] != self.server.stop]
        answer = self.secure(port=port).send(self.get()).response()
        self.assertEqual((answer.status, answer.json()["reason"]), (502, "connection_refused"))

    # ---- hostile clients ----

    def test_garbage_instead_of_a_hello(self):
        self.start()
        for data in (b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n", b"\0" * 64, b"\x16\x03\x01\xff\xff" + b"x" * 400,
                     b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00", os.urandom(3000)):
            client = self.tunnel()
            client.send(data).half_close()
            out = client.read_all()
            self.assertNotIn(b"HTTP", out, data[:20])
        for cut in (1, 5, 40):  # and leaving in the middle
            client = self.tunnel()
            client.send((b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(40))[:cut])
            client.reset()
        self.assertEqual(self.server.count, 0)
        self.assertIn(VALUE.encode(), self.secure().send(self.get()).response().body)

    def test_another_name_than_the_tunnels(self):
        self.start()
        context = self.context()
        context.check_hostname = False
        for name in ("b.test", "x.a.test", "a.test.b.test"):
            client = self.tunnel()
            with self.assertRaisesRegex(ssl.SSLError, "(?i)unrecognized"):
                context.wrap_socket(client.sock, server_hostname=name)
            event = self.px.expect_event("name_mismatch")
            self.assertEqual((event["host"], event["layer"], event["named"], event["refused"]),
                             ("a.test", "tls", name, True))
        self.assertEqual(self.server.count, 0)

    def test_without_a_name(self):
        self.start()
        context = self.context()
        context.check_hostname = False
        sock = context.wrap_socket(self.tunnel().sock)
        self.addCleanup(sock.close)
        self.assertIn(VALUE.encode(), Client(sock).send(self.get()).response().body)

    def test_only_protocols_that_are_not_there(self):
        self.start()
        context = self.context()
        context.set_alpn_protocols(["h2"])
        with self.assertRaises((ssl.SSLError, OSError)):
            context.wrap_socket(self.tunnel().sock, server_hostname="a.test")
        context = ssl.create_default_context(cadata=self.px.bundle)  # none at all is HTTP/1.1
        self.assertEqual(self.secure(context=context).send(self.get()).response().status, 200)

    def test_old_versions(self):
        self.start()
        context = self.context()
        context.minimum_version = ssl.TLSVersion.TLSv1
        context.maximum_version = ssl.TLSVersion.TLSv1_1
        context.set_ciphers("ALL:@SECLEVEL=0")
        with self.assertRaises((ssl.SSLError, OSError)):
            context.wrap_socket(self.tunnel().sock, server_hostname="a.test")

    def test_another_host_inside(self):
        self.start()
        port = self.server.port
        for target, host in (("/x", "b.test:%d" % port), ("/x", "a.test"), ("/x", "a.test:1"),
                             ("http://a.test:%d/x" % port, "a.test:%d" % port),
                             ("https://b.test/x", "b.test"), ("b.test:%d" % port, "b.test:%d" % port),
                             ("/x", "a.test:%d, b.test" % port), ("/x", "user@a.test:%d" % port)):
            for method in ("GET", "CONNECT"):
                client = self.secure()
                answer = client.send("%s %s HTTP/1.1\r\nHost: %s\r\n\r\n" % (method, target, host)
                                     ).response()
                if method == "CONNECT" and (target, host) == ("/x", "a.test:%d" % port):
                    continue
                self.assertEqual(answer.status, 400, (method, target, host))
        self.assertEqual(self.server.count, 0)

    def test_smuggling_inside(self):
        self.start()
        head = "POST /x HTTP/1.1\r\nHost: a.test:%d\r\n" % self.server.port
        for rest in ("Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
                     "Content-Length: 4\r\nContent-Length: 5\r\n\r\nabcd",
                     "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
                     "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
                     "X: a\r\n b\r\n\r\n", "X: a\nY: b\r\n\r\n", "Host: b.test\r\n\r\n",
                     "X: a\0b\r\n\r\n"):
            client = self.secure()
            self.assertEqual(client.send(head + rest).response().status, 400, rest)
        self.assertEqual(self.server.count, 0)

    def test_a_connection_header_does_not_take_ours_away(self):
        self.start()
        body = self.secure().send(self.get(headers="Connection: Authorization\r\n")).response().body
        self.assertIn(VALUE.encode(), body)

    def test_not_by_an_echo_of_the_request(self):
        self.start()
        for method in ("TRACE", "Track"):
            self.assertNotIn(b"e3-secret", self.secure().send(self.get(method=method)).response().body)

    def test_too_many_at_one_time(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, hard), hard))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        self.start()
        held = [self.tunnel() for _ in range(1024)]
        client = self.client(self.px)
        client.send("CONNECT a.test:%d HTTP/1.1\r\nHost: a.test:%d\r\n\r\n" % (
            (self.server.port,) * 2))
        answer = client.response()
        self.assertEqual(answer.status, 503)
        self.assertIn("INTERCEPT_CONNECTIONS_MAX", answer.json()["message"])
        event = self.px.expect_event("limit")
        self.assertEqual((event["name"], event["value"]), ("INTERCEPT_CONNECTIONS_MAX", 1024))
        held.pop().close()  # what ends makes room, as soon as the proxy has heard of it
        while True:
            client = self.client(self.px)
            client.send("CONNECT a.test:%d HTTP/1.1\r\nHost: a.test:%d\r\n\r\n" % (
                (self.server.port,) * 2))
            if client.head()[0] == 200:
                break

    # ---- the policy ----

    def test_a_host_that_is_not_allowed(self):
        self.start({"deny": ["a.test"]})
        client = self.client(self.px)
        client.send("CONNECT a.test:%d HTTP/1.1\r\nHost: a.test:%d\r\n\r\n" % (
            (self.server.port,) * 2))
        self.assertEqual(client.response().json()["reason"], "denied")

    def test_a_new_policy_counts_inside(self):
        self.start()
        client = self.secure()
        self.assertEqual(client.send(self.get()).response().status, 200)
        self.px.set_policy({"allow": ["*"], "methods": ["POST"], "private": LOOPBACK})
        self.px.expect_event("policy")
        self.assertEqual(client.send(self.get()).response().status, 403)
        self.px.set_policy({"allow": ["b.test"], "private": LOOPBACK})
        self.px.expect_event("policy")
        self.assertEqual(client.send(self.get()).response().status, 403)

    # ---- the start ----

    def refused_start(self, rule, trust, word):
        proxy = Proxy({"allow": ["*"]}, listeners=[("--listen-fd", listener())],
                      inject=json.dumps([rule]), trust=trust)
        self.assertIsNone(proxy.ready)
        self.assertEqual(proxy.process.wait(DEADLINE_S), 78)
        proxy.stop()
        self.assertIn(word, proxy.errors)
        self.assertNotIn("e3-secret", proxy.errors)

    def test_what_ends_the_start(self):
        good = {"host": "a.test", "header": "Authorization", "value": VALUE, "tls": "intercept"}
        self.refused_start(good, None, "--trust-fd")
        self.refused_start(good, b"none here", "no certificates")
        self.refused_start(good, b"", "no certificates")
        self.refused_start({**good, "host": "10.1.2.3"}, None, "is an address")
        self.refused_start({**good, "tls": "yes"}, None, "tls")
