"""A credential of the operator's works for commands, and no command can read it."""

import os

from worlds import MS_BIND, NetworkCase, mount, unmount

VALUE = "Bearer 4-secret-that-no-command-reads"
HELLO = "from the internet\n"

# All that a command can look at: its own variables, every process it sees, its descriptors, the file
# by its name, and what lies anywhere near.
SEARCH = r"""
import os, sys
needle, path = b"4-secret-that-no", sys.argv[1]
def look(name):
    try:
        with open(name, "rb") as f:
            return needle in f.read(1 << 24)
    except OSError:
        return False
found = [path] if look(path) else []
for pid in filter(str.isdigit, os.listdir("/proc")):
    for name in ("environ", "cmdline", "mem", "maps", "comm", "stack"):
        found += [name] if look("/proc/%s/%s" % (pid, name)) else []
    try:
        fds = os.listdir("/proc/%s/fd" % pid)
    except OSError:
        fds = []
    for fd in fds:
        try:
            target = os.readlink("/proc/%s/fd/%s" % (pid, fd))
        except OSError:
            continue
        found += [target] if target.startswith("/memfd:") else []
for top in (os.path.dirname(path), "/tmp", "/run", "/dev/shm", os.getcwd()):
    for folder, _, names in os.walk(top):
        found += [n for n in names if n != "search.py" and os.path.isfile(os.path.join(folder, n))
                  and look(os.path.join(folder, n))]
print(found)
"""


class Credentials(NetworkCase):
    def setUp(self):
        super().setUp()
        self.file = self.dir + "/token"
        self.write_token(VALUE)

    def write_token(self, value, mode=0o600):
        fresh = self.file + ".new"
        with open(fresh, "w") as out:
            out.write(value + "\n")
        os.chmod(fresh, mode)
        os.rename(fresh, self.file)

    def start(self, host="example.test", egress=None, **more):
        rule = {"host": host, "header": "Authorization", "file": self.file}
        return super().start(egress={**self.EGRESS, "inject": [rule], **(egress or {})}, **more)

    def seen(self):
        """(host, Authorization) of each request that the internet got."""
        return [(host, value) for host, _, value in self.internet.log()["requests"]]

    def test_it_works_and_replaces(self):
        self.start()
        self.assertEqual(self.sh("curl -sS http://example.test/file.txt"), HELLO)
        self.sh("curl -sS -H 'Authorization: mine' http://example.test/file.txt")
        self.assertEqual(self.seen(), [("example.test", VALUE)] * 2)

    def test_only_that_host(self):
        """registry.test has the same address."""
        self.start()
        self.sh("curl -sS http://registry.test/file.txt; curl -sSL http://example.test/away; "
                "curl -sS -H 'Host: example.test' http://registry.test/file.txt; "
                "curl -sS -H 'Host: registry.test' http://example.test/file.txt; "
                "curl -sS --noproxy '*' http://registry.test/file.txt")
        self.assertEqual(
            self.seen(), [("registry.test", None), ("example.test", VALUE),
                          ("registry.test", None), ("registry.test", None)])

    def test_not_in_https(self):
        self.start(host="example.test:443")
        self.sh("curl -sS --cacert cert.pem https://example.test/file.txt")
        self.assertEqual(self.seen(), [("example.test", None)])

    def test_not_in_tunnels(self):
        self.start()
        self.sh("curl -sSp http://example.test/file.txt; "
                "curl -sS -x $ALL_PROXY http://example.test/file.txt; "
                "curl -sS --noproxy '*' http://example.test/file.txt")
        self.assertEqual(self.seen(), [("example.test", None)] * 3)

    def test_for_programs_that_know_no_proxy_where_requests_are_seen(self):
        self.start(egress={"methods": ["GET"]})
        self.sh("curl -sS --noproxy '*' http://example.test/file.txt; "
                "curl -sS --noproxy '*' http://registry.test/file.txt")
        self.assertEqual(self.seen(), [("example.test", VALUE), ("registry.test", None)])

    def test_its_echo(self):
        self.start()
        out = self.sh("curl -sS -X TRACE http://example.test/; curl -sS -X trace http://example.test/; "
                      "curl -sSi http://example.test/none; curl -sSv http://evil.test/ 2>&1; "
                      "curl -sSv -x $http_proxy http://example.test:81/ 2>&1", code=None)
        self.assertNotIn("4-secret", out)

    def search(self):
        with open(self.ws + "/search.py", "w") as out:
            out.write(SEARCH)
        self.assertEqual(self.sh("curl -sS -o /dev/null http://example.test/file.txt && "
                                 "python3 search.py " + self.file), "[]\n")
        # It would have found one.
        self.assertIn("environ", self.sh("X=4-secret-that-no python3 search.py /tmp/none"))

    def test_a_hostile_command(self):
        self.start()
        self.search()  # cold
        self.warm_up()
        self.search()

    def test_a_hostile_command_that_sees_the_whole_file_system(self):
        mount(self.dir, "/mnt", MS_BIND)  # in our own view; /tmp is another one inside
        self.addCleanup(unmount, "/mnt")
        self.file = "/mnt/token"
        with open("/mnt/other", "w") as out:
            out.write("seen\n")
        self.start(read="all")
        self.search()
        self.assertEqual(self.sh("cat /mnt/other; wc -c < " + self.file), "seen\n0\n")

    def test_nothing_is_told_of_it(self):
        self.OPTIONS = ("--log-level", "debug")
        client = self.start()
        self.sh("curl -sS http://example.test/file.txt; curl -sS http://evil.test/")
        info = str(client.call("workspace_info", workspace_id="ws"))
        self.assertIn("Authorization", info)
        for text in ("4-secret", self.file):
            self.assertNotIn(text, info)
            self.assertNotIn(text, str(self.done))
        self.stop()
        self.assertNotIn("4-secret", "\n".join(client.stderr_lines))

    def test_a_new_value_counts_for_the_next_command(self):
        self.start()
        self.warm_up()
        self.sh("curl -sS http://example.test/file.txt")
        self.write_token("Basic another")
        self.sh("curl -sS http://example.test/file.txt")
        self.assertEqual(self.seen(), [("example.test", VALUE), ("example.test", "Basic another")])

    def test_a_file_that_others_may_read_refuses_the_command(self):
        self.start()
        for value, mode, reason in ((VALUE, 0o644, "others may read"), ("a\nb", 0o600, "byte 1 "),
                                    ("", 0o600, "one line")):
            self.write_token(value, mode)
            with self.assertRaises(Exception) as caught:
                self.sh("touch ran")
            message = caught.exception.message
            self.assertIn("egress.inject[0] (Authorization for example.test:80): ", message)
            self.assertIn(reason, message)
            self.assertNotIn("4-secret", message)
            self.assertNotIn(self.file, message)
        self.assertFalse(os.path.exists(self.ws + "/ran"))
        self.assertEqual(self.left(), set())


