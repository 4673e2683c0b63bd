"""What the network refused is told with the process that was refused: TCP, names, UDP, IPv6."""

import json
import os
import unittest

from worlds import WAIT_MS, NetworkCase

UDP = """
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.connect(("%s", %d))
s.send(b"x")
try:
    s.settimeout(60)
    s.recv(1)
except ConnectionRefusedError:
    print("refused", flush=True)
try:
    s.settimeout(0.5)  # long enough to be looked at
    s.recv(1)
except TimeoutError:
    pass
"""

IPV6 = """
import socket
for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
    s = socket.socket(socket.AF_INET6, kind)
    try:
        s.connect(("2001:db8::1", 443))
        print("connected")
    except OSError as e:
        print(type(e).__name__, e.errno)
s = socket.socket(socket.AF_INET6)
try:
    s.connect(("::1", 9))
except ConnectionRefusedError:
    print("own loopback")
"""


class Told(NetworkCase):
    def python(self, text, **arguments):
        with open(self.ws + "/script.py", "w") as f:
            f.write(text)
        return self.sh("python3 script.py", **arguments)

    def told(self, rule, what):
        found = [d for d in self.done.get("denials") or [] if
                 (d["rule"], d.get("what", "")) == (rule, what)]
        self.assertEqual(len(found), 1, (rule, what, self.done.get("denials")))
        return found[0]

    def test_another_name_in_a_tunnel(self):
        """Let through or not, it is told."""
        other = ("curl -sS --cacert cert.pem --connect-to registry.test:443:example.test:443 "
                 "https://registry.test/file.txt")
        for fronting, code, rule in (("log", 0, "network.name_mismatch_seen"),
                                     ("refuse", 35, "network.name_mismatch")):
            self.stop()
            self.start(egress={"allow": ["example.test"], "fronting": fronting})
            for _ in range(2):  # cold, and perhaps warm
                self.sh(other, code=code)
                self.assertTrue(self.told(rule, "CONNECT example.test:443")["meaning"])
            self.warm_up()
            self.sh(other, code=code)
            self.told(rule, "CONNECT example.test:443")
            self.sh("curl -sS -o /dev/null --cacert cert.pem https://example.test/file.txt")
            self.assertEqual(self.done.get("denials", []), [])

    def by(self, run, rule, what, program, others=False):
        """Who was refused. On a machine that is busy a process may have gone before it is looked at,
        and is then not told; one that is told is right."""
        def found():
            run()
            process = self.told(rule, what).get("process")
            if process is None or (others and not process["others"]):
                return False
            self.assertTrue(process["program"].startswith(program), process)
            self.assertGreater(process["pid"], 1)
            return True
        self.until(found, "nobody was found, or one of many alone")
        return self.told(rule, what)["process"]

    def each_kind(self):
        """A command of a sandbox of its own, and one of a warm one."""
        for more in ({"network_scope": "command"}, {}):
            self.stop()
            self.start(**more)
            if not more:
                self.warm_up()
            yield

    def test_udp(self):
        for _ in self.each_kind():
            self.by(lambda: self.assertEqual(self.python(UDP % ("203.0.113.5", 123)), "refused\n"),
                    "network.udp", "UDP 203.0.113.5:123", "python")
            self.by(lambda: self.assertEqual(self.python(UDP % ("example.test", 443)), "refused\n"),
                    "network.udp", "UDP example.test:443", "python")
            self.assertEqual(self.python(UDP % ("127.0.0.1", 9)), "refused\n")
            self.assertEqual(self.denials(), set())

    def test_ipv6(self):
        if not os.path.exists("/proc/net/if_inet6"):
            self.fail("this machine has no IPv6 to be refused")
        for _ in self.each_kind():
            said = self.python(IPV6)
            self.assertNotIn("connected\n", said)
            self.assertTrue(said.endswith("own loopback\n"), said)
            self.assertEqual(self.told("network.ipv6", "")["count"], 2)
            self.assertNotIn("process", self.told("network.ipv6", ""))
            self.sh("true")
            self.assertEqual(self.denials(), set())

    def test_names_and_connections(self):
        refused = ("import socket\n"
                   "try: socket.getaddrinfo('evil.test', 80, socket.AF_INET)\n"
                   "except socket.gaierror: print('no name')\n"
                   "s = socket.create_connection(('203.0.113.9', 25))\n"
                   "try: s.recv(1)\n"
                   "except ConnectionResetError: print('reset')\n")
        for _ in self.each_kind():
            for what in ("name evil.test", "CONNECT 203.0.113.9:25"):
                self.by(lambda: self.assertEqual(self.python(refused), "no name\nreset\n"),
                        "network.not_allowed", what, "python")
            curl = "curl -s -o /dev/null -w '%{http_code}' http://evil.test/a?b=c"
            process = self.by(lambda: self.assertEqual(self.sh(curl), "403"),
                              "network.not_allowed", "GET evil.test:80", "curl")
            self.assertFalse(process["others"])
            self.assertNotIn("b=c", json.dumps(self.done["denials"]))
            kept = self.client.call("operation_status", operation_id=self.done["operation_id"])
            self.assertEqual(kept["denials"], self.done["denials"])  # the ledger's record

    def test_two_processes(self):
        self.start()
        curl = "curl -s -o /dev/null http://evil.test/;"
        self.by(lambda: self.sh(8 * curl + "true"), "network.not_allowed", "GET evil.test:80", "curl",
                others=True)
        self.assertEqual(self.told("network.not_allowed", "GET evil.test:80")["count"], 8)

    def test_who_is_gone_is_not_guessed(self):
        """A datagram's sender that ended at once, and one whose name is odd."""
        self.start()
        shooter = ("import socket, os\n"
                   "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
                   "s.sendto(b'x', ('203.0.113.7', 7)); os._exit(0)\n")
        # What a command does as its last act may be told too late: it has an answer to wait for.
        with open(self.ws + "/script.py", "w") as f:
            f.write(shooter)
        self.sh("python3 script.py; curl -s -o /dev/null http://evil.test/; true")
        self.assertEqual(self.told("network.udp", "UDP 203.0.113.7:7")["count"], 1)
        self.sh("cp $(command -v curl) 'a b\"@1+ c' && './a b\"@1+ c' -s -o /dev/null "
                "http://evil.test/; true")
        process = self.told("network.not_allowed", "GET evil.test:80").get("process")
        self.assertIn(process and process["program"], (None, "a?b??1+?c"))

    def test_each_in_its_own_command(self):
        """Two warm commands share a network and hear the same; each names its own processes only."""
        self.start()
        self.warm_up()
        other = self.client.begin_call("exec_command", workspace_id="ws", wait_ms=WAIT_MS, command=[
            "/bin/sh", "-c", "touch up; until [ -e go ]; do sleep 0.02; done"])
        self.until(lambda: os.path.exists(self.ws + "/up"), "the other command")
        self.by(lambda: self.sh("curl -s -o /dev/null http://evil.test/; true"),
                "network.not_allowed", "GET evil.test:80", "curl")
        open(self.ws + "/go", "w").close()
        self.client_finish(other)
        self.assertNotIn("process", self.told("network.not_allowed", "GET evil.test:80"))


if __name__ == "__main__":
    unittest.main()
