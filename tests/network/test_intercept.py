"""A credential in HTTPS, for hosts whose TLS the operator lets the proxy end; and one that a command
of his prints."""

import hashlib
import os
import ssl
import subprocess

from mcp_client import Gone, ToolError
from test_credentials import SEARCH, VALUE
from worlds import MS_BIND, NetworkCase, mount, unmount

HELLO = "from the internet\n"
STORE = "/etc/ssl/certs/ca-certificates.crt"
CA_FILE = "/dev/codespace-ca.pem"
PAGE = "https://example.test/file.txt"
PYTHON = ("import urllib.request as r; print(r.urlopen('%s').read().decode(), end='')" % PAGE)
NODE = "fetch('%s').then(async r => process.stdout.write(await r.text()))" % PAGE
SHOWN = ("import ssl, socket, hashlib; c = ssl._create_unverified_context(); "
         "s = c.wrap_socket(socket.create_connection(('%s', %d)), server_hostname='%s'); "
         "print(hashlib.sha256(s.getpeercert(True)).hexdigest())")


class Intercept(NetworkCase):
    EGRESS = {"allow": ["example.test", "registry.test", "wrong.test"]}

    def setUp(self):
        super().setUp()
        self.file = self.dir + "/token"
        with open(self.file, "w") as out:
            out.write(VALUE + "\n")
        os.chmod(self.file, 0o600)
        with open(STORE) as store, open(self.dir + "/store.pem", "w") as out:
            out.write(store.read() + open(self.internet.folder + "/cert.pem").read())
        mount(self.dir + "/store.pem", STORE, MS_BIND)  # this machine trusts the internet's authority
        self.addCleanup(unmount, STORE)

    def start(self, host="example.test", source=None, tls="intercept", egress=None, **more):
        rule = {"host": host, "header": "Authorization", **(source or {"file": self.file})}
        if tls:
            rule["tls"] = tls
        return super().start(egress={**self.EGRESS, "inject": [rule], **(egress or {})}, **more)

    def seen(self):
        return [(host, value) for host, _, value in self.internet.log()["requests"]]

    def test_clients(self):
        self.start()
        for script in ("curl -sS " + PAGE, "curl -sS --noproxy '*' " + PAGE,
                       "curl -sS -x $ALL_PROXY " + PAGE, "wget -qO- --ca-certificate=$SSL_CERT_FILE " + PAGE,
                       'python3 -c "%s"' % PYTHON, 'node -e "%s"' % NODE):
            self.assertEqual(self.sh(script), HELLO, script)
        self.assertEqual(self.seen(), [("example.test", VALUE)] * 6)
        self.assertIn("a repository", self.sh(
            "git clone -q https://example.test/repo.git r 2>&1 && cat r/README"))
        self.assertEqual({value for _, value in self.seen()}, {VALUE})

    def test_package_managers(self):
        self.start(host="registry.test")
        out = self.sh("npm install --no-audit --no-fund --loglevel=error "
                      "--registry=https://registry.test/npm/ tiny-thing >&2 && "
                      "node -e \"console.log(require('tiny-thing'))\"")
        self.assertIn("tiny thing", out)
        self.assertIn(("registry.test", VALUE), self.seen())
        self.internet.ask(op="clear")
        out = self.sh("python3 -m pip download -q --disable-pip-version-check --no-deps -d got "
                      "--index-url https://registry.test/simple/ tiny-thing && ls got")
        self.assertIn("tiny_thing-1.0", out)
        self.assertEqual(set(self.seen()), {("registry.test", VALUE)})

    def test_warm_commands_too(self):
        self.start()
        self.warm_up()
        for _ in range(2):
            self.assertEqual(self.sh("curl -sS -H 'Authorization: mine' " + PAGE), HELLO)
        self.assertEqual(self.seen(), [("example.test", VALUE)] * 2)
        self.assertEqual(self.done["network_scope"], "workspace")

    def test_programs_that_know_no_proxy(self):
        """By name, to the stand-in address."""
        self.start()
        self.sh("env -u https_proxy -u HTTPS_PROXY -u ALL_PROXY -u all_proxy curl -sS " + PAGE)
        self.assertEqual(self.seen(), [("example.test", VALUE)])

    def test_other_hosts_and_ports_are_not_touched(self):
        self.start()
        with open(self.internet.folder + "/cert.pem") as pem:
            real = ssl.PEM_cert_to_DER_cert(pem.read())
        real = hashlib.sha256(real).hexdigest()
        for host, port, same in (("registry.test", 443, True), ("example.test", 8443, True),
                                 ("example.test", 443, False)):
            shown = self.sh('python3 -c "%s"' % (SHOWN % (host, port, host))).strip()
            self.assertEqual(shown == real, same, (host, port))
        self.assertEqual(self.sh("curl -sS https://registry.test/file.txt"), HELLO)
        self.sh("curl -sS http://example.test/file.txt")
        self.assertEqual(self.seen(), [("registry.test", None), ("example.test", None)])

    def test_a_server_that_is_another(self):
        self.start(host="wrong.test")
        out = self.sh("curl -sS -i https://wrong.test/file.txt")
        self.assertIn("502 Bad Gateway", out)
        self.assertIn("x-codespace-verdict: certificate_refused", out)
        self.assertIn("ostname mismatch", out)
        self.assertEqual(self.seen(), [])
        self.assertIn("network.certificate_refused", {rule for rule, _ in self.denials()})

    def test_a_server_that_this_machine_does_not_trust(self):
        unmount(STORE)
        mount("/dev/null", STORE, MS_BIND)
        self.start()
        self.begin_refused("no certificates")
        unmount(STORE)
        with open(self.dir + "/store.pem", "w") as out:
            out.write(subprocess.run(
                ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                 "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=other",
                 "-keyout", "/dev/null"], check=True, capture_output=True, text=True).stdout)
        mount(self.dir + "/store.pem", STORE, MS_BIND)
        self.assertIn("certificate_refused", self.sh("curl -sS -i " + PAGE))
        self.assertEqual(self.seen(), [])

    def begin_refused(self, word):
        """The command must not start; why."""
        with self.assertRaises(ToolError) as refused:
            self.sh("true")
        self.assertIn(word, refused.exception.message)
        self.assertNotIn("4-secret", str(refused.exception))

    def test_methods_hold_inside(self):
        self.start(egress={"methods": ["GET"]})
        self.assertEqual(self.sh("curl -sS " + PAGE), HELLO)
        self.assertIn("method_not_allowed", self.sh("curl -sS -X DELETE " + PAGE))
        self.assertIn(("network.method_not_allowed", "DELETE example.test:443"), self.denials())
        self.sh("curl -sS https://registry.test/file.txt", code=56)

    def test_no_command_finds_it(self):
        with open(self.ws + "/search.py", "w") as out:
            out.write(SEARCH)
        self.start()
        for warm in (False, True):
            if warm:
                self.warm_up()
            self.assertEqual(self.sh("curl -sS -o /dev/null %s && python3 search.py %s"
                                     % (PAGE, self.file)), "[]\n")
            self.assertEqual(self.sh("grep -c PRIVATE %s; env | grep -c 4-secret" % CA_FILE, code=1),
                             "0\n0\n")
            before = self.sh("cksum " + CA_FILE)
            for script in ("echo x >> ", "rm -f ", "mv -f %s /tmp/x; rm -f " % STORE, "umount "):
                self.sh("! (%s%s) 2> /dev/null" % (script, CA_FILE))
            self.assertEqual(self.sh("cksum " + CA_FILE), before)

    def test_what_is_told(self):
        self.OPTIONS = ("--log-level", "debug")
        client = self.start()
        self.sh("curl -sS " + PAGE)
        network = client.call("workspace_info", workspace_id="ws")["execution"]["network"]
        self.assertEqual(network["intercepted"], ["example.test:443"])
        self.assertEqual(network["egress"]["inject"], [
            {"host": "example.test:443", "header": "Authorization", "tls": "intercept"}])
        self.assertNotIn("4-secret", str(network) + str(self.done))
        self.assertNotIn(self.file, str(network))
        self.stop()
        self.assertNotIn("4-secret", "\n".join(client.stderr_lines))

    def test_off_is_off(self):
        """A credential for plain HTTP: no file, no variable, no interception."""
        self.start(tls=None)
        self.assertEqual(self.sh("env | grep -iE 'cert|CA_|cafile|cainfo|codespace-ca'; ls %s"
                                 " 2> /dev/null; true" % CA_FILE), "")
        self.sh("curl -sS --cacert cert.pem " + PAGE)
        self.assertEqual(self.seen(), [("example.test", None)])
        info = self.client.call("workspace_info", workspace_id="ws")["execution"]["network"]
        self.assertNotIn("intercepted", info)

    # ---- a command prints it ----

    def script(self, text, mode=0o755):
        path = self.dir + "/print-token"
        with open(path, "w") as out:
            out.write("#!/bin/sh\n" + text)
        os.chmod(path, mode)
        return path

    def test_a_command_prints_it(self):
        said = self.dir + "/said"
        path = self.script('{ pwd; env; ls /proc/self/fd; } > %s; echo "Bearer $1-4-secret"; '
                           "echo more >&2; sleep 1000 & exit 0\n" % said)
        self.start(source={"command": [path, "x y"]})
        self.assertEqual(self.sh("curl -sS " + PAGE), HELLO)
        self.assertEqual(self.seen(), [("example.test", "Bearer x y-4-secret")])
        with open(said) as out:
            words = out.read().split("\n")
        self.assertEqual(words[0], "/")
        self.assertEqual({w.split("=")[0] for w in words if "=" in w} - {"PWD", "_", "OLDPWD", "SHLVL"},
                         {"PATH", "LANG", "USER", "LOGNAME", "HOME"})
        self.assertEqual([w for w in words if w.isdigit() and int(w) > 3], [])

    def test_once_for_each_door(self):
        count = self.dir + "/count"
        path = self.script("echo >> %s; echo value-$(wc -l < %s)\n" % (count, count))
        self.start(source={"command": [path]}, network_scope="command")
        self.sh("curl -sS %s; curl -sS %s" % (PAGE, PAGE))
        self.sh("curl -sS " + PAGE)
        values = [value for _, value in self.seen()]
        self.assertEqual(values[0], values[1])
        self.assertNotEqual(values[1], values[2])

    def test_a_command_for_plain_http(self):
        path = self.script("printf plain-4-secret\n")
        self.start(source={"command": [path]}, tls=None)
        self.sh("curl -sS http://example.test/file.txt")
        self.assertEqual(self.seen(), [("example.test", "plain-4-secret")])

    def test_commands_that_fail(self):
        for text, word in (("exit 3", "exit code 3"), ("kill -9 $$", "signal 9"), ("true", "one line"),
                           ("printf 'a-4-secret\\nb\\n'", "not possible in a header"),
                           ("head -c 20000 /dev/zero | tr '\\0' x", "INJECT_VALUE_MAX"),
                           ("echo 4-secret; exec sleep 1000", "NETCOMMAND_MS")):
            with self.subTest(text):
                path = self.script(text + "\n")
                self.start(source={"command": [path]})
                self.begin_refused(word)
                self.assertEqual(self.left(), set())
                self.stop()

    def test_programs_that_a_command_could_exchange(self):
        inside = self.ws + "/print"
        with open(inside, "w") as out:
            out.write("#!/bin/sh\necho x\n")
        os.chmod(inside, 0o755)
        open_to_all = self.script("echo x\n", mode=0o757)
        os.symlink(inside, self.dir + "/link")
        for argv, word in (([inside], "could write it"), (["/bin/sh", inside], "could write it"),
                           ([self.dir + "/link"], "could write it"),
                           ([open_to_all], "can be written by others"),
                           (["print-token"], "absolute path"), (["/nowhere/x"], "cannot look at")):
            with self.subTest(argv):
                with self.assertRaises((Gone, BrokenPipeError)):
                    self.start(source={"command": argv})
                client, self.client = self.client, None
                self.assertEqual(client.close(), 78)
                self.assertIn(word, "\n".join(client.stderr_lines))


