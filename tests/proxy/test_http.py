"""The forward proxy: what is forwarded, in which form, and what ends a conversation."""

import hashlib
import os
import queue
import socket
import threading

from support import DEADLINE_S, ProxyTest, echo_head

ALLOW = {"allow": ["127.0.0.1"]}


def get(origin, path="/", method="GET", headers="", body="", version="1.1"):
    host = "127.0.0.1:%d" % origin.port
    return "%s http://%s%s HTTP/%s\r\nHost: %s\r\n%s\r\n%s" % (
        method, host, path, version, host, headers, body)


class Forwarding(ProxyTest):
    def test_request_is_written_anew(self):
        proxy, origin = self.proxy(ALLOW), self.origin()
        headers = (
            "Accept: */*\r\nProxy-Connection: keep-alive\r\nProxy-Authorization: Basic eDp5\r\n"
            "Connection: X-Mine, keep-alive\r\nX-Mine: 1\r\nKeep-Alive: 5\r\nTE: trailers\r\n"
        )
        answer = self.client(proxy).send(get(origin, "/a?b=c", headers=headers)).response()
        self.assertEqual(
            answer.body.decode(),
            "GET /a?b=c HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAccept: */*\r\n\r\n" % origin.port)

    def test_forms_of_the_target(self):
        proxy, origin = self.proxy(ALLOW), self.origin()
        client = self.client(proxy)
        for method, path, line in (
                ("GET", "", "GET / HTTP/1.1"), ("GET", "?q", "GET /?q HTTP/1.1"),
                ("GET", "//x", "GET //x HTTP/1.1"), ("OPTIONS", "", "OPTIONS * HTTP/1.1"),
                ("GET", "/%00?@#".rstrip("#"), "GET /%00?@ HTTP/1.1")):
            with self.subTest(path):
                answer = client.send(get(origin, path, method)).response()
                self.assertEqual(answer.body.decode().split("\r\n")[0], line)

    def test_connections_are_kept(self):
        proxy, origin = self.proxy(ALLOW), self.origin()
        client = self.client(proxy)
        for _ in range(50):
            self.assertEqual(client.send(get(origin)).response().status, 200)
        self.assertEqual(origin.count, 1)

    def test_another_target_on_the_same_connection(self):
        proxy, one, two = self.proxy(ALLOW), self.origin(), self.origin()
        client = self.client(proxy)
        for origin in (one, two, one):
            answer = client.send(get(origin)).response()
            self.assertIn(b"Host: 127.0.0.1:%d" % origin.port, answer.body)
        self.assertEqual((one.count, two.count), (2, 1))

    def test_pipelined_requests_are_answered_in_order(self):
        proxy, origin = self.proxy(ALLOW), self.origin()
        client = self.client(proxy)
        client.send("".join(get(origin, "/%d" % i) for i in range(20)))
        for i in range(20):
            self.assertIn(b"GET /%d " % i, client.response().body)

    def test_byte_by_byte(self):
        proxy, origin = self.proxy(ALLOW), self.origin()
        client = self.client(proxy)
        for byte in get(origin, "/slow", "POST", "Content-Length: 3\r\n", "abc").encode():
            client.send(bytes([byte]))
        self.assertTrue(client.response().body.endswith(b"\r\n\r\nabc"))

    def test_bodies_of_a_request(self):
        proxy, origin = self.proxy(ALLOW), self.origin()
        client = self.client(proxy)
        answer = client.send(get(origin, "/", "POST", "Content-Length: 5\r\n", "hello")).response()
        self.assertIn(b"Content-Length: 5\r\n\r\nhello", answer.body)
        chunked = "3;x=y\r\nabc\r\n2\r\nde\r\n0\r\nX-Trailer: t\r\n\r\n"
        answer = client.send(
            get(origin, "/", "PUT", "Transfer-Encoding: chunked\r\n", chunked)).response()
        self.assertIn(b"Transfer-Encoding: chunked\r\n\r\nabcde", answer.body)
        self.assertEqual(origin.count, 1)

    def test_head_and_bodiless_answers(self):
        def serve(client):
            answers = iter((
                "HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n",
                "HTTP/1.1 204 No Content\r\n\r\n",
                "HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n",
                "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"))
            for answer in answers:
                client.read_until(b"\r\n\r\n")
                client.send(answer)

        proxy, origin = self.proxy(ALLOW), self.origin(serve)
        client = self.client(proxy)
        head = client.send(get(origin, "/", "HEAD")).response(bodiless=True)
        self.assertEqual(head.headers["content-length"], "99")
        self.assertEqual(client.send(get(origin)).response().status, 204)
        self.assertEqual(client.send(get(origin)).response().status, 304)
        self.assertEqual(client.send(get(origin)).response().body, b"")
        self.assertEqual(origin.count, 1)

    def test_large_bodies_both_ways(self):
        data = os.urandom(3 << 20) * 4

        def serve(client):
            while True:
                client.read_until(b"\r\n\r\n")
                body = client.read(len(data))
                client.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)

        proxy, origin = self.proxy(ALLOW), self.origin(serve)
        client = self.client(proxy)
        for _ in range(2):
            request = get(origin, "/", "POST", "Content-Length: %d\r\n" % len(data)).encode()
            client.send(request + data)
            self.assertEqual(
                hashlib.sha256(client.response().body).digest(), hashlib.sha256(data).digest())

    def test_large_chunks_and_small_ones(self):
        parts = [os.urandom(n) for n in (1 << 20, 1, 700, 1 << 20, 65536, 3)]

        def serve(client):
            while True:
                client.read_until(b"\r\n\r\n")
                client.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
                for part in parts:
                    client.send(b"%x\r\n" % len(part) + part + b"\r\n")
                client.send("0\r\n\r\n")

        proxy, origin = self.proxy(ALLOW), self.origin(serve)
        client = self.client(proxy)
        for _ in range(2):
            self.assertEqual(client.send(get(origin)).response().body, b"".join(parts))
        self.assertEqual(origin.count, 1)

    def test_large_chunks_to_a_client_that_reads_slowly(self):
        """What waits on the way to it comes before what came later, also at the end of a chunk."""
        parts = [bytes([65 + i]) * ((1 << 20) + 77 * i) for i in range(16)]

        def serve(client):
            client.read_until(b"\r\n\r\n")
            client.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            for part in parts:
                client.send(b"%x\r\n" % len(part) + part + b"\r\n")
            client.send("0\r\n\r\n")

        proxy, origin = self.proxy(ALLOW), self.origin(serve)
        client = self.client(proxy)
        client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        self.assertEqual(client.send(get(origin)).response().body, b"".join(parts))

    def test_body_until_the_end_of_the_connection(self):
        def serve(client):
            client.read_until(b"\r\n\r\n")
            client.send("HTTP/1.1 200 OK\r\n\r\n" + "x" * 100000)

        proxy, origin = self.proxy(ALLOW), self.origin(serve)
        client = self.client(proxy).send(get(origin))
        answer = client.response()
        self.assertEqual(answer.headers["connection"], "close")
        self.assertEqual(len(answer.body), 100000)

    def test_expect_continue(self):
        def serve(client):
            self.assertIn(b"Expect: 100-continue", client.read_until(b"\r\n\r\n"))
            client.send("HTTP/1.1 100 Continue\r\n\r\n")
            body = client.read(4)
            client.send(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n" + body)

        proxy, origin = self.proxy(ALLOW), self.origin(serve)
        client = self.client(proxy)
        client.send(get(origin, "/", "POST", "Content-Length: 4\r\nExpect: 100-continue\r\n"))
        self.assertEqual(client.head()[0], 100)
        self.assertEqual(client.send("body").response().body, b"body")

    def test_http_1_0(self):
        proxy, origin = self.proxy(ALLOW), self.origin()
        client = self.client(proxy)
        answer = client.send(
            get(origin, headers="Connection: keep-alive\r\n", version="1.0")).response()
        self.assertTrue(answer.raw_head.startswith("HTTP/1.0 200"))
        self.assertEqual(answer.headers["connection"], "keep-alive")
        answer = client.send(get(origin, version="1.0")).response()
        self.assertEqual(answer.status, 200)
        self.assertTrue(client.closed())

    def test_upgrade_becomes_a_tunnel(self):
        def serve(client):
            head = client.read_until(b"\r\n\r\n")
            self.assertIn(b"Connection: upgrade\r\nUpgrade: websocket\r\n", head)
            client.send("HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                        "\r\nfirst")
            client.send(client.read(4)[::-1])

        proxy, origin = self.proxy(ALLOW), self.origin(serve)
        client = self.client(proxy)
        client.send(get(origin, headers="Connection: Upgrade\r\nUpgrade: websocket\r\n"))
        self.assertEqual(client.head()[0], 101)
        self.assertEqual(client.read(5), b"first")
        self.assertEqual(client.send("abcd").read(4), b"dcba")
        self.assertTrue(client.closed())

    def test_upgrade_to_http2_is_not_passed_on(self):
        proxy, origin = self.proxy(ALLOW), self.origin()
        headers = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: x\r\n"
        answer = self.client(proxy).send(get(origin, headers=headers)).response()
        self.assertNotIn(b"pgrade", answer.body)
        self.assertNotIn(b"HTTP2", answer.body)

    def test_upgrade_needs_what_a_tunnel_needs(self):
        proxy, origin = self.proxy({**ALLOW, "methods": ["GET"]}), self.origin()
        headers = "Connection: Upgrade\r\nUpgrade: websocket\r\n"
        answer = self.client(proxy).send(get(origin, headers=headers)).response()
        self.assertNotIn(b"websocket", answer.body)


class Failures(ProxyTest):
    def test_answer_before_the_body_has_ended(self):
        def serve(client):
            client.read_until(b"\r\n\r\n")
            client.send("HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno")
            client.half_close()
            client.read_all()

        proxy, origin = self.proxy(ALLOW), self.origin(serve)
        client = self.client(proxy)
        client.send(get(origin, "/", "POST", "Content-Length: 1000000\r\n", "x" * 1000))
        self.assertEqual(client.response().status, 413)
        self.assertTrue(client.half_close().closed())

    def test_cut_answers_are_not_taken_for_whole_ones(self):
        for head in ("Content-Length: 10\r\n", "Transfer-Encoding: chunked\r\n"):
            def serve(client, head=head):
                client.read_until(b"\r\n\r\n")
                client.send("HTTP/1.1 200 OK\r\n" + head + "\r\n5\r\nab")

            with self.subTest(head):
                proxy, origin = self.proxy(ALLOW), self.origin(serve)
                client = self.client(proxy).send(get(origin))
                self.assertEqual(client.head()[0], 200)
                self.assertEqual(client.read_all(), b"5\r\nab")

    def test_interim_answers_without_end(self):
        def serve(client):
            client.read_until(b"\r\n\r\n")
            client.send("HTTP/1.1 102 Processing\r\nX: %s\r\n\r\n" % ("y" * 1000) * 9000)
            client.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            client.read_all()

        proxy, origin = self.proxy(ALLOW), self.origin(serve)
        client = self.client(proxy).send(get(origin))
        for _ in range(9000):
            self.assertEqual(client.head()[0], 102)
        self.assertEqual(client.response().body, b"ok")

    def test_no_answer(self):
        proxy, origin = self.proxy(ALLOW), self.origin(lambda client: client.read_until(b"\r\n\r\n"))
        answer = self.client(proxy).send(get(origin)).response()
        self.assertEqual((answer.status, answer.headers["x-codespace-error"]), (502, "no_response"))

    def test_answer_that_ends_within_its_head(self):
        def serve(client):
            client.read_until(b"\r\n\r\n")
            client.send("HTTP/1.1 200 OK\r\nContent-Le")

        proxy, origin = self.proxy(ALLOW), self.origin(serve)
        answer = self.client(proxy).send(get(origin)).response()
        self.assertEqual((answer.status, answer.headers["x-codespace-error"]), (502, "no_response"))

    def test_bad_answers(self):
        for text in ("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
                     "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
                     "HTTP/1.1 200 OK\nContent-Length: 1\n\n", "SSH-2.0-OpenSSH\r\n",
                     "HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n"):
            def serve(client, text=text):
                client.read_until(b"\r\n\r\n")
                client.send(text)
                client.read_all()

            with self.subTest(text):
                proxy, origin = self.proxy(ALLOW), self.origin(serve)
                answer = self.client(proxy).send(get(origin)).response()
                self.assertEqual(
                    (answer.status, answer.headers["x-codespace-error"]), (502, "bad_response"))

    def test_refused_connection(self):
        proxy, origin = self.proxy(ALLOW), self.origin()
        closed = socket.socket()
        closed.bind(("127.0.0.1", 0))
        self.addCleanup(closed.close)
        client = self.client(proxy)
        client.send("GET http://127.0.0.1:%d/ HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % (
            closed.getsockname()[1], closed.getsockname()[1]))
        answer = client.response()
        self.assertEqual(answer.headers["x-codespace-error"], "connection_refused")
        self.assertEqual(answer.json()["error"], "egress_failed")
        self.assertEqual(client.send(get(origin)).response().status, 200)

    def kept_and_closed(self, requests):
        """A server that closes each connection when its second request comes, unanswered."""
        def serve(client):
            client.read_until(b"\r\n\r\n")
            client.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            client.read_until(b"\r\n\r\n")

        proxy, origin = self.proxy(ALLOW), self.origin(serve)
        client = self.client(proxy)
        return origin, [client.send(text(origin)).response() for text in requests]

    def test_a_stale_connection_is_replaced_for_requests_without_effect(self):
        origin, answers = self.kept_and_closed([get, get, get])
        self.assertEqual([a.status for a in answers], [200, 200, 200])
        self.assertEqual(origin.count, 3)

    def test_a_request_with_effect_is_never_sent_twice(self):
        def post(origin):
            return get(origin, "/", "POST", "Content-Length: 1\r\n", "x")

        origin, answers = self.kept_and_closed([get, post])
        self.assertEqual([a.status for a in answers], [200, 502])
        self.assertEqual(origin.count, 1)

    def test_bytes_that_nobody_asked_for_end_the_server_connection(self):
        def serve(client):
            while True:
                client.read_until(b"\r\n\r\n")
                client.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
                            "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")

        proxy, origin = self.proxy(ALLOW), self.origin(serve)
        client = self.client(proxy)
        for _ in range(3):
            self.assertEqual(client.send(get(origin)).response().body, b"ok")
        self.assertEqual(origin.count, 3)

    def test_client_that_goes_away_is_not_served(self):
        begun, ended = threading.Event(), threading.Event()

        def serve(client):
            client.read_until(b"\r\n\r\n")
            begun.set()
            client.read_all()
            ended.set()

        proxy, origin = self.proxy(ALLOW), self.origin(serve)
        client = proxy.connect().send(get(origin, "/", "POST", "Content-Length: 9\r\n", "x"))
        self.assertTrue(begun.wait(DEADLINE_S))
        client.reset()
        self.assertTrue(ended.wait(DEADLINE_S))

    def test_half_closed_client_gets_its_answer(self):
        proxy, origin = self.proxy(ALLOW), self.origin()
        client = self.client(proxy).send(get(origin)).half_close()
        self.assertEqual(client.response().status, 200)
        self.assertTrue(client.closed())


