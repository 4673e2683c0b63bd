"""The program itself: what it gives up, what it refuses to start with, when it ends."""

import os
import resource
import subprocess

from support import DEADLINE_S, PROXY, ProxyTest, listener


def status_of(pid):
    with open("/proc/%d/status" % pid) as f:
        return dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)


class Hardening(ProxyTest):
    def test_what_is_left_of_its_rights(self):
        proxy = self.proxy({})
        status = status_of(proxy.process.pid)
        self.assertEqual(status["NoNewPrivs"], "1")
        self.assertEqual(int(status["CapEff"], 16), 0)
        self.assertEqual(int(status["CapPrm"], 16), 0)
        self.assertEqual(int(status["CapInh"], 16), 0)
        # An instrumented build has no filter, and says so.
        self.assertEqual(status["Seccomp"], "2" if proxy.ready["filter"] else "0")
        # Not dumpable: its files in /proc are root's, whoever started it.
        self.assertEqual(os.stat("/proc/%d/mem" % proxy.process.pid).st_uid, 0)
        with open("/proc/%d/limits" % proxy.process.pid) as f:
            limits = {line[:26].strip(): line[26:].split()[:2] for line in f}
        for name in ("Max core file size", "Max processes"):
            self.assertEqual(limits[name], ["0", "0"])

    def test_strange_descriptors_are_closed(self):
        stray = os.open("/etc/passwd", os.O_RDONLY)
        self.addCleanup(os.close, stray)
        os.set_inheritable(stray, True)

        def prepare():
            os.dup2(stray, 200)

        proxy = self.proxy({}, prepare=prepare)
        folder = "/proc/%d/fd" % proxy.process.pid
        if os.getuid() != 0:
            # The same proof from the other side: nobody may look.
            self.assertRaises(PermissionError, os.listdir, folder)
            return
        self.assertEqual(os.readlink("/proc/%d/cwd" % proxy.process.pid), "/")
        targets = [os.readlink(os.path.join(folder, fd)) for fd in os.listdir(folder)]
        for target in targets:
            self.assertRegex(target, r"^(socket:|pipe:|anon_inode:|/dev/null)")

    def test_memory_at_rest(self):
        proxy = self.proxy({})
        if not proxy.ready["filter"]:
            return  # a sanitizer's memory is not the program's
        self.assertLess(int(status_of(proxy.process.pid)["VmRSS"].split()[0]), 3 * 1024)


class Life(ProxyTest):
    def test_ends_with_its_owner(self):
        proxy = self.proxy({"allow": ["127.0.0.1"]})
        origin = self.origin(lambda client: client.read_all())
        client = self.client(proxy)
        client.send("CONNECT 127.0.0.1:%d HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" % origin.port)
        self.assertEqual(client.head()[0], 200)
        read, write = os.pipe()
        os.dup2(write, proxy.life)  # the pipe's last writer goes
        os.close(write)
        self.assertEqual(proxy.process.wait(DEADLINE_S), 0)
        self.assertEqual(client.read_all(), b"")
        os.close(read)

    def test_events_that_nobody_reads_hold_up_nothing(self):
        proxy = self.proxy({})
        client = self.client(proxy)
        for _ in range(3000):
            client.send("GET http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n")
            self.assertEqual(client.response().status, 403)
        for _ in range(200):
            if proxy.event()["event"] != "refused":
                self.fail("an event was lost too early")
        client.send("GET http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n")
        self.assertEqual(client.response().status, 403)
        self.assertGreater(proxy.expect_event("dropped")["count"], 0)