class Old(NetworkCase):
    """A credential that a command prints is asked for when a sandbox is made, so a kept one must not
    grow old."""

    COUNT = """#!/bin/sh
n=$(cat %s/asked 2>/dev/null || echo 0)
echo $((n + 1)) > %s/asked.new && mv %s/asked.new %s/asked
echo "Bearer $((n + 1))"
"""

    def start(self, secs):
        program = self.dir + "/token-of"
        with open(program, "w") as out:
            out.write(self.COUNT % ((self.dir,) * 4))
        os.chmod(program, 0o700)
        os.environ["CODESPACE_WARM_CREDENTIALS_SECS"] = secs
        self.addCleanup(os.environ.pop, "CODESPACE_WARM_CREDENTIALS_SECS")
        super().start(egress={**self.EGRESS, "inject": [
            {"host": "example.test", "header": "Authorization", "command": [program]}]})

    def value(self):
        self.internet.ask(op="clear")
        self.sh("curl -sS -o /dev/null http://example.test/file.txt")
        (_, _, value), = self.internet.log()["requests"]
        return value

    def test_a_kept_sandbox_that_is_too_old_takes_no_commands(self):
        self.start(secs="1")
        self.warm_up()
        first = self.value()
        self.until(lambda: self.value() != first, "another sandbox")

    def test_a_younger_one_takes_them(self):
        self.start(secs="600")
        self.warm_up()
        self.assertEqual(len({self.value() for _ in range(3)}), 1)
