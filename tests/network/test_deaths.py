"""When a part is killed, a command has no network. It never has another one."""

import os
import signal

from worlds import NetworkCase, proxies_of

HERE = "45.33.10.10"


class Deaths(NetworkCase):
    def wait_for(self, name):
        self.until(lambda: os.path.exists(os.path.join(self.ws, name)), name)

    def kill_and_wait(self, pids):
        for pid in pids:
            fd = os.pidfd_open(pid)
            signal.pidfd_send_signal(fd, signal.SIGKILL)
            os.close(fd)
        self.until(lambda: not set(proxies_of(self.client.pid)) & set(pids), "the proxy's end")

    def begin_waiting(self):
        ident = self.begin("curl -sf -o /dev/null http://example.test/file.txt || exit 8; touch up; "
                           "until [ -e go ]; do sleep 0.05; done; "
                           "curl -s -m 20 http://example.test/file.txt && exit 9; "
                           "curl -s -m 20 --noproxy '*' http://45.33.10.10/file.txt && exit 9; "
                           "getent hosts example.test && exit 9; exit 0")
        self.wait_for("up")
        return ident

    def finish_waiting(self, ident):
        self.internet.ask(op="clear")
        open(self.ws + "/go", "w").close()
        done = self.client_finish(ident)
        self.assertEqual(done.get("exit_code"), 0, done)
        self.assertIn(("network.proxy_ended", ""), self.denials())
        self.assertEqual(self.left(), set())

    def test_proxy_of_a_cold_command(self):
        self.start()
        ident = self.begin_waiting()
        self.kill_and_wait(proxies_of(self.client.pid))
        self.finish_waiting(ident)

    def test_proxy_of_a_warm_workspace(self):
        self.start()
        self.warm_up()
        ident = self.begin_waiting()
        self.kill_and_wait(proxies_of(self.client.pid))
        self.finish_waiting(ident)
        # The next one starts anew, with a proxy of its own.
        self.assertEqual(self.sh("curl -sS http://example.test/file.txt"), "from the internet\n")

    def test_helper(self):
        """Whoever holds the namespaces: everything of the command ends, the proxy too."""
        self.start()
        ident = self.begin_waiting()
        proxies = proxies_of(self.client.pid)
        self.assertTrue(proxies)
        for proxy in proxies:  # of the command, and of the workspace's zygote
            with open("/proc/%d/stat" % proxy) as f:
                holder = int(f.read().rsplit(")", 1)[1].split()[1])
            os.kill(holder, signal.SIGKILL)
        done = self.client_finish(ident)
        self.assertNotEqual(done.get("termination"), "exited", done)
        self.until(lambda: not set(proxies_of(self.client.pid)) & set(proxies), "the proxy's end")

    def test_zygote(self):
        """Process 1 of the warm sandbox: what it has started ends, the next command starts anew."""
        self.start()
        self.warm_up()
        ident = self.begin_waiting()
        proxies = proxies_of(self.client.pid)
        self.assertEqual(len(proxies), 1)
        with open("/proc/%d/stat" % proxies[0]) as f:
            holder = int(f.read().rsplit(")", 1)[1].split()[1])
        with open("/proc/%d/task/%d/children" % (holder, holder)) as f:
            (zygote,) = {int(pid) for pid in f.read().split()} - set(proxies)
        os.kill(zygote, signal.SIGKILL)
        done = self.client_finish(ident)
        self.assertNotEqual(done.get("termination"), "exited", done)
        self.until(lambda: not set(proxies_of(self.client.pid)) & set(proxies), "the proxy's end")
        self.assertEqual(self.sh("curl -sS http://example.test/file.txt"), "from the internet\n")

    def test_a_kernel_without_nf_tables(self):
        """Refused with the cause; there is no way with less."""
        self.WRAPPER = (os.environ["CODESPACE_TEST_DENIED"], "93", "nf_tables", "--")
        client = self.start()
        with self.assertRaises(Exception) as caught:
            self.sh("touch ran")
        self.assertIn("nf_tables", caught.exception.message)
        self.assertFalse(os.path.exists(self.ws + "/ran"))
        network = client.call("workspace_info", workspace_id="ws")["execution"]["network"]
        self.assertIn("nf_tables", network["proxy_missing"])
        self.assertFalse(network["proxy"])
        self.assertEqual(self.left(), set())

    def test_no_proxy_program(self):
        """Refused before anything starts, with the cause (D5, R17)."""
        os.environ["CODESPACE_EGRESS_PROXY_BIN"], before = (
            "/nonexistent/proxy", os.environ["CODESPACE_EGRESS_PROXY_BIN"])
        try:
            self.start()
            with self.assertRaises(Exception) as caught:
                self.sh("touch ran")
        finally:
            os.environ["CODESPACE_EGRESS_PROXY_BIN"] = before
        self.assertEqual(caught.exception.code, "PROCESS_SPAWN_FAILED")
        self.assertIn("/nonexistent/proxy", caught.exception.message)
        self.assertFalse(os.path.exists(self.ws + "/ran"))

    def test_proxy_that_is_none(self):
        """It starts and is not what it should be: the command does not run."""
        fake = self.dir + "/proxy"
        with open(fake, "w") as out:
            out.write("#!/bin/sh\nexit 3\n")
        os.chmod(fake, 0o755)
        os.environ["CODESPACE_EGRESS_PROXY_BIN"], before = (
            fake, os.environ["CODESPACE_EGRESS_PROXY_BIN"])
        try:
            self.start()
            with self.assertRaises(Exception) as caught:
                self.sh("touch ran")
        finally:
            os.environ["CODESPACE_EGRESS_PROXY_BIN"] = before
        self.assertEqual(caught.exception.code, "PROCESS_SPAWN_FAILED")
        self.assertIn("199", caught.exception.message)
        self.assertFalse(os.path.exists(self.ws + "/ran"))