class Limits(ProxyTest):
    def test_ten_thousand_connections(self):
        """All that may be there at once are served, twice; one more is told the limit. Where this
        user may have too few files for that, the limit is what they are enough for."""
        most, files = 10000, resource.getrlimit(resource.RLIMIT_NOFILE)
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, files)
        resource.setrlimit(resource.RLIMIT_NOFILE, (files[1], files[1]))
        proxy = self.proxy({})
        before = int(status_of(proxy.process.pid)["VmRSS"].split()[0])
        refused = b"GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n"
        clients = [self.client(proxy) for _ in range(min(most, (files[1] - 1000) // 2))]
        self.assertGreaterEqual(len(clients), 9000, "too few files are allowed (ulimit -Hn)")
        for _ in range(2):
            for client in clients:
                client.send(refused)
            self.assertEqual({client.response().status for client in clients}, {403})
        after = int(status_of(proxy.process.pid)["VmRSS"].split()[0])
        if proxy.ready["filter"]:  # an instrumented build keeps what was freed
            self.assertLess(after - before, 10 * len(clients))  # KiB
        while self.served(self.client(proxy), refused):
            clients.append(None)
            self.assertLessEqual(len(clients), most)
        while (event := proxy.event())["event"] != "limit":
            pass
        self.assertEqual((event["name"], event["value"]), ("PROXY_CONNECTIONS_MAX", len(clients)))

    def served(self, client, request):
        """False: told the limit, or closed before the request was read, and the answer was lost to
        the reset."""
        try:
            answer = client.send(request).response()
        except (ConnectionError, EOFError):
            return False
        if answer.status == 503:
            self.assertIn("PROXY_CONNECTIONS_MAX", answer.headers["x-codespace-error"])
        return answer.status == 403

    def test_connections(self):
        def prepare():
            resource.setrlimit(resource.RLIMIT_NOFILE, (800, 800))

        proxy = self.proxy({}, prepare=prepare)
        refused = "GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n"
        clients = []
        while True:
            client = self.client(proxy)
            try:
                answer = client.send(refused).response()
            except (ConnectionError, EOFError):
                break  # closed before our request was read: the answer may be lost to the reset
            if answer.status == 503:
                self.assertIn("PROXY_CONNECTIONS_MAX", answer.headers["x-codespace-error"])
                break
            clients.append(client)
            self.assertLess(len(clients), 800)
        event = proxy.expect_event("limit")
        self.assertEqual((event["name"], event["value"]), ("PROXY_CONNECTIONS_MAX", len(clients)))
        for client in clients:
            self.assertEqual(client.send(refused).response().status, 403)
        clients.pop().close()
        while True:  # until the proxy has seen the close
            client = self.client(proxy)
            try:
                if client.send(refused).response().status == 403:
                    break
            except (ConnectionError, EOFError):
                continue


class Start(ProxyTest):
    def run_proxy(self, *argv, policy=b"{}", fds=()):
        read, write = os.pipe()
        os.write(write, policy)
        os.close(write)
        argv = [str(read) if a == "POLICY" else a for a in argv]
        result = subprocess.run([PROXY, *argv], pass_fds=(read, *fds), capture_output=True,
                                timeout=DEADLINE_S, stdin=subprocess.DEVNULL)
        os.close(read)
        return result.returncode, result.stderr.decode()

    def test_arguments(self):
        for argv, message in (
                ((), "--policy-fd: is required"),
                (("--policy-fd",), "--policy-fd: needs a value"),
                (("--policy-fd", "x"), "--policy-fd: must be a descriptor"),
                (("--policy-fd", "1"), "--policy-fd: must be a descriptor"),
                (("--policy-fd", "3", "--policy-fd", "4"), "--policy-fd: given too often"),
                (("--frob", "1"), "--frob: no such option")):
            with self.subTest(argv):
                code, errors = self.run_proxy(*argv)
                self.assertEqual(code, 64)
                self.assertIn(message, errors)

    def test_help_and_version(self):
        for argument, text in (("--version", b"codespace-egress-proxy "), ("--help", b"usage: ")):
            result = subprocess.run([PROXY, argument], capture_output=True, timeout=DEADLINE_S)
            self.assertEqual((result.returncode, result.stderr), (0, b""))
            self.assertTrue(result.stdout.startswith(text))

    def test_limits(self):
        sock = listener()
        self.addCleanup(sock.close)
        fd = str(sock.fileno())
        rest = ("--listen-fd", fd, "--status-fd", fd, "--life-fd", fd)
        for limit in ("DIAL=10001", "DIAL=0", "DIAL", "SLEEP=1"):
            code, errors = self.run_proxy("--policy-fd", "POLICY", *rest, "--limit", limit,
                                          fds=(sock.fileno(),))
            self.assertEqual(code, 64)
            self.assertIn('--limit: "%s"' % limit, errors)

    def test_policy(self):
        sock = listener()
        self.addCleanup(sock.close)
        fd = sock.fileno()
        rest = ("--listen-fd", str(fd), "--status-fd", str(fd), "--life-fd", str(fd))
        for policy, message in ((b"", "JSON"), (b'{"alow":[]}', "did you mean"),
                                (b'{"allow":["a b"]}', "allow[0]")):
            with self.subTest(policy):
                code, errors = self.run_proxy("--policy-fd", "POLICY", *rest, policy=policy,
                                              fds=(fd,))
                self.assertEqual(code, 78)
                self.assertIn(message, errors)

    def test_bad_name_server(self):
        sock = listener()
        self.addCleanup(sock.close)
        fd = sock.fileno()
        code, errors = self.run_proxy(
            "--policy-fd", "POLICY", "--listen-fd", str(fd), "--status-fd", str(fd), "--life-fd",
            str(fd), "--nameserver", "dns.test", fds=(fd,))
        self.assertEqual(code, 64)
        self.assertIn("--nameserver", errors)

    def test_descriptor_that_is_not_open(self):
        code, errors = self.run_proxy("--policy-fd", "POLICY", "--listen-fd", "77", "--status-fd",
                                      "78", "--life-fd", "79")
        self.assertEqual(code, 71)
        self.assertIn("listener", errors)