class Refusals(ProxyTest):
    def test_refusal_says_why_and_the_connection_goes_on(self):
        proxy = self.proxy({**ALLOW, "deny": ["**.evil.test"]})
        origin = self.origin()
        client = self.client(proxy)
        for host, reason, rule in (("www.evil.test", "denied", "deny[0]"),
                                   ("other.test", "not_allowed", None)):
            client.send("GET http://%s/secret?token=1 HTTP/1.1\r\nHost: %s\r\n\r\n" % (host, host))
            answer = client.response()
            self.assertEqual((answer.status, answer.headers["x-codespace-verdict"]), (403, reason))
            body = answer.json()
            self.assertEqual((body["reason"], body["host"], body["port"], body.get("rule")),
                             (reason, host, 80, rule))
            event = proxy.event()
            expected = {"event": "refused", "via": "http", "host": host, "port": 80,
                        "method": "GET", "reason": reason,
                        "client": client.sock.getsockname()[1]}
            self.assertEqual(event, {**expected, "rule": rule} if rule else expected)
        self.assertEqual(client.send(get(origin)).response().status, 200)

    def test_methods(self):
        proxy, origin = self.proxy({**ALLOW, "methods": ["GET", "HEAD"]}), self.origin()
        client = self.client(proxy)
        self.assertEqual(client.send(get(origin)).response().status, 200)
        answer = client.send(get(origin, "/", "DELETE")).response()
        self.assertEqual(answer.headers["x-codespace-verdict"], "method_not_allowed")
        client.send("CONNECT 127.0.0.1:%d HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" % origin.port)
        self.assertEqual(client.response().headers["x-codespace-verdict"], "method_not_allowed")

    def test_body_of_a_refused_request_is_not_a_request(self):
        proxy, origin = self.proxy(ALLOW), self.origin()
        hidden = get(origin, "/hidden")
        client = self.client(proxy)
        client.send("POST http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\nContent-Length: %d\r\n"
                    "\r\n%s" % (len(hidden), hidden))
        self.assertEqual(client.response().status, 403)
        self.assertTrue(client.half_close().closed())
        self.assertEqual(origin.count, 0)

    def test_what_follows_a_refused_connect_is_not_a_request(self):
        proxy, origin = self.proxy(ALLOW), self.origin()
        client = self.client(proxy)
        client.send("CONNECT evil.test:443 HTTP/1.1\r\nHost: evil.test:443\r\n\r\n" + get(origin))
        self.assertEqual(client.response().status, 403)
        self.assertTrue(client.half_close().closed())
        self.assertEqual(origin.count, 0)

    def test_smuggling_shapes_end_the_conversation(self):
        proxy, origin = self.proxy(ALLOW), self.origin()
        host = "127.0.0.1:%d" % origin.port
        line = "POST http://%s/ HTTP/1.1\r\nHost: %s\r\n" % (host, host)
        follow = "GET http://%s/hidden HTTP/1.1\r\nHost: %s\r\n\r\n" % (host, host)
        shapes = [
            line + "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            line + "Content-Length: 4\r\nContent-Length: 5\r\n\r\nabcd",
            line + "Content-Length: 4\r\nContent-Length: 4\r\n\r\nabcd",
            line + "Content-Length: 4, 4\r\n\r\nabcd",
            line + "Content-Length: +4\r\n\r\nabcd",
            line + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
            line + "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
            line + "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
            line + "X: a\r\n folded\r\n\r\n",
            line + "X: a\nY: b\r\n\r\n",
            line.replace("\r\n", "\n") + "\n",
            line + "Host: %s\r\n\r\n" % host,
            line + "X: a\x00b\r\n\r\n",
            "GET http://%s/ HTTP/1.1\r\nHost: other.test\r\n\r\n" % host,
            "GET http://%s/ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" % host,
            "GET http://%s/ HTTP/1.1\r\n\r\n" % host,
            "GET http://%s/#x HTTP/1.1\r\nHost: %s\r\n\r\n" % (host, host),
            "GET / HTTP/1.1\r\nHost: %s\r\n\r\n" % host,
            "GET https://%s/ HTTP/1.1\r\nHost: %s\r\n\r\n" % (host, host),
            "GET ftp://%s/ HTTP/1.1\r\nHost: %s\r\n\r\n" % (host, host),
            "CONNECT %s HTTP/1.1\r\nHost: other.test\r\n\r\n" % host,
            "CONNECT %s HTTP/1.1\r\nHost: %s\r\nContent-Length: 4\r\n\r\nabcd" % (host, host),
            "CONNECT http://%s/ HTTP/1.1\r\nHost: %s\r\n\r\n" % (host, host),
        ]
        for shape in shapes:
            with self.subTest(shape):
                client = self.client(proxy)
                client.send(shape + follow)
                answer = client.response()
                self.assertEqual(answer.status, 400)
                self.assertEqual(answer.headers["connection"], "close")
                self.assertTrue(client.half_close().closed())
        self.assertEqual(origin.count, 0)

    def test_bad_chunks_end_both_connections(self):
        seen = queue.Queue()

        def serve(client):
            client.read_until(b"\r\n\r\n")
            seen.put(client.read_all())

        proxy, origin = self.proxy(ALLOW), self.origin(serve)
        for body in ("5\r\nabc\r\n0\r\n\r\n", "3\nabc\r\n0\r\n\r\n", "3\r\nabcd\r\n0\r\n\r\n",
                     "-1\r\n\r\n", "3 \r\nabc\r\n0\r\n\r\n"):
            with self.subTest(body):
                client = self.client(proxy)
                client.send(get(origin, "/", "POST", "Transfer-Encoding: chunked\r\n", body))
                self.assertEqual(client.response().status, 400)
                self.assertTrue(client.half_close().closed())
                self.assertFalse(seen.get(timeout=DEADLINE_S).endswith(b"0\r\n\r\n"))

    def test_hosts_that_are_none(self):
        proxy = self.proxy({"allow": ["*", "allowed.test"]})
        for host in ("evil.test\x00.allowed.test", "allowed.test@evil.test", "user:pw@allowed.test",
                     "[allowed.test]:443", "0x7f.1", "2130706433", "127.1", "0177.0.0.1", "xn--",
                     "a" * 300, "allowed.test:0", "allowed.test:99999", "allowed.test:",
                     "allowed..test", "-a.test", "al\xc3\xb6.test", "%61llowed.test", "",
                     "fe80::1%25lo", "[fe80::1%25lo]", "1.2.3.4.5"):
            with self.subTest(host):
                client = self.client(proxy)
                client.send("GET http://%s/ HTTP/1.1\r\nHost: %s\r\n\r\n" % (host, host))
                answer = client.response()
                self.assertEqual(answer.status, 400)
                if "\x00" in host:
                    continue
                self.assertEqual(answer.headers["x-codespace-verdict"], "bad_host")
                event = proxy.expect_event("refused")
                self.assertEqual(event["reason"], "bad_host")
                self.assertNotIn("pw", event["host"])

    def test_heads_that_are_too_large(self):
        proxy, origin = self.proxy(ALLOW), self.origin()
        for headers, name in (("X: %s\r\n" % ("a" * 70000), "HTTP1_HEAD_MAX"),
                              ("X: y\r\n" * 101, "HTTP1_HEADERS_MAX")):
            client = self.client(proxy).send(get(origin, headers=headers))
            answer = client.response()
            self.assertEqual(answer.status, 431)
            self.assertIn(name, answer.json()["message"])

    def test_no_url_and_no_credential_in_events(self):
        proxy = self.proxy({})
        client = self.client(proxy)
        client.send("GET http://a.test/private/path?key=SECRET HTTP/1.1\r\nHost: a.test\r\n"
                    "Authorization: Bearer SECRET\r\nCookie: SECRET\r\n\r\n")
        self.assertEqual(client.response().status, 403)
        self.assertNotIn("SECRET", str(proxy.event()))


class Clients(ProxyTest):
    def test_many_clients_at_one_time(self):
        proxy, origin = self.proxy(ALLOW), self.origin()
        clients = [self.client(proxy) for _ in range(60)]
        for i in range(3):
            for client in clients:
                client.send(get(origin, "/%d" % i))
            for client in clients:
                self.assertIn(b"GET /%d " % i, client.response().body)

    def test_a_client_that_only_sends_holds_up_nobody(self):
        proxy, origin = self.proxy(ALLOW), self.origin()
        loud = self.client(proxy)
        loud.send("POST http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\n"
                  "Content-Length: 1000000000\r\n\r\n")
        stop = threading.Event()

        def flood():
            try:
                while not stop.is_set():
                    loud.sock.sendall(b"x" * 65536)
            except OSError:
                pass

        thread = threading.Thread(target=flood)
        thread.start()
        try:
            client = self.client(proxy)
            for _ in range(50):
                self.assertEqual(client.send(get(origin)).response().status, 200)
        finally:
            stop.set()
            thread.join(DEADLINE_S)

    def test_a_client_that_does_not_read_holds_up_nobody(self):
        data = b"x" * (16 << 20)

        def serve(client):
            client.read_until(b"\r\n\r\n")
            client.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(data) + data)

        proxy, big, small = self.proxy(ALLOW), self.origin(serve), self.origin(echo_head)
        stuck = self.client(proxy).send(get(big))
        self.assertEqual(self.client(proxy).send(get(small)).response().status, 200)
        self.assertEqual(stuck.response().body, data)
